//! What is not known is not said: applications that do not answer, locks that are held, texts that are long, ids that change.
//! The judge is the application, stopped or not, and what it logs.

use std::time::{Duration, Instant};

use agent_desktop_testkit::cli::find_ref;
use agent_desktop_testkit::{App, Cli, desktop_test, look, wait_until};

const SOON: Duration = Duration::from_secs(5);

fn reference(cli: &Cli, app: &App, role: &str, name: &str) -> String {
    find_ref(&cli.ok(&["snapshot", "--app", app.name()])["tree"], role, name)
}

desktop_test! {
    fn the_menu_of_a_stopped_application_is_not_said_to_be_closed(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        cli.ok(&["click", &reference(&cli, &app, "button", "More")]);
        cli.ok(&["wait", "--menu", "--app", app.name(), "--timeout", "4000"]);
        app.stop();
        for args in [
            &["wait", "--menu-closed", "--app", app.name(), "--timeout", "1500"][..],
            &["list-surfaces", "--app", app.name()],
            &["snapshot", "--app", app.name(), "--surface", "menu"],
            &["snapshot", "--app", app.name()],
        ] {
            let error = cli.fails(args);
            let is_told = error["code"] == "APP_UNRESPONSIVE"
                || error["details"]["last_error"]["code"] == "APP_UNRESPONSIVE";
            assert!(is_told, "{args:?} {error:#}");
        }
        app.cont();
        let open = cli.ok(&["list-surfaces", "--app", app.name()]);
        assert_eq!(open["surfaces"].as_array().map(Vec::len), Some(1), "{open:#}");
    }

    fn a_ref_outlives_the_display_it_was_made_with(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = reference(&cli, &app, "button", "Save");
        for blind in [desktop.cli().env("DISPLAY", ":77"), desktop.cli().without("DISPLAY")] {
            let before = app.effects().len();
            blind.ok(&["click", &save]);
            wait_until("the button to be pressed", SOON, || app.effects().len() > before);
            assert_eq!(blind.ok(&["get", &save])["value"], "Save");
        }
        let fresh = reference(&desktop.cli().without("DISPLAY"), &app, "button", "Save");
        assert_eq!(cli.ok(&["get", &fresh])["value"], "Save");
    }

    fn a_ref_is_not_called_stale_because_time_ran_out(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = reference(&cli, &app, "button", "Save");
        for round in 0..60 {
            let timeout = (1 + round % 12).to_string();
            let reply = cli.run(&["get", &save, "--timeout-ms", &timeout]);
            let code = reply.envelope()["error"]["code"].as_str().unwrap_or("ok").to_owned();
            assert!(matches!(&*code, "ok" | "TIMEOUT" | "APP_UNRESPONSIVE"), "{}", reply.envelope());
        }
    }

    fn a_long_text_is_set_typed_and_read_whole(desktop: &Desktop) {
        let line = "0123456789 abcdefghijklmnopqrstuvwxyz äöü\n";
        let long = line.repeat(70_000 / line.chars().count());
        for app in [desktop.gtk3("texts"), desktop.qt6("texts")] {
            let cli = desktop.cli();
            let notes = reference(&cli, &app, "textfield", "Notes");
            let done = cli.ok(&["set-value", &notes, &long]);
            assert_eq!(done["disposition"]["delivery"], "delivered_verified", "set-value");
            let done = cli.ok(&["type", &notes, "ZZZ"]);
            assert_eq!(done["disposition"]["delivery"], "delivered_verified", "type");
            let value = cli.ok(&["get", &notes, "--property", "value"])["value"].as_str().expect("a text").to_owned();
            let text = look::find(app.name(), None, Some("Notes")).into_iter().find_map(|object| object.text);
            assert_eq!(Some(&value), text.as_ref());
            assert_eq!(value.chars().count(), long.chars().count() + 3);
            let shown = cli.ok(&["snapshot", "--app", app.name()])["tree"].clone();
            let node = agent_desktop_testkit::cli::find_node(&shown, "textfield", "Notes");
            assert_eq!(node["value_length"], value.chars().count(), "a cut value says so");
        }
    }

    fn a_lock_of_the_store_does_not_outlast_the_deadline(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        cli.ok(&["snapshot", "--app", app.name()]);
        let lock = cli.home().join("refstore.lock");
        assert!(lock.exists(), "{}", lock.display());
        let mut holder = std::process::Command::new("flock").arg(&lock).args(["sleep", "20"]).spawn().expect("flock is there");
        std::thread::sleep(Duration::from_millis(300));
        for args in [&["snapshot"][..], &["find", "--role", "button", "--first"]] {
            let start = Instant::now();
            let error = cli.fails(&[args, &["--app", app.name(), "--timeout-ms", "400"]].concat());
            assert_eq!(error["details"]["kind"], "lock_timeout", "{error:#}");
            assert!(start.elapsed() < Duration::from_millis(1200), "{args:?} took {:?}", start.elapsed());
        }
        let _ = holder.kill();
        let _ = holder.wait();
    }

    fn two_instances_are_a_question_also_while_waiting(desktop: &Desktop) {
        let one = desktop.gtk3("controls");
        let _two = desktop.gtk3("controls");
        let cli = desktop.cli();
        for args in [&["wait", "--text", "Save"][..], &["wait", "--menu-closed"]] {
            let start = Instant::now();
            let error = cli.fails(&[args, &["--app", one.name(), "--timeout", "20000"]].concat());
            assert_eq!(error["code"], "AMBIGUOUS_TARGET", "{error:#}");
            assert!(start.elapsed() < Duration::from_secs(8), "{args:?} took {:?}", start.elapsed());
        }
    }

    fn an_emptied_field_can_be_waited_for(desktop: &Desktop) {
        let cli = desktop.cli();
        for app in [desktop.gtk3("texts"), desktop.gtk4("texts"), desktop.qt6("texts")] {
            let notes = reference(&cli, &app, "textfield", "Notes");
            cli.ok(&["clear", &notes]);
            cli.ok(&["wait", "--element", &notes, "--predicate", "value", "--value", "", "--timeout", "3000"]);
        }
    }

    /// GTK 4 says of a page that was shown once that it is visible, and leaves it where it was.
    fn a_page_that_was_left_is_not_shown(desktop: &Desktop) {
        let app = desktop.gtk4_widget_factory();
        let cli = desktop.cli();
        let boxes = || cli.ok(&["find", "--app", app.name(), "--role", "checkbox", "--name", "checkbutton", "--count"])["count"].clone();
        let page = |name: &str| {
            let tab = cli.ok(&["find", "--app", app.name(), "--role", "tab", "--name", name, "--exact", "--last"]);
            cli.ok(&["click", tab["match"]["ref_id"].as_str().unwrap_or_else(|| panic!("no tab {name}: {tab:#}"))]);
        };
        let first = boxes();
        assert_ne!(first, 0);
        page("Page 2");
        wait_until("the first page to be out of sight", SOON, || boxes() == 0);
        page("Page 1");
        wait_until("the first page to be back", SOON, || boxes() == first);
    }
}
