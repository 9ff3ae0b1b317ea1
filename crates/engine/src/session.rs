//! Sessions: what belongs to one run of an agent, kept apart from others and removed when it is over.
//!
//! A session is a directory with a manifest. Decided here: what a manifest says, how a command shows that it is at work
//! in a session, and which sessions may be removed. An id without a manifest is a namespace of the store and nothing
//! more. Times are Unix milliseconds; clocks that jump backwards make things look younger than they are, never older.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::artifacts;
use crate::log;
use crate::private_files::{Directory, FileLock};
use crate::store::{self, Store, check_session_id};

/// Bytes that a manifest may have.
pub(crate) const MAX_MANIFEST: usize = 64 * 1024;
/// Bytes that the name of a session may have.
pub(crate) const MAX_NAME: usize = 128;
/// What happened more recently than this keeps a session.
pub(crate) const RECENT: Duration = Duration::from_secs(300);
/// The directory of segments and artifacts.
pub(crate) const TRACE: &str = "trace";
const MANIFEST: &str = "session.json";
const LIVENESS: &str = "liveness";
/// More signs of life than this are searched for those of processes that died.
const MANY: usize = 64;
/// Shared by those who enter a session, held alone by who removes one.
const DOOR: &str = ".door.lock";
/// How a session is called from the moment at which it is to be removed. No id starts with a dot.
const REMOVED: &str = ".removed-";

/// Now.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Whether commands of the session write to its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tracing {
    /// They do, until it ends.
    On,
    /// They do not.
    Off,
}

/// What is kept beside the lines of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Artifacts {
    /// Nothing.
    Events,
    /// Pictures of windows before and after actions, and the refs of snapshots.
    Full,
}

/// What a session says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<u64>,
    pub(crate) trace: Tracing,
    pub(crate) artifacts: Artifacts,
    /// What a later version wrote stays when this one writes.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Manifest {
    fn write(&self, directory: &Directory) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|error| {
            Error::internal("the session cannot be written as JSON").platform_detail(error.to_string())
        })?;
        directory.write(MANIFEST, text.as_bytes(), directory, true)
    }

    /// The manifest in a directory. One that cannot be used counts as none, with a warning.
    fn read(directory: &Directory, id: &str) -> Option<Manifest> {
        let refused = |cause: &str| {
            log::warn(format_args!("{} is not used: {cause}", directory.path().join(MANIFEST).display()));
            None
        };
        match directory.read(MANIFEST, MAX_MANIFEST) {
            Ok(None) => None,
            Ok(Some(text)) => match serde_json::from_slice::<Manifest>(&text) {
                Ok(manifest) if manifest.id == id => Some(manifest),
                Ok(_) => refused("it belongs to another session"),
                Err(error) => refused(&error.to_string()),
            },
            Err(error) => refused(error.message()),
        }
    }

    /// Whether commands write to the trace of the session now.
    pub(crate) fn is_traced(&self) -> bool {
        self.trace == Tracing::On && self.ended_at.is_none()
    }
}

/// A sign that a command is at work in a session; taken away when dropped.
#[derive(Debug)]
struct Life {
    directory: Directory,
    name: String,
    _lock: FileLock,
}

impl Drop for Life {
    fn drop(&mut self) {
        // Left behind it is only a file: its lock goes with the process.
        let _ = self.directory.remove(&self.name);
    }
}

impl Life {
    fn show(session: &Directory) -> Result<Life> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let directory = session
            .child(LIVENESS, true)?
            .ok_or_else(|| Error::internal("a directory that was made is not there"))?;
        Life::tidy(&directory);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{nanos}-{count}.lock", std::process::id());
        let lock = directory.hold(&name)?;
        Ok(Life { directory, name, _lock: lock })
    }

    /// Removes the signs of processes that died, when there are many.
    fn tidy(directory: &Directory) {
        let entries = directory.entries().unwrap_or_default();
        if entries.len() <= MANY {
            return;
        }
        let now = unix_ms();
        for entry in entries.iter().filter(|entry| !entry.is_directory) {
            // A new one may not have its lock yet.
            let age = now.saturating_sub(modified_ms(directory, &entry.name));
            if u128::from(age) > store::ORPHAN.as_millis() && !directory.is_held(&entry.name) {
                let _ = directory.remove(&entry.name);
            }
        }
    }
}

fn modified_ms(directory: &Directory, name: &str) -> u64 {
    u64::try_from(directory.modified(name) / 1_000_000).unwrap_or(0)
}

/// The session that a command runs in.
#[derive(Debug)]
pub struct Session {
    pub(crate) manifest: Manifest,
    pub(crate) directory: Directory,
    _life: Option<Life>,
}

impl Session {
    /// Enters the selected session, if it has a manifest. It is not removed while the value lives.
    pub(crate) fn enter(store: &Store) -> Option<Session> {
        let id = store.session()?;
        let open = || -> Option<(Directory, Manifest)> {
            let directory = store.base(false).ok().flatten()?;
            let manifest = Manifest::read(&directory, id)?;
            Some((directory, manifest))
        };
        open()?;
        let unsure = |error: &Error| {
            log::warn(format_args!("the session may be removed meanwhile: {}", error.message()));
        };
        // Nothing is removed between the look at the manifest and the sign that somebody is here.
        let door = store.sessions(false).and_then(|sessions| {
            sessions.map(|sessions| sessions.share(DOOR, store::LOCK_TIMEOUT)).transpose()
        });
        let (directory, manifest) = open()?;
        let life = match door.and_then(|_door| Life::show(&directory)) {
            Ok(life) => Some(life),
            Err(error) => {
                unsure(&error);
                None
            }
        };
        Some(Session { manifest, directory, _life: life })
    }

    /// The directory of its trace.
    pub(crate) fn trace_directory(&self, create: bool) -> Result<Option<Directory>> {
        self.directory.child(TRACE, create)
    }
}

/// Makes a session. Nothing is selected by that: callers pass the id.
///
/// # Errors
/// `INTERNAL` when it cannot be written.
pub(crate) fn start(
    store: &Store,
    name: Option<String>,
    trace: Tracing,
    artifacts: Artifacts,
) -> Result<Manifest> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let sessions =
        store.sessions(true)?.ok_or_else(|| Error::internal("a directory that was made is not there"))?;
    let created_at = unix_ms();
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let id = format!("run-{created_at}-{}-{count}", std::process::id());
        let Some(directory) = sessions.create(&id)? else { continue };
        let manifest = Manifest { id, name, created_at, ended_at: None, trace, artifacts, rest: Map::new() };
        if let Err(error) = manifest.write(&directory) {
            let _ = sessions.remove_tree(&manifest.id);
            return Err(error);
        }
        return Ok(manifest);
    }
}

/// Ends a session, or says when it ended.
///
/// # Errors
/// `INVALID_ARGS` when there is no such session.
pub(crate) fn end(store: &Store, id: &str) -> Result<u64> {
    check_session_id(id)?;
    let none = || {
        Error::invalid(format!("there is no session {id}"))
            .hint("session list shows them; session start makes one")
            .delivery(Delivery::NotDelivered)
    };
    let Some(directory) =
        store.sessions(false)?.map(|sessions| sessions.child(id, false)).transpose()?.flatten()
    else {
        return Err(none());
    };
    if Manifest::read(&directory, id).is_none() {
        return Err(none());
    }
    let _lock = directory.lock(store::LOCK, store::LOCK_TIMEOUT)?;
    let mut manifest = Manifest::read(&directory, id).ok_or_else(none)?;
    if let Some(ended_at) = manifest.ended_at {
        return Ok(ended_at);
    }
    let ended_at = unix_ms().max(manifest.created_at);
    manifest.ended_at = Some(ended_at);
    manifest.write(&directory)?;
    if manifest.artifacts == Artifacts::Full
        && let Err(error) = artifacts::drop_copied(&directory)
    {
        log::warn(format_args!("snapshots stay beside their copies: {}", error.message()));
    }
    Ok(ended_at)
}

/// Every session, the oldest first.
///
/// # Errors
/// `INTERNAL` when the state root is not safe to read.
pub(crate) fn list(store: &Store) -> Result<Vec<Manifest>> {
    let Some(sessions) = store.sessions(false)? else { return Ok(Vec::new()) };
    let mut all: Vec<Manifest> = Vec::new();
    for entry in sessions.entries()? {
        if check_session_id(&entry.name).is_err() {
            continue;
        }
        match sessions.child(&entry.name, false) {
            Ok(Some(directory)) => all.extend(Manifest::read(&directory, &entry.name)),
            Ok(None) => {}
            Err(error) => log::warn(format_args!("{}", error.message())),
        }
    }
    all.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    Ok(all)
}

/// Which sessions are to be removed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rule {
    /// Only those that ended, or if they never did began, at least so long ago.
    pub(crate) older_than: Option<Duration>,
    /// Only those that ended.
    pub(crate) only_ended: bool,
}

/// When things happened to a session.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_field_names, reason = "the words of the manifest")]
struct Times {
    created_at: u64,
    ended_at: Option<u64>,
    /// A snapshot was stored, or a trace was written.
    touched_at: u64,
}

impl Rule {
    /// Whether a session in which nobody is at work may go. A time in the future is one after which the clock was set
    /// back: nothing is older for that.
    fn applies(self, times: Times, now: u64) -> bool {
        let is_older = |time: u64, age: Duration| u128::from(now.saturating_sub(time)) >= age.as_millis();
        if !is_older(times.touched_at, RECENT) {
            return false;
        }
        match (times.ended_at, self.older_than) {
            (Some(_), None) => true,
            (Some(ended_at), Some(age)) => is_older(ended_at, age),
            (None, Some(age)) if !self.only_ended => is_older(times.created_at, age.max(RECENT)),
            (None, _) => false,
        }
    }
}

fn times(directory: &Directory, manifest: &Manifest) -> Result<Times> {
    let mut touched_at = modified_ms(directory, store::SNAPSHOTS);
    if let Some(trace) = directory.child(TRACE, false)? {
        for entry in trace.entries()? {
            touched_at = touched_at.max(modified_ms(&trace, &entry.name));
        }
    }
    Ok(Times { created_at: manifest.created_at, ended_at: manifest.ended_at, touched_at })
}

/// Whether a session is there and has not ended.
pub(crate) fn is_on(directory: &Directory, id: &str) -> bool {
    Manifest::read(directory, id).is_some_and(|manifest| manifest.ended_at.is_none())
}

/// Whether a command is at work in a session.
fn is_alive(directory: &Directory) -> Result<bool> {
    let Some(liveness) = directory.child(LIVENESS, false)? else { return Ok(false) };
    Ok(liveness.entries()?.iter().any(|entry| liveness.is_held(&entry.name)))
}

/// Signs of life of commands that were ended before they could take them away: nobody holds them, and they are older than
/// it takes to get hold of one. How many there are, or with `remove` were.
///
/// # Errors
/// `INTERNAL` when the state root is not safe to use.
pub(crate) fn dead_signs(store: &Store, remove: bool) -> Result<usize> {
    let Some(sessions) = store.sessions(false)? else { return Ok(0) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
    let mut count = 0;
    for session in sessions.entries()?.iter().filter(|entry| entry.is_directory) {
        let Some(liveness) = sessions
            .child(&session.name, false)?
            .map(|own| own.child(LIVENESS, false))
            .transpose()?
            .flatten()
        else {
            continue;
        };
        for entry in liveness.entries()? {
            let age = now - liveness.modified(&entry.name);
            if age > store::ORPHAN.as_nanos() as i128 && !liveness.is_held(&entry.name) {
                if remove {
                    liveness.remove(&entry.name)?;
                }
                count += 1;
            }
        }
    }
    Ok(count)
}

/// What came of a collection.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) removed: Vec<String>,
    /// Sessions that should have gone, and why they did not.
    pub(crate) failed: Vec<(String, String)>,
}

/// Removes what a rule names, never what is in use.
///
/// # Errors
/// `INTERNAL` when the state root is not safe to use.
pub(crate) fn collect(store: &Store, rule: Rule, now: u64) -> Result<Collected> {
    let mut collected = Collected::default();
    let Some(sessions) = store.sessions(false)? else { return Ok(collected) };
    let mut entries = sessions.entries()?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    for entry in entries {
        let outcome = if entry.name.starts_with(REMOVED) && entry.is_directory {
            // A collection that was ended in the middle.
            sessions.remove_tree(&entry.name).map(|()| false)
        } else if check_session_id(&entry.name).is_err() {
            continue;
        } else if entry.is_link {
            Err(Error::internal("it is a symbolic link"))
        } else {
            collect_one(&sessions, &entry.name, rule, now)
        };
        match outcome {
            Ok(true) => collected.removed.push(entry.name),
            Ok(false) => {}
            Err(error) => {
                log::warn(format_args!("session {} stays: {}", entry.name, error.message()));
                collected.failed.push((entry.name, error.message().to_owned()));
            }
        }
    }
    Ok(collected)
}

fn collect_one(sessions: &Directory, id: &str, rule: Rule, now: u64) -> Result<bool> {
    let Some(directory) = sessions.child(id, false)? else { return Ok(false) };
    let may_go = |directory: &Directory| -> Result<bool> {
        let Some(manifest) = Manifest::read(directory, id) else { return Ok(false) };
        Ok(rule.applies(times(directory, &manifest)?, now) && !is_alive(directory)?)
    };
    if !may_go(&directory)? || directory.is_held(store::LOCK) {
        return Ok(false);
    }
    let name = format!("{REMOVED}{id}");
    {
        // Nobody comes in, and nobody writes, while it loses its name; who came in since is seen.
        let _door = sessions.lock(DOOR, store::LOCK_TIMEOUT)?;
        let Ok(_lock) = directory.lock(store::LOCK, Duration::ZERO) else { return Ok(false) };
        if !may_go(&directory)? {
            return Ok(false);
        }
        if !sessions.rename(id, &name)? {
            // Left by a collection that was ended in the middle.
            sessions.remove_tree(&name)?;
            if !sessions.rename(id, &name)? {
                return Ok(false);
            }
        }
    }
    sessions.remove_tree(&name)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Options;
    use crate::private_files::tests::Scratch;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    const MINUTE: u64 = 60_000;
    const NOW: u64 = 1_700_000_000_000;

    fn store(scratch: &Scratch, session: Option<&str>) -> Store {
        let options = Options {
            state_root: Some(scratch.0.join("root").into_os_string()),
            session: session.map(str::to_owned),
            ..Options::default()
        };
        Store::new(&options).unwrap()
    }

    fn begin(scratch: &Scratch) -> (String, PathBuf) {
        let id = start(&store(scratch, None), None, Tracing::On, Artifacts::Events).unwrap().id;
        let path = scratch.0.join("root/sessions").join(&id);
        (id, path)
    }

    /// Makes a session look as if it had ended so many minutes ago.
    fn age(path: &std::path::Path, id: &str, minutes: u64) {
        let then = unix_ms() - minutes * MINUTE;
        let text = format!(
            r#"{{"id":"{id}","created_at":{then},"ended_at":{then},"trace":"on","artifacts":"events"}}"#
        );
        std::fs::write(path.join(MANIFEST), text).unwrap();
    }

    fn gone(scratch: &Scratch, rule: Rule) -> Vec<String> {
        let collected = collect(&store(scratch, None), rule, unix_ms()).unwrap();
        assert!(collected.failed.is_empty(), "{collected:?}");
        collected.removed
    }

    #[test]
    fn a_session_starts_is_listed_and_ends_once() {
        let scratch = Scratch::new("session");
        let store = store(&scratch, None);
        assert!(list(&store).unwrap().is_empty());
        assert!(!scratch.0.join("root").exists(), "looking makes nothing");
        let one = start(&store, Some("Ä \"one\"".to_owned()), Tracing::On, Artifacts::Full).unwrap();
        let two = start(&store, None, Tracing::Off, Artifacts::Events).unwrap();
        let parts: Vec<&str> = one.id.split('-').collect();
        assert_eq!(parts[0], "run");
        assert_eq!(parts[1], one.created_at.to_string());
        assert_eq!(parts[2], std::process::id().to_string());
        assert_ne!(one.id, two.id);
        assert_eq!(list(&store).unwrap(), [one.clone(), two]);
        let path = scratch.0.join("root/sessions").join(&one.id);
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join(MANIFEST))), (0o700, 0o600));

        let ended_at = end(&store, &one.id).unwrap();
        assert!(ended_at >= one.created_at);
        assert_eq!(end(&store, &one.id).unwrap(), ended_at, "ended once");
        assert!(!list(&store).unwrap()[0].is_traced());
        for id in ["none", "../x", ""] {
            assert!(end(&store, id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn what_is_no_manifest_counts_as_none() {
        let scratch = Scratch::new("manifest");
        let (id, path) = begin(&scratch);
        let file = path.join(MANIFEST);
        let good = std::fs::read_to_string(&file).unwrap();
        let enters = || Session::enter(&store(&scratch, Some(&id))).is_some();
        assert!(enters());
        let bad = [
            String::new(),
            good[..good.len() / 2].to_owned(),
            "null".to_owned(),
            good.replace("\"on\"", "\"perhaps\""),
            good.replace(&id, "other"),
            format!("{good}{}", " ".repeat(MAX_MANIFEST)),
        ];
        for text in bad {
            std::fs::write(&file, &text).unwrap();
            assert!(!enters(), "{text:.60}");
            assert!(list(&store(&scratch, None)).unwrap().is_empty());
            assert!(end(&store(&scratch, None), &id).is_err());
            assert!(gone(&scratch, Rule::default()).is_empty(), "what we did not write is not removed");
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::write(scratch.0.join("elsewhere"), &good).unwrap();
        symlink(scratch.0.join("elsewhere"), &file).unwrap();
        assert!(!enters(), "behind a link");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, &good).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(!enters(), "others can write it");
        assert!(Session::enter(&store(&scratch, None)).is_none());
        assert!(Session::enter(&store(&scratch, Some("namespace"))).is_none());
    }

    #[test]
    fn what_a_later_version_wrote_stays() {
        let scratch = Scratch::new("later");
        let (id, path) = begin(&scratch);
        let file = path.join(MANIFEST);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("{\"id\"", "{\"cursor_overlay\":{\"x\":1},\"id\"")).unwrap();
        end(&store(&scratch, None), &id).unwrap();
        let after: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(after["cursor_overlay"]["x"], 1);
        assert!(after["ended_at"].is_u64());
    }

    #[test]
    fn the_rules_of_the_contract() {
        let old = Times { created_at: NOW - 60 * MINUTE, ended_at: None, touched_at: NOW - 60 * MINUTE };
        let ended = Times { ended_at: Some(NOW - 30 * MINUTE), ..old };
        let plain = Rule::default();
        let older =
            |minutes: u64| Rule { older_than: Some(Duration::from_secs(minutes * 60)), only_ended: false };
        assert!(!plain.applies(old, NOW) && plain.applies(ended, NOW));
        assert!(older(20).applies(ended, NOW) && !older(40).applies(ended, NOW), "by its end");
        assert!(older(40).applies(old, NOW) && !older(70).applies(old, NOW), "by its beginning");
        assert!(!Rule { only_ended: true, ..older(40) }.applies(old, NOW));
        assert!(Rule { only_ended: true, ..older(20) }.applies(ended, NOW));
        for rule in [plain, older(0), older(1)] {
            let touched = Times { touched_at: NOW - 4 * MINUTE, ..ended };
            assert!(!rule.applies(touched, NOW), "written to a moment ago");
            let new = Times { created_at: NOW - 4 * MINUTE, ..old };
            assert!(!rule.applies(new, NOW), "not ended, and young");
        }
    }

    /// The clock was two hours ahead while the session was used, and was then set right.
    #[test]
    fn a_clock_that_jumps_back_removes_nothing() {
        let ahead = NOW + 120 * MINUTE;
        let used = Times { created_at: ahead, ended_at: None, touched_at: ahead };
        let over = Times { ended_at: Some(ahead), ..used };
        for age in [None, Some(Duration::ZERO), Some(Duration::from_secs(3600))] {
            let rule = Rule { older_than: age, only_ended: false };
            assert!(!rule.applies(used, NOW) && !rule.applies(over, NOW), "{age:?}");
            assert!(!rule.applies(used, 0), "not even before 1970");
        }
    }

    #[test]
    fn who_is_at_work_keeps_the_session() {
        let scratch = Scratch::new("alive");
        let (id, path) = begin(&scratch);
        age(&path, &id, 60);
        let at_work = Session::enter(&store(&scratch, Some(&id))).unwrap();
        assert_eq!(std::fs::read_dir(path.join(LIVENESS)).unwrap().count(), 1);
        assert!(gone(&scratch, Rule::default()).is_empty());
        drop(at_work);
        assert_eq!(std::fs::read_dir(path.join(LIVENESS)).unwrap().count(), 0);

        let directory = Directory::open(&path, false).unwrap().unwrap();
        let writing = directory.lock(store::LOCK, Duration::ZERO).unwrap();
        assert!(gone(&scratch, Rule::default()).is_empty(), "its store is being written");
        drop(writing);

        // The sign of a process that died is only a file.
        std::fs::write(path.join(LIVENESS).join("1-1-1.lock"), "").unwrap();
        std::fs::create_dir(path.join(TRACE)).unwrap();
        std::fs::write(path.join(TRACE).join("1-1.jsonl"), "").unwrap();
        assert!(gone(&scratch, Rule::default()).is_empty(), "its trace was just written");
        std::fs::remove_file(path.join(TRACE).join("1-1.jsonl")).unwrap();
        assert_eq!(gone(&scratch, Rule::default()), [id]);
        assert!(!path.exists());
    }

    #[test]
    fn all_of_it_goes_and_nothing_else() {
        let scratch = Scratch::new("all");
        let sessions = scratch.0.join("root/sessions");
        let (id, path) = begin(&scratch);
        for folder in ["snapshots/s1", "trace/screens", "trace/refmaps", "clipboard"] {
            std::fs::create_dir_all(path.join(folder)).unwrap();
            std::fs::write(path.join(folder).join("file"), "x").unwrap();
        }
        std::fs::write(scratch.0.join("precious"), "x").unwrap();
        symlink(&scratch.0, path.join("trace/link")).unwrap();
        age(&path, &id, 60);
        let old = SystemTime::now() - Duration::from_secs(3600);
        for part in ["snapshots", "trace/screens", "trace/refmaps"] {
            std::fs::File::open(path.join(part)).unwrap().set_modified(old).unwrap();
        }
        std::fs::remove_file(path.join("trace/link")).unwrap();
        // A namespace, a link, and what a collection left that was ended in the middle.
        std::fs::create_dir(sessions.join("namespace")).unwrap();
        std::fs::create_dir_all(sessions.join(".removed-run-1/trace")).unwrap();
        symlink(&path, sessions.join("link")).unwrap();
        let collected = collect(&store(&scratch, None), Rule::default(), unix_ms()).unwrap();
        assert_eq!(collected.removed, [id]);
        assert_eq!(collected.failed.len(), 1, "{collected:?}");
        assert_eq!(collected.failed[0].0, "link");
        assert!(scratch.0.join("precious").exists() && sessions.join("namespace").exists());
        assert!(!sessions.join(".removed-run-1").exists());
    }

    #[test]
    fn a_thousand_sessions_go_at_once() {
        let scratch = Scratch::new("thousand");
        let mut kept = Vec::new();
        for number in 0..1000 {
            let (id, path) = begin(&scratch);
            if number % 100 == 0 {
                kept.push(id);
            } else {
                age(&path, &id, 60);
            }
        }
        assert_eq!(gone(&scratch, Rule::default()).len(), 990);
        let left: Vec<String> =
            list(&store(&scratch, None)).unwrap().into_iter().map(|manifest| manifest.id).collect();
        kept.sort_by_key(|id| id.rsplit('-').next().and_then(|count| count.parse::<u64>().ok()));
        assert_eq!(left.len(), 10);
        assert!(kept.iter().all(|id| left.contains(id)));
        assert_eq!(std::fs::read_dir(scratch.0.join("root/sessions")).unwrap().count(), 11, "and the lock");
    }

    /// Many commands begin while everything is collected over and over: none of them loses its session.
    #[test]
    fn a_collection_takes_nobody_by_surprise() {
        let scratch = Scratch::new("race");
        let (id, path) = begin(&scratch);
        age(&path, &id, 60);
        let store = store(&scratch, Some(&id));
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| {
                for _ in 0..300 {
                    if let Some(session) = Session::enter(&store) {
                        assert!(path.join(MANIFEST).exists(), "it is there while we are in it");
                        drop(session);
                    }
                }
            });
            while !entering.is_finished() {
                collect(&store, Rule::default(), unix_ms()).unwrap();
                if !path.exists() {
                    std::fs::create_dir_all(&path).unwrap();
                    age(&path, &id, 60);
                }
            }
        });
    }
}
