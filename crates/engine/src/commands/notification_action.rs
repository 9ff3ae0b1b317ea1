//! `notification-action`: do what a notification offers.

use agent_desktop_core::error::Result;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::envelope::Disposition;
use crate::notifications::{Known, Target, action_named, check_allowed, invoke, need_service};

/// Do what a notification offers, as a click on its button would.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct NotificationAction {
    /// Its index, as list-notifications shows it.
    #[cfg_attr(feature = "clap", arg(value_name = "INDEX", value_parser = clap::value_parser!(u64).range(1..)))]
    pub index: u64,
    /// What the button says, or the sender's key of the action; `default` is a click on the notification itself.
    #[cfg_attr(feature = "clap", arg(value_name = "ACTION"))]
    pub action: String,
    /// The name of its sender must have this text in it; case does not matter.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    #[serde(default)]
    pub app: Option<String>,
    /// Its sender must have exactly this name; this or --expected-title is needed.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    #[serde(default)]
    pub expected_app: Option<String>,
    /// It must have exactly this title.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TITLE", allow_hyphen_values = true))]
    #[serde(default)]
    pub expected_title: Option<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
pub struct NotificationActionReply {
    action: String,
    disposition: Disposition,
}

impl Reply for NotificationActionReply {
    fn outline(&self) -> Option<String> {
        Some(format!("{:?} {}", self.action, self.disposition.delivery))
    }

    fn delivery(&self) -> Option<&'static str> {
        Some(self.disposition.delivery)
    }
}

impl NotificationAction {
    fn target(&self) -> Target<'_> {
        Target {
            index: self.index,
            app: self.app.as_deref(),
            expected_app: self.expected_app.as_deref(),
            expected_title: self.expected_title.as_deref(),
        }
    }
}

impl Run for NotificationAction {
    type Reply = NotificationActionReply;

    fn check(&self, _: &Options) -> Result<()> {
        self.target().check()
    }

    fn run(&self, context: &Context<'_>) -> Result<NotificationActionReply> {
        need_service(context)?;
        let _lease = context.take_lease()?;
        let known = Known::needed(context)?;
        let entry = self.target().find(&known)?;
        check_allowed(context, entry)?;
        let notification = entry.notification();
        let action = action_named(&notification.actions, &self.action)?;
        let delivery = invoke(context, &notification, action)?;
        Ok(NotificationActionReply { action: self.action.clone(), disposition: delivery.into() })
    }
}
