//! agent-desktop on Linux: applications through AT-SPI, windows, input and pictures through X11.

mod act;
mod browser_dialogs;
mod bus;
pub mod clipboard;
mod dbus;
pub mod desktop_entry;
mod doctor;
mod events;
mod host;
pub mod launch;
mod map;
pub mod notifications;
mod platform;
mod popups;
pub mod process;
mod qt_menus;
pub mod self_test;
mod sheet;
mod signals;
mod start;
mod surfaces;
mod text;
mod tree;
pub mod window_system;

pub use dbus::{Malformed, Message, Reader};
pub use platform::Linux;
