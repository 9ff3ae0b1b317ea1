//! `mouse-click`: click a point.

use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::platform::Input;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::pointer::{parse_button, parse_modifiers, parse_point};

/// Clicks at once.
pub(crate) const MAX_COUNT: u32 = 100;

const fn one() -> u32 {
    1
}

/// Click a point of the desktop (needs --headed).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct MouseClick {
    /// Where, in logical pixels of the desktop.
    #[cfg_attr(feature = "clap", arg(long, value_name = "X,Y", allow_hyphen_values = true))]
    pub xy: String,
    /// Which button [default: left].
    #[cfg_attr(feature = "clap", arg(long, value_name = "BUTTON", value_parser = ["left", "right", "middle"]))]
    #[serde(default)]
    pub button: Option<String>,
    /// How often, 1 to 100.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = one()))]
    #[serde(default = "one")]
    pub count: u32,
    /// Key held meanwhile: ctrl, alt, shift or meta; may be repeated.
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODIFIER"))]
    #[serde(default)]
    pub modifiers: Vec<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// Where was clicked, and how often.
#[derive(Clone, Debug, Serialize)]
pub struct MouseClickReply {
    clicked: bool,
    x: f64,
    y: f64,
    count: u32,
}

impl Reply for MouseClickReply {}

impl Run for MouseClick {
    type Reply = MouseClickReply;

    fn check(&self, _: &Options) -> Result<()> {
        parse_point(&self.xy)?;
        parse_button(self.button.as_deref())?;
        parse_modifiers(&self.modifiers)?;
        if (1..=MAX_COUNT).contains(&self.count) {
            Ok(())
        } else {
            Err(Error::invalid(format!("--count is between 1 and {MAX_COUNT}")))
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<MouseClickReply> {
        let at = parse_point(&self.xy)?;
        context.send_input("mouse-click", &Input::Click {
            at,
            button: parse_button(self.button.as_deref())?,
            count: self.count,
            modifiers: parse_modifiers(&self.modifiers)?,
        })?;
        Ok(MouseClickReply { clicked: true, x: at.x, y: at.y, count: self.count })
    }
}
