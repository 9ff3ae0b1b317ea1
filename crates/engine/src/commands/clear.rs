//! `clear`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Empty a text field.
    Clear, Action::Clear
}
