//! `hover`: rest the pointer on an element or a point.

use agent_desktop_core::action::Action;
use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::platform::Input;
use agent_desktop_core::refs::RefTarget;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::act;
use crate::context::{Context, Options};
use crate::pointer::parse_point;
use crate::wait_for::{self, Answer};

/// Rest the pointer on an element or on a point of the desktop (needs --headed).
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Hover {
    /// Ref from a snapshot, such as @sq4m2:e14.
    #[cfg_attr(feature = "clap", arg(value_name = "REF"))]
    pub ref_id: Option<String>,
    /// Or a point, in logical pixels of the desktop.
    #[cfg_attr(feature = "clap", arg(long, value_name = "X,Y", allow_hyphen_values = true))]
    pub xy: Option<String>,
    /// Snapshot of a ref that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub snapshot: Option<String>,
    /// Give up after this many milliseconds; 0: one attempt [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
    /// Reserved, only 0 is accepted: the pointer stays where it is put.
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub duration: Option<u64>,
}

/// Where the pointer rests.
#[derive(Clone, Debug, Serialize)]
pub struct HoverReply {
    /// Always true.
    pub hovered: bool,
    /// Logical pixels from the left of the desktop.
    pub x: f64,
    /// Logical pixels from its top.
    pub y: f64,
    /// For refs: the window was focused first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focused: Option<bool>,
}

impl Reply for HoverReply {}

impl Run for Hover {
    type Reply = Answer<HoverReply>;

    fn check(&self, _: &Options) -> Result<()> {
        if self.duration.is_some_and(|duration| duration > 0) {
            return Err(Error::invalid("--duration is not supported: the pointer stays where it is put"));
        }
        match (&self.ref_id, &self.xy) {
            (Some(reference), _) => RefTarget::parse(reference, self.snapshot.as_deref()).map(|_| ()),
            (None, Some(xy)) => parse_point(xy).map(|_| ()),
            (None, None) => Err(Error::invalid("hover needs a ref or --xy")),
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<Answer<HoverReply>> {
        let (point, window) = match (&self.ref_id, &self.xy) {
            (Some(reference), _) => {
                let aim = act::aim(context, reference, self.snapshot.as_deref(), Action::Hover, true)?;
                context.dispatch(Some(&aim.reference), "hover", &Input::Move(aim.point))?;
                let (point, window) = (aim.point, aim.window.clone());
                aim.end(context)?;
                (point, Some(window))
            }
            (None, xy) => {
                let point = parse_point(xy.as_deref().unwrap_or_default())?;
                context.send_input("hover", &Input::Move(point))?;
                (point, None)
            }
        };
        let reply =
            HoverReply { hovered: true, x: point.x, y: point.y, focused: window.as_ref().map(|_| true) };
        wait_for::finish(context, reply, window.map(|window| window.id))
    }
}
