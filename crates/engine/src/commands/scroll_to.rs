//! `scroll-to`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Scroll until an element is in view.
    ScrollTo, Action::ScrollTo
}
