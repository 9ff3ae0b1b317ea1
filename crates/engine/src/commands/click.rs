//! `click`.

use agent_desktop_core::action::Action;

use super::ref_action::ref_action;

ref_action! {
    /// Activate an element: what a person does with a click.
    Click, Action::Click
}
