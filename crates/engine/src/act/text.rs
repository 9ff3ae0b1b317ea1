//! Parts of texts: selecting, replacing, and putting the caret somewhere.
//!
//! Decided here: which part a range or a pattern means, and whether the application has what was asked for. A pattern that
//! fits several times is a question to the caller, never a guess.

use agent_desktop_core::actionability::Route;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result, facts};
use agent_desktop_core::key::{Key, Modifier};
use agent_desktop_core::outline::{LINE_TEXT, quote};
use agent_desktop_core::platform::{Input, Operation, TextContent, TextQuery};
use agent_desktop_core::refs::MAX_CANDIDATES;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::Handle;

use super::dispatch::{Performer, done, failed};
use super::evidence::STATE_LIMIT;
use super::{Done, read};
use crate::context::Context;

/// Characters of a text that are searched for a pattern.
pub(crate) const MAX_SEARCHED: u32 = 1_000_000;
/// Characters of a text that is typed anew because no part of it can be selected.
pub(crate) const MAX_RETYPED: u32 = 10_000;
/// Pause between two looks.
const POLL: std::time::Duration = std::time::Duration::from_millis(20);

/// Which part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// From the first number up to, without, the second; `None`: to the end.
    Range(u32, Option<u32>),
    /// Where this stands; the number picks one of several, from 0.
    Pattern(&'a str, Option<u32>),
}

/// What is done with a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextRequest<'a> {
    /// Select it.
    Select(Part<'a>),
    /// Put this in its place.
    Replace(Part<'a>, &'a str),
    /// Put the caret before it, or behind it.
    Caret(Part<'a>, bool),
}

impl<'a> TextRequest<'a> {
    fn part(self) -> Part<'a> {
        match self {
            TextRequest::Select(part) | TextRequest::Replace(part, _) | TextRequest::Caret(part, _) => part,
        }
    }
}

/// Reads the text of an element.
///
/// # Errors
/// `ACTION_NOT_SUPPORTED` when it has none.
pub(crate) fn content(
    context: &Context<'_>,
    handle: &Handle,
    query: &TextQuery,
    subject: &str,
) -> Result<TextContent> {
    context.platform.text(handle, query, context.deadline)?.ok_or_else(|| {
        let what = if query.line_at.is_some() { "does not tell its lines" } else { "has no text" };
        Error::new(ErrorCode::ActionNotSupported, format!("{subject} {what}"))
            .hint("snapshot shows which elements have text; of a document it is its paragraphs")
            .delivery(Delivery::NotDelivered)
    })
}

/// The offsets of a part.
///
/// # Errors
/// `INVALID_ARGS` for a range outside of the text, `ELEMENT_NOT_FOUND` for a pattern that is not there,
/// `AMBIGUOUS_TARGET` with candidates for one that is there several times.
pub(crate) fn locate(content: &TextContent, part: Part<'_>, subject: &str) -> Result<(u32, u32)> {
    let (pattern, nth) = match part {
        Part::Range(start, end) => {
            let end = end.unwrap_or(content.length);
            if start <= end && end <= content.length {
                return Ok((start, end));
            }
            let length = content.length;
            return Err(Error::invalid(format!(
                "{start} to {end} is no part of a text of {length} characters"
            ))
            .detail("length", length)
            .delivery(Delivery::NotDelivered));
        }
        Part::Pattern(pattern, nth) => (pattern, nth),
    };
    if content.is_secret {
        return Err(Error::new(ErrorCode::ActionNotSupported, format!("the text of {subject} is secret"))
            .delivery(Delivery::NotDelivered));
    }
    let found = occurrences(&content.text, pattern);
    let width = pattern.chars().count() as u32;
    let at = match (nth, &found[..]) {
        (Some(nth), found) => found.get(nth as usize).copied(),
        (None, [only]) => Some(*only),
        (None, []) => None,
        (None, several) => {
            let candidates = several.iter().take(MAX_CANDIDATES).enumerate().map(|(index, at)| {
                let from = at.saturating_sub(12) as usize;
                let around: String = content.text.chars().skip(from).take(width as usize + 24).collect();
                facts([
                    ("nth", (index as u32).into()),
                    ("start", (*at).into()),
                    ("end", (at + width).into()),
                    ("around", around.into()),
                ])
            });
            return Err(Error::new(
                ErrorCode::AmbiguousTarget,
                format!("the pattern stands {} times in {subject}", several.len()),
            )
            .detail("candidate_count", several.len())
            .detail("candidates", Fact::List(candidates.collect()))
            .hint("pick one with --nth, as each candidate says, or write more of the text around it")
            .delivery(Delivery::NotDelivered));
        }
    };
    at.map(|at| (at, at + width)).ok_or_else(|| {
        Error::new(
            ErrorCode::ElementNotFound,
            format!("{} is not in the text of {subject}", quote(pattern, LINE_TEXT)),
        )
        .detail("match_count", found.len())
        .hint("text get shows the text; case and spaces matter, and --nth counts from 0")
        .delivery(Delivery::NotDelivered)
    })
}

/// Where a pattern stands, in characters; one that overlaps the last is not counted.
fn occurrences(text: &str, pattern: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let (mut bytes, mut characters) = (0, 0);
    for (at, _) in text.match_indices(pattern) {
        characters += text[bytes..at].chars().count() as u32;
        bytes = at;
        found.push(characters);
    }
    found
}

/// All of a text, as far as it can be searched.
pub(crate) const WHOLE: TextQuery =
    TextQuery { range: None, line_at: None, attributes: false, limit: MAX_SEARCHED };

impl Performer<'_, '_> {
    pub(super) fn text(&self, request: TextRequest<'_>) -> Result<Done> {
        let before = content(self.context, &self.resolved.handle, &WHOLE, &self.subject())?;
        let (start, end) = locate(&before, request.part(), &self.subject())?;
        match request {
            TextRequest::Select(_) => self.select_text(start, end),
            TextRequest::Caret(_, behind) => {
                let offset = if behind { end } else { start };
                self.change(&Operation::SetCaret(offset), "a caret", |now| {
                    now.caret == Some(offset) && now.selections.is_empty()
                })
            }
            TextRequest::Replace(_, new) => self.replace_text(&before, (start, end), new),
        }
    }

    fn select_text(&self, start: u32, end: u32) -> Result<Done> {
        if start == end {
            return Err(Error::invalid("nothing is selected by a range without characters")
                .hint("text caret puts the caret somewhere")
                .delivery(Delivery::NotDelivered));
        }
        self.change(&Operation::SelectText(start, end), "a selection of text", |now| {
            now.selections == [(start, end)]
        })
    }

    fn replace_text(&self, before: &TextContent, (start, end): (u32, u32), new: &str) -> Result<Done> {
        let count = new.chars().count() as u32;
        let is_replaced = |now: &TextContent| {
            now.length == before.length - (end - start) + count
                && (now.is_secret
                    || now.text.chars().skip(start as usize).take(count as usize).eq(new.chars()))
        };
        if !self.by(Route::Keyboard) {
            let operation = Operation::ReplaceText { start, end, text: new.to_owned() };
            return self.change(&operation, "replacing text", is_replaced);
        }
        // The part is selected, and typed over as a person would.
        let mut steps = Vec::new();
        if !self.node().states.has(State::Focused) {
            steps.push(self.give_focus()?);
        }
        let marked = if start == end {
            self.change(&Operation::SetCaret(start), "a caret", |now| now.caret == Some(start))
        } else {
            self.select_text(start, end)
        };
        match marked {
            Ok(marked) => {
                steps.extend(marked.steps);
                if new.is_empty() {
                    steps.push(self.chord("key_delete", &[], Key::Backspace)?);
                } else {
                    steps.push(self.input("key_text", &Input::Text(new.to_owned()))?);
                }
            }
            // Chromium selects nothing for others: all of it is typed anew, as long as it was read whole.
            Err(_) if before.end == before.length && before.length <= MAX_RETYPED && !before.is_secret => {
                let characters = before.text.chars();
                let head = characters.clone().take(start as usize);
                let whole: String = head.chain(new.chars()).chain(characters.skip(end as usize)).collect();
                steps.push(self.chord("key_select_all", &[Modifier::Ctrl], Key::Char('a'))?);
                steps.push(self.chord("key_delete", &[], Key::Backspace)?);
                steps.push(self.input("key_text", &Input::Text(whole))?);
            }
            Err(error) => return Err(error),
        }
        let was_seen = self.comes_true(is_replaced)?;
        if !was_seen {
            return Err(self.was_ignored());
        }
        let steps = steps.into_iter().map(|step| step.verified(true)).collect();
        Ok(done(steps, read(self.context, self.resolved, self.context.deadline)?))
    }

    /// Sends the operation and looks until the text is as wanted.
    fn change(
        &self,
        operation: &Operation,
        what: &str,
        is_so: impl Fn(&TextContent) -> bool,
    ) -> Result<Done> {
        let step = self.send(&self.resolved.handle, operation)?.ok_or_else(|| self.not_offered(what))?;
        if !self.comes_true(is_so)? {
            return Err(self.was_ignored());
        }
        Ok(done(vec![step.verified(true)], read(self.context, self.resolved, self.context.deadline)?))
    }

    fn was_ignored(&self) -> Error {
        failed(format!("{} took it and its text is not as asked for", self.subject())).hint(
            "pages take carets and selections only where the focus is: focus it and retry; \
             add --headed to type with the keyboard",
        )
    }

    fn comes_true(&self, is_so: impl Fn(&TextContent) -> bool) -> Result<bool> {
        let until = self.context.deadline.within(self.context.now(), STATE_LIMIT);
        loop {
            // What cannot be read now may be readable at the next look.
            let now = self.context.platform.text(&self.resolved.handle, &WHOLE, self.context.deadline);
            match now {
                Ok(Some(now)) if is_so(&now) => return Ok(true),
                Err(error) if !error.is_retryable() => return Err(error.delivery(Delivery::Unverified)),
                _ => {}
            }
            if !self.context.pause_until(until, POLL) {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> TextContent {
        let length = text.chars().count() as u32;
        TextContent { length, end: length, text: text.to_owned(), ..TextContent::default() }
    }

    #[test]
    fn patterns_are_found_by_characters() {
        let content = text("🙂 ab äb ab");
        assert_eq!(locate(&content, Part::Pattern("äb", None), "it").unwrap(), (5, 7));
        assert_eq!(locate(&content, Part::Pattern("ab", Some(1)), "it").unwrap(), (8, 10));
        let error = locate(&content, Part::Pattern("ab", None), "it").unwrap_err();
        assert_eq!(error.code(), ErrorCode::AmbiguousTarget);
        for part in [Part::Pattern("AB", None), Part::Pattern("ab", Some(2))] {
            assert_eq!(locate(&content, part, "it").unwrap_err().code(), ErrorCode::ElementNotFound);
        }
    }

    #[test]
    fn ranges_lie_within_the_text() {
        let content = text("abc");
        assert_eq!(locate(&content, Part::Range(1, None), "it").unwrap(), (1, 3));
        assert_eq!(locate(&content, Part::Range(3, Some(3)), "it").unwrap(), (3, 3));
        for (start, end) in [(0, Some(4)), (2, Some(1)), (4, None)] {
            let error = locate(&content, Part::Range(start, end), "it").unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgs);
        }
    }
}
