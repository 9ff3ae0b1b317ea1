//! `minimize`: take a window off the screen, into the list of windows.

use agent_desktop_core::error::Result;
use agent_desktop_core::platform::WindowOperation;
use serde::{Deserialize, Serialize};

use super::window_change::{change, check_scope};
use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::wire::WindowData;

/// Minimize a window.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Minimize {
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
pub struct MinimizeReply {
    minimized: bool,
    window: WindowData,
}

impl Reply for MinimizeReply {
    fn outline(&self) -> Option<String> {
        Some(self.window.outline())
    }
}

impl Run for Minimize {
    type Reply = MinimizeReply;

    fn check(&self, options: &Options) -> Result<()> {
        check_scope(self.window_id.as_deref(), self.app.as_deref(), options)
    }

    fn run(&self, context: &Context<'_>) -> Result<MinimizeReply> {
        let window = change(
            context,
            self.window_id.as_deref(),
            self.app.as_deref(),
            |_| WindowOperation::Minimize,
            |window| window.minimized == Some(true),
        )?;
        Ok(MinimizeReply { minimized: true, window: (&window).into() })
    }
}
