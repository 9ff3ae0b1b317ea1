//! `launch`: start an application and wait for its window.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result, facts};
use agent_desktop_core::platform::{App, LaunchRequest, Launched, ProcessState, Window};
use agent_desktop_core::query::fold;
use serde::{Deserialize, Serialize};

use super::{Reply, Run, focus_window};
use crate::act;
use crate::audit::Target;
use crate::context::{Context, Options};
use crate::targets;
use crate::wire::WindowData;

/// How long a launch may take when nobody says, in milliseconds.
pub const LAUNCH_MS: u64 = 30_000;
/// Time between two looks for the window, at first and at most.
pub(crate) const POLL: Duration = Duration::from_millis(25);
pub(crate) const MAX_POLL: Duration = Duration::from_millis(250);
/// How long a window may take to appear after the started process has ended: many commands hand over to a process that
/// already runs, or that they start themselves.
pub(crate) const HANDOVER: Duration = Duration::from_secs(5);
/// How long a window may be there before its tree is.
const ACCESSIBLE: Duration = Duration::from_secs(5);
/// How long a window of an unknown new process must have been there to count as that of what was started.
pub(crate) const SETTLED: Duration = Duration::from_millis(1500);
/// Arguments and variables, each at most this many, and all of them together at most this many bytes.
pub(crate) const MAX_ITEMS: usize = 256;
pub(crate) const MAX_BYTES: usize = 1024 * 1024;

/// Start an application, or find it running, and wait for its window.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Launch {
    /// Name of an application, of its desktop entry, or of an executable.
    #[cfg_attr(feature = "clap", arg(value_name = "APP"))]
    pub app: String,
    /// How many milliseconds all of it may take; 0: do not wait for a window [default: 30000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout: Option<u64>,
    /// Fail if no window appears in time, instead of answering without one.
    #[cfg_attr(feature = "clap", arg(long))]
    pub wait: bool,
    /// Argument for the application; may be repeated.
    #[cfg_attr(feature = "clap", arg(long = "arg", value_name = "ARG", allow_hyphen_values = true))]
    #[serde(rename = "arg", alias = "args")]
    pub args: Vec<String>,
    /// Variable for its environment; may be repeated.
    #[cfg_attr(feature = "clap", arg(long, value_name = "KEY=VALUE"))]
    pub env: Vec<String>,
    /// Its working directory.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub cwd: Option<PathBuf>,
    /// Start another instance even if one is running.
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_attach: bool,
    /// Bring its window to the front and give it the keyboard.
    #[cfg_attr(feature = "clap", arg(long))]
    pub activate: bool,
}

/// What runs now.
#[derive(Clone, Debug, Serialize)]
pub struct LaunchReply {
    app: String,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<WindowData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
}

impl Reply for LaunchReply {
    fn outline(&self) -> Option<String> {
        Some(match &self.window {
            Some(window) => window.outline(),
            None => format!("{} pid {}, no window yet", self.app, self.pid),
        })
    }
}

/// What was there before the start, to tell what is new.
struct Before {
    windows: Vec<String>,
    processes: Vec<(u32, Option<String>)>,
}

impl Launch {
    fn environment(&self) -> Result<Vec<(String, String)>> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (index, pair) in self.env.iter().enumerate() {
            // Values are often secrets: messages name the position only.
            let wrong = |cause: &str| Error::invalid(format!("--env number {} {cause}", index + 1));
            let (key, value) = pair.split_once('=').ok_or_else(|| wrong("is not KEY=VALUE"))?;
            let mut bytes = key.bytes();
            let starts_well = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
            if !starts_well || !bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(wrong("has a name that is not letters, digits and _"));
            }
            if pairs.iter().any(|(other, _)| other == key) {
                return Err(wrong("sets a name a second time"));
            }
            pairs.push((key.to_owned(), value.to_owned()));
        }
        Ok(pairs)
    }

    /// The running instance to attach to, if that is wanted and there is one.
    fn running(&self, context: &Context<'_>) -> Result<Option<App>> {
        if self.no_attach {
            return Ok(None);
        }
        let running = context.platform.apps(context.deadline)?;
        // By the name it goes by, else as what would be started: a desktop entry has an id and a name of its own.
        let mut apps = targets::named(running.clone(), &self.app);
        if apps.is_empty() {
            apps = context.platform.instances(&self.app, &running);
        }
        if apps.is_empty() { Ok(None) } else { targets::one_app(apps, &self.app).map(Some) }
    }

    fn attach(&self, context: &Context<'_>, app: &App) -> Result<LaunchReply> {
        let window = if self.activate {
            let window = Launch::window_of_running(context, app)?;
            if let Some(window) = &window {
                let _lease = context.take_lease()?;
                Some(focus_window::focus(context, window)?)
            } else {
                None
            }
        } else {
            // A help to the caller; the application runs with or without it.
            context
                .platform
                .windows(Some(app), context.deadline)
                .and_then(|windows| targets::one_window(windows, "it has"))
                .ok()
        };
        let is_unused = !self.args.is_empty() || !self.env.is_empty() || self.cwd.is_some();
        Ok(LaunchReply {
            app: app.name.clone(),
            pid: app.pid,
            process_instance: app.process_instance.clone(),
            window: window.as_ref().map(WindowData::from),
            suggestion: is_unused.then(|| {
                "it was already running, so arguments, environment and directory were not used; --no-attach starts another instance"
                    .to_owned()
            }),
        })
    }

    fn window_of_running(context: &Context<'_>, app: &App) -> Result<Option<Window>> {
        let mut poll = POLL;
        loop {
            let windows = context.platform.windows(Some(app), context.deadline)?;
            if !windows.is_empty() {
                return targets::one_window(windows, &format!("{} has", app.name)).map(Some);
            }
            if context.is_single_attempt || !context.pause(poll) {
                return Ok(None);
            }
            poll = (poll * 3 / 2).min(MAX_POLL);
        }
    }

    fn before(context: &Context<'_>) -> Result<Before> {
        let windows = context.platform.windows(None, context.deadline)?;
        let apps = context.platform.apps(context.deadline)?;
        let processes = windows
            .iter()
            .map(|window| (window.pid, window.process_instance.clone()))
            .chain(apps.into_iter().map(|app| (app.pid, app.process_instance)))
            .collect();
        Ok(Before { windows: windows.into_iter().map(|window| window.id).collect(), processes })
    }

    /// The new window that belongs to what was started.
    fn new_window(
        &self,
        context: &Context<'_>,
        launched: &Launched,
        before: &Before,
        stranger_since: &mut Option<Instant>,
    ) -> Result<Option<Window>> {
        let mut windows = context.platform.windows(None, context.deadline)?;
        windows.retain(|window| !before.windows.contains(&window.id) && window.visible != Some(false));
        let names = [fold(&launched.name), fold(&self.app)];
        let by_process = |window: &&Window| window.pid == launched.pid;
        // A window of another process is taken for what was started where that has handed over to it, or started it.
        let state = context.platform.process_state(launched.pid, launched.process_instance.as_deref());
        let by_name = |window: &&Window| {
            names.contains(&fold(&window.app_name))
                && (state == ProcessState::Exited || context.platform.comes_from(window.pid, launched))
        };
        let rules: [&dyn Fn(&&Window) -> bool; 2] = [&by_process, &by_name];
        for rule in rules {
            let found: Vec<&Window> = windows.iter().filter(rule).collect();
            // A splash screen and a main window, both of what was started: the one in front, else the first listed.
            if let Some(window) = found.iter().find(|window| window.is_focused).or(found.first()) {
                return Ok(Some((*window).clone()));
            }
        }
        // What was started may be a script, whose child has another number and another name. A single new process with a
        // window is taken for that child once it has been there for a while and nothing fits better.
        windows.retain(|window| {
            !before.processes.contains(&(window.pid, window.process_instance.clone()))
                && context.platform.comes_from(window.pid, launched)
        });
        let is_one_process = windows.windows(2).all(|pair| pair[0].pid == pair[1].pid);
        match windows.into_iter().next() {
            Some(window) if is_one_process => {
                let since = *stranger_since.get_or_insert_with(|| context.now());
                let is_settled = context.now().saturating_duration_since(since) >= SETTLED;
                Ok(Some(window).filter(|_| is_settled))
            }
            _ => {
                *stranger_since = None;
                Ok(None)
            }
        }
    }

    fn wait_for_window(&self, context: &Context<'_>, launched: &Launched, before: &Before) -> Result<Option<Window>> {
        let mut poll = POLL;
        let mut ended = None;
        let mut last_error = None;
        // What the last look saw that was not cut off, and when.
        let mut seen = None;
        let mut seen_at = None;
        let mut stranger_since = None;
        let mut mute_since = None;
        loop {
            match self.new_window(context, launched, before, &mut stranger_since) {
                Ok(window) => {
                    if let Some(window) = &window {
                        // The window system shows a window before the application has told the accessibility bus about
                        // it; what comes next is usually a snapshot.
                        let since = *mute_since.get_or_insert_with(|| context.now());
                        let is_patient = context.now().saturating_duration_since(since) < ACCESSIBLE;
                        if window.handle.is_some() || !is_patient {
                            return Ok(Some(window.clone()));
                        }
                    }
                    seen = window;
                    seen_at = Some(context.now());
                    last_error = None;
                }
                Err(error) if seen_at.is_some_and(|at| act::outlives(context, at, &error)) => {}
                // An application that is starting is often mute for a moment.
                Err(error) => last_error = Some(error),
            }
            let state = context.platform.process_state(launched.pid, launched.process_instance.as_deref());
            let mut is_over = false;
            if state == ProcessState::Exited {
                let since = *ended.get_or_insert_with(|| context.now());
                is_over = context.now().saturating_duration_since(since) >= HANDOVER;
            }
            if is_over || !context.pause(poll) {
                return match last_error {
                    _ if seen.is_some() => Ok(seen),
                    _ if ended.is_some() => Err(ended_without_window(launched)),
                    Some(error) => Err(error.delivery(Delivery::Unverified)),
                    None => Ok(None),
                };
            }
            poll = (poll * 3 / 2).min(MAX_POLL);
        }
    }
}

/// What was started is gone, and nothing is there instead.
fn ended_without_window(launched: &Launched) -> Error {
    Error::new(
        ErrorCode::AppUnresponsive,
        format!("{} (pid {}) ended without a window", launched.name, launched.pid),
    )
    .kind("ended_without_window")
    .detail("process_state", facts([("state", "exited".into())]))
    .hint("start it in a terminal to see why; it may need --arg, --env or --cwd")
    .delivery(Delivery::Unverified)
}

/// A name by which commands find what has no window yet: what it registers as is not known before it does.
fn name_without_window(context: &Context<'_>, launched: &Launched) -> String {
    let apps = context.platform.apps(context.deadline).unwrap_or_default();
    let registered = apps.into_iter().find(|app| app.pid == launched.pid);
    registered.map_or_else(|| format!("pid:{}", launched.pid), |app| app.name)
}

impl Run for Launch {
    type Reply = LaunchReply;

    fn check(&self, _: &Options) -> Result<()> {
        let name = self.app.trim();
        if name.is_empty() || name.contains('/') || name.contains("..") || name.chars().any(char::is_control) {
            return Err(Error::invalid("not the name of an application: it has no /, no .. and no control characters")
                .hint("name a desktop entry or an executable of the search path, such as gedit"));
        }
        if self.args.len() > MAX_ITEMS || self.env.len() > MAX_ITEMS {
            return Err(Error::invalid(format!("at most {MAX_ITEMS} --arg and {MAX_ITEMS} --env")));
        }
        let texts = || self.args.iter().chain(&self.env);
        if texts().map(String::len).sum::<usize>() > MAX_BYTES {
            return Err(Error::invalid("--arg and --env are too long together"));
        }
        if texts().any(|text| text.contains('\0')) {
            return Err(Error::invalid("--arg and --env cannot contain the character NUL"));
        }
        if self.wait && self.timeout == Some(0) {
            return Err(Error::invalid("--wait and --timeout 0 exclude each other"));
        }
        if let Some(cwd) = &self.cwd
            && !cwd.is_dir()
        {
            return Err(Error::invalid("--cwd is not a directory"));
        }
        self.environment().map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<LaunchReply> {
        if let Some(app) = self.running(context)? {
            return self.attach(context, &app);
        }
        let lease = context.take_lease()?;
        let before = Launch::before(context)?;
        context.audit.note(Target::named(self.app.trim()));
        let request = LaunchRequest {
            app: self.app.trim().to_owned(),
            args: self.args.clone(),
            env: self.environment()?,
            cwd: self.cwd.clone(),
        };
        context.begin_delivery();
        let launched = context.platform.launch(&request, context.deadline)?;
        drop(lease);
        let window = if context.is_single_attempt {
            let state = context.platform.process_state(launched.pid, launched.process_instance.as_deref());
            if state == ProcessState::Exited {
                return Err(ended_without_window(&launched));
            }
            None
        } else {
            self.wait_for_window(context, &launched, &before).map_err(|error| error.delivery(Delivery::Unverified))?
        };
        if window.is_none() && self.wait {
            return Err(Error::new(ErrorCode::Timeout, format!("{} has no window yet", launched.name))
                .kind("wait_timeout")
                .detail("predicate", "window")
                .detail("timeout_ms", context.deadline.budget().as_millis() as u64)
                .hint("it was started and goes on; wait --window TITLE waits longer")
                .delivery(Delivery::Unverified));
        }
        let window = match window {
            Some(window) if self.activate && !window.is_focused => {
                let _lease = context.take_lease()?;
                Some(focus_window::focus(context, &window).map_err(|error| error.delivery(Delivery::Unverified))?)
            }
            other => other,
        };
        let (app, pid, process_instance) = match &window {
            Some(window) => (window.app_name.clone(), window.pid, window.process_instance.clone()),
            None => {
                (name_without_window(context, &launched), launched.pid, launched.process_instance)
            }
        };
        Ok(LaunchReply { app, pid, process_instance, window: window.as_ref().map(WindowData::from), suggestion: None })
    }
}
