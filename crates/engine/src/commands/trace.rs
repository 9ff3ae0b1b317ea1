//! `trace`: show what a session did, or write it as a page.

use std::path::PathBuf;

use agent_desktop_core::error::Result;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Effects, Reply, Run, action_of, lines};
use crate::context::{Context, Options};
use crate::output;
use crate::private_files::Directory;
use crate::session::TRACE;
use crate::trace::export::{self, Exported};
use crate::trace::read::{self, MAX_LISTED, Reading, Segment, Warning};

/// Events that are shown when nobody says.
pub(crate) const SHOWN: usize = 500;
/// Events that are exported when nobody says.
pub(crate) const EXPORTED: usize = 5000;

#[cfg(feature = "clap")]
const EXAMPLE: &str = "\
Example:
  agent-desktop --session \"$id\" trace show --limit 20 --event command
  agent-desktop --session \"$id\" trace export --out run.html";

/// Show what was done in the selected session, or write it as a page for a browser.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(after_help = EXAMPLE, disable_help_subcommand = true))]
pub struct Trace {
    /// What to do with it.
    #[cfg_attr(feature = "clap", command(subcommand))]
    pub action: Action,
}

/// What to do with a trace.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
#[serde(tag = "action", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is documented at its type")]
pub enum Action {
    Show(Show),
    Export(Export),
}

/// Print the events of all processes in the order in which they happened.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Show {
    /// Only the last so many; 0: all [default: 500].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub limit: Option<usize>,
    /// Only events whose name begins so, such as command or action.dispatch.
    #[cfg_attr(feature = "clap", arg(long, value_name = "PREFIX"))]
    pub event: Option<String>,
}

/// Write one HTML file with commands, pictures and trees; it needs no network and is private to the user.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Export {
    /// File to write; without it, trace-ID.html in the directory of the session.
    #[cfg_attr(feature = "clap", arg(long, value_name = "PATH"))]
    pub out: Option<PathBuf>,
    /// Only the last so many events; 0: all [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub limit: Option<usize>,
}

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Trace, D::Error> {
        action_of(deserializer, None).map(|action| Trace { action })
    }
}

/// Warnings, and how many more there are than can be listed.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Warnings {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
    #[serde(skip_serializing_if = "is_zero")]
    warnings_left_out: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl From<Vec<Warning>> for Warnings {
    fn from(mut warnings: Vec<Warning>) -> Warnings {
        let warnings_left_out = warnings.len().saturating_sub(MAX_LISTED);
        warnings.truncate(MAX_LISTED);
        Warnings { warnings, warnings_left_out }
    }
}

/// What was done.
#[derive(Clone, Debug, Serialize)]
pub struct ShowReply {
    session_id: String,
    segments: Vec<Segment>,
    #[serde(skip_serializing_if = "is_zero")]
    segments_left_out: usize,
    total_events: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_events: Option<usize>,
    returned_events: usize,
    truncated: bool,
    events: Vec<Map<String, Value>>,
    #[serde(flatten)]
    warnings: Warnings,
}

/// The page that was written.
#[derive(Clone, Debug, Serialize)]
pub struct ExportReply {
    path: String,
    event_count: usize,
    screenshots_embedded: usize,
    screenshots_skipped: usize,
    bytes: usize,
    total_events: usize,
    returned_events: usize,
    truncated: bool,
    #[serde(flatten)]
    warnings: Warnings,
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum TraceReply {
    /// `show`.
    Shown(ShowReply),
    /// `export`.
    Exported(ExportReply),
}

impl Reply for TraceReply {
    fn outline(&self) -> Option<String> {
        Some(match self {
            TraceReply::Shown(reply) => lines(reply.events.iter().map(event_line), "no event"),
            TraceReply::Exported(reply) => format!("{}: {} events", reply.path, reply.event_count),
        })
    }
}

/// An event in one line: when, by whom, what, and the words that tell most.
fn event_line(event: &Map<String, Value>) -> String {
    let mut line = String::new();
    let fields = ["ts_ms", "writer_pid", "event", "command", "action", "ref", "role", "ok", "code", "kind"];
    for field in fields.into_iter().chain(["delivery", "duration_ms", "snapshot_id"]) {
        let word = match event.get(field) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) if field == "duration_ms" => format!("{number} ms"),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(is_so)) => (if *is_so { "ok" } else { "failed" }).to_owned(),
            _ => continue,
        };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    line
}

/// The directory of the selected session, and its trace.
fn open(context: &Context<'_>) -> Result<(Directory, Directory)> {
    if context.store.session().is_none() {
        return Err(read::no_trace());
    }
    let session = context.store.base(false)?.ok_or_else(read::no_trace)?;
    let trace = session.child(TRACE, false)?.ok_or_else(read::no_trace)?;
    Ok((session, trace))
}

impl Show {
    fn run(&self, context: &Context<'_>) -> Result<ShowReply> {
        let (_, trace) = open(context)?;
        let mut reading = read::read(&trace)?;
        let total_events = reading.events.len();
        let matched_events = self.event.as_ref().map(|prefix| {
            reading.events.retain(|event| event.name().starts_with(prefix.as_str()));
            reading.events.len()
        });
        let truncated = reading.cut(self.limit.unwrap_or(SHOWN));
        let Reading { mut segments, events, warnings } = reading;
        let segments_left_out = segments.len().saturating_sub(MAX_LISTED);
        segments.drain(..segments_left_out);
        Ok(ShowReply {
            session_id: context.store.session().unwrap_or_default().to_owned(),
            segments,
            segments_left_out,
            total_events,
            matched_events,
            returned_events: events.len(),
            truncated,
            events: events.into_iter().map(|event| event.fields).collect(),
            warnings: warnings.into(),
        })
    }
}

impl Export {
    fn run(&self, context: &Context<'_>) -> Result<ExportReply> {
        let (session, trace) = open(context)?;
        let mut reading = read::read(&trace)?;
        let total_events = reading.events.len();
        let truncated = reading.cut(self.limit.unwrap_or(EXPORTED));
        let event_count = reading.events.len();
        let warnings = reading.warnings.clone();
        let id = context.store.session().unwrap_or_default();
        let manifest = context.session.map(|session| &session.manifest);
        let Exported { page, embedded, skipped } =
            export::page(&trace, id, manifest, &reading, total_events)?;
        let path = if let Some(path) = &self.out {
            output::write(path, page.as_bytes())?;
            path.display().to_string()
        } else {
            let name = format!("trace-{id}.html");
            session.write(&name, page.as_bytes(), &session, false)?;
            session.path().join(name).display().to_string()
        };
        Ok(ExportReply {
            path,
            event_count,
            screenshots_embedded: embedded,
            screenshots_skipped: skipped,
            bytes: page.len(),
            total_events,
            returned_events: event_count,
            truncated,
            warnings: warnings.into(),
        })
    }
}

impl Run for Trace {
    type Reply = TraceReply;

    fn effects(&self, table: Effects) -> Effects {
        Effects { mutates: matches!(self.action, Action::Export(_)), ..table }
    }

    fn check(&self, _: &Options) -> Result<()> {
        match &self.action {
            Action::Export(Export { out: Some(path), .. }) => output::check(path),
            _ => Ok(()),
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<TraceReply> {
        match &self.action {
            Action::Show(show) => show.run(context).map(TraceReply::Shown),
            Action::Export(export) => export.run(context).map(TraceReply::Exported),
        }
    }
}
