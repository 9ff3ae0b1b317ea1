//! `toggle`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Change a check box, a switch or a radio button to its other state.
    Toggle, Action::Toggle
}
