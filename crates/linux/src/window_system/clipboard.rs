//! The clipboard: asking its owner for what is in it, and being its owner.
//!
//! X11 keeps no clipboard. Whoever copied something answers for it as long as it lives, so what is set here is served by a
//! process of its own that ends when somebody else copies, or with the display. Large contents travel in pieces (ICCCM 2.7.2).

use std::collections::HashMap;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, PropMode, Property,
    SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, Window as Xid,
};
use x11rb::wrapper::ConnectionExt as _;

use super::connection::{Failure, Outcome, X11, present};
use super::{Result, WindowSystemError};

/// Bytes that travel at once. Servers take at least 256 KiB in one request.
const PIECE: usize = 200 * 1024;
/// How long an owner without work waits before it looks whether it is still one; events wake it earlier.
const IDLE: Duration = Duration::from_secs(3600);
/// First word of what a serving process is told.
const HELLO: &[u8] = b"agent-desktop clipboard 1\n";

/// What a clipboard may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// Files, as `file://` addresses.
    Files(Vec<String>),
    /// A picture, as a PNG file.
    Png(Vec<u8>),
}

/// Which form is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text.
    Text,
    /// Files.
    Files,
    /// A PNG picture.
    Png,
}

/// What the owner of the clipboard offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its window; nobody: nothing is in the clipboard. Another copy means another owner, or the same one anew.
    pub owner: u32,
    /// Names of the forms, as the owner calls them.
    pub targets: Vec<String>,
    /// Whether a password manager marked it.
    pub is_concealed: bool,
}

impl Offer {
    /// Whether it has this form.
    pub fn has(&self, form: Form) -> bool {
        names(form).iter().any(|name| self.targets.iter().any(|target| target == name))
    }
}

/// The names of a form, best first.
fn names(form: Form) -> &'static [&'static str] {
    match form {
        Form::Text => &["UTF8_STRING", "text/plain;charset=utf-8", "text/plain", "STRING"],
        Form::Files => &["text/uri-list"],
        Form::Png => &["image/png"],
    }
}

impl X11 {
    /// What the clipboard offers.
    ///
    /// A handful of round trips, and one to the owner.
    ///
    /// # Errors
    /// `Timeout` when the owner does not answer, `Lost`.
    pub fn clipboard_offer(&self, deadline: Instant) -> Result<Offer> {
        self.begin(deadline);
        self.offer_now().map_err(|failure| failure.during("asking what is in the clipboard"))
    }

    fn offer_now(&self) -> Outcome<Offer> {
        let selection = self.atom("CLIPBOARD")?;
        let owner = self.wire.get_selection_owner(selection)?.reply()?.owner;
        if owner == x11rb::NONE {
            return Ok(Offer::default());
        }
        let Some(bytes) = self.ask_owner("TARGETS", usize::MAX)? else {
            return Ok(Offer { owner, ..Offer::default() });
        };
        let atoms = bytes
            .chunks_exact(4)
            .take(200)
            .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        let cookies = atoms.map(|atom| Ok(self.wire.get_atom_name(atom)?)).collect::<Outcome<Vec<_>>>()?;
        let mut targets = Vec::new();
        for cookie in cookies {
            targets.extend(
                present(cookie.reply())?.map(|reply| String::from_utf8_lossy(&reply.name).into_owned()),
            );
        }
        let hint = "x-kde-passwordManagerHint";
        let is_concealed = targets.iter().any(|target| target == hint)
            && self.ask_owner(hint, 64)?.is_some_and(|value| value.starts_with(b"secret"));
        Ok(Offer { owner, targets, is_concealed })
    }

    /// What is in the clipboard, in this form; `None`: it has no such form. `limit`: bytes at most.
    ///
    /// # Errors
    /// `Timeout` when the owner does not answer, `InvalidArgument` when there is more, `Lost`.
    pub fn clipboard_read(&self, form: Form, limit: usize, deadline: Instant) -> Result<Option<Content>> {
        let doing = "reading the clipboard";
        let offer = self.clipboard_offer(deadline)?;
        let Some(name) = names(form).iter().find(|name| offer.targets.iter().any(|target| target == *name))
        else {
            return Ok(None);
        };
        let bytes = match self.ask_owner(name, limit) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(Failure::Refused(..)) => {
                return Err(WindowSystemError::InvalidArgument {
                    what: format!("a clipboard of more than {limit} bytes"),
                });
            }
            Err(failure) => return Err(failure.during(doing)),
        };
        Ok(Some(match form {
            Form::Png => Content::Png(bytes),
            Form::Text if *name == "STRING" => {
                Content::Text(bytes.iter().map(|byte| char::from(*byte)).collect())
            }
            Form::Text => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Content::Text(text.strip_suffix('\0').map_or(text.clone(), str::to_owned))
            }
            Form::Files => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let lines = text.lines().map(|line| line.trim_end_matches(['\r', '\0']));
                Content::Files(
                    lines
                        .filter(|line| !line.is_empty() && !line.starts_with('#'))
                        .map(str::to_owned)
                        .collect(),
                )
            }
        }))
    }

    /// Empties the clipboard: nobody owns it afterwards.
    ///
    /// # Errors
    /// `Timeout`, `Lost`.
    pub fn clipboard_clear(&self, deadline: Instant) -> Result<()> {
        self.begin(deadline);
        let clear = || -> Outcome<()> {
            let selection = self.atom("CLIPBOARD")?;
            let time = self.server_time()?;
            // Taken first: only its owner may give it up.
            self.wire.set_selection_owner(self.own_window, selection, time)?;
            self.wire.set_selection_owner(x11rb::NONE, selection, time)?;
            self.sync()
        };
        clear().map_err(|failure| failure.during("clearing the clipboard"))
    }

    fn atom(&self, name: &str) -> Outcome<Atom> {
        Ok(self.wire.intern_atom(false, name.as_bytes())?.reply()?.atom)
    }

    /// The bytes that the owner gives for a target; `None`: it refuses.
    fn ask_owner(&self, target: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        let (selection, property) = (self.atom("CLIPBOARD")?, self.atom("_AGENT_DESKTOP_CLIPBOARD")?);
        let (target, incremental) = (self.atom(target)?, self.atom("INCR")?);
        let window = self.own_window;
        let time = self.server_time()?;
        self.wire.delete_property(window, property)?;
        self.wire.convert_selection(window, selection, target, property, time)?;
        self.wire.flush()?;
        loop {
            if let Event::SelectionNotify(event) = self.wire.wait_for_event()?
                && event.requestor == window
                && event.target == target
            {
                if event.property == x11rb::NONE {
                    return Ok(None);
                }
                break;
            }
        }
        let (kind, mut bytes) = self.take_property(property, limit)?;
        if kind != incremental {
            return Ok(Some(bytes));
        }
        bytes.clear();
        loop {
            let is_new = |event: &Event| {
                matches!(event, Event::PropertyNotify(event)
                    if event.window == window && event.atom == property && event.state == Property::NEW_VALUE)
            };
            while !is_new(&self.wire.wait_for_event()?) {}
            let (_, piece) = self.take_property(property, limit)?;
            if piece.is_empty() {
                return Ok(Some(bytes));
            }
            if bytes.len() + piece.len() > limit {
                return Err(too_large());
            }
            bytes.extend(piece);
        }
    }

    /// The value of a property of our own, which is deleted: that asks for the next piece.
    fn take_property(&self, property: Atom, limit: usize) -> Outcome<(Atom, Vec<u8>)> {
        let words = (limit / 4).saturating_add(1).min(u32::MAX as usize / 4) as u32;
        let reply =
            self.wire.get_property(true, self.own_window, property, AtomEnum::ANY, 0, words)?.reply()?;
        if reply.bytes_after > 0 || reply.value.len() > limit {
            self.wire.delete_property(self.own_window, property)?;
            return Err(too_large());
        }
        Ok((reply.type_, reply.value))
    }

    /// Owns the clipboard with this content until somebody else does. Calls `ready` once it does.
    ///
    /// # Errors
    /// `Lost` when the display ends.
    pub fn clipboard_serve(&self, content: &Content, ready: impl FnOnce()) -> Result<()> {
        self.serve_now(content, ready).map_err(|failure| failure.during("serving the clipboard"))
    }

    fn serve_now(&self, content: &Content, ready: impl FnOnce()) -> Outcome<()> {
        self.begin(Instant::now() + IDLE);
        let selection = self.atom("CLIPBOARD")?;
        let (list, timestamp, incremental) =
            (self.atom("TARGETS")?, self.atom("TIMESTAMP")?, self.atom("INCR")?);
        let mut forms: Vec<(Atom, Vec<u8>)> = Vec::new();
        for (name, bytes) in served(content) {
            forms.push((self.atom(name)?, bytes));
        }
        let time = self.server_time()?;
        self.wire.set_selection_owner(self.own_window, selection, time)?;
        self.sync()?;
        if self.wire.get_selection_owner(selection)?.reply()?.owner != self.own_window {
            return Err(Failure::Lost("somebody else took the clipboard".to_owned()));
        }
        ready();
        // What is on its way in pieces: to which window and property, and what is left of it.
        let mut pieces: HashMap<(Xid, Atom), (Atom, Vec<u8>)> = HashMap::new();
        loop {
            self.begin(Instant::now() + IDLE);
            let event = match self.wire.wait_for_event() {
                Ok(event) => event,
                Err(error) => match Failure::from(error) {
                    Failure::Timeout => continue,
                    other => return Err(other),
                },
            };
            match event {
                Event::SelectionClear(event) if event.selection == selection => return Ok(()),
                Event::SelectionRequest(request) => {
                    let property =
                        if request.property == x11rb::NONE { request.target } else { request.property };
                    let is_given = if request.target == list {
                        let mut all = vec![list, timestamp];
                        all.extend(forms.iter().map(|(atom, _)| *atom));
                        self.wire.change_property32(
                            PropMode::REPLACE,
                            request.requestor,
                            property,
                            AtomEnum::ATOM,
                            &all,
                        )?;
                        true
                    } else if request.target == timestamp {
                        self.wire.change_property32(
                            PropMode::REPLACE,
                            request.requestor,
                            property,
                            AtomEnum::INTEGER,
                            &[time],
                        )?;
                        true
                    } else if let Some((kind, bytes)) = forms.iter().find(|(atom, _)| *atom == request.target)
                    {
                        if bytes.len() > PIECE {
                            self.wire.change_window_attributes(
                                request.requestor,
                                &ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE),
                            )?;
                            let size = bytes.len() as u32;
                            self.wire.change_property32(
                                PropMode::REPLACE,
                                request.requestor,
                                property,
                                incremental,
                                &[size],
                            )?;
                            pieces.insert((request.requestor, property), (*kind, bytes.clone()));
                        } else {
                            self.wire.change_property8(
                                PropMode::REPLACE,
                                request.requestor,
                                property,
                                *kind,
                                bytes,
                            )?;
                        }
                        true
                    } else {
                        false
                    };
                    self.notify(&request, if is_given { property } else { x11rb::NONE })?;
                }
                Event::PropertyNotify(event) if event.state == Property::DELETE => {
                    let key = (event.window, event.atom);
                    if let Some((kind, rest)) = pieces.get_mut(&key) {
                        let piece: Vec<u8> = rest.drain(..rest.len().min(PIECE)).collect();
                        let kind = *kind;
                        self.wire.change_property8(
                            PropMode::REPLACE,
                            event.window,
                            event.atom,
                            kind,
                            &piece,
                        )?;
                        self.wire.flush()?;
                        // An empty piece says that it was the last.
                        if piece.is_empty() {
                            pieces.remove(&key);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn notify(&self, request: &SelectionRequestEvent, property: Atom) -> Outcome<()> {
        let event = SelectionNotifyEvent {
            response_type: SELECTION_NOTIFY_EVENT,
            sequence: 0,
            time: request.time,
            requestor: request.requestor,
            selection: request.selection,
            target: request.target,
            property,
        };
        self.wire.send_event(false, request.requestor, EventMask::NO_EVENT, event)?;
        self.wire.flush()?;
        Ok(())
    }
}

fn too_large() -> Failure {
    Failure::Refused(x11rb::protocol::ErrorKind::Length, "there is more than is read".to_owned())
}

/// The forms in which a content is served.
fn served(content: &Content) -> Vec<(&'static str, Vec<u8>)> {
    match content {
        Content::Text(text) => {
            let mut forms: Vec<(&'static str, Vec<u8>)> =
                ["UTF8_STRING", "text/plain;charset=utf-8", "text/plain"]
                    .map(|name| (name, text.clone().into_bytes()))
                    .into();
            // Latin-1, for those that know nothing else.
            let latin: Option<Vec<u8>> =
                text.chars().map(|character| u8::try_from(u32::from(character)).ok()).collect();
            forms.extend(latin.map(|bytes| ("STRING", bytes)));
            forms
        }
        Content::Files(files) => {
            let list = files.iter().fold(String::new(), |list, file| list + file + "\r\n");
            let copied = files.iter().fold("copy".to_owned(), |list, file| list + "\n" + file);
            vec![("text/uri-list", list.into_bytes()), ("x-special/gnome-copied-files", copied.into_bytes())]
        }
        Content::Png(bytes) => vec![("image/png", bytes.clone())],
    }
}

impl Content {
    /// As it is told to a serving process.
    pub fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let (kind, bytes) = match self {
            Content::Text(text) => ("text", text.clone().into_bytes()),
            Content::Files(files) => ("files", files.join("\n").into_bytes()),
            Content::Png(bytes) => ("png", bytes.clone()),
        };
        out.write_all(HELLO)?;
        out.write_all(kind.as_bytes())?;
        out.write_all(b"\n")?;
        out.write_all(&bytes)?;
        out.flush()
    }

    /// What a serving process is told; `None`: not by us.
    pub fn read(input: &mut impl Read) -> std::io::Result<Option<Content>> {
        let mut all = Vec::new();
        input.read_to_end(&mut all)?;
        let Some(rest) = all.strip_prefix(HELLO) else { return Ok(None) };
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let (kind, bytes) = (&rest[..end], &rest[end + 1..]);
        let text = || String::from_utf8(bytes.to_vec()).ok();
        Ok(match kind {
            b"text" => text().map(Content::Text),
            b"files" => text().map(|list| Content::Files(list.lines().map(str::to_owned).collect())),
            b"png" => Some(Content::Png(bytes.to_vec())),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_to_a_serving_process_is_understood() {
        for content in [
            Content::Text("a\nä 🙂\n".to_owned()),
            Content::Text(String::new()),
            Content::Files(vec!["file:///a%20b".to_owned(), "file:///c".to_owned()]),
            Content::Png(vec![0, 10, 255, 10]),
        ] {
            let mut told = Vec::new();
            content.write(&mut told).unwrap();
            assert_eq!(Content::read(&mut told.as_slice()).unwrap(), Some(content));
        }
        assert_eq!(Content::read(&mut &b"text\nx"[..]).unwrap(), None);
    }

    #[test]
    fn text_outside_of_latin_1_is_not_served_as_latin_1() {
        let names = |text: &str| {
            served(&Content::Text(text.to_owned())).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert!(names("é").contains(&"STRING"));
        assert!(!names("П").contains(&"STRING"));
    }
}
