//! Every environment variable that agent-desktop reads.
//!
//! Nothing else in the program looks at the environment, except that a platform finds its desktop by the usual ones
//! (`DISPLAY`, `WAYLAND_DISPLAY`, `DBUS_SESSION_BUS_ADDRESS`).

use std::ffi::OsString;
use std::path::PathBuf;

use agent_desktop_core::error::{Error, Result};
use agent_desktop_engine::context::MAX_TIMEOUT_MS;
use agent_desktop_engine::{Options, PolicyFile};

/// The state root itself: an absolute path of a directory of the user. Default: `~/.agent-desktop`.
pub(crate) const HOME: &str = "AGENT_DESKTOP_HOME";
/// The session when there is no `--session`.
pub(crate) const SESSION: &str = "AGENT_DESKTOP_SESSION";
/// Deadline of every command that has `--timeout-ms` and is called without it, in milliseconds.
pub(crate) const TIMEOUT_MS: &str = "AGENT_DESKTOP_TIMEOUT_MS";
/// Number of an open descriptor by which our parent holds the interaction lease for us.
pub(crate) const LEASE_FD: &str = "AGENT_DESKTOP_INTERACTION_LEASE_FD";
/// `1`: print on stderr what the command cost, as `stats: calls=… waits=…`.
pub(crate) const STATS: &str = "AGENT_DESKTOP_STATS";
/// Filter for diagnostics on stderr: `off`, `error`, `warn`, `info`, `debug`, `trace`.
pub(crate) const LOG: &str = "RUST_LOG";
/// A policy file beside those of the machine and of the user; it must exist.
pub(crate) const POLICY: &str = "AGENT_DESKTOP_POLICY";
/// The policy file of the machine, which no caller can turn off.
const SYSTEM_POLICY: &str = "/etc/agent-desktop/policy.toml";
/// The policy file of the user, below the folder of settings.
const USER_POLICY: &str = "agent-desktop/policy.toml";
/// The user's folder of settings; `.config` in the home directory by default.
const CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// The user's home directory, below which the state root is by default.
const USER_HOME: [&str; 2] = ["HOME", "USERPROFILE"];
/// The user's runtime directory, in which the interaction lock is.
const RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Whether statistics are asked for.
pub(crate) fn wants_statistics() -> bool {
    std::env::var_os(STATS).is_some_and(|value| value == "1")
}

/// The log filter, if there is one.
pub(crate) fn log_filter() -> Option<String> {
    std::env::var(LOG).ok()
}

/// What the environment says about how commands run.
///
/// # Errors
/// `INVALID_ARGS` for a deadline that is no number.
pub(crate) fn options() -> Result<Options> {
    let mut options = Options {
        state_root: std::env::var_os(HOME),
        user_home: USER_HOME.into_iter().find_map(path),
        session_fallback: std::env::var_os(SESSION),
        timeout_ms: std::env::var_os(TIMEOUT_MS).map(milliseconds).transpose()?,
        policy_files: policy_files(),
        ..Options::default()
    };
    options.lease.runtime_dir = path(RUNTIME_DIR);
    options.lease.inherited = std::env::var_os(LEASE_FD).map(|value| value.to_string_lossy().into_owned());
    Ok(options)
}

/// Where rules may stand. One that was asked for by an empty name is one that is not there.
fn policy_files() -> Vec<PolicyFile> {
    let of_user = path(CONFIG_HOME)
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(USER_HOME.into_iter().find_map(path)?.join(".config")));
    let known = [Some(PathBuf::from(SYSTEM_POLICY)), of_user.map(|folder| folder.join(USER_POLICY))];
    let known = known.into_iter().flatten().map(|path| PolicyFile { path, must_exist: false });
    let asked = std::env::var_os(POLICY).map(|path| PolicyFile { path: path.into(), must_exist: true });
    known.chain(asked).collect()
}

fn milliseconds(value: OsString) -> Result<u64> {
    let number = value.into_string().ok().and_then(|text| text.trim().parse().ok());
    number.filter(|&number| number <= MAX_TIMEOUT_MS).ok_or_else(|| {
        Error::invalid(format!("{TIMEOUT_MS} is not a number of milliseconds up to {MAX_TIMEOUT_MS}"))
    })
}

/// Every variable that agent-desktop reads itself, and what it does; for the documentation.
#[cfg(test)]
pub(crate) const ALL: &[(&str, &str)] = &[
    (
        HOME,
        "The state root itself, instead of `~/.agent-desktop`: an absolute path, not a symbolic link, of a directory that belongs to the user or does not exist yet. Anything else is `INVALID_ARGS` for every command.",
    ),
    (SESSION, "The session when there is no `--session`. Empty is `INVALID_ARGS`."),
    (
        TIMEOUT_MS,
        "Milliseconds that every command with a deadline gets when it is called without `--timeout-ms` (`launch`, `wait`: `--timeout`).",
    ),
    (
        POLICY,
        "A [policy file](#policy-file) that applies beside the others. It must exist; empty denies everything.",
    ),
    (
        CONFIG_HOME,
        "The folder of settings, in which the user's policy file is (`agent-desktop/policy.toml`). Default: `~/.config`.",
    ),
    (
        LEASE_FD,
        "Number of an open descriptor by which the parent process holds the interaction lock; the lease is then not taken again. A descriptor that is not the lock, or holds nothing, is `POLICY_DENIED`.",
    ),
    (
        STATS,
        "`1`: a line on stderr says how many calls to applications the command cost and how often it waited for answers.",
    ),
    (
        LOG,
        "Which diagnostics go to stderr: `off`, `error`, `warn`, `info`, `debug` or `trace`; wins over `--verbose`.",
    ),
    (USER_HOME[0], "Where `~` is."),
    (USER_HOME[1], "Where `~` is when `HOME` is not set."),
    (RUNTIME_DIR, "The directory below which the interaction lock is."),
];
