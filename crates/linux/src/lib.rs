//! agent-desktop on Linux: applications through AT-SPI, windows, input and pictures through X11.

mod bus;
mod dbus;
mod map;
mod process;
mod tree;
mod probe;
pub use probe::probe;
