//! Applications that answer as no toolkit should: late, not to everything, in circles, with what is no text. The judge is what
//! the application logs.

use std::time::{Duration, Instant};

use agent_desktop_testkit::cli::{find_node, find_nodes, find_ref, nodes};
use agent_desktop_testkit::{App, Cli, desktop_test, wait_until};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(5);
/// What a command may take beyond its deadline: starting, and saying so.
const SLACK: Duration = Duration::from_millis(700);

fn save(cli: &Cli, app: &App) -> String {
    find_ref(&cli.ok(&["snapshot", "--app", app.name()])["tree"], "button", "Save")
}

fn is_silence(error: &Value) -> bool {
    matches!(error["code"].as_str(), Some("APP_UNRESPONSIVE" | "TIMEOUT"))
}

/// Whether it has ended; one that is about to has a moment.
fn wait_ended(app: &mut App) -> bool {
    (0..20).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !app.is_running()
    })
}

desktop_test! {
    fn silence_is_not_absence_of_a_question_over_the_page(desktop: &Desktop) {
        let app = desktop.odd("dialog", "Gecko");
        let cli = desktop.cli();
        let save = save(&cli, &app);
        let error = cli.fails(&["click", &save, "--timeout-ms", "600"]);
        assert!(error["message"].to_string().contains("covered by dialog"), "{error:#}");
        for member in ["GetAttributes", "GetChildren", "GetRole", "GetState", "Parent", "GetInterfaces"] {
            app.command(&format!("mute {member}"));
            let start = Instant::now();
            let error = cli.fails(&["click", &save, "--timeout-ms", "600"]);
            assert!(start.elapsed() < Duration::from_millis(600) + SLACK, "{member} {:?}", start.elapsed());
            assert!(is_silence(&error), "{member} {error:#}");
            assert_eq!(error["disposition"]["delivery"], "not_delivered", "{member} {error:#}");
            assert_eq!(app.effects(), [""; 0], "{member}");
        }
        app.command("mute GetAttributes");
        for args in [
            &["list-surfaces", "--app", app.name(), "--timeout-ms", "800"][..],
            &["snapshot", "--app", app.name(), "--surface", "alert", "--timeout-ms", "800"],
        ] {
            let error = cli.fails(args);
            assert!(is_silence(&error), "{args:?} {error:#}");
        }
        app.command("mute");
        cli.ok(&["click", &cli.find(app.name(), "button", "Stay")]);
        app.wait_log("clicked Stay");
        assert_eq!(app.effects(), ["clicked Stay"]);
    }

    fn silence_is_not_a_closed_window(desktop: &Desktop) {
        let app = desktop.odd("plain", "odd");
        let cli = desktop.cli();
        let save = save(&cli, &app);
        for member in ["GetRole", "GetState", "Name", "GetChildren", "GetExtents", "Parent"] {
            app.command(&format!("mute {member}"));
            for cli in [desktop.cli(), desktop.cli().without("DISPLAY")] {
                for args in [&["get", &save][..], &["snapshot", "--app", app.name()], &["click", &save]] {
                    let reply = cli.run(&[args, &["--timeout-ms", "400"]].concat());
                    let envelope = reply.envelope();
                    // What is known without the answer may be told; that something is gone may not.
                    assert!(envelope["ok"] == true || is_silence(&envelope["error"]), "{member} {args:?} {envelope:#}");
                }
            }
        }
        app.command("mute");
        cli.ok(&["click", &save]);
        app.wait_log("clicked Save");
    }

    fn silence_is_not_a_free_way_for_the_pointer(desktop: &Desktop) {
        // A hit test that is not answered does not say that the element can be hit.
        let app = desktop.odd("plain", "Gecko");
        let cli = desktop.cli();
        let save = save(&cli, &app);
        app.command("mute GetAccessibleAtPoint");
        let before = desktop.pointer();
        let reply = cli.run(&["--headed", "double-click", &save, "--timeout-ms", "800"]);
        let error = &reply.envelope()["error"];
        if reply.envelope()["ok"] == false {
            assert!(is_silence(error), "{error:#}");
            assert_eq!(desktop.pointer(), before, "nothing was pressed");
        } else {
            let data = &reply.envelope()["data"];
            assert_ne!(data["disposition"]["delivery"], "delivered_verified", "{data:#}");
        }
    }

    fn a_slow_application_is_read_and_operated_in_the_time_there_is(desktop: &Desktop) {
        let app = desktop.odd("plain", "odd");
        let cli = desktop.cli().within(Duration::from_secs(90));
        let save = save(&cli, &app);
        app.command("late 300");
        // Too little time: an end in time, and no doubt whether it was pressed.
        for limit in [400_u64, 1500] {
            let before = app.effects().len();
            let start = Instant::now();
            let reply = cli.run(&["click", &save, "--timeout-ms", &limit.to_string()]);
            let envelope = reply.envelope();
            assert!(start.elapsed() < Duration::from_millis(limit) + SLACK, "{limit} took {:?}", start.elapsed());
            if envelope["ok"] == true || envelope["error"]["disposition"]["delivery"] != "not_delivered" {
                continue;
            }
            assert!(is_silence(&envelope["error"]), "{limit} {envelope:#}");
            // What is still in its queue is read before this: a click would be among it.
            app.command("late 0");
            cli.ok(&["get", &save, "--timeout-ms", "20000"]);
            assert_eq!(app.effects().len(), before, "{limit} {envelope:#}");
            app.command("late 300");
        }
        // Enough: all of it.
        let before = app.effects().len();
        let shown = cli.ok(&["snapshot", "--app", app.name(), "--timeout-ms", "60000"]);
        assert_eq!(shown["complete"], true, "{shown:#}");
        assert_eq!(find_nodes(&shown["tree"], "button", "Close").len(), 1, "{shown:#}");
        app.command("late 100");
        cli.ok(&["click", &find_ref(&shown["tree"], "button", "Close"), "--timeout-ms", "60000"]);
        assert_eq!(app.effects()[before..], ["clicked Close"]);
    }

    fn a_tree_with_circles_is_read_once_around(desktop: &Desktop) {
        let app = desktop.odd("circle", "odd");
        let cli = desktop.cli();
        let shown = cli.ok(&["snapshot", "--app", app.name()]);
        assert_eq!(shown["complete"], true, "{shown:#}");
        for name in ["Outer", "Inner", "Own child", "Own parent"] {
            assert_eq!(find_nodes(&shown["tree"], "group", name).len(), 1, "{name} {shown:#}");
        }
        for name in ["Deep", "Save"] {
            cli.ok(&["click", &find_ref(&shown["tree"], "button", name)]);
            app.wait_log(&format!("clicked {name}"));
        }
        // Found again from the window, once more through the circles.
        app.command("rename Deep Deeper");
        let error = cli.fails(&["click", &find_ref(&shown["tree"], "button", "Deep")]);
        assert_eq!(error["code"], "STALE_REF", "{error:#}");
        assert_eq!(app.effects().len(), 2);
    }

    fn a_list_of_two_hundred_thousand_is_cut_and_what_shows_is_there(desktop: &Desktop) {
        let app = desktop.odd("many", "odd");
        let cli = desktop.cli().within(Duration::from_secs(60));
        let shown = cli.ok(&["snapshot", "--app", app.name(), "--timeout-ms", "20000"]);
        assert_eq!(shown["complete"], false);
        assert_eq!(find_node(&shown["tree"], "list", "Rows")["children_count"], 200_000);
        assert_eq!(find_nodes(&shown["tree"], "option", "Item 7").len(), 1);
        assert!(nodes(&shown["tree"]).len() < 100, "{}", nodes(&shown["tree"]).len());
        cli.ok(&["click", &find_ref(&shown["tree"], "button", "Save"), "--timeout-ms", "20000"]);
        app.wait_log("clicked Save");
    }

    fn a_name_of_five_million_characters_is_cut(desktop: &Desktop) {
        let app = desktop.odd("long", "odd");
        let cli = desktop.cli();
        let reply = cli.run(&["snapshot", "--app", app.name()]);
        let text = reply.envelope().to_string();
        assert!(text.len() < 100_000, "{} bytes", text.len());
        cli.ok(&["click", &find_ref(&reply.ok()["tree"], "button", "Save")]);
        app.wait_log("clicked Save");
        // It is not found by a part of it where the whole is asked for, and the answer is no longer for it.
        let reply = cli.run(&["find", "--app", app.name(), "--name", "xxxx", "--exact", "--first"]);
        assert_eq!(reply.ok()["match"], Value::Null);
        assert!(reply.envelope().to_string().len() < 2000, "{} bytes", reply.envelope().to_string().len());
    }

    fn numbers_that_are_none_are_told_and_lead_nowhere(desktop: &Desktop) {
        let app = desktop.odd("numbers", "odd");
        let cli = desktop.cli();
        let shown = cli.ok(&["snapshot", "--app", app.name(), "--include-bounds"]);
        assert_eq!(shown["complete"], true, "{shown:#}");
        for node in nodes(&shown["tree"]).into_iter().filter(|node| node["bounds"].is_object()) {
            for key in ["x", "y", "width", "height"] {
                assert!(node["bounds"][key].as_f64().is_some_and(f64::is_finite), "{node:#}");
            }
        }
        for number in 0..4 {
            let slider = find_ref(&shown["tree"], "slider", &format!("Slider {number}"));
            let before = desktop.pointer();
            for args in [&["set-value", &slider, "5"][..], &["--headed", "click", &slider]] {
                let reply = cli.run(&[args, &["--timeout-ms", "700"]].concat());
                let delivery = &reply.envelope()["data"]["disposition"]["delivery"];
                assert_ne!(delivery, "delivered_verified", "{args:?} {}", reply.envelope());
            }
            let (x, y) = desktop.pointer();
            assert!((x, y) == before || (0..1280).contains(&x) && (0..800).contains(&y), "{x} {y}");
        }
        cli.ok(&["click", &find_ref(&shown["tree"], "button", "Save")]);
        app.wait_log("clicked Save");
    }

    fn who_says_what_is_no_text_is_gone_and_the_others_are_not(desktop: &Desktop) {
        let cli = desktop.cli();
        let other = desktop.gtk3("controls");
        for page in ["bytes", "nul"] {
            let app = desktop.odd(page, "odd");
            let reply = cli.run(&["snapshot", "--app", app.name()]);
            let envelope = reply.envelope();
            // The bus has ended its connection: what was read before is shown as a part, or nothing is.
            if envelope["ok"] == true {
                assert_eq!(envelope["data"]["complete"], false, "{envelope:#}");
                assert_eq!(envelope["data"]["stopped_by"], "application_gone", "{envelope:#}");
            } else {
                assert!(matches!(envelope["error"]["code"].as_str(), Some("WINDOW_NOT_FOUND" | "APP_NOT_FOUND" | "APP_UNRESPONSIVE")), "{envelope:#}");
            }
            app.wait_log("the bus is gone");
            let error = cli.fails(&["snapshot", "--app", app.name()]);
            assert_eq!(error["code"], "APP_NOT_FOUND", "{error:#}");
            let presses = other.effects().len();
            cli.ok(&["click", &save(&cli, &other)]);
            wait_until("the other application to be pressed", SOON, || other.effects().len() == presses + 1);
        }
    }

    fn an_application_that_ends_at_any_question_leaves_a_clear_end(desktop: &Desktop) {
        let cli = desktop.cli();
        let other = desktop.gtk3("controls");
        let other_save = save(&cli, &other);
        let members = ["Name", "GetChildren", "GetState", "GetRole", "GetExtents", "GetInterfaces", "GetActions", "GetName", "DoAction", "Parent"];
        for member in members {
            let mut app = desktop.odd("plain", "odd");
            let save = save(&cli, &app);
            app.command(&format!("fatal {member}"));
            let start = Instant::now();
            let reply = cli.run(&["click", &save, "--timeout-ms", "3000"]);
            let envelope = reply.envelope();
            assert!(start.elapsed() < Duration::from_secs(3) + SLACK, "{member} {:?}", start.elapsed());
            if !wait_ended(&mut app) {
                // It was not asked this.
                assert_eq!(app.effects(), ["clicked Save"], "{member} {envelope:#}");
            } else if envelope["ok"] == true {
                assert_eq!(app.effects(), ["clicked Save"], "{member} {envelope:#}");
            } else if envelope["error"]["disposition"]["delivery"] == "not_delivered" {
                assert_eq!(app.effects(), [""; 0], "{member} {envelope:#}");
            }
            if member == "DoAction" {
                assert_eq!(envelope["ok"], false, "{envelope:#}");
                assert_ne!(envelope["error"]["disposition"]["retry"], "safe", "it may have been pressed: {envelope:#}");
            }
            // Nothing is held, and the store can be read.
            let before = other.effects().len();
            cli.ok(&["click", &other_save]);
            wait_until("the other application to be pressed", SOON, || other.effects().len() == before + 1);
        }
    }

    fn a_command_that_is_killed_at_any_step_leaves_nothing_behind(desktop: &Desktop) {
        let app = desktop.odd("plain", "odd");
        let cli = desktop.cli();
        let save = save(&cli, &app);
        // Every answer takes a while, so that each step of the action is under way at some moment.
        app.command("late 2");
        for step in 0..24_u64 {
            let mut ours = cli.command(&["click", &save]).stdout(std::process::Stdio::null()).spawn().expect("it starts");
            std::thread::sleep(Duration::from_millis(2 + 5 * step));
            let _ = ours.kill();
            let _ = ours.wait();
            let before = app.effects().len();
            let start = Instant::now();
            cli.ok(&["click", &save]);
            assert!(start.elapsed() < SOON, "step {step} took {:?}", start.elapsed());
            // The killed one was pressed at most once, also when its question was still on the way.
            let after = app.effects().len();
            assert!((before + 1..=before + 2).contains(&after), "step {step}: {before} then {after}");
            cli.ok(&["snapshot", "--app", app.name()]);
        }
    }
}
