//! `resize-window`: give a window another size.

use agent_desktop_core::error::Result;
use agent_desktop_core::platform::WindowOperation;
use serde::{Deserialize, Serialize};

use super::window_change::{TOLERANCE, change, check_number, check_scope};
use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::wire::WindowData;

/// Give a window another size, its frame included.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct ResizeWindow {
    /// Width of the frame, logical pixels.
    #[cfg_attr(feature = "clap", arg(long, value_name = "WIDTH", allow_negative_numbers = true))]
    pub width: f64,
    /// Height of the frame, logical pixels.
    #[cfg_attr(feature = "clap", arg(long, value_name = "HEIGHT", allow_negative_numbers = true))]
    pub height: f64,
    /// The window with this id, as list-windows shows it.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub window_id: Option<String>,
    /// The window of this application; without both, the focused one.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// The window as it is now.
#[derive(Clone, Debug, Serialize)]
pub struct ResizeWindowReply {
    resized: bool,
    width: f64,
    height: f64,
    window: WindowData,
}

impl Reply for ResizeWindowReply {
    fn outline(&self) -> Option<String> {
        Some(self.window.outline())
    }
}

impl Run for ResizeWindow {
    type Reply = ResizeWindowReply;

    fn check(&self, options: &Options) -> Result<()> {
        check_number("--width", self.width, 1.0)?;
        check_number("--height", self.height, 1.0)?;
        check_scope(self.window_id.as_deref(), self.app.as_deref(), options)
    }

    fn run(&self, context: &Context<'_>) -> Result<ResizeWindowReply> {
        let window = change(
            context,
            self.window_id.as_deref(),
            self.app.as_deref(),
            |_| WindowOperation::Resize(self.width, self.height),
            |window| {
                let frame = window.frame.or(window.bounds);
                frame.is_some_and(|frame| {
                    (frame.width - self.width).abs() <= TOLERANCE && (frame.height - self.height).abs() <= TOLERANCE
                })
            },
        )?;
        let frame = window.frame.or(window.bounds).unwrap_or_default();
        Ok(ResizeWindowReply { resized: true, width: frame.width, height: frame.height, window: (&window).into() })
    }
}
