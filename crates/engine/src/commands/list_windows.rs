//! `list-windows`: top-level windows.

use agent_desktop_core::error::Result;
use serde::{Deserialize, Serialize};

use super::{Reply, Run, lines};
use crate::context::Context;
use crate::targets;
use crate::wire::WindowData;

/// List windows, of one application or of all.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct ListWindows {
    /// Only windows of the application of this name; every instance of it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// The windows.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct ListWindowsReply(Vec<WindowData>);

impl Reply for ListWindowsReply {
    fn outline(&self) -> Option<String> {
        Some(lines(self.0.iter().map(WindowData::outline), "no windows"))
    }
}

impl Run for ListWindows {
    type Reply = ListWindowsReply;

    fn run(&self, context: &Context<'_>) -> Result<ListWindowsReply> {
        let windows = match &self.app {
            None => context.platform.windows(None, context.deadline)?,
            Some(name) => {
                // All instances: this is where their window ids come from, by which one of them is picked.
                let mut windows = Vec::new();
                for app in targets::apps_named(context, name)? {
                    windows.extend(context.platform.windows(Some(&app), context.deadline)?);
                }
                windows
            }
        };
        Ok(ListWindowsReply(windows.iter().map(WindowData::from).collect()))
    }
}
