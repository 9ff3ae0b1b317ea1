//! agent-desktop on Linux: applications through AT-SPI, windows, input and pictures through X11.

mod act;
mod bus;
mod dbus;
mod map;
pub mod desktop_entry;
pub mod launch;
mod platform;
mod process;
mod surfaces;
mod tree;
pub mod window_system;

pub use platform::Linux;
mod probe;
pub use probe::probe;
