//! `list-apps`: what is running.

use agent_desktop_core::error::Result;
use agent_desktop_core::outline::{LINE_TEXT, quote};
use agent_desktop_core::query::fold;
use serde::{Deserialize, Serialize};

use super::{Reply, Run, lines};
use crate::context::Context;
use crate::wire::AppData;

/// List running applications.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct ListApps {
    /// Only those whose name contains this text, in any case.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub app: Option<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// What is running.
#[derive(Clone, Debug, Serialize)]
pub struct ListAppsReply {
    apps: Vec<AppData>,
}

impl Reply for ListAppsReply {
    fn outline(&self) -> Option<String> {
        let line = |app: &AppData| {
            let mut line = format!("{} pid {}", quote(&app.name, LINE_TEXT), app.pid);
            for text in [&app.bundle_id, &app.toolkit].into_iter().flatten() {
                line.push(' ');
                line.push_str(&quote(text, LINE_TEXT));
            }
            if app.accessible == Some(false) {
                line.push_str(" [not-accessible]");
            }
            line
        };
        Some(lines(self.apps.iter().map(line), "no applications"))
    }
}

impl Run for ListApps {
    type Reply = ListAppsReply;

    fn run(&self, context: &Context<'_>) -> Result<ListAppsReply> {
        let text = self.app.as_deref().map(fold).unwrap_or_default();
        let apps = context.platform.apps(context.deadline)?;
        let apps = apps.iter().filter(|app| fold(&app.name).contains(&text)).map(AppData::from).collect();
        Ok(ListAppsReply { apps })
    }
}
