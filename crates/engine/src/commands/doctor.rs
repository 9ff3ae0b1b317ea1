//! `doctor`: what keeps this desktop from being read and operated, and what to do about each.
//!
//! The platform examines the desktop; what is on disk is examined here. Everything that is broken is a check that failed:
//! the command itself fails only when it cannot examine.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::platform::{App, AppAdvice, Check, CheckState, Examination, Limits, Scope};
use serde::{Deserialize, Serialize};

use super::{Effects, Reply, Run, lines};
use crate::context::{Context, Options};
use crate::lease::{self, Holder};
use crate::observe::ACTIVATION;
use crate::private_files::{Audit, can_write};
use crate::store::Store;
use crate::{policy, session};

#[cfg(feature = "clap")]
const EXAMPLE: &str = "\
Example:
  agent-desktop doctor --format outline
  agent-desktop doctor --fix
  agent-desktop doctor --self-test --headed";

/// How long somebody may hold the interaction lease before that is told.
pub(crate) const LEASE_PATIENCE: Duration = Duration::from_secs(1);
/// How long to wait between two looks at it.
const LEASE_POLL: Duration = Duration::from_millis(50);
/// The check that may have to name applications whose content cannot be seen.
const APPLICATIONS: &str = "applications";
/// How long it may take to look for these.
const SLEEPERS: Duration = Duration::from_millis(1500);
/// Objects that are read of a window to see whether there is anything in it.
const MOST_ASLEEP: u32 = 8;
/// Paths that are named.
const NAMED: usize = 3;

/// Find out what keeps this desktop from being read and operated, and what to do about it.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(after_help = EXAMPLE))]
#[serde(deny_unknown_fields, default)]
pub struct Doctor {
    /// Set right what can be set right without harm, and say what was changed.
    #[cfg_attr(feature = "clap", arg(long))]
    pub fix: bool,
    /// Also open a window of our own, and prove that it is listed, pictured, clicked and typed into (needs --headed).
    #[cfg_attr(feature = "clap", arg(long))]
    pub self_test: bool,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
struct CheckData {
    id: &'static str,
    state: &'static str,
    seen: String,
    why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    can_fix: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    apps: Vec<AppData>,
}

/// What to do about one application.
#[derive(Clone, Debug, Serialize)]
struct AppData {
    name: String,
    pid: u32,
    advice: String,
}

impl From<Check> for CheckData {
    fn from(check: Check) -> CheckData {
        let apps = check.apps.into_iter();
        CheckData {
            id: check.id,
            state: check.state.as_str(),
            seen: check.seen,
            why: check.why,
            advice: check.advice,
            can_fix: check.can_fix,
            fixed: check.fixed,
            apps: apps.map(|app| AppData { name: app.name, pid: app.pid, advice: app.advice }).collect(),
        }
    }
}

/// How many checks came to what.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    ok: usize,
    warning: usize,
    failed: usize,
    skipped: usize,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct DoctorReply {
    healthy: bool,
    counts: Counts,
    checks: Vec<CheckData>,
}

impl DoctorReply {
    fn of(checks: Vec<Check>) -> DoctorReply {
        let mut counts = Counts::default();
        for check in &checks {
            match check.state {
                CheckState::Ok => counts.ok += 1,
                CheckState::Warning => counts.warning += 1,
                CheckState::Failed => counts.failed += 1,
                CheckState::Skipped => counts.skipped += 1,
            }
        }
        let checks = checks.into_iter().map(CheckData::from).collect();
        DoctorReply { healthy: counts.failed == 0, counts, checks }
    }
}

impl Reply for DoctorReply {
    fn outline(&self) -> Option<String> {
        let entry = |check: &CheckData| {
            let mut text = format!("{:<8}{}: {}", check.state, check.id, check.seen);
            let mut below = |line: &str| {
                text.push_str("\n        ");
                text.push_str(line);
            };
            if check.state != CheckState::Ok.as_str() {
                below(check.why);
            }
            for line in check.fixed.iter().map(|fixed| format!("changed: {fixed}")).chain(check.advice.clone()) {
                below(&line);
            }
            for app in &check.apps {
                below(&format!("{} (pid {}): {}", app.name, app.pid, app.advice));
            }
            text
        };
        let Counts { ok, warning, failed, skipped } = self.counts;
        let counts = format!("{ok} ok, {warning} warning, {failed} failed, {skipped} skipped");
        Some(format!("{}\n{counts}", lines(self.checks.iter().map(entry), "nothing was looked at")))
    }

    fn is_failure(&self) -> bool {
        !self.healthy
    }
}

impl Run for Doctor {
    type Reply = DoctorReply;

    fn effects(&self, table: Effects) -> Effects {
        let acts = self.fix || self.self_test;
        Effects { mutates: acts, takes_lease: acts, ..table }
    }

    fn check(&self, options: &Options) -> Result<()> {
        if self.self_test && !options.headed {
            return Err(policy::needs_headed("doctor --self-test"));
        }
        Ok(())
    }

    fn run(&self, context: &Context<'_>) -> Result<DoctorReply> {
        // Where somebody else acts all the time nothing is changed; the check of the locks says who.
        let lease =
            if self.fix { context.within(LEASE_PATIENCE).take_lease().ok() } else { None };
        let fix = lease.is_some();
        let examination = if fix { Examination::Repair } else { Examination::Look };
        let mut checks = context.platform.diagnose(examination, context.deadline)?;
        if let Some(check) = checks.iter_mut().find(|check| check.id == APPLICATIONS) {
            name_sleepers(context, check);
        }
        checks.push(state_root(context, fix));
        drop(lease);
        checks.push(locks(context, fix));
        if self.self_test {
            match context.take_lease() {
                Ok(_lease) => {
                    context.begin_delivery();
                    checks.extend(context.platform.diagnose(Examination::Prove, context.deadline)?);
                }
                Err(error) => {
                    let why = "it shows that input, pictures and windows work from one end to the other";
                    let seen = error.message().to_owned();
                    checks.push(Check::new("self_test", why, CheckState::Skipped, seen).advise("see locks"));
                }
            }
        }
        Ok(DoctorReply::of(checks))
    }
}

/// Names the applications that show their windows and nothing in them, as Chromium does until accessibility is on. Read as any
/// command reads, so that what a policy file denies is left alone.
fn name_sleepers(context: &Context<'_>, check: &mut Check) {
    if !matches!(check.state, CheckState::Ok | CheckState::Warning) {
        return;
    }
    let context = context.within(SLEEPERS);
    let limits = Limits { nodes: MOST_ASLEEP, ..Limits::default() };
    let is_asleep = |app: &App| {
        let windows = context.platform.windows(Some(app), context.deadline).unwrap_or_default();
        windows.into_iter().filter(|window| window.handle.is_some()).any(|window| {
            let seen = context.platform.observe(&Scope { window, root: None }, &limits, context.deadline);
            seen.is_ok_and(|seen| seen.needs_activation)
        })
    };
    let may_sleep = |app: &App| app.toolkit.as_ref().is_some_and(|toolkit| toolkit.starts_with("Chromium"));
    for app in context.platform.apps(context.deadline).unwrap_or_default() {
        if app.accessible == Some(true) && may_sleep(&app) && is_asleep(&app) {
            check.state = CheckState::Warning;
            let _ = write!(check.seen, "; {} shows its content to nobody", app.name);
            check.apps.push(AppAdvice { name: app.name, pid: app.pid, advice: ACTIVATION.to_owned() });
        }
    }
}

/// A path and how many more there are.
fn named<'a>(paths: impl ExactSizeIterator<Item = &'a PathBuf>) -> String {
    let count = paths.len();
    let mut names: Vec<String> = paths.take(NAMED).map(|path| path.display().to_string()).collect();
    if count > NAMED {
        names.push(format!("{} more", count - NAMED));
    }
    names.join(", ")
}

/// Where snapshots are kept: whether it can be written, and whether others can read or write it.
fn state_root(context: &Context<'_>, fix: bool) -> Check {
    let (id, why) = ("state_root", "refs and traces are kept there, for this user only");
    let new = |state, seen: String| Check::new(id, why, state, seen);
    let refused = |error: &Error| {
        let check = new(CheckState::Failed, error.message().to_owned());
        match error.get_hint() {
            Some(hint) => check.advise(hint),
            None => check.advise("set AGENT_DESKTOP_HOME to the absolute path of a directory of your own"),
        }
    };
    // A root that others can write is refused everywhere else; here it is looked into.
    let given = context.options.state_root.as_ref().map(PathBuf::from);
    let path = match (given.filter(|path| path.is_absolute()), Store::root_of(context.options)) {
        (Some(path), _) => path.components().collect(),
        (None, Ok(Some(path))) => path,
        (None, Ok(None)) => {
            let seen = "neither AGENT_DESKTOP_HOME nor a home directory is known".to_owned();
            return new(CheckState::Failed, seen).advise("set HOME or AGENT_DESKTOP_HOME");
        }
        (None, Err(error)) => return refused(&error),
    };
    let audit = match Audit::of(&path) {
        Ok(audit) => audit,
        Err(error) => return refused(&error),
    };
    let shown = path.display();
    if !can_write(&path) {
        return new(CheckState::Failed, format!("{shown} cannot be written"))
            .advise("give it to this user, free the disk, or set AGENT_DESKTOP_HOME to another directory");
    }
    match audit {
        None => new(CheckState::Ok, format!("{shown} is not there yet, and can be made")),
        Some(audit) => modes(&path, audit, fix, &new, &refused),
    }
}

fn modes(
    path: &Path,
    audit: Audit,
    fix: bool,
    new: &dyn Fn(CheckState, String) -> Check,
    refused: &dyn Fn(&Error) -> Check,
) -> Check {
    let shown = path.display();
    if !audit.strange.is_empty() {
        let causes: Vec<String> = audit
            .strange
            .iter()
            .take(NAMED)
            .map(|(path, cause)| format!("{}: {cause}", path.display()))
            .collect();
        let state = if audit.is_refused { CheckState::Failed } else { CheckState::Warning };
        return new(state, format!("{} of it may not be ours: {}", audit.strange.len(), causes.join(", ")))
            .advise("look at these and remove them; nothing is changed while they are there");
    }
    if audit.open.is_empty() {
        let cut = if audit.is_cut { "at least " } else { "" };
        return new(CheckState::Ok, format!("{shown}: {cut}{} files and directories, closed to others", audit.count));
    }
    let (count, names, was_refused) = (audit.open.len(), named(audit.open.iter()), audit.is_refused);
    if fix && !audit.is_cut {
        return match audit.repair(path) {
            Ok(after) if after.open.is_empty() && after.strange.is_empty() => {
                let mut check =
                    new(CheckState::Ok, format!("{shown}: {} files and directories, closed to others", after.count));
                check.fixed = Some(format!("modes 0700 and 0600 given to {names}"));
                check
            }
            Ok(after) => {
                let names = named(after.open.iter());
                new(CheckState::Failed, format!("still open to others: {names}")).advise("look at these")
            }
            Err(error) => refused(&error),
        };
    }
    let verb = if was_refused { "write or read" } else { "read" };
    let state = if was_refused { CheckState::Failed } else { CheckState::Warning };
    let mut check = new(state, format!("others can {verb} {count} of it: {names}"));
    check.can_fix = !audit.is_cut;
    check.advise("agent-desktop doctor --fix closes them (0700, files 0600)")
}

/// Locks that somebody holds too long, or left behind.
fn locks(context: &Context<'_>, fix: bool) -> Check {
    let (id, why) = ("locks", "who acts waits for the interaction lock; one that is left or held too long delays everybody");
    let new = |state, seen: String| Check::new(id, why, state, seen);
    let held = match wait_for_lease(context) {
        Ok(held) => held,
        Err(error) => {
            let check = new(CheckState::Failed, error.message().to_owned());
            return check.advise(error.get_hint().unwrap_or("look at XDG_RUNTIME_DIR, where the lock is"));
        }
    };
    if let Holder::Somebody(pid) = held {
        let who = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
        return new(CheckState::Warning, format!("{who} holds the interaction lock all the time"))
            .advise("wait until it is done, or end it if it hangs; the lock goes with it");
    }
    // The state root may have become usable just now.
    let signs =
        Store::for_examination(context.options).and_then(|store| session::dead_signs(&store, fix));
    match signs {
        Ok(0) => new(CheckState::Ok, "nobody holds the interaction lock, nothing was left behind".to_owned()),
        Ok(count) if fix => {
            let mut check = new(CheckState::Ok, "nobody holds the interaction lock".to_owned());
            check.fixed = Some(format!("{count} signs of life of commands that were killed removed"));
            check
        }
        Ok(count) => {
            let seen = format!("{count} signs of life of commands that were killed lie in sessions");
            let mut check = new(CheckState::Warning, seen);
            check.can_fix = true;
            check.advise("they do no harm; agent-desktop doctor --fix removes them")
        }
        // The state root says what is wrong with it.
        Err(error) if matches!(error.code(), ErrorCode::Internal) => {
            new(CheckState::Skipped, error.message().to_owned()).advise("see state_root")
        }
        Err(error) => new(CheckState::Failed, error.message().to_owned()),
    }
}

/// Who holds the lease, for longer than a command that acts holds it.
fn wait_for_lease(context: &Context<'_>) -> Result<Holder> {
    // Who has called us holds it for us.
    if context.options.lease.inherited.is_some() {
        return Ok(Holder::Nobody);
    }
    let patience = context.deadline.within(context.now(), LEASE_PATIENCE);
    loop {
        let holder = lease::holder(&context.options.lease)?;
        if holder == Holder::Nobody || !context.pause_until(patience, LEASE_POLL) {
            return Ok(holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Bench;
    use crate::{Command, execute};
    use serde_json::{Value, json};
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn check<'a>(data: &'a Value, id: &str) -> &'a Value {
        data["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_failed_is_a_result_and_the_process_ends_as_after_a_failure() {
        let bench = Bench::new("doctor-failed");
        for (state, healthy) in [
            (CheckState::Ok, true),
            (CheckState::Warning, true),
            (CheckState::Skipped, true),
            (CheckState::Failed, false),
        ] {
            bench.fake.check.set(state);
            let data = bench.data("doctor", json!({}));
            assert_eq!((&data["healthy"], &check(&data, "bus")["state"]), (&json!(healthy), &json!(state.as_str())));
            let command = Command::decode("doctor", json!({})).unwrap();
            assert_eq!(execute(&command, &bench.fake, &bench.options).ok, healthy);
        }
        assert!(bench.fake.examinations.borrow().iter().all(|one| *one == Examination::Look));
    }

    #[test]
    fn nothing_is_changed_unless_it_is_asked_for() {
        let bench = Bench::new("doctor-fix");
        bench.fake.check.set(CheckState::Warning);
        let data = bench.data("doctor", json!({}));
        assert_eq!(check(&data, "bus")["can_fix"], true);
        assert!(check(&data, "bus").get("fixed").is_none());
        let data = bench.data("doctor", json!({"fix": true}));
        assert_eq!((&check(&data, "bus")["fixed"], &data["counts"]["warning"]), (&json!("switched on"), &json!(0)));
        assert_eq!(*bench.fake.examinations.borrow(), [Examination::Look, Examination::Repair]);
    }

    #[test]
    fn the_self_test_needs_headed_and_the_lease() {
        let mut bench = Bench::new("doctor-proof");
        bench.error("doctor", json!({"self_test": true}), "POLICY_DENIED", None, "not_delivered");
        assert!(bench.fake.examinations.borrow().is_empty());
        bench.options.headed = true;
        let data = bench.data("doctor", json!({"self_test": true}));
        assert_eq!(check(&data, "self_test")["state"], "ok");
        assert_eq!(*bench.fake.examinations.borrow(), [Examination::Look, Examination::Prove]);
        let deadline = agent_desktop_core::Deadline::after(std::time::Instant::now(), Duration::from_secs(9));
        let lease = crate::lease::Lease::take(&bench.options.lease, &bench.fake, deadline).unwrap();
        let data = bench.data("doctor", json!({"self_test": true, "timeout_ms": 3000}));
        assert_eq!(check(&data, "self_test")["state"], "skipped");
        let locks = check(&data, "locks");
        let own = format!("process {} holds", std::process::id());
        assert_eq!(locks["state"], "warning", "{locks}");
        assert!(!Path::new("/proc/locks").exists() || locks["seen"].as_str().unwrap().starts_with(&own), "{locks}");
        assert_eq!(bench.fake.examinations.borrow().last(), Some(&Examination::Look));
        bench.fake.check.set(CheckState::Warning);
        let data = bench.data("doctor", json!({"fix": true}));
        assert!(check(&data, "bus").get("fixed").is_none(), "nothing is changed while somebody else acts");
        drop(lease);
        assert_eq!(check(&bench.data("doctor", json!({})), "locks")["state"], "ok");
    }

    #[test]
    fn a_state_root_is_closed_to_others_only_while_all_of_it_is_ours() {
        let bench = Bench::new("doctor-root");
        let root = bench.folder().join("state");
        let state = |fix: bool| check(&bench.data("doctor", json!({"fix": fix})), "state_root").clone();
        assert_eq!(state(true)["state"], "ok");
        assert!(!root.exists(), "looking at it does not make it");
        bench.data("snapshot", json!({"app": "Mail"}));
        assert_eq!(state(false)["state"], "ok");

        let file = root.join("latest_snapshot_id");
        set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert_eq!((&state(false)["state"], &state(false)["can_fix"]), (&json!("warning"), &json!(true)));
        set_permissions(&root, Permissions::from_mode(0o777)).unwrap();
        bench.error("status", json!({}), "INVALID_ARGS", None, "not_delivered");
        assert_eq!((&state(false)["state"], mode(&root)), (&json!("failed"), 0o777));

        // What others may have put there keeps it as it is.
        symlink("/etc", root.join("link")).unwrap();
        assert_eq!((&state(true)["state"], mode(&root)), (&json!("failed"), 0o777));
        std::fs::remove_file(root.join("link")).unwrap();
        set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        assert_eq!((&state(true)["state"], mode(&root)), (&json!("failed"), 0o777));
        set_permissions(&file, Permissions::from_mode(0o644)).unwrap();

        let fixed = state(true);
        assert_eq!((&fixed["state"], mode(&root), mode(&file)), (&json!("ok"), 0o700, 0o600));
        assert!(fixed["fixed"].is_string());
        bench.data("status", json!({}));
    }

    #[test]
    fn signs_of_life_that_nobody_holds_are_removed_and_others_stay() {
        let bench = Bench::new("doctor-signs");
        let id = bench.data("session", json!({"action": "start"}))["session_id"].as_str().unwrap().to_owned();
        let liveness = bench.folder().join("state/sessions").join(id).join("liveness");
        std::fs::create_dir_all(&liveness).unwrap();
        let old = std::time::SystemTime::now() - Duration::from_secs(3600);
        let make = |name: &str| {
            let file = std::fs::File::create(liveness.join(name)).unwrap();
            file.set_permissions(Permissions::from_mode(0o600)).unwrap();
            file.set_modified(old).unwrap();
            file
        };
        set_permissions(&liveness, Permissions::from_mode(0o700)).unwrap();
        let held = make("1-1-1.lock");
        held.lock().unwrap();
        make("2-2-2.lock");
        make("3-3-3.lock").set_modified(std::time::SystemTime::now()).unwrap();
        let data = bench.data("doctor", json!({}));
        let locks = check(&data, "locks");
        assert_eq!((&locks["state"], &locks["can_fix"]), (&json!("warning"), &json!(true)), "{locks}");
        let data = bench.data("doctor", json!({"fix": true}));
        assert!(check(&data, "locks")["fixed"].as_str().unwrap().starts_with("1 signs"), "{data}");
        let mut left: Vec<_> = std::fs::read_dir(&liveness).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["1-1-1.lock", "3-3-3.lock"]);
        assert_eq!(check(&bench.data("doctor", json!({})), "locks")["state"], "ok");
    }

    #[test]
    fn the_outline_says_what_was_seen_and_only_where_something_is_wrong_why_it_matters() {
        let mut bench = Bench::new("doctor-outline");
        bench.options.format = crate::Format::Outline;
        let text = bench.text("doctor", json!({}));
        assert!(text.starts_with("ok      bus: it answers\nok "), "{text}");
        assert!(text.ends_with("3 ok, 0 warning, 0 failed, 0 skipped"), "{text}");
        bench.fake.check.set(CheckState::Failed);
        let text = bench.text("doctor", json!({}));
        assert!(text.starts_with("failed  bus: it answers\n        applications are read over it\n"), "{text}");
    }
}
