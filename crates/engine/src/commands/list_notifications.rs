//! `list-notifications`: what notifications came while the session ran.

use agent_desktop_core::error::Result;
use serde::{Deserialize, Serialize};

use super::{Reply, Run, lines};
use crate::context::Context;
use crate::notifications::{Known, NotificationData, START_A_SESSION, contains, need_service};

/// List the notifications that came since the session began, the oldest first.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct ListNotifications {
    /// Only those of a sender with this text in its name; case does not matter.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub app: Option<String>,
    /// Only those with this text in title, body or name of the sender; case does not matter.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub text: Option<String>,
    /// Only the newest so many of them.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub limit: Option<usize>,
    /// Also those that somebody took away.
    #[cfg_attr(feature = "clap", arg(long))]
    pub all: bool,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// The notifications.
#[derive(Clone, Debug, Serialize)]
pub struct ListNotificationsReply {
    count: usize,
    notifications: Vec<NotificationData>,
    /// Whether everything since then is known.
    complete: bool,
    /// Since when somebody listened, Unix milliseconds.
    listening_since: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl Reply for ListNotificationsReply {
    fn outline(&self) -> Option<String> {
        let text = lines(self.notifications.iter().map(NotificationData::outline), "no notifications");
        Some(match self.hint {
            Some(hint) => format!("{text}\nincomplete: {hint}"),
            None => text,
        })
    }
}

impl Run for ListNotifications {
    type Reply = ListNotificationsReply;

    fn run(&self, context: &Context<'_>) -> Result<ListNotificationsReply> {
        let known = Known::of(context)?;
        // What came stays known after its service has ended; without anything known that is the answer.
        if known.as_ref().is_none_or(|known| known.journal.entries.is_empty()) {
            need_service(context)?;
        }
        let complete = known.as_ref().is_some_and(|known| known.is_listening);
        let hint = match &known {
            None => Some(START_A_SESSION),
            Some(_) if !complete => {
                Some("the listener of this session has ended, with the session or with its bus: what came since is not known")
            }
            Some(_) => None,
        };
        let entries = known.iter().flat_map(|known| &known.journal.entries);
        let mut notifications: Vec<NotificationData> = entries
            .filter(|entry| self.all || !entry.state.was_taken_away())
            .filter(|entry| contains(self.app.as_deref(), &[&entry.app_name]))
            .filter(|entry| contains(self.text.as_deref(), &[&entry.title, &entry.body, &entry.app_name]))
            .map(NotificationData::from)
            .collect();
        let surplus = notifications.len().saturating_sub(self.limit.unwrap_or(usize::MAX));
        notifications.drain(..surplus);
        Ok(ListNotificationsReply {
            count: notifications.len(),
            notifications,
            complete,
            listening_since: known.map(|known| known.journal.since),
            hint,
        })
    }
}
