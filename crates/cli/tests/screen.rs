//! Pictures, compared pixel by pixel with another program's picture of the screen; and desktops whose servers are silent.

use std::io::Read;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use agent_desktop_testkit::{App, Cli, Desktop, Setup, desktop_test, look};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const APP: &str = "fixture-gtk3";

/// How many pixels of a picture are not those at this place of the screen.
fn different_pixels(desktop: &Desktop, picture: &Path, [x, y, width, height]: [i64; 4]) -> String {
    let crop = format!("{width}x{height}+{x}+{y}");
    let part = desktop.path("part.png").to_string_lossy().into_owned();
    desktop.tool("import", &["-window", "root", "-crop", &crop, "+repage", &part]);
    let picture = picture.to_string_lossy().into_owned();
    // It counts on stderr and fails when something differs.
    let script = r#"compare -metric AE "$0" "$1" null: 2>&1 || true"#;
    desktop.tool("sh", &["-c", script, &part, &picture])
}

fn numbers(bounds: &Value) -> [i64; 4] {
    ["x", "y", "width", "height"].map(|key| bounds[key].as_f64().expect("a number") as i64)
}

/// A picture of every one of these buttons is that button and nothing else.
fn pictures_are_exact(desktop: &Desktop, cli: &Cli, app: &App, buttons: &[&str]) {
    let path = desktop.path("picture.png");
    for button in buttons {
        let element = cli.find(app.name(), "button", button);
        let place = numbers(&cli.ok(&["get", &element, "--property", "bounds"])["value"]);
        let reply = cli.ok(&["screenshot", "--ref", &element, &path.to_string_lossy()]);
        assert_eq!(reply["scale_factor"], 1.0, "{reply:#}");
        assert_eq!(
            [&reply["width"], &reply["height"]],
            [&Value::from(place[2]), &Value::from(place[3])],
            "{reply:#}"
        );
        assert_eq!(different_pixels(desktop, &path, place), "0", "{button} of {}", app.name());
        // The same part of the window, by its coordinates.
        let region = place.map(|number| number.to_string()).join(",");
        let reply =
            cli.ok(&["screenshot", "--app", app.name(), "--region", &region, &path.to_string_lossy()]);
        assert_eq!(reply["scale_factor"], 1.0, "{reply:#}");
        assert_eq!(different_pixels(desktop, &path, place), "0", "{button} of {} by region", app.name());
    }
}

fn under_this_window_manager(desktop: &Desktop) {
    let cli = desktop.cli();
    let app = desktop.gtk3("controls");
    let save = look::one(APP, "43", "Save").screen.expect("a place");
    let element = cli.find(APP, "button", "Save");
    assert_eq!(numbers(&cli.ok(&["get", &element, "--property", "bounds"])["value"]), save);
    pictures_are_exact(desktop, &cli, &app, &["Save", "More"]);
    let reply = cli.ok(&["screenshot", "--app", APP, &desktop.path("w.png").to_string_lossy()]);
    let window = &cli.ok(&["list-windows", "--app", APP])[0];
    let frame = numbers(if window["frame"].is_object() { &window["frame"] } else { &window["bounds"] });
    assert_eq!(
        (&reply["width"], &reply["scale_factor"]),
        (&Value::from(frame[2]), &Value::from(1.0)),
        "{reply:#}"
    );
}

/// A socket that accepts connections and never answers.
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

/// Stops the X server, and lets it go on when dropped.
struct Stopped(Pid);

impl Stopped {
    fn server(desktop: &Desktop) -> Stopped {
        let pid = desktop.tool("pgrep", &["-x", "Xvfb"]);
        let pid =
            pid.lines().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw).expect("Xvfb runs");
        kill_process(pid, Signal::STOP).expect("it is ours");
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[track_caller]
fn assert_silent(cli: &Cli, args: &[&str], who: &str) {
    let reply = cli.run(args);
    let error = reply.err();
    assert_eq!(
        (&error["code"], &error["details"]["kind"]),
        (&"TIMEOUT".into(), &"deadline".into()),
        "{reply}"
    );
    assert!(error["message"].as_str().is_some_and(|text| text.contains(who)), "{reply}");
    assert_eq!(error["disposition"]["delivery"], "not_delivered", "{reply}");
    assert!(reply.elapsed < Duration::from_millis(2500), "{reply}");
}

desktop_test! {
    fn a_picture_of_an_element_is_exactly_the_element_under_openbox(desktop: &Desktop) {
        under_this_window_manager(desktop);
    }

    on Setup::wm("xfwm4") =>
    fn a_picture_of_an_element_is_exactly_the_element_under_xfwm4(desktop: &Desktop) {
        under_this_window_manager(desktop);
    }

    on Setup::wm("metacity") =>
    fn a_picture_of_an_element_is_exactly_the_element_under_metacity(desktop: &Desktop) {
        under_this_window_manager(desktop);
    }

    on Setup::wm("none") =>
    fn a_picture_of_an_element_is_exactly_the_element_without_a_window_manager(desktop: &Desktop) {
        let cli = desktop.cli();
        let app = desktop.gtk3("controls");
        pictures_are_exact(desktop, &cli, &app, &["Save"]);
    }

    // GTK draws shadows only where somebody composes them.
    on Setup::wm("xfwm4") =>
    fn a_picture_of_an_element_in_a_window_with_a_shadow_is_exactly_the_element(desktop: &Desktop) {
        let cli = desktop.cli();
        let mut compositor = std::process::Command::new("xfwm4")
            .args(["--replace", "--compositor=on"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("xfwm4 can be started");
        std::thread::sleep(Duration::from_secs(1));
        let app = desktop.calculator();
        let window = &cli.ok(&["list-windows", "--app", app.name()])[0];
        assert!(window["frame"].is_object() && window["frame"] != window["bounds"], "{window:#}");
        desktop.tool("xdotool", &["mousemove", "1200", "750"]);
        pictures_are_exact(desktop, &cli, &app, &["7", "3"]);
        compositor.kill().expect("it runs");
        compositor.wait().expect("it is ours");
    }

    fn a_region_over_the_edge_of_the_screen_keeps_its_scale(desktop: &Desktop) {
        let cli = desktop.cli();
        let path = desktop.path("edge.png");
        let reply = cli.ok(&["screenshot", "--region", "1180,700,400,300", &path.to_string_lossy()]);
        assert_eq!(
            (&reply["width"], &reply["height"], &reply["scale_factor"]),
            (&100.into(), &100.into(), &Value::from(1.0)),
            "{reply:#}"
        );
        assert_eq!(different_pixels(desktop, &path, [1180, 700, 100, 100]), "0");
    }

    fn a_mute_bus_forbids_nothing_and_keeps_nobody_from_the_display(desktop: &Desktop) {
        let mute = mute_bus(desktop);
        for cli in [
            desktop.cli().env("AT_SPI_BUS_ADDRESS", &mute),
            desktop.cli().without("AT_SPI_BUS_ADDRESS").env("DBUS_SESSION_BUS_ADDRESS", &mute),
        ] {
            cli.ok(&["screenshot", "--timeout-ms", "1500"]);
            cli.ok(&["mouse-move", "--xy", "321,123", "--headed", "--timeout-ms", "1500"]);
            assert_eq!(desktop.pointer(), (321, 123));
            cli.ok(&["press", "a", "--headed", "--timeout-ms", "1500"]);
            let bus = "the accessibility bus did not answer";
            assert_silent(&cli, &["snapshot", "--app", "x", "--timeout-ms", "1500"], bus);
            assert_silent(&cli, &["press", "a", "--app", "x", "--headed", "--timeout-ms", "1500"], bus);
            for reply in [cli.ok(&["permissions"]), cli.ok(&["status"])["permissions"].clone()] {
                assert_eq!(reply["screen_recording"]["state"], "granted", "{reply:#}");
                assert_eq!(reply["accessibility"]["state"], "unknown", "{reply:#}");
            }
        }
    }

    fn a_silent_display_server_is_named_and_not_the_bus_or_the_focus(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = cli.find(APP, "button", "Save");
        let stopped = Stopped::server(desktop);
        for args in [
            &["screenshot"][..],
            &["list-displays"],
            &["press", "a", "--headed"],
            &["mouse-move", "--xy", "5,5", "--headed"],
            &["list-apps"],
            &["list-windows"],
            &["snapshot"],
            &["snapshot", "--app", APP],
            &["get", &save],
            &["close-app", APP],
            &["launch", "zenity", "--timeout", "1000"],
        ] {
            let limit: &[&str] = if args[0] == "launch" { &[] } else { &["--timeout-ms", "1000"] };
            assert_silent(&cli, &[args, limit].concat(), "the display server");
        }
        let reply = cli.ok(&["permissions"]);
        assert_eq!(reply["screen_recording"]["state"], "unknown", "{reply:#}");
        assert_eq!(reply["accessibility"]["state"], "granted", "{reply:#}");
        drop(stopped);
        cli.ok(&["click", &save]);
        app.wait_log("clicked Save");
    }

    fn too_little_time_has_a_kind_and_a_hung_application_is_named(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        for args in [
            &["mouse-click", "--xy", "1000,700", "--headed", "--timeout-ms", "5"][..],
            &["mouse-click", "--xy", "1000,700", "--count", "80", "--headed", "--timeout-ms", "900"],
            &["launch", "zenity", "--timeout", "1"],
        ] {
            let error = cli.fails(args);
            assert_eq!((&error["code"], &error["details"]["kind"]), (&"TIMEOUT".into(), &"deadline".into()), "{error:#}");
        }
        app.send("hang 12");
        std::thread::sleep(Duration::from_millis(300));
        for limit in ["600", "2500"] {
            let reply = cli.run(&["snapshot", "--app", APP, "--timeout-ms", limit]);
            let error = reply.err();
            assert_eq!(error["code"], "APP_UNRESPONSIVE", "{reply}");
            assert_eq!(error["details"]["kind"], "app_unresponsive", "{reply}");
        }
    }

    fn a_program_that_ends_at_once_is_unresponsive_and_was_started(desktop: &Desktop) {
        let cli = desktop.cli();
        for (cli, program) in [(cli.clone(), "false"), (cli.clone().without("DISPLAY"), "gnome-calculator")] {
            let error = cli.fails(&["launch", program, "--timeout", "4000"]);
            assert_eq!(
                (&error["code"], &error["details"]["kind"]),
                (&"APP_UNRESPONSIVE".into(), &"ended_without_window".into()),
                "{error:#}"
            );
            assert_eq!(error["disposition"]["delivery"], "delivered_unverified", "{error:#}");
        }
        assert_eq!(cli.fails(&["launch", "no-such-program"])["code"], "APP_NOT_FOUND");
    }
}
