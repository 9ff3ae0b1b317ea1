//! The one place where the platform is picked by target.

use agent_desktop_core::platform::Platform;

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
/// answers for it after a command has ended.
#[cfg(target_os = "linux")]
pub(crate) fn serve() -> Option<std::process::ExitCode> {
    use agent_desktop_linux::clipboard;
    std::env::args_os().nth(1).is_some_and(|word| word == clipboard::SERVE).then(clipboard::serve)
}

/// Nothing is served on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn serve() -> Option<std::process::ExitCode> {
    None
}
