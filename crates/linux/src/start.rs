//! Starting an application by any of its names: desktop entry, id, or program.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use agent_desktop_core::error::{Fact, facts};
use agent_desktop_core::platform::{App, LaunchRequest, Launched};
use agent_desktop_core::{Deadline, Delivery, Error, ErrorCode, Result};

use crate::desktop_entry;
use crate::host;
use crate::launch::{self, LaunchError};
use crate::process;

/// The variable by which what we started, and whatever that starts, is known again.
const MARK: &str = "AGENT_DESKTOP_LAUNCH";

/// Programs that run others: that two applications have one of them in common says nothing.
const RUNNERS: &[&str] = &[
    "bash",
    "bwrap",
    "dash",
    "env",
    "flatpak",
    "gjs",
    "java",
    "mono",
    "node",
    "perl",
    "python",
    "python2",
    "python3",
    "ruby",
    "sh",
    "snap",
    "sudo",
    "systemd-run",
    "wine",
    "zsh",
];

fn new_mark() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), now.as_nanos())
}

/// Which of the running applications are what would be started by this name.
pub(crate) fn instances(name: &str, apps: &[App]) -> Vec<App> {
    let entries = desktop_entry::find(name.trim());
    let [entry] = entries.as_slice() else { return Vec::new() };
    let program = entry.arguments(&[]).ok().and_then(|words| {
        let first = words.first()?;
        Some(first.rsplit('/').next().unwrap_or(first).to_owned())
    });
    let program = program.filter(|program| !RUNNERS.contains(&program.as_str()));
    let mut names = vec![entry.id.to_lowercase(), entry.name.to_lowercase()];
    names.extend(entry.localized_name.iter().map(|name| name.to_lowercase()));
    names.extend(entry.window_class.iter().map(|class| class.to_lowercase()));
    names.extend(program.iter().map(|program| program.to_lowercase()));
    let is_instance = |app: &&App| {
        names.contains(&app.name.to_lowercase())
            || app.application_id.as_ref().is_some_and(|id| id.eq_ignore_ascii_case(&entry.id))
            || program.as_ref().is_some_and(|program| host::command_name(app.pid) == *program)
    };
    apps.iter().filter(is_instance).cloned().collect()
}

/// Whether a process comes from what was launched.
pub(crate) fn comes_from(pid: u32, launched: &Launched) -> bool {
    if pid == launched.pid {
        return true;
    }
    if process::started_before(pid, launched.process_instance.as_deref()) {
        return false;
    }
    let is_child = process::descendants(launched.pid).is_ok_and(|children| children.contains(&pid));
    // What the session bus starts is started for somebody who asked; nothing else of it says for whom.
    is_child
        || launched.mark.as_ref().is_some_and(|mark| process::has_variable(pid, MARK, Some(mark)))
        || process::has_variable(pid, "DBUS_STARTER_ADDRESS", None)
}

/// How long a program is watched for failing at once.
const FIRST_MOMENTS: Duration = Duration::from_millis(60);

/// Starts what the request names.
///
/// A desktop entry goes before a program of the same name, since it knows the arguments that the program expects.
///
/// # Errors
/// `APP_NOT_FOUND`, `AMBIGUOUS_TARGET`, `INVALID_ARGS`; `ACTION_FAILED` when it could not be started, `APP_UNRESPONSIVE` when it
/// failed at once.
pub(crate) fn start(request: &LaunchRequest, deadline: Deadline) -> Result<Launched> {
    let entries = desktop_entry::find(&request.app);
    let arguments: Vec<OsString> = request.args.iter().map(OsString::from).collect();
    let mut command = match entries.as_slice() {
        [] => launch::LaunchRequest {
            program: OsString::from(&request.app),
            arguments,
            ..launch::LaunchRequest::default()
        },
        [entry] => launch::LaunchRequest::from_entry(entry, &arguments)
            .map_err(|error| failed(&request.app, &error))?,
        several => {
            let candidates = several
                .iter()
                .map(|entry| facts([("name", entry.name.clone().into()), ("pick", entry.id.clone().into())]))
                .collect();
            return Err(Error::new(
                ErrorCode::AmbiguousTarget,
                format!("{} applications are named {:?}", several.len(), request.app),
            )
            .detail("candidate_count", several.len())
            .detail("candidates", Fact::List(candidates))
            .hint("launch one of them by its id, as each candidate says")
            .delivery(Delivery::NotDelivered));
        }
    };
    command.environment = request.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    if request.cwd.is_some() {
        command.working_directory.clone_from(&request.cwd);
    }
    let mark = new_mark();
    command.environment.push((MARK.into(), mark.clone().into()));
    let program = command.program.clone();
    let mut launched = launch::launch(&command).map_err(|error| failed(&request.app, &error))?;
    let until = deadline.at().min(Instant::now() + FIRST_MOMENTS);
    if let Some(status) = launched.wait_for_exit(until)
        && !status.success()
    {
        return Err(Error::new(
            ErrorCode::AppUnresponsive,
            format!("{} (pid {}) ended without a window, {status}", program.to_string_lossy(), launched.pid),
        )
        .kind("ended_without_window")
        .detail("process_state", facts([("state", "exited".into())]))
        .hint("start it in a terminal to see why; it may need --arg, --env or --cwd")
        .delivery(Delivery::Unverified));
    }
    let name = entries.first().map_or_else(
        || request.app.rsplit('/').next().unwrap_or(&request.app).to_owned(),
        |entry| entry.name.clone(),
    );
    Ok(Launched {
        name,
        pid: launched.pid,
        process_instance: Some(launched.instance.clone()),
        mark: Some(mark),
    })
}

fn failed(app: &str, error: &LaunchError) -> Error {
    let text = error.to_string();
    let error = match error {
        LaunchError::NotFound { .. } | LaunchError::Entry(_) => {
            Error::new(ErrorCode::AppNotFound, format!("no application and no program is named {app:?}"))
                .hint("give the name or id of a desktop entry, or a program in PATH")
        }
        LaunchError::BadWorkingDirectory { .. } | LaunchError::InvalidArgument { .. } => {
            Error::invalid(text.clone())
        }
        _ => Error::new(ErrorCode::ActionFailed, format!("{app} could not be started")),
    };
    error.platform_detail(text).delivery(Delivery::NotDelivered)
}
