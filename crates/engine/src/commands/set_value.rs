//! `set-value`.

use agent_desktop_core::error::Result;
use serde::Deserialize;

use super::Run;
use super::ref_action::check_text;
use crate::act::{self, Request};
use crate::action_reply::ActionReply;
use crate::context::{Context, Options};
use crate::wait_for::{self, Answer};

/// Characters of a value.
pub(crate) const MAX_CHARACTERS: usize = 1_000_000;

/// Replace the text of a field, or set the number of a slider or spin button.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct SetValue {
    /// Ref from a snapshot, such as @sq4m2:e14.
    #[cfg_attr(feature = "clap", arg(value_name = "REF"))]
    pub ref_id: String,
    /// The new value.
    #[cfg_attr(feature = "clap", arg(value_name = "VALUE", allow_hyphen_values = true))]
    pub value: String,
    /// Snapshot of a ref that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    #[serde(default)]
    pub snapshot: Option<String>,
    /// Wait this many milliseconds for the element to be ready; 0: one attempt [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

impl Run for SetValue {
    type Reply = Answer<ActionReply>;

    fn check(&self, _: &Options) -> Result<()> {
        agent_desktop_core::refs::RefTarget::parse(&self.ref_id, self.snapshot.as_deref())?;
        check_text(&self.value, MAX_CHARACTERS)
    }

    fn run(&self, context: &Context<'_>) -> Result<Answer<ActionReply>> {
        let request = Request::SetValue(&self.value);
        let snapshot = self.snapshot.as_deref();
        let reply = act::run(context, &self.ref_id, snapshot, request)?;
        wait_for::after_ref(context, reply, &self.ref_id, snapshot)
    }
}
