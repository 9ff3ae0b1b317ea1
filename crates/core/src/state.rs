//! States: what is true of a node right now.
//!
//! A set of the 17 tokens of the contract. There is no `enabled` token: it is the absence of `disabled`.

use std::fmt;

macro_rules! states {
    ($(#[doc = $doc:literal] $variant:ident $text:literal),* $(,)?) => {
        /// One state token.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum State { $(#[doc = $doc] $variant),* }

        impl State {
            /// Every state, in the order in which they are printed.
            pub const ALL: &[State] = &[$(State::$variant),*];

            /// The name used in JSON and in queries.
            pub const fn as_str(self) -> &'static str {
                match self { $(State::$variant => $text),* }
            }

            /// What it says of a node, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(State::$variant => $doc.trim_ascii()),* }
            }

            /// The state of exactly this name.
            pub fn parse(text: &str) -> Option<State> {
                match text { $($text => Some(State::$variant),)* _ => None }
            }
        }
    };
}

states! {
    /// It has the keyboard focus.
    Focused "focused",
    /// It takes no input now.
    Disabled "disabled",
    /// Its content is hidden from onlookers; its value is never read.
    Secure "secure",
    /// What it can open is open.
    Expanded "expanded",
    /// It is checked, or switched on.
    Checked "checked",
    /// It is selected in its container.
    Selected "selected",
    /// It is not shown at all.
    Hidden "hidden",
    /// Its content is still changing.
    Busy "busy",
    /// Other windows of its application wait for it.
    Modal "modal",
    /// A form is not complete without it.
    Required "required",
    /// It is neither checked nor unchecked.
    Indeterminate "indeterminate",
    /// It is held down, as a toggle button that is on.
    Pressed "pressed",
    /// Its text can be read and not changed.
    ReadOnly "readonly",
    /// It lies outside of what its window shows.
    Offscreen "offscreen",
    /// Its content is refused by its application.
    Invalid "invalid",
    /// Several of its items can be selected at once.
    MultiSelectable "multiselectable",
    /// It opens a menu, a list or a dialog.
    HasPopup "haspopup",
}

/// A set of states; four bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct States(u32);

impl States {
    /// No state at all.
    pub const NONE: States = States(0);

    /// Whether `state` is in the set.
    pub const fn has(self, state: State) -> bool {
        self.0 & (1 << state as u32) != 0
    }

    /// Adds `state`.
    pub const fn insert(&mut self, state: State) {
        self.0 |= 1 << state as u32;
    }

    /// Takes `state` away.
    pub const fn remove(&mut self, state: State) {
        self.0 &= !(1 << state as u32);
    }

    /// Adds or takes away `state`.
    pub const fn set(&mut self, state: State, on: bool) {
        if on { self.insert(state) } else { self.remove(state) }
    }

    /// The set with `state` added.
    #[must_use]
    pub const fn with(mut self, state: State) -> States {
        self.insert(state);
        self
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The states in printing order.
    pub fn iter(self) -> impl Iterator<Item = State> {
        State::ALL.iter().copied().filter(move |&state| self.has(state))
    }
}

impl FromIterator<State> for States {
    fn from_iter<I: IntoIterator<Item = State>>(states: I) -> Self {
        states.into_iter().fold(States::NONE, States::with)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter().map(State::as_str)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_remembers_what_was_put_in_and_prints_in_order() {
        let mut states: States = [State::HasPopup, State::Focused].into_iter().collect();
        assert_eq!(states.iter().map(State::as_str).collect::<Vec<_>>(), ["focused", "haspopup"]);
        states.set(State::Focused, false);
        assert!(!states.has(State::Focused) && states.has(State::HasPopup));
    }

    #[test]
    fn seventeen_tokens_parse_back_and_enabled_is_none_of_them() {
        assert_eq!(State::ALL.len(), 17);
        for &state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        assert_eq!(State::parse("enabled"), None);
    }
}
