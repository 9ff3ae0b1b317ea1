//! To come.
use agent_desktop_core::platform::{LaunchRequest, Launched};
use agent_desktop_core::{Deadline, Error, Result};
pub(crate) fn start(_request: &LaunchRequest, _deadline: Deadline) -> Result<Launched> { Err(Error::internal("to come")) }
