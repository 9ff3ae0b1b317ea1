//! Text with offsets: reading it, the caret and what is selected, and changing them.
//!
//! Offsets are characters everywhere above. Toolkits count otherwise: Qt and office suites count UTF-16 units, Gecko puts a
//! mark behind each character of two units and counts that. Translated here, once, by the text itself.

use agent_desktop_core::platform::{Operation, Performed, TextContent, TextQuery, TextRun};
use agent_desktop_core::{Delivery, Error, ErrorCode, Result};

use crate::act::{Actor, Live, before};
use crate::bus::{EDITABLE_TEXT, Object, TEXT, send_get, send_number, send_plain, variant_number};
use crate::dbus::{Call, Failure, Message};
use crate::map::{Interfaces, Toolkit, role};

/// Units of the longest text whose offsets can be translated.
const MOST_TRANSLATED: i32 = 2_000_000;
/// Ranges of a selection, and of attributes, that are read.
const MOST_SELECTIONS: i32 = 16;
const MOST_RUNS: usize = 200;
/// `ATSPI_TEXT_GRANULARITY_LINE`, and `ATSPI_TEXT_BOUNDARY_LINE_START` of the call before it.
const LINE: u32 = 3;
const LINE_START: u32 = 5;

/// How offsets of an application relate to characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Units {
    /// They are characters.
    Characters,
    /// UTF-16 units.
    Utf16,
    /// Characters of a text in which a mark follows each character of two UTF-16 units.
    Marked,
}

impl Units {
    pub(crate) fn of(toolkit: Toolkit, is_office: bool) -> Units {
        match toolkit {
            Toolkit::Qt => Units::Utf16,
            Toolkit::Gecko => Units::Marked,
            _ if is_office => Units::Utf16,
            _ => Units::Characters,
        }
    }
}

/// A text and where its characters are for the application.
#[derive(Debug, Default)]
struct Mapped {
    text: String,
    /// The application's offset of each character and of the end; empty: the same numbers.
    native: Vec<i32>,
}

impl Mapped {
    fn new(raw: &str, units: Units) -> Mapped {
        let mut mapped = Mapped { text: String::with_capacity(raw.len()), native: Vec::new() };
        let mut at = 0;
        let mut was_wide = false;
        for character in raw.chars() {
            let is_wide = character.len_utf16() == 2;
            if units == Units::Marked && was_wide && character == '\u{feff}' {
                was_wide = false;
                at += 1;
                continue;
            }
            mapped.native.push(at);
            mapped.text.push(character);
            at += if units == Units::Utf16 && is_wide { 2 } else { 1 };
            was_wide = is_wide;
        }
        mapped.native.push(at);
        mapped
    }

    fn to_native(&self, offset: u32) -> i32 {
        if self.native.is_empty() {
            return offset.cast_signed();
        }
        let last = self.native.last().copied().unwrap_or(0);
        self.native.get(offset as usize).copied().unwrap_or(last)
    }

    fn to_characters(&self, offset: i32) -> u32 {
        if self.native.is_empty() {
            return offset.max(0).cast_unsigned();
        }
        // Between two characters there is the second half of one: its beginning counts.
        self.native.partition_point(|at| *at <= offset).saturating_sub(1) as u32
    }
}

fn failed(failure: &Failure) -> Error {
    before(failure, "what its text is")
}

fn string(message: &Message) -> Result<String, Failure> {
    Ok(message.body("s")?.string()?.into_owned())
}

fn range(message: &Message) -> Result<(i32, i32), Failure> {
    let mut body = message.body("ii")?;
    Ok((body.i32()?, body.i32()?))
}

impl Actor<'_> {
    fn wait(&mut self, serial: u32) -> Result<Message, Failure> {
        let deadline = self.at();
        self.connection.wait(serial, deadline)
    }

    fn get_text(&mut self, target: &Object, start: i32, end: i32) -> Result<String, Failure> {
        let call = Call {
            signature: "ii",
            body: &|writer| {
                writer.i32(start);
                writer.i32(end);
            },
            ..Call::new(&target.bus, &target.path, TEXT, "GetText")
        };
        let serial = self.connection.send(&call);
        string(&self.wait(serial)?)
    }

    /// The whole text, where offsets have to be translated; otherwise nothing.
    fn mapped(&mut self, target: &Object, units: Units, count: i32) -> Result<Mapped> {
        if units == Units::Characters {
            return Ok(Mapped::default());
        }
        if count > MOST_TRANSLATED {
            return Err(Error::new(
                ErrorCode::ActionNotSupported,
                format!("the text is longer than {MOST_TRANSLATED} units, too long to count its characters"),
            )
            .delivery(Delivery::NotDelivered));
        }
        let raw = self.get_text(target, 0, count).map_err(|failure| failed(&failure))?;
        Ok(Mapped::new(&raw, units))
    }

    fn count(&mut self, target: &Object) -> Result<i32> {
        let serial = send_get(self.connection, target, TEXT, "CharacterCount");
        let count = self.wait(serial).and_then(|message| variant_number(&message));
        Ok((count.map_err(|failure| failed(&failure))? as i32).max(0))
    }

    fn selections(&mut self, target: &Object, count: i32) -> Vec<(i32, i32)> {
        let serials: Vec<u32> = (0..count.clamp(0, MOST_SELECTIONS))
            .map(|index| send_number(self.connection, target, TEXT, "GetSelection", index))
            .collect();
        let deadline = self.at();
        let answers = self.connection.call_all(&serials, deadline).into_iter();
        answers
            .filter_map(|answer| answer.and_then(|message| range(&message)).ok())
            .map(|(one, other)| (one.min(other), one.max(other)))
            .filter(|(start, end)| *start >= 0 && end > start)
            .collect()
    }

    /// The text of an object; `None`: it has none.
    ///
    /// Two waves, and one call for each run of attributes.
    pub(crate) fn read_text(
        &mut self,
        target: &Object,
        units: Units,
        query: &TextQuery,
    ) -> Result<Option<TextContent>> {
        let live = self.look(target)?;
        if !live.interfaces.has(Interfaces::TEXT) {
            return Ok(None);
        }
        let connection = &mut *self.connection;
        let serials = [
            send_get(connection, target, TEXT, "CharacterCount"),
            send_get(connection, target, TEXT, "CaretOffset"),
            send_plain(connection, target, TEXT, "GetNSelections"),
        ];
        let deadline = self.deadline.at();
        let mut answers = connection.call_all(&serials, deadline).into_iter();
        let mut next = || answers.next().unwrap_or(Err(Failure::Timeout));
        let count =
            next().and_then(|message| variant_number(&message)).map_err(|failure| failed(&failure))?;
        let count = (count as i32).max(0);
        let caret = next().and_then(|message| variant_number(&message)).unwrap_or(-1.0) as i32;
        let selected = next().and_then(|message| Ok(message.body("i")?.i32()?)).unwrap_or(0);
        let is_secret = live.role == role::PASSWORD_TEXT;
        let mapped = if is_secret { Mapped::default() } else { self.mapped(target, units, count)? };
        let length =
            if mapped.native.is_empty() { count.cast_unsigned() } else { (mapped.native.len() - 1) as u32 };
        let native_selections = self.selections(target, selected);
        let selections = native_selections
            .iter()
            .map(|(start, end)| (mapped.to_characters(*start), mapped.to_characters(*end)))
            .collect();
        let (start, end) = match (query.line_at, query.range) {
            (Some(at), _) => match self.line(target, mapped.to_native(at.min(length)))? {
                Some((start, end)) => (mapped.to_characters(start), mapped.to_characters(end)),
                None => return Ok(None),
            },
            (None, Some((start, end))) => (start.min(length), end.min(length)),
            (None, None) => (0, length),
        };
        let end = end.clamp(start, start.saturating_add(query.limit));
        let text = if is_secret {
            String::new()
        } else if mapped.native.is_empty() {
            self.get_text(target, start.cast_signed(), end.cast_signed())
                .map_err(|failure| failed(&failure))?
        } else {
            mapped.text.chars().skip(start as usize).take((end - start) as usize).collect()
        };
        let runs =
            if query.attributes && !is_secret { self.runs(target, &mapped, start, end)? } else { Vec::new() };
        Ok(Some(TextContent {
            length,
            start,
            end,
            text,
            caret: (caret >= 0).then(|| mapped.to_characters(caret)),
            selections,
            runs,
            is_secret,
        }))
    }

    /// The line on the screen that holds an offset.
    fn line(&mut self, target: &Object, at: i32) -> Result<Option<(i32, i32)>> {
        for (member, kind) in [("GetStringAtOffset", LINE), ("GetTextAtOffset", LINE_START)] {
            let call = Call {
                signature: "iu",
                body: &|writer| {
                    writer.i32(at);
                    writer.u32(kind);
                },
                ..Call::new(&target.bus, &target.path, TEXT, member)
            };
            let serial = self.connection.send(&call);
            let found = self.wait(serial).and_then(|message| {
                let mut body = message.body("sii")?;
                body.string()?;
                Ok((body.i32()?, body.i32()?))
            });
            match found {
                Ok((start, end)) if start >= 0 && end >= start => return Ok(Some((start, end))),
                Err(Failure::Timeout) => return Err(failed(&Failure::Timeout)),
                _ => {}
            }
        }
        Ok(None)
    }

    fn runs(&mut self, target: &Object, mapped: &Mapped, start: u32, end: u32) -> Result<Vec<TextRun>> {
        let mut runs: Vec<TextRun> = Vec::new();
        let mut at = start;
        while at < end && runs.len() < MOST_RUNS {
            let native = mapped.to_native(at);
            let call = Call {
                signature: "ib",
                body: &|writer| {
                    writer.i32(native);
                    writer.bool(true);
                },
                ..Call::new(&target.bus, &target.path, TEXT, "GetAttributeRun")
            };
            let serial = self.connection.send(&call);
            let answer = self.wait(serial).and_then(|message| {
                let mut body = message.body("a{ss}ii")?;
                let last = body.array(8)?;
                let mut attributes = Vec::new();
                while body.more(last) {
                    body.structure()?;
                    attributes.push((body.string()?.into_owned(), body.string()?.into_owned()));
                }
                Ok((attributes, body.i32()?, body.i32()?))
            });
            let (mut attributes, from, to) = match answer {
                Ok(answer) => answer,
                Err(Failure::Timeout) => return Err(failed(&Failure::Timeout)),
                Err(_) => break,
            };
            let (from, to) = (mapped.to_characters(from).clamp(start, at), mapped.to_characters(to).min(end));
            // One that ends where it begins says nothing about the rest.
            if to <= at {
                break;
            }
            attributes.sort();
            runs.push(TextRun { start: from, end: to, attributes });
            at = to;
        }
        Ok(runs)
    }

    /// Sets the caret or the selection, or replaces a part of the text.
    pub(crate) fn change_text(
        &mut self,
        target: &Object,
        live: &Live,
        operation: &Operation,
    ) -> Result<Performed> {
        if !live.interfaces.has(Interfaces::TEXT) {
            return Ok(Performed::NotOffered);
        }
        let count = self.count(target)?;
        let mapped = self.mapped(target, self.units, count)?;
        match operation {
            Operation::SetCaret(offset) => {
                let offset = mapped.to_native(*offset);
                let call = Call {
                    signature: "i",
                    body: &|writer| writer.i32(offset),
                    ..Call::new(&target.bus, &target.path, TEXT, "SetCaretOffset")
                };
                self.unhurried(target, "set_caret", "Text.SetCaretOffset", &call)
            }
            Operation::SelectText(start, end) => {
                let (start, end) = (mapped.to_native(*start), mapped.to_native(*end));
                let serial = send_plain(self.connection, target, TEXT, "GetNSelections");
                let selected =
                    self.wait(serial).and_then(|message| Ok(message.body("i")?.i32()?)).unwrap_or(0);
                if selected > 0 {
                    let call = Call {
                        signature: "iii",
                        body: &|writer| {
                            writer.i32(0);
                            writer.i32(start);
                            writer.i32(end);
                        },
                        ..Call::new(&target.bus, &target.path, TEXT, "SetSelection")
                    };
                    return self.unhurried(target, "select_text", "Text.SetSelection", &call);
                }
                let call = Call {
                    signature: "ii",
                    body: &|writer| {
                        writer.i32(start);
                        writer.i32(end);
                    },
                    ..Call::new(&target.bus, &target.path, TEXT, "AddSelection")
                };
                self.unhurried(target, "select_text", "Text.AddSelection", &call)
            }
            Operation::ReplaceText { start, end, text } if live.interfaces.has(Interfaces::EDITABLE_TEXT) => {
                let (start, end) = (mapped.to_native(*start), mapped.to_native(*end));
                let mut performed =
                    Performed::Done { label: "replace_text", native: "EditableText".to_owned() };
                if end > start {
                    let call = Call {
                        signature: "ii",
                        body: &|writer| {
                            writer.i32(start);
                            writer.i32(end);
                        },
                        ..Call::new(&target.bus, &target.path, EDITABLE_TEXT, "DeleteText")
                    };
                    performed = self.yes_or_no("replace_text", "EditableText.DeleteText", &call)?;
                }
                if text.is_empty() || !matches!(performed, Performed::Done { .. }) {
                    return Ok(performed);
                }
                // What was deleted is gone: a failure from here on is never a harmless one.
                let inserted = self.insert_at(target, start, text);
                if end == start {
                    return inserted;
                }
                match inserted {
                    Ok(Performed::Done { native, .. }) => {
                        Ok(Performed::Done { label: "replace_text", native: format!("DeleteText, {native}") })
                    }
                    Ok(Performed::Refused { native, .. }) => Err(Error::new(
                        ErrorCode::ActionFailed,
                        "the old text was deleted, the new one refused",
                    )
                    .hint("read the text before anything else is done")
                    .platform_detail(native)
                    .delivery(Delivery::Unverified)),
                    Ok(Performed::NotOffered) => Ok(Performed::NotOffered),
                    Err(error) => Err(error.delivery(Delivery::Uncertain)),
                }
            }
            _ => Ok(Performed::NotOffered),
        }
    }

    /// A call whose effect is read back anyway, so its answer need not be waited for: GTK 4.8 selects in a text view and
    /// never says so.
    fn unhurried(
        &mut self,
        target: &Object,
        label: &'static str,
        native: &str,
        call: &Call<'_>,
    ) -> Result<Performed> {
        let serial = self.connection.send(call);
        if self.runs_inside(target, serial) {
            return Ok(Performed::Done { label, native: format!("{native}, which has not returned") });
        }
        let answer = self.wait(serial);
        Ok(Self::accepted(label, native, self.judged(label, native, answer)?))
    }

    /// Inserts at an offset of the application's.
    pub(crate) fn insert_at(&mut self, target: &Object, position: i32, text: &str) -> Result<Performed> {
        // The specification counts bytes. Qt cuts or pads its string to this many UTF-16 units.
        let length =
            if self.toolkit == Toolkit::Qt { text.encode_utf16().count() } else { text.len() } as i32;
        let call = Call {
            signature: "isi",
            body: &|writer| {
                writer.i32(position);
                writer.string(text);
                writer.i32(length);
            },
            ..Call::new(&target.bus, &target.path, EDITABLE_TEXT, "InsertText")
        };
        self.yes_or_no("insert_text", "EditableText.InsertText", &call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_translated_both_ways() {
        let text = "a🙂bc";
        for (raw, units, offsets) in
            [(text, Units::Utf16, [0, 1, 3, 4, 5]), ("a🙂\u{feff}bc", Units::Marked, [0, 1, 3, 4, 5])]
        {
            let mapped = Mapped::new(raw, units);
            assert_eq!(mapped.text, text);
            for (characters, native) in offsets.into_iter().enumerate() {
                assert_eq!(mapped.to_native(characters as u32), native, "{units:?}");
                assert_eq!(mapped.to_characters(native), characters as u32, "{units:?}");
            }
            assert_eq!(mapped.to_characters(2), 1, "the second half of a character");
            assert_eq!((mapped.to_native(99), mapped.to_characters(99)), (5, 4), "beyond the end");
        }
    }

    #[test]
    fn a_byte_order_mark_of_the_text_itself_stays() {
        assert_eq!(Mapped::new("a\u{feff}b", Units::Marked).text, "a\u{feff}b");
        assert_eq!(Mapped::new("🙂\u{feff}\u{feff}b", Units::Marked).text, "🙂\u{feff}b");
    }
}
