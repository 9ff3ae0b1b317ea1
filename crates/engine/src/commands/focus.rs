//! `focus`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Give an element the keyboard focus.
    Focus, Action::SetFocus
}
