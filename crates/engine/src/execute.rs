//! From a command and its options to an envelope: the order of checks that every command goes through.
//!
//! Decided here: what happens before a command runs, what its failures say about delivery, and that a panic is still an
//! answer. Everything that fails before the command runs has delivered nothing.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use agent_desktop_core::Deadline;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::platform::{Permission, Platform};

use crate::audit::{Audit, Outcome};
use crate::commands::{Answer, Command, Effects};
use crate::context::{Context, MAX_TIMEOUT_MS, Options, delivered};
use crate::envelope;
use crate::events::Outer;
use crate::guard::Guard;
use crate::log;
use crate::policy;
use crate::rules::Rules;
use crate::session::Session;
use crate::store::Store;
use crate::trace::{Field, Trace};
use crate::wait_for::Condition;

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// One line of JSON, or an outline; without the newline at its end.
    pub text: String,
    /// Whether the command succeeded.
    pub ok: bool,
}

impl Response {
    /// A failure that happened before there was a command to run, or outside of it.
    pub fn failure(command: &str, error: &Error) -> Response {
        Response { text: envelope::failure(command, error), ok: false }
    }
}

/// Runs a command. Always answers: failures and panics become envelopes.
///
/// The platform is not touched by commands that do not need it, so it may connect when first used.
pub fn execute(command: &Command, platform: &dyn Platform, options: &Options) -> Response {
    execute_within(command, platform, options, None)
}

/// The same as a part of something that has a deadline of its own.
pub(crate) fn execute_within(
    command: &Command,
    platform: &dyn Platform,
    options: &Options,
    outer: Option<Outer<'_>>,
) -> Response {
    let delivery_began = Cell::new(false);
    let start = platform.now();
    // All outlive a panic: trace and audit log get their last line, and the session is not removed before that.
    let (mut trace, mut session, mut audit) = (Trace::default(), None, Audit::default());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        prepare_and_run(
            command,
            platform,
            options,
            outer,
            &delivery_began,
            (&mut trace, &mut session, &mut audit),
        )
    }));
    let outcome = outcome.unwrap_or_else(|panic| Err(from_panic(&*panic)));
    let outcome = outcome.map_err(|error| stamp(error, command.effects(), delivery_began.get()));
    let ended = trace_end(&trace, command, platform.now().saturating_duration_since(start), &outcome);
    let written = audit.end(
        is_audited(command),
        &match &outcome {
            Ok(answer) => Outcome::Done(answer.delivery),
            Err(error) => Outcome::Failed(error),
        },
    );
    match (outcome, ended.and(written)) {
        (Err(error), Err(lost)) => {
            log::warn(format_args!("{}", lost.message()));
            Response::failure(command.name(), &error)
        }
        (Err(error), Ok(())) => Response::failure(command.name(), &error),
        // A strict trace or an audit log that lost its last line is a failure, but what was delivered stays delivered.
        (Ok(_), Err(error)) => {
            Response::failure(command.name(), &error.delivery(delivered(delivery_began.get())))
        }
        (Ok(answer), Ok(())) => Response { text: answer.text, ok: !answer.is_failure },
    }
}

/// Whether the audit log has a line of it in any case. What a batch does is written by its entries.
fn is_audited(command: &Command) -> bool {
    command.effects().mutates && !matches!(command, Command::Batch(_))
}

/// The last line of a command in the trace.
fn trace_end(trace: &Trace, command: &Command, duration: Duration, outcome: &Result<Answer>) -> Result<()> {
    let mut fields = vec![
        ("command", Field::Text(command.name())),
        ("ok", Field::Bool(outcome.is_ok())),
        ("duration_ms", Field::Number(duration.as_millis() as u64)),
    ];
    match outcome {
        Ok(answer) => {
            fields.extend(answer.delivery.map(|delivery| ("delivery", Field::Text(delivery))));
        }
        Err(error) => {
            fields.push(("code", Field::Text(error.code().as_str())));
            if !error.get_kind().is_empty() {
                fields.push(("kind", Field::Text(error.get_kind())));
            }
            fields.push(("delivery", Field::Text(error.get_delivery().as_str())));
        }
    }
    trace.write("command.end", &fields)
}

fn prepare_and_run(
    command: &Command,
    platform: &dyn Platform,
    options: &Options,
    outer: Option<Outer<'_>>,
    delivery_began: &Cell<bool>,
    (trace, session, audit): (&mut Trace, &mut Option<Session>, &mut Audit),
) -> Result<Answer> {
    let effects = command.effects();
    let store = match command {
        Command::Doctor(_) => Store::for_examination(options)?,
        _ => Store::new(options)?,
    };
    *session = Session::enter(&store);
    let session = session.as_ref();
    *trace = Trace::open(options, store.session(), session, matches!(command, Command::Trace(_)))?;
    trace.write("command.start", &[("command", Field::Text(command.name()))])?;
    let rules = Rules::load(&options.policy_files);
    let root = store.root().map(std::path::Path::to_owned);
    *audit = Audit::new(rules.audit(), root, store.session(), command.name());
    let audit = &*audit;
    rules.command(command, effects)?;

    let (timeout_ms, default_ms) = command.timeout();
    let timeout_ms = timeout_ms.or(options.timeout_ms.filter(|_| command.spec().has_timeout));
    if timeout_ms.is_some_and(|ms| ms > MAX_TIMEOUT_MS) {
        return Err(Error::invalid(format!("the timeout is longer than {MAX_TIMEOUT_MS} ms")));
    }
    let is_single_attempt = timeout_ms == Some(0);
    let budget = timeout_ms.filter(|&ms| ms > 0).unwrap_or(default_ms);
    let mut deadline = Deadline::after(platform.now(), Duration::from_millis(budget));
    if let Some(outer) = outer {
        deadline = deadline.within(platform.now(), outer.deadline.remaining(platform.now()));
    }

    check_waiting(command, options)?;
    command.check(options)?;
    check_permissions(effects, platform, deadline)?;
    if effects.needs_headed && !options.headed {
        return Err(policy::needs_headed(command.name()));
    }
    if is_audited(command) {
        audit.check()?;
    }
    // A batch looks at nothing itself; its entries come through here and get a guard each.
    let guard = (Guard::is_needed(&rules, audit) && !matches!(command, Command::Batch(_)))
        .then(|| Guard::new(platform, &rules, audit));
    let platform = guard.as_ref().map_or(platform, |guard| guard as &dyn Platform);
    log::debug(format_args!("{}: {budget} ms, {effects:?}", command.name()));
    let store = store.until(deadline.at());
    let context = Context {
        platform,
        store,
        options,
        deadline,
        outer: outer.map(|outer| outer.deadline),
        watch: outer.map(|outer| outer.watch),
        is_single_attempt,
        session,
        trace,
        rules: &rules,
        audit,
        delivery_began,
    };
    command.run(&context)
}

fn check_waiting(command: &Command, options: &Options) -> Result<()> {
    let waits = Condition::of(options)?.is_some();
    if waits && !command.spec().effects.waits {
        return Err(Error::invalid(format!("{} does not take --wait-for", command.name()))
            .hint("run the wait command afterwards"));
    }
    Ok(())
}

pub(crate) fn check_permissions(effects: Effects, platform: &dyn Platform, deadline: Deadline) -> Result<()> {
    if !effects.accessibility && !effects.screen {
        return Ok(());
    }
    let permissions = platform.permissions(deadline);
    let wanted = [
        (effects.accessibility, &permissions.accessibility, "accessibility"),
        (effects.screen, &permissions.screen_recording, "screen_recording"),
    ];
    for (is_wanted, permission, name) in wanted {
        if let (true, Permission::Denied(suggestion)) = (is_wanted, permission) {
            return Err(Error::new(ErrorCode::PermDenied, format!("the permission {name} is missing"))
                .detail("permission", name)
                .hint(suggestion.as_str()));
        }
    }
    Ok(())
}

/// What a failure says about delivery when the step that failed did not say.
fn stamp(error: Error, effects: Effects, delivery_began: bool) -> Error {
    if error.is_stamped() {
        return error;
    }
    if !delivery_began || !effects.mutates {
        return error.delivery(Delivery::NotDelivered);
    }
    // Something may have been sent: the code's own default must not call that safe.
    match error.code().default_delivery() {
        Delivery::NotDelivered => error.delivery(Delivery::Uncertain),
        other => error.delivery(other),
    }
}

fn from_panic(panic: &(dyn std::any::Any + Send)) -> Error {
    let cause = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Error::internal("the command stopped because of a bug in agent-desktop")
        .platform_detail(format!("panic: {cause}"))
        .hint("report it together with what stderr says")
}
