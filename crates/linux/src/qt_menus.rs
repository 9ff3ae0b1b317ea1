//! Menus of Qt that hang nowhere in the tree: context menus, and the menu of a button.
//!
//! Their objects are there and work; only nothing lists them, because Qt leaves popups out of the children of the
//! application. Qt numbers its objects in the order in which they are first spoken of, and a menu is spoken of when it opens.
//! So it is one of the numbers that nothing in the tree has, mostly the highest.

use std::collections::BTreeSet;

use agent_desktop_core::{Deadline, Error, ErrorCode, Result};

use crate::bus::{ACCESSIBLE, Object, send_plain, states};
use crate::map::{role, state};
use crate::platform::Linux;
use crate::window_system::{WindowId, WindowKind};

/// Numbers beyond the highest that is known.
const BEYOND: u32 = 32;
/// Numbers that are tried, and how many at a time.
const MOST_TRIED: usize = 1024;
const AT_ONCE: usize = 128;

/// The number in the path of a Qt object.
pub(crate) fn number_of(path: &str) -> Option<u32> {
    path.rsplit('/').next()?.parse().ok()
}

/// The numbers that an unlisted object may have, likeliest first.
fn candidates(known: &BTreeSet<u32>) -> Vec<u32> {
    let (Some(&first), Some(&last)) = (known.first(), known.last()) else { return Vec::new() };
    let end = last.saturating_add(BEYOND);
    (first..=end).rev().filter(|number| !known.contains(number)).take(MOST_TRIED).collect()
}

impl Linux {
    /// The open menus of an application that are none of the objects of these numbers.
    pub(crate) fn unlisted_menus(
        &self,
        owner: &str,
        known: &BTreeSet<u32>,
        deadline: Deadline,
    ) -> Result<Vec<Object>> {
        let numbers = candidates(known);
        self.with_bus(deadline, |bus| {
            let connection = &mut bus.connection;
            for some in numbers.chunks(AT_ONCE) {
                let objects: Vec<Object> = some
                    .iter()
                    .map(|number| Object::new(owner, &format!("/org/a11y/atspi/accessible/{number}")))
                    .collect();
                let serials: Vec<u32> = objects
                    .iter()
                    .map(|object| send_plain(connection, object, ACCESSIBLE, "GetRole"))
                    .collect();
                let roles = connection.call_all(&serials, deadline.at());
                let is_menu = |answer: &std::result::Result<crate::dbus::Message, _>| {
                    answer.as_ref().is_ok_and(|message| {
                        message.body("u").and_then(|mut body| body.u32()) == Ok(role::POPUP_MENU)
                    })
                };
                let menus: Vec<Object> = objects
                    .into_iter()
                    .zip(roles)
                    .filter(|(_, answer)| is_menu(answer))
                    .map(|(object, _)| object)
                    .collect();
                let serials: Vec<u32> =
                    menus.iter().map(|menu| send_plain(connection, menu, ACCESSIBLE, "GetState")).collect();
                let shown: Vec<Object> = menus
                    .into_iter()
                    .zip(connection.call_all(&serials, deadline.at()))
                    .filter(|(_, answer)| {
                        let native = answer.as_ref().ok().and_then(|message| states(message).ok());
                        native.is_some_and(|native| native & state::SHOWING != 0)
                    })
                    .map(|(menu, _)| menu)
                    .collect();
                if !shown.is_empty() {
                    return Ok(shown);
                }
            }
            Ok(Vec::new())
        })
    }

    /// The windows of the menus that a process has open.
    pub(crate) fn menu_windows(&self, pid: u32, deadline: Deadline) -> Result<Vec<WindowId>> {
        let list = self.screen_windows(deadline)?;
        let is_menu = |kind| matches!(kind, WindowKind::PopupMenu | WindowKind::DropdownMenu);
        Ok(list
            .iter()
            .flat_map(|list| &list.popups)
            .filter(|popup| popup.pid == Some(pid) && is_menu(popup.kind))
            .map(|popup| popup.id)
            .collect())
    }
}

/// A menu that is on the screen and of which the accessibility bus knows nothing.
pub(crate) fn unreadable() -> Error {
    Error::new(ErrorCode::ActionNotSupported, "a menu is open that the application does not publish")
        .kind("window_without_accessibility_element")
        .hint("use screenshot and the mouse commands, or press escape --headed to close it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlisted_object_has_a_number_that_nothing_else_has() {
        let known = BTreeSet::from([10, 11, 13]);
        let tried = candidates(&known);
        assert_eq!((tried.first(), tried.last()), (Some(&(13 + BEYOND)), Some(&12)));
        assert!(candidates(&BTreeSet::new()).is_empty());
        assert_eq!(number_of("/org/a11y/atspi/accessible/2147483688"), Some(2_147_483_688));
        assert_eq!(number_of("/org/a11y/atspi/accessible/root"), None);
    }
}
