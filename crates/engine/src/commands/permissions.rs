//! `permissions`: what the operating system allows.

use agent_desktop_core::error::Result;
use serde::{Deserialize, Serialize};

use super::{Effects, Reply, Run};
use crate::context::Context;
use crate::wire::PermissionsData;

/// Show whether the operating system lets us read applications and take pictures.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Ask for what is missing, where the system has a dialog for that.
    #[cfg_attr(feature = "clap", arg(long))]
    pub request: bool,
}

/// What the operating system allows.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct PermissionsReply(PermissionsData);

impl Reply for PermissionsReply {}

impl Run for Permissions {
    type Reply = PermissionsReply;

    fn effects(&self, table: Effects) -> Effects {
        Effects { mutates: self.request, takes_lease: self.request, ..table }
    }

    fn run(&self, context: &Context<'_>) -> Result<PermissionsReply> {
        // No platform of ours has a dialog yet; asking is then the same as looking. The lease is what a dialog needs.
        let _lease = if self.request { Some(context.take_lease()?) } else { None };
        Ok(PermissionsReply((&context.platform.permissions(context.deadline)).into()))
    }
}
