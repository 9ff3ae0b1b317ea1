//! Aiming the pointer at an element: for hover and drag.

use agent_desktop_core::action::Action;
use agent_desktop_core::error::Result;
use agent_desktop_core::geometry::Point;
use agent_desktop_core::platform::Window;

use super::{Ready, Waited, make_ready};
use crate::artifacts::Pictures;
use crate::context::Context;
use crate::lease::Lease;
use crate::resolve::{self, Loaded, Resolved};

/// A point that was seen to reach an element.
pub struct Aim {
    /// The ref of the element.
    pub reference: String,
    /// Where to point.
    pub point: Point,
    /// The window the element is in.
    pub window: Window,
    /// The picture before, if the window was focused.
    pictures: Option<(Pictures, Loaded, Resolved)>,
    /// Held when the window was focused: keep it until the pointer has done its work.
    pub lease: Option<Lease>,
}

/// Waits until a pointer would reach the element. Nothing is moved.
///
/// `focus`: take the lease and bring the window to the front before the last look. Otherwise nothing is touched.
///
/// # Errors
/// As [`super::run`], of which it is the first half.
pub fn aim(
    context: &Context<'_>,
    reference: &str,
    snapshot: Option<&str>,
    action: Action,
    focus: bool,
) -> Result<Aim> {
    let loaded = resolve::load(context, reference, snapshot)?;
    let Ready { resolved, report, lease, pictures, .. } =
        make_ready(context, &loaded, action, focus, focus, &mut Waited::default())?;
    let bounds = resolved.node.bounds.unwrap_or_default();
    let point = report.verified_point.or(report.aim).unwrap_or_else(|| bounds.center());
    Ok(Aim {
        reference: loaded.target.to_string(),
        point,
        window: resolved.window.clone(),
        pictures: pictures.map(|pictures| (pictures, loaded, resolved)),
        lease,
    })
}

impl Aim {
    /// The pointer has done its work: lets go of the lease, and takes the picture after it.
    ///
    /// # Errors
    /// Those of [`Context::trace`].
    pub fn end(self, context: &Context<'_>) -> Result<()> {
        drop(self.lease);
        match self.pictures {
            Some((pictures, loaded, resolved)) => pictures.end(context, &loaded, Some(&resolved)),
            None => Ok(()),
        }
    }
}
