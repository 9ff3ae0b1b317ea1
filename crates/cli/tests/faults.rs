//! Applications that stop, die, restart, hang and change under our hands, and desktops that lack something. The built
//! binary must say what happened, in time, and never act on anything else.

use std::io::Read;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use agent_desktop_testkit::{App, Cli, Desktop, Reply, desktop_test, wait_until};
use serde_json::Value;

const APP: &str = "fixture-gtk3";

/// A clock that is generous to a busy machine, and still far below "hung".
const MARGIN: Duration = Duration::from_secs(4);

fn clicked(app: &App) -> Vec<String> {
    app.effects().into_iter().filter(|line| line.starts_with("clicked")).collect()
}

#[track_caller]
fn assert_fails(reply: &Reply, code: &str, limit: Duration) -> Value {
    let error = reply.err();
    assert_eq!(error["code"], code, "{reply}");
    assert_eq!(reply.code, Some(1), "{reply}");
    assert!(reply.elapsed < limit + MARGIN, "{reply}");
    error
}

#[track_caller]
fn assert_untouched(error: &Value) {
    assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
    assert_eq!(error["disposition"]["retry"], "safe", "{error:#}");
}

/// A bus that accepts connections and never answers.
fn mute_bus(desktop: &Desktop) -> String {
    let path = desktop.path("mute-bus");
    let listener = UnixListener::bind(&path).expect("a socket can be made");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut sink = Vec::new();
                let _ = stream.read_to_end(&mut sink);
            });
        }
    });
    format!("unix:path={}", path.display())
}

fn without_accessibility(desktop: &Desktop) -> Cli {
    desktop
        .cli()
        .without("AT_SPI_BUS_ADDRESS")
        .without("DBUS_SESSION_BUS_ADDRESS")
        .env("XDG_RUNTIME_DIR", desktop.path("nothing-here"))
}

desktop_test! {
    fn a_stopped_application_is_unresponsive_at_once_and_works_again_after(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = cli.find(APP, "button", "Save");
        app.stop();
        for arguments in [&["click", save.as_str()][..], &["get", save.as_str()], &["snapshot", "--app", APP]] {
            let error = assert_fails(&cli.run(arguments), "APP_UNRESPONSIVE", Duration::from_secs(5));
            assert_untouched(&error);
            assert_eq!(error["details"]["process_state"]["state"], "unresponsive", "{error:#}");
        }
        assert!(clicked(&app).is_empty());
        app.cont();
        cli.ok(&["click", &save]);
        app.wait_log("clicked Save");
        assert_eq!(clicked(&app), ["clicked Save"], "exactly one click arrived");
    }

    fn an_application_that_hangs_for_longer_than_the_deadline_is_unresponsive(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = cli.find(APP, "button", "Save");
        app.send("hang 8");
        std::thread::sleep(Duration::from_millis(300));
        let reply = cli.run(&["click", &save, "--timeout-ms", "1500"]);
        let error = reply.err();
        assert!(["APP_UNRESPONSIVE", "TIMEOUT"].contains(&error["code"].as_str().unwrap_or("")), "{reply}");
        assert_untouched(&error);
        assert!(reply.elapsed < Duration::from_millis(1500) + MARGIN, "{reply}");
        assert!(clicked(&app).is_empty());
    }

    fn a_ref_of_an_application_that_died_or_was_restarted_is_stale(desktop: &Desktop) {
        let mut app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = cli.find(APP, "button", "Save");
        app.kill();
        wait_until("the application to be gone", Duration::from_secs(5), || !app.is_running());
        let error = assert_fails(&cli.run(&["click", &save]), "STALE_REF", Duration::from_secs(5));
        assert_untouched(&error);
        assert_eq!(error["details"]["process_state"]["state"], "exited", "{error:#}");
        let again = desktop.gtk3("controls");
        let error = assert_fails(&cli.run(&["click", &save]), "STALE_REF", Duration::from_secs(5));
        assert_eq!(error["details"]["reason"], "application_restarted", "{error:#}");
        assert!(clicked(&again).is_empty(), "the new instance was not touched");
    }

    fn an_application_that_dies_while_it_is_asked_ends_the_command_at_once(desktop: &Desktop) {
        let mut app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = cli.find(APP, "button", "Save");
        app.send("hang 20");
        let pid = i32::try_from(app.pid()).expect("a pid");
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(700));
            let group = rustix::process::Pid::from_raw(pid).expect("a pid");
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("it runs");
        });
        let reply = cli.run(&["click", &save, "--timeout-ms", "20000"]);
        killer.join().expect("the killer ends");
        reply.err();
        assert!(reply.elapsed < Duration::from_secs(6), "{reply}");
        wait_until("the application to be gone", Duration::from_secs(5), || !app.is_running());
    }

    fn a_renamed_button_is_stale_and_says_so(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = cli.find(APP, "button", "Save");
        app.command("rename Save Store");
        let error = assert_fails(&cli.run(&["click", &save]), "STALE_REF", Duration::from_secs(5));
        assert_untouched(&error);
        assert_eq!(error["details"]["reason"], "renamed", "{error:#}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("Store")), "{error:#}");
        assert!(error["recovery"]["requires_fresh_snapshot"].as_bool() == Some(true), "{error:#}");
        assert!(clicked(&app).is_empty());
    }

    fn a_removed_button_is_stale_and_its_twin_is_not_taken_for_it(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let data = cli.ok(&["find", "--app", APP, "--role", "button", "--name", "Twin", "--exact"]);
        assert_eq!(data["total_matches"], 2, "{data:#}");
        let first = data["matches"][0]["ref_id"].as_str().expect("a ref").to_owned();
        let second = data["matches"][1]["ref_id"].as_str().expect("a ref").to_owned();
        app.command("remove Twin1");
        // One of the two is gone; whichever it is, its ref must not lead to the other.
        let replies = [cli.run(&["click", &first]), cli.run(&["click", &second])];
        let worked = replies.iter().filter(|reply| reply.code == Some(0)).count();
        let stale = replies.iter().filter(|reply| reply.code == Some(1) && reply.err_code() == "STALE_REF").count();
        assert_eq!((worked, stale), (1, 1), "{}\n{}", replies[0], replies[1]);
        app.wait_log("clicked Twin 2");
        assert_eq!(clicked(&app).len(), 1);
    }

    fn two_equal_buttons_are_ambiguous_when_nothing_tells_them_apart(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let error = assert_fails(
            &cli.run(&["get", "@nosuchsnapshot:e1"]),
            "SNAPSHOT_NOT_FOUND",
            Duration::from_secs(1),
        );
        assert_untouched(&error);
        // Both are refs of their own, and each clicks its own button.
        let data = cli.ok(&["find", "--app", APP, "--role", "button", "--name", "Twin", "--exact"]);
        for index in [1, 0] {
            let reference = data["matches"][index]["ref_id"].as_str().expect("a ref");
            cli.ok(&["click", reference]);
        }
        wait_until("both clicks", Duration::from_secs(5), || clicked(&app).len() == 2);
        let log = clicked(&app);
        assert_ne!(log[0], log[1], "two different buttons: {log:?}");
    }

    fn two_instances_are_ambiguous_and_each_candidate_says_what_picks_it(desktop: &Desktop) {
        let first = desktop.gtk3("controls");
        let second = desktop.gtk3("texts");
        let cli = desktop.cli();
        let error = assert_fails(&cli.run(&["snapshot", "--app", APP]), "AMBIGUOUS_TARGET", Duration::from_secs(3));
        let candidates = error["details"]["candidates"].as_array().expect("candidates").clone();
        assert_eq!(candidates.len(), 2, "{error:#}");
        for candidate in candidates {
            let pick = candidate["pick"].as_str().expect("what picks it");
            cli.ok(&["snapshot", "--app", pick]);
        }
        drop((first, second));
    }

    fn without_an_accessibility_bus_the_error_says_what_to_do(desktop: &Desktop) {
        let _app = desktop.gtk3("controls");
        let cli = without_accessibility(desktop);
        for arguments in [&["snapshot", "--app", APP][..], &["list-apps"], &["find", "--app", APP, "--count"]] {
            let error = assert_fails(&cli.run(arguments), "PERM_DENIED", Duration::from_secs(5));
            assert_untouched(&error);
            assert!(error["suggestion"].as_str().is_some_and(|text| text.contains("at-spi2-core")), "{error:#}");
        }
        assert_eq!(cli.ok(&["permissions"])["accessibility"]["state"], "denied");
        cli.ok(&["status"]);
    }

    fn a_mute_bus_ends_at_the_deadline(desktop: &Desktop) {
        let _app = desktop.gtk3("controls");
        let mute = mute_bus(desktop);
        for cli in [
            desktop.cli().env("AT_SPI_BUS_ADDRESS", &mute),
            desktop.cli().without("AT_SPI_BUS_ADDRESS").env("DBUS_SESSION_BUS_ADDRESS", &mute),
        ] {
            let reply = cli.run(&["snapshot", "--app", APP, "--timeout-ms", "1000"]);
            let error = assert_fails(&reply, "TIMEOUT", Duration::from_secs(1));
            assert_untouched(&error);
        }
    }

    fn a_wrong_display_keeps_reading_and_acting_and_refuses_the_pointer(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli().env("DISPLAY", ":4711");
        let save = cli.find(APP, "button", "Save");
        cli.ok(&["click", &save]);
        app.wait_log("clicked Save");
        let error = assert_fails(
            &cli.run(&["mouse-move", "--xy", "5,5", "--headed"]),
            "PLATFORM_NOT_SUPPORTED",
            Duration::from_secs(5),
        );
        assert_untouched(&error);
        assert!(error["suggestion"].as_str().is_some_and(|text| text.contains("DISPLAY")), "{error:#}");
        assert_fails(&cli.run(&["screenshot"]), "PERM_DENIED", Duration::from_secs(5));
    }

    fn a_command_that_is_killed_at_any_moment_leaves_nothing_stuck(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = cli.find(APP, "button", "Save");
        let amount = cli.find(APP, "incrementor", "Amount");
        let commands: [&[&str]; 4] = [
            &["click", &save],
            &["set-value", &amount, "7"],
            &["snapshot", "--app", APP, "--all"],
            &["click", &save, "--headed"],
        ];
        // From before anything is connected until after the command has ended.
        for (round, args) in [1, 2, 4, 8, 16, 32, 64, 128, 256].into_iter().flat_map(|ms| commands.map(|args| (ms, args))) {
            let mut child = cli.command(args).stdout(std::process::Stdio::null()).spawn().expect("it was built");
            std::thread::sleep(Duration::from_millis(round));
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
            // The lease and the locks of the store are free, and what is stored can be read.
            let next = cli.run(&["get", &save, "--timeout-ms", "3000"]);
            assert_eq!(next.ok()["ref"], *save, "after {round} ms of {args:?}");
            assert!(next.elapsed < MARGIN, "after {round} ms of {args:?}: {:?}", next.elapsed);
        }
        let before = clicked(&app).len();
        cli.ok(&["click", &save]);
        wait_until("the click", MARGIN, || clicked(&app).len() == before + 1);
        cli.ok(&["snapshot", "--app", APP]);
        assert!(desktop.held().is_nothing());
    }

    fn a_hundred_snapshots_change_nothing_in_the_application(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let (active, pointer, log) = (desktop.active_window(), desktop.pointer(), app.effects());
        for _ in 0..20 {
            cli.ok(&["snapshot", "--app", APP]);
        }
        let before = app.memory();
        for _ in 0..80 {
            cli.ok(&["snapshot", "--app", APP, "--all"]);
        }
        assert!(app.memory() < before + 20_000_000, "it grew from {before} to {}", app.memory());
        assert_eq!((desktop.active_window(), desktop.pointer(), app.effects()), (active, pointer, log));
    }
}
