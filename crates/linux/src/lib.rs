//! Linux: windows, input, capture, processes and launching.

pub mod desktop_entry;
pub mod launch;
pub mod process;
pub mod window_system;
