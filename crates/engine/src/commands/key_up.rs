//! `key-up`: reserved. See `key_down`.

use agent_desktop_core::error::Result;
use serde::Deserialize;

use super::{Never, Run, held_input};
use crate::context::Context;
use crate::policy;

/// Release a held key (not available yet: use press).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct KeyUp {
    /// Key, with modifiers if any: shift, ctrl+a.
    pub combo: String,
    /// Also if the chord is a protected one.
    #[cfg_attr(feature = "clap", arg(long))]
    #[serde(default)]
    pub force: bool,
}

impl Run for KeyUp {
    type Reply = Never;

    fn run(&self, context: &Context<'_>) -> Result<Never> {
        policy::screen_held_chord(&self.combo, &context.platform.safety(), context.rules, self.force)?;
        Err(held_input("a held key"))
    }
}
