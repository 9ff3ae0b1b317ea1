//! `dismiss-all-notifications`: take all notifications away that are known to be open.

use agent_desktop_core::error::{ErrorCode, Result};
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::Context;
use crate::notifications::{Known, NotificationState, catch_up, contains, dismiss, need_service};

/// Take away every notification that came since the session began and is open.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct DismissAllNotifications {
    /// Only those of a sender with this text in its name; case does not matter.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub app: Option<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// How many were taken away.
#[derive(Clone, Debug, Serialize)]
pub struct DismissAllNotificationsReply {
    dismissed_count: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_count: Option<usize>,
}

impl Reply for DismissAllNotificationsReply {
    fn outline(&self) -> Option<String> {
        let mut text = format!("{} dismissed", self.dismissed_count);
        for failure in &self.failures {
            text = format!("{text}\nnot dismissed: {failure}");
        }
        Some(text)
    }
}

impl Run for DismissAllNotifications {
    type Reply = DismissAllNotificationsReply;

    fn run(&self, context: &Context<'_>) -> Result<DismissAllNotificationsReply> {
        need_service(context)?;
        let _lease = context.take_lease()?;
        let known = Known::needed(context)?;
        let mut dismissed = Vec::new();
        let mut failures = Vec::new();
        let open = known.journal.entries.iter().filter(|entry| entry.state == NotificationState::Open);
        for entry in open.filter(|entry| contains(self.app.as_deref(), &[&entry.app_name])) {
            match dismiss(context, entry) {
                Ok(()) => dismissed.push(entry.index),
                // It went by itself meanwhile.
                Err(error) if error.code() == ErrorCode::NotificationNotFound => {}
                Err(error) => failures.push(format!("{}: {}", entry.index, error.message())),
            }
        }
        for &index in &dismissed {
            catch_up(context, index);
        }
        let failed_count = (!failures.is_empty()).then_some(failures.len());
        Ok(DismissAllNotificationsReply { dismissed_count: dismissed.len(), failures, failed_count })
    }
}
