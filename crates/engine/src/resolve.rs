//! From a ref back to the very element it was given for.
//!
//! The rules are core's; here is the order in which the platform is asked: the process, the window, the stored handle,
//! and only if that fails the whole window. Nothing approximate is ever returned.

use std::cell::Cell;
use std::time::Duration;

use agent_desktop_core::deadline::Deadline;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result, facts};
use agent_desktop_core::platform::{App, Limits, ProcessState, Scope, SurfaceKind, Window};
use agent_desktop_core::refs::{self, Fast, RefEntry, RefMap, RefTarget, Resolution, Stale, subject};
use agent_desktop_core::tree::{Handle, Node};

use crate::audit::Target;
use crate::context::Context;
use crate::trace::{self, Field};

/// Longest time one attempt to resolve may take.
pub(crate) const ATTEMPT: Duration = Duration::from_millis(750);
/// Pause before the windows are listed again when one is missing.
const MISSING: Duration = Duration::from_millis(60);
/// Pause before an attempt that could not read enough is made again.
pub(crate) const RETRY: Duration = Duration::from_millis(25);

/// A ref with what the store knows of it.
#[derive(Debug)]
pub struct Loaded {
    /// The ref.
    pub target: RefTarget,
    /// What was remembered of the element.
    pub entry: RefEntry,
    /// The map it stands in.
    pub map: RefMap,
    /// Whether the trace says already that the element was found.
    is_told: Cell<bool>,
}

/// The living element of a ref.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The element, as it was just read.
    pub node: Node,
    /// Where it is.
    pub handle: Handle,
    /// The window it is in.
    pub window: Window,
    /// All windows of its application.
    pub windows: Vec<Window>,
}

/// Reads a ref and its entry from the store.
///
/// # Errors
/// `INVALID_ARGS` for what is no ref, `SNAPSHOT_NOT_FOUND`, `STALE_REF` for a number the snapshot does not have.
pub fn load(context: &Context<'_>, reference: &str, snapshot: Option<&str>) -> Result<Loaded> {
    let target = RefTarget::parse(reference, snapshot)?;
    let name = target.to_string();
    context.trace(
        "ref.resolve.start",
        &[("ref", Field::Text(&name)), ("snapshot_id", Field::Text(&target.snapshot_id))],
    )?;
    let (entry, map) = match look_up(context, &target) {
        Ok(found) => found,
        Err(error) => {
            trace_error(context, &target, &error)?;
            return Err(error);
        }
    };
    context.trace(
        "ref.resolve.entry",
        &[
            ("ref", Field::Text(&name)),
            ("pid", Field::Number(entry.pid.into())),
            ("role", Field::Text(entry.role.as_str())),
            ("name", Field::Screen(entry.name.as_deref().unwrap_or(""))),
        ],
    )?;
    context.audit.note(Target::element(&entry.source_app, entry.pid, &entry.source_window_id, name));
    Ok(Loaded { target, entry, map, is_told: Cell::new(false) })
}

fn look_up(context: &Context<'_>, target: &RefTarget) -> Result<(RefEntry, RefMap)> {
    let map = context.store.load(&target.snapshot_id)?;
    let entry = map.entries.get(&target.number).cloned();
    entry.map(|entry| (entry, map)).ok_or_else(|| Stale::NotInSnapshot.error(target, None))
}

/// What was remembered of the element of a ref that was resolved before.
///
/// # Errors
/// As [`load`].
pub fn entry(context: &Context<'_>, reference: &str, snapshot: Option<&str>) -> Result<RefEntry> {
    look_up(context, &RefTarget::parse(reference, snapshot)?).map(|(entry, _)| entry)
}

fn trace_error(context: &Context<'_>, target: &RefTarget, error: &Error) -> Result<()> {
    let name = target.to_string();
    let mut fields = vec![("ref", Field::Text(&name)), ("snapshot_id", Field::Text(&target.snapshot_id))];
    fields.extend(trace::failure(error));
    context.trace("ref.resolve.error", &fields)
}

impl Loaded {
    /// Writes to the trace that the element was found, once, or why it was not.
    ///
    /// # Errors
    /// Those of [`Context::trace`].
    pub fn tell<T>(&self, context: &Context<'_>, outcome: &Result<T>) -> Result<()> {
        match outcome {
            Ok(_) if self.is_told.replace(true) => Ok(()),
            Ok(_) => context.trace("ref.resolve.ok", &[("ref", Field::Text(&self.target.to_string()))]),
            Err(error) => trace_error(context, &self.target, error),
        }
    }

    /// `e12 (button "Save")`.
    pub fn subject(&self) -> String {
        subject(&self.target, Some(&self.entry))
    }

    /// The application the element belongs to, as far as the entry knows it.
    pub fn app(&self) -> App {
        App {
            name: self.entry.source_app.clone(),
            pid: self.entry.pid,
            process_instance: Some(self.entry.process_instance.clone()),
            application_id: None,
            presentation: None,
            toolkit: None,
            handle: None,
            accessible: Some(true),
        }
    }

    fn process_error(&self, context: &Context<'_>) -> Option<Error> {
        let (error, state) =
            match context.platform.process_state(self.entry.pid, Some(&self.entry.process_instance)) {
                ProcessState::Running => return None,
                ProcessState::Exited => (Stale::Restarted.error(&self.target, Some(&self.entry)), "exited"),
                ProcessState::Unresponsive => (
                    Error::new(
                        ErrorCode::AppUnresponsive,
                        format!("{} cannot be reached: its process is stopped", self.subject()),
                    )
                    .kind("app_unresponsive")
                    .retryable(false)
                    .hint("let the application run again, then retry"),
                    "unresponsive",
                ),
            };
        Some(error.detail("process_state", facts([("state", state.into())])).delivery(Delivery::NotDelivered))
    }
}

/// Finds the element, once.
///
/// Cost: the windows of the application, one wave for the element; the whole window only if its handle does not lead to
/// it.
///
/// # Errors
/// `STALE_REF` with the reason, `AMBIGUOUS_TARGET` with candidates, `APP_UNRESPONSIVE`; passing ones are retryable.
pub fn attempt(context: &Context<'_>, loaded: &Loaded, deadline: Deadline) -> Result<Resolved> {
    let Loaded { target, entry, map, .. } = loaded;
    if let Some(error) = loaded.process_error(context) {
        return Err(error);
    }
    let deadline = deadline.within(context.now(), ATTEMPT.max(deadline.budget() / 4));
    let locate = |windows: &[Window]| {
        let is_it = |window: &&Window| {
            window.id == entry.source_window_id
                && window.process_instance.as_deref() == Some(entry.process_instance.as_str())
        };
        windows.iter().find(is_it).cloned().or_else(|| {
            // A menu or dialog may have come up with any window of its application.
            (entry.source_surface != SurfaceKind::Window)
                .then(|| windows.iter().find(|window| window.is_focused).or(windows.first()).cloned())
                .flatten()
        })
    };
    let mut windows = context.platform.windows(Some(&loaded.app()), deadline)?;
    let mut window = locate(&windows);
    if window.is_none() && context.pause(MISSING) {
        // A list that was read while windows came and went, or in a hurry, may lack one: gone is said of none that was
        // missed once.
        windows = context.platform.windows(Some(&loaded.app()), context.deadline)?;
        window = locate(&windows);
    }
    if window.is_none() {
        // The same window may go by another id: without a display server, or because it was not on the screen yet. The
        // element itself knows which one it is in.
        let above = context.platform.ancestors(&entry.handle, deadline)?;
        window = windows
            .iter()
            .find(|window| {
                window.process_instance.as_deref() == Some(entry.process_instance.as_str())
                    && window
                        .handle
                        .as_ref()
                        .is_some_and(|root| above.contains(root) || *root == entry.handle)
            })
            .cloned();
    }
    let Some(window) = window else {
        return Err(Error::new(
            ErrorCode::StaleRef,
            format!("{} is stale: its window is closed", subject(target, Some(entry))),
        )
        .kind("resolution_complete_absence")
        .detail("reason", "window_closed")
        .detail("process_state", facts([("state", "running".into())]))
        .retryable(false)
        .hint("take a new snapshot and use the ref it gives"));
    };
    let reading =
        context.platform.read(std::slice::from_ref(&entry.handle), &window, deadline)?.into_iter().next();
    let reading = reading.ok_or_else(|| Error::internal("the platform read nothing"))?;
    let change = match (refs::resolve_fast(entry, &reading), reading) {
        (Fast::Found, agent_desktop_core::platform::Reading::Live(node)) => {
            return Ok(Resolved { node: *node, handle: entry.handle.clone(), window, windows });
        }
        (Fast::Unanswered, _) => {
            return Err(loaded.process_error(context).unwrap_or_else(|| {
                Error::new(
                    ErrorCode::AppUnresponsive,
                    format!("{} cannot be reached: its application does not answer", loaded.subject()),
                )
                .kind("app_unresponsive")
                .retryable(true)
                .hint("wait until the application answers, then retry")
                .delivery(Delivery::NotDelivered)
            }));
        }
        (Fast::Search(change), _) => change,
        (Fast::Found, _) => None,
    };
    let scope = Scope { window: window.clone(), root: None };
    let limits = Limits { max_depth: 50, include_hidden: true, ..Limits::default() };
    let observation = context.platform.observe(&scope, &limits, deadline)?;
    let is_complete = observation.stopped.is_none();
    let resolution =
        refs::search(entry, &observation.tree, is_complete, true, |node| map.is_claimed(node, target.number));
    if let Resolution::Found(id, _) = resolution {
        let node = observation.tree.node(id).clone();
        return Ok(Resolved { handle: node.handle.clone(), node, window, windows });
    }
    // What lives at the handle now tells more than that the element is gone.
    let resolution = match (resolution, change) {
        (Resolution::Stale(Stale::Removed), Some(change)) => Resolution::Stale(Stale::Changed(change)),
        (resolution, _) => resolution,
    };
    let error = resolution
        .error(target, entry, &observation.tree)
        .unwrap_or_else(|| Error::internal("the element was found and lost"));
    Err(if error.code() == ErrorCode::StaleRef {
        error.detail("process_state", facts([("state", "running".into())]))
    } else {
        error
    })
}

/// Finds the element; attempts that could not read enough are made again until the deadline.
///
/// # Errors
/// As [`attempt`].
pub fn resolve(context: &Context<'_>, loaded: &Loaded) -> Result<Resolved> {
    loop {
        match attempt(context, loaded, context.deadline) {
            Err(error)
                if error.is_retryable()
                    && error.code() == ErrorCode::AppUnresponsive
                    && !context.is_single_attempt
                    && context.pause(RETRY) => {}
            outcome => {
                loaded.tell(context, &outcome)?;
                return outcome;
            }
        }
    }
}
