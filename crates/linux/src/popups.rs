//! Menus, lists and popovers that have a window of their own: where they stand, and what is inside them.
//!
//! GTK 4 measures what is in a popover as if the popover stood at the corner of the control that opened it; only the
//! window system knows the true place. Other toolkits tell true places, which may lie outside of the window that the tree
//! hangs in. A popover and its window are matched by size, which both know.

use agent_desktop_core::geometry::Rect;
use agent_desktop_core::platform::Platform;
use agent_desktop_core::tree::{Handle, NodeId, Tree};
use agent_desktop_core::{Deadline, Result};

use crate::bus::{COMPONENT, Object};
use crate::dbus::Call;
use crate::map::role;
use crate::platform::{Linux, rect};
use crate::tree::Surveyed;
use crate::window_system::{WindowId, WindowKind};

/// Sizes of the same thing as the window system and the toolkit tell them; the latter rounds.
const SIZE_TOLERANCE: f64 = 1.5;

/// A popup window of an application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PopupWindow {
    pub(crate) id: WindowId,
    pub(crate) area: Rect,
}

impl PopupWindow {
    fn has_size_of(&self, bounds: &Rect) -> bool {
        (self.area.width - bounds.width).abs() <= SIZE_TOLERANCE
            && (self.area.height - bounds.height).abs() <= SIZE_TOLERANCE
    }

    /// How far something of the popup has to be moved, given where the popup itself is said to be.
    fn shift(&self, said: &Rect) -> (f64, f64) {
        (self.area.x - said.x, self.area.y - said.y)
    }
}

/// Whether a place lies in one of the popups.
pub(crate) fn is_inside(popups: &[PopupWindow], bounds: &Rect) -> bool {
    popups.iter().any(|popup| popup.area.contains(bounds.center()))
}

pub(crate) fn moved(bounds: Rect, (dx, dy): (f64, f64)) -> Rect {
    Rect { x: bounds.x + dx, y: bounds.y + dy, ..bounds }
}

/// Moves the content of GTK 4's popovers to where their windows are.
pub(crate) fn place(tree: &mut Tree, surveyed: &Popovers<'_>, popups: &[PopupWindow]) {
    let mut placed: Vec<NodeId> = Vec::new();
    // The oldest is the outermost: a submenu is said to be relative to its menu.
    for popup in popups.iter().rev() {
        let fits = |id: NodeId| {
            !placed.contains(&id) && tree.node(id).bounds.is_some_and(|bounds| popup.has_size_of(&bounds))
        };
        let ids = || 1..tree.len() as NodeId;
        let found = ids().find(|&id| surveyed.is_popover(id) && fits(id)).or_else(|| {
            ids().find(|&id| matches!(surveyed.natives[id as usize], role::FILLER | role::PANEL) && fits(id))
        });
        let Some(found) = found else { continue };
        placed.push(found);
        let Some(said) = tree.node(found).bounds else { continue };
        let inside: Vec<NodeId> = tree.subtree(found).collect();
        for id in inside {
            let node = tree.node_mut(id);
            node.bounds = node.bounds.map(|bounds| moved(bounds, popup.shift(&said)));
        }
    }
}

/// Which nodes of a tree are known to be popovers.
pub(crate) struct Popovers<'a> {
    natives: &'a [u32],
    known: &'a [NodeId],
}

impl Popovers<'_> {
    pub(crate) fn of(surveyed: &Surveyed) -> Popovers<'_> {
        Popovers { natives: &surveyed.natives, known: &surveyed.popovers }
    }

    fn is_popover(&self, id: NodeId) -> bool {
        self.natives[id as usize] == role::MENU || self.known.contains(&id)
    }
}

impl Linux {
    /// The popup windows of a process, nearest to the user first.
    pub(crate) fn popups(&self, pid: u32, deadline: Deadline) -> Vec<PopupWindow> {
        let list = self.screen_windows(deadline);
        list.iter()
            .flat_map(|list| &list.popups)
            .filter(|popup| {
                popup.pid == Some(pid)
                    && !matches!(
                        popup.kind,
                        WindowKind::Tooltip | WindowKind::Notification | WindowKind::Drag
                    )
            })
            .map(|popup| PopupWindow { id: popup.id, area: rect(popup.area) })
            // Toolkits keep windows of one pixel for their own purposes.
            .filter(|popup| popup.area.width > 1.0 && popup.area.height > 1.0)
            .collect()
    }

    /// The popup that an object is in, and how far it is from where the toolkit says.
    pub(crate) fn popup_around(
        &self,
        target: &Handle,
        popups: &[PopupWindow],
        deadline: Deadline,
    ) -> Result<Option<(PopupWindow, (f64, f64))>> {
        if popups.is_empty() {
            return Ok(None);
        }
        let mut chain = vec![target.clone()];
        chain.extend(self.ancestors(target, deadline)?);
        let objects: Vec<Object> = chain.iter().map(Object::from_handle).collect::<Result<_>>()?;
        self.with_bus(deadline, |bus| {
            let connection = &mut bus.connection;
            let serials: Vec<u32> = objects
                .iter()
                .map(|object| {
                    connection.send(&Call {
                        signature: "u",
                        body: &|writer| writer.u32(0),
                        ..Call::new(&object.bus, &object.path, COMPONENT, "GetExtents")
                    })
                })
                .collect();
            for answer in connection.call_all(&serials, deadline.at()) {
                let said = answer.and_then(|message| {
                    let mut body = message.body("(iiii)")?;
                    body.structure()?;
                    Ok(Rect::from_pixels(body.i32()?, body.i32()?, body.i32()?, body.i32()?))
                });
                let Ok(said) = said else { continue };
                if let Some(popup) = popups.iter().find(|popup| popup.has_size_of(&said)) {
                    return Ok(Some((*popup, popup.shift(&said))));
                }
            }
            Ok(None)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_popover_is_moved_to_its_window() {
        let area = Rect { x: 515.0, y: 425.0, width: 82.0, height: 90.0 };
        let popup = PopupWindow { id: WindowId(1), area };
        let said = Rect { x: 150.0, y: 196.0, width: 82.0, height: 91.0 };
        assert!(popup.has_size_of(&said));
        let item = Rect { x: 171.0, y: 216.0, width: 40.0, height: 30.0 };
        let placed = moved(item, popup.shift(&said));
        assert_eq!((placed.x, placed.y), (536.0, 445.0));
        assert!(is_inside(&[popup], &placed) && !is_inside(&[popup], &item));
    }
}
