//! `double-click`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Click an element twice with the mouse (needs --headed).
    DoubleClick, Action::DoubleClick
}
