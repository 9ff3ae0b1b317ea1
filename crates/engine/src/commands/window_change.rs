//! What the commands that change a window have in common: finding it, asking once, and seeing that it is so.

use std::time::Duration;

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result, facts};
use agent_desktop_core::platform::{Window, WindowOperation};

use super::focus_window::focus;
use crate::context::{Context, Options};
use crate::targets;

/// How long a change may take to show.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);
/// Time between two looks.
pub(crate) const POLL: Duration = Duration::from_millis(10);
/// How long after a window has come back it may still be given the keyboard.
const SETTLED: Duration = Duration::from_millis(150);
/// Units by which the place or the size may differ from what was asked for.
pub(crate) const TOLERANCE: f64 = 2.0;
/// Largest width, height and coordinate.
pub(crate) const MOST: f64 = 1_000_000.0;

/// Refuses an empty `--window-id` or `--app` before anything is looked at.
pub(crate) fn check_scope(window_id: Option<&str>, app: Option<&str>, _: &Options) -> Result<()> {
    for (flag, value) in [("--window-id", window_id), ("--app", app)] {
        if value.is_some_and(|text| text.trim().is_empty()) {
            return Err(Error::invalid(format!("{flag} is empty")));
        }
    }
    Ok(())
}

/// Changes the window under the lease and waits until `is_so`. Nothing is asked of a window that is so already.
///
/// # Errors
/// `WINDOW_NOT_FOUND`, `AMBIGUOUS_TARGET`, `STALE_REF`; `TIMEOUT` with the place and state it has instead, when the window
/// manager does otherwise.
pub(crate) fn change(
    context: &Context<'_>,
    window_id: Option<&str>,
    app: Option<&str>,
    operation: impl FnOnce(&Window) -> WindowOperation,
    is_so: impl Fn(&Window) -> bool,
) -> Result<Window> {
    let window = targets::window(context, window_id, app)?;
    let _lease = context.take_lease()?;
    let windows = context.platform.windows(None, context.deadline)?;
    let window = targets::rechecked(&windows, &window)?;
    if is_so(&window) {
        return Ok(window);
    }
    let focused = windows.into_iter().find(|other| other.is_focused && other.id != window.id);
    let operation = operation(&window);
    context.begin_delivery();
    context.platform.window_operation(&window, operation, context.deadline)?;
    let limit = context.deadline.within(context.now(), LIMIT);
    loop {
        let live =
            targets::recheck(context, &window).map_err(|error| error.delivery(Delivery::Unverified))?;
        if is_so(&live) {
            return match focused {
                Some(focused) if window.minimized == Some(true) => give_back(context, &live, &focused),
                _ => Ok(live),
            };
        }
        if !context.pause_until(limit, POLL) {
            return Err(not_so(&live, limit.budget()));
        }
    }
}

/// Some window managers give the keyboard to a window that comes back. Nobody asked for that: whoever had it gets it again.
fn give_back(context: &Context<'_>, window: &Window, focused: &Window) -> Result<Window> {
    let settled = context.deadline.within(context.now(), SETTLED);
    loop {
        let live = targets::recheck(context, window).map_err(|error| error.delivery(Delivery::Unverified))?;
        if live.is_focused {
            // The window is back, which is what was asked for; a keyboard that cannot be given back does not undo that.
            let _ = focus(context, focused);
            return targets::recheck(context, window).map_err(|error| error.delivery(Delivery::Unverified));
        }
        if !context.pause_until(settled, POLL) {
            return Ok(live);
        }
    }
}

fn not_so(live: &Window, limit: Duration) -> Error {
    let frame = live.frame.or(live.bounds).unwrap_or_default();
    let frame = facts([
        ("x", frame.x.into()),
        ("y", frame.y.into()),
        ("width", frame.width.into()),
        ("height", frame.height.into()),
    ]);
    let actual = facts([
        ("minimized", live.minimized.unwrap_or(false).into()),
        ("maximized", live.maximized.unwrap_or(false).into()),
        ("frame", frame),
    ]);
    Error::new(
        ErrorCode::Timeout,
        format!("window {} did not become what was asked for within {} ms", live.id, limit.as_millis()),
    )
    .kind("deadline")
    .detail("actual", actual)
    .hint("the application or the window manager sets limits; details.actual is what the window is like now")
    .delivery(Delivery::Unverified)
}

/// A coordinate or a size as the command line takes it.
///
/// # Errors
/// `INVALID_ARGS` when it is no number, or too large.
pub(crate) fn check_number(flag: &str, value: f64, least: f64) -> Result<()> {
    if value.is_finite() && value >= least && value <= MOST {
        return Ok(());
    }
    Err(Error::invalid(format!("{flag} is a number from {least} to {MOST}")))
}
