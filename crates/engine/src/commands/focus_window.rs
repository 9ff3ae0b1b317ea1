//! `focus-window`: give a window the keyboard.

use std::time::Duration;

use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::platform::{Window, WindowOperation};
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::act;
use crate::targets;
use crate::wire::WindowData;

/// How long the focus may take to arrive.
pub(crate) const LIMIT: Duration = Duration::from_millis(750);
/// Time between two looks; the focus counts when two looks in a row see it.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// Bring a window to the front and give it the keyboard.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct FocusWindow {
    /// The window with this id, as list-windows shows it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub window_id: Option<String>,
    /// The window of this application.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// The window with this text in its title; case matters.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub title: Option<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// The window as it is now.
#[derive(Clone, Debug, Serialize)]
pub struct FocusWindowReply {
    focused: WindowData,
}

impl Reply for FocusWindowReply {
    fn outline(&self) -> Option<String> {
        Some(self.focused.outline())
    }
}

impl FocusWindow {
    fn find(&self, context: &Context<'_>) -> Result<Window> {
        let (None, Some(title)) = (&self.window_id, &self.title) else {
            return targets::window(context, self.window_id.as_deref(), self.app.as_deref());
        };
        let app = self.app.as_deref().map(|name| targets::app(context, name)).transpose()?;
        let mut windows = context.platform.windows(app.as_ref(), context.deadline)?;
        windows.retain(|window| window.title.contains(title));
        if windows.is_empty() {
            return Err(Error::new(ErrorCode::WindowNotFound, "no window has this text in its title")
                .hint("list-windows shows the titles; case matters"));
        }
        // "Inbox" means the window of that title before "Inbox (2)".
        let exact: Vec<&Window> = windows.iter().filter(|window| window.title == *title).collect();
        match (exact.as_slice(), windows.as_slice()) {
            ([only], _) => Ok((*only).clone()),
            (_, [only]) => Ok(only.clone()),
            _ => {
                let all: Vec<&Window> = windows.iter().collect();
                Err(targets::ambiguous_windows(&all, "the title fits"))
            }
        }
    }
}

impl Run for FocusWindow {
    type Reply = FocusWindowReply;

    fn check(&self, _: &Options) -> Result<()> {
        if self.title.as_deref() == Some("") {
            return Err(Error::invalid("--title is empty"));
        }
        if self.window_id.is_none() && self.app.is_none() && self.title.is_none() {
            return Err(Error::invalid("focus-window needs --window-id, --title or --app"));
        }
        Ok(())
    }

    fn run(&self, context: &Context<'_>) -> Result<FocusWindowReply> {
        let window = self.find(context)?;
        let _lease = context.take_lease()?;
        let outcome = focus(context, &window);
        act::trace_focus(context, &window, outcome.is_ok())?;
        let focused = outcome?;
        Ok(FocusWindowReply { focused: (&focused).into() })
    }
}

/// Focuses a window and sees that it is so: two looks in a row. Call with the lease held.
///
/// # Errors
/// `ACTION_FAILED` when the focus does not arrive, `STALE_REF` or `WINDOW_NOT_FOUND` when the window is another or gone.
pub(crate) fn focus(context: &Context<'_>, window: &Window) -> Result<Window> {
    let window = targets::recheck(context, window)?;
    context.begin_delivery();
    context.platform.window_operation(&window, WindowOperation::Focus, context.deadline)?;
    let limit = context.deadline.within(context.now(), LIMIT);
    let mut was_focused = false;
    loop {
        let live = targets::recheck(context, &window)?;
        if live.is_focused && was_focused {
            return Ok(live);
        }
        was_focused = live.is_focused;
        if !context.pause_until(limit, POLL) {
            return Err(Error::new(
                ErrorCode::ActionFailed,
                format!("window {} did not get the focus within {} ms", window.id, limit.budget().as_millis()),
            )
            .hint("a dialog may hold the focus, or the window manager refuses; list-windows shows what has it"));
        }
    }
}
