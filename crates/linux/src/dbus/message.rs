//! Messages and their bytes.
//!
//! Everything that arrives is untrusted: each length is checked before it is used, each signature is compared with the
//! one that is expected, text that is not UTF-8 is repaired rather than believed. Reading never panics.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// The longest message that is accepted. The specification allows 128 MiB; the largest honest answer, the cache of a
/// page with 50,000 nodes, is below 16 MiB.
pub(super) const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// Bytes that are no D-Bus message, or not the one that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "malformed reply: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Appends values in wire format, little-endian, aligned from the start of the buffer.
pub(crate) struct Writer<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(buffer: &'a mut Vec<u8>) -> Writer<'a> {
        let start = buffer.len();
        Writer { buffer, start }
    }

    pub(crate) fn align(&mut self, to: usize) {
        while !(self.buffer.len() - self.start).is_multiple_of(to) {
            self.buffer.push(0);
        }
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.u32(u32::from(value));
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.align(4);
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.u32(value.cast_unsigned());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.align(8);
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a string. D-Bus text cannot contain NUL; callers have refused it before.
    pub(crate) fn string(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.push(0);
    }

    /// Appends an array of strings.
    pub(crate) fn strings(&mut self, texts: &[&str]) {
        self.u32(0);
        let begin = self.buffer.len();
        for text in texts {
            self.string(text);
        }
        let length = (self.buffer.len() - begin) as u32;
        self.buffer[begin - 4..begin].copy_from_slice(&length.to_le_bytes());
    }

    pub(crate) fn signature(&mut self, text: &str) {
        self.buffer.push(text.len() as u8);
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.push(0);
    }

    fn field(&mut self, code: u8, kind: u8, value: &str) {
        self.align(8);
        self.buffer.extend_from_slice(&[code, 1, kind, 0]);
        if kind == b'g' { self.signature(value) } else { self.string(value) }
    }
}

/// A method call.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// Bus name of the callee. Always given on a bus; on a peer connection it is harmless.
    pub(crate) destination: &'a str,
    pub(crate) path: &'a str,
    pub(crate) interface: &'a str,
    pub(crate) member: &'a str,
    /// Signature of what `body` appends.
    pub(crate) signature: &'a str,
    pub(crate) body: &'a dyn Fn(&mut Writer<'_>),
}

impl<'a> Call<'a> {
    /// A call without arguments.
    pub(crate) fn new(destination: &'a str, path: &'a str, interface: &'a str, member: &'a str) -> Call<'a> {
        Call { destination, path, interface, member, signature: "", body: &|_| {} }
    }

    pub(super) fn write(&self, buffer: &mut Vec<u8>, serial: u32) {
        let start = buffer.len();
        // Little-endian, method call, no flags, version 1; the body's length is filled in below.
        buffer.extend_from_slice(b"l\x01\x00\x01\0\0\0\0");
        let mut writer = Writer { buffer, start };
        writer.u32(serial);
        writer.u32(0);
        let fields = writer.buffer.len();
        writer.field(1, b'o', self.path);
        writer.field(2, b's', self.interface);
        writer.field(3, b's', self.member);
        if !self.destination.is_empty() {
            writer.field(6, b's', self.destination);
        }
        if !self.signature.is_empty() {
            writer.field(8, b'g', self.signature);
        }
        let length = (writer.buffer.len() - fields) as u32;
        writer.buffer[fields - 4..fields].copy_from_slice(&length.to_le_bytes());
        writer.align(8);
        let body = buffer.len();
        (self.body)(&mut Writer::new(buffer));
        let length = (buffer.len() - body) as u32;
        buffer[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    }
}

/// What kind of message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    Return,
    Error,
    Signal,
}

/// A message that arrived.
#[derive(Clone, Debug)]
pub struct Message {
    data: Vec<u8>,
    body: usize,
    big_endian: bool,
    pub(crate) kind: Kind,
    /// The serial of the call that this answers; 0 if it answers none.
    pub(crate) reply_to: u32,
    signature: String,
    /// Name of the error, for errors.
    pub(crate) error_name: String,
    /// Its own serial, by which an answer refers to it.
    pub(crate) serial: u32,
    names: Names,
}

/// Where in the header the names stand; empty: it does not say.
#[derive(Clone, Debug, Default)]
struct Names {
    interface: Range<usize>,
    member: Range<usize>,
    destination: Range<usize>,
    sender: Range<usize>,
}

/// Length of the message that begins with these bytes, once enough of it is there.
///
/// # Errors
/// When this cannot be a message.
pub(super) fn message_length(data: &[u8]) -> Result<Option<usize>, Malformed> {
    if data.len() < 16 {
        return Ok(None);
    }
    let big_endian = match data[0] {
        b'l' => false,
        b'B' => true,
        _ => return Err(Malformed("byte order")),
    };
    let number = |at: usize| {
        let bytes: [u8; 4] = [data[at], data[at + 1], data[at + 2], data[at + 3]];
        (if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }) as usize
    };
    let body = number(4);
    let fields = number(12);
    if body > MAX_MESSAGE || fields > MAX_MESSAGE {
        return Err(Malformed("too long"));
    }
    Ok(Some(16 + fields.next_multiple_of(8) + body))
}

impl Message {
    /// Parses one whole message.
    ///
    /// # Errors
    /// When the header is not well-formed.
    pub fn parse(data: Vec<u8>) -> Result<Message, Malformed> {
        let length = message_length(&data)?.ok_or(Malformed("short"))?;
        if length != data.len() {
            return Err(Malformed("length"));
        }
        let big_endian = data[0] == b'B';
        let kind = match data[1] {
            1 => Kind::Call,
            2 => Kind::Return,
            3 => Kind::Error,
            4 => Kind::Signal,
            _ => return Err(Malformed("type")),
        };
        let mut reader = Reader { data: &data, position: 8, start: 0, big_endian };
        let serial = reader.u32()?;
        let fields = reader.u32()? as usize;
        let end = 16 + fields;
        let (mut reply_to, mut signature, mut error_name) = (0, String::new(), String::new());
        let mut names = Names::default();
        while reader.position < end {
            reader.align(8)?;
            if reader.position >= end {
                break;
            }
            let code = reader.byte()?;
            let kind = reader.signature()?.into_owned();
            match (code, kind.as_str()) {
                (4, "s") => error_name = reader.string()?.into_owned(),
                (5, "u") => reply_to = reader.u32()?,
                (8, "g") => signature = reader.signature()?.into_owned(),
                (2, "s") => names.interface = reader.span()?,
                (3, "s") => names.member = reader.span()?,
                (6, "s") => names.destination = reader.span()?,
                (7, "s") => names.sender = reader.span()?,
                (_, "s" | "o") => {
                    reader.string()?;
                }
                (_, "u") => {
                    reader.u32()?;
                }
                (_, "g") => {
                    reader.signature()?;
                }
                _ => return Err(Malformed("header field")),
            }
        }
        let body = end.next_multiple_of(8);
        if body > data.len() {
            return Err(Malformed("header"));
        }
        Ok(Message { data, body, big_endian, kind, reply_to, signature, error_name, serial, names })
    }

    fn name(&self, range: &Range<usize>) -> &str {
        // Names are ASCII; what is not is the name of nobody.
        self.data.get(range.clone()).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// The interface of the call or the signal.
    pub(crate) fn interface(&self) -> &str {
        self.name(&self.names.interface)
    }

    /// The method or the signal.
    pub(crate) fn member(&self) -> &str {
        self.name(&self.names.member)
    }

    /// Who it is for.
    pub(crate) fn destination(&self) -> &str {
        self.name(&self.names.destination)
    }

    /// Who sent it, by the word of the bus.
    pub(crate) fn sender(&self) -> &str {
        self.name(&self.names.sender)
    }

    /// Whether the caller wants no answer.
    pub(crate) fn wants_no_reply(&self) -> bool {
        self.data[2] & 1 != 0
    }

    /// Reads the body, if it has this signature.
    ///
    /// # Errors
    /// When it has another one.
    pub fn body(&self, signature: &str) -> Result<Reader<'_>, Malformed> {
        if self.signature == signature { Ok(self.reader()) } else { Err(Malformed("signature")) }
    }

    /// The signature of the body.
    pub fn signature(&self) -> &str {
        &self.signature
    }

    /// Reads the body whatever its signature; for callers that have looked at it.
    pub fn reader(&self) -> Reader<'_> {
        Reader { data: &self.data, position: self.body, start: self.body, big_endian: self.big_endian }
    }

    /// The text that comes with an error, if any.
    pub(crate) fn error_text(&self) -> String {
        self.body("s").and_then(|mut reader| Ok(reader.string()?.into_owned())).unwrap_or_default()
    }
}

/// Reads values in wire format.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    data: &'a [u8],
    position: usize,
    start: usize,
    big_endian: bool,
}

impl<'a> Reader<'a> {
    fn align(&mut self, to: usize) -> Result<(), Malformed> {
        self.position = self.start + (self.position - self.start).next_multiple_of(to);
        if self.position > self.data.len() { Err(Malformed("end")) } else { Ok(()) }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.position.checked_add(count).ok_or(Malformed("end"))?;
        let bytes = self.data.get(self.position..end).ok_or(Malformed("end"))?;
        self.position = end;
        Ok(bytes)
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    /// Reads an unsigned number.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.align(4)?;
        let bytes: [u8; 4] = self.take(4)?.try_into().map_err(|_| Malformed("end"))?;
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Reads a signed number.
    pub fn i32(&mut self) -> Result<i32, Malformed> {
        self.u32().map(u32::cast_signed)
    }

    /// Reads a truth value.
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        self.u32().map(|value| value != 0)
    }

    /// Reads a floating-point number.
    pub fn f64(&mut self) -> Result<f64, Malformed> {
        self.align(8)?;
        let bytes: [u8; 8] = self.take(8)?.try_into().map_err(|_| Malformed("end"))?;
        Ok(if self.big_endian { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) })
    }

    /// Reads a string or an object path. Bytes that are not UTF-8 become replacement characters.
    pub fn string(&mut self) -> Result<Cow<'a, str>, Malformed> {
        let length = self.u32()? as usize;
        let bytes = self.take(length)?;
        self.take(1)?;
        Ok(String::from_utf8_lossy(bytes))
    }

    /// Reads a string and gives the place of its bytes.
    fn span(&mut self) -> Result<Range<usize>, Malformed> {
        let length = self.u32()? as usize;
        let start = self.position;
        self.take(length)?;
        self.take(1)?;
        Ok(start..start + length)
    }

    /// Reads a signature.
    pub fn signature(&mut self) -> Result<Cow<'a, str>, Malformed> {
        let length = self.byte()? as usize;
        let bytes = self.take(length)?;
        self.take(1)?;
        Ok(String::from_utf8_lossy(bytes))
    }

    /// Begins an array whose elements have this alignment; gives the position of its end.
    pub fn array(&mut self, element_alignment: usize) -> Result<usize, Malformed> {
        let length = self.u32()? as usize;
        self.align(element_alignment)?;
        let end = self.position.checked_add(length).ok_or(Malformed("array"))?;
        if end > self.data.len() { Err(Malformed("array")) } else { Ok(end) }
    }

    /// Whether the array that ends at `end` has more elements.
    pub fn more(&self, end: usize) -> bool {
        self.position < end
    }

    /// Begins a structure.
    pub fn structure(&mut self) -> Result<(), Malformed> {
        self.align(8)
    }

    /// Reads an accessible reference, `(so)`: bus name and object path.
    pub fn reference(&mut self) -> Result<(Cow<'a, str>, Cow<'a, str>), Malformed> {
        self.structure()?;
        Ok((self.string()?, self.string()?))
    }

    /// Reads an array of strings.
    pub fn strings(&mut self) -> Result<Vec<Cow<'a, str>>, Malformed> {
        let end = self.array(4)?;
        let mut strings = Vec::new();
        while self.more(end) {
            strings.push(self.string()?);
        }
        Ok(strings)
    }

    /// Skips one complete value of this type.
    pub fn skip(&mut self, signature: &str) -> Result<(), Malformed> {
        let mut rest = signature.as_bytes();
        while !rest.is_empty() {
            rest = self.skip_one(rest, 0)?;
        }
        Ok(())
    }

    fn skip_one<'s>(&mut self, signature: &'s [u8], depth: u32) -> Result<&'s [u8], Malformed> {
        if depth > 32 {
            return Err(Malformed("nesting"));
        }
        let (&first, rest) = signature.split_first().ok_or(Malformed("signature"))?;
        match first {
            b'y' => {
                self.byte()?;
            }
            b'n' | b'q' => {
                self.align(2)?;
                self.take(2)?;
            }
            b'b' | b'i' | b'u' | b'h' => {
                self.u32()?;
            }
            b'x' | b't' | b'd' => {
                self.align(8)?;
                self.take(8)?;
            }
            b's' | b'o' => {
                self.string()?;
            }
            b'g' => {
                self.signature()?;
            }
            b'v' => {
                let inner = self.signature()?.into_owned();
                let left = self.skip_one(inner.as_bytes(), depth + 1)?;
                if !left.is_empty() {
                    return Err(Malformed("variant"));
                }
            }
            b'a' => {
                let element = complete_type(rest)?;
                let end = self.array(alignment(element[0]))?;
                self.position = end;
                return Ok(&rest[element.len()..]);
            }
            b'(' | b'{' => {
                self.align(8)?;
                let close = if first == b'(' { b')' } else { b'}' };
                let mut inner = rest;
                while inner.first() != Some(&close) {
                    inner = self.skip_one(inner, depth + 1)?;
                }
                return Ok(&inner[1..]);
            }
            _ => return Err(Malformed("signature")),
        }
        Ok(rest)
    }
}

fn alignment(code: u8) -> usize {
    match code {
        b'y' | b'g' | b'v' => 1,
        b'n' | b'q' => 2,
        b'x' | b't' | b'd' | b'(' | b'{' => 8,
        _ => 4,
    }
}

fn complete_type(signature: &[u8]) -> Result<&[u8], Malformed> {
    let mut depth = 0_u32;
    for (index, &code) in signature.iter().enumerate() {
        match code {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth = depth.checked_sub(1).ok_or(Malformed("signature"))?,
            b'a' => continue,
            _ => {}
        }
        if depth == 0 {
            return Ok(&signature[..=index]);
        }
    }
    Err(Malformed("signature"))
}

/// Any message, for tests of those who read them: type, serial, serial of the call it answers, header fields of names,
/// whether no answer is wanted, body.
#[cfg(test)]
pub(crate) fn test_message(
    kind: u8,
    serial: u32,
    reply_to: u32,
    names: &[(u8, &str)],
    wants_no_reply: bool,
    signature: &str,
    body: &dyn Fn(&mut Writer<'_>),
) -> Message {
    let mut data = vec![b'l', kind, u8::from(wants_no_reply), 1, 0, 0, 0, 0];
    let mut writer = Writer { buffer: &mut data, start: 0 };
    writer.u32(serial);
    writer.u32(0);
    for (code, name) in names {
        writer.field(*code, b's', name);
    }
    writer.field(8, b'g', signature);
    if reply_to != 0 {
        writer.align(8);
        writer.buffer.extend_from_slice(&[5, 1, b'u', 0]);
        writer.u32(reply_to);
    }
    let fields = (writer.buffer.len() - 16) as u32;
    writer.buffer[12..16].copy_from_slice(&fields.to_le_bytes());
    writer.align(8);
    let start = data.len();
    body(&mut Writer::new(&mut data));
    let length = (data.len() - start) as u32;
    data[4..8].copy_from_slice(&length.to_le_bytes());
    Message::parse(data).expect("it is well-formed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(call: &Call<'_>) -> Message {
        let mut buffer = Vec::new();
        call.write(&mut buffer, 7);
        Message::parse(buffer).unwrap()
    }

    #[test]
    fn a_call_reads_back() {
        let message = written(&Call {
            signature: "sud",
            body: &|writer| {
                writer.string("ä");
                writer.u32(5);
                writer.f64(2.5);
            },
            ..Call::new(":1.2", "/a", "b.c", "D")
        });
        assert_eq!(message.kind, Kind::Call);
        let mut body = message.body("sud").unwrap();
        assert_eq!(body.string().unwrap(), "ä");
        assert_eq!(body.u32().unwrap(), 5);
        assert!((body.f64().unwrap() - 2.5).abs() < f64::EPSILON);
        assert_eq!(message.body("s").err(), Some(Malformed("signature")));
    }

    #[test]
    fn a_header_says_who_and_what() {
        let message = written(&Call {
            signature: "asu",
            body: &|writer| {
                writer.strings(&["a", "", "äö"]);
                writer.u32(9);
            },
            ..Call::new(":1.2", "/a", "b.c", "D")
        });
        assert_eq!((message.destination(), message.interface(), message.member()), (":1.2", "b.c", "D"));
        assert_eq!((message.sender(), message.serial, message.wants_no_reply()), ("", 7, false));
        let mut body = message.body("asu").unwrap();
        assert_eq!(body.strings().unwrap(), ["a", "", "äö"]);
        assert_eq!(body.u32().unwrap(), 9);
    }

    #[test]
    fn text_that_is_not_utf8_is_repaired() {
        let mut message = written(&Call {
            signature: "s",
            body: &|writer| writer.string("abc"),
            ..Call::new("", "/a", "b.c", "D")
        });
        let at = message.body + 4;
        message.data[at] = 0xff;
        assert_eq!(message.body("s").unwrap().string().unwrap(), "\u{fffd}bc");
    }

    #[test]
    fn skipping_follows_the_signature() {
        let message = written(&Call {
            signature: "a{sv}u",
            body: &|writer| {
                writer.u32(0);
                writer.align(8);
                writer.u32(9);
            },
            ..Call::new("", "/a", "b.c", "D")
        });
        let mut body = message.reader();
        body.skip("a{sv}").unwrap();
        assert_eq!(body.u32().unwrap(), 9);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(data in proptest::collection::vec(any::<u8>(), 0..200), signature in "[a-z(){}]{0,8}") {
            let _ = message_length(&data);
            if let Ok(message) = Message::parse(data.clone()) {
                let _ = message.reader().skip(&signature);
                let _ = message.reader().strings();
            }
            let mut reader = Reader { data: &data, position: 0, start: 0, big_endian: false };
            let _ = reader.skip(&signature);
        }

        #[test]
        fn a_damaged_message_never_panics(at in 0_usize..120, byte in any::<u8>()) {
            let mut buffer = Vec::new();
            let call = Call { signature: "asv", body: &|writer| {
                writer.u32(8); writer.string("abc"); writer.signature("i"); writer.i32(4);
            }, ..Call::new(":1.2", "/org/a", "b.c", "D") };
            call.write(&mut buffer, 7);
            if at < buffer.len() { buffer[at] = byte; }
            if let Ok(message) = Message::parse(buffer) {
                let _ = message.reader().strings();
                let _ = message.reader().skip("asv");
            }
        }
    }
}
