//! Reading the trace of a session: every segment, in the order in which things happened.
//!
//! What is on disk is looked at like foreign input: lines that are broken are counted and passed over, files that are not
//! ours are named in a warning. The clocks of processes may disagree, and one may jump: within a segment the order of its
//! lines always stands.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, Result};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{MAX_FILE, SCHEMA, SEGMENT, segment};
use crate::artifacts;
use crate::private_files::{Directory, is_temporary};

/// Bytes that a line may have to be read.
pub(crate) const MAX_LINE: u64 = 8 * 1024 * 1024;
/// Bytes of all segments that are read, the newest first.
pub(crate) const MAX_TOTAL: u64 = 256 * 1024 * 1024;
/// Segments and warnings that are listed.
pub(crate) const MAX_LISTED: usize = 500;

/// An event, as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) fields: Map<String, Value>,
    /// Where it stands in time; never before an earlier line of its segment.
    pub(crate) time_ms: u64,
    /// The segment it is from, as a place in [`Reading::segments`].
    pub(crate) segment: usize,
}

impl Event {
    pub(crate) fn name(&self) -> &str {
        self.text("event").unwrap_or_default()
    }

    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }
}

/// What was read of one segment.
#[derive(Clone, Debug, Serialize)]
#[allow(clippy::struct_field_names, reason = "the words of the contract")]
pub(crate) struct Segment {
    pub(crate) segment: String,
    pub(crate) pid: u32,
    pub(crate) schema: u64,
    pub(crate) event_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skipped_lines: Option<usize>,
}

/// Something about the trace that a reader should know.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Warning {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

/// A whole trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) segments: Vec<Segment>,
    pub(crate) events: Vec<Event>,
    pub(crate) warnings: Vec<Warning>,
}

/// `41-1700000000000.jsonl` as the number of a process and its start.
fn parse_name(name: &str) -> Option<(u32, u64)> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (pid, started) = name.strip_suffix(SEGMENT)?.split_once('-')?;
    if !is_number(pid) || !is_number(started) {
        return None;
    }
    Some((pid.parse().ok()?, started.parse().ok()?))
}

/// Reads the trace in a directory.
///
/// # Errors
/// `INVALID_ARGS` when there is none; `INTERNAL` when the directory cannot be listed.
pub(crate) fn read(directory: &Directory) -> Result<Reading> {
    let mut reading = Reading::default();
    let mut found = Vec::new();
    for entry in directory.entries()? {
        let name = entry.name.as_str();
        match parse_name(name) {
            Some(_) if entry.is_link => {
                reading.warn("symlinked_segment", format!("{name} is a symbolic link and is not read"));
            }
            Some((pid, started)) if !entry.is_directory => found.push((started, pid, entry.name)),
            _ if artifacts::is_ours(&entry.name) || is_temporary(name) => {}
            _ => reading.warn("foreign_file", format!("{name} is no segment")),
        }
    }
    // The newest first, in case there is more than can be read.
    found.sort_unstable();
    let mut left = MAX_TOTAL;
    let mut kept = Vec::new();
    for (started, pid, name) in found.into_iter().rev() {
        match directory.open_file(&name) {
            Ok(Some((_, length))) if length > MAX_FILE + 2 * MAX_LINE => {
                reading.warn("unreadable_segment", format!("{name} is larger than a trace file"));
            }
            Ok(Some((_, length))) if length > left => {
                reading.warn("unreadable_segment", format!("{name} is more than can be read at once"));
                left = 0;
            }
            Ok(Some((file, length))) => {
                left -= length;
                kept.push((started, pid, name, file));
            }
            Ok(None) => {}
            Err(error) => {
                reading.warn("unreadable_segment", format!("{name} cannot be read: {}", error.message()));
            }
        }
    }
    for (_, pid, name, file) in kept.into_iter().rev() {
        reading.add(name.trim_end_matches(SEGMENT), pid, file);
    }
    if reading.segments.is_empty() {
        return Err(no_trace());
    }
    reading.sort();
    Ok(reading)
}

/// There is nothing to read.
pub(crate) fn no_trace() -> Error {
    Error::invalid("the selected session has no trace")
        .hint("select one with --session that was started without --no-trace, and run a command in it")
        .delivery(Delivery::NotDelivered)
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads the next line into `line`; of one that is too long nothing is kept.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<Line> {
    line.clear();
    if reader.by_ref().take(MAX_LINE).read_until(b'\n', line)? == 0 {
        return Ok(Line::End);
    }
    if line.last() == Some(&b'\n') || (line.len() as u64) < MAX_LINE {
        return Ok(Line::Whole);
    }
    while line.last() != Some(&b'\n') {
        line.clear();
        if reader.by_ref().take(MAX_LINE).read_until(b'\n', line)? == 0 {
            break;
        }
    }
    Ok(Line::TooLong)
}

impl Reading {
    fn warn(&mut self, kind: &'static str, message: String) {
        self.warnings.push(Warning { kind, message });
    }

    fn add(&mut self, name: &str, pid: u32, file: File) {
        let index = self.segments.len();
        let (mut schema, mut skipped, mut latest) = (0, 0, 0);
        let before = self.events.len();
        let mut open: Vec<String> = Vec::new();
        let mut unpaired: Vec<String> = Vec::new();
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            match next_line(&mut reader, &mut line) {
                Ok(Line::End) => break,
                Ok(Line::TooLong) => {
                    skipped += 1;
                    continue;
                }
                Ok(Line::Whole) => {}
                Err(error) => {
                    self.warn("unreadable_segment", format!("{name} cannot be read to its end: {error}"));
                    break;
                }
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let Ok(Value::Object(mut fields)) = serde_json::from_slice::<Value>(&line) else {
                skipped += 1;
                continue;
            };
            let Some(event) = fields.get("event").and_then(Value::as_str) else {
                skipped += 1;
                continue;
            };
            let command = fields.get("command").and_then(Value::as_str).unwrap_or_default();
            match event {
                "trace.meta" => {
                    schema = fields.get("schema").and_then(Value::as_u64).unwrap_or(0);
                    continue;
                }
                "command.start" => open.push(command.to_owned()),
                "command.end" => {
                    if let Some(at) = open.iter().rposition(|open| open == command) {
                        unpaired.extend(open.drain(at..).skip(1));
                    }
                }
                _ => {}
            }
            latest = fields.get("ts_ms").and_then(Value::as_u64).unwrap_or(latest).max(latest);
            fields.entry("writer_pid").or_insert_with(|| pid.into());
            fields.insert("segment".to_owned(), name.into());
            self.events.push(Event { fields, time_ms: latest, segment: index });
        }
        if schema > SCHEMA {
            self.warn("schema_unknown", format!("{name} is written in form {schema}, newer than {SCHEMA}"));
        }
        unpaired.extend(open);
        // What this process is doing has not ended yet.
        for command in unpaired.iter().filter(|_| name != segment()) {
            self.warn(
                "unpaired_command",
                format!("{command} in {name} has no end: it is running, or was ended"),
            );
        }
        self.segments.push(Segment {
            segment: name.to_owned(),
            pid,
            schema,
            event_count: self.events.len() - before,
            skipped_lines: (skipped > 0).then_some(skipped),
        });
    }

    fn sort(&mut self) {
        // Lines of a segment are in their order already, and a stable sort leaves equal ones so.
        let segments = &self.segments;
        self.events.sort_by_key(|event| (event.time_ms, segments[event.segment].pid, event.segment));
    }

    /// Keeps the last `limit` events; 0 keeps all. Says whether some were left out.
    pub(crate) fn cut(&mut self, limit: usize) -> bool {
        let surplus = if limit == 0 { 0 } else { self.events.len().saturating_sub(limit) };
        self.events.drain(..surplus);
        surplus > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_files::tests::Scratch;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn directory(scratch: &Scratch) -> Directory {
        Directory::open(&scratch.0.join("trace"), true).unwrap().unwrap()
    }

    fn write(scratch: &Scratch, name: &str, lines: &[&str]) {
        directory(scratch);
        let path = scratch.0.join("trace").join(name);
        std::fs::write(&path, lines.concat()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn line(event: &str, time: u64, command: &str) -> String {
        format!("{{\"event\":\"{event}\",\"ts_ms\":{time},\"command\":\"{command}\"}}\n")
    }

    fn order(reading: &Reading) -> Vec<String> {
        reading
            .events
            .iter()
            .map(|event| format!("{} {}", event.name(), event.text("command").unwrap()))
            .collect()
    }

    fn kinds(reading: &Reading) -> Vec<&str> {
        let mut kinds: Vec<&str> = reading.warnings.iter().map(|warning| warning.kind).collect();
        kinds.sort_unstable();
        kinds
    }

    #[test]
    fn segments_are_merged_by_time_then_process_and_keep_their_order() {
        let scratch = Scratch::new("read-merge");
        let meta = "{\"event\":\"trace.meta\",\"schema\":1}\n";
        // The clock of the second process jumps back in the middle.
        let one = [line("command.start", 100, "one"), line("command.end", 300, "one")];
        let two = [line("command.start", 200, "two"), line("x", 50, "two"), line("command.end", 60, "two")];
        write(&scratch, "9-1.jsonl", &[meta, &one[0], &one[1]]);
        write(&scratch, "5-2.jsonl", &[meta, &two[0], &two[1], &two[2]]);
        let reading = read(&directory(&scratch)).unwrap();
        assert_eq!(
            order(&reading),
            ["command.start one", "command.start two", "x two", "command.end two", "command.end one"]
        );
        assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
        let counts: Vec<_> = reading.segments.iter().map(|s| (s.pid, s.schema, s.event_count)).collect();
        assert_eq!(counts, [(9, 1, 2), (5, 1, 3)]);
        let first = &reading.events[0].fields;
        assert_eq!((&first["segment"], &first["writer_pid"]), (&"9-1".into(), &9.into()));
    }

    #[test]
    fn broken_lines_are_counted_and_foreign_files_named() {
        let scratch = Scratch::new("read-broken");
        let long = format!("{{\"event\":\"x\",\"pad\":\"{}\"}}\n", "x".repeat(MAX_LINE as usize + 10));
        let good = line("command.start", 1, "a");
        let end = line("command.end", 2, "a");
        write(
            &scratch,
            "1-1.jsonl",
            &[&good, "{\"event\":\n", "[]\n", "{}\n", "\n", &long, &end, "{\"event\":\"ha"],
        );
        write(&scratch, "2-1.jsonl", &["{\"event\":\"trace.meta\",\"schema\":7}\n", &good]);
        write(&scratch, "notes.txt", &["x"]);
        write(&scratch, "x-1.jsonl", &["x"]);
        write(&scratch, ".artifact-usage.json", &["{}"]);
        write(&scratch, "3-1.jsonl", &["{}"]);
        let at = |name: &str| scratch.0.join("trace").join(name);
        std::fs::set_permissions(at("3-1.jsonl"), std::fs::Permissions::from_mode(0o666)).unwrap();
        symlink("/etc/passwd", at("4-1.jsonl")).unwrap();
        std::fs::create_dir(at("screens")).unwrap();
        let reading = read(&directory(&scratch)).unwrap();
        assert_eq!(
            kinds(&reading),
            [
                "foreign_file",
                "foreign_file",
                "schema_unknown",
                "symlinked_segment",
                "unpaired_command",
                "unreadable_segment"
            ],
            "{:?}",
            reading.warnings
        );
        assert_eq!(reading.segments[0].skipped_lines, Some(5));
        assert_eq!((reading.segments[0].schema, reading.segments[0].event_count), (0, 2));
        assert_eq!(reading.segments[1].schema, 7);
    }

    #[test]
    fn nothing_to_read_is_said() {
        let scratch = Scratch::new("read-nothing");
        assert!(read(&directory(&scratch)).is_err());
        write(&scratch, "notes.txt", &["x"]);
        assert!(read(&directory(&scratch)).is_err());
    }

    #[test]
    fn the_last_ones_are_kept() {
        let scratch = Scratch::new("read-cut");
        let lines: Vec<String> = (0..10).map(|time| line("x", time, "a")).collect();
        write(&scratch, "1-1.jsonl", &lines.iter().map(String::as_str).collect::<Vec<_>>());
        let mut reading = read(&directory(&scratch)).unwrap();
        assert!(!reading.cut(0) && !reading.cut(10) && reading.cut(3));
        assert_eq!(reading.events[0].time_ms, 7);
    }
}
