//! `uncheck`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Make a check box or a switch unchecked; nothing if it is.
    Uncheck, Action::Uncheck
}
