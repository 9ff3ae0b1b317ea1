//! Keys and chords: `ctrl+shift+s`.
//!
//! Parsing and printing only; which native codes they become is decided by each platform.

use std::fmt;

use crate::error::{Error, Result};

/// A modifier key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Modifier {
    /// Control.
    Ctrl,
    /// Alt, Option.
    Alt,
    /// Shift.
    Shift,
    /// Super, Command, Windows.
    Meta,
}

impl Modifier {
    /// The canonical word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Modifier::Ctrl => "ctrl",
            Modifier::Alt => "alt",
            Modifier::Shift => "shift",
            Modifier::Meta => "meta",
        }
    }

    /// Parses a word or an alias, any case.
    pub fn parse(text: &str) -> Option<Modifier> {
        match text.to_ascii_lowercase().as_str() {
            "ctrl" | "control" => Some(Modifier::Ctrl),
            "alt" | "option" => Some(Modifier::Alt),
            "shift" => Some(Modifier::Shift),
            "meta" | "cmd" | "command" | "super" | "win" => Some(Modifier::Meta),
            _ => None,
        }
    }
}

/// A key that is not a modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A letter, digit or punctuation mark; letters in lower case.
    Char(char),
    /// Return.
    Return,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// The space bar.
    Space,
    /// Deletes to the left.
    Backspace,
    /// Deletes to the right.
    ForwardDelete,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// Left.
    Left,
    /// Right.
    Right,
    /// Up.
    Up,
    /// Down.
    Down,
    /// The context menu key.
    Menu,
    /// F1 to F12.
    Function(u8),
}

impl Key {
    fn parse(text: &str) -> Option<Key> {
        let key = match text {
            "return" | "enter" => Key::Return,
            "escape" | "esc" => Key::Escape,
            "tab" => Key::Tab,
            "space" => Key::Space,
            "delete" | "backspace" => Key::Backspace,
            "forwarddelete" | "del" => Key::ForwardDelete,
            "home" => Key::Home,
            "end" => Key::End,
            "pageup" => Key::PageUp,
            "pagedown" => Key::PageDown,
            "left" => Key::Left,
            "right" => Key::Right,
            "up" => Key::Up,
            "down" => Key::Down,
            "menu" => Key::Menu,
            "plus" => Key::Char('+'),
            _ => {
                let mut characters = text.chars();
                return match (characters.next(), characters.as_str()) {
                    (Some('f'), number) if !number.is_empty() && !number.starts_with('0') => {
                        number.parse().ok().filter(|number| (1..=12).contains(number)).map(Key::Function)
                    }
                    (Some(only), "") if !only.is_whitespace() && !only.is_control() => Some(Key::Char(only)),
                    _ => None,
                };
            }
        };
        Some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Char('+') => formatter.write_str("plus"),
            Key::Char(character) => write!(formatter, "{character}"),
            Key::Return => formatter.write_str("return"),
            Key::Escape => formatter.write_str("escape"),
            Key::Tab => formatter.write_str("tab"),
            Key::Space => formatter.write_str("space"),
            Key::Backspace => formatter.write_str("backspace"),
            Key::ForwardDelete => formatter.write_str("forwarddelete"),
            Key::Home => formatter.write_str("home"),
            Key::End => formatter.write_str("end"),
            Key::PageUp => formatter.write_str("pageup"),
            Key::PageDown => formatter.write_str("pagedown"),
            Key::Left => formatter.write_str("left"),
            Key::Right => formatter.write_str("right"),
            Key::Up => formatter.write_str("up"),
            Key::Down => formatter.write_str("down"),
            Key::Menu => formatter.write_str("menu"),
            Key::Function(number) => write!(formatter, "f{number}"),
        }
    }
}

/// Modifiers and a key, pressed together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chord {
    /// Sorted, each at most once.
    pub modifiers: Vec<Modifier>,
    /// The key.
    pub key: Key,
}

impl Chord {
    /// Parses `mod+mod+key`. Case and spaces do not matter: `K` is the key K, without shift.
    ///
    /// # Errors
    /// `INVALID_ARGS` for an empty chord, an unknown key or modifier, or a modifier given twice.
    pub fn parse(text: &str) -> Result<Chord> {
        let folded: String = text
            .chars()
            .filter(|character| !character.is_whitespace())
            .flat_map(char::to_lowercase)
            .collect();
        let unknown = |what: &str| {
            Error::invalid(format!("{what} is not known")).hint(
                "write modifiers (ctrl, alt, shift, meta) and one key joined by +, such as ctrl+shift+s",
            )
        };
        // The last plus separates, unless it is itself the key ("ctrl++").
        let (modifiers, key) = match folded.strip_suffix("++") {
            Some(modifiers) => (modifiers, "plus"),
            None if folded == "+" => ("", "plus"),
            None => folded.rsplit_once('+').unwrap_or(("", &folded)),
        };
        if key.is_empty() {
            return Err(Error::invalid("the chord has no key"));
        }
        let key = Key::parse(key).ok_or_else(|| unknown("the key"))?;
        let mut parsed = Vec::new();
        for part in modifiers.split('+').filter(|_| !modifiers.is_empty()) {
            let modifier = Modifier::parse(part).ok_or_else(|| unknown("a modifier"))?;
            if parsed.contains(&modifier) {
                return Err(Error::invalid(format!("the modifier {} is given twice", modifier.as_str())));
            }
            parsed.push(modifier);
        }
        parsed.sort_unstable();
        Ok(Chord { modifiers: parsed, key })
    }

    /// Whether this is one of `blocked`, however its modifiers are ordered or spelled.
    pub fn is_one_of(&self, blocked: &[&str]) -> bool {
        blocked.iter().any(|text| Chord::parse(text).is_ok_and(|other| other == *self))
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for modifier in &self.modifiers {
            write!(formatter, "{}+", modifier.as_str())?;
        }
        write!(formatter, "{}", self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_case_and_aliases_do_not_matter() {
        let chord = Chord::parse(" Shift + CONTROL+ Esc").unwrap();
        assert_eq!(chord.to_string(), "ctrl+shift+escape");
        assert!(chord.is_one_of(&["shift+ctrl+esc"]));
        assert_eq!(Chord::parse("ctrl++").unwrap().key, Key::Char('+'));
        assert_eq!(Chord::parse("+").unwrap().key, Key::Char('+'));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", " ", "ctrl+", "ctrl+ctrl+a", "hyper+a", "f13", "f0", "f01", "abc", "ctrl+a+b"] {
            assert!(Chord::parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_and_prints_what_it_parses(text in "\\PC{0,12}") {
            if let Ok(chord) = Chord::parse(&text) {
                prop_assert_eq!(Chord::parse(&chord.to_string()).unwrap(), chord);
            }
        }
    }
}
