//! `wait --event`. The judge is the application that comes and goes: its log, its process, and the window system.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agent_desktop_testkit::{App, Cli, Desktop, desktop_test, wait_until};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(5);

/// Opens windows that live for a moment: one after the other, or one a click on its button.
const BLINKER: &str = r#"
import sys, gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk, GLib
log, mode = open(sys.argv[1], "a", buffering=1), sys.argv[2]
count = 0
def blink(*_):
    global count
    count += 1
    window = Gtk.Window(title=f"Blink {count}")
    window.set_default_size(200, 100)
    window.connect("map-event", lambda *_: print(f"shown Blink {window.number}", file=log))
    window.number = count
    window.show_all()
    GLib.timeout_add(50, lambda: window.destroy())
    return True
if mode == "again":
    GLib.timeout_add(500, blink)
else:
    main = Gtk.Window(title="Blinker")
    button = Gtk.Button(label="Blink")
    button.connect("clicked", lambda *_: blink() and None)
    main.add(button)
    main.show_all()
Gtk.main()
"#;

struct Blinker {
    child: Child,
    log: PathBuf,
}

impl Blinker {
    fn start(desktop: &Desktop, mode: &str) -> Blinker {
        let script = desktop.file("blinker.py", BLINKER);
        let log = desktop.file("blinker.log", "");
        let child =
            Command::new("/usr/bin/python3").arg(script).arg(&log).arg(mode).stdin(Stdio::null()).spawn();
        Blinker { child: child.expect("python is there"), log }
    }

    fn has_shown(&self, title: &str) -> bool {
        std::fs::read_to_string(&self.log)
            .unwrap_or_default()
            .lines()
            .any(|line| line == format!("shown {title}"))
    }
}

impl Drop for Blinker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn batch(cli: &Cli, entries: &Value) -> Vec<Value> {
    let done = cli.ok(&["batch", &entries.to_string()]);
    done["results"].as_array().expect("results").clone()
}

#[track_caller]
fn event(entry: &Value) -> &Value {
    assert_eq!(entry["ok"], true, "{entry:#}");
    &entry["data"]["event"]
}

fn wait_for(kind: &str, app: &App) -> Value {
    json!({"command": "wait", "args": {"event": kind, "app": app.name(), "timeout": 5000}})
}

desktop_test! {
    fn a_window_that_lives_for_fifty_milliseconds_is_seen(desktop: &Desktop) {
        let blinker = Blinker::start(desktop, "again");
        let cli = desktop.cli();
        for kind in ["window-opened", "window-closed", "window_opened"] {
            let seen = cli.ok(&["wait", "--event", kind, "--app", "blinker.py", "--timeout", "10000"]);
            assert_eq!(seen["event"]["kind"], kind.replace('-', "_"), "{seen:#}");
            assert_eq!(seen["event"]["pid"], blinker.child.id(), "{seen:#}");
            let title = seen["event"]["title"].as_str().expect("a title");
            wait_until("the application to say that it has shown it", SOON, || blinker.has_shown(title));
        }
        let error = cli.fails(&["wait", "--event", "window-opened", "--app", "nobody", "--timeout", "1500"]);
        assert_eq!(error["details"]["kind"], "wait_timeout", "{error:#}");
    }

    fn what_an_entry_of_a_batch_causes_counts_for_the_wait_after_it(desktop: &Desktop) {
        let blinker = Blinker::start(desktop, "button");
        let cli = desktop.cli();
        desktop.wait_window("Blinker");
        let button = cli.find("blinker.py", "button", "Blink");
        for round in 1..=3 {
            let title = format!("Blink {round}");
            let click = json!({"command": "click", "args": {"ref_id": button}});
            let wait = json!({"command": "wait", "args": {"event": "window-opened", "window": title, "timeout": 5000}});
            let results = batch(&cli, &json!([click, wait]));
            assert_eq!(event(&results[1])["title"], *title, "{results:#?}");
            assert!(blinker.has_shown(&title));
        }
        // What was before the entry in front of it does not.
        let click = json!({"command": "click", "args": {"ref_id": button}});
        let wait = json!({"command": "wait", "args": {"event": "window-opened", "timeout": 300}});
        let pause = json!({"command": "wait", "args": {"ms": 300}});
        let results = batch(&cli, &json!([click, pause, pause, wait]));
        assert_eq!(results[3]["error"]["details"]["event"], "window-opened", "{results:#?}");
        assert!(blinker.has_shown("Blink 4"));
        // All of it is over when the wait begins.
        drop(blinker);
        let blinker = Blinker::start(desktop, "again");
        let pause = json!({"command": "wait", "args": {"ms": 3000}});
        let wait = json!({"command": "wait", "args": {"event": "window-closed", "app": "blinker.py", "timeout": 0}});
        let results = batch(&cli, &json!([pause, wait]));
        let title = event(&results[1])["title"].as_str().expect("a title");
        assert!(blinker.has_shown(title), "{results:#?}");
    }

    fn applications_and_the_focus_come_and_go(desktop: &Desktop) {
        let cli = desktop.cli();
        let launched = batch(&cli, &json!([
            {"command": "launch", "args": {"app": "gnome-calculator", "timeout": 20000}},
            {"command": "wait", "args": {"event": "app-launched", "app": "gnome-calculator", "timeout": 10000}},
        ]));
        let pid = event(&launched[1])["pid"].as_u64().expect("a pid");
        assert_eq!(launched[0]["data"]["pid"], pid, "{launched:#?}");

        let app = desktop.gtk3("controls");
        wait_until("the fixture to be active", SOON, || desktop.active_window() == Some(app.window(desktop).id));
        let calculator = desktop.wait_window("Calculator");
        let id = format!("w-{:x}", calculator.id);
        let focused = batch(&cli, &json!([
            {"command": "focus-window", "args": {"window_id": id}},
            {"command": "wait", "args": {"event": "focus-changed", "window_id": id, "timeout": 5000}},
        ]));
        assert_eq!(event(&focused[1])["kind"], "focus_changed_window", "{focused:#?}");
        assert_eq!(desktop.active_window(), Some(calculator.id));

        let closed = batch(&cli, &json!([
            {"command": "close-app", "args": {"app": "gnome-calculator"}},
            {"command": "wait", "args": {"event": "window-closed", "window_id": id, "timeout": 5000}},
        ]));
        assert_eq!(event(&closed[1])["window_id"], id, "{closed:#?}");
        assert!(desktop.window("Calculator").is_none());
    }

    fn an_application_that_is_killed_has_terminated(desktop: &Desktop) {
        let mut app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let mut wait = cli.command(&["wait", "--event", "app-terminated", "--app", app.name(), "--timeout", "20000"]);
        let wait = wait.stdout(Stdio::piped()).spawn().expect("it was built");
        // It listens as soon as it has its threads.
        let threads = PathBuf::from(format!("/proc/{}/task", wait.id()));
        wait_until("the wait to listen", SOON, || std::fs::read_dir(&threads).is_ok_and(|tasks| tasks.count() > 2));
        let pid = app.pid();
        app.kill();
        let output = wait.wait_with_output().expect("it ends");
        let reply: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(reply["data"]["event"]["kind"], "app_terminated", "{reply:#}");
        assert_eq!(reply["data"]["event"]["pid"], pid, "{reply:#}");
    }

    fn menus_and_dialogs_appear_and_are_dismissed(desktop: &Desktop) {
        for app in [desktop.gtk3("controls"), desktop.gtk4("controls"), desktop.qt6("controls")] {
            let cli = desktop.cli();
            let open = json!({"command": "menu", "args": {"action": "open", "path": "More", "app": app.name()}});
            let opened = batch(&cli, &json!([open, wait_for("surface-appeared", &app)]));
            assert_eq!(event(&opened[1])["surface"]["type"], "menu", "{opened:#?}");
            let choose = json!({"command": "menu", "args": {"action": "open", "path": "More/Beta", "app": app.name()}});
            let closed = batch(&cli, &json!([choose, wait_for("surface-dismissed", &app)]));
            assert_eq!(event(&closed[1])["kind"], "surface_dismissed", "{closed:#?}");
            app.wait_log("menu Beta");
        }
        let app = desktop.gtk3("dialogs");
        let cli = desktop.cli();
        let ask = cli.find(app.name(), "button", "Ask");
        let opened = batch(&cli, &json!([
            {"command": "click", "args": {"ref_id": ask}},
            wait_for("surface-appeared", &app),
        ]));
        assert_eq!(event(&opened[1])["surface"]["title"], "Question", "{opened:#?}");
        app.wait_log("dialog opened Question");
    }

    fn events_that_cannot_be_waited_for_are_refused(desktop: &Desktop) {
        let cli = desktop.cli();
        for args in [
            &["--event", "window-moved"][..],
            &["--event", "surface-appeared"],
            &["--event", "app-launched", "--window", "x"],
            &["--event", "window-opened", "--menu"],
            &["--window-id", "w-1", "--menu"],
        ] {
            assert_eq!(cli.fails(&[&["wait"], args].concat())["code"], "INVALID_ARGS", "{args:?}");
        }
        let error = cli.fails(&["wait", "--event", "window-closed", "--timeout", "0"]);
        assert_eq!(error["details"]["baseline_counts"]["windows"], 0, "{error:#}");
        let blind = desktop.cli().without("DISPLAY");
        let error = blind.fails(&["wait", "--event", "window-opened", "--timeout", "500"]);
        assert_eq!(error["code"], "PLATFORM_NOT_SUPPORTED", "{error:#}");
        assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
    }
}
