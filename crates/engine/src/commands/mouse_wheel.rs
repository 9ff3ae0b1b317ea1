//! `mouse-wheel`: turn the wheel over a point.

use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::geometry::Point;
use agent_desktop_core::platform::Input;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::pointer::{is_coordinate, parse_modifiers};

/// Lines on one axis, at most.
pub(crate) const MAX_LINES: f64 = 1000.0;

const fn three_down() -> f64 {
    -3.0
}

/// Turn the wheel over a point of the desktop (needs --headed).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct MouseWheel {
    /// Logical pixels from the left of the desktop.
    #[cfg_attr(feature = "clap", arg(long, allow_hyphen_values = true))]
    pub x: f64,
    /// Logical pixels from the top of the desktop.
    #[cfg_attr(feature = "clap", arg(long, allow_hyphen_values = true))]
    pub y: f64,
    /// Lines up (positive) or down.
    #[cfg_attr(feature = "clap", arg(long, value_name = "LINES", default_value_t = three_down(), allow_hyphen_values = true))]
    #[serde(default = "three_down")]
    pub dy: f64,
    /// Lines left (positive) or right.
    #[cfg_attr(feature = "clap", arg(long, value_name = "LINES", default_value_t = 0.0, allow_hyphen_values = true))]
    #[serde(default)]
    pub dx: f64,
    /// Key held meanwhile: ctrl, alt, shift or meta; may be repeated.
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODIFIER"))]
    #[serde(default)]
    pub modifiers: Vec<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What was turned.
#[derive(Clone, Debug, Serialize)]
pub struct MouseWheelReply {
    scrolled: bool,
    dy: f64,
    dx: f64,
}

impl Reply for MouseWheelReply {}

/// Whole lines, away from zero: half a line still moves.
fn whole_lines(lines: f64) -> i32 {
    if lines < 0.0 { lines.floor() as i32 } else { lines.ceil() as i32 }
}

impl Run for MouseWheel {
    type Reply = MouseWheelReply;

    fn check(&self, _: &Options) -> Result<()> {
        if !is_coordinate(self.x) || !is_coordinate(self.y) {
            return Err(Error::invalid("--x and --y are numbers up to 10000000"));
        }
        let is_amount = |lines: f64| lines.is_finite() && lines.abs() <= MAX_LINES;
        if !is_amount(self.dx) || !is_amount(self.dy) {
            return Err(Error::invalid("--dx and --dy are at most 1000 lines"));
        }
        if self.dx == 0.0 && self.dy == 0.0 {
            return Err(Error::invalid("--dx and --dy are both zero, nothing would move"));
        }
        parse_modifiers(&self.modifiers).map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<MouseWheelReply> {
        context.send_input("mouse-wheel", &Input::Wheel {
            at: Point { x: self.x, y: self.y },
            dy: whole_lines(self.dy),
            dx: whole_lines(self.dx),
            modifiers: parse_modifiers(&self.modifiers)?,
        })?;
        Ok(MouseWheelReply { scrolled: true, dy: self.dy, dx: self.dx })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn part_lines_grow_away_from_zero() {
        let lines = [0.2, -0.2, 3.0, -3.0, 0.0].map(super::whole_lines);
        assert_eq!(lines, [1, -1, 3, -3, 0]);
    }
}
