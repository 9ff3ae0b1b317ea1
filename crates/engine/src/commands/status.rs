//! `status`: what works here, and what is stored.

use agent_desktop_core::error::Result;
use agent_desktop_core::platform::SurfaceKind;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::Context;
use crate::rules::Summary;
use crate::session::Artifacts;
use crate::wire::PermissionsData;

/// Show what works on this desktop, the latest snapshot and the session.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct Status {}

/// What works here, and what is stored.
#[derive(Clone, Debug, Serialize)]
pub struct StatusReply {
    platform: &'static str,
    version: &'static str,
    permissions: PermissionsData,
    snapshot_id: Option<String>,
    ref_count: Option<usize>,
    session_id: Option<String>,
    tracing: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<Artifacts>,
    policy: Summary,
    supported_surfaces: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_root: Option<String>,
}

impl Reply for StatusReply {}

impl Run for Status {
    type Reply = StatusReply;

    fn run(&self, context: &Context<'_>) -> Result<StatusReply> {
        let snapshot_id = match context.store.root() {
            Some(_) => context.store.latest()?,
            None => None,
        };
        let ref_count = match &snapshot_id {
            Some(id) => Some(context.store.load(id)?.entries.len()),
            None => None,
        };
        let surfaces = context.platform.supported_surfaces();
        Ok(StatusReply {
            platform: context.platform.name(),
            version: env!("CARGO_PKG_VERSION"),
            permissions: (&context.platform.permissions(context.deadline)).into(),
            snapshot_id,
            ref_count,
            session_id: context.store.session().map(str::to_owned),
            tracing: context.trace.is_on(),
            artifacts: context.session.map(|session| session.manifest.artifacts),
            policy: context.rules.summary(),
            supported_surfaces: surfaces.iter().copied().map(SurfaceKind::as_json).collect(),
            state_root: context.store.root().map(|root| root.display().to_string()),
        })
    }
}
