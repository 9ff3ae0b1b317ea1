//! `maximize`: let a window fill the work area of its display.

use agent_desktop_core::error::Result;
use agent_desktop_core::platform::WindowOperation;
use serde::{Deserialize, Serialize};

use super::window_change::{change, check_scope};
use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::wire::WindowData;

/// Maximize a window: let it fill the work area of its display.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Maximize {
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
pub struct MaximizeReply {
    maximized: bool,
    window: WindowData,
}

impl Reply for MaximizeReply {
    fn outline(&self) -> Option<String> {
        Some(self.window.outline())
    }
}

impl Run for Maximize {
    type Reply = MaximizeReply;

    fn check(&self, options: &Options) -> Result<()> {
        check_scope(self.window_id.as_deref(), self.app.as_deref(), options)
    }

    fn run(&self, context: &Context<'_>) -> Result<MaximizeReply> {
        let window = change(
            context,
            self.window_id.as_deref(),
            self.app.as_deref(),
            |_| WindowOperation::Maximize,
            |window| window.maximized == Some(true) && window.minimized != Some(true),
        )?;
        Ok(MaximizeReply { maximized: true, window: (&window).into() })
    }
}
