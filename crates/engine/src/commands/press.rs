//! `press`: a key chord.

use agent_desktop_core::action::Action;
use agent_desktop_core::delivery::{Step, StepOutcome};
use agent_desktop_core::error::Result;
use agent_desktop_core::key::Chord;
use agent_desktop_core::platform::Input;
use serde::Deserialize;

use super::Run;
use crate::act;
use crate::action_reply::ActionReply;
use crate::context::{Context, Options};
use crate::policy;
use crate::targets;
use crate::wire::SurfaceData;

/// Press a key chord, such as ctrl+shift+s (needs --headed on Linux).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct Press {
    /// Modifiers (ctrl, alt, shift, meta) and one key, joined by +: a character, return, escape, tab, space, delete,
    /// forwarddelete, home, end, pageup, pagedown, left, right, up, down, menu, f1 to f12.
    pub combo: String,
    /// Focus this application's window first; without it, the key goes to whatever has the focus.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    #[serde(default)]
    pub app: Option<String>,
    /// The same for this window of list-windows.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    #[serde(default)]
    pub window_id: Option<String>,
    /// Also if the chord is a protected one, such as alt+f4.
    #[cfg_attr(feature = "clap", arg(long))]
    #[serde(default)]
    pub force: bool,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

impl Run for Press {
    type Reply = ActionReply;

    fn check(&self, _: &Options) -> Result<()> {
        Chord::parse(&self.combo).map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<ActionReply> {
        let chord = policy::screen_chord(&self.combo, &context.platform.safety(), context.rules, self.force)?;
        // There is no way to hand a key to one application behind the person's back: X11 applications ignore events
        // that are sent to them, Wayland has none. What remains is the keyboard everybody shares.
        if !context.options.headed {
            return Err(policy::needs_headed("press")
                .hint("repeat with --headed, or use a ref action such as click or set-value, which needs no keys"));
        }
        let named = match (&self.window_id, &self.app) {
            (Some(id), app) => {
                let window = targets::window(context, Some(id), app.as_deref())?;
                Some((targets::app_of(context, &window)?, Some(window)))
            }
            (None, Some(name)) => Some((targets::identified_app(context, name)?, None)),
            (None, None) => None,
        };
        let lease = context.take_lease()?;
        let mut steps = Vec::new();
        if let Some((app, window)) = &named {
            let window = if let Some(window) = window {
                targets::recheck(context, window)?
            } else {
                let app = targets::recheck_app(context, app)?;
                let windows = context.platform.windows(Some(&app), context.deadline)?;
                targets::one_window(windows, &format!("{} has", app.name))?
            };
            let is_new = !window.is_focused;
            act::focus_window(context, &window)?;
            let outcome = if is_new { StepOutcome::Succeeded } else { StepOutcome::Skipped };
            steps.push(Step::physical("focus_window", outcome).verified(true));
        }
        context.dispatch(None, Action::PressKey.as_str(), &Input::Chord(chord))?;
        steps.push(Step::physical("key_chord", StepOutcome::Succeeded).verified(false));
        drop(lease);
        let mut reply = ActionReply::new(Action::PressKey.as_str(), &steps);
        if let Some((app, _)) = &named {
            // What opened is a help to the caller; that it cannot be listed does not undo the key.
            let surfaces = context.platform.surfaces(app, None, context.deadline).unwrap_or_default();
            reply.surfaces = surfaces.iter().map(SurfaceData::from).collect();
        }
        Ok(reply)
    }
}
