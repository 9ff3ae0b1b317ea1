//! `mouse-move`: put the pointer somewhere.

use agent_desktop_core::error::Result;
use agent_desktop_core::platform::Input;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::pointer::parse_point;

/// Move the pointer to a point of the desktop (needs --headed).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct MouseMove {
    /// Where to, in logical pixels of the desktop.
    #[cfg_attr(feature = "clap", arg(long, value_name = "X,Y", allow_hyphen_values = true))]
    pub xy: String,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// Where the pointer was put.
#[derive(Clone, Debug, Serialize)]
pub struct MouseMoveReply {
    moved: bool,
    x: f64,
    y: f64,
}

impl Reply for MouseMoveReply {}

impl Run for MouseMove {
    type Reply = MouseMoveReply;

    fn check(&self, _: &Options) -> Result<()> {
        parse_point(&self.xy).map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<MouseMoveReply> {
        let point = parse_point(&self.xy)?;
        context.send_input("mouse-move", &Input::Move(point))?;
        Ok(MouseMoveReply { moved: true, x: point.x, y: point.y })
    }
}
