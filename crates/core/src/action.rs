//! Actions, and the capabilities they need.
//!
//! A capability is what a live element truly offers (`available_actions`); an action is what a caller asks for. Which
//! capability an action needs stands in one table here.

use std::fmt;

macro_rules! capabilities {
    ($($variant:ident),* $(,)?) => {
        /// Something a live element offers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each variant is the capability of its name")]
        pub enum Capability { $($variant),* }

        impl Capability {
            /// Every capability, in printing order.
            pub const ALL: &[Capability] = &[$(Capability::$variant),*];

            /// The name used in `available_actions`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Capability::$variant => stringify!($variant)),* }
            }

            /// The capability of exactly this name.
            pub fn parse(text: &str) -> Option<Capability> {
                match text { $(stringify!($variant) => Some(Capability::$variant),)* _ => None }
            }
        }
    };
}

capabilities! {
    Click, RightClick, SetValue, SetFocus, Expand, Collapse, Select, Toggle, Scroll, ScrollTo, PressKey, KeyDown,
    KeyUp, TypeText, Hover, Drag, Check, Uncheck,
}

/// A set of capabilities; four bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Nothing offered.
    pub const NONE: Capabilities = Capabilities(0);

    /// Whether `capability` is offered.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u32) != 0
    }

    /// Adds `capability`.
    pub const fn insert(&mut self, capability: Capability) {
        self.0 |= 1 << capability as u32;
    }

    /// Takes `capability` away.
    pub const fn remove(&mut self, capability: Capability) {
        self.0 &= !(1 << capability as u32);
    }

    /// The set with `capability` added.
    #[must_use]
    pub const fn with(mut self, capability: Capability) -> Capabilities {
        self.insert(capability);
        self
    }

    /// Whether nothing is offered.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether anything is offered that alone makes a node worth a ref.
    ///
    /// Focus, context menu and scrolling into view do not count: browsers put them on every node.
    pub const fn makes_operable(self) -> bool {
        let common = 1 << Capability::SetFocus as u32
            | 1 << Capability::RightClick as u32
            | 1 << Capability::ScrollTo as u32;
        self.0 & !common != 0
    }

    /// What is offered, in printing order.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.iter().copied().filter(move |&capability| self.has(capability))
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        capabilities.into_iter().fold(Capabilities::NONE, Capabilities::with)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

/// A direction to scroll in: where the view moves, not the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the top.
    Up,
    /// Towards the bottom.
    Down,
    /// Towards the left.
    Left,
    /// Towards the right.
    Right,
}

impl Direction {
    /// The word used on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
            Direction::Left => "left",
            Direction::Right => "right",
        }
    }
}

/// A mouse button.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MouseButton {
    /// The primary one.
    #[default]
    Left,
    /// The one for context menus.
    Right,
    /// The wheel.
    Middle,
}

/// What a caller asks an element to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Activate it.
    Click,
    /// Two physical clicks.
    DoubleClick,
    /// Three physical clicks.
    TripleClick,
    /// Open its context menu.
    RightClick,
    /// Replace its value.
    SetValue,
    /// Empty it.
    Clear,
    /// Insert text at the caret.
    TypeText,
    /// Give it the keyboard focus.
    SetFocus,
    /// Choose one of its items.
    Select,
    /// Change it to the other state.
    Toggle,
    /// Make it checked.
    Check,
    /// Make it unchecked.
    Uncheck,
    /// Open it.
    Expand,
    /// Close it.
    Collapse,
    /// Move its view.
    Scroll,
    /// Bring it into view.
    ScrollTo,
    /// Press a key chord.
    PressKey,
    /// Hold a key.
    KeyDown,
    /// Release a key.
    KeyUp,
    /// Put the pointer over it.
    Hover,
    /// Drag it somewhere.
    Drag,
    /// Select a part of its text.
    SelectText,
    /// Replace a part of its text.
    ReplaceText,
    /// Put the caret somewhere in its text.
    SetCaret,
}

/// What an action demands; one row of the contract's tables C3 and C6.
#[derive(Clone, Copy, Debug)]
pub struct Requirements {
    /// One of these is needed; empty: nothing is.
    pub any_of: &'static [Capability],
    /// The element must be seen.
    pub visible: bool,
    /// Its box must not move.
    pub stable: bool,
    /// It must not be disabled.
    pub enabled: bool,
    /// Text must be enterable.
    pub editable: bool,
    /// A physical pointer must reach it.
    pub receives_events: bool,
    /// It is scrolled into view if that helps.
    pub scrolls_into_view: bool,
    /// It may open a menu, a dialog or another surface.
    pub may_open_surface: bool,
}

impl Action {
    /// Every action.
    pub const ALL: &[Action] = &[
        Action::Click,
        Action::DoubleClick,
        Action::TripleClick,
        Action::RightClick,
        Action::SetValue,
        Action::Clear,
        Action::TypeText,
        Action::SetFocus,
        Action::Select,
        Action::Toggle,
        Action::Check,
        Action::Uncheck,
        Action::Expand,
        Action::Collapse,
        Action::Scroll,
        Action::ScrollTo,
        Action::PressKey,
        Action::KeyDown,
        Action::KeyUp,
        Action::Hover,
        Action::Drag,
        Action::SelectText,
        Action::ReplaceText,
        Action::SetCaret,
    ];

    /// The command that asks for it, which is also its label in replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::Click => "click",
            Action::DoubleClick => "double-click",
            Action::TripleClick => "triple-click",
            Action::RightClick => "right-click",
            Action::SetValue => "set-value",
            Action::Clear => "clear",
            Action::TypeText => "type",
            Action::SetFocus => "focus",
            Action::Select => "select",
            Action::Toggle => "toggle",
            Action::Check => "check",
            Action::Uncheck => "uncheck",
            Action::Expand => "expand",
            Action::Collapse => "collapse",
            Action::Scroll => "scroll",
            Action::ScrollTo => "scroll-to",
            Action::PressKey => "press",
            Action::KeyDown => "key-down",
            Action::KeyUp => "key-up",
            Action::Hover => "hover",
            Action::Drag => "drag",
            Action::SelectText => "text-select",
            Action::ReplaceText => "text-replace",
            Action::SetCaret => "text-caret",
        }
    }

    /// What it demands.
    pub const fn requirements(self) -> Requirements {
        const NOTHING: Requirements = Requirements {
            any_of: &[],
            visible: false,
            stable: false,
            enabled: false,
            editable: false,
            receives_events: false,
            scrolls_into_view: false,
            may_open_surface: false,
        };
        const POINTED: Requirements = Requirements {
            visible: true,
            stable: true,
            enabled: true,
            receives_events: true,
            scrolls_into_view: true,
            may_open_surface: true,
            ..NOTHING
        };
        const EDITED: Requirements =
            Requirements { visible: true, enabled: true, editable: true, scrolls_into_view: true, ..NOTHING };
        const SWITCHED: Requirements =
            Requirements { visible: true, stable: true, enabled: true, scrolls_into_view: true, ..NOTHING };
        match self {
            Action::Click | Action::DoubleClick | Action::TripleClick => {
                Requirements { any_of: &[Capability::Click], ..POINTED }
            }
            Action::RightClick => Requirements { any_of: &[Capability::RightClick], ..POINTED },
            Action::SetValue | Action::Clear => Requirements { any_of: &[Capability::SetValue], ..EDITED },
            Action::TypeText | Action::ReplaceText => {
                Requirements { any_of: &[Capability::TypeText], ..EDITED }
            }
            // Labels and pages can be selected from too; whether there is text is seen when it is read.
            Action::SelectText | Action::SetCaret => Requirements { enabled: true, ..NOTHING },
            Action::SetFocus => Requirements { any_of: &[Capability::SetFocus], ..NOTHING },
            Action::Select => Requirements {
                any_of: &[Capability::Select, Capability::Click],
                visible: true,
                enabled: true,
                scrolls_into_view: true,
                may_open_surface: true,
                ..NOTHING
            },
            Action::Toggle | Action::Check | Action::Uncheck => {
                Requirements { any_of: &[Capability::Toggle, Capability::Click], ..SWITCHED }
            }
            Action::Expand => {
                Requirements { any_of: &[Capability::Expand], may_open_surface: true, ..SWITCHED }
            }
            Action::Collapse => Requirements { any_of: &[Capability::Collapse], ..SWITCHED },
            // What scrolls is the element or something around it, which only acting finds out.
            Action::Scroll => Requirements { scrolls_into_view: false, ..SWITCHED },
            Action::ScrollTo => Requirements { stable: true, ..NOTHING },
            Action::PressKey => Requirements { may_open_surface: true, ..NOTHING },
            Action::KeyDown | Action::KeyUp => NOTHING,
            Action::Hover | Action::Drag => {
                Requirements { enabled: false, may_open_surface: false, ..POINTED }
            }
        }
    }

    /// Whether it exists only as physical pointer input, and so needs `--headed` always.
    pub const fn is_physical_only(self) -> bool {
        matches!(self, Action::DoubleClick | Action::TripleClick | Action::Hover | Action::Drag)
    }

    /// Whether `--headed` delivers it with the physical pointer first.
    pub const fn can_use_pointer(self) -> bool {
        matches!(
            self,
            Action::Click
                | Action::DoubleClick
                | Action::TripleClick
                | Action::RightClick
                | Action::Hover
                | Action::Drag
                | Action::Scroll
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_the_contract() {
        // The contract's, and three for parts of texts.
        assert_eq!(Action::ALL.len(), 21 + 3);
        assert_eq!(Capability::ALL.len(), 18);
    }

    #[test]
    fn what_browsers_put_everywhere_makes_nothing_operable() {
        let common: Capabilities =
            [Capability::SetFocus, Capability::RightClick, Capability::ScrollTo].into_iter().collect();
        assert!(!common.makes_operable());
        assert!(common.with(Capability::Click).makes_operable());
    }

    #[test]
    fn capabilities_parse_back() {
        for &capability in Capability::ALL {
            assert_eq!(Capability::parse(capability.as_str()), Some(capability));
        }
    }
}
