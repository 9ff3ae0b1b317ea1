//! `right-click`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Open the context menu of an element.
    RightClick, Action::RightClick
}
