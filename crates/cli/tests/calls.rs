//! What each command costs, in calls on the accessibility bus. Calls are counted, not timed: the number is the same on a
//! busy machine.

use agent_desktop_testkit::{Cli, Desktop, desktop_test};

const APP: &str = "fixture-gtk3";

/// Calls of one command, as it says itself, and the nodes it printed.
#[track_caller]
fn calls(cli: &Cli, arguments: &[&str]) -> u32 {
    let reply = cli.run(arguments);
    reply.ok();
    let line = reply.stderr.lines().find(|line| line.starts_with("stats:")).expect("the statistics");
    let count = line.split("calls=").nth(1).and_then(|rest| rest.split(' ').next()).expect("the calls");
    count.parse().expect("a number")
}

#[track_caller]
fn assert_at_most(cli: &Cli, arguments: &[&str], limit: u32) {
    let count = calls(cli, arguments);
    assert!(count > 0 && count <= limit, "{arguments:?} made {count} calls, promised are {limit}");
}

fn counting(desktop: &Desktop) -> Cli {
    desktop.cli().env("AGENT_DESKTOP_STATS", "1")
}

desktop_test! {
    fn each_command_makes_no_more_calls_than_it_promises(desktop: &Desktop) {
        let _app = desktop.gtk3("controls");
        let cli = counting(desktop);
        // Connecting, the registry, and five facts of each of the one or two applications on the bus.
        assert_at_most(&cli, &["permissions"], 4);
        assert_at_most(&cli, &["list-apps"], 16);
        // And four facts of each window.
        assert_at_most(&cli, &["list-windows"], 24);
        // The tree too: a popover is drawn inside its window, where nothing else tells of it.
        assert_at_most(&cli, &["list-surfaces", "--app", APP], 110);
        let save = cli.find(APP, "button", "Save");
        let entry = cli.find(APP, "checkbox", "Remember me");
        // One element is read: the windows, and some ten facts of it.
        assert_at_most(&cli, &["get", &save], 45);
        assert_at_most(&cli, &["is", &save, "--property", "enabled"], 45);
        // An action looks three times and acts once.
        assert_at_most(&cli, &["check", &entry], 260);
        assert_at_most(&cli, &["click", &save], 320);
    }

    /// A tree costs its objects, not its depth: what is hidden one call, what shows at most eight.
    fn a_snapshot_makes_at_most_eight_calls_a_node(desktop: &Desktop) {
        let _app = desktop.gtk3("controls");
        let cli = counting(desktop);
        for flags in [&["snapshot", "--app", APP, "--max-depth", "50"][..], &["snapshot", "--app", APP, "--all", "--max-depth", "50"]] {
            let data = cli.ok(flags);
            let nodes = u32::try_from(agent_desktop_testkit::cli::nodes(&data["tree"]).len()).expect("few nodes");
            let count = calls(&cli, flags);
            assert!(nodes > 30, "{nodes} nodes");
            assert!(count <= 40 + nodes * 8, "{flags:?}: {count} calls for {nodes} nodes");
        }
    }

    /// 200 rows of which some 20 show: the others cost next to nothing.
    fn what_does_not_show_costs_at_most_a_call(desktop: &Desktop) {
        let _app = desktop.gtk3("scroll");
        let cli = counting(desktop);
        let all = calls(&cli, &["snapshot", "--app", APP, "--all", "--max-depth", "50"]);
        let shown = calls(&cli, &["snapshot", "--app", APP, "--max-depth", "50"]);
        assert!(shown * 2 < all, "{shown} calls for what shows, {all} for everything");
    }

    /// The sheet has 17 billion cells.
    fn a_sheet_costs_its_cells_in_view(desktop: &Desktop) {
        let _app = desktop.calc(&desktop.sheet("office_calls", &[]));
        let cli = counting(desktop);
        let flags = ["snapshot", "--app", "soffice", "--max-depth", "50"];
        let data = cli.ok(&flags);
        let nodes = u32::try_from(agent_desktop_testkit::cli::nodes(&data["tree"]).len()).expect("few nodes");
        let count = calls(&cli, &flags);
        assert!(count <= 2000 + nodes * 8, "{count} calls for {nodes} nodes");
    }
}
