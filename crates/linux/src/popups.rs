//! Menus, lists and popovers that have a window of their own: where they stand, and what is inside them.
//!
//! GTK 4 measures what is in a popover as if the popover stood at the corner of the control that opened it; only the
//! window system knows the true place. Other toolkits tell true places, which may lie outside of the window that the tree
//! hangs in. A popover and its window are matched by size, which both know; the window's is larger by the margins.

use std::cell::OnceCell;

use agent_desktop_core::geometry::Rect;
use agent_desktop_core::platform::Platform;
use agent_desktop_core::tree::{Handle, NodeId, Tree};
use agent_desktop_core::{Deadline, Result};

use crate::bus::{Object, extents_of, send_extents};
use crate::map::role;
use crate::platform::{Linux, rect};
use crate::tree::Surveyed;
use crate::window_system::{WindowId, WindowKind};

/// Sizes of the same thing as the window system and the toolkit tell them; the latter rounds.
const ROUNDING: f64 = 1.5;
/// Pixels by which the window of a popover may be larger than the popover, each way.
const MARGINS: f64 = 24.0;

/// A popup window of an application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PopupWindow {
    pub(crate) id: WindowId,
    pub(crate) area: Rect,
}

impl PopupWindow {
    /// By how much it is larger than the popover that it may be the window of; `None`: it is not.
    fn margin_around(&self, popover: &Rect) -> Option<f64> {
        let (width, height) = (self.area.width - popover.width, self.area.height - popover.height);
        let fits = |margin: f64| (-ROUNDING..=MARGINS).contains(&margin);
        (fits(width) && fits(height)).then_some(width.abs() + height.abs())
    }

    /// How far something of the popup has to be moved, given where the control that opened it is said to be.
    fn shift(&self, opener: &Rect) -> (f64, f64) {
        (self.area.x - opener.x, self.area.y - opener.y)
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
        let margin = |id: NodeId| {
            let bounds = tree.node(id).bounds.filter(|_| !placed.contains(&id))?;
            popup.margin_around(&bounds)
        };
        let best = |is_wanted: &dyn Fn(NodeId) -> bool, most: f64| {
            (0..tree.len() as NodeId)
                .filter(|&id| is_wanted(id))
                .filter_map(|id| Some((id, margin(id).filter(|margin| *margin <= most)?)))
                .min_by(|(_, one), (_, other)| one.total_cmp(other))
                .map(|(id, _)| id)
        };
        let is_box =
            |id: NodeId| id > 0 && matches!(surveyed.natives[id as usize], role::FILLER | role::PANEL);
        let found =
            best(&|id| surveyed.is_popover(id), 2.0 * MARGINS).or_else(|| best(&is_box, 2.0 * ROUNDING));
        let Some(found) = found else { continue };
        placed.push(found);
        let opener = tree.ancestors(found).next().unwrap_or(found);
        let Some(said) = tree.node(opener).bounds else { continue };
        let inside: Vec<NodeId> = tree.subtree(found).collect();
        for id in inside {
            let node = tree.node_mut(id);
            node.bounds = node.bounds.map(|bounds| moved(bounds, popup.shift(&said)));
        }
    }
}

/// Moves a whole tree that was read from inside a popup.
pub(crate) fn move_all(tree: &mut Tree, shift: (f64, f64)) {
    for id in 0..tree.len() as NodeId {
        let node = tree.node_mut(id);
        node.bounds = node.bounds.map(|bounds| moved(bounds, shift));
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
    pub(crate) fn popups(&self, pid: u32, deadline: Deadline) -> Result<Vec<PopupWindow>> {
        let list = self.screen_windows(deadline)?;
        Ok(list
            .iter()
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
            .collect())
    }

    /// The popup windows of a process, asked for at most once.
    pub(crate) fn popups_once<'p>(
        &self,
        known: &'p OnceCell<Vec<PopupWindow>>,
        pid: u32,
        deadline: Deadline,
    ) -> Result<&'p [PopupWindow]> {
        if let Some(popups) = known.get() {
            return Ok(popups);
        }
        let popups = self.popups(pid, deadline)?;
        Ok(known.get_or_init(|| popups))
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
            let serials: Vec<u32> = objects.iter().map(|object| send_extents(connection, object)).collect();
            let answers = connection.call_all(&serials, deadline.at());
            let said: Vec<Option<Rect>> =
                answers.into_iter().map(|answer| extents_of(&answer.ok()?).ok()).collect();
            Ok(nearest(popups, &said))
        })
    }
}

/// Which popup the first object of a chain of ancestors is in, and how far it is from where it is said to be.
fn nearest(popups: &[PopupWindow], said: &[Option<Rect>]) -> Option<(PopupWindow, (f64, f64))> {
    let mut pairs: Vec<(f64, usize, PopupWindow)> = Vec::new();
    for popup in popups {
        for (at, bounds) in said.iter().enumerate() {
            if let Some(margin) = bounds.and_then(|bounds| popup.margin_around(&bounds)) {
                pairs.push((margin, at, *popup));
            }
        }
    }
    pairs.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    let mut chosen: Vec<(usize, PopupWindow)> = Vec::new();
    for (_, at, popup) in pairs {
        if !chosen.iter().any(|(taken, other)| *taken == at || other.id == popup.id) {
            chosen.push((at, popup));
        }
    }
    let (at, popup) = chosen.into_iter().min_by_key(|(at, _)| *at)?;
    let opener = said.get(at + 1).copied().flatten().or(said[at])?;
    Some((popup, popup.shift(&opener)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_popover_is_moved_to_its_window() {
        let area = Rect { x: 477.0, y: 345.0, width: 158.0, height: 126.0 };
        let popup = PopupWindow { id: WindowId(1), area };
        let rect = |x: i32, y: i32, width: i32, height: i32| Some(Rect::from_pixels(x, y, width, height));
        // A drop-down of GTK 4.8: item, list, content, popover with a margin of 6 above it, combo box, window.
        let said = [
            rect(162, 173, 134, 16),
            rect(154, 133, 150, 96),
            rect(154, 125, 150, 112),
            rect(150, 122, 158, 120),
            rect(150, 116, 152, 34),
            rect(0, 0, 620, 420),
        ];
        let (_, shift) = nearest(&[popup], &said).expect("it is in the popup");
        let item = said[0].expect("bounds");
        let placed = moved(item, shift);
        assert_eq!((placed.x, placed.y), (489.0, 402.0));
        assert!(is_inside(&[popup], &placed) && !is_inside(&[popup], &item));
        assert!(nearest(&[popup], &said[4..]).is_none());
    }
}
