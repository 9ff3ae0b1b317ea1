//! `type`: text at the caret.

use agent_desktop_core::error::Result;
use serde::Deserialize;

use super::Run;
use super::ref_action::check_text;
use crate::act::{self, Request};
use crate::action_reply::ActionReply;
use crate::context::{Context, Options};
use crate::wait_for::{self, Answer};

/// Characters that are taken at once.
pub(crate) const MAX_CHARACTERS: usize = 10_000;

/// Insert text at the caret of a text field, in place of what is selected.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct TypeText {
    /// Ref from a snapshot, such as @sq4m2:e14.
    #[cfg_attr(feature = "clap", arg(value_name = "REF"))]
    pub ref_id: String,
    /// The text; up to 10000 characters.
    #[cfg_attr(feature = "clap", arg(value_name = "TEXT", allow_hyphen_values = true))]
    pub text: String,
    /// Snapshot of a ref that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    #[serde(default)]
    pub snapshot: Option<String>,
    /// Wait this many milliseconds for the element to be ready; 0: one attempt [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

impl Run for TypeText {
    type Reply = Answer<ActionReply>;

    fn check(&self, _: &Options) -> Result<()> {
        agent_desktop_core::refs::RefTarget::parse(&self.ref_id, self.snapshot.as_deref())?;
        check_text(&self.text, MAX_CHARACTERS)
    }

    fn run(&self, context: &Context<'_>) -> Result<Answer<ActionReply>> {
        let request = Request::Type(&self.text);
        let snapshot = self.snapshot.as_deref();
        let reply = act::run(context, &self.ref_id, snapshot, request)?;
        wait_for::after_ref(context, reply, &self.ref_id, snapshot)
    }
}
