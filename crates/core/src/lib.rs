//! The vocabulary and the rules of agent-desktop.
//!
//! Everything here holds on every operating system: roles, states, actions, the tree, pruning, refs and identity,
//! locators, actionability, delivery and errors, and the one trait a system has to provide. Nothing here calls an
//! operating system, touches a disk or reads a clock: time arrives through [`platform::Clock`].

pub mod action;
pub mod actionability;
pub mod deadline;
pub mod delivery;
pub mod error;
pub mod filter;
pub mod geometry;
pub mod identity;
pub mod key;
pub mod menu_path;
pub mod name;
pub mod outline;
pub mod platform;
pub mod query;
pub mod refs;
pub mod role;
#[cfg(test)]
mod sample;
pub mod state;
pub mod tree;

pub use deadline::Deadline;
pub use delivery::Delivery;
pub use error::{Error, ErrorCode, Result};
