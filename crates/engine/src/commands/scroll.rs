//! `scroll`.

use agent_desktop_core::action::Direction;
use agent_desktop_core::error::{Error, Result};
use serde::Deserialize;

use super::Run;
use crate::act::{self, Request};
use crate::action_reply::ActionReply;
use crate::context::{Context, Options};
use crate::wait_for::{self, Answer};

/// Steps of one scroll.
pub(crate) const MAX_AMOUNT: u32 = 1000;

/// Scroll an element, or what contains it: by its scroll bar, with --headed by the mouse wheel.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct Scroll {
    /// Ref from a snapshot, such as @sq4m2:e14.
    #[cfg_attr(feature = "clap", arg(value_name = "REF"))]
    pub ref_id: String,
    /// Where the view moves: up, down, left or right.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIRECTION", default_value = "down"))]
    #[serde(default = "down")]
    pub direction: String,
    /// How many steps, 1 to 1000.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 3))]
    #[serde(default = "three")]
    pub amount: u32,
    /// Snapshot of a ref that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    #[serde(default)]
    pub snapshot: Option<String>,
    /// Wait this many milliseconds for the element to be ready; 0: one attempt [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

fn down() -> String {
    "down".to_owned()
}

fn three() -> u32 {
    3
}

impl Scroll {
    fn parsed(&self) -> Result<Direction> {
        match self.direction.trim().to_ascii_lowercase().as_str() {
            "up" => Ok(Direction::Up),
            "down" => Ok(Direction::Down),
            "left" => Ok(Direction::Left),
            "right" => Ok(Direction::Right),
            _ => Err(Error::invalid("not a direction: up, down, left or right")),
        }
    }
}

impl Run for Scroll {
    type Reply = Answer<ActionReply>;

    fn check(&self, _: &Options) -> Result<()> {
        agent_desktop_core::refs::RefTarget::parse(&self.ref_id, self.snapshot.as_deref())?;
        if !(1..=MAX_AMOUNT).contains(&self.amount) {
            return Err(Error::invalid(format!("the amount {} is not between 1 and {MAX_AMOUNT}", self.amount)));
        }
        self.parsed().map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<Answer<ActionReply>> {
        let request = Request::Scroll(self.parsed()?, self.amount);
        let snapshot = self.snapshot.as_deref();
        let reply = act::run(context, &self.ref_id, snapshot, request)?;
        wait_for::after_ref(context, reply, &self.ref_id, snapshot)
    }
}
