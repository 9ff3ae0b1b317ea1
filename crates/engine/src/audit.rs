//! The audit log: what was done to this desktop and what was refused, for whoever keeps the machine.
//!
//! Decided here: where a line goes, what it holds, and that nothing is done that cannot be written down. A line `start`
//! is written before the first thing that reaches an application, so that a command that is killed in the middle has left
//! its trace; a line `end` says what came of it. No line holds text that was typed, read or searched for, nor a title.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result};
use agent_desktop_core::platform::{App, Window};
use rustix::fs::FlockOperation;
use serde::Serialize;

use crate::private_files::Directory;
use crate::session::unix_ms;
use crate::trace;

/// The file, in the state root.
pub(crate) const FILE: &str = "audit.jsonl";
/// Targets of one command that are listed.
pub(crate) const MAX_TARGETS: usize = 16;

/// What a command is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Target {
    app: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_id: Option<String>,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

impl Target {
    /// An application that does not run yet.
    pub(crate) fn named(app: &str) -> Target {
        Target { app: app.to_owned(), ..Target::default() }
    }

    /// An element of a window.
    pub(crate) fn element(app: &str, pid: u32, window_id: &str, reference: String) -> Target {
        Target {
            pid: Some(pid),
            window_id: Some(window_id.to_owned()),
            reference: Some(reference),
            ..Target::named(app)
        }
    }
}

impl From<&App> for Target {
    fn from(app: &App) -> Target {
        Target { pid: Some(app.pid), ..Target::named(&app.name) }
    }
}

impl From<&Window> for Target {
    fn from(window: &Window) -> Target {
        Target {
            pid: Some(window.pid),
            window_id: Some(window.id.clone()),
            ..Target::named(&window.app_name)
        }
    }
}

/// What came of a command.
#[derive(Debug)]
pub(crate) enum Outcome<'a> {
    /// It succeeded; what it says about delivery, if it acts.
    Done(Option<&'static str>),
    /// It failed.
    Failed(&'a Error),
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    ts_ms: u64,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    command: &'static str,
    #[serde(skip_serializing_if = "<[Target]>::is_empty")]
    targets: &'a [Target],
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
}

/// Where the lines of one command go; nowhere by default.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    is_on: bool,
    root: Option<PathBuf>,
    session: Option<String>,
    command: &'static str,
    has_started: Cell<bool>,
    targets: RefCell<Vec<Target>>,
}

impl Audit {
    /// The log of this command, in the state root.
    pub(crate) fn new(
        is_on: bool,
        root: Option<PathBuf>,
        session: Option<&str>,
        command: &'static str,
    ) -> Audit {
        Audit { is_on, root, session: session.map(str::to_owned), command, ..Audit::default() }
    }

    /// Whether there is one.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Remembers what the command is about.
    pub(crate) fn note(&self, target: Target) {
        let mut targets = self.targets.borrow_mut();
        if self.is_on && targets.len() < MAX_TARGETS && !targets.contains(&target) {
            targets.push(target);
        }
    }

    /// Sees that a line can be written, before a command that changes something begins.
    ///
    /// # Errors
    /// `INTERNAL` of kind `audit_unwritable`, not delivered.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_on {
            self.open().map(|_| ()).map_err(|error| unwritable(&error).delivery(Delivery::NotDelivered))
        } else {
            Ok(())
        }
    }

    /// Writes, once, that something is about to reach an application.
    ///
    /// # Errors
    /// As [`Audit::check`].
    pub(crate) fn start(&self) -> Result<()> {
        if !self.has_started.get() {
            self.write("start", None).map_err(|error| error.delivery(Delivery::NotDelivered))?;
            self.has_started.set(true);
        }
        Ok(())
    }

    /// Writes what came of a command that changes something, or that was refused.
    ///
    /// # Errors
    /// As [`Audit::check`], without a word about delivery.
    pub(crate) fn end(&self, mutates: bool, outcome: &Outcome<'_>) -> Result<()> {
        let is_denied = matches!(outcome, Outcome::Failed(error) if error.code() == ErrorCode::PolicyDenied);
        if mutates || is_denied || self.has_started.get() { self.write("end", Some(outcome)) } else { Ok(()) }
    }

    fn write(&self, event: &'static str, outcome: Option<&Outcome<'_>>) -> Result<()> {
        if !self.is_on {
            return Ok(());
        }
        let targets = self.targets.borrow();
        let mut line = Line {
            event,
            ts_ms: unix_ms(),
            pid: std::process::id(),
            session_id: self.session.as_deref(),
            command: self.command,
            targets: &targets,
            ok: None,
            delivery: None,
            code: None,
            kind: None,
            rule: None,
        };
        match outcome {
            None => {}
            Some(Outcome::Done(delivery)) => {
                line.ok = Some(true);
                line.delivery = *delivery;
            }
            Some(Outcome::Failed(error)) => {
                line.ok = Some(false);
                line.delivery = Some(error.get_delivery().as_str());
                line.code = Some(error.code().as_str());
                line.kind = Some(error.get_kind()).filter(|kind| !kind.is_empty());
                // Words of the policy file, not of the screen.
                line.rule = error.details().iter().find_map(|(name, fact)| match fact {
                    Fact::Text(rule) if name == "rule" => Some(rule.as_str()),
                    _ => None,
                });
            }
        }
        self.append(&line).map_err(|error| unwritable(&error))
    }

    /// The file, private to the user, made if need be.
    fn open(&self) -> Result<std::fs::File> {
        let root = self.root.as_deref().ok_or_else(|| Error::internal("there is no home directory"))?;
        let root = Directory::open(root, true)?
            .ok_or_else(|| Error::internal("a directory that was made is not there"))?;
        let file = root.append(FILE)?;
        let protect = || -> std::io::Result<()> {
            let mut permissions = file.metadata()?.permissions();
            if permissions.mode() & 0o077 != 0 {
                permissions.set_mode(0o600);
                file.set_permissions(permissions)?;
            }
            Ok(())
        };
        protect().map_err(|error| {
            Error::internal("its permissions cannot be changed").platform_detail(error.to_string())
        })?;
        Ok(file)
    }

    fn append(&self, line: &Line<'_>) -> Result<()> {
        let failed = |error: std::io::Error| {
            Error::internal("a line cannot be added").platform_detail(error.to_string())
        };
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        let mut file = self.open()?;
        trace::lock(&file).map_err(failed)?;
        let outcome = file.metadata().and_then(|before| {
            let written = file.write_all(&text);
            if written.is_err() {
                // Half a line would spoil the next one.
                let _ = file.set_len(before.len());
            }
            written
        });
        let _ = rustix::fs::flock(&file, FlockOperation::Unlock);
        outcome.map_err(failed)
    }
}

fn unwritable(cause: &Error) -> Error {
    let detail = match cause.get_platform_detail() {
        Some(detail) => format!("{}: {detail}", cause.message()),
        None => cause.message().to_owned(),
    };
    Error::internal("the audit log cannot be written, and the policy file asks for it")
        .kind("audit_unwritable")
        .platform_detail(detail)
        .hint("make audit.jsonl in the state root writable for the user, or free disk space")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::fake::Bench;
    use crate::rules::PolicyFile;

    fn bench(name: &str, policy: &str) -> Bench {
        let mut bench = Bench::new(name);
        let path = bench.folder().join("policy.toml");
        std::fs::write(&path, format!("audit = true\n{policy}")).unwrap();
        bench.options.policy_files = vec![PolicyFile { path, must_exist: true }];
        bench.options.headed = true;
        bench
    }

    fn path(bench: &Bench) -> PathBuf {
        bench.folder().join("state").join(FILE)
    }

    fn lines(bench: &Bench) -> Vec<Value> {
        let text = std::fs::read_to_string(path(bench)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("every line is whole")).collect()
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn an_action_leaves_two_lines_and_a_look_none() {
        let bench = bench("audit-action", "");
        let reference = bench.reference("Send");
        assert_eq!(lines(&bench), Vec::<Value>::new());
        bench.data("click", json!({"ref_id": reference}));
        let lines = lines(&bench);
        let words: Vec<_> = lines.iter().map(|line| [&line["event"], &line["command"]]).collect();
        assert_eq!(words, [[&json!("start"), &json!("click")], [&json!("end"), &json!("click")]]);
        let target = &lines[0]["targets"][0];
        assert_eq!(
            [&target["app"], &target["window_id"], &target["ref"]],
            [&json!("Mail"), &json!("w-1"), &json!(reference)]
        );
        assert_eq!(target["pid"], 7);
        assert_eq!(lines[1]["ok"], true, "{lines:?}");
        assert!(lines[1]["delivery"].as_str().unwrap().starts_with("delivered"), "{lines:?}");
        assert_eq!(lines[1]["pid"], std::process::id());
        assert_eq!(mode(&path(&bench)), 0o600);
    }

    #[test]
    fn what_was_refused_leaves_a_line_with_its_rule() {
        let bench = bench("audit-denied", "[commands]\ndeny = [\"find\"]\n[windows]\ndeny = [\"Inbox\"]");
        for (name, arguments, rule) in [
            ("find", json!({"name": "a"}), "commands.deny \"find\""),
            ("snapshot", json!({"app": "Mail"}), "windows.deny \"Inbox\""),
            ("press", json!({"combo": "a"}), "windows.deny \"Inbox\""),
        ] {
            bench.error(name, arguments, "POLICY_DENIED", Some("policy_file"), "not_delivered");
            let last = lines(&bench).pop().unwrap();
            assert_eq!(
                [&last["event"], &last["command"], &last["code"], &last["kind"], &last["rule"]],
                [&json!("end"), &json!(name), &json!("POLICY_DENIED"), &json!("policy_file"), &json!(rule)]
            );
            assert_eq!(last["delivery"], "not_delivered");
        }
        assert_eq!(lines(&bench).len(), 3, "nothing was sent, so there is no start");
        assert_eq!(lines(&bench)[1]["targets"][0]["app"], "Mail");
    }

    #[test]
    fn what_was_typed_set_searched_or_read_and_titles_are_in_no_line() {
        let bench = bench("audit-secret", "");
        let reference = bench.reference("Search");
        bench.run("type", json!({"ref_id": reference, "text": "hunter2"}));
        bench.run("set-value", json!({"ref_id": reference, "value": "hunter2"}));
        bench.run("clipboard-set", json!({"text": "hunter2"}));
        bench.run("press", json!({"combo": "h"}));
        bench.run(
            "text",
            json!({"action": "replace", "ref_id": reference, "pattern": "invoice", "text": "hunter2"}),
        );
        let text = std::fs::read_to_string(path(&bench)).unwrap();
        assert!(text.contains("\"press\"") && text.contains("clipboard-set"), "{text}");
        for secret in ["hunter2", "invoice", "Inbox", "Search"] {
            assert!(!text.contains(secret), "{text}");
        }
    }

    #[test]
    fn entries_of_a_batch_are_written_and_the_batch_is_not() {
        let bench = bench("audit-batch", "");
        let list = json!([{"command": "press", "args": {"combo": "a"}}, {"command": "list-apps"}]);
        bench.data("batch", json!({"json": list.to_string()}));
        let commands: Vec<_> = lines(&bench).iter().map(|line| line["command"].clone()).collect();
        assert_eq!(commands, ["press", "press"]);
    }

    #[test]
    fn nothing_is_done_that_cannot_be_written_down() {
        for spoil in [
            |path: &Path| std::fs::create_dir_all(path).unwrap(),
            |path: &Path| std::os::unix::fs::symlink("/tmp/elsewhere", path).unwrap(),
        ] {
            let bench = bench("audit-unwritable", "");
            let reference = bench.reference("Send");
            spoil(&path(&bench));
            for (name, arguments) in [
                ("press", json!({"combo": "a"})),
                ("click", json!({"ref_id": reference})),
                ("session", json!({"action": "start"})),
            ] {
                bench.error(name, arguments, "INTERNAL", Some("audit_unwritable"), "not_delivered");
            }
            bench.data("list-windows", json!({}));
            assert_eq!(bench.fake.inputs.borrow().len(), 0);
            assert!(!bench.folder().join("state/sessions").exists(), "no session was made");
        }
    }

    #[test]
    fn a_log_that_breaks_while_a_command_prepares_keeps_it_from_acting() {
        let bench = bench("audit-late", "");
        let at = path(&bench);
        bench.fake.now_be(|scene| scene.windows[0].is_focused = true);
        let reference = bench.reference("Send");
        // The check before the command has passed by then.
        bench.fake.at(bench.fake.elapsed_ms() + 1, move |_| {
            let _ = std::fs::remove_file(&at);
            std::fs::create_dir_all(&at).unwrap();
        });
        bench.error(
            "click",
            json!({"ref_id": reference}),
            "INTERNAL",
            Some("audit_unwritable"),
            "not_delivered",
        );
    }

    #[test]
    fn without_a_home_there_is_nowhere_to_write() {
        let mut bench = bench("audit-homeless", "");
        bench.options.state_root = None;
        bench.error("press", json!({"combo": "a"}), "INTERNAL", Some("audit_unwritable"), "not_delivered");
    }

    #[test]
    fn a_log_that_others_can_read_is_closed_to_them() {
        let bench = bench("audit-mode", "");
        bench.data("press", json!({"combo": "a"}));
        std::fs::set_permissions(path(&bench), std::fs::Permissions::from_mode(0o644)).unwrap();
        bench.data("press", json!({"combo": "a"}));
        assert_eq!((mode(&path(&bench)), lines(&bench).len()), (0o600, 4));
    }

    #[test]
    fn a_line_that_is_written_after_a_panic_says_so() {
        let bench = bench("audit-panic", "");
        bench.fake.panics.set(true);
        bench.run("press", json!({"combo": "a"}));
        let last = lines(&bench).pop().unwrap();
        assert_eq!((&last["event"], &last["code"]), (&json!("end"), &json!("INTERNAL")));
    }
}
