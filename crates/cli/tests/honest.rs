//! Actions that are told as what they were: skipped, refused, seen. The judge is the application's own side.

use std::time::Duration;

use agent_desktop_testkit::cli::{find_node, find_ref};
use agent_desktop_testkit::{desktop_test, look, wait_until};

const SOON: Duration = Duration::from_secs(5);

desktop_test! {
    fn expanding_what_is_open_leaves_it_open(desktop: &Desktop) {
        let cli = desktop.cli();
        for app in [desktop.gtk3("controls"), desktop.gtk4("controls")] {
            let tree = cli.ok(&["snapshot", "--app", app.name()])["tree"].clone();
            let colour = find_ref(&tree, "combobox", "Colour");
            let open = || {
                let list = cli.ok(&["list-surfaces", "--app", app.name()]);
                list["surfaces"].as_array().is_some_and(|surfaces| !surfaces.is_empty())
            };
            assert_eq!(cli.ok(&["is", &colour, "--property", "expanded"])["result"], false);
            cli.ok(&["expand", &colour]);
            wait_until("the list to be open", SOON, open);
            assert_eq!(cli.ok(&["is", &colour, "--property", "expanded"])["result"], true, "{}", app.name());
            let done = cli.ok(&["expand", &colour]);
            assert_eq!(done["steps"][0]["outcome"], "skipped", "{done:#}");
            assert!(open(), "{} closed what was to be opened", app.name());
        }
    }

    /// The check boxes of GTK 4.8 cannot be changed through their interface, which nobody needs here.
    fn checking_what_is_checked_needs_nothing(desktop: &Desktop) {
        let cli = desktop.cli();
        let app = desktop.gtk4("controls");
        let tree = cli.ok(&["snapshot", "--app", app.name()])["tree"].clone();
        let wifi = find_node(&tree, "checkbox", "Remember me");
        let is_on = wifi["states"].to_string().contains("checked");
        let reference = wifi["ref_id"].as_str().expect("a ref");
        let before = app.effects();
        let done = cli.ok(&[if is_on { "check" } else { "uncheck" }, reference]);
        assert_eq!(
            (&done["steps"][0]["outcome"], &done["disposition"]["delivery"]),
            (&"skipped".into(), &"not_delivered".into()),
            "{done:#}"
        );
        let error = cli.fails(&[if is_on { "uncheck" } else { "check" }, reference]);
        assert_eq!(error["code"], "POLICY_DENIED", "{error:#}");
        assert_eq!(app.effects(), before);
    }

    fn scrolling_is_verified_by_what_moved(desktop: &Desktop) {
        let cli = desktop.cli();
        for (app, role) in [
            (desktop.gtk3("scroll"), "scrollarea"),
            (desktop.gtk4("scroll"), "scrollarea"),
            (desktop.qt6("scroll"), "scrollbar"),
        ] {
            let bars = || -> Vec<f64> {
                look::find(app.name(), None, None).into_iter().filter_map(|bar| bar.value).collect()
            };
            let before = bars();
            let area = cli.ok(&["find", "--app", app.name(), "--role", role, "--first"]);
            let area = area["match"]["ref_id"].as_str().unwrap_or_else(|| panic!("{area:#}")).to_owned();
            let done = cli.ok(&["scroll", &area]);
            assert_eq!(done["disposition"]["delivery"], "delivered_verified", "{done:#}");
            assert_ne!(bars(), before, "{}", app.name());
        }
    }

    /// The scroll bars of a sheet take numbers and stay where they are.
    fn a_scroll_bar_of_calc_that_does_not_move_is_not_verified(desktop: &Desktop) {
        let cli = desktop.cli();
        let app = desktop.calc(&desktop.sheet("empty.fods", &[]));
        let bar = cli.ok(&["find", "--app", app.name(), "--role", "scrollbar", "--first"]);
        let bar = bar["match"]["ref_id"].as_str().unwrap_or_else(|| panic!("{bar:#}")).to_owned();
        let first = || {
            let cells = cli.ok(&["find", "--app", app.name(), "--role", "cell", "--first"]);
            cells["match"]["name"].as_str().unwrap_or_default().to_owned()
        };
        let before = first();
        let reply = cli.run(&["scroll", &bar, "--amount", "5"]);
        let is_verified = reply.envelope()["data"]["disposition"]["delivery"] == "delivered_verified";
        assert_eq!(is_verified, first() != before, "{}", reply.envelope());
    }
}
