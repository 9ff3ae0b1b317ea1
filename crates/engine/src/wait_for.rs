//! `--wait-for` and `--wait-for-gone`: what must be true after a command before it answers.
//!
//! Matching looks 50 levels deep. The tree that is returned has the depth that was asked for: a match below it answers
//! the question all the same.

use std::time::{Duration, Instant};

use agent_desktop_core::Deadline;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result, facts};
use agent_desktop_core::platform::{Limits, SurfaceKind, Window};
use agent_desktop_core::query::{self, Query};
use serde::Serialize;

use crate::commands::Reply;
use crate::commands::snapshot::{Snapshot, SnapshotReply};
use crate::context::{Context, MAX_TIMEOUT_MS, Options, SNAPSHOT_MS};
use crate::observe::Target;
use crate::resolve;

/// How long it is waited when nobody says, in milliseconds.
pub(crate) const WAIT_MS: u64 = 30_000;
/// Time between two looks.
pub(crate) const POLL: Duration = Duration::from_millis(75);
/// Budget of the tree that shows a caller why the wait was in vain.
pub(crate) const DIAGNOSTIC: Duration = Duration::from_millis(600);
/// How long it may be unclear which of several is meant.
pub(crate) const AMBIGUOUS: Duration = Duration::from_secs(1);
/// How deep matching looks.
pub(crate) const MATCH_DEPTH: u32 = 50;

/// What is waited for.
#[derive(Clone, Debug)]
pub struct Condition {
    text: String,
    query: Query,
    gone: bool,
    timeout_ms: u64,
}

impl Condition {
    /// What the options ask for.
    ///
    /// # Errors
    /// `INVALID_ARGS`.
    pub fn of(options: &Options) -> Result<Option<Condition>> {
        let (text, gone) = match (&options.wait_for, &options.wait_for_gone) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid("--wait-for and --wait-for-gone exclude each other"));
            }
            (Some(text), None) => (text, false),
            (None, Some(text)) => (text, true),
            (None, None) if options.wait_timeout_ms.is_some() => {
                return Err(Error::invalid("--wait-timeout needs --wait-for or --wait-for-gone"));
            }
            (None, None) => return Ok(None),
        };
        let timeout_ms = options.wait_timeout_ms.unwrap_or(WAIT_MS);
        if timeout_ms > MAX_TIMEOUT_MS {
            return Err(Error::invalid(format!("--wait-timeout is longer than {MAX_TIMEOUT_MS} ms")));
        }
        let query = query::parse_selector(text)?;
        Ok(Some(Condition { text: text.clone(), query, gone, timeout_ms }))
    }

    /// Polls the target until the condition holds. `after_action`: the data of the action that came before.
    ///
    /// # Errors
    /// `TIMEOUT` of kind `wait_timeout`; at once those that waiting does not help.
    pub fn wait(
        &self,
        context: &Context<'_>,
        target: &Target,
        view: &Snapshot,
        after_action: Option<serde_json::Value>,
    ) -> Result<Waited> {
        let start = context.now();
        let deadline = Deadline::after(start, Duration::from_millis(self.timeout_ms));
        let context = context.with_deadline(deadline);
        let elapsed_ms = || context.now().saturating_duration_since(start).as_millis() as u64;
        let mut last_error;
        let mut failures = Failures::default();
        loop {
            match self.look_around(&context, target, after_action.is_some()) {
                Ok(Some(_)) if self.gone => {
                    return Ok(Waited::Gone(Gone {
                        matched_selector: self.text.clone(),
                        gone: true,
                        target_absent: true,
                        elapsed_ms: elapsed_ms(),
                        after_action,
                    }));
                }
                Ok(Some(found)) => {
                    let mut reply = view.take(&context.within(Duration::from_millis(SNAPSHOT_MS)), &found)?;
                    reply.waited(elapsed_ms(), self.text.clone(), after_action);
                    return Ok(Waited::Matched(Box::new(reply)));
                }
                Ok(None) => {
                    failures.end();
                    last_error = None;
                }
                Err(error) if failures.may_pass(context.now(), &error) => last_error = Some(error),
                Err(error) => return Err(Condition::after(error, after_action)),
            }
            if !context.pause(POLL) {
                return Err(self.timeout(&context, target, view, last_error, after_action));
            }
        }
    }

    /// Where the condition holds now; `None`: nowhere.
    ///
    /// An action may open a window of its own: after one, every window of the application is looked at, and what is to be
    /// gone has to be gone from all of them.
    fn look_around(
        &self,
        context: &Context<'_>,
        target: &Target,
        after_action: bool,
    ) -> Result<Option<Target>> {
        let mut holds = self.look(context, target);
        if after_action && !matches!((&holds, self.gone), (Ok(true), false) | (Ok(false), true)) {
            for other in Condition::other_windows(context, target)? {
                match self.look(context, &other) {
                    Ok(true) if !self.gone => return Ok(Some(other)),
                    Ok(false) if self.gone => return Ok(None),
                    Err(error) if holds.is_ok() => holds = Err(error),
                    _ => {}
                }
            }
        }
        Ok(holds?.then(|| target.clone()))
    }

    /// The other windows of the application of a target.
    fn other_windows(context: &Context<'_>, target: &Target) -> Result<Vec<Target>> {
        let Some(id) = &target.window_id else { return Ok(Vec::new()) };
        let windows = context.platform.windows(None, context.deadline)?;
        let Some(pid) = windows.iter().find(|window| window.id == *id).map(|window| window.pid) else {
            return Ok(Vec::new());
        };
        let is_other = |window: &&Window| {
            window.pid == pid && window.id != *id && window.visible != Some(false) && window.handle.is_some()
        };
        Ok(windows
            .iter()
            .filter(is_other)
            .map(|window| Target { window_id: Some(window.id.clone()), ..target.clone() })
            .collect())
    }

    /// Whether the condition holds now.
    fn look(&self, context: &Context<'_>, target: &Target) -> Result<bool> {
        let limits = Limits { max_depth: MATCH_DEPTH, ..Limits::default() };
        let observed = match target.observe(&context.within(Duration::from_millis(SNAPSHOT_MS)), &limits) {
            Ok(observed) => observed,
            // What is in a window that is gone is gone with it.
            Err(error) if self.gone && is_absence(&error) => return Ok(true),
            Err(error) => return Err(error),
        };
        let matches = query::evaluate(&self.query, &observed.observation.tree);
        Ok(if self.gone {
            // Not having read everything is not the same as there being nothing.
            matches.ids.is_empty()
                && matches.unknown.is_empty()
                && matches.cut.is_empty()
                && observed.observation.stopped.is_none()
        } else {
            !matches.ids.is_empty()
        })
    }

    fn timeout(
        &self,
        context: &Context<'_>,
        target: &Target,
        view: &Snapshot,
        last_error: Option<Error>,
        after_action: Option<serde_json::Value>,
    ) -> Error {
        let what = match (&last_error, self.gone) {
            (Some(_), _) => "could not be looked for",
            (None, true) => "is still there",
            (None, false) => "did not appear",
        };
        let mut error = Error::new(
            ErrorCode::Timeout,
            format!("what was waited for {what} after {} ms", self.timeout_ms),
        )
        .kind("wait_timeout")
        .detail("predicate", "selector")
        .detail("selector", self.text.clone())
        .detail("gone", self.gone)
        .detail("timeout_ms", self.timeout_ms)
        .hint("details.snapshot_id, if present, is what was there last; allow more time with --wait-timeout");
        if let Some(last) = last_error {
            error = error.detail("last_error", error_facts(&last));
        }
        let diagnostic = context.with_deadline(Deadline::after(context.now(), DIAGNOSTIC));
        if let Ok(reply) = view.take(&diagnostic, target) {
            error = error.detail("snapshot_id", reply.snapshot_id().to_owned());
        }
        Condition::after(error, after_action)
    }

    /// An error that came after an action keeps what the action said.
    fn after(error: Error, after_action: Option<serde_json::Value>) -> Error {
        match after_action {
            Some(data) => error.detail("after_action", fact_of(data)).redelivered(Delivery::Unverified),
            None => error.delivery(Delivery::NotDelivered),
        }
    }
}

/// Waits after an action on a ref, in the window of that ref, if waiting was asked for.
///
/// # Errors
/// As [`Condition::wait`]; whatever it is, the action has been carried out.
pub fn after_ref<R: Reply>(
    context: &Context<'_>,
    reply: R,
    reference: &str,
    snapshot: Option<&str>,
) -> Result<Answer<R>> {
    if Condition::of(context.options)?.is_none() {
        return Ok(Answer::Plain(reply));
    }
    let entry = resolve::entry(context, reference, snapshot)?;
    finish(context, reply, Some(entry.source_window_id))
}

/// Waits after an action, if that was asked for: what every command that accepts `--wait-for` ends with.
///
/// `window_id`: the window that was acted on; `None`: the focused one.
///
/// # Errors
/// As [`Condition::wait`]; whatever it is, the action has been carried out.
pub fn finish<R: Reply>(context: &Context<'_>, reply: R, window_id: Option<String>) -> Result<Answer<R>> {
    let Some(condition) = Condition::of(context.options)? else { return Ok(Answer::Plain(reply)) };
    let data = serde_json::to_value(&reply).map_err(|error| {
        Error::internal("the reply could not be written as JSON").platform_detail(error.to_string())
    })?;
    let target = Target { app: None, window_id, surface: SurfaceKind::Window, surface_id: None };
    condition.wait(context, &target, &Snapshot::default(), Some(data)).map(Answer::Waited)
}

/// The reply of a command that accepts `--wait-for`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer<R> {
    /// Nothing was waited for.
    Plain(R),
    /// What was waited for came.
    Waited(Waited),
}

impl<R: Reply> Reply for Answer<R> {
    fn outline(&self) -> Option<String> {
        match self {
            Answer::Plain(reply) => reply.outline(),
            Answer::Waited(Waited::Matched(reply)) => reply.outline(),
            Answer::Waited(Waited::Gone(gone)) => Some(format!("gone after {} ms", gone.elapsed_ms)),
        }
    }

    fn delivery(&self) -> Option<&'static str> {
        match self {
            Answer::Plain(reply) => reply.delivery(),
            Answer::Waited(_) => None,
        }
    }
}

/// How a wait ended well.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Waited {
    /// Something matched; this is what was there then.
    Matched(Box<SnapshotReply>),
    /// Nothing matched any more.
    Gone(Gone),
}

/// Nothing matched any more.
#[derive(Clone, Debug, Serialize)]
#[allow(clippy::struct_field_names, reason = "the contract's names")]
pub struct Gone {
    matched_selector: String,
    gone: bool,
    target_absent: bool,
    elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_action: Option<serde_json::Value>,
}

fn is_absence(error: &Error) -> bool {
    matches!(error.code(), ErrorCode::AppNotFound | ErrorCode::WindowNotFound | ErrorCode::ElementNotFound)
}

/// Whether a look that failed may succeed a little later.
pub(crate) fn is_passing(error: &Error) -> bool {
    let is_settling = matches!(
        error.code(),
        ErrorCode::AppNotFound
            | ErrorCode::WindowNotFound
            | ErrorCode::ElementNotFound
            | ErrorCode::AmbiguousTarget
            | ErrorCode::Timeout
    );
    is_settling
        || error.is_retryable()
        || (error.code() == ErrorCode::AppUnresponsive && error.get_kind().is_empty())
}

/// Looks that failed, in a wait.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    ambiguous_since: Option<Instant>,
}

impl Failures {
    /// Whether it is worth looking again. Which of several is meant may settle while a dialog comes up; two instances of an
    /// application stay two.
    pub(crate) fn may_pass(&mut self, now: Instant, error: &Error) -> bool {
        if error.code() != ErrorCode::AmbiguousTarget {
            self.ambiguous_since = None;
            return is_passing(error);
        }
        let since = *self.ambiguous_since.get_or_insert(now);
        now.saturating_duration_since(since) < AMBIGUOUS
    }

    /// A look succeeded.
    pub(crate) fn end(&mut self) {
        self.ambiguous_since = None;
    }
}

/// `last_error` of a wait that was in vain.
pub(crate) fn error_facts(error: &Error) -> Fact {
    facts([("code", error.code().as_str().into()), ("message", error.message_fact())])
}

fn fact_of(value: serde_json::Value) -> Fact {
    use serde_json::Value;
    match value {
        Value::Null => Fact::Text(String::new()),
        Value::Bool(value) => Fact::Bool(value),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| Fact::Float(number.as_f64().unwrap_or(0.0)), Fact::Int)
        }
        Value::String(text) => Fact::Text(text),
        Value::Array(values) => Fact::List(values.into_iter().map(fact_of).collect()),
        Value::Object(entries) => {
            Fact::Map(entries.into_iter().map(|(name, value)| (name, fact_of(value))).collect())
        }
    }
}
