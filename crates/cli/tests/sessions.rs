//! Sessions and traces of real runs. The judge is what lies on the disk, read here, and the application's own log.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use agent_desktop_testkit::{Cli, Desktop, desktop_test, wait_until};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);
const SECRET: &str = "Grüße an niemanden";

/// A session, and the program with it selected.
fn begin(desktop: &Desktop, flags: &[&str]) -> (Cli, String, PathBuf) {
    let cli = desktop.cli();
    let data = cli.ok(&[&["session", "start"], flags].concat());
    let id = data["session_id"].as_str().expect("an id").to_owned();
    let path = cli.home().join("sessions").join(&id);
    (cli.env("AGENT_DESKTOP_SESSION", id.as_str()), id, path)
}

fn segments(session: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(session.join("trace")).into_iter().flatten();
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect()
}

/// The lines of every segment; each must be an object.
fn lines(session: &Path) -> Vec<Value> {
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a segment can be read");
    segments(session)
        .into_iter()
        .map(read)
        .flat_map(|text| {
            text.lines()
                .map(|line| serde_json::from_str(line).expect("a line is JSON"))
                .collect::<Vec<Value>>()
        })
        .collect()
}

fn named<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

/// Width and height of a PNG, from its header.
fn size(path: &Path) -> (i32, i32) {
    let bytes = std::fs::read(path).expect("a picture");
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{}", path.display());
    let number = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

/// Width and height of a window with the frame around it.
fn framed(desktop: &Desktop, window: u32) -> (i32, i32) {
    let text = desktop.tool("xprop", &["-id", &window.to_string(), "_NET_FRAME_EXTENTS"]);
    let numbers = text.rsplit('=').next().expect("a value").split(',');
    let sides: Vec<i32> = numbers.filter_map(|side| side.trim().parse().ok()).collect();
    let area = desktop.area(window);
    (area.width + sides[0] + sides[1], area.height + sides[2] + sides[3])
}

/// Makes everything in a session look as if nobody had touched it for ten minutes.
fn age(path: &Path) {
    for entry in std::fs::read_dir(path).expect("a folder") {
        let entry = entry.expect("an entry").path();
        if entry.is_dir() {
            age(&entry);
        }
        let past = SystemTime::now() - Duration::from_secs(600);
        std::fs::File::open(&entry).expect("it is ours").set_modified(past).expect("it is ours");
    }
}

desktop_test! {
    fn a_run_leaves_a_trace_without_text_and_pictures_of_its_window(desktop: &Desktop) {
        let app = desktop.gtk3("texts");
        // Another window in front of it: it must be in no picture.
        let other = desktop.qt6("controls");
        let (cli, id, session) = begin(desktop, &["--name", "a run", "--screenshots"]);
        let field = cli.find(app.name(), "textfield", "Full name");
        cli.ok(&["set-value", &field, SECRET]);
        cli.fails(&["click", "@snone:e1"]);
        cli.fails(&["find", "--app", SECRET]);
        let window = app.window(desktop);
        desktop.activate(other.window(desktop).id);

        let lines = lines(&session);
        let commands: Vec<&str> = {
            let mut ends = named(&lines, "command.end");
            ends.sort_by_key(|line| line["ts_ms"].as_u64());
            ends.iter().map(|line| line["command"].as_str().expect("a name")).collect()
        };
        assert_eq!(commands, ["find", "set-value", "click", "find"]);
        let sent = named(&lines, "action.dispatch.ok");
        assert_eq!(sent[0]["result"]["delivery"], "delivered_verified", "{:#}", sent[0]);
        assert!(app.effects().iter().any(|line| line.contains(SECRET)), "{:?}", app.effects());
        for segment in segments(&session) {
            assert_eq!(segment.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
            let text = std::fs::read_to_string(&segment).expect("text");
            for word in [SECRET, "niemanden", app.name(), "Full name", window.title.as_str()] {
                assert!(!text.contains(word), "{word:?} in {text}");
            }
        }

        let kept = named(&lines, "action.artifacts");
        assert_eq!(kept.len(), 1, "{kept:#?}");
        // With the frame that the window manager draws: what a person calls the window.
        let area = framed(desktop, window.id);
        for field in ["screenshot_pre", "screenshot_post"] {
            let path = session.join("trace").join(kept[0][field].as_str().unwrap_or_else(|| panic!("{:#}", kept[0])));
            assert_eq!(size(&path), area, "{}", path.display());
        }
        let before = std::fs::read(session.join("trace").join(kept[0]["screenshot_pre"].as_str().expect("a path")));
        let after = std::fs::read(session.join("trace").join(kept[0]["screenshot_post"].as_str().expect("a path")));
        assert_ne!(before.expect("a file"), after.expect("a file"), "the text can be seen in one of them");

        let shown = cli.ok(&["trace", "show", "--limit", "0"]);
        let count = lines.len() - segments(&session).len();
        assert_eq!((&shown["total_events"], &shown["returned_events"]), (&count.into(), &count.into()));
        let times: Vec<u64> = shown["events"].as_array().expect("events").iter().filter_map(|event| event["ts_ms"].as_u64()).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(shown.get("warnings").is_none(), "{:#}", shown["warnings"]);

        let page = desktop.path("run.html");
        let exported = cli.ok(&["trace", "export", "--out", &page.to_string_lossy()]);
        assert_eq!((&exported["screenshots_embedded"], &exported["screenshots_skipped"]), (&2.into(), &0.into()), "{exported:#}");
        let text = std::fs::read_to_string(&page).expect("a page");
        assert_eq!(page.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
        assert!(text.starts_with("<!doctype html>") && !text.contains("http:") && !text.contains("https:"), "it needs nobody");
        assert_eq!(text.matches("<script").count(), 2);

        let status = cli.ok(&["status"]);
        assert_eq!((&status["session_id"], &status["tracing"], &status["artifacts"]), (&id.as_str().into(), &true.into(), &"full".into()));
        cli.ok(&["session", "end"]);
        assert_eq!(cli.ok(&["status"])["tracing"], false);
        assert_eq!(std::fs::read_dir(session.join("snapshots")).expect("a folder").count(), 0, "there are copies");
        assert!(std::fs::read_dir(session.join("trace/refmaps")).expect("a folder").count() > 0);
    }

    fn a_process_that_is_killed_leaves_a_start_without_an_end(desktop: &Desktop) {
        let (cli, id, session) = begin(desktop, &[]);
        let mut waiting = cli.command(&["wait", "--window", "nothing like it", "--timeout", "60000"]).spawn().expect("it starts");
        wait_until("the command to begin", SOON, || !named(&lines(&session), "command.start").is_empty());
        cli.ok(&["session", "end", &id]);
        age(&session);
        // It is at work there, however old everything looks.
        assert_eq!(cli.without("AGENT_DESKTOP_SESSION").ok(&["session", "gc"])["removed"], Value::Array(Vec::new()));
        assert!(session.exists());
        waiting.kill().expect("it is ours");
        waiting.wait().expect("it is ours");
        let cli = desktop.cli().env("AGENT_DESKTOP_SESSION", id.as_str());
        let warnings = cli.ok(&["trace", "show"])["warnings"].clone();
        assert_eq!((&warnings[0]["kind"], warnings.as_array().map(Vec::len)), (&"unpaired_command".into(), Some(1)), "{warnings:#}");
        age(&session);
        let removed = desktop.cli().ok(&["session", "gc"])["removed"].clone();
        assert_eq!(removed, Value::from(vec![id]), "nobody is at work there any more");
        assert!(!session.exists());
    }

    fn processes_write_side_by_side_and_are_read_as_one(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let (cli, _, session) = begin(desktop, &[]);
        let save = cli.find(app.name(), "button", "Save");
        let clicks = 6;
        let children: Vec<_> = (0..clicks)
            .map(|_| cli.command(&["click", &save, "--timeout-ms", "20000"]).stdout(std::process::Stdio::null()).spawn().expect("it starts"))
            .collect();
        for mut child in children {
            assert!(child.wait().expect("it ends").success());
        }
        wait_until("all clicks to arrive", SOON, || app.effects().iter().filter(|line| *line == "clicked Save").count() == clicks);
        assert_eq!(segments(&session).len(), clicks + 1);
        let shown = cli.ok(&["trace", "show", "--event", "command."]);
        assert_eq!(shown["matched_events"], 2 * (clicks + 1));
        assert!(shown.get("warnings").is_none(), "{:#}", shown["warnings"]);
        let writers: BTreeSet<u64> = shown["events"].as_array().expect("events").iter().filter_map(|event| event["writer_pid"].as_u64()).collect();
        assert_eq!(writers.len(), clicks + 1);
        // What was done to the application did not overlap: the lease is held from the one to the other.
        let dispatched = cli.ok(&["trace", "show", "--event", "action.dispatch."]);
        let mut at = None;
        for event in dispatched["events"].as_array().expect("events") {
            let (name, writer) = (event["event"].as_str().expect("a name"), event["writer_pid"].as_u64());
            match at {
                None => assert_eq!(name, "action.dispatch.start", "{dispatched:#}"),
                Some(pid) => assert_eq!((name, writer), ("action.dispatch.ok", Some(pid)), "{dispatched:#}"),
            }
            at = if at.is_none() { writer } else { None };
        }
    }
}
