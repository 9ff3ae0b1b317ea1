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
