//! `dismiss-notification`: take one notification away.

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::Result;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::envelope::Disposition;
use crate::notifications::{
    Known, NotificationData, NotificationState, Target, catch_up, dismiss, need_service,
};

/// Take a notification away.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct DismissNotification {
    /// Its index, as list-notifications shows it.
    #[cfg_attr(feature = "clap", arg(value_name = "INDEX", value_parser = clap::value_parser!(u64).range(1..)))]
    pub index: u64,
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

/// What was taken away.
#[derive(Clone, Debug, Serialize)]
pub struct DismissNotificationReply {
    dismissed: NotificationData,
    disposition: Disposition,
}

impl Reply for DismissNotificationReply {
    fn outline(&self) -> Option<String> {
        Some(self.dismissed.outline())
    }

    fn delivery(&self) -> Option<&'static str> {
        Some(self.disposition.delivery)
    }
}

impl DismissNotification {
    fn target(&self) -> Target<'_> {
        Target {
            index: self.index,
            app: self.app.as_deref(),
            expected_app: self.expected_app.as_deref(),
            expected_title: self.expected_title.as_deref(),
        }
    }
}

impl Run for DismissNotification {
    type Reply = DismissNotificationReply;

    fn check(&self, _: &Options) -> Result<()> {
        self.target().check()
    }

    fn run(&self, context: &Context<'_>) -> Result<DismissNotificationReply> {
        need_service(context)?;
        let _lease = context.take_lease()?;
        let known = Known::needed(context)?;
        let entry = self.target().find(&known)?;
        dismiss(context, entry)?;
        catch_up(context, entry.index);
        let dismissed = NotificationData { state: Some(NotificationState::Closed), ..entry.into() };
        Ok(DismissNotificationReply { dismissed, disposition: Delivery::Verified.into() })
    }
}
