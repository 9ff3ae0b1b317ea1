//! Sessions and traces as commands make them, on the scripted desktop; the oracle is the files on disk.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use agent_desktop_core::error::ErrorCode;
use agent_desktop_core::platform::ProcessState;
use agent_desktop_core::state::State;
use serde_json::{Value, json};

use crate::fake::Bench;

/// Words that stand on the scripted desktop or are typed into it: none may be in a trace.
const SCREEN: &[&str] =
    &["Inbox", "invoice", "Search", "Send", "3 messages", "Mail", "t0p-s3cret", "No Such Name", "\"New\""];

impl Bench {
    /// Starts a session and selects it.
    pub(crate) fn begin(&mut self, arguments: Value) -> PathBuf {
        let mut arguments = arguments;
        arguments["action"] = json!("start");
        self.options.session = None;
        let data = self.data("session", arguments);
        let id = data["session_id"].as_str().unwrap().to_owned();
        let path = self.folder().join("state/sessions").join(&id);
        self.options.session = Some(id);
        path
    }
}

/// The lines of every segment of a session.
pub(crate) fn lines(session: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    let Ok(entries) = std::fs::read_dir(session.join("trace")) else { return all };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let text = std::fs::read_to_string(path).unwrap();
            all.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        }
    }
    all
}

fn events(session: &Path) -> Vec<String> {
    lines(session).iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn last<'a>(lines: &'a [Value], event: &str) -> &'a Value {
    lines
        .iter()
        .rev()
        .find(|line| line["event"] == event)
        .unwrap_or_else(|| panic!("no {event} in {lines:#?}"))
}

fn all_text(folder: &Path) -> String {
    std::fs::read_dir(folder.join("trace"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

#[test]
fn the_actions_of_a_session_in_json() {
    let mut bench = Bench::new("session-json");
    for wrong in [
        json!({"action": "start", "older_than": 3}),
        json!({"action": "end", "name": "x"}),
        json!({"action": "list", "ended": true}),
        json!({"action": "gc", "id": "x"}),
        json!({"action": "begin"}),
        json!({"action": 1}),
        json!({"ended": true}),
        json!([]),
    ] {
        let error = crate::Command::decode("session", wrong.clone()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgs, "{wrong}");
    }
    for wrong in [
        json!({"action": "start", "name": ""}),
        json!({"action": "start", "name": "a\nb"}),
        json!({"action": "start", "name": "x".repeat(129)}),
        json!({"action": "start", "no_trace": true, "screenshots": true}),
        json!({"action": "end"}),
        json!({"action": "end", "id": "none"}),
        json!({"action": "end", "id": "../x"}),
    ] {
        bench.error("session", wrong, "INVALID_ARGS", None, "not_delivered");
    }
    assert_eq!(bench.data("session", Value::Null), json!({"sessions": []}));
    let started = bench.data("session", json!({"action": "start", "name": "demo", "screenshots": true}));
    assert_eq!(
        (&started["name"], &started["trace"], &started["artifacts"]),
        (&json!("demo"), &json!("on"), &json!("full"))
    );
    let listed = bench.data("session", json!({"action": "list"}));
    let keys: Vec<&str> = listed["sessions"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["session_id", "name", "created_at", "ended_at", "trace", "artifacts"]);
    assert_eq!(listed["sessions"][0]["ended_at"], Value::Null);

    // The selected one is the one that ends.
    bench.options.session = started["session_id"].as_str().map(str::to_owned);
    let ended = bench.data("session", json!({"action": "end"}));
    assert_eq!(ended["session_id"], started["session_id"]);
    assert_eq!(bench.data("session", json!({"action": "end", "id": started["session_id"]})), ended);
    // It was used a moment ago.
    assert_eq!(bench.data("session", json!({"action": "gc"})), json!({"removed": []}));
}

#[test]
fn status_says_what_the_session_is() {
    let mut bench = Bench::new("session-status");
    let status = bench.data("status", json!({}));
    assert_eq!((&status["session_id"], &status["tracing"]), (&Value::Null, &json!(false)));
    assert!(status.get("artifacts").is_none());
    bench.options.session = Some("namespace".to_owned());
    let status = bench.data("status", json!({}));
    assert_eq!((&status["session_id"], &status["tracing"]), (&json!("namespace"), &json!(false)));
    assert!(status.get("artifacts").is_none(), "no manifest");

    let session = bench.begin(json!({"screenshots": true}));
    let status = bench.data("status", json!({}));
    assert_eq!((&status["tracing"], &status["artifacts"]), (&json!(true), &json!("full")));
    assert_eq!(status["snapshot_id"], Value::Null);
    bench.reference("Send");
    let status = bench.data("status", json!({}));
    assert!(status["snapshot_id"].is_string() && status["ref_count"] == 3, "{status}");
    bench.data("session", json!({"action": "end"}));
    let status = bench.data("status", json!({}));
    assert_eq!((&status["tracing"], &status["artifacts"]), (&json!(false), &json!("full")));
    let before = lines(&session).len();
    bench.data("list-apps", json!({}));
    assert_eq!(lines(&session).len(), before, "an ended session is not traced");
}

#[test]
fn an_action_is_in_the_trace_step_by_step() {
    let mut bench = Bench::new("trace-steps");
    let session = bench.begin(json!({}));
    let reference = bench.reference("Send");
    bench.data("click", json!({"ref_id": reference}));
    assert_eq!(
        events(&session),
        [
            "trace.meta",
            "command.start",
            "snapshot.saved",
            "command.end",
            "command.start",
            "ref.resolve.start",
            "ref.resolve.entry",
            "actionability.check.start",
            "ref.resolve.ok",
            "actionability.check.ok",
            "action.dispatch.start",
            "action.dispatch.ok",
            "action.artifacts",
            "command.end",
        ]
    );
    let lines = lines(&session);
    let snapshot_id = reference.trim_start_matches('@').split(':').next().unwrap();
    let meta = &lines[0];
    assert_eq!((&meta["schema"], &meta["os"]), (&json!(1), &json!(std::env::consts::OS)));
    assert_eq!((&meta["pid"], &meta["writer_pid"]), (&json!(std::process::id()), &meta["pid"]));
    assert_eq!(meta["proc_start_ms"], meta["writer_proc_start_ms"]);
    let started = last(&lines, "ref.resolve.start");
    assert_eq!((&started["ref"], &started["snapshot_id"]), (&json!(reference), &json!(snapshot_id)));
    let entry = last(&lines, "ref.resolve.entry");
    assert_eq!(
        (&entry["pid"], &entry["role"], &entry["name"]),
        (&json!(7), &json!("button"), &json!({"redacted": true}))
    );
    let checked = last(&lines, "actionability.check.ok");
    assert_eq!((&checked["action"], &checked["actionable"]), (&json!("click"), &json!(true)));
    assert!(checked["checks"].as_array().is_some_and(|checks| checks[0]["check"] == "visible"), "{checked}");
    let sent = last(&lines, "action.dispatch.ok");
    assert_eq!((&sent["ref"], &sent["action"]), (&json!(reference), &json!("click")));
    assert_eq!(sent["result"]["steps"][0]["label"], "press", "{sent}");
    assert!(sent["result"]["delivery"].as_str().unwrap().starts_with("delivered"), "{sent}");
    let ended = last(&lines, "command.end");
    assert_eq!((&ended["command"], &ended["ok"]), (&json!("click"), &json!(true)));
    assert!(ended["duration_ms"].is_u64() && ended["delivery"].is_string(), "{ended}");
    let saved = last(&lines, "snapshot.saved");
    assert_eq!((&saved["snapshot_id"], &saved["ref_count"]), (&json!(snapshot_id), &json!(3)));

    // Order and origin of every line.
    let mut before = (0, None);
    for line in &lines {
        assert_eq!(line["session_id"], json!(bench.options.session), "{line}");
        let now = (line["ts_ms"].as_u64().unwrap(), line["seq"].as_u64());
        assert!(now.0 >= before.0 && now.1 > before.1, "{line}");
        before = now;
    }
    let segments: Vec<_> = std::fs::read_dir(session.join("trace")).unwrap().collect();
    assert_eq!(segments.len(), 1, "one a process");
    let segment = segments[0].as_ref().unwrap();
    let name = segment.file_name().into_string().unwrap();
    assert_eq!(name, format!("{}-{}.jsonl", std::process::id(), meta["proc_start_ms"]));
    assert_eq!(segment.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_other_events_are_written_too() {
    let mut bench = Bench::new("trace-events");
    let session = bench.begin(json!({}));
    let reference = bench.reference("Send");
    let bar = bench.data("snapshot", json!({"app": "Mail", "max_depth": 1}));
    let _ = bar;
    bench.data("find", json!({"app": "Mail", "role": "button"}));
    bench.data("find", json!({"app": "Mail", "role": "button", "count": true}));
    bench.data("snapshot", json!({"root": reference}));
    bench.data("get", json!({"ref_id": reference, "property": "text"}));
    let lines_now = lines(&session);
    let located: Vec<&Value> = lines_now.iter().filter(|line| line["event"] == "locator.resolve").collect();
    assert_eq!((located.len(), &located[0]["match_count"]), (2, &json!(2)));
    assert!(located[0]["query_stats"]["nodes_visited"].is_u64() && located[0]["complete"] == true);
    let drilled = last(&lines_now, "snapshot.root.saved");
    assert_eq!(drilled["root_ref"], json!(reference));

    bench.run("click", json!({"ref_id": "@sgone:e1"}));
    let failed = lines(&session);
    let error = last(&failed, "ref.resolve.error");
    assert_eq!((&error["ref"], &error["code"]), (&json!("@sgone:e1"), &json!("SNAPSHOT_NOT_FOUND")));
    let ended = last(&failed, "command.end");
    assert_eq!(
        (&ended["ok"], &ended["code"], &ended["delivery"]),
        (&json!(false), &json!("SNAPSHOT_NOT_FOUND"), &json!("not_delivered"))
    );

    bench.fake.now_be(|scene| scene.process = ProcessState::Exited);
    bench.run("click", json!({"ref_id": reference}));
    let stale = lines(&session);
    assert_eq!(last(&stale, "ref.resolve.error")["details"]["kind"], "process_changed");
    assert_eq!(last(&stale, "command.end")["kind"], "process_changed");
    bench.fake.now_be(|scene| scene.process = ProcessState::Running);

    bench.fake.now_be(|scene| {
        for id in 0..scene.tree.len() as u32 {
            scene.tree.node_mut(id).states.insert(State::Disabled);
        }
    });
    bench.run("click", json!({"ref_id": reference, "timeout_ms": 200}));
    let blocked = lines(&session);
    let error = last(&blocked, "actionability.check.error");
    assert_eq!((&error["ref"], &error["code"]), (&json!(reference), &json!("TIMEOUT")));
    assert_eq!(error["details"]["kind"], "actionability_timeout");
    assert!(error["details"]["last_report"]["checks"].is_array(), "{error}");
    assert_eq!(error["message"], json!({"redacted": true}), "it names the element");
    assert!(!events(&session).contains(&"action.dispatch.error".to_owned()));
}

/// Everything that can be said of the desktop is said once; none of its words is in the trace, in whatever field.
#[test]
fn no_text_of_the_screen_or_of_the_caller_is_in_a_trace() {
    let mut bench = Bench::new("trace-redacted");
    let session = bench.begin(json!({}));
    let send = bench.reference("Send");
    let search = bench.reference("Search");
    for (name, arguments) in [
        ("click", json!({"ref_id": send})),
        ("type", json!({"ref_id": search, "text": "t0p-s3cret"})),
        ("set-value", json!({"ref_id": search, "value": "t0p-s3cret"})),
        ("select", json!({"ref_id": search, "value": "t0p-s3cret"})),
        ("find", json!({"app": "Mail", "name": "t0p-s3cret"})),
        ("find", json!({"app": "t0p-s3cret"})),
        ("get", json!({"ref_id": search, "property": "value"})),
        ("wait", json!({"element": send, "predicate": "value", "value": "t0p-s3cret", "timeout": 100})),
        ("wait", json!({"text": "t0p-s3cret", "app": "Mail", "timeout": 100})),
        ("wait", json!({"window": "t0p-s3cret", "timeout": 100})),
        ("launch", json!({"app": "t0p-s3cret"})),
        ("snapshot", json!({"app": "No Such Name"})),
        ("list-windows", json!({})),
        ("focus-window", json!({"title": "t0p-s3cret"})),
        ("close-app", json!({"app": "t0p-s3cret"})),
        ("batch", json!({"json": "[{\"command\":\"find\",\"args\":{\"t0p-s3cret\":1}}]"})),
    ] {
        bench.run(name, arguments);
    }
    bench.options.headed = true;
    bench.run("press", json!({"combo": "a", "app": "Mail"}));
    bench.run("type", json!({"ref_id": search, "text": "t0p-s3cret"}));
    bench.options.headed = false;
    for state in [State::Hidden, State::Disabled, State::Offscreen] {
        bench.fake.now_be(|scene| {
            for id in 0..scene.tree.len() as u32 {
                scene.tree.node_mut(id).states.insert(state);
            }
        });
        bench.run("click", json!({"ref_id": send, "timeout_ms": 150}));
    }
    for code in ErrorCode::ALL {
        bench.fake.now_be(|scene| scene.failing = Some(*code));
        bench.run("click", json!({"ref_id": send, "timeout_ms": 150}));
    }
    bench.options.wait_for = Some("button:t0p-s3cret".to_owned());
    bench.options.wait_timeout_ms = Some(100);
    bench.fake.now_be(|scene| scene.failing = None);
    bench.run("click", json!({"ref_id": search}));
    bench.run("snapshot", json!({"app": "Mail"}));
    let text = all_text(&session);
    assert!(lines(&session).len() > 100);
    for word in SCREEN {
        assert!(!text.contains(word), "{word} in {:?}", text.lines().find(|line| line.contains(word)));
    }
}

#[test]
fn a_panic_still_ends_its_command() {
    let mut bench = Bench::new("trace-panic");
    let session = bench.begin(json!({}));
    bench.fake.panics.set(true);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    bench.error("list-apps", json!({}), "INTERNAL", None, "not_delivered");
    std::panic::set_hook(hook);
    let lines = lines(&session);
    let ended = last(&lines, "command.end");
    assert_eq!(
        (&ended["command"], &ended["ok"], &ended["code"], &ended["delivery"]),
        (&json!("list-apps"), &json!(false), &json!("INTERNAL"), &json!("not_delivered"))
    );
    assert_eq!(std::fs::read_dir(session.join("liveness")).unwrap().count(), 0, "nobody is at work there");
}

#[test]
fn a_strict_trace_needs_a_place_to_write() {
    let mut bench = Bench::new("trace-strict");
    bench.options.trace_strict = true;
    bench.error("list-apps", json!({}), "INVALID_ARGS", None, "not_delivered");
    bench.options.session = Some("namespace".to_owned());
    bench.error("list-apps", json!({}), "INVALID_ARGS", None, "not_delivered");
    bench.options.trace = Some(bench.folder().join("none/file"));
    bench.error("list-apps", json!({}), "INVALID_ARGS", None, "not_delivered");
    bench.options.trace = Some(bench.folder().join("file"));
    bench.data("list-apps", json!({}));
    bench.options.trace = None;
    bench.options.trace_strict = false;

    let session = bench.begin(json!({"no_trace": true}));
    bench.options.trace_strict = true;
    bench.error("list-apps", json!({}), "INVALID_ARGS", None, "not_delivered");
    bench.options.trace_strict = false;
    bench.data("list-apps", json!({}));
    assert!(!session.join("trace").exists());

    let session = bench.begin(json!({}));
    bench.options.trace_strict = true;
    bench.data("list-apps", json!({}));
    // What is in the way of writing is an error now, and was a warning before.
    std::fs::rename(session.join("trace"), session.join("moved")).unwrap();
    symlink(session.join("moved"), session.join("trace")).unwrap();
    bench.error("list-apps", json!({}), "INTERNAL", None, "not_delivered");
    bench.options.trace_strict = false;
    bench.data("list-apps", json!({}));
}

#[test]
fn the_file_of_the_flag_goes_before_the_segment() {
    let mut bench = Bench::new("trace-flag");
    let session = bench.begin(json!({}));
    let path = bench.folder().join("trace.jsonl");
    bench.options.trace = Some(path.clone());
    bench.data("list-apps", json!({}));
    assert!(!session.join("trace").exists());
    let text = std::fs::read_to_string(&path).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["event"], &first["session_id"]),
        (&json!("trace.meta"), &json!(bench.options.session))
    );
    assert_eq!(text.lines().count(), 3);
}

/// A disk that is full after the application was reached: what was delivered stays delivered.
#[test]
fn a_trace_that_fails_after_the_deed_does_not_undo_it() {
    let mut bench = Bench::new("trace-late");
    let reference = bench.reference("Send");
    // Anything may be opened for writing here, and nothing can be written.
    bench.options.trace_strict = true;
    bench.options.trace = Some(bench.folder().join("file"));
    let file = bench.folder().join("file");
    std::fs::write(&file, "{}\n").unwrap();
    let full = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    full.set_len(crate::trace::MAX_FILE + 1).unwrap();
    let error = bench.error("click", json!({"ref_id": reference}), "INTERNAL", None, "not_delivered");
    assert_eq!(error["message"], "the trace could not be written");
    bench.fake.on_perform(move |_| full.set_len(crate::trace::MAX_FILE + 1).unwrap());
    std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(0).unwrap();
    bench.error("click", json!({"ref_id": reference}), "INTERNAL", None, "delivered_unverified");
}

#[test]
fn entries_of_a_batch_write_where_their_session_says() {
    let mut bench = Bench::new("trace-batch");
    let other = bench.begin(json!({}));
    let other_id = bench.options.session.clone().unwrap();
    let session = bench.begin(json!({}));
    let entries = json!([
        {"command": "list-apps"},
        {"command": "list-windows", "session": other_id},
        {"command": "session", "args": {"action": "list"}},
    ]);
    let data = bench.data("batch", json!({"json": entries.to_string()}));
    assert_eq!(data["results"][2]["data"]["sessions"].as_array().unwrap().len(), 2, "{data}");
    let commands = |session: &Path| -> Vec<String> {
        lines(session)
            .iter()
            .filter(|line| line["event"] == "command.start")
            .map(|line| line["command"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(commands(&session), ["batch", "list-apps", "session"]);
    assert_eq!(commands(&other), ["list-windows"]);
    let mut numbers: Vec<u64> =
        lines(&session).iter().chain(&lines(&other)).map(|line| line["seq"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(
        numbers.len(),
        lines(&session).len() + lines(&other).len(),
        "numbers are those of the process"
    );
}

/// What stands in the page as data.
fn data_of(page: &str) -> Value {
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let length = page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..start + length]).unwrap()
}

#[test]
fn a_trace_is_shown_in_order_and_in_part() {
    let mut bench = Bench::new("trace-show");
    for arguments in [json!({"action": "show"}), json!({"action": "export"})] {
        bench.error("trace", arguments.clone(), "INVALID_ARGS", None, "not_delivered");
        bench.options.session = Some("namespace".to_owned());
        bench.error("trace", arguments, "INVALID_ARGS", None, "not_delivered");
        bench.options.session = None;
    }
    for wrong in [
        json!({}),
        json!({"action": "show", "out": "x"}),
        json!({"action": "export", "event": "x"}),
        json!({"action": "list"}),
    ] {
        assert!(crate::Command::decode("trace", wrong.clone()).is_err(), "{wrong}");
    }
    let session = bench.begin(json!({}));
    bench.error("trace", json!({"action": "show"}), "INVALID_ARGS", None, "not_delivered");
    let reference = bench.reference("Send");
    bench.data("click", json!({"ref_id": reference}));
    let written = lines(&session).len();

    let all = bench.data("trace", json!({"action": "show"}));
    assert_eq!(lines(&session).len(), written, "looking does not lengthen it");
    assert_eq!((&all["total_events"], &all["returned_events"]), (&json!(written - 1), &json!(written - 1)));
    assert_eq!((&all["truncated"], &all["session_id"]), (&json!(false), &json!(bench.options.session)));
    assert!(all.get("matched_events").is_none() && all.get("warnings").is_none(), "{all}");
    let segment = &all["segments"][0];
    assert_eq!((&segment["schema"], &segment["event_count"]), (&json!(1), &json!(written - 1)));
    let shown: Vec<&Value> = all["events"].as_array().unwrap().iter().collect();
    let names = |events: &[&Value]| -> Vec<String> {
        events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&shown), events(&session)[1..]);
    assert!(shown.iter().all(|event| event["segment"] == segment["segment"] && event["writer_pid"].is_u64()));

    let some = bench.data("trace", json!({"action": "show", "event": "command.", "limit": 3}));
    assert_eq!(
        (&some["matched_events"], &some["returned_events"], &some["truncated"]),
        (&json!(4), &json!(3), &json!(true))
    );
    assert_eq!(some["events"][2]["command"], "click");
    let none = bench.data("trace", json!({"action": "show", "event": "nothing", "limit": 0}));
    assert_eq!((&none["matched_events"], &none["events"]), (&json!(0), &json!([])));

    bench.data("session", json!({"action": "end"}));
    assert_eq!(bench.data("trace", json!({"action": "show", "limit": 1}))["events"][0]["command"], "session");
    bench.options.format = crate::Format::Outline;
    let text = bench.text("trace", json!({"action": "show", "event": "command.end"}));
    assert!(text.lines().nth(1).unwrap().contains("command.end click ok delivered_"), "{text}");
}

#[test]
fn a_trace_becomes_a_private_page() {
    let mut bench = Bench::new("trace-export");
    let session = bench.begin(json!({"name": "</script><script>alert(1)</script>"}));
    let reference = bench.reference("Send");
    bench.data("click", json!({"ref_id": reference}));
    bench.run("click", json!({"ref_id": "@sgone:e1"}));
    let data = bench.data("trace", json!({"action": "export"}));
    let id = bench.options.session.clone().unwrap();
    let path = session.join(format!("trace-{id}.html"));
    assert_eq!(data["path"], json!(path.display().to_string()));
    let page = std::fs::read_to_string(&path).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((&data["bytes"], &data["truncated"]), (&json!(page.len()), &json!(false)));
    assert_eq!((&data["screenshots_embedded"], &data["screenshots_skipped"]), (&json!(0), &json!(0)));
    assert!(!page.contains("alert(1)</script>"), "the name is no markup");
    let inner = data_of(&page);
    assert_eq!(inner["session"]["name"], "</script><script>alert(1)</script>");
    let steps: Vec<(&Value, &Value)> =
        inner["steps"].as_array().unwrap().iter().map(|step| (&step["command"], &step["ok"])).collect();
    assert_eq!(
        steps,
        [
            (&json!("snapshot"), &json!(true)),
            (&json!("click"), &json!(true)),
            (&json!("click"), &json!(false))
        ]
    );
    let click = &inner["steps"][1];
    assert_eq!(
        (&click["ref"], &click["role"], &click["labels"]),
        (&json!(reference), &json!("button"), &json!(["press"]))
    );
    assert!(click["delivery"].as_str().unwrap().starts_with("delivered"));
    // Nothing of the screen was kept, so nothing of it is shown.
    for word in SCREEN {
        assert!(!page.contains(word), "{word}");
    }

    let out = bench.folder().join("run.html");
    let data = bench.data("trace", json!({"action": "export", "out": out, "limit": 2}));
    assert_eq!((&data["event_count"], &data["truncated"]), (&json!(2), &json!(true)));
    assert_eq!(data_of(&std::fs::read_to_string(&out).unwrap())["events"].as_array().unwrap().len(), 2);
    let link = bench.folder().join("link.html");
    symlink(&out, &link).unwrap();
    bench.error("trace", json!({"action": "export", "out": link}), "INVALID_ARGS", None, "not_delivered");
    std::fs::remove_file(&path).unwrap();
    symlink(&out, &path).unwrap();
    bench.error("trace", json!({"action": "export"}), "INTERNAL", None, "not_delivered");
    // A file that has something else in it is no page, and no path that is named in a trace is followed.
    let stray = session.join("trace/1-1.jsonl");
    std::fs::write(&stray, "{\"event\":\"action.artifacts\",\"screenshot_pre\":\"../session.json\"}\n")
        .unwrap();
    std::fs::set_permissions(&stray, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::remove_file(&path).unwrap();
    let data = bench.data("trace", json!({"action": "export"}));
    assert_eq!((&data["screenshots_embedded"], &data["screenshots_skipped"]), (&json!(0), &json!(1)));
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn pictures_before_and_after_are_those_of_the_window() {
    let mut bench = Bench::new("artifacts");
    let session = bench.begin(json!({"screenshots": true}));
    let reference = bench.reference("Send");
    bench.data("click", json!({"ref_id": reference}));
    let all = lines(&session);
    let kept = last(&all, "action.artifacts");
    let [before, after] = ["screenshot_pre", "screenshot_post"].map(|field| kept[field].as_str().unwrap());
    assert!(before.ends_with("-pre.png") && after.ends_with("-post.png"), "{kept}");
    for path in [before, after] {
        let file = session.join("trace").join(path);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(file).unwrap()));
        let reader = decoder.read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (400, 200), "the window, not the display");
    }
    assert_eq!(kept["target"], json!([0.1, 0.0, 0.1, 0.2]), "20,0 20x20 of 200x100");
    let usage: Value =
        serde_json::from_slice(&std::fs::read(session.join("trace/.artifact-usage.json")).unwrap()).unwrap();
    assert_eq!(usage["screenshots"], 2);
    // The refs too, and anew when a drill adds some.
    let id = reference.trim_start_matches('@').split(':').next().unwrap();
    let copy = session.join("trace/refmaps").join(format!("{id}.json"));
    let stored = session.join("snapshots").join(id).join("refmap.json");
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&stored).unwrap());
    bench.data("snapshot", json!({"root": reference}));
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&stored).unwrap());
    bench.data("find", json!({"app": "Mail", "role": "button"}));
    assert_eq!(files(&session.join("trace/refmaps")).len(), 2);

    let data = bench.data("trace", json!({"action": "export"}));
    assert_eq!((&data["screenshots_embedded"], &data["screenshots_skipped"]), (&json!(2), &json!(0)));
    assert!(data.get("warnings").is_none(), "{data}");
    let page = data_of(&std::fs::read_to_string(data["path"].as_str().unwrap()).unwrap());
    let tree = page["trees"][id].as_array().unwrap();
    assert!(tree.iter().any(|node| node["name"] == "Send" && node["role"] == "button"), "{tree:?}");
    assert!(page["images"][before].is_string());

    bench.data("session", json!({"action": "end"}));
    assert!(!stored.exists() && copy.exists(), "there is a copy");
    bench.data("trace", json!({"action": "export"}));
}

#[test]
fn what_is_not_kept_is_said_with_its_reason() {
    let mut bench = Bench::new("artifacts-skipped");
    let skipped = |lines: &[Value]| last(lines, "action.artifacts").clone();
    let flag = bench.folder().join("flag.jsonl");
    let reference = bench.reference("Send");
    bench.options.trace = Some(flag.clone());
    bench.data("click", json!({"ref_id": reference}));
    let text = std::fs::read_to_string(&flag).unwrap();
    let flagged: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(skipped(&flagged)["skipped"], "no_session");
    bench.options.trace = None;

    let session = bench.begin(json!({}));
    let reference = bench.reference("Send");
    bench.data("click", json!({"ref_id": reference}));
    assert_eq!(skipped(&lines(&session))["skipped"], "disabled");
    assert_eq!(files(&session.join("trace")).len(), 1);

    let session = bench.begin(json!({"screenshots": true}));
    let reference = bench.reference("Send");
    // A window that closes by the click has no picture after it.
    let windows = bench.fake.scene.borrow().windows.clone();
    bench.fake.on_perform(|scene| scene.windows.clear());
    bench.data("click", json!({"ref_id": reference}));
    let event = skipped(&lines(&session));
    assert!(event["screenshot_pre"].is_string(), "{event}");
    assert_eq!(event["skipped_post"], "exact_target_unavailable");

    let session = bench.begin(json!({"screenshots": true}));
    bench.fake.now_be(|scene| scene.windows = windows);
    let reference = bench.reference("Send");
    bench.data("click", json!({"ref_id": reference, "timeout_ms": 90}));
    let event = skipped(&lines(&session));
    assert_eq!(event["skipped_pre"], "dispatch_budget", "{event}");

    // Budgets that are used up, for pictures and for refs.
    let usage = json!({"screenshots": 200, "screenshot_bytes": 1, "refmap_bytes": 64 * 1024 * 1024});
    std::fs::write(session.join("trace/.artifact-usage.json"), usage.to_string()).unwrap();
    let reference = bench.reference("Send");
    bench.data("click", json!({"ref_id": reference}));
    let all = lines(&session);
    let event = skipped(&all);
    assert_eq!(
        (&event["skipped_pre"], &event["skipped_post"]),
        (&json!("count_budget"), &json!("count_budget"))
    );
    let refs = last(&all, "action.artifacts.refmap_skipped");
    assert_eq!(refs["skipped"], "budget");
    assert!(reference.contains(refs["snapshot_id"].as_str().unwrap()));
}

/// An action that is refused leaves a picture of what it was refused on.
#[test]
fn a_failure_has_its_picture() {
    let mut bench = Bench::new("artifacts-failure");
    let session = bench.begin(json!({"screenshots": true}));
    let reference = bench.reference("Search");
    bench.run("click", json!({"ref_id": reference}));
    let all = lines(&session);
    let event = last(&all, "action.artifacts");
    assert!(event["screenshot_pre"].is_string() && event.get("screenshot_post").is_none(), "{event}");
}
