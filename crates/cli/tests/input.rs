//! Physical input: what stays pressed, what a signal does, what typing leaves of the text that was there. The judge is the
//! X server, asked what is down, and the application.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use agent_desktop_testkit::{App, Cli, Desktop, Held, desktop_test, wait_for, wait_until};
use rustix::process::{Pid, Signal, kill_process};

const APP: &str = "fixture-gtk3";

/// A place with nothing but the desktop, beside the fixture's window.
const NOWHERE: &str = "1000,700";

const SOON: Duration = Duration::from_secs(5);

/// Starts it by way of another program, which becomes it.
fn start_by(program: &str, with: &[&str], cli: &Cli, args: &[&str]) -> Child {
    let command = cli.command(args);
    std::process::Command::new(program)
        .args(with)
        .arg(command.get_program())
        .args(command.get_args())
        .envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} cannot be started: {error}"))
}

/// Starts it with signals as a terminal would: what runs in a shell's background ignores some of them.
fn start(cli: &Cli, args: &[&str]) -> Child {
    start_by("env", &["--default-signal"], cli, args)
}

/// Commands that hold something while they run, long enough to be met in the middle.
fn holding(field: &str) -> Vec<Vec<String>> {
    let capitals = "HELLO WORLD ".repeat(800);
    [
        &["drag", "--from-xy", "900,600", "--to-xy", NOWHERE, "--duration", "2000", "--headed"][..],
        &["mouse-click", "--xy", NOWHERE, "--count", "80", "--modifiers", "ctrl", "--headed"],
        &["mouse-wheel", "--x", "1000", "--y", "700", "--dy", "-900", "--modifiers", "shift", "--headed"],
        &["type", field, &capitals, "--headed", "--timeout-ms", "20000"],
    ]
    .into_iter()
    .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
    .collect()
}

/// Runs a command until something is down, sends the signal, and gives the signal it ended by.
fn interrupt(desktop: &Desktop, cli: &Cli, args: &[String], signal: Signal) -> Option<i32> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut child = start(cli, &words);
    wait_until(&format!("{} to hold something", args[0]), SOON, || !desktop.held().is_nothing());
    let sent = Instant::now();
    kill_process(Pid::from_child(&child), signal).expect("it runs");
    let ended = wait_for("its end", SOON, || child.try_wait().expect("it is ours"));
    assert!(sent.elapsed() < Duration::from_secs(1), "{args:?} took {:?} to end", sent.elapsed());
    ended.signal()
}

/// The text of a field, as the application last told it.
fn text_of(app: &App, field: &str) -> String {
    let start = if field == "Notes" { "textview ".to_owned() } else { format!("entry {field} text=") };
    let line = app.log_lines().into_iter().rfind(|line| line.starts_with(&start)).unwrap_or_default();
    serde_json::from_str(line.strip_prefix(&start).unwrap_or("\"\"")).expect("a quoted text")
}

/// Nothing is down, as soon as the window manager has let the server go on: it stops the pointer at each press.
fn becomes_free(desktop: &Desktop, after: &str) {
    wait_until(&format!("everything to be released after {after}"), SOON, || desktop.held().is_nothing());
}

desktop_test! {
    fn a_modifier_held_around_a_click_or_the_wheel_is_released(desktop: &Desktop) {
        let cli = desktop.cli();
        for modifier in ["ctrl", "shift", "alt", "meta"] {
            cli.ok(&["mouse-click", "--xy", NOWHERE, "--modifiers", modifier, "--headed"]);
            assert_eq!(desktop.held(), Held::default(), "after a click with {modifier}");
            cli.ok(&["mouse-wheel", "--x", "1000", "--y", "700", "--dy", "-3", "--modifiers", modifier, "--headed"]);
            assert_eq!(desktop.held(), Held::default(), "after the wheel with {modifier}");
        }
        cli.ok(&["mouse-click", "--xy", NOWHERE, "--modifiers", "ctrl", "--modifiers", "alt", "--headed"]);
        assert_eq!(desktop.held(), Held::default());
        cli.ok(&["press", "ctrl+shift+x", "--headed"]);
        assert_eq!(desktop.held(), Held::default());
        cli.ok(&["drag", "--from-xy", "900,600", "--to-xy", NOWHERE, "--headed"]);
        assert_eq!(desktop.held(), Held::default());
    }

    fn caps_lock_comes_back_after_typing(desktop: &Desktop) {
        let _app = desktop.gtk3("texts");
        let cli = desktop.cli();
        let field = cli.find(APP, "textfield", "Full name");
        desktop.tool("xdotool", &["key", "Caps_Lock"]);
        let locked = desktop.held();
        assert_eq!(locked.state, 2, "{locked:?}");
        for _ in 0..20 {
            cli.ok(&["type", &field, "aB", "--headed"]);
            assert_eq!(desktop.held(), locked);
        }
    }

    fn a_signal_in_the_middle_of_input_releases_what_is_held(desktop: &Desktop) {
        let _app = desktop.gtk3("texts");
        let cli = desktop.cli();
        let field = cli.find(APP, "textarea", "Notes");
        for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
            for command in holding(&field) {
                let ended_by = interrupt(desktop, &cli, &command, signal);
                assert_eq!(ended_by, Some(signal.as_raw()), "{signal:?} in the middle of {}", command[0]);
                becomes_free(desktop, &format!("{signal:?} in the middle of {}", command[0]));
            }
        }
    }

    fn a_drag_that_a_signal_breaks_off_is_let_go_where_it_began(desktop: &Desktop) {
        let cli = desktop.cli();
        let mut child = start(&cli, &["drag", "--from-xy", "900,600", "--to-xy", NOWHERE, "--duration", "3000", "--headed"]);
        wait_until("the drag to be under way", SOON, || desktop.held().state != 0 && desktop.pointer() != (900, 600));
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        wait_for("its end", SOON, || child.try_wait().expect("it is ours"));
        becomes_free(desktop, "the drag");
        assert_eq!(desktop.pointer(), (900, 600));
    }

    fn a_signal_ends_a_wait_at_once(desktop: &Desktop) {
        let _app = desktop.gtk3("texts");
        let cli = desktop.cli();
        for args in [&["wait", "20000"][..], &["wait", "--text", "never there", "--app", APP, "--timeout", "20000"]] {
            let mut child = start(&cli, args);
            std::thread::sleep(Duration::from_millis(300));
            let sent = Instant::now();
            kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
            let ended = wait_for("its end", SOON, || child.try_wait().expect("it is ours"));
            assert_eq!(ended.signal(), Some(Signal::TERM.as_raw()), "{args:?}");
            assert!(sent.elapsed() < Duration::from_millis(500), "{args:?}: {:?}", sent.elapsed());
        }
    }

    fn an_ignored_signal_does_not_break_input_off(desktop: &Desktop) {
        let cli = desktop.cli();
        let drag = ["drag", "--from-xy", "900,600", "--to-xy", NOWHERE, "--duration", "1000", "--headed"];
        let mut child = start_by("nohup", &[], &cli, &drag);
        wait_until("the drag to be under way", SOON, || desktop.held().state != 0);
        kill_process(Pid::from_child(&child), Signal::HUP).expect("it runs");
        let ended = wait_for("its end", SOON, || child.try_wait().expect("it is ours"));
        assert!(ended.success(), "{ended}");
        assert_eq!((desktop.held(), desktop.pointer()), (Held::default(), (1000, 700)));
    }

    fn typing_into_a_field_without_the_focus_keeps_its_text(desktop: &Desktop) {
        let cli = desktop.cli();
        for app in [desktop.gtk3("texts"), desktop.gtk4("texts"), desktop.qt6("texts")] {
            let name = cli.find(app.name(), "textfield", "Full name");
            let other = cli.find(app.name(), "textfield", "Search here");
            let value = || cli.ok(&["get", &name, "--property", "value"])["value"].clone();
            let give = |more: &[&str]| {
                cli.ok(&["set-value", &name, "keep"]);
                cli.ok(&["click", &other, "--headed"]);
                cli.ok(&[&["type", name.as_str(), "X"], more].concat());
                value()
            };
            let (headless, headed) = (give(&[]), give(&["--headed"]));
            assert_eq!(headed, headless, "{}", app.name());
            assert!(headed.as_str().is_some_and(|text| text.contains("keep") && text.contains('X')), "{headed}");
        }
    }

    fn typing_replaces_what_was_selected_and_no_more(desktop: &Desktop) {
        let cli = desktop.cli();
        let app = desktop.gtk3("texts");
        let name = cli.find(APP, "textfield", "Full name");
        let search = cli.find(APP, "textfield", "Search here");
        cli.ok(&["set-value", &name, "one two"]);
        cli.ok(&["focus", &name, "--headed"]);
        desktop.activate(app.window(desktop).id);
        desktop.tool("xdotool", &["key", "End", "shift+Left", "shift+Left", "shift+Left"]);
        cli.ok(&["focus", &search, "--headed"]);
        cli.ok(&["type", &name, "2", "--headed"]);
        // GTK forgets the selection of an entry that loses the focus; the caret stays.
        let value = cli.ok(&["get", &name, "--property", "value"])["value"].clone();
        assert!(["one 2", "one 2two", "one two2"].map(Into::into).contains(&value), "{value}");
        cli.ok(&["set-value", &name, "one two"]);
        desktop.tool("xdotool", &["key", "End", "shift+Left", "shift+Left", "shift+Left"]);
        cli.ok(&["type", &name, "2", "--headed"]);
        assert_eq!(cli.ok(&["get", &name, "--property", "value"])["value"], "one 2");
    }

    fn text_that_is_still_arriving_is_not_called_lost(desktop: &Desktop) {
        let cli = desktop.cli();
        let text = "hello world ".repeat(200);
        for limit in ["250", "400"] {
            // A new one each time: nothing of the round before can still be on its way to it.
            let app = desktop.gtk3("texts");
            let name = cli.find(APP, "textfield", "Full name");
            cli.ok(&["clear", &name]);
            let reply = cli.run(&["type", &name, &text, "--headed", "--timeout-ms", limit]);
            if reply.code != Some(0) {
                let error = reply.err();
                assert_eq!((&error["code"], &error["details"]["kind"]), (&"TIMEOUT".into(), &"deadline".into()), "{reply}");
            }
            drop(app);
        }
    }

    fn text_arrives_the_same_with_every_layout_and_the_layout_stays(desktop: &Desktop) {
        let cli = desktop.cli();
        let text = "Hello, World! äöüß é П 你好 🙂 <a href=\"x\">@#{}[]~^`´|\\ 1234567890 qwertz azerty?";
        let layouts: [&[&str]; 6] = [&["us"], &["de"], &["fr"], &["cz"], &["ru"], &["us", "-variant", "dvorak"]];
        for app in [desktop.gtk3("texts"), desktop.qt6("texts")] {
            let field = cli.find(app.name(), "textfield", "Full name");
            for layout in layouts {
                desktop.tool("setxkbmap", &[&["-layout"], layout].concat());
                let before = desktop.tool("setxkbmap", &["-query"]);
                let done = cli.ok(&["set-value", &field, text, "--headed"]);
                assert_eq!(done["disposition"]["delivery"], "delivered_verified", "{layout:?} {done:#}");
                // A shortcut is the key that has this letter, or had it before the letters were Cyrillic.
                cli.ok(&["focus", &field, "--headed"]);
                cli.ok(&["press", "ctrl+a", "--headed"]);
                let again = cli.ok(&["type", &field, text, "--headed"]);
                // The same text in the place of itself: nobody can see that.
                assert_eq!(again["disposition"]["delivery"], "delivered_unverified", "{layout:?} {again:#}");
                wait_until("the keys to arrive", SOON, || text_of(&app, "Full name") == text);
                let seen = text_of(&app, "Full name");
                assert!(seen == text, "{layout:?} {}: {seen:?}", app.name());
                assert_eq!(desktop.tool("setxkbmap", &["-query"]), before, "{layout:?}");
                assert!(desktop.held().is_nothing(), "{layout:?}");
            }
            desktop.tool("setxkbmap", &["-layout", "us", "-variant", ""]);
        }
    }

    fn ten_thousand_characters_are_typed(desktop: &Desktop) {
        let app = desktop.gtk3("texts");
        let cli = desktop.cli();
        desktop.tool("setxkbmap", &["-layout", "ru"]);
        let notes = cli.find(app.name(), "textfield", "Notes");
        cli.ok(&["clear", &notes]);
        let line = "The quick brown fox, ДЖЕМ 12345\n";
        let text: String = line.chars().cycle().take(10_000).collect();
        cli.ok(&["type", &notes, &text, "--headed", "--timeout-ms", "60000"]);
        assert!(text_of(&app, "Notes") == text);
        assert!(desktop.held().is_nothing());
    }

    fn commands_that_type_at_once_do_not_mix(desktop: &Desktop) {
        let app = desktop.gtk3("texts");
        let cli = desktop.cli();
        let fields = ["Full name", "Notes"].map(|name| cli.find(app.name(), "textfield", name));
        let words = ["one ", "two ", "three "].map(|word| word.repeat(100));
        for field in &fields {
            cli.ok(&["clear", field]);
        }
        // Two into one field, one into another: the keyboard is one.
        let typed = [(&fields[0], &words[0]), (&fields[0], &words[1]), (&fields[1], &words[2])];
        let children = typed.map(|(field, text)| start(&cli, &["type", field, text, "--headed", "--timeout-ms", "40000"]));
        for mut child in children {
            assert!(wait_for("the end", Duration::from_secs(45), || child.try_wait().expect("it is ours")).success());
        }
        assert!(text_of(&app, "Notes") == words[2]);
        let both = text_of(&app, "Full name");
        assert!([0, 1].into_iter().any(|first: usize| both == format!("{}{}", words[first], words[1 - first])), "{both}");
    }

    fn a_click_on_an_element_off_the_screen_is_blocked_and_not_a_wrong_argument(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let save = cli.find(APP, "button", "Save");
        let window = app.window(desktop).id;
        desktop.tool("xdotool", &["windowmove", &window.to_string(), "1270", "790"]);
        wait_until("the window to be off the screen", SOON, || desktop.area(window).x > 1200);
        let error = cli.fails(&["click", &save, "--headed", "--timeout-ms", "800"]);
        let code = error["code"].as_str().unwrap_or("");
        assert!(code == "ACTION_FAILED" || error["details"]["last_code"] == "ACTION_FAILED", "{error:#}");
        assert!(error.to_string().contains("visible"), "{error:#}");
        assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
        assert!(!app.effects().iter().any(|line| line.starts_with("clicked")));
        // What the caller wrote is the caller's.
        assert_eq!(cli.fails(&["mouse-click", "--xy", "5000,5000", "--headed"])["code"], "INVALID_ARGS");
    }
}
