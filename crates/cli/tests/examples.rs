//! The examples of `docs/commands`, run as they are shown there. The judges are the application's log, the window system and
//! other programs.

use std::collections::HashMap;
use std::process::Command;

use agent_desktop_testkit::{App, Cli, Desktop, desktop_test, wait_for, wait_until};
use serde_json::Value;

#[path = "../src/docs/examples.rs"]
mod examples;

#[path = "support/notifications.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod support;

use examples::{Answer, EXAMPLES, Example, PAGES, Proof};
use support::{SOON, Sent, send, service};

const FIXTURE: &str = "fixture-gtk3";

/// Whether an answer holds what is expected of it: keys of objects, some element for each of a list, `…` for any text.
fn holds(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| actual.get(key).is_some_and(|actual| holds(actual, value)))
        }
        (Value::Array(actual), Value::Array(expected)) => {
            expected.iter().all(|value| actual.iter().any(|actual| holds(actual, value)))
        }
        (Value::String(actual), Value::String(expected)) => match expected.split_once('…') {
            Some((start, end)) => {
                actual.len() >= start.len() + end.len() && actual.starts_with(start) && actual.ends_with(end)
            }
            None => actual == expected,
        },
        (Value::Number(actual), Value::Number(expected)) => actual.as_f64() == expected.as_f64(),
        _ => actual == expected,
    }
}

/// What the words of an example stand for now, and the notification that was sent for it.
fn words(desktop: &Desktop, cli: &Cli, example: &Example) -> (HashMap<&'static str, String>, Option<Sent>) {
    let mut words = HashMap::new();
    let mut sent = None;
    for &(word, role, name) in example.elements {
        let middle = |word: &str| {
            let tree = cli.ok(&["snapshot", "--app", FIXTURE, "--include-bounds"])["tree"].clone();
            let bounds = &agent_desktop_testkit::cli::find_node(&tree, role, name)["bounds"];
            let at = |start: &str, length: &str| {
                (bounds[start].as_f64().expect("a number") + bounds[length].as_f64().expect("a number") / 2.0)
                    .round()
            };
            let (x, y) = (at("x", "width"), at("y", "height"));
            match word {
                "X" => x.to_string(),
                "Y" => y.to_string(),
                _ => format!("{x},{y}"),
            }
        };
        let value = match word {
            "SESSION" => cli.ok(&["session", "start", "--name", name])["session_id"]
                .as_str()
                .expect("an id")
                .to_owned(),
            "INDEX" => {
                let known = || {
                    cli.ok(&["list-notifications", "--all"])["notifications"].as_array().map_or(0, Vec::len)
                };
                let before = known();
                sent = Some(send(desktop, &[role, name, "", "0", "log", "Show log"]));
                wait_for("the notification to be heard", SOON, || {
                    let count = known();
                    (count > before).then(|| count.to_string())
                })
            }
            "XY" | "X" | "Y" => middle(word),
            _ => {
                let found = cli.ok(&[
                    "find", "--app", FIXTURE, "--role", role, "--name", name, "--exact", "--all", "--first",
                ]);
                let reference = found["match"]["ref_id"].as_str();
                reference.unwrap_or_else(|| panic!("no {role} {name}: {found:#}")).to_owned()
            }
        };
        words.insert(word, value);
    }
    (words, sent)
}

fn paste() -> String {
    let output =
        Command::new("xclip").args(["-selection", "clipboard", "-o"]).output().expect("xclip is there");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs an example and looks whether it is true.
fn run(desktop: &Desktop, cli: &Cli, app: Option<&App>, example: &Example) {
    let (words, sent) = words(desktop, cli, example);
    let fill = |args: &[&str]| -> Vec<String> {
        args.iter().map(|word| words.get(word).cloned().unwrap_or_else(|| (*word).to_owned())).collect()
    };
    let window = app.map(|app| app.window(desktop).id);
    let area =
        |window: Option<u32>| window.map(|window| desktop.area(window)).expect("the example has a window");
    let log = || app.map(App::log_lines).unwrap_or_default();
    // What a line before causes counts as well: it is shown beside it.
    let before = (log().len(), window.map(|window| desktop.area(window)));
    for line in example.before {
        cli.ok(&fill(line));
    }
    if example.proof == Proof::Active {
        assert_ne!(desktop.active_window(), window, "the window is active before it is asked for");
    }
    let reply = cli.run(&fill(example.args));
    let (actual, expected) = match example.answer {
        Answer::Data(expected) => (reply.ok(), expected),
        Answer::Error(expected) => (reply.err(), expected),
    };
    let expected: Value = serde_json::from_str(expected).expect("an answer is JSON");
    assert!(holds(&actual, &expected), "expected {expected}\n{reply}");
    let what = example.proof.sentence().unwrap_or_default();
    let is_seen = || match example.proof {
        Proof::Nothing => true,
        Proof::Log(line) => log().iter().skip(before.0).any(|found| found.starts_with(line)),
        Proof::Sender(word) => {
            sent.as_ref().is_some_and(|sent| sent.heard().iter().any(|heard| heard == word))
        }
        Proof::Rectangle => Some(area(window)) != before.1,
        Proof::Unmapped => {
            let id = window.expect("the example has a window").to_string();
            desktop.tool("xwininfo", &["-id", &id]).contains("Map State: IsUnMapped")
        }
        Proof::Active => desktop.active_window() == window,
        Proof::Clipboard(text) => paste() == text,
        Proof::File(name) => {
            std::fs::read(desktop.path(name)).is_ok_and(|bytes| bytes.starts_with(b"\x89PNG"))
        }
        Proof::Window(title) => desktop.window(title).is_some(),
        Proof::NoWindow(title) => desktop.window(title).is_none(),
    };
    wait_until(&what, SOON, is_seen);
}

/// Runs all examples of a page, one after the other.
fn run_page(desktop: &Desktop, page: &str, app: Option<&App>) {
    run_page_with(desktop, &desktop.cli(), page, app);
}

fn run_page_with(desktop: &Desktop, cli: &Cli, page: &str, app: Option<&App>) {
    let cli = cli.clone().inside(desktop.path("").as_path());
    let mut count = 0;
    for example in EXAMPLES.iter().filter(|example| example.page == page) {
        eprintln!("{}, {}: {:?}", example.command, example.shows, example.args);
        run(desktop, &cli, app, example);
        count += 1;
    }
    assert!(count > 0, "no example has the page {page}");
}

desktop_test! {
    fn examples_with_controls(desktop: &Desktop) {
        run_page(desktop, "controls", Some(&desktop.gtk3("controls")));
    }

    fn examples_with_texts(desktop: &Desktop) {
        run_page(desktop, "texts", Some(&desktop.gtk3("texts")));
    }

    fn examples_with_lists(desktop: &Desktop) {
        run_page(desktop, "lists", Some(&desktop.gtk3("lists")));
    }

    fn examples_with_scrolling(desktop: &Desktop) {
        run_page(desktop, "scroll", Some(&desktop.gtk3("scroll")));
    }

    fn examples_with_dialogs(desktop: &Desktop) {
        run_page(desktop, "dialogs", Some(&desktop.gtk3("dialogs")));
    }

    fn examples_with_the_pointer(desktop: &Desktop) {
        run_page(desktop, "pointer", Some(&desktop.gtk3("controls")));
    }

    fn examples_with_windows(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let other = desktop.gtk4("controls");
        desktop.activate(other.window(desktop).id);
        run_page(desktop, "windows", Some(&app));
    }

    fn examples_with_launching(desktop: &Desktop) {
        run_page(desktop, "launch", None);
    }

    fn examples_with_notifications(desktop: &Desktop) {
        let _service = service(desktop, "dunst");
        let session = desktop.cli().ok(&["session", "start"])["session_id"].as_str().expect("an id").to_owned();
        let cli = desktop.cli().env("AGENT_DESKTOP_SESSION", &session);
        run_page_with(desktop, &cli, "notifications", None);
        cli.ok(&["session", "end", &session]);
    }
}

#[test]
fn the_pages_of_the_examples_are_those_that_run_here() {
    let here = include_str!("examples.rs");
    for page in PAGES {
        assert!(
            here.lines().any(|line| line.contains("run_page") && line.contains(&format!("\"{page}\","))),
            "nothing runs the examples of {page}"
        );
    }
}

#[test]
fn a_part_of_an_answer_is_told_from_what_is_not_in_it() {
    let answer = serde_json::json!({"a": 1, "b": [{"c": "@s1:e2", "d": 2.0}, {"c": "x"}]});
    let is_held = |part: &str| holds(&answer, &serde_json::from_str(part).unwrap());
    assert!(is_held(r#"{"b":[{"c":"@s…","d":2}]}"#));
    for part in
        [r#"{"a":2}"#, r#"{"c":1}"#, r#"{"b":[{"c":"x","d":2}]}"#, r#"{"b":[{"c":"y…"}]}"#, r#"{"b":{}}"#]
    {
        assert!(!is_held(part), "{part}");
    }
}
