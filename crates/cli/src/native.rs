//! The one place where the platform is picked by target.

use agent_desktop_core::platform::Platform;
use agent_desktop_engine::notifications::StartListener;

/// The desktop of this machine. Must not connect to anything yet: `version` never uses it.
#[cfg(target_os = "linux")]
pub(crate) fn platform() -> Box<dyn Platform> {
    Box::new(agent_desktop_linux::Linux::new())
}

/// A system without a platform of ours yet: every call says so.
#[cfg(not(target_os = "linux"))]
pub(crate) fn platform() -> Box<dyn Platform> {
    Box::new(agent_desktop_engine::unavailable::Unavailable)
}

/// What the program does instead of a command when a part of it was started to do so: the clipboard needs somebody who
/// answers for it after a command has ended, a session somebody who listens to notifications between its commands, the self-test a window that is not that of the
/// process which sends it keys.
#[cfg(target_os = "linux")]
pub(crate) fn serve() -> Option<std::process::ExitCode> {
    use agent_desktop_linux::{clipboard, notifications, self_test};
    let mut words = std::env::args_os().skip(1);
    let word = words.next()?;
    if word == clipboard::SERVE {
        return Some(clipboard::serve());
    }
    if word == self_test::WINDOW {
        return Some(self_test::serve());
    }
    if word != notifications::LISTEN {
        return None;
    }
    let (root, session) = (words.next()?, words.next()?.into_string().ok()?);
    let heard = agent_desktop_engine::notifications::listen(
        &*platform(),
        root.into(),
        &session,
        &mut std::io::stdout().lock(),
    );
    Some(if heard.is_ok() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE })
}

/// How a session gets its listener to notifications.
#[cfg(target_os = "linux")]
pub(crate) const LISTENER: Option<StartListener> = Some(agent_desktop_linux::notifications::start_listener);

/// Nobody listens on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) const LISTENER: Option<StartListener> = None;

/// Nothing is served on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn serve() -> Option<std::process::ExitCode> {
    None
}
