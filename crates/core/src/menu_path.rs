//! Paths through menus: `File/Export as/PDF`.
//!
//! How a path is written, and when the name of an item is meant by a part of it. Toolkits add to names what people do not
//! say: an ellipsis, the shortcut.

use crate::error::{Error, Result};
use crate::query::fold;

/// Parts of a path at most.
pub const MAX_PARTS: usize = 16;

/// The parts of a path, separated by `/`; `\/` is a slash and `\\` a backslash within a part. White space around a part
/// does not count.
///
/// # Errors
/// `INVALID_ARGS` for an empty part, more than [`MAX_PARTS`] of them, and a `\` before anything else.
pub fn parse(text: &str) -> Result<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let part = parts.last_mut().expect("there is always one");
        match character {
            '/' => parts.push(String::new()),
            '\\' => match characters.next() {
                Some(escaped @ ('/' | '\\')) => part.push(escaped),
                _ => {
                    return Err(Error::invalid(
                        "a backslash in a menu path stands before / or another backslash",
                    ));
                }
            },
            _ => part.push(character),
        }
    }
    for part in &mut parts {
        *part = part.trim().to_owned();
    }
    if parts.iter().any(|part| spoken(part).is_empty()) {
        return Err(Error::invalid("a part of the menu path is empty")
            .hint("write the names with / between them: \"File/Export as/PDF\"; \\/ is a slash in a name"));
    }
    if parts.len() > MAX_PARTS {
        return Err(Error::invalid(format!("a menu path has at most {MAX_PARTS} parts")));
    }
    Ok(parts)
}

/// A path of these parts, as [`parse`] reads it.
pub fn write<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let escaped = parts.into_iter().map(|part| part.replace('\\', "\\\\").replace('/', "\\/"));
    escaped.collect::<Vec<_>>().join("/")
}

/// How well a part of a path means the item of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The same text; case and spaces do not count.
    Whole,
    /// The same but for an ellipsis at the end, or a shortcut that the toolkit put behind the name.
    Spoken,
}

/// Whether `part` of a path means the item called `name`, and how well.
pub fn fit(name: &str, part: &str) -> Option<Fit> {
    let (name, part) = (fold(name), fold(part));
    // Three dots are how people type an ellipsis.
    if name.replace("...", "…") == part.replace("...", "…") {
        return Some(Fit::Whole);
    }
    let wanted = spoken(&part);
    (wanted == spoken(&name) || wanted == spoken(without_shortcut(&name))).then_some(Fit::Spoken)
}

/// A name without the ellipsis that announces a dialog.
fn spoken(name: &str) -> &str {
    name.strip_suffix('…').or_else(|| name.strip_suffix("...")).unwrap_or(name).trim_end()
}

/// A name without the shortcut behind it.
fn without_shortcut(name: &str) -> &str {
    match name.rsplit_once(' ') {
        Some((before, last)) if is_shortcut(last) => before.trim_end(),
        _ => name,
    }
}

/// Keys joined by `+`, or a function key.
fn is_shortcut(word: &str) -> bool {
    let is_function_key = |word: &str| {
        word.strip_prefix(['f', 'F']).is_some_and(|number| {
            number.len() <= 2 && !number.starts_with('0') && number.parse::<u8>().is_ok()
        })
    };
    // The last key may be a plus itself.
    let modifiers = word.strip_suffix("++").or_else(|| word.rsplit_once('+').map(|(before, _)| before));
    let is_modifier = |key: &str| key.chars().count() > 1 && key.chars().all(char::is_alphabetic);
    let is_chord = modifiers.is_some_and(|modifiers| modifiers.split('+').all(is_modifier));
    is_chord || is_function_key(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_separated_by_slashes_and_escaped_by_backslashes() {
        assert_eq!(parse("File/Export as / PDF").unwrap(), ["File", "Export as", "PDF"]);
        assert_eq!(parse(r"Insert/Date\/Time/C:\\").unwrap(), ["Insert", "Date/Time", r"C:\"]);
        assert_eq!(parse("File").unwrap(), ["File"]);
        for wrong in [
            "",
            "/",
            "File/",
            "/File",
            "File//New",
            r"File\n",
            "File\\",
            " / ",
            "File/…",
            "a/...",
            &"a/".repeat(20),
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        for parts in [&["File", "Date/Time"][..], &[r"a\b", r"\/", "c"], &["Größe"]] {
            assert_eq!(parse(&write(parts.iter().copied())).unwrap(), parts);
        }
    }

    #[test]
    fn ellipses_and_shortcuts_are_not_spoken() {
        for (name, part, expected) in [
            ("Export As", "export  as", Some(Fit::Whole)),
            ("Open…", "Open", Some(Fit::Spoken)),
            ("Open...", "open…", Some(Fit::Whole)),
            ("Open…", "Open...", Some(Fit::Whole)),
            ("Open", "Open...", Some(Fit::Spoken)),
            ("Print… Ctrl+P", "Print", Some(Fit::Spoken)),
            ("Print… Ctrl+P", "Print…", Some(Fit::Spoken)),
            ("New Incognito window Ctrl+Shift+N", "new incognito window", Some(Fit::Spoken)),
            ("Neues Fenster Strg+N", "Neues Fenster", Some(Fit::Spoken)),
            ("Full screen F11", "Full screen", Some(Fit::Spoken)),
            ("Full screen F11", "Full screen F11", Some(Fit::Whole)),
            ("Zoom in Ctrl++", "Zoom in", Some(Fit::Spoken)),
            ("Save As...", "Save", None),
            ("Save", "Save As", None),
            ("Visual C++", "Visual", None),
            ("Use F100", "Use", None),
            ("a +b", "a", None),
        ] {
            assert_eq!(fit(name, part), expected, "{name:?} {part:?}");
        }
    }
}
