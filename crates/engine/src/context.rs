//! What a command runs with: the platform, the store, what the caller asked for, and the deadline.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agent_desktop_core::Deadline;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Result, facts};
use agent_desktop_core::platform::{Input, Platform};

use crate::audit::Audit;
use crate::events::Begun;
use crate::lease::{Lease, LeaseSettings};
use crate::notifications::StartListener;
use crate::policy::Policy;
use crate::rules::{PolicyFile, Rules};
use crate::session::Session;
use crate::store::Store;
use crate::trace::{self, Field, Trace};

/// Deadline of an operation when nobody asks for another, in milliseconds.
pub const OPERATION_MS: u64 = 5000;
/// Deadline of a snapshot when nobody asks for another, in milliseconds.
pub const SNAPSHOT_MS: u64 = 3000;
/// Longest deadline that can be asked for, in milliseconds: a day.
pub const MAX_TIMEOUT_MS: u64 = 86_400_000;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The envelope, one line.
    #[default]
    Json,
    /// Text for people and models, where a command has one; failures stay envelopes.
    Outline,
}

/// What the caller asked for beside the command itself. Filled by a door from its flags and its environment; nothing
/// in the engine reads an environment variable.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `AGENT_DESKTOP_HOME`: the state root itself.
    pub state_root: Option<OsString>,
    /// The user's home, below which the state root is by default.
    pub user_home: Option<PathBuf>,
    /// `--session`.
    pub session: Option<String>,
    /// `AGENT_DESKTOP_SESSION`; the flag wins.
    pub session_fallback: Option<OsString>,
    /// `--trace`.
    pub trace: Option<PathBuf>,
    /// `--trace-strict`.
    pub trace_strict: bool,
    /// `--headed`.
    pub headed: bool,
    /// `--format`.
    pub format: Format,
    /// `--wait-for`.
    pub wait_for: Option<String>,
    /// `--wait-for-gone`.
    pub wait_for_gone: Option<String>,
    /// `--wait-timeout`, milliseconds.
    pub wait_timeout_ms: Option<u64>,
    /// `AGENT_DESKTOP_TIMEOUT_MS`: replaces the default of every `--timeout-ms`.
    pub timeout_ms: Option<u64>,
    /// Files of rules that apply, whoever calls; those that are not there are skipped unless they were asked for.
    pub policy_files: Vec<PolicyFile>,
    /// Where the interaction lock is, and whether it was inherited.
    pub lease: LeaseSettings,
    /// How a session gets its listener to notifications; `None`: it gets none.
    pub listener: Option<StartListener>,
}

/// What a command runs with.
pub struct Context<'a> {
    /// The desktop.
    pub platform: &'a dyn Platform,
    /// The snapshots of the selected namespace.
    pub store: Store,
    /// What the caller asked for.
    pub options: &'a Options,
    /// By when the command answers.
    pub deadline: Deadline,
    /// The deadline of the batch that the command is part of. [`deadline`](Context::deadline) is never later.
    pub outer: Option<Deadline>,
    /// The watch that the batch began before the entry in front of this one.
    pub(crate) watch: Option<&'a Begun>,
    /// `--timeout-ms 0`: one attempt, nothing is polled.
    pub is_single_attempt: bool,
    /// The session of the command, if the selected one has a manifest.
    pub(crate) session: Option<&'a Session>,
    pub(crate) trace: &'a Trace,
    /// What the policy files say.
    pub(crate) rules: &'a Rules,
    /// What is written down for whoever keeps the machine.
    pub(crate) audit: &'a Audit,
    pub(crate) delivery_began: &'a Cell<bool>,
}

impl<'a> Context<'a> {
    /// The same with another deadline, for a part of the command that has a budget of its own.
    #[must_use]
    pub fn with_deadline(&self, deadline: Deadline) -> Context<'a> {
        Context { store: self.store.clone(), deadline, ..*self }
    }

    /// The same, with at most `limit` left.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Context<'a> {
        self.with_deadline(self.deadline.within(self.now(), limit))
    }

    /// Waits before the next look. False when there is to be none: the deadline has come, or one attempt was asked for.
    pub fn poll(&self, interval: Duration) -> bool {
        !self.is_single_attempt && self.pause(interval)
    }

    /// Now, as the platform's clock has it.
    pub fn now(&self) -> Instant {
        self.platform.now()
    }

    /// Milliseconds since the command began.
    pub fn elapsed_ms(&self) -> u64 {
        self.deadline.elapsed_ms(self.now())
    }

    /// Waits, but not beyond the deadline. False when the deadline has come: nothing more is to be polled.
    pub fn pause(&self, duration: Duration) -> bool {
        self.pause_until(self.deadline, duration)
    }

    /// Waits, but not beyond `deadline`. False when it has come.
    pub fn pause_until(&self, deadline: Deadline, duration: Duration) -> bool {
        let remaining = deadline.remaining(self.now());
        if remaining.is_zero() {
            return false;
        }
        self.platform.sleep(duration.min(remaining));
        !deadline.has_passed(self.now())
    }

    /// What the caller allows.
    pub fn policy(&self) -> Policy {
        Policy::of(self.options.headed)
    }

    /// Takes the interaction lease, for dispatch and its verification only.
    ///
    /// # Errors
    /// `TIMEOUT` of kind `lock_timeout` or `interaction_process_lock_timeout` at the deadline.
    pub fn take_lease(&self) -> Result<Lease> {
        Lease::take(&self.options.lease, self.platform, self.deadline)
    }

    /// Sends physical input under the lease, once.
    ///
    /// # Errors
    /// Those of the lease and of the platform.
    pub fn send_input(&self, action: &'static str, input: &Input) -> Result<()> {
        let _lease = self.take_lease()?;
        self.dispatch(None, action, input)
    }

    /// Sends physical input, once, and writes that to the trace. Call with the lease held.
    ///
    /// # Errors
    /// Those of the platform.
    pub fn dispatch(&self, reference: Option<&str>, action: &'static str, input: &Input) -> Result<()> {
        let mut fields = Vec::new();
        fields.extend(reference.map(|reference| ("ref", Field::Text(reference))));
        fields.push(("action", Field::Text(action)));
        self.trace("action.dispatch.start", &fields)?;
        self.begin_delivery();
        match self.platform.input(input, self.deadline) {
            Ok(_) => {
                let result = facts([("delivery", Delivery::Unverified.as_str().into())]);
                fields.push(("result", Field::Fact(&result)));
                self.trace("action.dispatch.ok", &fields)
            }
            Err(error) => {
                fields.extend(trace::failure(&error));
                self.trace("action.dispatch.error", &fields)?;
                Err(error)
            }
        }
    }

    /// Says that from here on something may reach an application. A failure that does not say more is then no longer
    /// reported as safe to retry.
    pub fn begin_delivery(&self) {
        self.delivery_began.set(true);
    }

    /// Writes a line to the trace, if there is one.
    ///
    /// # Errors
    /// With `--trace-strict`, when it cannot be written; it says whether something had been sent by then.
    pub fn trace(&self, event: &str, fields: &[(&str, Field<'_>)]) -> Result<()> {
        self.trace.write(event, fields).map_err(|error| error.delivery(delivered(self.delivery_began.get())))
    }
}

/// What a failure to write down what was done says about what was done.
pub(crate) fn delivered(has_begun: bool) -> Delivery {
    if has_begun { Delivery::Unverified } else { Delivery::NotDelivered }
}
