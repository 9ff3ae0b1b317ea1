//! Snapshots on disk: where refs are found again by the next command.
//!
//! The root is `AGENT_DESKTOP_HOME` or `~/.agent-desktop`; a session has a namespace of its own below it. One map a
//! snapshot, written atomically under a lock. What is on disk is checked like foreign input: it may be truncated,
//! replaced, or belong to somebody else. Hardening lives in `private_files`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agent_desktop_core::action::Capability;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::platform::SurfaceKind;
use agent_desktop_core::refs::{self, MAX_MAP_BYTES, RefEntry, RefMap};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Handle, NativeId, NativeIdKind};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::context::Options;
use crate::log;
use crate::private_files::{Directory, is_temporary};
use crate::wire::Bounds;

/// The directory of the maps.
pub(crate) const SNAPSHOTS: &str = "snapshots";
const MAP: &str = "refmap.json";
const SESSIONS: &str = "sessions";
const LATEST: &str = "latest_snapshot_id";
/// The lock of writers.
pub(crate) const LOCK: &str = "refstore.lock";
/// Bytes that the pointer to the latest snapshot may have.
pub(crate) const MAX_LATEST: usize = 65;
/// How long writers wait for each other.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long they wait at least, however little is left of a deadline.
const LAST_MOMENT: Duration = Duration::from_millis(200);
/// More snapshots than this are cut down to [`KEPT`].
pub(crate) const MOST: usize = 128;
pub(crate) const KEPT: usize = 96;
/// Age at which a temporary file counts as left behind.
pub(crate) const ORPHAN: Duration = Duration::from_secs(60);

/// The snapshots of one namespace.
#[derive(Clone, Debug)]
pub struct Store {
    root: Option<PathBuf>,
    session: Option<String>,
    /// By when the command answers that this belongs to.
    until: Option<Instant>,
}

/// Refuses what cannot be the id of a session: 1 to 64 letters, digits, `_` or `-`.
///
/// # Errors
/// `INVALID_ARGS`.
pub fn check_session_id(id: &str) -> Result<()> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=64).contains(&id.len()) && id.bytes().all(is_allowed) {
        Ok(())
    } else {
        Err(Error::invalid("not a session id: it has 1 to 64 letters, digits, _ or -"))
    }
}

impl Store {
    /// The store that the options select. Makes nothing.
    ///
    /// # Errors
    /// `INVALID_ARGS` when `AGENT_DESKTOP_HOME` or the session cannot be used.
    pub fn new(options: &Options) -> Result<Store> {
        let root = Store::root_of(options)?;
        let session = match (&options.session, &options.session_fallback) {
            (Some(session), _) => Some(session.as_str()),
            (None, Some(session)) => {
                Some(session.to_str().ok_or_else(|| Error::invalid("AGENT_DESKTOP_SESSION is not text"))?)
            }
            (None, None) => None,
        };
        if let Some(session) = session {
            check_session_id(session)?;
        }
        Ok(Store { root, session: session.map(str::to_owned), until: None })
    }

    /// The same without a state root where that cannot be used: for who finds out why.
    ///
    /// # Errors
    /// `INVALID_ARGS` when the session cannot be used.
    pub(crate) fn for_examination(options: &Options) -> Result<Store> {
        if Store::root_of(options).is_ok() {
            return Store::new(options);
        }
        let nowhere = Options { state_root: None, user_home: None, ..options.clone() };
        Store::new(&nowhere)
    }

    /// The state root that the options select; `None`: there is no home either.
    ///
    /// # Errors
    /// `INVALID_ARGS` when `AGENT_DESKTOP_HOME` cannot be used.
    pub fn root_of(options: &Options) -> Result<Option<PathBuf>> {
        let Some(given) = &options.state_root else {
            let home = options.user_home.as_ref().filter(|home| home.is_absolute());
            return Ok(home.map(|home| home.join(".agent-desktop")));
        };
        let refuse = |cause: &str| {
            Error::invalid(format!("AGENT_DESKTOP_HOME cannot be used: {cause}"))
                .hint("set it to the absolute path of a directory of your own, or unset it")
        };
        let path = Path::new(given);
        if given.is_empty() {
            return Err(refuse("it is empty"));
        }
        if !path.is_absolute() {
            return Err(refuse("it is not an absolute path"));
        }
        // `components` drops a trailing slash, which would make the system follow a link.
        let path: PathBuf = path.components().collect();
        match Directory::open(&path, false) {
            Ok(_) => Ok(Some(path)),
            Err(error) => Err(match error.get_platform_detail() {
                Some(detail) => refuse(error.message()).platform_detail(detail),
                None => refuse(error.message()),
            }),
        }
    }

    /// The same, for a command that answers by then: what was read in the last moment is still stored.
    #[must_use]
    pub fn until(self, deadline: Instant) -> Store {
        Store { until: Some(deadline), ..self }
    }

    fn lock_timeout(&self) -> Duration {
        let left = self.until.map_or(LOCK_TIMEOUT, |until| until.saturating_duration_since(Instant::now()));
        left.clamp(LAST_MOMENT, LOCK_TIMEOUT)
    }

    /// The state root, if there is one.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The selected session.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    fn root_directory(&self, create: bool) -> Result<Option<Directory>> {
        let root = self.root.as_ref().ok_or_else(|| {
            Error::internal(
                "there is no place for snapshots: neither AGENT_DESKTOP_HOME nor a home directory is known",
            )
            .hint("set AGENT_DESKTOP_HOME to the absolute path of a directory of your own")
            .delivery(Delivery::NotDelivered)
        })?;
        Directory::open(root, create)
    }

    /// The directory of all sessions and namespaces.
    pub(crate) fn sessions(&self, create: bool) -> Result<Option<Directory>> {
        match self.root_directory(create)? {
            Some(root) => root.child(SESSIONS, create),
            None => Ok(None),
        }
    }

    /// The directory of the selected namespace.
    pub(crate) fn base(&self, create: bool) -> Result<Option<Directory>> {
        let Some(mut directory) = self.root_directory(create)? else { return Ok(None) };
        for name in self.session.iter().flat_map(|session| [SESSIONS, session]) {
            match directory.child(name, create)? {
                Some(child) => directory = child,
                None => return Ok(None),
            }
        }
        Ok(Some(directory))
    }

    fn for_writing(&self) -> Result<Directory> {
        self.base(true)?.ok_or_else(|| Error::internal("a directory that was made is not there"))
    }

    /// Stores a new map and makes it the latest.
    ///
    /// # Errors
    /// `INTERNAL` when it cannot be written: then nothing has changed. `TIMEOUT` when other writers do not finish.
    pub fn save(&self, map: &RefMap) -> Result<String> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let text = encode(map)?;
        let base = self.for_writing()?;
        let _lock = base.lock(LOCK, self.lock_timeout())?;
        let snapshots = base
            .child(SNAPSHOTS, true)?
            .ok_or_else(|| Error::internal("a directory that was made is not there"))?;
        let entries = snapshots.entries()?;
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let id = refs::generate_snapshot_id(nanos, std::process::id(), count, |id| {
            entries.iter().any(|entry| entry.name == id)
        });
        let written = snapshots
            .child(&id, true)
            .and_then(|directory| {
                directory.ok_or_else(|| Error::internal("a directory that was made is not there"))
            })
            .and_then(|directory| directory.write(MAP, text.as_bytes(), &snapshots, true));
        if let Err(error) = written {
            let _ = snapshots.remove_directory(&id);
            return Err(error);
        }
        // Only `status` reads the pointer, and the next snapshot writes it anew: not worth a flush to the disk, nor a
        // failure of a snapshot that is stored.
        if let Err(error) = base.write(LATEST, id.as_bytes(), &base, false) {
            log::warn(format_args!("{}", error.message()));
        }
        if let Err(error) = tidy(&base, &snapshots, &id, entries.len() + 1) {
            log::warn(format_args!("old snapshots stay: {}", error.message()));
        }
        Ok(id)
    }

    /// Reads the map of a snapshot.
    ///
    /// # Errors
    /// `INVALID_ARGS` for what is no id, `SNAPSHOT_NOT_FOUND`, `INTERNAL` when the file is not what we wrote.
    pub fn load(&self, id: &str) -> Result<RefMap> {
        let directory = self.snapshot(id)?;
        let text =
            directory.as_ref().map(|directory| directory.read(MAP, MAX_MAP_BYTES)).transpose()?.flatten();
        match (text, directory) {
            (Some(text), Some(directory)) => decode(&text, directory.path()),
            _ => Err(self.not_found(id)),
        }
    }

    /// The map of a snapshot as it is stored, if it is.
    pub(crate) fn text(&self, id: &str) -> Result<Option<Vec<u8>>> {
        self.snapshot(id)?
            .map(|directory| directory.read(MAP, MAX_MAP_BYTES))
            .transpose()
            .map(Option::flatten)
    }

    fn snapshot(&self, id: &str) -> Result<Option<Directory>> {
        refs::check_snapshot_id(id)?;
        let snapshots = self.base(false)?.map(|base| base.child(SNAPSHOTS, false)).transpose()?.flatten();
        snapshots.map(|snapshots| snapshots.child(id, false)).transpose().map(Option::flatten)
    }

    /// Changes the map of a snapshot under the lock. When `change` fails, nothing is written.
    ///
    /// # Errors
    /// As [`Store::load`] and [`Store::save`], and those of `change`.
    pub fn update<T>(&self, id: &str, change: impl FnOnce(&mut RefMap) -> Result<T>) -> Result<T> {
        refs::check_snapshot_id(id)?;
        let Some(base) = self.base(false)? else { return Err(self.not_found(id)) };
        let _lock = base.lock(LOCK, self.lock_timeout())?;
        let Some(snapshots) = base.child(SNAPSHOTS, false)? else { return Err(self.not_found(id)) };
        let Some(directory) = snapshots.child(id, false)? else { return Err(self.not_found(id)) };
        let Some(text) = directory.read(MAP, MAX_MAP_BYTES)? else { return Err(self.not_found(id)) };
        let mut map = decode(&text, directory.path())?;
        let answer = change(&mut map)?;
        directory.write(MAP, encode(&map)?.as_bytes(), &snapshots, true)?;
        Ok(answer)
    }

    /// The latest snapshot of the namespace, if it is still stored.
    ///
    /// # Errors
    /// `INTERNAL` when the store is not safe to read.
    pub fn latest(&self) -> Result<Option<String>> {
        let Some(base) = self.base(false)? else { return Ok(None) };
        let Some(text) = base.read(LATEST, MAX_LATEST)? else { return Ok(None) };
        let id = String::from_utf8(text).unwrap_or_default().trim().to_owned();
        if refs::is_snapshot_id(&id)
            && base.child(SNAPSHOTS, false)?.map(|all| all.child(&id, false)).transpose()?.flatten().is_some()
        {
            Ok(Some(id))
        } else {
            Ok(None)
        }
    }

    fn not_found(&self, id: &str) -> Error {
        let place = match &self.session {
            Some(session) => format!("in session {session}"),
            None => "(no session is selected)".to_owned(),
        };
        Error::new(ErrorCode::SnapshotNotFound, format!("snapshot {id} is not stored {place}"))
            .hint("take a new snapshot; the session must be the one the snapshot was taken in")
    }
}

/// Removes what is old: snapshots above the number kept, temporary files that were left behind.
fn tidy(base: &Directory, snapshots: &Directory, latest: &str, count: usize) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
    for directory in [base, snapshots] {
        for entry in directory.entries()?.iter().filter(|entry| is_temporary(&entry.name)) {
            if now - directory.modified(&entry.name) > ORPHAN.as_nanos() as i128 {
                directory.remove(&entry.name)?;
            }
        }
    }
    if count <= MOST {
        return Ok(());
    }
    let mut all: Vec<(i128, String)> = snapshots
        .entries()?
        .into_iter()
        .filter(|entry| entry.is_directory && entry.name != latest)
        // A drill-down renames its map into the directory, which changes its time: what is used stays.
        .map(|entry| (snapshots.modified(&entry.name), entry.name))
        .collect();
    all.sort_unstable();
    let surplus = (all.len() + 1).saturating_sub(KEPT);
    for (_, name) in all.into_iter().take(surplus) {
        snapshots.remove_directory(&name)?;
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------------------
// The form on disk

#[derive(Serialize, Deserialize)]
struct StoredId<'a> {
    kind: &'a str,
    #[serde(borrow)]
    value: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct StoredEntry<'a> {
    pid: u32,
    #[serde(borrow)]
    process_instance: Cow<'a, str>,
    role: &'a str,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    native_role: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    native_id: Option<StoredId<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bounds: Option<Bounds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bounds_hash: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    states: Vec<&'a str>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    available_actions: Vec<&'a str>,
    #[serde(borrow)]
    source_app: Cow<'a, str>,
    #[serde(borrow)]
    source_window_id: Cow<'a, str>,
    #[serde(borrow, default)]
    source_window_title: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_window_bounds_hash: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_surface: Option<&'a str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    root_ref: Option<Cow<'a, str>>,
    path_is_absolute: bool,
    path: Vec<u32>,
    #[serde(borrow, default)]
    handle: Cow<'a, str>,
}

fn text(text: Option<&String>) -> Option<Cow<'_, str>> {
    text.map(|text| Cow::Borrowed(text.as_str()))
}

impl<'a> From<&'a RefEntry> for StoredEntry<'a> {
    fn from(entry: &'a RefEntry) -> StoredEntry<'a> {
        StoredEntry {
            pid: entry.pid,
            process_instance: entry.process_instance.as_str().into(),
            role: entry.role.as_str(),
            native_role: text(entry.native_role.as_ref()),
            name: text(entry.name.as_ref()),
            value: text(entry.value.as_ref()),
            description: text(entry.description.as_ref()),
            native_id: entry
                .native_id
                .as_ref()
                .map(|id| StoredId { kind: id.kind.as_str(), value: id.value.as_str().into() }),
            bounds: entry.bounds.map(Bounds::from),
            bounds_hash: entry.bounds_hash,
            states: entry.states.iter().map(State::as_str).collect(),
            available_actions: entry.capabilities.iter().map(Capability::as_str).collect(),
            source_app: entry.source_app.as_str().into(),
            source_window_id: entry.source_window_id.as_str().into(),
            source_window_title: entry.source_window_title.as_str().into(),
            source_window_bounds_hash: entry.source_window_bounds_hash,
            source_surface: (entry.source_surface != SurfaceKind::Window)
                .then(|| entry.source_surface.as_json()),
            root_ref: text(entry.root_ref.as_ref()),
            path_is_absolute: entry.path_is_absolute,
            path: entry.path.clone(),
            handle: entry.handle.as_str().into(),
        }
    }
}

impl StoredEntry<'_> {
    /// `None`: a word or a limit is not one of ours.
    fn into_entry(self) -> Option<RefEntry> {
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        let entry = RefEntry {
            pid: self.pid,
            process_instance: self.process_instance.into_owned(),
            role: self.role.parse::<Role>().ok()?,
            native_role: owned(self.native_role),
            name: owned(self.name),
            value: owned(self.value),
            description: owned(self.description),
            native_id: match self.native_id {
                Some(id) => {
                    Some(NativeId { kind: NativeIdKind::parse(id.kind)?, value: id.value.into_owned() })
                }
                None => None,
            },
            bounds: self.bounds.map(Into::into),
            bounds_hash: self.bounds_hash,
            states: self.states.iter().map(|word| State::parse(word)).collect::<Option<_>>()?,
            capabilities: self
                .available_actions
                .iter()
                .map(|word| Capability::parse(word))
                .collect::<Option<_>>()?,
            source_app: self.source_app.into_owned(),
            source_window_id: self.source_window_id.into_owned(),
            source_window_title: self.source_window_title.into_owned(),
            source_window_bounds_hash: self.source_window_bounds_hash,
            source_surface: match self.source_surface {
                Some(word) => SurfaceKind::parse(word)?,
                None => SurfaceKind::Window,
            },
            root_ref: owned(self.root_ref),
            path_is_absolute: self.path_is_absolute,
            path: self.path,
            handle: Handle::new(self.handle.into_owned()),
        };
        entry.is_within_limits().then_some(entry)
    }
}

#[derive(Serialize)]
struct MapOut<'a> {
    inner: InnerOut<'a>,
    counter: u32,
}

struct InnerOut<'a>(&'a BTreeMap<u32, RefEntry>);

impl Serialize for InnerOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (&number, entry) in self.0 {
            map.serialize_entry(&refs::bare(number), &StoredEntry::from(entry))?;
        }
        map.end()
    }
}

#[derive(Deserialize)]
struct MapIn<'a> {
    #[serde(borrow)]
    inner: BTreeMap<&'a str, StoredEntry<'a>>,
    counter: u32,
}

fn encode(map: &RefMap) -> Result<String> {
    let text = serde_json::to_string(&MapOut { inner: InnerOut(&map.entries), counter: map.counter })
        .map_err(|error| {
            Error::internal("the refs cannot be written as JSON").platform_detail(error.to_string())
        })?;
    if text.len() > MAX_MAP_BYTES {
        // Allocation stops before that; only a bug gets here.
        return Err(Error::internal(format!(
            "the refs take {} bytes, {MAX_MAP_BYTES} are allowed",
            text.len()
        )));
    }
    Ok(text)
}

pub(crate) fn decode(bytes: &[u8], place: &Path) -> Result<RefMap> {
    let corrupt = |detail: String| {
        Error::internal(format!("the stored refs in {} are damaged", place.display()))
            .platform_detail(detail)
            .hint("take a new snapshot")
            .delivery(Delivery::NotDelivered)
    };
    let stored: MapIn<'_> = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
    let mut map = RefMap { entries: BTreeMap::new(), counter: stored.counter };
    for (key, entry) in stored.inner {
        let number = refs::parse_bare(key).filter(|&number| number <= stored.counter);
        match (number, entry.into_entry()) {
            (Some(number), Some(entry)) => {
                map.entries.insert(number, entry);
            }
            _ => return Err(corrupt("an entry is not one that this program writes".to_owned())),
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_files::tests::Scratch;
    use agent_desktop_core::action::Capabilities;
    use agent_desktop_core::geometry::Rect;
    use agent_desktop_core::state::States;
    use std::os::unix::fs::symlink;

    fn entry(name: &str) -> RefEntry {
        RefEntry {
            pid: 7,
            process_instance: "p".to_owned(),
            role: Role::CheckBox,
            native_role: None,
            name: Some(name.to_owned()),
            value: Some("1".to_owned()),
            description: None,
            native_id: Some(NativeId { kind: NativeIdKind::AutomationId, value: "id\"\\\n".to_owned() }),
            bounds: Some(Rect::from_pixels(1, 2, 3, 4)),
            bounds_hash: Some(u64::MAX),
            states: States::NONE.with(State::Checked),
            capabilities: Capabilities::NONE.with(Capability::Toggle),
            source_app: "app".to_owned(),
            source_window_id: "w-1".to_owned(),
            source_window_title: "Fenêtre 🙂".to_owned(),
            source_window_bounds_hash: None,
            source_surface: SurfaceKind::Menu,
            root_ref: Some("@e1".to_owned()),
            path_is_absolute: true,
            path: vec![0, 3],
            handle: Handle::new(":1.4/a/b"),
        }
    }

    fn map(names: &[&str]) -> RefMap {
        let entries: BTreeMap<u32, RefEntry> = (1..).zip(names.iter().map(|name| entry(name))).collect();
        RefMap { counter: entries.len() as u32, entries }
    }

    fn store(scratch: &Scratch, session: Option<&str>) -> Store {
        let options = Options {
            state_root: Some(scratch.0.join("root").into_os_string()),
            session: session.map(str::to_owned),
            ..Options::default()
        };
        Store::new(&options).unwrap()
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let scratch = Scratch::new("store");
        let store = store(&scratch, None);
        assert_eq!(store.latest().unwrap(), None);
        assert!(!scratch.0.join("root").exists(), "looking makes nothing");
        let map = map(&["a", "b\u{1}"]);
        let id = store.save(&map).unwrap();
        assert_eq!(store.load(&id).unwrap(), map);
        assert_eq!(store.latest().unwrap(), Some(id));
        assert_eq!(store.load("sgone").unwrap_err().code(), ErrorCode::SnapshotNotFound);
        assert_eq!(store.load("../x").unwrap_err().code(), ErrorCode::InvalidArgs);
    }

    #[test]
    fn the_form_on_disk_is_the_contracts() {
        let text = encode(&map(&["a"])).unwrap();
        let bounds =
            r#""bounds":{"x":1.0,"y":2.0,"width":3.0,"height":4.0},"bounds_hash":18446744073709551615"#;
        assert_eq!(
            text,
            [
                r#"{"inner":{"@e1":{"pid":7,"process_instance":"p","role":"checkbox","name":"a","value":"1","#,
                r#""native_id":{"kind":"automation_id","value":"id\"\\\n"},"#,
                bounds,
                r#","states":["checked"],"available_actions":["Toggle"],"source_app":"app","source_window_id":"w-1","#,
                r#""source_window_title":"Fenêtre 🙂","source_surface":"menu","root_ref":"@e1","#,
                r#""path_is_absolute":true,"path":[0,3],"handle":":1.4/a/b"}},"counter":1}"#
            ]
            .concat()
        );
    }

    #[test]
    fn sessions_are_namespaces() {
        let scratch = Scratch::new("sessions");
        let id = store(&scratch, Some("one")).save(&map(&["a"])).unwrap();
        assert!(store(&scratch, Some("one")).load(&id).is_ok());
        for other in [None, Some("two")] {
            assert_eq!(store(&scratch, other).load(&id).unwrap_err().code(), ErrorCode::SnapshotNotFound);
        }
        for bad in ["", "a/b", "..", "a b", &"x".repeat(65)] {
            let options = Options { session: Some(bad.to_owned()), ..Options::default() };
            assert_eq!(Store::new(&options).unwrap_err().code(), ErrorCode::InvalidArgs, "{bad:?}");
        }
    }

    #[test]
    fn an_update_that_fails_changes_nothing() {
        let scratch = Scratch::new("update");
        let store = store(&scratch, None);
        let id = store.save(&map(&["a"])).unwrap();
        let failed = store.update(&id, |map| {
            map.entries.clear();
            Err::<(), _>(Error::invalid("no"))
        });
        assert!(failed.is_err());
        assert_eq!(store.load(&id).unwrap().entries.len(), 1);
        store
            .update(&id, |map| {
                map.entries.clear();
                Ok(())
            })
            .unwrap();
        assert_eq!(store.load(&id).unwrap().entries.len(), 0);
    }

    #[test]
    fn damaged_oversized_and_foreign_maps_are_refused() {
        let scratch = Scratch::new("damaged");
        let store = store(&scratch, None);
        let id = store.save(&map(&["a"])).unwrap();
        let path = scratch.0.join("root/snapshots").join(&id).join(MAP);
        let whole = std::fs::read_to_string(&path).unwrap();
        let bad = [
            String::new(),
            whole[..whole.len() / 2].to_owned(),
            "null".to_owned(),
            whole.replace("checkbox", "chequebox"),
            whole.replace("@e1\":{", "@e9\":{"),
            whole.replace("\"pid\":7", "\"pid\":0"),
            " ".repeat(MAX_MAP_BYTES + 1),
        ];
        for text in bad {
            std::fs::write(&path, &text).unwrap();
            let error = store.load(&id).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Internal, "{text:.40}");
            assert_eq!(error.get_delivery(), Delivery::NotDelivered);
        }
        std::fs::remove_file(&path).unwrap();
        symlink("/etc/passwd", &path).unwrap();
        assert_eq!(store.load(&id).unwrap_err().code(), ErrorCode::Internal);
    }

    #[test]
    fn the_oldest_go_and_the_latest_stays() {
        let scratch = Scratch::new("retention");
        let store = store(&scratch, None);
        let first = store.save(&map(&["a"])).unwrap();
        let mut last = String::new();
        for _ in 0..MOST {
            last = store.save(&RefMap::default()).unwrap();
        }
        let left = std::fs::read_dir(scratch.0.join("root/snapshots")).unwrap().count();
        assert_eq!(left, KEPT);
        assert_eq!(store.load(&first).unwrap_err().code(), ErrorCode::SnapshotNotFound);
        assert!(store.load(&last).is_ok());
        assert_eq!(store.latest().unwrap(), Some(last));
    }

    #[test]
    fn files_left_behind_are_removed_when_old() {
        let scratch = Scratch::new("orphans");
        let store = store(&scratch, None);
        store.save(&map(&["a"])).unwrap();
        let at = |name: &str| scratch.0.join("root/snapshots").join(name);
        std::fs::write(at(".refmap.json.0.tmp"), "").unwrap();
        std::fs::write(at(".refmap.json.1.tmp"), "").unwrap();
        let old = SystemTime::now() - Duration::from_secs(61);
        std::fs::File::open(at(".refmap.json.0.tmp")).unwrap().set_modified(old).unwrap();
        store.save(&map(&["a"])).unwrap();
        assert!(!at(".refmap.json.0.tmp").exists());
        assert!(at(".refmap.json.1.tmp").exists());
    }

    #[test]
    fn a_state_root_that_cannot_be_used_is_named() {
        let scratch = Scratch::new("root");
        std::fs::write(scratch.0.join("file"), "").unwrap();
        std::fs::create_dir(scratch.0.join("dir")).unwrap();
        symlink(scratch.0.join("dir"), scratch.0.join("link")).unwrap();
        let at = |name: &str| scratch.0.join(name).into_os_string().into_string().unwrap();
        let bad = [
            String::new(),
            "relative".to_owned(),
            at("file"),
            at("file/below"),
            at("link"),
            at("link/"),
            at("dir/.."),
        ];
        for path in bad {
            let options = Options { state_root: Some(path.clone().into()), ..Options::default() };
            assert_eq!(
                Store::new(&options).map_err(|error| error.code()).err(),
                Some(ErrorCode::InvalidArgs),
                "{path}"
            );
        }
        for path in [at("dir"), at("dir/"), at("new/deep")] {
            let options = Options { state_root: Some(path.clone().into()), ..Options::default() };
            assert!(Store::new(&options).is_ok(), "{path}");
        }
        assert!(!scratch.0.join("new").exists());
    }

    /// The test runs itself again where it may mount: in name spaces of its own.
    #[test]
    fn a_full_disk_loses_nothing() {
        const MARK: &str = "AD_TEST_FULL_DISK";
        if std::env::var_os(MARK).is_none() {
            let output = std::process::Command::new("unshare")
                .arg("-rm")
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "store::tests::a_full_disk_loses_nothing", "--nocapture"])
                .env(MARK, "1")
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(String::from_utf8_lossy(&output.stdout).contains("the disk was full"));
            return;
        }
        let scratch = Scratch::new("full");
        let root = scratch.0.join("root");
        std::fs::create_dir(&root).unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k,mode=700", "none"])
            .arg(&root)
            .status()
            .unwrap();
        assert!(mounted.success());
        let store = store(&scratch, None);
        let names: Vec<String> = (0..30).map(|number| format!("element {number}")).collect();
        let map = map(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut saved = Vec::new();
        let error = loop {
            match store.save(&map) {
                Ok(id) => saved.push(id),
                Err(error) => break error,
            }
            assert!(saved.len() < 100, "64 KiB are never full");
        };
        assert_eq!((error.code(), error.get_delivery()), (ErrorCode::Internal, Delivery::NotDelivered));
        assert!(error.get_platform_detail().is_some_and(|detail| detail.contains("o space")), "{error}");
        assert!(error.get_hint().is_some_and(|hint| hint.contains("disk")));
        assert!(!saved.is_empty());
        for id in &saved {
            assert_eq!(store.load(id).unwrap(), map);
        }
        assert_eq!(store.latest().unwrap().as_ref(), saved.last());
        // An update that does not fit leaves the old map.
        let last = saved.last().unwrap();
        let grown = store.update(last, |map| {
            for entry in map.entries.values_mut() {
                entry.description = Some("x".repeat(2000));
            }
            Ok(())
        });
        assert_eq!(grown.unwrap_err().code(), ErrorCode::Internal);
        assert_eq!(store.load(last).unwrap(), map);
        let left = std::fs::read_dir(root.join(SNAPSHOTS)).unwrap().count();
        assert_eq!(left, saved.len(), "nothing half-written is left");
        println!("the disk was full");
    }
}
