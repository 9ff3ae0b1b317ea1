//! `batch`: several commands, one after the other, in one process.
//!
//! Decided here: that nothing runs before every entry was understood, what an entry may take from the results of those
//! before it, and where a batch stops. What an entry does is its command's own business.

use std::path::PathBuf;

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Command, Reply, Run};
use crate::context::{Context, Format, Options};
use crate::envelope;
use crate::events::{Begun, Outer};
use crate::execute;
use crate::guard::Guard;
use crate::output;

/// Deadline of a whole batch when nobody asks for another, in milliseconds.
pub const BATCH_MS: u64 = 60_000;
/// Entries of a batch.
pub const MAX_ENTRIES: usize = 64;
/// Bytes of its input.
pub const MAX_INPUT: usize = 1024 * 1024;
/// Bytes of its output.
pub const MAX_OUTPUT: usize = 4 * 1024 * 1024;
/// Bytes of the output that are kept for what the batch says about itself.
pub(crate) const RESERVE: usize = 8 * 1024;
/// What an argument is that comes from an earlier entry.
const RESULT: &str = "$result";
/// Arguments of one entry that may come from earlier ones.
const MAX_RESULTS: usize = 8;

#[cfg(feature = "clap")]
const EXAMPLE: &str = r#"An argument may be what an earlier entry answered: its number, then keys.
  agent-desktop batch '[{"command": "find", "args": {"app": "gedit", "name": "Save", "first": true}},
                        {"command": "click", "args": {"ref_id": {"$result": "0.data.match.ref_id"}}}]'"#;

/// Run several commands one after the other: a JSON list of {"command", "args", "session"}.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(after_help = EXAMPLE))]
#[serde(deny_unknown_fields, default)]
pub struct Batch {
    /// The list; - reads it from standard input.
    #[cfg_attr(feature = "clap", arg(value_name = "JSON"))]
    pub json: Option<String>,
    /// Read the list from this file.
    #[cfg_attr(feature = "clap", arg(long, value_name = "PATH"))]
    pub file: Option<PathBuf>,
    /// Start nothing more after an entry that failed.
    #[cfg_attr(feature = "clap", arg(long))]
    pub stop_on_error: bool,
    /// Exit with 1 when an entry failed; the reply stays the same.
    #[cfg_attr(feature = "clap", arg(long))]
    pub fail_on_error: bool,
    /// Start no entry after this many milliseconds, and end the running one [default: 60000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// What each entry answered, and how far the batch went.
#[derive(Clone, Debug, Serialize)]
pub struct BatchReply {
    results: Vec<Value>,
    semantics: Semantics,
    total_entries: usize,
    completed_entries: usize,
    failed_entries: usize,
    not_started_entries: usize,
    timeout_ms: u64,
    elapsed_ms: u64,
    limits: Limits,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Stopped>,
    #[serde(skip)]
    is_failure: bool,
}

impl Reply for BatchReply {
    fn is_failure(&self) -> bool {
        self.is_failure
    }
}

#[derive(Clone, Debug, Serialize)]
struct Semantics {
    atomic: bool,
    order: &'static str,
    batch_retries: bool,
    command_retry_contracts: &'static str,
    successful_action_disposition: &'static str,
    error_disposition: &'static str,
}

const SEMANTICS: Semantics = Semantics {
    atomic: false,
    order: "sequential",
    batch_retries: false,
    command_retry_contracts: "preserved",
    successful_action_disposition: "data.disposition",
    error_disposition: "error.disposition",
};

#[derive(Clone, Debug, Serialize)]
#[allow(clippy::struct_field_names, reason = "the words of the contract")]
struct Limits {
    max_entries: usize,
    max_input_bytes: usize,
    max_output_bytes: usize,
}

#[derive(Clone, Debug, Serialize)]
struct Stopped {
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_index: Option<usize>,
}

/// An entry as it was written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: String,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    args: Option<Value>,
}

impl Batch {
    fn input(&self) -> Result<String> {
        let text = match (&self.json, &self.file) {
            (Some(_), Some(_)) => return Err(Error::invalid("give the list or --file, not both")),
            (None, None) => {
                return Err(Error::invalid("batch needs a list of commands")
                    .hint(r#"for example batch '[{"command": "list-apps"}]'; - reads it from standard input"#));
            }
            (Some(json), None) => json.clone(),
            (None, Some(path)) => String::from_utf8(output::read(path, MAX_INPUT)?).map_err(|error| {
                Error::invalid(format!("{} is no text", path.display())).platform_detail(error.to_string())
            })?,
        };
        if text.len() > MAX_INPUT {
            return Err(Error::invalid(format!("the list is longer than {MAX_INPUT} bytes")));
        }
        Ok(text)
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let values: Vec<Value> = serde_json::from_str(&self.input()?).map_err(|error| {
            Error::invalid("the batch is no JSON list").platform_detail(error.to_string()).hint(
                r#"write [{"command": "find", "args": {"app": "gedit", "name": "Save", "first": true}}, …]"#,
            )
        })?;
        if values.is_empty() || values.len() > MAX_ENTRIES {
            return Err(Error::invalid(format!(
                "a batch has 1 to {MAX_ENTRIES} entries, this one has {}",
                values.len()
            )));
        }
        let read = |(index, value): (usize, Value)| {
            let name = value.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
            serde_json::from_value(value).map_err(|error| {
                let error = Error::invalid(format!("entry {index} is not as it should be"))
                    .platform_detail(error.to_string())
                    .hint("an entry has command, and may have args and session");
                in_entry(&error, index, &name)
            })
        };
        values.into_iter().enumerate().map(read).collect()
    }
}

/// Says which entry an error is about; the details of the error itself become its cause.
fn in_entry(error: &Error, index: usize, command: &str) -> Error {
    let cause = error.details().to_vec();
    let message = format!("entry {index} ({command}): {}", error.message());
    let mut outer = Error::new(error.code(), message)
        .detail("batch_index", index)
        .detail("batch_command", command.to_owned())
        .delivery(Delivery::NotDelivered);
    if !cause.is_empty() {
        outer = outer.detail("cause_details", Fact::Map(cause));
    }
    if let Some(hint) = error.get_hint() {
        outer = outer.hint(hint);
    }
    match error.get_platform_detail() {
        Some(detail) => outer.platform_detail(detail),
        None => outer,
    }
}

/// The options of an entry: those of the batch, without what belongs to the batch alone.
fn options_of(entry: &Entry, options: &Options) -> Options {
    Options {
        session: entry.session.clone().or_else(|| options.session.clone()),
        format: Format::Json,
        wait_for: None,
        wait_for_gone: None,
        wait_timeout_ms: None,
        ..options.clone()
    }
}

/// The arguments that come from earlier entries, each as the path it names.
fn references(args: &Value) -> Result<Vec<(&String, &str)>> {
    let Value::Object(args) = args else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (name, value) in args {
        let Some(inner) = value.as_object().filter(|inner| inner.contains_key(RESULT)) else { continue };
        match (inner.len(), inner.get(RESULT).and_then(Value::as_str)) {
            (1, Some(path)) => found.push((name, path)),
            _ => return Err(Error::invalid(format!("{name}: {RESULT} stands alone and names a path"))),
        }
    }
    if found.len() > MAX_RESULTS {
        return Err(Error::invalid(format!("more than {MAX_RESULTS} arguments come from earlier entries")));
    }
    Ok(found)
}

/// The entry that a path begins with.
fn source(path: &str) -> Option<usize> {
    path.split('.').next()?.parse().ok()
}

/// The value at a path like `0.data.matches.1.ref_id`.
fn look_up<'a>(results: &'a [Value], path: &str) -> Option<&'a Value> {
    let mut steps = path.split('.');
    let mut here = results.get(steps.next()?.parse::<usize>().ok()?)?;
    for step in steps {
        here = match here {
            Value::Object(map) => map.get(step)?,
            Value::Array(list) => list.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(here)
}

fn decode(entry: &Entry, args: Value) -> Result<Command> {
    if entry.command == "batch" {
        return Err(Error::invalid("a batch has no batch inside"));
    }
    Command::decode(&entry.command, args)
}

/// Sees that an entry makes sense, as far as that can be told before the earlier ones have run.
fn check(entry: &Entry, index: usize, options: &Options) -> Result<Option<Command>> {
    let args = entry.args.clone().unwrap_or_default();
    let wanted = references(&args)?;
    for (name, path) in &wanted {
        if source(path).is_none_or(|source| source >= index) {
            return Err(Error::invalid(format!("{name}: {path:?} names no earlier entry"))
                .hint("write the number of the entry, then the keys: 0.data.match.ref_id"));
        }
    }
    let command = if wanted.is_empty() {
        decode(entry, args.clone())?
    } else {
        // What will come is not known. Something of some type has to fit.
        let names: Vec<String> = wanted.iter().map(|(name, _)| (*name).clone()).collect();
        stand_in(entry, &args, &names)?
    };
    let options = options_of(entry, options);
    if wanted.is_empty() {
        command.check(&options)?;
        return Ok(Some(command));
    }
    Ok(None)
}

/// The command with something in the place of each argument that is still to come.
fn stand_in(entry: &Entry, args: &Value, names: &[String]) -> Result<Command> {
    let shapes = [Value::from("@s0000000:e1"), Value::from(1), Value::from(true)];
    let mut args = args.clone();
    for name in names {
        args[name] = shapes[0].clone();
    }
    let mut outcome = decode(entry, args.clone());
    // One argument after the other: where the error goes away or changes, the type was the reason.
    for name in names {
        if outcome.is_ok() {
            break;
        }
        for shape in &shapes[1..] {
            let mut other = args.clone();
            other[name] = shape.clone();
            let tried = decode(entry, other.clone());
            let detail =
                |outcome: &Result<Command>| outcome.as_ref().err().and_then(|e| e.get_platform_detail().map(str::to_owned));
            if tried.is_ok() || detail(&tried) != detail(&outcome) {
                (args, outcome) = (other, tried);
                break;
            }
        }
    }
    outcome
}

/// The command with the values of earlier entries filled in.
fn fill(entry: &Entry, results: &[Value]) -> Result<Command> {
    let mut args = entry.args.clone().unwrap_or_default();
    let wanted: Vec<(String, String)> =
        references(&args)?.into_iter().map(|(name, path)| (name.clone(), path.to_owned())).collect();
    for (name, path) in wanted {
        let value = look_up(results, &path).filter(|value| !value.is_null()).ok_or_else(|| {
            Error::invalid(format!("{name}: there is nothing at {path:?}"))
                .kind("batch_result_missing")
                .hint("see what the earlier entry answered")
        })?;
        args[&name] = value.clone();
    }
    decode(entry, args)
}

impl Run for Batch {
    type Reply = BatchReply;

    fn check(&self, options: &Options) -> Result<()> {
        for (index, entry) in self.entries()?.iter().enumerate() {
            check(entry, index, options).map_err(|error| in_entry(&error, index, &entry.command))?;
        }
        Ok(())
    }

    fn run(&self, context: &Context<'_>) -> Result<BatchReply> {
        let entries = self.entries()?;
        for (index, entry) in entries.iter().enumerate() {
            let effects = check(entry, index, context.options)?.map_or_else(
                || Command::SPECS.iter().find(|spec| spec.name == entry.command).map(|spec| spec.effects),
                |command| Some(command.effects()),
            );
            execute::check_permissions(effects.unwrap_or_default(), context.platform, context.deadline)
                .map_err(|error| in_entry(&error, index, &entry.command))?;
        }
        let mut results: Vec<Value> = Vec::new();
        let (watch, mut watched) = (Begun::default(), None);
        // Entries get a guard each; what is begun for one of them needs one as well.
        let guard = Guard::new(context.platform, context.rules, context.audit);
        let (mut used, mut completed, mut failed, mut stopped) = (0, 0, 0, None);
        for (index, entry) in entries.iter().enumerate() {
            if context.deadline.has_passed(context.now()) {
                results.push(labelled(late(&entry.command), index, Some("deadline")));
                stopped = Some(Stopped { reason: "deadline", index: Some(index), after_index: None });
                break;
            }
            // What comes while this entry runs counts for one that waits for it afterwards.
            let next = entries.get(index + 1).filter(|_| watched != Some(index));
            if let Some(next) = next.filter(|next| next.command == "wait")
                && let Ok(Command::Wait(wait)) = fill(next, &results)
            {
                *watch.borrow_mut() = wait.begin_watch(context, &guard);
                watched = Some(index + 1);
            }
            let mut result = run_entry(context, entry, &results, &watch);
            completed += 1;
            if watched == Some(index) {
                watch.borrow_mut().take();
            }
            let size = result.to_string().len();
            let is_full = used + size > MAX_OUTPUT - RESERVE;
            if is_full {
                result = omitted(&entry.command, &result);
            }
            used += size.min(MAX_OUTPUT);
            let is_failure = result["ok"] != true;
            failed += usize::from(is_failure);
            results.push(labelled(result, index, None));
            if is_full {
                stopped = Some(Stopped { reason: "output_limit", index: Some(index), after_index: None });
                break;
            }
            if is_failure && self.stop_on_error {
                stopped = Some(Stopped { reason: "stop_on_error", index: None, after_index: Some(index) });
                break;
            }
        }
        Ok(BatchReply {
            total_entries: entries.len(),
            completed_entries: completed,
            failed_entries: failed,
            not_started_entries: entries.len() - completed,
            timeout_ms: context.deadline.budget().as_millis() as u64,
            elapsed_ms: context.elapsed_ms(),
            limits: Limits {
                max_entries: MAX_ENTRIES,
                max_input_bytes: MAX_INPUT,
                max_output_bytes: MAX_OUTPUT,
            },
            semantics: SEMANTICS,
            stopped,
            is_failure: self.fail_on_error && (failed > 0 || completed < entries.len()),
            results,
        })
    }
}

fn run_entry(context: &Context<'_>, entry: &Entry, results: &[Value], watch: &Begun) -> Value {
    let options = options_of(entry, context.options);
    let response = match fill(entry, results) {
        Ok(command) => execute::execute_within(&command, context.platform, &options, Some(Outer { deadline: context.deadline, watch })),
        Err(error) => execute::Response::failure(&entry.command, &error.delivery(Delivery::NotDelivered)),
    };
    serde_json::from_str(&response.text).unwrap_or(Value::Null)
}

/// An envelope that says which entry it belongs to, and whether that ran.
fn labelled(envelope: Value, index: usize, not_started: Option<&str>) -> Value {
    let mut all = Map::new();
    all.insert("index".to_owned(), index.into());
    let execution = if not_started.is_some() { "not_started" } else { "completed" };
    all.insert("execution".to_owned(), execution.into());
    if let Some(reason) = not_started {
        all.insert("not_started_reason".to_owned(), reason.into());
    }
    if let Value::Object(inner) = envelope {
        all.extend(inner);
    }
    Value::Object(all)
}

fn late(command: &str) -> Value {
    let error = Error::new(ErrorCode::Timeout, "the time of the batch was over before this entry began")
        .kind("batch_deadline")
        .hint("run the rest as another batch, or give --timeout-ms")
        .delivery(Delivery::NotDelivered);
    serde_json::from_str(&envelope::failure(command, &error)).unwrap_or_default()
}

/// Stands for a result that is too large. What it says about delivery is kept.
fn omitted(command: &str, result: &Value) -> Value {
    let error = Error::invalid("the result of this entry does not fit into the output of a batch")
        .kind("batch_output_limit")
        .detail("result_omitted", true)
        .hint("run it alone, or ask it for less");
    let mut envelope: Value =
        serde_json::from_str(&envelope::failure(command, &error)).unwrap_or_default();
    for place in ["/data/disposition", "/error/disposition"] {
        if let (Some(kept), Some(error)) = (result.pointer(place), envelope.get_mut("error")) {
            error["disposition"] = kept.clone();
        }
    }
    envelope
}
