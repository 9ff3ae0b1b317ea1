//! Seeing whether something happened.
//!
//! Effects are looked for on the element itself, read anew, and on the windows of its application. Not seeing one is not
//! proof that there was none; seeing the opposite is.

use std::time::Duration;

use agent_desktop_core::error::Result;
use agent_desktop_core::platform::{App, Window};
use agent_desktop_core::state::State;
use agent_desktop_core::tree::Node;

use super::read;
use crate::action_reply::PostState;
use crate::context::Context;
use crate::resolve::Resolved;

/// How long a state, a value or a selection may take to change.
pub(crate) const STATE_LIMIT: Duration = Duration::from_millis(600);
/// How long a click may take to show an effect on its element or its windows. Longer than a Qt button's animation.
pub(crate) const CLICK_LIMIT: Duration = Duration::from_millis(200);
/// After how many looks at the element the windows are looked at as well.
const WINDOWS_LOOK: u32 = 2;
/// Pause between two looks.
const POLL: Duration = Duration::from_millis(20);

/// Characters of a value that a reply repeats; `get` gives more.
pub(crate) const MOST_VALUE: usize = 1000;

/// What the element looked like afterwards, for replies.
pub(super) fn post_state(node: &Node) -> PostState {
    let value = node.value.as_deref().filter(|_| !node.states.has(State::Secure));
    let end = value.and_then(|value| Some(value.char_indices().nth(MOST_VALUE)?.0));
    // The reading itself may have been cut.
    let count = |value: &str| (node.text_length.unwrap_or(0) as usize).max(value.chars().count());
    PostState {
        value_chars: value.filter(|_| end.is_some()).map(count),
        role: node.role.as_str(),
        states: node.states.iter().map(State::as_str).collect(),
        value: value.map(|value| value[..end.unwrap_or(value.len())].to_owned()),
        enabled: Some(!node.states.has(State::Disabled)),
        hidden: node.states.has(State::Hidden).then_some(true),
        offscreen: node.states.has(State::Offscreen).then_some(true),
    }
}

/// Reads the element until it is as wanted, or `limit` has passed; gives the last reading and whether it was as wanted.
pub(super) fn watch(
    context: &Context<'_>,
    resolved: &Resolved,
    limit: Duration,
    is_wanted: impl Fn(&Node) -> bool,
) -> Result<(Option<Node>, bool)> {
    let until = context.deadline.within(context.now(), limit);
    let mut last = None;
    loop {
        match read(context, resolved, context.deadline) {
            Ok(Some(node)) => {
                let is_done = is_wanted(&node);
                last = Some(node);
                if is_done {
                    return Ok((last, true));
                }
            }
            // It is gone: whatever was wanted of it will not be seen any more.
            Ok(None) => return Ok((None, false)),
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error),
        }
        if !context.pause_until(until, POLL) {
            return Ok((last, false));
        }
    }
}

/// The same for a text that is still arriving: as long as its length changes, it is given another [`STATE_LIMIT`].
pub(super) fn watch_text(
    context: &Context<'_>,
    resolved: &Resolved,
    limit: Duration,
    is_wanted: impl Fn(&Node) -> bool,
) -> Result<(Option<Node>, bool)> {
    let mut limit = limit;
    let mut length = None;
    loop {
        let (last, was_seen) = watch(context, resolved, limit, &is_wanted)?;
        let now = last.as_ref().and_then(|node| node.text_length);
        if was_seen || now == length || context.deadline.has_passed(context.now()) {
            return Ok((last, was_seen));
        }
        (length, limit) = (now, STATE_LIMIT);
    }
}

/// Whether anything that a click could have caused is different.
pub(super) fn differs(before: &Node, after: &Node) -> bool {
    let lasting = |node: &Node| {
        // A click may move the focus without doing anything else.
        let mut states = node.states;
        states.remove(State::Focused);
        states
    };
    lasting(before) != lasting(after)
        || before.value != after.value
        || before.name != after.name
        || before.text_length != after.text_length
}

/// Whether a click showed an effect: the element changed or went away, or a window came, went or took the focus.
pub(super) fn click_had_effect(
    context: &Context<'_>,
    resolved: &Resolved,
    app: &App,
) -> Result<(Option<Node>, bool)> {
    let until = context.deadline.within(context.now(), CLICK_LIMIT);
    let before = outline_of(&resolved.windows);
    let has_changed = |context: &Context<'_>| {
        let windows = context.platform.windows(Some(app), context.deadline);
        windows.is_ok_and(|windows| outline_of(&windows) != before)
    };
    let mut last = None;
    let mut looks = 0;
    loop {
        match read(context, resolved, context.deadline) {
            Ok(Some(node)) => {
                let has_changed = differs(&resolved.node, &node);
                last = Some(node);
                if has_changed {
                    return Ok((last, true));
                }
            }
            Ok(None) => return Ok((None, true)),
            // An application that is busy with what the click started does not answer; that is no evidence.
            Err(error) if error.is_retryable() => return Ok((last, false)),
            Err(error) => return Err(error),
        }
        // Windows cost more to look at than the element: once when most effects have shown, and at the end.
        looks += 1;
        if looks == WINDOWS_LOOK && has_changed(context) {
            return Ok((last, true));
        }
        if !context.pause_until(until, POLL * 2) {
            return Ok((last, has_changed(context)));
        }
    }
}

fn outline_of(windows: &[Window]) -> Vec<(String, String, bool)> {
    let mut outline: Vec<_> =
        windows.iter().map(|window| (window.id.clone(), window.title.clone(), window.is_focused)).collect();
    outline.sort();
    outline
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_desktop_core::role::Role;
    use agent_desktop_core::tree::Handle;

    #[test]
    fn a_long_value_is_cut_and_its_length_told() {
        let mut node = Node::new(Role::TextField, Handle::new("x"));
        node.value = Some("ä".repeat(MOST_VALUE));
        assert_eq!(post_state(&node).value_chars, None);
        node.value = Some("ä".repeat(MOST_VALUE + 1));
        let state = post_state(&node);
        assert_eq!(state.value, Some("ä".repeat(MOST_VALUE)));
        assert_eq!(state.value_chars, Some(MOST_VALUE + 1));
        node.text_length = Some(70_000);
        assert_eq!(post_state(&node).value_chars, Some(70_000));
    }

    #[test]
    fn focus_alone_is_no_effect_of_a_click() {
        let before = Node::new(Role::Button, Handle::new("x"));
        let mut after = before.clone();
        after.states.insert(State::Focused);
        assert!(!differs(&before, &after));
        after.states.insert(State::Pressed);
        assert!(differs(&before, &after));
    }
}
