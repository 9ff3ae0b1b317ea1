//! `list-surfaces`: what is open on top of an application's windows.

use std::fmt::Write;

use agent_desktop_core::error::Result;
use agent_desktop_core::outline::{LINE_TEXT, quote};
use serde::{Deserialize, Serialize};

use super::{Reply, Run, lines};
use crate::context::Context;
use crate::observe;
use crate::targets;
use crate::wire::SurfaceData;

/// List open menus, dialogs and popovers of an application.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct ListSurfaces {
    /// The application; without it, that of the focused window.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// What is open.
#[derive(Clone, Debug, Serialize)]
pub struct ListSurfacesReply {
    pid: u32,
    surfaces: Vec<SurfaceData>,
}

impl Reply for ListSurfacesReply {
    fn outline(&self) -> Option<String> {
        let line = |surface: &SurfaceData| {
            let mut line = format!("{} {}", surface.id, surface.kind);
            if let Some(title) = &surface.title {
                let _ = write!(line, " {}", quote(title, LINE_TEXT));
            }
            if let Some(count) = surface.item_count {
                let _ = write!(line, " {count} items");
            }
            line
        };
        Some(lines(self.surfaces.iter().map(line), "no open surfaces"))
    }
}

impl Run for ListSurfaces {
    type Reply = ListSurfacesReply;

    fn run(&self, context: &Context<'_>) -> Result<ListSurfacesReply> {
        let app = targets::app_or_focused(context, self.app.as_deref())?;
        let surfaces = observe::open_surfaces(context, &app)?;
        Ok(ListSurfacesReply { pid: app.pid, surfaces: surfaces.iter().map(SurfaceData::from).collect() })
    }
}
