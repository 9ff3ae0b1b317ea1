//! What a session keeps beside its trace: pictures of windows before and after actions, and the refs of snapshots.
//!
//! Only sessions that were started so keep any. A picture is of the very window that the action is in, never of another one
//! or of what covers it; one that cannot be had in time, or has no place left, is skipped with the reason, and never
//! makes an action fail. Unlike the trace this is what was on the screen: files are private, and go with the session.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent_desktop_core::error::{ErrorCode, Fact, Result};
use agent_desktop_core::geometry::Rect;
use agent_desktop_core::platform::{CaptureTarget, Window};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::log;
use crate::picture;
use crate::private_files::Directory;
use crate::resolve::{Loaded, Resolved};
use crate::session::Artifacts;
use crate::targets;
use crate::trace::{self, Field};

/// Pictures of a session.
pub(crate) const MAX_PICTURES: u64 = 200;
/// Bytes of all of them.
pub(crate) const MAX_PICTURE_BYTES: u64 = 128 * 1024 * 1024;
/// Bytes of all copies of refs.
pub(crate) const MAX_MAP_BYTES: u64 = 64 * 1024 * 1024;
/// How long one picture may take.
pub(crate) const CAPTURE: Duration = Duration::from_secs(1);
/// What the picture before an action leaves to the action.
pub(crate) const DISPATCH: Duration = Duration::from_millis(100);
/// How long the ledger is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// The directory of pictures.
pub(crate) const SCREENS: &str = "screens";
/// The directory of copies of refs.
pub(crate) const MAPS: &str = "refmaps";
const LEDGER: &str = ".artifact-usage.json";
const BUDGET: &str = ".artifact-budget.lock";
const MAX_LEDGER: usize = 4096;

/// Whether a name in the trace directory is one of ours.
pub(crate) fn is_ours(name: &str) -> bool {
    [SCREENS, MAPS, LEDGER, BUDGET].contains(&name)
}

/// Why something is not kept.
type Reason = Cow<'static, str>;

/// What is kept so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Ledger {
    screenshots: u64,
    screenshot_bytes: u64,
    refmap_bytes: u64,
}

impl Ledger {
    /// What is said to be kept, or, when that cannot be read, what is there.
    fn open(trace: &Directory) -> Result<Ledger, Reason> {
        let said = trace.read(LEDGER, MAX_LEDGER).ok().flatten();
        if let Some(ledger) = said.and_then(|text| serde_json::from_slice(&text).ok()) {
            return Ok(ledger);
        }
        let sizes = |name: &str| -> Result<(u64, u64)> {
            let Some(directory) = trace.child(name, false)? else { return Ok((0, 0)) };
            let (mut count, mut bytes) = (0, 0);
            for entry in directory.entries()?.iter().filter(|entry| !entry.is_directory) {
                if let Some((_, length)) = directory.open_file(&entry.name)? {
                    count += 1;
                    bytes += length;
                }
            }
            Ok((count, bytes))
        };
        let scan = || -> Result<Ledger> {
            let (screenshots, screenshot_bytes) = sizes(SCREENS)?;
            Ok(Ledger { screenshots, screenshot_bytes, refmap_bytes: sizes(MAPS)?.1 })
        };
        scan().map_err(|_| "scan_failed".into())
    }

    fn write(self, trace: &Directory) -> Result<(), Reason> {
        let text = serde_json::to_vec(&self).unwrap_or_default();
        trace.write(LEDGER, &text, trace, false).map_err(|_| "ledger_failed".into())
    }

    /// Why there can be no picture of so many bytes.
    fn refuses_picture(self, bytes: u64) -> Option<Reason> {
        if self.screenshots >= MAX_PICTURES {
            Some("count_budget".into())
        } else if self.screenshot_bytes + bytes > MAX_PICTURE_BYTES {
            Some("budget".into())
        } else {
            None
        }
    }
}

/// Writes a file of `directory` that `account` finds a place for. The ledger and the file agree whatever happens.
fn keep(
    trace: &Directory,
    directory: &str,
    name: &str,
    bytes: &[u8],
    account: impl FnOnce(&mut Ledger, u64) -> Option<Reason>,
) -> Result<(), Reason> {
    let _lock = trace.lock(BUDGET, LOCK_TIMEOUT).map_err(|_| Reason::from("lock_failed"))?;
    let mut ledger = Ledger::open(trace)?;
    let place =
        trace.child(directory, true).map_err(|error| Reason::from(format!("dir: {}", error.code())))?;
    let place = place.ok_or(Reason::from("dir: INTERNAL"))?;
    let before = place.open_file(name).ok().flatten().map_or(0, |(_, length)| length);
    if let Some(reason) = account(&mut ledger, before) {
        return Err(reason);
    }
    // The ledger first: what is not written then counts too much, never too little.
    ledger.write(trace)?;
    place.write(name, bytes, &place, false).map_err(|_| "write_failed".into())
}

/// The trace directory of a session that keeps artifacts; otherwise why none are kept.
fn place(context: &Context<'_>) -> Result<Directory, Reason> {
    let session = context.session.ok_or(Reason::from("no_session"))?;
    if session.manifest.artifacts != Artifacts::Full || !session.manifest.is_traced() {
        return Err("disabled".into());
    }
    let directory = session.trace_directory(true);
    let directory = directory.map_err(|error| Reason::from(format!("dir: {}", error.code())))?;
    directory.ok_or("dir: INTERNAL".into())
}

/// A picture that was taken.
#[derive(Debug)]
struct Picture {
    /// Path below the trace directory.
    path: String,
    /// What it shows of the desktop, if that is known.
    whole: Option<Rect>,
}

/// The pictures around one action.
#[derive(Debug)]
pub(crate) struct Pictures {
    number: u64,
    /// The picture, or why there is none.
    before: Result<Picture, Reason>,
    /// No picture is ever taken.
    is_off: bool,
}

impl Pictures {
    /// Takes the picture before an action.
    pub(crate) fn before(context: &Context<'_>, loaded: &Loaded) -> Pictures {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let left = context.deadline.remaining(context.now());
        let (before, is_off) = match place(context) {
            Err(reason) => (Err(reason), true),
            Ok(_) if left <= DISPATCH => (Err("dispatch_budget".into()), false),
            Ok(trace) => (
                take(
                    &context.within(CAPTURE.min(left.saturating_sub(DISPATCH))),
                    loaded,
                    &trace,
                    number,
                    "pre",
                ),
                false,
            ),
        };
        Pictures { number, before, is_off }
    }

    /// Takes the picture after an action, if it was sent, and writes to the trace what there is.
    ///
    /// # Errors
    /// Those of [`Context::trace`].
    pub(crate) fn end(self, context: &Context<'_>, loaded: &Loaded, sent: Option<&Resolved>) -> Result<()> {
        let reference = loaded.target.to_string();
        let mut fields = vec![("ref", Field::Text(&reference))];
        if self.is_off {
            fields.extend(self.before.as_ref().err().map(|reason| ("skipped", Field::Text(reason))));
            return context.trace("action.artifacts", &fields);
        }
        let after = sent.map(|_| {
            if context.deadline.has_passed(context.now()) {
                return Err("deadline".into());
            }
            take(&context.within(CAPTURE), loaded, &place(context)?, self.number, "post")
        });
        let whole = self.before.as_ref().ok().and_then(|picture| picture.whole);
        let target = sent.zip(whole).and_then(|(resolved, whole)| part(resolved, whole));
        fields.push(match &self.before {
            Ok(picture) => ("screenshot_pre", Field::Text(&picture.path)),
            Err(reason) => ("skipped_pre", Field::Text(reason)),
        });
        fields.extend(after.as_ref().map(|after| match after {
            Ok(picture) => ("screenshot_post", Field::Text(&picture.path)),
            Err(reason) => ("skipped_post", Field::Text(reason)),
        }));
        fields.extend(target.as_ref().map(|target| ("target", Field::Fact(target))));
        context.trace("action.artifacts", &fields)
    }
}

/// Where the element is in a picture: left, top, width and height, each as a part of the picture's.
fn part(resolved: &Resolved, whole: Rect) -> Option<Fact> {
    let seen: Rect = whole.intersection(&resolved.node.bounds?)?;
    let part = |length: f64, whole: f64| Fact::Float((length / whole * 1e4).round() / 1e4);
    Some(Fact::List(vec![
        part(seen.x - whole.x, whole.width),
        part(seen.y - whole.y, whole.height),
        part(seen.width, whole.width),
        part(seen.height, whole.height),
    ]))
}

fn take(
    context: &Context<'_>,
    loaded: &Loaded,
    trace: &Directory,
    number: u64,
    moment: &str,
) -> Result<Picture, Reason> {
    // Not worth a picture that has no place.
    if let Some(reason) = Ledger::open(trace)?.refuses_picture(0) {
        return Err(reason);
    }
    let failed = |error: agent_desktop_core::Error| -> Reason {
        match error.code() {
            ErrorCode::Timeout => "deadline".into(),
            code => format!("adapter: {code}").into(),
        }
    };
    let windows = context.platform.windows(Some(&loaded.app()), context.deadline).map_err(failed)?;
    let entry = &loaded.entry;
    let is_it = |window: &&Window| {
        window.id == entry.source_window_id
            && window.pid == entry.pid
            && window.process_instance.as_deref() == Some(entry.process_instance.as_str())
    };
    let window = windows.iter().find(is_it).ok_or(Reason::from("exact_target_unavailable"))?;
    let image =
        context.platform.capture(&CaptureTarget::Window(window.clone()), context.deadline).map_err(failed)?;
    // It may have been replaced while the pixels were read.
    targets::recheck(context, window).map_err(|_| Reason::from("exact_target_unavailable"))?;
    let png = picture::encode(&image).map_err(failed)?;
    let name = format!("{}-{number}-{moment}.png", trace::segment());
    keep(trace, SCREENS, &name, &png, |ledger, _| {
        let bytes = png.len() as u64;
        let refused = ledger.refuses_picture(bytes);
        ledger.screenshots += 1;
        ledger.screenshot_bytes += bytes;
        refused
    })?;
    Ok(Picture { path: format!("{SCREENS}/{name}"), whole: Some(image.area) })
}

/// Keeps a copy of the refs of a snapshot, in sessions that keep such.
///
/// # Errors
/// Those of [`Context::trace`].
pub(crate) fn keep_map(context: &Context<'_>, snapshot_id: &str) -> Result<()> {
    let Ok(trace) = place(context) else { return Ok(()) };
    let Ok(Some(text)) = context.store.text(snapshot_id) else { return Ok(()) };
    let kept = keep(&trace, MAPS, &format!("{snapshot_id}.json"), &text, |ledger, before| {
        let bytes = (ledger.refmap_bytes + text.len() as u64).saturating_sub(before);
        ledger.refmap_bytes = bytes;
        (bytes > MAX_MAP_BYTES).then(|| "budget".into())
    });
    let Err(reason) = kept else { return Ok(()) };
    log::debug(format_args!("the refs of {snapshot_id} are not copied: {reason}"));
    context.trace(
        "action.artifacts.refmap_skipped",
        &[("snapshot_id", Field::Text(snapshot_id)), ("skipped", Field::Text(&reason))],
    )
}

/// Removes the snapshots of a session that there are copies of.
///
/// # Errors
/// `INTERNAL` when they cannot be listed or removed.
pub(crate) fn drop_copied(session: &Directory) -> Result<()> {
    let Some(snapshots) = session.child(crate::store::SNAPSHOTS, false)? else { return Ok(()) };
    let maps = session.child(crate::session::TRACE, false)?.map(|trace| trace.child(MAPS, false));
    let Some(maps) = maps.transpose()?.flatten() else { return Ok(()) };
    for entry in snapshots.entries()?.iter().filter(|entry| entry.is_directory) {
        if maps.open_file(&format!("{}.json", entry.name))?.is_some() {
            snapshots.remove_directory(&entry.name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_files::tests::Scratch;

    fn directory(scratch: &Scratch) -> Directory {
        Directory::open(&scratch.0.join("trace"), true).unwrap().unwrap()
    }

    fn add(trace: &Directory, name: &str, bytes: u64) -> Result<(), Reason> {
        keep(trace, SCREENS, name, b"x", |ledger, _| {
            let refused = ledger.refuses_picture(bytes);
            ledger.screenshots += 1;
            ledger.screenshot_bytes += bytes;
            refused
        })
    }

    #[test]
    fn there_is_room_for_so_many_pictures_and_so_many_bytes() {
        let scratch = Scratch::new("budget");
        let trace = directory(&scratch);
        assert_eq!(add(&trace, "a.png", MAX_PICTURE_BYTES), Ok(()));
        assert_eq!(add(&trace, "b.png", 1), Err("budget".into()));
        assert!(!scratch.0.join("trace/screens/b.png").exists());
        Ledger::default().write(&trace).unwrap();
        for number in 0..MAX_PICTURES {
            add(&trace, &format!("{number}.png"), 1).unwrap();
        }
        assert_eq!(add(&trace, "c.png", 1), Err("count_budget".into()));
        assert_eq!(Ledger::open(&trace).unwrap().screenshots, MAX_PICTURES);
    }

    #[test]
    fn a_ledger_that_is_lost_is_counted_anew() {
        let scratch = Scratch::new("ledger");
        let trace = directory(&scratch);
        assert_eq!(Ledger::open(&trace), Ok(Ledger::default()));
        add(&trace, "a.png", 1).unwrap();
        std::fs::write(scratch.0.join("trace").join(LEDGER), "{").unwrap();
        assert_eq!(Ledger::open(&trace), Ok(Ledger { screenshots: 1, screenshot_bytes: 1, refmap_bytes: 0 }));
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let scratch = Scratch::new("skips");
        let trace = directory(&scratch);
        let held = trace.lock(BUDGET, Duration::ZERO).unwrap();
        assert_eq!(add(&trace, "a.png", 1), Err("lock_failed".into()));
        drop(held);
        std::os::unix::fs::symlink("/tmp", scratch.0.join("trace").join(SCREENS)).unwrap();
        assert_eq!(add(&trace, "a.png", 1), Err("scan_failed".into()));
        Ledger::default().write(&trace).unwrap();
        assert_eq!(add(&trace, "a.png", 1), Err("dir: INTERNAL".into()));
        std::fs::remove_file(scratch.0.join("trace").join(SCREENS)).unwrap();
        std::fs::create_dir_all(scratch.0.join("trace").join(SCREENS).join("a.png")).unwrap();
        assert_eq!(add(&trace, "a.png", 1), Err("write_failed".into()));
        std::fs::remove_file(scratch.0.join("trace").join(LEDGER)).unwrap();
        std::fs::create_dir(scratch.0.join("trace").join(LEDGER)).unwrap();
        assert_eq!(add(&trace, "b.png", 1), Err("ledger_failed".into()));
    }
}
