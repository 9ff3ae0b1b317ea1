//! `triple-click`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Click an element three times with the mouse (needs --headed).
    TripleClick, Action::TripleClick
}
