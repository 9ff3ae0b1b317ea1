//! `move-window`: put a window somewhere else.

use agent_desktop_core::error::Result;
use agent_desktop_core::geometry::Point;
use agent_desktop_core::platform::WindowOperation;
use serde::{Deserialize, Serialize};

use super::window_change::{MOST, TOLERANCE, change, check_number, check_scope};
use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::wire::WindowData;

/// Put the top left corner of a window, its frame included, somewhere else.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct MoveWindow {
    /// Logical pixels from the left of the desktop.
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", allow_negative_numbers = true))]
    pub x: f64,
    /// Logical pixels from its top.
    #[cfg_attr(feature = "clap", arg(long, value_name = "Y", allow_negative_numbers = true))]
    pub y: f64,
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
pub struct MoveWindowReply {
    moved: bool,
    x: f64,
    y: f64,
    window: WindowData,
}

impl Reply for MoveWindowReply {
    fn outline(&self) -> Option<String> {
        Some(self.window.outline())
    }
}

impl Run for MoveWindow {
    type Reply = MoveWindowReply;

    fn check(&self, options: &Options) -> Result<()> {
        check_number("--x", self.x, -MOST)?;
        check_number("--y", self.y, -MOST)?;
        check_scope(self.window_id.as_deref(), self.app.as_deref(), options)
    }

    fn run(&self, context: &Context<'_>) -> Result<MoveWindowReply> {
        let window = change(
            context,
            self.window_id.as_deref(),
            self.app.as_deref(),
            |_| WindowOperation::Move(Point { x: self.x, y: self.y }),
            |window| {
                let frame = window.frame.or(window.bounds);
                frame.is_some_and(|frame| {
                    (frame.x - self.x).abs() <= TOLERANCE && (frame.y - self.y).abs() <= TOLERANCE
                })
            },
        )?;
        let frame = window.frame.or(window.bounds).unwrap_or_default();
        Ok(MoveWindowReply { moved: true, x: frame.x, y: frame.y, window: (&window).into() })
    }
}
