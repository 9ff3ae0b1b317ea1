//! `doctor`, on desktops that are whole and on desktops with something broken. The judges are the buses, the window system and
//! applications; of the self-test's own window it is xdotool.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use agent_desktop_testkit::cli::Reply;
use agent_desktop_testkit::{Cli, Desktop, desktop_test, wait_for, wait_until};
use serde_json::Value;

#[path = "support/notifications.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod support;

use support::{Process, SOON, service};

const SELF_TEST: [&str; 4] =
    ["self_test_window", "self_test_picture", "self_test_pointer", "self_test_keyboard"];

/// The findings; the exit code must fit them.
#[track_caller]
fn findings(reply: &Reply) -> Value {
    let envelope = reply.envelope();
    assert_eq!(envelope["ok"], true, "{reply}");
    let data = envelope["data"].clone();
    let failed = data["counts"]["failed"].as_u64().expect("a number");
    assert_eq!(data["healthy"], failed == 0, "{reply}");
    assert_eq!(reply.code, Some(i32::from(failed > 0)), "{reply}");
    data
}

#[track_caller]
fn check<'a>(data: &'a Value, id: &str) -> &'a Value {
    let found = data["checks"].as_array().expect("a list").iter().find(|check| check["id"] == id);
    found.unwrap_or_else(|| panic!("no check {id} in {data:#}"))
}

fn states(data: &Value) -> Vec<(&str, &str)> {
    let word = |check: &'_ Value, key: &str| -> &'static str {
        Box::leak(check[key].as_str().expect("a word").to_owned().into_boxed_str())
    };
    data["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|check| (word(check, "id"), word(check, "state")))
        .collect()
}

fn status_property(desktop: &Desktop, name: &str) -> String {
    let arguments = ["--user", "get-property", "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Status", name];
    desktop.tool("busctl", &arguments)
}

fn set_status_property(desktop: &Desktop, name: &str, value: &str) {
    let arguments =
        ["--user", "set-property", "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Status", name, "b", value];
    desktop.tool("busctl", &arguments);
    wait_until("the property to be set", SOON, || status_property(desktop, name) == format!("b {value}"));
}

/// A session bus that can start nobody.
fn empty_bus(desktop: &Desktop) -> (Process, String) {
    let socket = desktop.path("bus");
    let policy = r#"<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>"#;
    let config = format!(
        "<busconfig><type>session</type><listen>unix:path={}</listen>{policy}</busconfig>",
        socket.display()
    );
    let config = desktop.file("bus.conf", &config);
    let mut command = Command::new("dbus-daemon");
    command.arg("--nofork").arg(format!("--config-file={}", config.display()));
    let bus = Process::start(&mut command);
    wait_until("the bus to listen", SOON, || socket.exists());
    (bus, format!("unix:path={}", socket.display()))
}

/// The product on this session bus, and on no accessibility bus that the environment names.
fn on_bus(desktop: &Desktop, address: &str) -> Cli {
    desktop
        .cli()
        .without("AT_SPI_BUS_ADDRESS")
        .env("DBUS_SESSION_BUS_ADDRESS", address)
        .env("XDG_RUNTIME_DIR", desktop.path("nothing-here"))
}

desktop_test! {
    fn a_whole_desktop_is_ok_in_every_check_of_the_contract(desktop: &Desktop) {
        let _service = service(desktop, "dunst");
        let app = desktop.gtk3("controls");
        let before = (desktop.active_window(), desktop.pointer(), app.effects());
        let data = findings(&desktop.cli().run(&["doctor"]));
        assert!(states(&data).iter().all(|(_, state)| *state == "ok"), "{data:#}");
        assert_eq!((desktop.active_window(), desktop.pointer(), app.effects()), before);
        assert!(!desktop.cli().home().exists(), "looking makes no state root");
        // Every check, with those of the self-test, is a row of the contract and the other way round.
        let contract = std::fs::read_to_string(agent_desktop_testkit::root().join("docs/contract.md")).unwrap();
        let (_, table) = contract.split_once("\n| check | looks at |\n|---|---|\n").expect("a table of checks");
        let rows: Vec<&str> =
            table.lines().map_while(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        let found: Vec<&str> = states(&data).iter().map(|(id, _)| *id).chain(SELF_TEST).collect();
        assert_eq!(rows, found);
        let text = desktop.cli().run(&["doctor", "--format", "outline"]).stdout;
        assert!(text.contains("\n13 ok, 0 warning, 0 failed, 0 skipped\n"), "{text}");
    }

    fn a_desktop_without_an_accessibility_bus_says_so_and_skips_what_needs_it(desktop: &Desktop) {
        let (_bus, address) = empty_bus(desktop);
        let reply = on_bus(desktop, &address).run(&["doctor", "--fix"]);
        let data = findings(&reply);
        assert_eq!(reply.code, Some(1));
        assert_eq!(check(&data, "session_bus")["state"], "ok", "{data:#}");
        let bus = check(&data, "accessibility_bus");
        assert_eq!((&bus["state"], &bus["can_fix"]), (&"failed".into(), &false.into()), "{data:#}");
        assert!(bus["advice"].as_str().is_some_and(|text| text.contains("at-spi2-core")), "{bus:#}");
        for id in ["accessibility_registry", "applications"] {
            assert_eq!(check(&data, id)["state"], "skipped", "{data:#}");
        }
        assert_ne!(check(&data, "accessibility_enabled")["state"], "ok", "{data:#}");
        for id in ["display", "window_manager", "input", "screen_capture"] {
            assert_eq!(check(&data, id)["state"], "ok", "{data:#}");
        }
        // No bus at all.
        let data = findings(&on_bus(desktop, "unix:path=/nothing/here").run(&["doctor"]));
        assert_eq!(check(&data, "session_bus")["state"], "failed", "{data:#}");
        assert_eq!(check(&data, "accessibility_bus")["state"], "skipped", "{data:#}");
    }

    fn a_bus_that_hangs_leaves_time_for_the_other_checks(desktop: &Desktop) {
        let (bus, address) = empty_bus(desktop);
        bus.signal("-STOP");
        let reply = on_bus(desktop, &address).run(&["doctor", "--timeout-ms", "2000"]);
        bus.signal("-CONT");
        let data = findings(&reply);
        let bus = check(&data, "session_bus");
        assert_eq!(bus["state"], "failed", "{data:#}");
        for id in ["display", "window_manager", "input", "screen_capture"] {
            assert_eq!(check(&data, id)["state"], "ok", "{data:#}");
        }
    }

    fn accessibility_that_is_off_is_switched_on_by_fix_and_by_nothing_else(desktop: &Desktop) {
        set_status_property(desktop, "ScreenReaderEnabled", "false");
        set_status_property(desktop, "IsEnabled", "false");
        let cli = desktop.cli();
        let data = findings(&cli.run(&["doctor"]));
        let found = check(&data, "accessibility_enabled");
        assert_eq!((&found["state"], &found["can_fix"]), (&"warning".into(), &true.into()), "{found:#}");
        assert_eq!(status_property(desktop, "IsEnabled"), "b false", "looking changes nothing");
        let data = findings(&cli.run(&["doctor", "--fix"]));
        let found = check(&data, "accessibility_enabled");
        assert_eq!(found["state"], "ok", "{found:#}");
        assert_eq!(found["fixed"], "org.a11y.Status.IsEnabled set to true", "{found:#}");
        assert_eq!(status_property(desktop, "IsEnabled"), "b true");
        assert_eq!(status_property(desktop, "ScreenReaderEnabled"), "b false");
        // What is right is left alone.
        let data = findings(&cli.run(&["doctor", "--fix"]));
        assert!(data["checks"].as_array().unwrap().iter().all(|check| check.get("fixed").is_none()), "{data:#}");
    }

    fn a_wrong_display_is_named_and_the_buses_are_still_looked_at(desktop: &Desktop) {
        let cli = desktop.cli().env("DISPLAY", ":4711");
        let data = findings(&cli.run(&["doctor", "--self-test", "--headed"]));
        let display = check(&data, "display");
        assert_eq!(display["state"], "failed", "{data:#}");
        assert!(display["seen"].as_str().is_some_and(|seen| seen.contains(":4711")), "{display:#}");
        for id in ["window_manager", "input", "screen_capture", "applications"].into_iter().chain(SELF_TEST) {
            assert_eq!(check(&data, id)["state"], "skipped", "{data:#}");
        }
        for id in ["session_bus", "accessibility_bus", "accessibility_registry", "accessibility_enabled"] {
            assert_eq!(check(&data, id)["state"], "ok", "{data:#}");
        }
        let data = findings(&cli.env("DISPLAY", "").run(&["doctor"]));
        assert_eq!(check(&data, "display")["seen"], "DISPLAY is not set", "{data:#}");
    }

    on agent_desktop_testkit::Setup::wm("none") =>
    fn a_desktop_without_a_window_manager_is_a_warning(desktop: &Desktop) {
        let data = findings(&desktop.cli().run(&["doctor", "--self-test", "--headed"]));
        assert_eq!(check(&data, "window_manager")["state"], "warning", "{data:#}");
        for id in SELF_TEST {
            assert_eq!(check(&data, id)["state"], "ok", "{data:#}");
        }
    }

    fn a_client_without_a_tree_is_named_with_its_own_advice(desktop: &Desktop) {
        let _terminal = Process::start(Command::new("xterm").stderr(Stdio::null()));
        let mut zenity = Command::new("zenity");
        zenity.args(["--info", "--text=one"]).env("NO_AT_BRIDGE", "1").stderr(Stdio::null());
        let question = Process::start(&mut zenity);
        let readable = desktop.gtk3("controls");
        wait_until("three windows", SOON, || desktop.windows().len() == 3);
        let cli = desktop.cli().env("NO_AT_BRIDGE", "1");
        let data = findings(&cli.run(&["doctor"]));
        let found = check(&data, "applications");
        assert_eq!(found["state"], "warning", "{data:#}");
        let apps = found["apps"].as_array().expect("a list");
        let advice = |pid: u32| {
            let app = apps.iter().find(|app| app["pid"] == pid);
            app.map(|app| app["advice"].as_str().expect("a text"))
        };
        assert_eq!(apps.len(), 2, "{found:#}");
        assert_eq!(advice(readable.pid()), None, "{found:#}");
        let zenity = advice(question.0.id()).expect("zenity is named");
        assert_eq!(zenity, "start it again without NO_AT_BRIDGE=1 in its environment");
        let terminal = apps.iter().find(|app| app["name"] == "XTerm").expect("the terminal is named");
        assert!(terminal["advice"].as_str().is_some_and(|text| text.contains("screenshot")), "{found:#}");
        let own = check(&data, "environment");
        assert_eq!((&own["state"], &own["advice"]), (&"warning".into(), &"unset NO_AT_BRIDGE".into()), "{own:#}");
    }

    fn a_chromium_that_shows_its_content_to_nobody_is_named(desktop: &Desktop) {
        set_status_property(desktop, "ScreenReaderEnabled", "false");
        set_status_property(desktop, "IsEnabled", "false");
        let page = desktop.file("page.html", "<h1>Hello</h1>");
        let mut command = Command::new("chromium");
        command.args(["--no-sandbox", "--no-first-run", "--disable-gpu", "--proxy-server=127.0.0.1:9"]);
        command.arg(format!("--user-data-dir={}", desktop.path("profile").display())).arg(page);
        let _browser = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        desktop.wait_window("Chromium");
        let app = wait_for("it to be named", SOON, || {
            let data = findings(&desktop.cli().run(&["doctor"]));
            check(&data, "applications")["apps"].as_array()?.first().cloned()
        });
        assert_eq!(app["name"], "Chromium", "{app:#}");
        let advice = app["advice"].as_str().expect("a text");
        assert!(advice.contains("--force-renderer-accessibility"), "{app:#}");
    }

    fn the_self_test_sees_its_window_clicked_and_typed_into_and_leaves_no_trace_of_it(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let window = app.window(desktop).id;
        desktop.activate(window);
        let before = (desktop.pointer(), app.effects());
        let data = findings(&desktop.cli().run(&["doctor", "--self-test", "--headed"]));
        for id in SELF_TEST {
            assert_eq!(check(&data, id)["state"], "ok", "{data:#}");
        }
        assert!(check(&data, "self_test_pointer")["seen"].as_str().unwrap().contains("`button 1 120 80 server`"));
        assert!(check(&data, "self_test_keyboard")["seen"].as_str().unwrap().contains("`key 61 server`"));
        wait_until("the focus to be back", SOON, || desktop.active_window() == Some(window));
        assert_eq!((desktop.pointer(), app.effects()), before);
        assert_eq!(desktop.windows().len(), 1, "its window is gone");
        let error = desktop.cli().fails(&["doctor", "--self-test"]);
        assert_eq!(error["code"], "POLICY_DENIED", "{error:#}");
    }

    /// The window of the self-test, judged by another program: it tells what the server's input sent it from what a program
    /// only claims.
    fn the_window_of_the_self_test_reports_what_it_was_really_sent(desktop: &Desktop) {
        let mut command = desktop.cli().command(&["open-the-window-of-the-self-test"]);
        let mut fixture = Process::start_with(command.stdout(Stdio::piped()), Stdio::piped());
        let window = desktop.wait_window("agent-desktop self-test");
        let area = desktop.area(window.id);
        let id = window.id.to_string();
        // To a window that has the focus xdotool sends no claims.
        let _other = Process::start(Command::new("xterm").stderr(Stdio::null()));
        let other = wait_for("another window", SOON, || {
            desktop.windows().into_iter().find(|other| other.id != window.id)
        });
        desktop.activate(other.id);
        desktop.tool("xdotool", &["key", "--window", &id, "b"]);
        desktop.activate(window.id);
        desktop.tool("xdotool", &["key", "a"]);
        let (x, y) = ((area.x + 7).to_string(), (area.y + 9).to_string());
        desktop.tool("xdotool", &["mousemove", &x, &y, "click", "3"]);
        drop(fixture.0.stdin.take());
        assert!(fixture.0.wait().expect("it is ours").success());
        let mut said = String::new();
        fixture.0.stdout.take().expect("a pipe").read_to_string(&mut said).expect("it is text");
        let lines: Vec<&str> = said.lines().filter(|line| *line != "shown").collect();
        assert_eq!(lines, ["key 62 client", "key 61 server", "button 3 7 9 server"]);
    }

    fn a_window_in_front_is_not_clicked_by_the_self_test(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let id = format!("{:#x}", app.window(desktop).id);
        desktop.tool("wmctrl", &["-i", "-r", &id, "-b", "add,fullscreen"]);
        desktop.tool("wmctrl", &["-i", "-r", &id, "-b", "add,above"]);
        wait_until("it to cover the screen", SOON, || desktop.area(app.window(desktop).id).width == 1280);
        let before = app.effects();
        let data = findings(&desktop.cli().run(&["doctor", "--self-test", "--headed"]));
        let pointer = check(&data, "self_test_pointer");
        assert_eq!(pointer["state"], "failed", "{data:#}");
        assert!(pointer["seen"].as_str().is_some_and(|seen| seen.contains("covers it")), "{pointer:#}");
        assert_eq!(app.effects(), before);
    }

    fn a_server_without_synthetic_input_fails_where_it_is_needed(desktop: &Desktop) {
        let number = desktop.path("display");
        let file = std::fs::File::create(&number).expect("a file");
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp", "-noreset"]);
        let _server = Process::start(command.args(["-extension", "XTEST"]).stdout(file).stderr(Stdio::null()));
        let display = wait_for("the display", Duration::from_secs(10), || {
            std::fs::read_to_string(&number).ok().filter(|text| text.ends_with('\n'))
        });
        let cli = desktop.cli().env("DISPLAY", format!(":{}", display.trim()));
        let data = findings(&cli.run(&["doctor", "--self-test", "--headed"]));
        assert_eq!(check(&data, "input")["state"], "failed", "{data:#}");
        for (id, state) in SELF_TEST.into_iter().zip(["ok", "ok", "failed", "failed"]) {
            assert_eq!(check(&data, id)["state"], state, "{data:#}");
        }
    }

    fn a_policy_that_allows_only_reading_lets_look_and_nothing_else(desktop: &Desktop) {
        set_status_property(desktop, "IsEnabled", "false");
        let rules = desktop.file("policy.toml", "read_only = true\n");
        let cli = desktop.cli().env("AGENT_DESKTOP_POLICY", rules);
        findings(&cli.run(&["doctor"]));
        let windows = desktop.windows();
        for arguments in [&["doctor", "--fix"][..], &["doctor", "--self-test", "--headed"]] {
            let error = cli.fails(arguments);
            assert_eq!((&error["code"], &error["details"]["kind"]), (&"POLICY_DENIED".into(), &"policy_file".into()));
        }
        let rules = desktop.file("policy.toml", "[windows]\nallow = [\"Fixture*\"]\n");
        let error = desktop.cli().env("AGENT_DESKTOP_POLICY", rules).fails(&["doctor", "--self-test", "--headed"]);
        assert_eq!((&error["code"], &error["details"]["kind"]), (&"POLICY_DENIED".into(), &"policy_file".into()));
        assert_eq!(status_property(desktop, "IsEnabled"), "b false");
        assert_eq!(desktop.windows(), windows);
    }

    fn a_state_root_that_others_can_write_is_closed_by_fix(desktop: &Desktop) {
        let cli = desktop.cli();
        cli.ok(&["session", "start"]);
        let mode = |mode: u32| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(cli.home(), mode(0o770)).unwrap();
        assert_eq!(cli.fails(&["status"])["code"], "INVALID_ARGS");
        let data = findings(&cli.run(&["doctor"]));
        let found = check(&data, "state_root");
        assert_eq!((&found["state"], &found["can_fix"]), (&"failed".into(), &true.into()), "{found:#}");
        let data = findings(&cli.run(&["doctor", "--fix"]));
        let found = check(&data, "state_root");
        assert_eq!(found["state"], "ok", "{found:#}");
        assert!(found["fixed"].is_string(), "{found:#}");
        assert_eq!(check(&data, "locks")["state"], "ok", "{data:#}");
        assert_eq!(std::fs::metadata(cli.home()).unwrap().permissions().mode() & 0o777, 0o700);
        cli.ok(&["status"]);
    }
}
