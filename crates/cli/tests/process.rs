//! The process rules: one JSON line, exit codes, what happens with strange surroundings. No desktop is needed.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A folder of its own for a test, removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ad-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program with nothing of our surroundings: no desktop, no bus, a state root of the test's.
fn program(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-desktop"));
    command
        .env_clear()
        .env("HOME", &folder.0)
        .env("AGENT_DESKTOP_HOME", folder.at("state"))
        .stdin(Stdio::null());
    command
}

/// Code and envelope; exactly one line must have been printed.
#[track_caller]
fn envelope(output: &Output) -> (i32, Value) {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "not one line: {text:?}");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["version"], "2.4");
    let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let last = if value["ok"] == true { "data" } else { "error" };
    assert_eq!(keys, ["version", "ok", "command", last]);
    (output.status.code().unwrap(), value)
}

#[track_caller]
fn run(folder: &Folder, arguments: &[&str]) -> (i32, Value) {
    envelope(&program(folder).args(arguments).output().unwrap())
}

/// The command failed with this code, and says that nothing was delivered.
#[track_caller]
fn assert_fails(result: &(i32, Value), exit: i32, command: &str, code: &str) {
    let (status, value) = result;
    assert_eq!(
        (*status, &value["command"], &value["error"]["code"]),
        (exit, &command.into(), &code.into()),
        "{value}"
    );
    assert_eq!(value["error"]["disposition"]["delivery"], "not_delivered", "{value}");
    assert_eq!(value["error"]["disposition"]["retry"], "safe", "{value}");
}

#[test]
fn version_is_one_line_and_quick() {
    let folder = Folder::new("version");
    let (code, value) = run(&folder, &["version"]);
    assert_eq!((code, &value["data"]["os"]), (0, &std::env::consts::OS.into()));
    assert!(!folder.at("state").exists(), "nothing is made");
    // The best of several: the machine may be busy with other tests.
    let best = (0..20)
        .map(|_| {
            let start = Instant::now();
            program(&folder).arg("version").output().unwrap();
            start.elapsed()
        })
        .min()
        .unwrap();
    assert!(best < Duration::from_millis(20), "{best:?}");
}

#[test]
fn help_and_version_are_plain_text() {
    let folder = Folder::new("help");
    for arguments in [&["--help"][..], &["-h"], &["--version"], &[], &["snapshot", "--help"], &["--headed"]] {
        let output = program(&folder).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.starts_with(b"{") && output.stdout.len() > 10, "{arguments:?}");
    }
}

#[test]
fn every_command_has_help_with_words_for_every_argument() {
    let folder = Folder::new("words");
    let help = program(&folder).arg("--help").output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let mut count = 0;
    for command in commands.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' ')) {
        let name = command.split_whitespace().next().unwrap();
        assert!(command.split_whitespace().count() > 2, "{name} is not described");
        let output = program(&folder).args([name, "-h"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}");
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let line = line.trim();
            let words = line.split("  ").filter(|part| !part.is_empty()).count();
            assert!(!line.starts_with("--") || words > 1, "{name}: {line} is not described");
        }
        count += 1;
    }
    assert!(count > 30, "{count} commands");
}

#[test]
fn what_cannot_be_parsed_is_an_envelope_with_code_2() {
    let folder = Folder::new("garbage");
    let long = "x".repeat(5000);
    let garbage: [&[&str]; 12] = [
        &["no-such-command"],
        &["--no-such-flag"],
        &["version", "extra"],
        &["snapshot", "--max-depth", "many"],
        &["snapshot", "--max-depth", "300"],
        &["snapshot", "--surface", "sofa"],
        &["get"],
        &["find", "--first", "--last"],
        &["mouse-click", "--xy", "1,1", "--button", "fourth"],
        &["version", "--format", "xml"],
        &["--wait-for", "a", "snapshot", "--wait-for-gone", "b"],
        &[&long],
    ];
    for arguments in garbage {
        let result = run(&folder, arguments);
        assert_fails(&result, 2, "unknown", "INVALID_ARGS");
        let message = result.1["error"]["message"].as_str().unwrap();
        assert!(
            !message.is_empty() && message.chars().count() <= 512 && !message.contains('\n'),
            "{message}"
        );
    }
    let (_, value) = run(&folder, &["get"]);
    assert!(value["error"]["message"].as_str().unwrap().contains("<REF>"), "{value}");
}

#[test]
fn what_is_not_unicode_is_an_envelope_too() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new("bytes");
    let bytes = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    for arguments in [&[bytes][..], &["get".as_ref(), bytes], &["find".as_ref(), "--name".as_ref(), bytes]] {
        let result = envelope(&program(&folder).args(arguments).output().unwrap());
        assert_fails(&result, 2, "unknown", "INVALID_ARGS");
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused_before_anything_is_looked_at() {
    let folder = Folder::new("arguments");
    let bad: [&[&str]; 40] = [
        &["snapshot", "--max-depth", "51"],
        &["snapshot", "--root", "@sabc:e1", "--surface", "menu"],
        &["snapshot", "--root", "@sabc:e1", "--wait-for", "button"],
        &["snapshot", "--wait-for", " : "],
        &["snapshot", "--wait-for", "sofa:x"],
        &["snapshot", "--wait-timeout", "5"],
        &["snapshot", "--timeout-ms", "86400001"],
        &["list-apps", "--wait-for", "button"],
        &["find", "--role", "sofa"],
        &["find", "--role", "unknown"],
        &["find", "--state", "enabled"],
        &["find", "--state", "checked=maybe"],
        &["get", "e1"],
        &["get", "@e1"],
        &["get", "@sabc:e0"],
        &["get", "@sabc:e1", "--snapshot", "sdef"],
        &["get", "@sabc:e1", "--property", "colour"],
        &["is", "@sabc:e1", "--property", "nice"],
        &["wait"],
        &["wait", "5", "--menu"],
        &["wait", "--text", " "],
        &["wait", "--text", "x", "--predicate", "visible"],
        &["wait", "--element", "@sabc:e1", "--predicate", "value"],
        &["wait", "--element", "@sabc:e1", "--action", "click"],
        &["wait", "--menu", "--count", "3"],
        &["wait", "99999999999"],
        &["screenshot", "--screen", "0", "--app", "x"],
        &["screenshot", "--region", "1,2,3"],
        &["screenshot", "/no/such/folder/a.png"],
        &["press", "hyper+a"],
        &["press", ""],
        &["hover"],
        &["hover", "--xy", "1;2"],
        &["drag", "--from-xy", "1,1"],
        &["mouse-click", "--xy", "1,1", "--count", "0"],
        &["mouse-wheel", "--x", "1", "--y", "1", "--dy", "0"],
        &["launch", "/bin/sh"],
        &["launch", "x", "--env", "1A=b"],
        &["focus-window"],
        &["close-app", " "],
    ];
    for arguments in bad {
        let result = run(&folder, arguments);
        assert_fails(&result, 1, arguments[0], "INVALID_ARGS");
    }
    assert!(!folder.at("state").exists());
}

#[test]
fn global_flags_go_before_and_after_the_command() {
    let folder = Folder::new("global");
    for arguments in [["--session", "a", "status"], ["status", "--session", "a"]] {
        let (code, value) = run(&folder, &arguments);
        assert_eq!((code, &value["data"]["session_id"]), (0, &"a".into()));
    }
    for id in ["", "a b", "../x", &"x".repeat(65)] {
        assert_fails(&run(&folder, &["status", "--session", id]), 1, "status", "INVALID_ARGS");
    }
    let with = |value: &str| {
        envelope(&program(&folder).env("AGENT_DESKTOP_SESSION", value).arg("status").output().unwrap())
    };
    assert_eq!(with("b").1["data"]["session_id"], "b");
    assert_fails(&with(""), 1, "status", "INVALID_ARGS");
    let both = program(&folder)
        .env("AGENT_DESKTOP_SESSION", "b")
        .args(["status", "--session", "c"])
        .output()
        .unwrap();
    assert_eq!(envelope(&both).1["data"]["session_id"], "c", "the flag wins");
}

#[test]
fn a_state_root_that_cannot_be_used_fails_every_command() {
    let folder = Folder::new("root");
    std::fs::create_dir(folder.at("real")).unwrap();
    std::fs::write(folder.at("file"), "").unwrap();
    symlink(folder.at("real"), folder.at("link")).unwrap();
    std::fs::create_dir(folder.at("open")).unwrap();
    std::fs::set_permissions(folder.at("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
    let roots = [
        PathBuf::new(),
        "relative".into(),
        folder.at("file"),
        folder.at("link"),
        folder.at("link/"),
        folder.at("link/below"),
        folder.at("real/.."),
        folder.at("open"),
    ];
    for root in roots {
        for command in ["version", "status", "list-apps"] {
            let output = program(&folder).env("AGENT_DESKTOP_HOME", &root).arg(command).output().unwrap();
            assert_fails(&envelope(&output), 1, command, "INVALID_ARGS");
        }
    }
    let output =
        program(&folder).env("AGENT_DESKTOP_HOME", folder.at("new")).arg("version").output().unwrap();
    assert_eq!(envelope(&output).0, 0);
    assert!(!folder.at("new").exists(), "checking makes nothing");
}

#[test]
fn a_link_in_the_store_is_not_followed() {
    let folder = Folder::new("link");
    std::fs::create_dir(folder.at("elsewhere")).unwrap();
    std::fs::create_dir(folder.at("state")).unwrap();
    let latest = folder.at("state/latest_snapshot_id");
    std::fs::write(folder.at("elsewhere/id"), "sabc").unwrap();
    symlink(folder.at("elsewhere/id"), &latest).unwrap();
    assert_fails(&run(&folder, &["status"]), 1, "status", "INTERNAL");
    std::fs::remove_file(&latest).unwrap();
    std::fs::write(&latest, "sabc").unwrap();
    assert_eq!(run(&folder, &["status"]).1["data"]["snapshot_id"], Value::Null, "a pointer to nothing");
    symlink(folder.at("elsewhere"), folder.at("state/snapshots")).unwrap();
    assert_fails(&run(&folder, &["status"]), 1, "status", "INTERNAL");
    std::fs::write(&latest, "x".repeat(66)).unwrap();
    assert_fails(&run(&folder, &["status"]), 1, "status", "INTERNAL");
}

#[test]
fn a_stdout_that_cannot_be_written_is_code_1_and_a_line_on_stderr() {
    let folder = Folder::new("stdout");
    let check = |output: Output| {
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
    };
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    check(program(&folder).arg("version").stdout(full).stderr(Stdio::piped()).output().unwrap());
    // A reader that has gone.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    check(program(&folder).arg("version").stdout(writer).stderr(Stdio::piped()).output().unwrap());
    // A stdout that a shell closed (`>&-`) cannot be told from `/dev/null`: the runtime opens that in its place before
    // `main`, and nothing is lost that anybody could have read.
}

#[test]
fn a_sleep_needs_no_desktop() {
    let folder = Folder::new("sleep");
    let started = std::time::Instant::now();
    let output = program(&folder).args(["wait", "150"]).output().unwrap();
    assert!(started.elapsed().as_millis() >= 150);
    let (code, reply) = envelope(&output);
    assert_eq!((code, &reply["data"]["waited_ms"]), (0, &150.into()), "{reply:#}");
}

#[test]
fn an_environment_deadline_must_be_a_number() {
    let folder = Folder::new("deadline");
    for value in ["soon", "-1", "86400001", ""] {
        let output =
            program(&folder).env("AGENT_DESKTOP_TIMEOUT_MS", value).arg("list-apps").output().unwrap();
        assert_fails(&envelope(&output), 1, "list-apps", "INVALID_ARGS");
    }
}

#[test]
fn physical_input_needs_headed() {
    let folder = Folder::new("headed");
    for arguments in [
        &["mouse-move", "--xy", "1,1"][..],
        &["mouse-click", "--xy", "-1, 1.5"],
        &["mouse-down", "--xy", "1,1"],
        &["hover", "--xy", "1,1"],
        &["drag", "--from-xy", "1,1", "--to-xy", "2,2"],
    ] {
        let output = program(&folder).args(arguments).output().unwrap();
        let (code, value) = envelope(&output);
        let error = value["error"]["code"].as_str().unwrap();
        // Without a desktop the permission is missing, which is said first.
        assert!(code == 1 && ["POLICY_DENIED", "PERM_DENIED"].contains(&error), "{value}");
    }
}

#[test]
fn a_trace_file_gets_a_line_for_the_start_and_one_for_the_end() {
    let folder = Folder::new("trace");
    let path = folder.at("trace.jsonl");
    let trace = path.to_str().unwrap();
    run(&folder, &["version", "--trace", trace]);
    run(&folder, &["--trace", trace, "get", "e1", "--session", "s1"]);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["trace.meta", "command.start", "command.end", "command.start", "command.end"]);
    assert_eq!((&lines[0]["schema"], &lines[2]["ok"]), (&1.into(), &true.into()));
    assert_eq!((&lines[4]["code"], &lines[4]["session_id"]), (&"INVALID_ARGS".into(), &"s1".into()));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    assert_fails(&run(&folder, &["version", "--trace-strict"]), 1, "version", "INVALID_ARGS");
    let missing = folder.at("none/trace.jsonl");
    let missing = missing.to_str().unwrap();
    assert_eq!(run(&folder, &["version", "--trace", missing]).0, 0, "a warning only");
    assert_fails(
        &run(&folder, &["version", "--trace-strict", "--trace", missing]),
        1,
        "version",
        "INVALID_ARGS",
    );
    symlink(&path, folder.at("link")).unwrap();
    let link = folder.at("link");
    let link = link.to_str().unwrap();
    assert_fails(
        &run(&folder, &["version", "--trace-strict", "--trace", link]),
        1,
        "version",
        "INVALID_ARGS",
    );
}

#[test]
fn a_picture_is_not_written_through_a_link() {
    let folder = Folder::new("picture");
    std::fs::write(folder.at("precious"), "text").unwrap();
    symlink(folder.at("precious"), folder.at("link.png")).unwrap();
    std::fs::create_dir(folder.at("dir")).unwrap();
    for name in ["link.png", "dir", "dir/", "none/x.png", "dir/../x.png"] {
        let path = folder.at("").join(name);
        let result = run(&folder, &["screenshot", path.to_str().unwrap()]);
        assert_fails(&result, 1, "screenshot", "INVALID_ARGS");
    }
    assert_eq!(std::fs::read(folder.at("precious")).unwrap(), b"text");
    let output =
        program(&folder).current_dir(&folder.0).args(["screenshot", "relative.png"]).output().unwrap();
    assert_ne!(envelope(&output).1["error"]["code"], "INVALID_ARGS", "relative paths are paths");
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let folder = Folder::new("owner");
    std::fs::create_dir(folder.at("theirs")).unwrap();
    // Only root can give a folder away; elsewhere the system's own root folder is somebody else's.
    let theirs = folder.at("theirs");
    let root: &Path = if std::os::unix::fs::chown(&theirs, Some(12345), None).is_ok() {
        &theirs
    } else {
        Path::new("/usr")
    };
    let output = program(&folder).env("AGENT_DESKTOP_HOME", root).arg("version").output().unwrap();
    assert_fails(&envelope(&output), 1, "version", "INVALID_ARGS");
}

#[test]
fn a_batch_comes_from_an_argument_a_file_or_standard_input() {
    use std::io::Write;
    let folder = Folder::new("batch");
    let list = r#"[{"command":"version"},{"command":"get","args":{"ref_id":"@s0000000:e1"}}]"#;
    std::fs::write(folder.at("list.json"), list).unwrap();
    let file = folder.at("list.json");
    let file = file.to_str().unwrap();
    for arguments in [&["batch", list][..], &["batch", "--file", file], &["batch", "-"]] {
        let mut child =
            program(&folder).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(list.as_bytes());
        let (exit, reply) = envelope(&child.wait_with_output().unwrap());
        // Without a desktop the second entry has no permission, and the whole batch is refused before it begins.
        assert_eq!((exit, &reply["error"]["details"]["batch_index"]), (1, &1.into()), "{reply}");
    }
    let list = r#"[{"command":"version"},{"command":"list-apps"}]"#;
    std::fs::write(folder.at("list.json"), list).unwrap();
    for (arguments, code) in
        [(&["batch", list][..], 0), (&["batch", "--file", file], 0), (&["batch", list, "--fail-on-error"], 1)]
    {
        let (exit, reply) = run(&folder, arguments);
        assert_eq!((exit, &reply["ok"]), (code, &true.into()), "{reply}");
        assert_eq!(reply["data"]["results"][0]["data"]["version"], env!("CARGO_PKG_VERSION"), "{reply}");
        assert_eq!(reply["data"]["failed_entries"], 1, "{reply}");
    }
    for arguments in [
        &["batch"][..],
        &["batch", "[]", "--file", file],
        &["batch", "--file", "/dev/null"],
        &["batch", "--file", folder.at("none").to_str().unwrap()],
    ] {
        let (exit, reply) = run(&folder, arguments);
        assert_eq!((exit, &reply["error"]["code"]), (1, &"INVALID_ARGS".into()), "{arguments:?} {reply}");
    }
}

#[test]
fn a_session_from_its_start_to_its_end() {
    let folder = Folder::new("session");
    for (arguments, exit, command) in [
        (&["session", "begin"][..], 2, "unknown"),
        (&["session", "start", "--older-than", "3"], 2, "unknown"),
        (&["session", "start", "--no-trace", "--screenshots"], 1, "session"),
        (&["session", "end"], 1, "session"),
        (&["session", "end", "none"], 1, "session"),
        (&["version", "--trace-strict"], 1, "version"),
        (&["version", "--trace-strict", "--session", "namespace"], 1, "version"),
    ] {
        assert_fails(&run(&folder, arguments), exit, command, "INVALID_ARGS");
    }
    let (code, value) = run(&folder, &["session"]);
    assert_eq!((code, &value["data"]["sessions"]), (0, &serde_json::json!([])));

    let (code, value) = run(&folder, &["session", "start", "--name", "a run"]);
    assert_eq!((code, &value["data"]["name"], &value["data"]["trace"]), (0, &"a run".into(), &"on".into()));
    let id = value["data"]["session_id"].as_str().unwrap().to_owned();
    let session = folder.at("state/sessions").join(&id);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&session), mode(&session.join("session.json"))), (0o700, 0o600));

    assert_eq!(run(&folder, &["version", "--session", &id, "--trace-strict"]).0, 0);
    let output = program(&folder).arg("version").env("AGENT_DESKTOP_SESSION", &id).output().unwrap();
    assert_eq!(envelope(&output).0, 0);
    let segments = || std::fs::read_dir(session.join("trace")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(segments().count(), 2, "one a process");
    for segment in segments() {
        assert_eq!(mode(&segment), 0o600);
        let text = std::fs::read_to_string(segment).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!(names, ["trace.meta", "command.start", "command.end"]);
        assert!(events.iter().all(|event| event["session_id"] == *id));
    }

    let (_, ended) = run(&folder, &["--session", &id, "session", "end"]);
    assert_eq!(ended["data"]["session_id"], *id);
    assert_eq!(run(&folder, &["session", "end", &id]).1["data"], ended["data"], "ended once");
    assert_fails(
        &run(&folder, &["version", "--session", &id, "--trace-strict"]),
        1,
        "version",
        "INVALID_ARGS",
    );
    assert_eq!(run(&folder, &["session", "gc"]).1["data"], serde_json::json!({"removed": []}), "just used");
    assert_eq!(
        run(&folder, &["session", "list"]).1["data"]["sessions"][0]["ended_at"],
        ended["data"]["ended_at"]
    );

    // Six minutes later.
    let past = std::time::SystemTime::now() - Duration::from_secs(360);
    for segment in segments() {
        std::fs::File::open(segment).unwrap().set_modified(past).unwrap();
    }
    let removed = run(&folder, &["session", "gc"]).1;
    assert_eq!(removed["data"], serde_json::json!({"removed": [id]}));
    assert!(!session.exists());
}

#[test]
fn a_manifest_that_cannot_be_used_is_a_warning() {
    let folder = Folder::new("manifest");
    let (_, value) = run(&folder, &["session", "start"]);
    let id = value["data"]["session_id"].as_str().unwrap().to_owned();
    let manifest = folder.at("state/sessions").join(&id).join("session.json");
    std::fs::write(&manifest, "{").unwrap();
    let output = program(&folder).args(["version", "--session", &id]).output().unwrap();
    assert_eq!(envelope(&output).0, 0);
    assert!(String::from_utf8_lossy(&output.stderr).contains("session.json"), "{output:?}");
    assert!(!manifest.parent().unwrap().join("trace").exists());
}

#[test]
fn a_trace_is_shown_and_exported() {
    let folder = Folder::new("trace-commands");
    for arguments in [&["trace", "show"][..], &["trace", "export"], &["trace", "show", "--session", "none"]] {
        assert_fails(&run(&folder, arguments), 1, "trace", "INVALID_ARGS");
    }
    assert_fails(&run(&folder, &["trace", "show", "--out", "x"]), 2, "unknown", "INVALID_ARGS");
    let (_, value) = run(&folder, &["session", "start"]);
    let id = value["data"]["session_id"].as_str().unwrap().to_owned();
    run(&folder, &["version", "--session", &id]);
    let (code, shown) = run(&folder, &["trace", "show", "--session", &id, "--limit", "1"]);
    assert_eq!(
        (code, &shown["data"]["truncated"], &shown["data"]["total_events"]),
        (0, &true.into(), &2.into())
    );
    let event = &shown["data"]["events"][0];
    assert_eq!((&event["event"], &event["command"]), (&"command.end".into(), &"version".into()));

    let output = program(&folder)
        .args(["trace", "export", "--session", &id, "--out", "run.html"])
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let (code, exported) = envelope(&output);
    assert_eq!((code, &exported["data"]["event_count"]), (0, &2.into()), "{exported}");
    assert_eq!(folder.at("run.html").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    symlink(folder.at("run.html"), folder.at("link.html")).unwrap();
    let link = folder.at("link.html").into_os_string().into_string().unwrap();
    assert_fails(
        &run(&folder, &["trace", "export", "--session", &id, "--out", &link]),
        1,
        "trace",
        "INVALID_ARGS",
    );
    let (_, exported) = run(&folder, &["trace", "export", "--session", &id]);
    let path = exported["data"]["path"].as_str().unwrap();
    assert!(path.ends_with(&format!("{id}/trace-{id}.html")) && Path::new(path).is_file(), "{path}");
}
