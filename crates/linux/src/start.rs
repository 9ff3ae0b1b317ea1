//! Starting an application by any of its names: desktop entry, id, or program.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use agent_desktop_core::error::{Fact, facts};
use agent_desktop_core::platform::{LaunchRequest, Launched};
use agent_desktop_core::{Deadline, Delivery, Error, ErrorCode, Result};

use crate::desktop_entry;
use crate::launch::{self, LaunchError};

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
    Ok(Launched { name, pid: launched.pid, process_instance: Some(launched.instance.clone()) })
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
