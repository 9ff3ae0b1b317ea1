//! `version`: what this program is.

use agent_desktop_core::error::Result;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::Context;

/// Show the version of agent-desktop.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct Version {}

/// What this program is.
#[derive(Clone, Debug, Serialize)]
pub struct VersionReply {
    version: &'static str,
    target: &'static str,
    os: &'static str,
}

impl Reply for VersionReply {
    fn outline(&self) -> Option<String> {
        Some(format!("agent-desktop {} {} {}", self.version, self.target, self.os))
    }
}

impl Run for Version {
    type Reply = VersionReply;

    fn run(&self, _context: &Context<'_>) -> Result<VersionReply> {
        Ok(VersionReply {
            version: env!("CARGO_PKG_VERSION"),
            target: std::env::consts::ARCH,
            os: std::env::consts::OS,
        })
    }
}
