//! What a command is allowed to do to the person at the machine, and which shortcuts and processes are protected.
//!
//! Headless by default: no focus change, no pointer movement, no synthetic keys. `--headed` allows them. A command has
//! a base policy; what counts is the union of that and the caller's.

use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::key::{Chord, Modifier};
use agent_desktop_core::platform::{App, Safety};

use crate::rules::Rules;

/// What is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Another window may get the keyboard focus.
    pub allow_focus_steal: bool,
    /// The pointer may move.
    pub allow_cursor_move: bool,
}

impl Policy {
    /// Nothing that a person would notice.
    pub const HEADLESS: Policy = Policy { allow_focus_steal: false, allow_cursor_move: false };
    /// Focus may change, the pointer stays.
    pub const FOCUS_FALLBACK: Policy = Policy { allow_focus_steal: true, allow_cursor_move: false };
    /// Like a person at the machine.
    pub const HEADED: Policy = Policy { allow_focus_steal: true, allow_cursor_move: true };

    /// What the caller asked for.
    pub const fn of(headed: bool) -> Policy {
        if headed { Policy::HEADED } else { Policy::HEADLESS }
    }

    /// What either allows.
    #[must_use]
    pub const fn union(self, other: Policy) -> Policy {
        Policy {
            allow_focus_steal: self.allow_focus_steal || other.allow_focus_steal,
            allow_cursor_move: self.allow_cursor_move || other.allow_cursor_move,
        }
    }
}

/// The refusal of something that exists only as physical input.
pub fn needs_headed(what: &str) -> Error {
    Error::new(
        ErrorCode::PolicyDenied,
        format!("{what} uses the real pointer or keyboard, which is off by default"),
    )
    .hint("repeat the command with --headed to allow physical input and focus changes")
}

/// Parses a chord and refuses the ones that quit, log out, lock or kill, and those that the policy file blocks.
///
/// # Errors
/// `INVALID_ARGS` for a chord that cannot be read, `POLICY_DENIED` for a blocked one without `force`, and for `force`
/// where the policy file does not allow it.
pub(crate) fn screen_chord(text: &str, safety: &Safety, rules: &Rules, force: bool) -> Result<Chord> {
    let chord = Chord::parse(text)?;
    rules.force(force)?;
    if !force {
        rules.chord(&chord)?;
    }
    if !force && chord.is_one_of(safety.blocked_chords) {
        return Err(Error::new(
            ErrorCode::PolicyDenied,
            format!("{chord} is a protected shortcut on this system"),
        )
        .hint("it can quit, log out, lock or kill; repeat with --force if that is meant"));
    }
    Ok(chord)
}

/// The same for a key that is to be held, which may be a modifier alone.
///
/// # Errors
/// As [`screen_chord`].
pub(crate) fn screen_held_chord(text: &str, safety: &Safety, rules: &Rules, force: bool) -> Result<()> {
    if text.split('+').all(|part| Modifier::parse(part.trim()).is_some()) {
        return rules.force(force);
    }
    screen_chord(text, safety, rules, force).map(|_| ())
}

/// Refuses to end a process that the desktop stands on, or that the policy file protects, under whichever of its names.
///
/// Whole names only: `shellcheck-gui` is not `shell`. The given name, the resolved name, the application id and each
/// dot-separated part of it are looked at.
///
/// # Errors
/// `INVALID_ARGS`, also with `force`, for what the desktop stands on; `POLICY_DENIED` for what the policy file protects,
/// without `force`, and for `force` where it does not allow it.
pub(crate) fn screen_process(
    given: &str,
    app: Option<&App>,
    safety: &Safety,
    rules: &Rules,
    force: bool,
) -> Result<()> {
    let id = app.and_then(|app| app.application_id.as_deref()).unwrap_or("");
    let names: Vec<&str> =
        [given, app.map_or("", |app| app.name.as_str()), id].into_iter().chain(id.split('.')).collect();
    for name in &names {
        if safety.protected_processes.iter().any(|protected| protected.eq_ignore_ascii_case(name.trim())) {
            return Err(Error::invalid(format!("{name} keeps the desktop running and is never closed"))
                .hint("close the application inside it instead"));
        }
    }
    rules.force(force)?;
    if force { Ok(()) } else { rules.process(&names) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAFETY: Safety = Safety {
        blocked_chords: &["alt+f4", "ctrl+alt+delete"],
        protected_processes: &["gnome-shell", "Xorg"],
    };

    fn app(name: &str, id: Option<&str>) -> App {
        App {
            name: name.to_owned(),
            pid: 1,
            process_instance: None,
            application_id: id.map(str::to_owned),
            presentation: None,
            toolkit: None,
            handle: None,
            accessible: Some(true),
        }
    }

    #[test]
    fn a_blocked_chord_is_found_however_it_is_written() {
        let error = screen_chord("F4 + ALT", &SAFETY, &Rules::default(), false);
        assert_eq!(
            error.map_err(|error| error.code()),
            Err(ErrorCode::InvalidArgs),
            "a key is not a modifier"
        );
        let error = screen_chord("Option+F4", &SAFETY, &Rules::default(), false).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PolicyDenied);
        assert!(screen_chord("Option+F4", &SAFETY, &Rules::default(), true).is_ok());
        assert!(screen_held_chord("shift", &SAFETY, &Rules::default(), false).is_ok());
        assert!(screen_held_chord("alt+f4", &SAFETY, &Rules::default(), false).is_err());
        assert!(screen_chord("alt+f3", &SAFETY, &Rules::default(), false).is_ok());
    }

    #[test]
    fn protected_by_any_whole_name_never_by_a_part_of_one() {
        assert!(screen_process("xorg", None, &SAFETY, &Rules::default(), false).is_err());
        assert!(
            screen_process("Shell", Some(&app("gnome-shell", None)), &SAFETY, &Rules::default(), false)
                .is_err()
        );
        assert!(
            screen_process(
                "x",
                Some(&app("y", Some("org.gnome-shell.z"))),
                &SAFETY,
                &Rules::default(),
                false
            )
            .is_err()
        );
        assert!(
            screen_process("gnome-shell-extension-prefs", None, &SAFETY, &Rules::default(), false).is_ok()
        );
    }

    #[test]
    fn a_union_allows_what_either_allows() {
        assert_eq!(Policy::HEADLESS.union(Policy::FOCUS_FALLBACK), Policy::FOCUS_FALLBACK);
        assert_eq!(Policy::FOCUS_FALLBACK.union(Policy::of(true)), Policy::HEADED);
        assert_eq!(Policy::of(false), Policy::HEADLESS);
    }
}
