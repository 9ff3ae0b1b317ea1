//! Runs commands on any [`Platform`](agent_desktop_core::platform::Platform).
//!
//! This is the only place that decides what a command means. Every door (command line, MCP, daemon, C library) turns
//! its input into a [`Command`], calls [`execute`], and prints the [`Response`]. The store on disk, the interaction
//! lease, the policy, the waits and the envelope live here; what an operating system does lives below the trait.

pub mod act;
pub mod action_reply;
pub(crate) mod artifacts;
mod audit;
mod clipboard;
#[cfg(test)]
mod command_tests;
pub mod commands;
pub mod context;
#[cfg(test)]
mod docs;
pub mod envelope;
mod events;
mod execute;
#[cfg(test)]
mod fake;
mod guard;
pub mod lease;
pub mod log;
mod menus;
pub mod notifications;
pub mod observe;
pub mod output;
pub mod picture;
pub mod pointer;
pub mod policy;
mod private_files;
pub mod resolve;
mod rules;
pub mod session;
#[cfg(test)]
mod session_tests;
pub mod store;
pub mod targets;
pub mod trace;
pub mod tree_data;
pub mod unavailable;
pub mod wait_for;
pub mod wire;

pub use commands::Command;
pub use context::{Context, Format, Options};
pub use execute::{Response, execute};
pub use rules::PolicyFile;
