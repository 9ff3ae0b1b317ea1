//! `clipboard-clear`: forget what was copied.

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::Context;

/// Empty the clipboard.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct ClipboardClear {}

/// That it is empty.
#[derive(Clone, Debug, Serialize)]
pub struct ClipboardClearReply {
    cleared: bool,
}

impl Reply for ClipboardClearReply {
    fn outline(&self) -> Option<String> {
        Some("the clipboard is empty".to_owned())
    }
}

impl Run for ClipboardClear {
    type Reply = ClipboardClearReply;

    fn run(&self, context: &Context<'_>) -> Result<ClipboardClearReply> {
        let _lease = context.take_lease()?;
        context.begin_delivery();
        context.platform.clipboard_write(None, context.deadline)?;
        let offer = context
            .platform
            .clipboard_offer(context.deadline)
            .map_err(|error| error.redelivered(Delivery::Unverified))?;
        if !offer.forms.is_empty() {
            return Err(Error::new(ErrorCode::ActionFailed, "there is something in the clipboard again")
                .hint("a clipboard manager may keep what was copied; it has to be told")
                .delivery(Delivery::Unverified));
        }
        Ok(ClipboardClearReply { cleared: true })
    }
}
