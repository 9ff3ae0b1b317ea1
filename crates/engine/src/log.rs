//! Diagnostics on stderr.
//!
//! One level for the process, set once by the door. Nothing here is part of the contract; stdout is.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Nothing is printed at this level.
    Off,
    /// Something failed.
    Error,
    /// Something is not as it should be.
    Warn,
    /// Something worth knowing.
    Info,
    /// What is being done.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    /// Parses a filter in the manner of `RUST_LOG`: a level, or `target=level` clauses, the most talkative of which
    /// counts. Text that is neither is ignored.
    pub fn parse_filter(filter: &str) -> Option<Level> {
        filter.split(',').filter_map(|clause| Level::parse(clause.rsplit('=').next()?.trim())).max()
    }

    fn parse(word: &str) -> Option<Level> {
        Some(match word.to_ascii_lowercase().as_str() {
            "off" => Level::Off,
            "error" => Level::Error,
            "warn" => Level::Warn,
            "info" => Level::Info,
            "debug" => Level::Debug,
            "trace" => Level::Trace,
            _ => return None,
        })
    }

    const fn as_str(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Error => "error",
            Level::Warn => "warning",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);

/// Lets through what is at least as important as `level`.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Prints a line to stderr if its level is let through.
pub fn line(level: Level, text: fmt::Arguments<'_>) {
    if level as u8 <= LEVEL.load(Ordering::Relaxed) {
        use std::io::Write;
        // A closed stderr is nobody's problem.
        let _ = writeln!(std::io::stderr(), "{}: {text}", level.as_str());
    }
}

/// Prints a warning.
pub fn warn(text: fmt::Arguments<'_>) {
    line(Level::Warn, text);
}

/// Prints what is being done.
pub fn debug(text: fmt::Arguments<'_>) {
    line(Level::Debug, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_like_rust_log() {
        assert_eq!(Level::parse_filter("debug"), Some(Level::Debug));
        assert_eq!(Level::parse_filter("warn,agent_desktop=TRACE"), Some(Level::Trace));
        assert_eq!(Level::parse_filter("agent_desktop"), None);
        assert_eq!(Level::parse_filter(""), None);
    }
}
