//! `list-displays`: what `--screen` counts.

use agent_desktop_core::error::Result;
use serde::{Deserialize, Serialize};

use super::{Reply, Run, lines};
use crate::context::Context;
use crate::wire::DisplayData;

/// List displays; the position in the list is the index of `screenshot --screen`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct ListDisplays {
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// The displays, the primary one first.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct ListDisplaysReply(Vec<DisplayData>);

impl Reply for ListDisplaysReply {
    fn outline(&self) -> Option<String> {
        let line = |(index, display): (usize, &DisplayData)| {
            let bounds = display.bounds;
            let primary = if display.is_primary { " [primary]" } else { "" };
            format!(
                "{index} {} {},{} {}x{} scale {}{primary}",
                display.id, bounds.x, bounds.y, bounds.width, bounds.height, display.scale
            )
        };
        Some(lines(self.0.iter().enumerate().map(line), "no displays"))
    }
}

impl Run for ListDisplays {
    type Reply = ListDisplaysReply;

    fn run(&self, context: &Context<'_>) -> Result<ListDisplaysReply> {
        let displays = context.platform.displays(context.deadline)?;
        Ok(ListDisplaysReply(displays.iter().map(DisplayData::from).collect()))
    }
}
