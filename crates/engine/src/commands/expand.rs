//! `expand`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Open a combo box, a tree item, a menu button or a section; nothing if it is open.
    Expand, Action::Expand
}
