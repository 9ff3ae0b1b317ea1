//! Outline: a tree as text, one line a node, for models and people.

use crate::role::Role;

/// Characters of screen text that a message shows.
pub const MESSAGE_TEXT: usize = 60;

/// At most `limit` characters of a text, with `…` for what was cut.
pub fn cut(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    let end = text.char_indices().nth(limit.saturating_sub(1)).map_or(0, |(index, _)| index);
    format!("{}…", text[..end].trim_end())
}

/// Whether a character would break a line, hide itself or turn the text around it.
const fn is_unsafe(character: char) -> bool {
    matches!(character,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'
        | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// A text in quotes on one line: `"`, `\` and whatever could break or disguise the line is escaped.
pub fn quote(text: &str, limit: usize) -> String {
    let mut quoted = String::with_capacity(text.len().min(limit * 4) + 2);
    quoted.push('"');
    for character in cut(text, limit).chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            _ if is_unsafe(character) => quoted.extend(character.escape_unicode()),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// What a node is called in messages: `button "Save"`.
pub fn describe(role: Role, name: Option<&str>) -> String {
    match name.filter(|name| !name.trim().is_empty()) {
        Some(name) => format!("{role} {}", quote(name, MESSAGE_TEXT)),
        None => format!("unnamed {role}"),
    }
}
