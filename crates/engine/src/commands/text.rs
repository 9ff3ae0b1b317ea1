//! `text`: parts of texts. Read them, select them, replace them, put the caret somewhere.

use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::outline::{LINE_TEXT, quote};
use agent_desktop_core::platform::{TextContent, TextQuery};
use agent_desktop_core::refs::RefTarget;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ref_action::check_text;
use super::set_value::MAX_CHARACTERS;
use super::{Effects, Reply, Run};
use crate::act::text::{Part, TextRequest, WHOLE, content, locate};
use crate::act::{self, Request};
use crate::action_reply::ActionReply;
use crate::context::{Context, Options};
use crate::resolve;

/// Characters that `text get` shows, unless `--limit` says otherwise.
pub(crate) const LIMIT: u32 = 20_000;
/// The largest `--limit`.
pub(crate) const MAX_LIMIT: u32 = 1_000_000;

/// Read, select and replace parts of a text, and move its caret. Offsets count characters from 0.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(transparent)]
pub struct Text {
    /// What is done.
    #[cfg_attr(feature = "clap", command(subcommand))]
    pub action: TextAction,
}

/// What `text` does.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum TextAction {
    /// Show a text or a part of it, the caret and what is selected.
    Get(TextGet),
    /// Select a part of a text.
    Select(TextSelect),
    /// Put other text in the place of a part, and see that it is there.
    Replace(TextReplace),
    /// Put the caret somewhere in a text.
    Caret(TextCaret),
}

/// Which piece of the text around an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A word: letters, digits, underscores and apostrophes.
    Word,
    /// A line as it is on the screen.
    Line,
    /// A paragraph: up to the next line break.
    Paragraph,
}

macro_rules! text_action {
    ($(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[cfg_attr(feature = "clap", derive(clap::Args))]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Ref from a snapshot, such as @sq4m2:e14.
            #[cfg_attr(feature = "clap", arg(value_name = "REF"))]
            pub ref_id: String,
            $($fields)*
            /// Snapshot of a ref that does not name its own.
            #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
            #[serde(default)]
            pub snapshot: Option<String>,
            /// Give up after this many milliseconds [default: 5000].
            #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
            #[serde(default)]
            pub timeout_ms: Option<u64>,
        }
    };
}

text_action! {
    /// Show a text or a part of it, the caret and what is selected.
    TextGet {
        /// Show it from this character on.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub start: Option<u32>,
        /// Show it up to, without, this character.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub end: Option<u32>,
        /// Show the word, line or paragraph around --at instead of a range.
        #[cfg_attr(feature = "clap", arg(long, value_name = "UNIT"))]
        #[serde(default)]
        pub unit: Option<Unit>,
        /// The character for --unit; without it, the caret.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub at: Option<u32>,
        /// Show fonts, colours and other attributes, in the words of the toolkit.
        #[cfg_attr(feature = "clap", arg(long))]
        #[serde(default)]
        pub attributes: bool,
        /// Show at most this many characters [default: 20000].
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub limit: Option<u32>,
    }
}

text_action! {
    /// Select a part of a text.
    TextSelect {
        /// Select what is equal to this text; case matters.
        #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT", allow_hyphen_values = true))]
        #[serde(default)]
        pub pattern: Option<String>,
        /// Which one, from 0, when the pattern stands there several times.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub nth: Option<u32>,
        /// Select from this character on.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub start: Option<u32>,
        /// Select up to, without, this character [default: the end].
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub end: Option<u32>,
    }
}

text_action! {
    /// Put other text in the place of a part, and see that it is there.
    TextReplace {
        /// The new text; may be empty.
        #[cfg_attr(feature = "clap", arg(value_name = "TEXT", allow_hyphen_values = true))]
        pub text: String,
        /// Replace what is equal to this text; case matters.
        #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT", allow_hyphen_values = true))]
        #[serde(default)]
        pub pattern: Option<String>,
        /// Which one, from 0, when the pattern stands there several times.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub nth: Option<u32>,
        /// Replace from this character on.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub start: Option<u32>,
        /// Replace up to, without, this character [default: the end]; equal to --start, text is inserted there.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub end: Option<u32>,
    }
}

text_action! {
    /// Put the caret somewhere in a text.
    TextCaret {
        /// Before this character; the length of the text: at its end.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub offset: Option<u32>,
        /// Before what is equal to this text; case matters.
        #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT", allow_hyphen_values = true))]
        #[serde(default)]
        pub before: Option<String>,
        /// Behind what is equal to this text; case matters.
        #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT", allow_hyphen_values = true))]
        #[serde(default)]
        pub after: Option<String>,
        /// Which one, from 0, when the pattern stands there several times.
        #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
        #[serde(default)]
        pub nth: Option<u32>,
    }
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartData {
    start: u32,
    end: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// A part with the same attributes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunData {
    start: u32,
    end: u32,
    attributes: Map<String, Value>,
}

/// A text or a part of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TextData {
    #[serde(rename = "ref")]
    reference: String,
    length: u32,
    start: u32,
    end: u32,
    /// `null` for a secret text.
    text: Option<String>,
    truncated: bool,
    caret: Option<u32>,
    selections: Vec<PartData>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<RunData>,
}

/// What `text` answers.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum TextReply {
    /// Of `get`.
    Shown(TextData),
    /// Of the others.
    Done(ActionReply),
}

impl Reply for TextReply {
    fn outline(&self) -> Option<String> {
        match self {
            TextReply::Done(reply) => reply.outline(),
            TextReply::Shown(data) => {
                use std::fmt::Write;
                let mut text = format!("{} {}..{} of {}", data.reference, data.start, data.end, data.length);
                if let Some(caret) = data.caret {
                    let _ = write!(text, " caret {caret}");
                }
                for part in &data.selections {
                    let shown = quote(part.text.as_deref().unwrap_or(""), LINE_TEXT);
                    let _ = write!(text, " selected {}..{} {shown}", part.start, part.end);
                }
                text.push('\n');
                text.push_str(data.text.as_deref().unwrap_or("(secret)"));
                Some(text)
            }
        }
    }
}

/// The part that these arguments mean.
fn part(
    pattern: Option<&str>,
    nth: Option<u32>,
    start: Option<u32>,
    end: Option<u32>,
) -> Result<Part<'_>> {
    match (pattern, start.is_some() || end.is_some()) {
        (Some(_), true) => Err(Error::invalid("give --pattern or a range, not both")),
        (Some(""), _) => Err(Error::invalid("the pattern is empty")),
        (Some(pattern), _) => Ok(Part::Pattern(pattern, nth)),
        (None, true) if nth.is_some() => Err(Error::invalid("--nth picks one of several for --pattern")),
        (None, true) => Ok(Part::Range(start.unwrap_or(0), end)),
        (None, false) => Err(Error::invalid("which part? give --pattern, or --start and --end")),
    }
}

impl TextCaret {
    fn request(&self) -> Result<TextRequest<'_>> {
        let (part, behind) = match (self.offset, &self.before, &self.after) {
            (Some(offset), None, None) if self.nth.is_none() => (Part::Range(offset, Some(offset)), false),
            (None, Some(before), None) => (part(Some(before), self.nth, None, None)?, false),
            (None, None, Some(after)) => (part(Some(after), self.nth, None, None)?, true),
            _ => return Err(Error::invalid("give one of --offset, --before and --after; --nth goes with a text")),
        };
        Ok(TextRequest::Caret(part, behind))
    }
}

impl Text {
    fn target(&self) -> (&str, Option<&str>) {
        match &self.action {
            TextAction::Get(action) => (&action.ref_id, action.snapshot.as_deref()),
            TextAction::Select(action) => (&action.ref_id, action.snapshot.as_deref()),
            TextAction::Replace(action) => (&action.ref_id, action.snapshot.as_deref()),
            TextAction::Caret(action) => (&action.ref_id, action.snapshot.as_deref()),
        }
    }

    /// What is asked of the text; `None`: to be shown.
    fn request(&self) -> Result<Option<TextRequest<'_>>> {
        Ok(Some(match &self.action {
            TextAction::Get(_) => return Ok(None),
            TextAction::Select(select) => {
                TextRequest::Select(part(select.pattern.as_deref(), select.nth, select.start, select.end)?)
            }
            TextAction::Replace(replace) => {
                let part = part(replace.pattern.as_deref(), replace.nth, replace.start, replace.end)?;
                TextRequest::Replace(part, &replace.text)
            }
            TextAction::Caret(caret) => caret.request()?,
        }))
    }

    /// The deadline asked for.
    pub(super) fn own_timeout(&self) -> Option<u64> {
        match &self.action {
            TextAction::Get(action) => action.timeout_ms,
            TextAction::Select(action) => action.timeout_ms,
            TextAction::Replace(action) => action.timeout_ms,
            TextAction::Caret(action) => action.timeout_ms,
        }
    }
}

impl TextGet {
    fn run(&self, context: &Context<'_>) -> Result<TextData> {
        let loaded = resolve::load(context, &self.ref_id, self.snapshot.as_deref())?;
        let resolved = resolve::resolve(context, &loaded)?;
        let subject = loaded.subject();
        let limit = self.limit.unwrap_or(LIMIT);
        let query = TextQuery { attributes: self.attributes, limit, ..WHOLE };
        let read = |query: &TextQuery| content(context, &resolved.handle, query, &subject);
        let shown = match self.unit {
            None => {
                let range = (self.start.is_some() || self.end.is_some())
                    .then(|| (self.start.unwrap_or(0), self.end.unwrap_or(u32::MAX)));
                read(&TextQuery { range, ..query })?
            }
            Some(unit) => {
                let whole = read(&WHOLE)?;
                let at = self.at.or(whole.caret).unwrap_or(0);
                locate(&whole, Part::Range(at, Some(at)), &subject)?;
                match unit {
                    Unit::Line => read(&TextQuery { line_at: Some(at), ..query })?,
                    Unit::Word => read(&TextQuery { range: Some(around(&whole.text, at, is_of_word)), ..query })?,
                    Unit::Paragraph => {
                        let range = around(&whole.text, at, |character| !matches!(character, '\n' | '\u{2029}'));
                        read(&TextQuery { range: Some(range), ..query })?
                    }
                }
            }
        };
        self.data(context, &resolved.handle, shown)
    }

    fn data(
        &self,
        context: &Context<'_>,
        handle: &agent_desktop_core::tree::Handle,
        shown: TextContent,
    ) -> Result<TextData> {
        let wanted = match self.unit {
            Some(_) => shown.end,
            None => self.end.unwrap_or(shown.length).min(shown.length),
        };
        let mut selections = Vec::new();
        for &(start, end) in &shown.selections {
            let text = if shown.is_secret {
                None
            } else {
                let query = TextQuery { range: Some((start, end)), limit: LIMIT, ..WHOLE };
                context.platform.text(handle, &query, context.deadline)?.map(|part| part.text)
            };
            selections.push(PartData { start, end, text });
        }
        let runs = shown.runs.into_iter().map(|run| RunData {
            start: run.start,
            end: run.end,
            attributes: run.attributes.into_iter().map(|(name, value)| (name, value.into())).collect(),
        });
        Ok(TextData {
            reference: self.ref_id.clone(),
            length: shown.length,
            start: shown.start,
            end: shown.end,
            truncated: shown.end < wanted,
            text: (!shown.is_secret).then_some(shown.text),
            caret: shown.caret,
            selections,
            runs: runs.collect(),
        })
    }
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '\'' | '\u{2019}')
}

/// The characters around an offset that belong together; behind the last of them counts as well.
fn around(text: &str, at: u32, belongs: impl Fn(char) -> bool) -> (u32, u32) {
    let characters: Vec<char> = text.chars().collect();
    let at = (at as usize).min(characters.len());
    let before = characters[..at].iter().rev().take_while(|character| belongs(**character)).count();
    let behind = characters[at..].iter().take_while(|character| belongs(**character)).count();
    ((at - before) as u32, (at + behind) as u32)
}

impl Run for Text {
    type Reply = TextReply;

    fn effects(&self, table: Effects) -> Effects {
        if matches!(self.action, TextAction::Get(_)) { Effects::READS } else { table }
    }

    fn check(&self, _: &Options) -> Result<()> {
        let (reference, snapshot) = self.target();
        RefTarget::parse(reference, snapshot)?;
        if let TextAction::Replace(replace) = &self.action {
            check_text(&replace.text, MAX_CHARACTERS)?;
        }
        if let TextAction::Get(get) = &self.action {
            if get.unit.is_some() && (get.start.is_some() || get.end.is_some()) {
                return Err(Error::invalid("give --unit or a range, not both"));
            }
            if get.unit.is_none() && get.at.is_some() {
                return Err(Error::invalid("--at goes with --unit"));
            }
            if get.limit.is_some_and(|limit| limit == 0 || limit > MAX_LIMIT) {
                return Err(Error::invalid(format!("--limit is a number from 1 to {MAX_LIMIT}")));
            }
            if matches!((get.start, get.end), (Some(start), Some(end)) if start > end) {
                return Err(Error::invalid("--start lies behind --end"));
            }
        }
        self.request().map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<TextReply> {
        let (reference, snapshot) = self.target();
        match (&self.action, self.request()?) {
            (TextAction::Get(get), _) => get.run(context).map(TextReply::Shown),
            (_, Some(request)) => {
                act::run(context, reference, snapshot, Request::Text(request)).map(TextReply::Done)
            }
            (_, None) => Err(Error::internal("there is nothing to do")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_paragraphs_are_found_around_an_offset() {
        let text = "one two's\nthree";
        assert_eq!(around(text, 5, is_of_word), (4, 9));
        assert_eq!(around(text, 3, is_of_word), (0, 3), "behind the last character of a word");
        assert_eq!(around(text, 12, |character| character != '\n'), (10, 15));
        assert_eq!(around("", 0, is_of_word), (0, 0));
    }
}
