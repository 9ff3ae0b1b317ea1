//! `collapse`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Close a combo box, a tree item or a section; nothing if it is closed.
    Collapse, Action::Collapse
}
