//! `restore`: bring a minimized window back, or give a maximized one its former size.

use agent_desktop_core::error::Result;
use agent_desktop_core::platform::WindowOperation;
use serde::{Deserialize, Serialize};

use super::window_change::{change, check_scope};
use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::wire::WindowData;

/// Bring a minimized window back, else give a maximized or full-screen one its former size.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Restore {
    /// The window with this id, as list-windows shows it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub window_id: Option<String>,
    /// The window of this application; without both, the focused one.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// The window as it is now.
#[derive(Clone, Debug, Serialize)]
pub struct RestoreReply {
    restored: bool,
    window: WindowData,
}

impl Reply for RestoreReply {
    fn outline(&self) -> Option<String> {
        Some(self.window.outline())
    }
}

impl Run for Restore {
    type Reply = RestoreReply;

    fn check(&self, options: &Options) -> Result<()> {
        check_scope(self.window_id.as_deref(), self.app.as_deref(), options)
    }

    fn run(&self, context: &Context<'_>) -> Result<RestoreReply> {
        let was_minimized = std::cell::Cell::new(None);
        let window = change(
            context,
            self.window_id.as_deref(),
            self.app.as_deref(),
            |_| WindowOperation::Restore,
            |window| {
                // Of a window that is minimized and maximized, one restore undoes the former.
                if was_minimized.get().is_none() {
                    was_minimized.set(window.minimized);
                }
                window.minimized != Some(true)
                    && (was_minimized.get() == Some(true) || window.maximized != Some(true))
            },
        )?;
        Ok(RestoreReply { restored: true, window: (&window).into() })
    }
}
