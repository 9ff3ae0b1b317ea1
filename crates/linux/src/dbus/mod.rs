//! A D-Bus client made for reading trees: one thread, one socket, many calls in flight.
//!
//! What is decided here: how bytes become messages and back, how long anyone waits. What the messages mean is for
//! `bus.rs` and above. Only what AT-SPI needs is spoken; no objects are served, no file descriptors are passed.
//!
//! Wire format: <https://dbus.freedesktop.org/doc/dbus-specification.html>.

mod address;
mod connection;
mod message;

pub(crate) use address::session_bus_addresses;
pub(crate) use connection::{Connection, Failure, checked};
#[cfg(test)]
pub(crate) use message::test_message;
pub(crate) use message::{Call, Kind};
pub use message::{Malformed, Message, Reader};
