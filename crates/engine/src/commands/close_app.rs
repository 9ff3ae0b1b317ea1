//! `close-app`: end an application, and see that it ended.

use std::time::Duration;

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result, facts};
use agent_desktop_core::platform::{App, ProcessState};
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::{Context, OPERATION_MS, Options};
use crate::{policy, targets};

pub(crate) const POLL: Duration = Duration::from_millis(25);
/// Time that is kept for saying why it did not close.
pub(crate) const EXPLAIN: Duration = Duration::from_millis(500);

/// Quit an application and wait until its process is gone.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct CloseApp {
    /// Name of the application, as list-apps shows it.
    #[cfg_attr(feature = "clap", arg(value_name = "APP"))]
    pub app: String,
    /// End its process instead of asking it to quit; unsaved work is lost.
    #[cfg_attr(feature = "clap", arg(long))]
    #[serde(default)]
    pub force: bool,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What was closed.
#[derive(Clone, Debug, Serialize)]
pub struct CloseAppReply {
    app: String,
    method: &'static str,
    requested: bool,
    closed: bool,
}

impl Reply for CloseAppReply {
    fn outline(&self) -> Option<String> {
        Some(format!("closed {} ({})", self.app, self.method))
    }
}

impl Run for CloseApp {
    type Reply = CloseAppReply;

    fn check(&self, _: &Options) -> Result<()> {
        if self.app.trim().is_empty() { Err(Error::invalid("the name is empty")) } else { Ok(()) }
    }

    fn run(&self, context: &Context<'_>) -> Result<CloseAppReply> {
        let safety = context.platform.safety();
        policy::screen_process(&self.app, None, &safety, context.rules, self.force)?;
        let app = targets::identified_app(context, &self.app)?;
        policy::screen_process(&self.app, Some(&app), &safety, context.rules, self.force)?;
        let lease = context.take_lease()?;
        let app = targets::recheck_app(context, &app)?;
        context.begin_delivery();
        context.platform.close(&app, self.force, context.deadline)?;
        // The request is out. Others may act while this one waits.
        drop(lease);
        while context.platform.process_state(app.pid, app.process_instance.as_deref()) != ProcessState::Exited {
            if !context.pause(POLL) {
                return Err(self.still_there(context, &app));
            }
        }
        Ok(CloseAppReply {
            app: app.name,
            method: if self.force { "force" } else { "graceful" },
            requested: true,
            closed: true,
        })
    }
}

impl CloseApp {
    /// Usually it asks whether to save: say what is open, so that the caller can answer it.
    fn still_there(&self, context: &Context<'_>, app: &App) -> Error {
        let budget = self.timeout_ms.unwrap_or(OPERATION_MS);
        let deadline = agent_desktop_core::Deadline::after(context.now(), EXPLAIN);
        let open = context.platform.surfaces(app, None, deadline).unwrap_or_default();
        let error = Error::new(
            ErrorCode::Timeout,
            format!("{} (pid {}) still runs {budget} ms after it was asked to quit", app.name, app.pid),
        )
        .kind("deadline")
        .detail("timeout_ms", budget)
        .delivery(Delivery::Unverified);
        if open.is_empty() {
            return error.hint("allow more time with --timeout-ms, or end it with --force, which loses unsaved work");
        }
        let surfaces = open.iter().map(|surface| {
            facts([("type", surface.kind.into()), ("title", surface.title.clone().unwrap_or_default().into())])
        });
        error
            .detail("open_surfaces", Fact::List(surfaces.collect()))
            .hint("it asks something: take a snapshot of it and answer, or end it with --force")
    }
}
