//! What the tests stand on: private desktops, applications to operate, and second opinions.
//!
//! A test that needs applications is written with [`desktop_test!`]; it then runs inside a desktop of its own that
//! ends with it. Applications are started by [`Desktop`]'s launchers and end with their [`App`]. The product is run as
//! a command by [`Cli`]. What really happened is asked from the application itself ([`App::log`], a file it wrote, its
//! window title) or from another reader ([`look`]), never from the product's own reply.
//!
//! A missing application fails the test; nothing is skipped.

pub mod app;
pub mod cli;
pub mod desktop;
pub mod documents;
pub mod fake;
pub mod golden;
pub mod held;
pub mod look;
pub mod wait;

pub use app::App;
pub use cli::{Cli, Reply};
pub use desktop::{Desktop, Setup};
pub use held::Held;
pub use wait::{wait_for, wait_until};

use std::path::PathBuf;

/// The repository's root, as it was when the tests were built.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// A file of the fixture folder: an application, a page, a generator.
pub fn fixture(name: &str) -> PathBuf {
    root().join("crates/testkit/fixtures").join(name)
}
