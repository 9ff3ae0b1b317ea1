//! One socket with many calls in flight.
//!
//! Calls are collected in a buffer and leave together; answers are taken in whatever order they come. Nothing here
//! blocks beyond the deadline it is given: the socket does not block, waiting is `poll`, and while there is something
//! to write we read too, so that a peer which writes before it reads cannot lock us up.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::address::{Transport, transports};
use super::message::{Call, Kind, Message, message_length};

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The deadline came first.
    Timeout,
    /// The connection is gone, or was never there.
    Disconnected(String),
    /// The peer answered with this error.
    Remote {
        /// Its D-Bus name.
        name: String,
        /// Its text.
        text: String,
    },
    /// The answer makes no sense.
    Malformed(&'static str),
}

impl Failure {
    /// Whether the object, its interface or its application is no longer there.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Failure::Remote { name, .. } => matches!(
                name.as_str(),
                "org.freedesktop.DBus.Error.UnknownObject"
                    | "org.freedesktop.DBus.Error.ServiceUnknown"
                    | "org.freedesktop.DBus.Error.NameHasNoOwner"
                    | "org.freedesktop.DBus.Error.NoReply"
                    | "org.freedesktop.DBus.Error.Disconnected"
            ),
            Failure::Disconnected(_) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Timeout => formatter.write_str("no answer before the deadline"),
            Failure::Disconnected(why) => write!(formatter, "not connected: {why}"),
            Failure::Remote { name, text } => write!(formatter, "{name}: {text}"),
            Failure::Malformed(what) => write!(formatter, "malformed reply: {what}"),
        }
    }
}

impl From<super::Malformed> for Failure {
    fn from(malformed: super::Malformed) -> Failure {
        Failure::Malformed(malformed.0)
    }
}

/// A connection to a bus, or to an application directly.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    next_serial: u32,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// Where the unread part of `incoming` begins.
    consumed: usize,
    /// Answers that came while another one was waited for.
    set_aside: HashMap<u32, Message>,
    /// Whether the peer has accepted us.
    is_authenticated: bool,
    /// Number of calls made.
    pub(crate) calls: u64,
    /// Number of times we waited for the peer.
    pub(crate) waits: u64,
}

fn dial(transport: &Transport) -> io::Result<UnixStream> {
    match transport {
        Transport::Path(path) => UnixStream::connect(path),
        Transport::Abstract(name) => UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?),
    }
}

impl Connection {
    /// Connects. Who we are, and on a bus the greeting, leave with the first calls, and their answers are taken with
    /// the first others, so that connecting costs no round trip of its own.
    ///
    /// # Errors
    /// [`Failure::Disconnected`] when nobody listens there.
    pub(crate) fn open(address: &str, is_bus: bool) -> Result<Connection, Failure> {
        let candidates = transports(address);
        if candidates.is_empty() {
            return Err(Failure::Disconnected(format!("no Unix socket in the address {address:?}")));
        }
        let mut last = None;
        for transport in &candidates {
            match dial(transport) {
                Ok(stream) => return Self::over(stream, is_bus).map_err(|error| disconnected(&error)),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or(Failure::Disconnected(String::new()), |error| {
            Failure::Disconnected(format!("{address}: {error}"))
        }))
    }

    fn over(stream: UnixStream, is_bus: bool) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        let mut outgoing = Vec::with_capacity(4096);
        let user = rustix::process::geteuid().as_raw().to_string();
        outgoing.extend_from_slice(b"\0AUTH EXTERNAL ");
        for byte in user.bytes() {
            write!(outgoing, "{byte:02x}")?;
        }
        outgoing.extend_from_slice(b"\r\nBEGIN\r\n");
        let mut connection = Connection {
            stream,
            next_serial: 1,
            outgoing,
            incoming: Vec::with_capacity(64 * 1024),
            consumed: 0,
            set_aside: HashMap::new(),
            is_authenticated: false,
            calls: 0,
            waits: 0,
        };
        if is_bus {
            // The serial is never asked for: the answer is dropped when it comes.
            connection.send(&Call::new(
                "org.freedesktop.DBus",
                "/org/freedesktop/DBus",
                "org.freedesktop.DBus",
                "Hello",
            ));
        }
        Ok(connection)
    }

    /// Puts a call into the buffer and gives its serial.
    pub(crate) fn send(&mut self, call: &Call<'_>) -> u32 {
        let serial = self.next_serial;
        self.next_serial = self.next_serial.checked_add(1).unwrap_or(1);
        call.write(&mut self.outgoing, serial);
        self.calls += 1;
        serial
    }

    /// The next answer to any call, errors included.
    ///
    /// # Errors
    /// [`Failure::Timeout`] at the deadline, others when the connection is lost.
    pub(crate) fn next_reply(&mut self, deadline: Instant) -> Result<Message, Failure> {
        if let Some(&serial) = self.set_aside.keys().next() {
            return Ok(self.set_aside.remove(&serial).expect("the key was just seen"));
        }
        self.next_from_wire(deadline)
    }

    fn next_from_wire(&mut self, deadline: Instant) -> Result<Message, Failure> {
        loop {
            while let Some(message) = self.parse_one()? {
                match message.kind {
                    Kind::Return | Kind::Error => return Ok(message),
                    // We serve nothing; signals are of interest only to those who subscribed.
                    Kind::Call | Kind::Signal => {}
                }
            }
            self.exchange(deadline)?;
        }
    }

    /// The next message of any kind, for a connection that only listens.
    ///
    /// # Errors
    /// As [`Connection::next_reply`].
    pub(crate) fn next_message(&mut self, deadline: Instant) -> Result<Message, Failure> {
        loop {
            if let Some(message) = self.parse_one()? {
                return Ok(message);
            }
            self.exchange(deadline)?;
        }
    }

    /// Waits for the answer to one call. Answers to others are kept.
    ///
    /// # Errors
    /// [`Failure::Remote`] when the answer is an error.
    pub(crate) fn wait(&mut self, serial: u32, deadline: Instant) -> Result<Message, Failure> {
        if let Some(message) = self.set_aside.remove(&serial) {
            return checked(message);
        }
        loop {
            let message = self.next_from_wire(deadline)?;
            if message.reply_to == serial {
                return checked(message);
            }
            self.set_aside.insert(message.reply_to, message);
        }
    }

    /// Waits until the answer to one call is there, and leaves it.
    ///
    /// # Errors
    /// [`Failure::Timeout`] at the deadline, others when the connection is lost.
    pub(crate) fn peek(&mut self, serial: u32, deadline: Instant) -> Result<(), Failure> {
        while !self.set_aside.contains_key(&serial) {
            let message = self.next_from_wire(deadline)?;
            self.set_aside.insert(message.reply_to, message);
        }
        Ok(())
    }

    /// Makes one call and waits for its answer.
    ///
    /// # Errors
    /// As [`Connection::wait`].
    pub(crate) fn call(&mut self, call: &Call<'_>, deadline: Instant) -> Result<Message, Failure> {
        let serial = self.send(call);
        self.wait(serial, deadline)
    }

    /// Makes several calls at once; the answers in the order of the calls.
    ///
    /// A call without an answer at the deadline fails with [`Failure::Timeout`], the others are not lost.
    pub(crate) fn call_all(&mut self, serials: &[u32], deadline: Instant) -> Vec<Result<Message, Failure>> {
        serials.iter().map(|&serial| self.wait(serial, deadline)).collect()
    }

    /// Drops answers nobody will ask for any more.
    pub(crate) fn forget_replies(&mut self) {
        self.set_aside.clear();
    }

    /// Takes the line that accepts us, once it is there.
    fn authenticate(&mut self) -> Result<bool, Failure> {
        let Some(end) = self.incoming.windows(2).position(|pair| pair == b"\r\n") else {
            // An honest line is short.
            return if self.incoming.len() > 4096 {
                Err(Failure::Malformed("authentication"))
            } else {
                Ok(false)
            };
        };
        let line = &self.incoming[..end];
        if !line.starts_with(b"OK ") {
            let line = String::from_utf8_lossy(line).into_owned();
            return Err(Failure::Disconnected(format!("the bus refused us: {line}")));
        }
        self.consumed = end + 2;
        self.is_authenticated = true;
        Ok(true)
    }

    fn parse_one(&mut self) -> Result<Option<Message>, Failure> {
        if !self.is_authenticated && !self.authenticate()? {
            return Ok(None);
        }
        let pending = &self.incoming[self.consumed..];
        let Some(length) = message_length(pending)? else { return Ok(None) };
        if pending.len() < length {
            return Ok(None);
        }
        let message = Message::parse(pending[..length].to_vec())?;
        self.consumed += length;
        if self.consumed == self.incoming.len() {
            self.incoming.clear();
            self.consumed = 0;
        }
        Ok(Some(message))
    }

    /// Writes what is to be written and reads what is there; waits until either is possible.
    fn exchange(&mut self, deadline: Instant) -> Result<(), Failure> {
        let wrote = self.write_some()?;
        if self.read_some()? {
            return Ok(());
        }
        let now = Instant::now();
        if now >= deadline {
            return Err(Failure::Timeout);
        }
        if wrote && !self.outgoing.is_empty() {
            return Ok(());
        }
        self.waits += 1;
        let mut flags = PollFlags::IN;
        if !self.outgoing.is_empty() {
            flags |= PollFlags::OUT;
        }
        let left = (deadline - now).min(Duration::from_secs(3600));
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.stream, flags)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(disconnected(&error.into())),
        }
    }

    fn write_some(&mut self) -> Result<bool, Failure> {
        if self.outgoing.is_empty() {
            return Ok(false);
        }
        match self.stream.write(&self.outgoing) {
            Ok(count) => {
                self.outgoing.drain(..count);
                Ok(count > 0)
            }
            Err(error) if would_block(&error) => Ok(false),
            Err(error) => Err(disconnected(&error)),
        }
    }

    fn read_some(&mut self) -> Result<bool, Failure> {
        if self.consumed > 0 {
            self.incoming.drain(..self.consumed);
            self.consumed = 0;
        }
        let have = self.incoming.len();
        // Large answers are read in large pieces; small ones should not cost a large buffer.
        let piece =
            message_length(&self.incoming).ok().flatten().unwrap_or(0).saturating_sub(have).max(64 * 1024);
        self.incoming.resize(have + piece, 0);
        let result = self.stream.read(&mut self.incoming[have..]);
        self.incoming.truncate(have + *result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => Err(Failure::Disconnected("the other side closed the connection".into())),
            Ok(_) => Ok(true),
            Err(error) if would_block(&error) => Ok(false),
            Err(error) => Err(disconnected(&error)),
        }
    }
}

/// An error reply as a failure.
pub(crate) fn checked(message: Message) -> Result<Message, Failure> {
    if message.kind == Kind::Error {
        Err(Failure::Remote { text: message.error_text(), name: message.error_name })
    } else {
        Ok(message)
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn disconnected(error: &io::Error) -> Failure {
    Failure::Disconnected(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(200)
    }

    #[test]
    fn a_mute_bus_ends_at_the_deadline() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut connection = Connection::over(ours, true).unwrap();
        let started = Instant::now();
        assert_eq!(connection.next_reply(soon()).err(), Some(Failure::Timeout));
        assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn a_bus_that_hangs_up_is_reported_at_once() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let mut connection = Connection::over(ours, true).unwrap();
        assert!(matches!(connection.next_reply(soon()), Err(Failure::Disconnected(_))));
    }

    #[test]
    fn a_bus_that_refuses_us_says_so() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut connection = Connection::over(ours, true).unwrap();
        theirs.write_all(b"REJECTED EXTERNAL\r\n").unwrap();
        let failure = connection.next_reply(soon()).unwrap_err();
        assert!(matches!(failure, Failure::Disconnected(why) if why.contains("REJECTED")));
    }

    #[test]
    fn garbage_instead_of_messages_is_an_error() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut connection = Connection::over(ours, true).unwrap();
        theirs.write_all(b"OK 0\r\nthis is not a message").unwrap();
        assert_eq!(connection.next_reply(soon()).err(), Some(Failure::Malformed("byte order")));
    }

    #[test]
    fn more_calls_than_the_socket_holds_do_not_lock_up() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        // The peer writes before it reads, more than a socket buffer holds.
        let peer = thread::spawn(move || {
            theirs.write_all(b"OK 0\r\n").unwrap();
            let mut reply = Vec::new();
            Call::new("", "/a", "b.c", "D").write(&mut reply, 1);
            for _ in 0..20_000 {
                theirs.write_all(&reply).unwrap();
            }
            io::copy(&mut theirs, &mut io::sink()).unwrap()
        });
        let mut connection = Connection::over(ours, false).unwrap();
        for _ in 0..40_000 {
            connection.send(&Call::new("", "/a", "b.c", "D"));
        }
        let give_up = Instant::now() + Duration::from_secs(20);
        while !connection.outgoing.is_empty() && Instant::now() < give_up {
            // Once all is written there is nothing to wait for: the peer only reads from then on.
            let _ = connection.exchange(Instant::now() + Duration::from_millis(50));
            while connection.parse_one().unwrap().is_some() {}
        }
        assert!(connection.outgoing.is_empty());
        drop(connection);
        assert!(peer.join().unwrap() > 1_000_000);
    }
}
