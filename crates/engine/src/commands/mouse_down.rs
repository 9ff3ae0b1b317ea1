//! `mouse-down`: reserved. A process that ends cannot promise to release what it holds; the daemon will.

use agent_desktop_core::error::Result;
use serde::Deserialize;

use super::{Never, Run, held_input};
use crate::context::{Context, Options};
use crate::pointer::{parse_button, parse_modifiers, parse_point};

/// Hold a mouse button down (not available yet: use mouse-click or drag).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct MouseDown {
    /// Where, in logical pixels of the desktop.
    #[cfg_attr(feature = "clap", arg(long, value_name = "X,Y", allow_hyphen_values = true))]
    pub xy: String,
    /// Which button [default: left].
    #[cfg_attr(feature = "clap", arg(long, value_name = "BUTTON", value_parser = ["left", "right", "middle"]))]
    #[serde(default)]
    pub button: Option<String>,
    /// Key held meanwhile; may be repeated.
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODIFIER"))]
    #[serde(default)]
    pub modifiers: Vec<String>,
}

impl Run for MouseDown {
    type Reply = Never;

    fn check(&self, _: &Options) -> Result<()> {
        parse_point(&self.xy)?;
        parse_button(self.button.as_deref())?;
        parse_modifiers(&self.modifiers).map(|_| ())
    }

    fn run(&self, _: &Context<'_>) -> Result<Never> {
        Err(held_input("a held mouse button"))
    }
}
