//! `check`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Make a check box, a switch or a radio button checked; nothing if it is.
    Check, Action::Check
}
