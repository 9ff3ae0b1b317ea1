//! `session`: start, end, list and remove sessions.

use std::time::Duration;

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Effects, Reply, Run, action_of, lines};
use crate::context::{Context, Options};
use crate::notifications;
use crate::session::{self, Artifacts, MAX_NAME, Manifest, Rule, Tracing};

#[cfg(feature = "clap")]
const EXAMPLE: &str = "\
Example:
  id=$(agent-desktop session start --name demo | jq -r .data.session_id)
  agent-desktop --session \"$id\" click @s7zknu:e14
  agent-desktop session end \"$id\"

Starting a session selects nothing: pass its id with --session or AGENT_DESKTOP_SESSION.";

/// Start, end, list or remove sessions: a trace and snapshots of their own for one run of an agent.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(after_help = EXAMPLE, disable_help_subcommand = true))]
pub struct Session {
    /// What to do; without it, list.
    #[cfg_attr(feature = "clap", command(subcommand))]
    pub action: Option<Action>,
}

/// What to do with sessions.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
#[serde(tag = "action", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is documented at its type")]
pub enum Action {
    Start(Start),
    End(End),
    List(List),
    Gc(Gc),
}

/// Make a session and print its id.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Start {
    /// A name for people, up to 128 bytes.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub name: Option<String>,
    /// Keep no trace of its commands.
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_trace: bool,
    /// Also keep pictures of the window before and after each action, and the refs of each snapshot.
    #[cfg_attr(feature = "clap", arg(long))]
    pub screenshots: bool,
    /// Do not listen to notifications: list-notifications then knows of none.
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_notifications: bool,
}

/// End a session: nothing more is traced.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct End {
    /// Its id; without it, the selected session.
    #[cfg_attr(feature = "clap", arg(value_name = "ID"))]
    pub id: Option<String>,
}

/// List the sessions, the oldest first.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct List {}

/// Remove ended sessions with all that belongs to them; never one in use.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Gc {
    /// Only those that ended at least so many seconds ago, and those that never ended and are as old.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS"))]
    pub older_than: Option<u64>,
    /// Only those that ended, also with --older-than.
    #[cfg_attr(feature = "clap", arg(long))]
    pub ended: bool,
}

impl<'de> Deserialize<'de> for Session {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Session, D::Error> {
        action_of(deserializer, Some("list")).map(|action| Session { action: Some(action) })
    }
}

/// A session, as it is listed.
#[derive(Clone, Debug, Serialize)]
pub struct SessionData {
    session_id: String,
    name: Option<String>,
    created_at: u64,
    ended_at: Option<u64>,
    trace: Tracing,
    artifacts: Artifacts,
}

impl From<Manifest> for SessionData {
    fn from(manifest: Manifest) -> SessionData {
        SessionData {
            session_id: manifest.id,
            name: manifest.name,
            created_at: manifest.created_at,
            ended_at: manifest.ended_at,
            trace: manifest.trace,
            artifacts: manifest.artifacts,
        }
    }
}

/// A session that should have gone.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    session_id: String,
    reason: String,
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum SessionReply {
    /// `start`.
    Started {
        /// Pass it with `--session`.
        session_id: String,
        /// As given.
        name: Option<String>,
        /// Whether its commands are traced.
        trace: Tracing,
        /// What is kept beside the trace.
        artifacts: Artifacts,
        /// Whether somebody listens to notifications for it.
        notifications: Tracing,
        /// Unix milliseconds.
        created_at: u64,
    },
    /// `end`.
    Ended {
        /// Which one.
        session_id: String,
        /// Unix milliseconds.
        ended_at: u64,
    },
    /// `list`.
    Listed {
        /// The oldest first.
        sessions: Vec<SessionData>,
    },
    /// `gc`.
    Collected {
        /// Their ids.
        removed: Vec<String>,
        /// Those that should have gone and could not.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        failed: Vec<Failed>,
    },
}

impl Reply for SessionReply {
    fn outline(&self) -> Option<String> {
        Some(match self {
            SessionReply::Started { session_id, .. } => session_id.clone(),
            SessionReply::Ended { session_id, .. } => format!("{session_id} ended"),
            SessionReply::Listed { sessions } => lines(sessions.iter().map(SessionData::outline), "no session"),
            SessionReply::Collected { removed, .. } => lines(removed.iter().cloned(), "nothing to remove"),
        })
    }
}

impl SessionData {
    fn outline(&self) -> String {
        let mut line = self.session_id.clone();
        if let Some(name) = &self.name {
            line = format!("{line} {name:?}");
        }
        for (word, is_so) in [
            ("ended", self.ended_at.is_some()),
            ("not-traced", self.trace == Tracing::Off),
            ("screenshots", self.artifacts == Artifacts::Full),
        ] {
            if is_so {
                line = format!("{line} [{word}]");
            }
        }
        line
    }
}

impl Start {
    fn check(&self) -> Result<()> {
        if self.name.as_ref().is_some_and(|name| {
            !(1..=MAX_NAME).contains(&name.len()) || name.chars().any(char::is_control)
        }) {
            return Err(Error::invalid(format!(
                "the name of a session has 1 to {MAX_NAME} bytes and no control characters"
            )));
        }
        if self.screenshots && self.no_trace {
            return Err(Error::invalid("--screenshots needs the trace: leave --no-trace out"));
        }
        Ok(())
    }
}

impl End {
    fn id<'a>(&'a self, context: &'a Context<'_>) -> Result<&'a str> {
        self.id.as_deref().or_else(|| context.store.session()).ok_or_else(|| {
            Error::invalid("session end needs an id")
                .hint("name it, or select it with --session; session list shows them")
                .delivery(Delivery::NotDelivered)
        })
    }
}

impl Run for Session {
    type Reply = SessionReply;

    fn effects(&self, table: Effects) -> Effects {
        let is_reading = matches!(self.action, None | Some(Action::List(_)));
        Effects { mutates: !is_reading, ..table }
    }

    fn check(&self, _: &Options) -> Result<()> {
        match &self.action {
            Some(Action::Start(start)) => start.check(),
            Some(Action::End(End { id: Some(id) })) => crate::store::check_session_id(id),
            _ => Ok(()),
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<SessionReply> {
        match &self.action {
            None | Some(Action::List(_)) => Ok(SessionReply::Listed {
                sessions: session::list(&context.store)?.into_iter().map(SessionData::from).collect(),
            }),
            Some(Action::Start(start)) => {
                let trace = if start.no_trace { Tracing::Off } else { Tracing::On };
                let artifacts = if start.screenshots { Artifacts::Full } else { Artifacts::Events };
                let manifest = session::start(&context.store, start.name.clone(), trace, artifacts)?;
                let is_heard = !start.no_notifications
                    && notifications::start_listener(context.options, &context.store, &manifest.id);
                Ok(SessionReply::Started {
                    session_id: manifest.id,
                    name: manifest.name,
                    trace,
                    artifacts,
                    notifications: if is_heard { Tracing::On } else { Tracing::Off },
                    created_at: manifest.created_at,
                })
            }
            Some(Action::End(end)) => {
                let id = end.id(context)?;
                let ended_at = session::end(&context.store, id)?;
                Ok(SessionReply::Ended { session_id: id.to_owned(), ended_at })
            }
            Some(Action::Gc(gc)) => {
                let rule = Rule { older_than: gc.older_than.map(Duration::from_secs), only_ended: gc.ended };
                let collected = session::collect(&context.store, rule, session::unix_ms())?;
                let failed = |(session_id, reason)| Failed { session_id, reason };
                Ok(SessionReply::Collected {
                    removed: collected.removed,
                    failed: collected.failed.into_iter().map(failed).collect(),
                })
            }
        }
    }
}
