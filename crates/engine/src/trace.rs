//! The trace file of `--trace`: what was done, one JSON object a line.
//!
//! Segments of sessions, reading, exporting and artifacts are not here yet. Fields hold our own words, refs, codes and
//! numbers; text from the screen or from the caller is passed as [`Field::Screen`], and is redacted.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, Result};
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::log;

/// Bytes a trace file may have.
pub(crate) const MAX_FILE: u64 = 64 * 1024 * 1024;
/// How long the lock of the file is waited for.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// A value in a trace line.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// Our own word, a ref, a code or a message.
    Text(&'a str),
    /// A number.
    Number(u64),
    /// Yes or no.
    Bool(bool),
    /// Text from the screen or from the caller: redacted.
    Screen(&'a str),
}

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Field::Text(text) => serializer.serialize_str(text),
            Field::Number(number) => serializer.serialize_u64(*number),
            Field::Bool(value) => serializer.serialize_bool(*value),
            Field::Screen(_) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("redacted", &true)?;
                map.end()
            }
        }
    }
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
    sequence: Cell<u64>,
    started_ms: u64,
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Trace {
    /// Opens the file of `--trace`, creating it; writes the first line of a new file.
    ///
    /// # Errors
    /// `INVALID_ARGS` when the path is no place for a file, `INTERNAL` when it cannot be opened, with `strict` only;
    /// otherwise a warning is printed and nothing is traced.
    pub fn open(path: Option<&Path>, strict: bool, session: Option<&str>) -> Result<Trace> {
        let Some(path) = path else {
            if strict {
                return Err(Error::invalid("--trace-strict needs a trace")
                    .hint("add --trace PATH, or select a session that is traced"));
            }
            return Ok(Trace::default());
        };
        let mut trace =
            Trace { strict, session: session.map(str::to_owned), started_ms: unix_ms(), ..Trace::default() };
        match open_file(path) {
            Ok(file) => trace.file = Some(file),
            Err(error) if strict => return Err(error),
            Err(error) => log::warn(format_args!("nothing is traced: {}", error.message())),
        }
        Ok(trace)
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
                ("schema", Field::Number(1)),
                ("version", Field::Text(env!("CARGO_PKG_VERSION"))),
                ("os", Field::Text(std::env::consts::OS)),
                ("pid", Field::Number(u64::from(std::process::id()))),
                ("proc_start_ms", Field::Number(self.started_ms)),
            ];
            self.line(&mut text, "trace.meta", &meta)?;
        }
        self.line(&mut text, event, fields)?;
        file.write_all(&text)
    }

    fn line(&self, text: &mut Vec<u8>, event: &str, fields: &[(&str, Field<'_>)]) -> std::io::Result<()> {
        let line = Line {
            event,
            ts_ms: unix_ms(),
            seq: self.sequence.replace(self.sequence.get() + 1),
            writer_proc_start_ms: self.started_ms,
            session_id: self.session.as_deref(),
            fields,
        };
        serde_json::to_writer(&mut *text, &line)?;
        text.push(b'\n');
        Ok(())
    }
}

fn lock(file: &File) -> std::io::Result<()> {
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
