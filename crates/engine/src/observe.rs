//! Reading one window or one open surface as a tree.
//!
//! Which window, which surface of it, and what to do when an application has content that it does not publish yet.

use std::time::Duration;

use agent_desktop_core::error::{Error, ErrorCode, Fact, Result, facts};
use agent_desktop_core::outline::{MESSAGE_TEXT, quote};
use agent_desktop_core::platform::{
    App, Limits, Observation, ProcessState, Scope, Stop, Surface, SurfaceKind, Window,
};
use agent_desktop_core::refs::{AllocationContext, MAX_CANDIDATES, MAX_MAP_BYTES};
use agent_desktop_core::tree::Handle;

use crate::context::Context;
use crate::targets;

/// What to do about an application that keeps its content from accessibility until it is told otherwise.
pub const ACTIVATION: &str = "the application shows its content to nobody yet: end it and start it again with the argument \
                              --force-renderer-accessibility (launch NAME --arg=--force-renderer-accessibility), then retry";

/// Bytes of a stored map that are not entries.
const MAP_RESERVE: usize = 1024;
/// First and longest pause before content is looked for again that an application only publishes when somebody reads.
pub(crate) const ACTIVATION_PAUSE: Duration = Duration::from_millis(25);
pub(crate) const MAX_ACTIVATION_PAUSE: Duration = Duration::from_millis(400);

/// How long a window may be on the screen before its tree is there, and the time between two looks.
pub(crate) const TREE_PATIENCE: Duration = Duration::from_millis(500);
const TREE_POLL: Duration = Duration::from_millis(50);

/// What is to be observed.
#[derive(Clone, Debug)]
pub struct Target {
    /// `--app`.
    pub app: Option<String>,
    /// `--window-id`.
    pub window_id: Option<String>,
    /// `--surface`.
    pub surface: SurfaceKind,
    /// `--surface-id`.
    pub surface_id: Option<String>,
}

/// What was observed, and of which window.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The window.
    pub window: Window,
    /// The kind of surface.
    pub surface: SurfaceKind,
    /// The tree.
    pub observation: Observation,
}

/// Parses a surface kind; `window` by default.
///
/// # Errors
/// `INVALID_ARGS`.
pub fn parse_surface(text: Option<&str>) -> Result<SurfaceKind> {
    match text {
        None => Ok(SurfaceKind::Window),
        Some(text) => SurfaceKind::parse(text).ok_or_else(|| {
            let known: Vec<&str> = SurfaceKind::ALL.iter().map(|kind| kind.as_str()).collect();
            Error::invalid("there is no such surface").hint(format!("surfaces: {}", known.join(", ")))
        }),
    }
}

impl Target {
    /// The target that flags name.
    ///
    /// # Errors
    /// `INVALID_ARGS` for an unknown surface.
    pub fn new(app: Option<&str>, window_id: Option<&str>, surface: Option<&str>) -> Result<Target> {
        Ok(Target {
            app: app.map(str::to_owned),
            window_id: window_id.map(str::to_owned),
            surface: parse_surface(surface)?,
            surface_id: None,
        })
    }

    /// The same, of one of the surfaces that are open.
    #[must_use]
    pub fn with_surface_id(mut self, id: Option<&str>) -> Target {
        self.surface_id = id.map(str::to_owned);
        self
    }

    /// Reads it. A part is returned where not all could be read in time.
    ///
    /// # Errors
    /// `APP_NOT_FOUND`, `WINDOW_NOT_FOUND`, `AMBIGUOUS_TARGET`, `ELEMENT_NOT_FOUND` when the surface is not open,
    /// `PLATFORM_NOT_SUPPORTED` for surfaces that this system does not have.
    pub fn observe(&self, context: &Context<'_>, limits: &Limits) -> Result<Observed> {
        let supported = context.platform.supported_surfaces();
        if self.surface != SurfaceKind::Window && !supported.contains(&self.surface) {
            let words: Vec<Fact> = supported.iter().map(|kind| Fact::from(kind.as_json())).collect();
            return Err(Error::new(
                ErrorCode::PlatformNotSupported,
                format!("the surface {} cannot be observed on this system", self.surface.as_str()),
            )
            .detail("requested_surface", self.surface.as_json())
            .detail("supported_surfaces", Fact::List(words)));
        }
        loop {
            match self.observe_once(context, limits) {
                // A window that nobody named and that is gone by now: another one may fit.
                Err(error)
                    if error.code() == ErrorCode::WindowNotFound
                        && error.get_kind() == "window_vanished"
                        && self.window_id.is_none()
                        && context.poll(TREE_POLL) => {}
                outcome => return outcome,
            }
        }
    }

    fn observe_once(&self, context: &Context<'_>, limits: &Limits) -> Result<Observed> {
        let (window, root, surface) = match (self.surface, &self.surface_id) {
            (SurfaceKind::Window | SurfaceKind::Focused, None) => {
                let window = targets::window(context, self.window_id.as_deref(), self.app.as_deref())?;
                (window, None, self.surface)
            }
            _ => self.open_surface(context)?,
        };
        let scope = Scope { window: window.clone(), root };
        let observation = observe(context, &scope, limits).map_err(|error| match error.code() {
            ErrorCode::WindowNotFound => error.kind("window_vanished"),
            _ => error,
        })?;
        Ok(Observed { window, surface, observation })
    }

    fn open_surface(&self, context: &Context<'_>) -> Result<(Window, Option<Handle>, SurfaceKind)> {
        // Whichever window of the application owns it; the contract's looser rule for surfaces.
        let (app, window) = match (&self.window_id, &self.app) {
            (None, Some(name)) => (targets::app(context, name)?, None),
            (id, name) => {
                let window = targets::window(context, id.as_deref(), name.as_deref())?;
                (targets::app_of(context, &window)?, Some(window))
            }
        };
        let mut found = match self.surface {
            SurfaceKind::Window => open_surfaces(context, &app)?,
            kind => context.platform.surfaces(&app, Some(kind), context.deadline)?,
        };
        found.retain(|surface| !surface.is_hidden);
        let surface = match &self.surface_id {
            Some(id) => found.iter().find(|surface| surface.id == *id),
            None => outermost(context, &found)?,
        };
        let Some(surface) = surface else {
            let is_absent = found.is_empty() || self.surface_id.is_some();
            return Err(if is_absent { self.not_open() } else { self.ambiguous(&found) });
        };
        let window = match window {
            Some(window) => window,
            None => any_window(context, &app)?,
        };
        Ok((window, Some(surface.handle.clone()), kind_of(surface)))
    }

    fn not_open(&self) -> Error {
        let what = if self.surface == SurfaceKind::Window { "surface" } else { self.surface.as_str() };
        let message = match &self.surface_id {
            Some(id) => format!("no {what} with the id {} is open", quote(id, MESSAGE_TEXT)),
            None => format!("no {what} is open"),
        };
        Error::new(ErrorCode::ElementNotFound, message).hint("list-surfaces shows what is open")
    }

    fn ambiguous(&self, surfaces: &[Surface]) -> Error {
        let count = surfaces.len();
        let candidates = surfaces.iter().take(MAX_CANDIDATES).map(candidate);
        Error::new(
            ErrorCode::AmbiguousTarget,
            format!("{count} surfaces of kind {} are open", self.surface.as_str()),
        )
        .detail("candidate_count", count)
        .detail("candidates", Fact::List(candidates.collect()))
        .hint("say which with --surface-id")
    }
}

/// A window that may own a surface: the focused one, else a visible one, else the first.
fn any_window(context: &Context<'_>, app: &App) -> Result<Window> {
    let windows = context.platform.windows(Some(app), context.deadline)?;
    let focused = windows.iter().find(|window| window.is_focused);
    let visible = windows.iter().find(|window| window.visible != Some(false));
    let window = focused.or(visible).or(windows.first()).cloned();
    window.ok_or_else(|| Error::new(ErrorCode::WindowNotFound, format!("{} has no window", app.name)))
}

fn candidate(surface: &Surface) -> Fact {
    facts([
        ("id", surface.id.clone().into()),
        ("type", surface.kind.into()),
        ("title", surface.title.clone().unwrap_or_default().into()),
        ("pick", format!("--surface-id {}", surface.id).into()),
    ])
}

fn kind_of(surface: &Surface) -> SurfaceKind {
    match surface.kind {
        "context_menu" => SurfaceKind::Menu,
        word => SurfaceKind::parse(word).unwrap_or(SurfaceKind::Menu),
    }
}

/// Everything transient that is open in an application.
///
/// # Errors
/// Those of the platform.
pub fn open_surfaces(context: &Context<'_>, app: &App) -> Result<Vec<Surface>> {
    let mut surfaces = context.platform.surfaces(app, None, context.deadline)?;
    // A popover may be drawn inside its window, where only a look at the tree finds it.
    for popover in context.platform.surfaces(app, Some(SurfaceKind::Popover), context.deadline)? {
        if !surfaces.iter().any(|surface| surface.handle == popover.handle) {
            surfaces.push(popover);
        }
    }
    Ok(surfaces)
}

/// The only surface, or the one that contains all others, as a menu contains its open submenus.
fn outermost<'a>(context: &Context<'_>, surfaces: &'a [Surface]) -> Result<Option<&'a Surface>> {
    let (first, others) = match surfaces {
        [] => return Ok(None),
        [only] => return Ok(Some(only)),
        [first, others @ ..] => (first, others),
    };
    for other in others {
        if !context.platform.ancestors(&other.handle, context.deadline)?.contains(&first.handle) {
            return Ok(None);
        }
    }
    Ok(Some(first))
}

/// Reads a tree, and waits for content that the application publishes only once somebody reads it.
///
/// # Errors
/// `ACTION_NOT_SUPPORTED` of kind `window_without_accessibility_element`, `APP_UNRESPONSIVE` of kind `app_unresponsive`,
/// and those of the platform.
pub fn observe(context: &Context<'_>, scope: &Scope, limits: &Limits) -> Result<Observation> {
    let with_tree;
    let scope = if scope.root.is_none() && scope.window.handle.is_none() {
        with_tree = Scope { window: wait_for_tree(context, &scope.window, limits)?, root: None };
        &with_tree
    } else {
        scope
    };
    let mut pause = ACTIVATION_PAUSE;
    // Keep the last part of the time for an answer: an empty page is one too.
    let patience = context.deadline.within(context.now(), context.deadline.remaining(context.now()) * 2 / 3);
    loop {
        let observation = context.platform.observe(scope, limits, context.deadline)?;
        if !observation.needs_activation || context.is_single_attempt || !context.pause_until(patience, pause)
        {
            return Ok(observation);
        }
        pause = (pause * 2).min(MAX_ACTIVATION_PAUSE);
    }
}

/// Waits a moment for the tree of a window that is on the screen already: an application that starts tells the window
/// system first.
fn wait_for_tree(context: &Context<'_>, window: &Window, limits: &Limits) -> Result<Window> {
    let patience = context.deadline.within(context.now(), TREE_PATIENCE);
    let mut is_silent = window.accessible.is_none();
    loop {
        let state = context.platform.process_state(window.pid, window.process_instance.as_deref());
        if state == ProcessState::Unresponsive {
            return Err(Error::new(
                ErrorCode::AppUnresponsive,
                format!("{} (pid {}) does not answer: its process is stopped", window.app_name, window.pid),
            )
            .kind("app_unresponsive")
            .detail("process_state", facts([("state", "unresponsive".into())]))
            .retryable(false)
            .hint("let the application run again, then retry"));
        }
        if context.is_single_attempt || !context.pause_until(patience, TREE_POLL) {
            break;
        }
        let live = targets::recheck(context, window)?;
        is_silent = live.accessible.is_none();
        if live.handle.is_some() {
            return Ok(live);
        }
    }
    // An application that hangs has no tree either; the platform knows who did not answer.
    let scope = Scope { window: window.clone(), root: None };
    if let Err(error) = context.platform.observe(&scope, limits, context.deadline)
        && error.code() == ErrorCode::AppUnresponsive
    {
        return Err(error);
    }
    if context.deadline.has_passed(context.now()) {
        return Err(Error::new(ErrorCode::Timeout, format!("window {} was not read in time", window.id))
            .kind("deadline")
            .detail("timeout_ms", context.deadline.budget().as_millis() as u64)
            .hint("allow more time with --timeout-ms"));
    }
    if is_silent {
        return Err(Error::new(
            ErrorCode::AppUnresponsive,
            format!(
                "{} (pid {}) does not answer: its window {} cannot be read",
                window.app_name, window.pid, window.id
            ),
        )
        .kind("app_unresponsive")
        .hint("see whether the application hangs; once it answers, retry"));
    }
    Err(Error::new(
        ErrorCode::ActionNotSupported,
        format!("window {} has no accessibility tree: its content cannot be read", window.id),
    )
    .kind("window_without_accessibility_element")
    .hint("screenshot --window-id shows it; the application may need a switch or a restart to become accessible"))
}

impl Observed {
    /// What refs of this observation remember beside their nodes.
    pub fn allocation(&self, include_bounds: bool) -> AllocationContext {
        allocation(&self.window, self.surface, include_bounds)
    }
}

/// What refs remember beside their nodes.
pub fn allocation(window: &Window, surface: SurfaceKind, include_bounds: bool) -> AllocationContext {
    AllocationContext {
        pid: window.pid,
        process_instance: window.process_instance.clone().unwrap_or_default(),
        source_app: window.app_name.clone(),
        source_window_id: window.id.clone(),
        source_window_title: window.title.clone(),
        source_window_bounds_hash: window.bounds.map(|bounds| bounds.stable_hash()),
        source_surface: surface,
        include_bounds,
        byte_budget: MAX_MAP_BYTES - MAP_RESERVE,
    }
}

/// What stopped an observation, in a word.
pub const fn stop_word(stop: Stop) -> &'static str {
    match stop {
        Stop::Deadline => "deadline",
        Stop::Limit(limit) => limit,
        Stop::Gone => "application_gone",
        Stop::Unreadable => "unreadable",
    }
}
