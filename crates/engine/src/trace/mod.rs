//! Traces: what was done, one JSON object a line, in the file of `--trace` or in a segment of the session.
//!
//! Decided here: what a line looks like and where it goes. What a field may hold is decided by where its text came from:
//! our own words, refs, ids, codes and numbers are kept; text from the screen or from the caller never gets into a trace,
//! not within a message either. Reading is in `read.rs`, what a trace means in `steps.rs`, the page in `export.rs`.

pub(crate) mod export;
pub(crate) mod read;
pub(crate) mod steps;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, Fact, Result};
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::context::Options;
use crate::log;
use crate::session::{Session, unix_ms};

/// Form of the lines.
pub(crate) const SCHEMA: u64 = 1;
/// Bytes a trace file may have.
pub(crate) const MAX_FILE: u64 = 64 * 1024 * 1024;
/// Bytes a line may have.
pub(crate) const MAX_EVENT: usize = 1024 * 1024;
/// How long the lock of the file is waited for.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
/// Ending of a segment's name.
pub(crate) const SEGMENT: &str = ".jsonl";

/// A value in a trace line.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// Our own word, a ref, an id or a code.
    Text(&'a str),
    /// A number.
    Number(u64),
    /// Yes or no.
    Bool(bool),
    /// Text from the screen or from the caller: redacted.
    Screen(&'a str),
    /// The message of an error: redacted unless it is written in the program.
    Message(&'a Error),
    /// The details of an error: what is not ours in them is redacted.
    Details(&'a Error),
    /// A value that may hold text from anywhere, which is redacted.
    Fact(&'a Fact),
}

struct Redacted;

impl Serialize for Redacted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("redacted", &true)?;
        map.end()
    }
}

/// Facts without text that is not ours.
struct OwnFacts<'a>(&'a [(String, Fact)]);

impl Serialize for OwnFacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, fact) in self.0 {
            map.serialize_entry(name, &OwnFact(fact))?;
        }
        map.end()
    }
}

struct OwnFact<'a>(&'a Fact);

impl Serialize for OwnFact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Fact::Bool(value) => serializer.serialize_bool(*value),
            Fact::Int(value) => serializer.serialize_i64(*value),
            Fact::Float(value) => serializer.serialize_f64(*value),
            Fact::Word(word) => serializer.serialize_str(word),
            Fact::Text(_) => Redacted.serialize(serializer),
            Fact::List(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&OwnFact(value))?;
                }
                list.end()
            }
            // The names are ours, unless they came with a reply that an error carries along.
            Fact::Map(entries) => OwnFacts(entries).serialize(serializer),
        }
    }
}

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Field::Text(text) => serializer.serialize_str(text),
            Field::Number(number) => serializer.serialize_u64(*number),
            Field::Bool(value) => serializer.serialize_bool(*value),
            Field::Screen(_) => Redacted.serialize(serializer),
            Field::Message(error) => match error.own_message() {
                Some(message) => serializer.serialize_str(message),
                None => Redacted.serialize(serializer),
            },
            Field::Details(error) => OwnFacts(error.details()).serialize(serializer),
            Field::Fact(fact) => OwnFact(fact).serialize(serializer),
        }
    }
}

/// The fields that say what went wrong.
pub(crate) fn failure(error: &Error) -> [(&'static str, Field<'_>); 3] {
    [
        ("code", Field::Text(error.code().as_str())),
        ("message", Field::Message(error)),
        ("details", Field::Details(error)),
    ]
}

/// When this process began to trace, in Unix milliseconds: with its number, that names a segment.
pub(crate) fn started_ms() -> u64 {
    static STARTED: OnceLock<u64> = OnceLock::new();
    *STARTED.get_or_init(unix_ms)
}

/// `41-1700000000000`: the name of the segment of this process.
pub(crate) fn segment() -> String {
    format!("{}-{}", std::process::id(), started_ms())
}

/// Now, and never before an earlier answer of this process: a clock that jumps back does not disorder the lines.
fn time_ms() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = unix_ms();
    LAST.fetch_max(now, Ordering::Relaxed).max(now)
}

fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

struct Line<'a> {
    event: &'a str,
    ts_ms: u64,
    seq: u64,
    writer_proc_start_ms: u64,
    session_id: Option<&'a str>,
    fields: &'a [(&'a str, Field<'a>)],
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("event", self.event)?;
        map.serialize_entry("ts_ms", &self.ts_ms)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("writer_pid", &std::process::id())?;
        map.serialize_entry("writer_proc_start_ms", &self.writer_proc_start_ms)?;
        if let Some(session) = self.session_id {
            map.serialize_entry("session_id", session)?;
        }
        for (name, field) in self.fields {
            map.serialize_entry(name, field)?;
        }
        map.end()
    }
}

/// Where trace lines go; nowhere by default.
#[derive(Debug, Default)]
pub struct Trace {
    file: Option<File>,
    strict: bool,
    session: Option<String>,
}

impl Trace {
    /// Opens the file of `--trace`, else the segment of the session if it is traced.
    ///
    /// `looks_on`: the command reads traces, and does not lengthen what it reads.
    ///
    /// # Errors
    /// `INVALID_ARGS` when the trace has to be strict and there is none. With `--trace-strict`, those of opening it;
    /// otherwise a warning is printed and nothing is traced.
    pub(crate) fn open(
        options: &Options,
        namespace: Option<&str>,
        session: Option<&Session>,
        looks_on: bool,
    ) -> Result<Trace> {
        let strict = options.trace_strict;
        let traced = session.filter(|session| session.manifest.is_traced());
        let opened = match (&options.trace, traced) {
            (Some(path), _) => open_file(path),
            (None, Some(_)) if looks_on => return Ok(Trace::default()),
            (None, Some(session)) => open_segment(session),
            (None, None) if strict => {
                return Err(Error::invalid("--trace-strict needs a trace")
                    .hint("add --trace PATH, or select a session that is traced and has not ended"));
            }
            (None, None) => return Ok(Trace::default()),
        };
        let session = namespace.map(str::to_owned);
        match opened {
            Ok(file) => Ok(Trace { file: Some(file), strict, session }),
            Err(error) if strict => Err(error.delivery(Delivery::NotDelivered)),
            Err(error) => {
                log::warn(format_args!("nothing is traced: {}", error.message()));
                Ok(Trace { file: None, strict, session })
            }
        }
    }

    /// Whether lines go anywhere.
    pub fn is_on(&self) -> bool {
        self.file.is_some()
    }

    /// Appends a line.
    ///
    /// # Errors
    /// `INTERNAL` when it cannot be written and the trace is strict; otherwise a warning is printed.
    pub fn write(&self, event: &str, fields: &[(&str, Field<'_>)]) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        match self.append(file, event, fields) {
            Ok(()) => Ok(()),
            Err(error) if self.strict => Err(Error::internal("the trace could not be written")
                .platform_detail(error.to_string())
                .hint("free space or leave --trace-strict out")),
            Err(error) => {
                log::warn(format_args!("the trace could not be written: {error}"));
                Ok(())
            }
        }
    }

    fn append(&self, file: &File, event: &str, fields: &[(&str, Field<'_>)]) -> std::io::Result<()> {
        lock(file)?;
        let outcome = self.append_locked(file, event, fields);
        let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        outcome
    }

    fn append_locked(
        &self,
        mut file: &File,
        event: &str,
        fields: &[(&str, Field<'_>)],
    ) -> std::io::Result<()> {
        let length = file.metadata()?.len();
        if length > MAX_FILE {
            return Err(std::io::Error::other("the file has its full size"));
        }
        let mut text = Vec::new();
        if length == 0 {
            let meta = [
                ("schema", Field::Number(SCHEMA)),
                ("version", Field::Text(env!("CARGO_PKG_VERSION"))),
                ("os", Field::Text(std::env::consts::OS)),
                ("pid", Field::Number(u64::from(std::process::id()))),
                ("proc_start_ms", Field::Number(started_ms())),
            ];
            self.line(&mut text, "trace.meta", &meta)?;
        }
        let start = text.len();
        self.line(&mut text, event, fields)?;
        if text.len() - start > MAX_EVENT {
            text.truncate(start);
            self.line(&mut text, event, &[("omitted", Field::Bool(true))])?;
        }
        file.write_all(&text)
    }

    fn line(&self, text: &mut Vec<u8>, event: &str, fields: &[(&str, Field<'_>)]) -> std::io::Result<()> {
        let line = Line {
            event,
            ts_ms: time_ms(),
            seq: next_number(),
            writer_proc_start_ms: started_ms(),
            session_id: self.session.as_deref(),
            fields,
        };
        serde_json::to_writer(&mut *text, &line)?;
        text.push(b'\n');
        Ok(())
    }
}

fn open_segment(session: &Session) -> Result<File> {
    let directory = session
        .trace_directory(true)?
        .ok_or_else(|| Error::internal("a directory that was made is not there"))?;
    directory.append(&format!("{}{SEGMENT}", segment()))
}

/// Takes the lock of a file of lines, for one line.
pub(crate) fn lock(file: &File) -> std::io::Result<()> {
    let start = Instant::now();
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) if start.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn open_file(path: &Path) -> Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
        Error::invalid("the trace file cannot be opened")
            .platform_detail(error.to_string())
            .hint("--trace takes a path of a regular file, not a symbolic link, in a folder that exists")
            .delivery(Delivery::NotDelivered)
    })?);
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        _ => Err(Error::invalid("the trace path is not a regular file")),
    }
}
