//! `drag`: press, move, release.

use std::time::Duration;

use agent_desktop_core::action::Action;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::platform::Input;
use agent_desktop_core::refs::RefTarget;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::act::{self, Aim};
use crate::context::{Context, Options};
use crate::pointer::parse_point;
use crate::wait_for::{self, Answer};
use crate::wire::PointData;

/// How long the move takes when nobody says, in milliseconds.
pub const DURATION_MS: u64 = 300;
/// How long the pointer stays over the target when nobody says, in milliseconds.
pub const DROP_DELAY_MS: u64 = 500;
/// Longest move and longest stay, in milliseconds.
pub(crate) const MAX_DURATION_MS: u64 = 60_000;
pub(crate) const MAX_DROP_DELAY_MS: u64 = 10_000;
/// What picking up takes before the move, in milliseconds.
pub(crate) const PICKUP_MS: u64 = 200;

/// Drag from an element or a point to another (needs --headed).
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Drag {
    /// Ref to drag from.
    #[cfg_attr(feature = "clap", arg(long, value_name = "REF"))]
    pub from: Option<String>,
    /// Point to drag from, in logical pixels of the desktop.
    #[cfg_attr(feature = "clap", arg(long, value_name = "X,Y", allow_hyphen_values = true))]
    pub from_xy: Option<String>,
    /// Ref to drag to.
    #[cfg_attr(feature = "clap", arg(long, value_name = "REF"))]
    pub to: Option<String>,
    /// Point to drag to, in logical pixels of the desktop.
    #[cfg_attr(feature = "clap", arg(long, value_name = "X,Y", allow_hyphen_values = true))]
    pub to_xy: Option<String>,
    /// Snapshot of refs that do not name their own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub snapshot: Option<String>,
    /// How many milliseconds the move takes, up to 60000 [default: 300].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub duration: Option<u64>,
    /// How many milliseconds to stay over the target before the release, up to 10000 [default: 500].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub drop_delay: Option<u64>,
    /// Give up after this many milliseconds; 0: one attempt [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// What was dragged.
#[derive(Clone, Debug, Serialize)]
pub struct DragReply {
    /// Always true.
    pub dragged: bool,
    /// From where.
    pub from: PointData,
    /// To where.
    pub to: PointData,
    /// For refs: the window was focused first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focused: Option<bool>,
    /// As given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_delay_ms: Option<u64>,
}

impl Reply for DragReply {}

impl Drag {
    /// How long the move takes.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration.unwrap_or(DURATION_MS))
    }

    /// How long the pointer stays over the target.
    pub fn drop_delay(&self) -> Duration {
        Duration::from_millis(self.drop_delay.unwrap_or(DROP_DELAY_MS))
    }

    fn aim(&self, context: &Context<'_>, reference: &str, focus: bool) -> Result<Aim> {
        act::aim(context, reference, self.snapshot.as_deref(), Action::Drag, focus)
    }

    /// Refuses a drag that the time left is too short for: better nothing than half of it.
    ///
    /// # Errors
    /// `TIMEOUT`, nothing delivered.
    pub fn check_budget(&self, context: &Context<'_>) -> Result<()> {
        let needed = self.duration() + self.drop_delay() + Duration::from_millis(PICKUP_MS);
        if context.deadline.remaining(context.now()) >= needed {
            return Ok(());
        }
        Err(Error::new(ErrorCode::Timeout, format!("the drag takes {} ms, more than is left", needed.as_millis()))
            .kind("deadline")
            .hint("allow more time with --timeout-ms, or shorten --duration and --drop-delay")
            .delivery(Delivery::NotDelivered))
    }
}

impl Run for Drag {
    type Reply = Answer<DragReply>;

    fn check(&self, _: &Options) -> Result<()> {
        for (name, element, point) in [("from", &self.from, &self.from_xy), ("to", &self.to, &self.to_xy)] {
            match (element, point) {
                (Some(_), Some(_)) => {
                    return Err(Error::invalid(format!("--{name} and --{name}-xy exclude each other")));
                }
                (None, None) => return Err(Error::invalid(format!("drag needs --{name} or --{name}-xy"))),
                (None, Some(point)) => {
                    parse_point(point)?;
                }
                (Some(reference), None) => {
                    RefTarget::parse(reference, self.snapshot.as_deref())?;
                }
            }
        }
        if self.duration.is_some_and(|duration| duration > MAX_DURATION_MS) {
            return Err(Error::invalid(format!("--duration is at most {MAX_DURATION_MS} ms")));
        }
        if self.drop_delay.is_some_and(|delay| delay > MAX_DROP_DELAY_MS) {
            return Err(Error::invalid(format!("--drop-delay is at most {MAX_DROP_DELAY_MS} ms")));
        }
        Ok(())
    }

    fn run(&self, context: &Context<'_>) -> Result<Answer<DragReply>> {
        // The target first: it can be waited for without touching anything.
        if let Some(to) = &self.to {
            self.aim(context, to, false)?;
        }
        let from = self.from.as_ref().map(|from| self.aim(context, from, true)).transpose()?;
        let lease = if from.is_none() { Some(context.take_lease()?) } else { None };
        let start = match (&from, &self.from_xy) {
            (Some(aim), _) => aim.point,
            (None, xy) => parse_point(xy.as_deref().unwrap_or_default())?,
        };
        // Bringing the source to the front may have covered or moved the target.
        let end = match (&self.to, &self.to_xy) {
            (Some(to), _) => self.aim(context, to, false)?.point,
            (None, xy) => parse_point(xy.as_deref().unwrap_or_default())?,
        };
        self.check_budget(context)?;
        let drag =
            Input::Drag { from: start, to: end, duration: self.duration(), drop_delay: self.drop_delay() };
        context.dispatch(from.as_ref().map(|aim| aim.reference.as_str()), "drag", &drag)?;
        let window_id = from.as_ref().map(|aim| aim.window.id.clone());
        let reply = DragReply {
            dragged: true,
            from: start.into(),
            to: end.into(),
            focused: window_id.as_ref().map(|_| true),
            drop_delay_ms: self.drop_delay,
        };
        // Nothing is held while waiting.
        drop(lease);
        if let Some(aim) = from {
            aim.end(context)?;
        }
        wait_for::finish(context, reply, window_id)
    }
}
