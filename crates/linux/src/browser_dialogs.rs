//! Dialogs that a browser draws inside its window: what a page asks with `alert`, `confirm` and `prompt`.
//!
//! They keep people from the page, and nobody says so: neither a window of the screen nor the state MODAL. Chromium puts
//! the dialog in the place of everything else in its window; what is behind lives on and answers. Firefox puts it into an
//! internal frame beside the frame of the page.

use agent_desktop_core::platform::{Hit, Platform, Reading, Window};
use agent_desktop_core::role::Role;
use agent_desktop_core::tree::Handle;
use agent_desktop_core::{Deadline, Result};

use crate::bus::{ACCESSIBLE, Object, send_plain};
use crate::dbus::Failure;
use crate::map::{Toolkit, dialog_role, role, state};
use crate::platform::{Inner, Linux, unresponsive};

/// Levels between the window of Firefox and the frame of a page.
const LEVELS: u32 = 6;

/// A dialog inside a window.
pub(crate) struct BrowserDialog {
    pub(crate) object: Object,
    pub(crate) is_alert: bool,
    /// What it keeps people from: what is in the frames beside its own; `None`: the whole window.
    beside: Option<Vec<Handle>>,
}

impl Linux {
    /// The dialogs inside a window of a browser; of other applications none.
    pub(crate) fn browser_dialogs(
        &self,
        window: &Object,
        toolkit: Toolkit,
        deadline: Deadline,
    ) -> Result<Vec<BrowserDialog>> {
        match toolkit {
            Toolkit::Chromium => {
                let children = self.children(window, deadline)?;
                let is_dialog =
                    |child: &Inner| is_shown(child) && matches!(child.role, role::DIALOG | role::ALERT);
                Ok(children
                    .into_iter()
                    .filter(is_dialog)
                    .map(|child| BrowserDialog {
                        is_alert: child.role == role::ALERT,
                        object: child.object,
                        beside: None,
                    })
                    .collect())
            }
            Toolkit::Gecko => self.dialogs_beside_pages(window, deadline),
            _ => Ok(Vec::new()),
        }
    }

    fn dialogs_beside_pages(&self, window: &Object, deadline: Deadline) -> Result<Vec<BrowserDialog>> {
        let mut found = Vec::new();
        let mut level = vec![window.clone()];
        for _ in 0..LEVELS {
            let mut next = Vec::new();
            for parent in &level {
                let children = self.children(parent, deadline)?;
                self.add_dialogs_among(&children, &mut found, deadline)?;
                let leads_on =
                    |child: &Inner| is_shown(child) && matches!(child.role, role::PANEL | role::SCROLL_PANE);
                next.extend(children.into_iter().filter(leads_on).map(|child| child.object));
            }
            level = next;
        }
        Ok(found)
    }

    /// Adds the dialogs that stand in a frame among these siblings.
    fn add_dialogs_among(
        &self,
        siblings: &[Inner],
        found: &mut Vec<BrowserDialog>,
        deadline: Deadline,
    ) -> Result<()> {
        let frames: Vec<&Inner> =
            siblings.iter().filter(|child| child.role == role::INTERNAL_FRAME && is_shown(child)).collect();
        // A page alone has nothing beside it.
        for frame in frames.iter().filter(|_| frames.len() > 1) {
            let inside = self.children(&frame.object, deadline)?;
            for panel in inside.into_iter().filter(|inner| inner.role == role::PANEL && is_shown(inner)) {
                if let Some(dialog) = self.dialog_role_of(&panel.object, deadline)? {
                    let others = frames.iter().filter(|other| other.object != frame.object);
                    found.push(BrowserDialog {
                        is_alert: dialog == Role::AlertDialog,
                        object: panel.object,
                        beside: Some(others.map(|other| other.object.handle()).collect()),
                    });
                }
            }
        }
        Ok(())
    }

    fn dialog_role_of(&self, panel: &Object, deadline: Deadline) -> Result<Option<Role>> {
        self.with_bus(deadline, |bus| {
            let serial = send_plain(&mut bus.connection, panel, ACCESSIBLE, "GetAttributes");
            let message = match bus.connection.wait(serial, deadline.at()) {
                Ok(message) => message,
                Err(Failure::Timeout) => return Err(unresponsive(0, Some(&Failure::Timeout))),
                Err(_) => return Ok(None),
            };
            let read = || -> std::result::Result<Vec<(String, String)>, crate::dbus::Malformed> {
                let mut body = message.body("a{ss}")?;
                let end = body.array(8)?;
                let mut attributes = Vec::new();
                while body.more(end) {
                    body.structure()?;
                    attributes.push((body.string()?.into_owned(), body.string()?.into_owned()));
                }
                Ok(attributes)
            };
            Ok(dialog_role(role::PANEL, Toolkit::Gecko, &read().unwrap_or_default()))
        })
    }

    /// Which of these is the innermost frame of a page. One wave.
    fn frame_among(&self, chain: &[Handle], deadline: Deadline) -> Result<Option<usize>> {
        let objects: Vec<Object> = chain.iter().map(Object::from_handle).collect::<Result<_>>()?;
        self.with_bus(deadline, |bus| {
            let connection = &mut bus.connection;
            let serials: Vec<u32> =
                objects.iter().map(|object| send_plain(connection, object, ACCESSIBLE, "GetRole")).collect();
            let roles = connection.call_all(&serials, deadline.at());
            for (index, answer) in roles.into_iter().enumerate() {
                match answer.and_then(|message| Ok(message.body("u")?.u32()?)) {
                    Ok(role::INTERNAL_FRAME) => return Ok(Some(index)),
                    Err(Failure::Timeout) => return Err(unresponsive(0, Some(&Failure::Timeout))),
                    _ => {}
                }
            }
            Ok(None)
        })
    }

    /// What [`Platform::dialog_over`] answers.
    pub(crate) fn browser_dialog_over(
        &self,
        target: &Handle,
        window: &Window,
        toolkit: Toolkit,
        deadline: Deadline,
    ) -> Result<Option<Hit>> {
        let Some(root) = &window.handle else { return Ok(None) };
        let root = Object::from_handle(root)?;
        let mut dialogs = Vec::new();
        let mut chain = Vec::new();
        if toolkit == Toolkit::Chromium {
            dialogs = self.browser_dialogs(&root, toolkit, deadline)?;
        }
        if toolkit == Toolkit::Gecko || !dialogs.is_empty() {
            chain.push(target.clone());
            chain.extend(self.ancestors(target, deadline)?);
        }
        if toolkit == Toolkit::Gecko
            && let Some(frame) = self.frame_among(&chain, deadline)?
            && let Some(parent) = chain.get(frame + 1)
        {
            let siblings = self.children(&Object::from_handle(parent)?, deadline)?;
            self.add_dialogs_among(&siblings, &mut dialogs, deadline)?;
        }
        let is_in = |handle: &Handle| chain.contains(handle);
        if dialogs.iter().any(|dialog| is_in(&dialog.object.handle())) {
            return Ok(None);
        }
        for dialog in dialogs {
            let covers = match &dialog.beside {
                Some(frames) => frames.iter().any(is_in),
                // What is in the window all the same can be used.
                None => !self.children(&root, deadline)?.iter().any(|child| is_in(&child.object.handle())),
            };
            if covers {
                let handle = dialog.object.handle();
                let reading = self.read(&[handle], window, deadline)?.into_iter().next();
                let node = match reading {
                    Some(Reading::Live(node)) => node,
                    Some(Reading::Unanswered) => return Err(unresponsive(0, Some(&Failure::Timeout))),
                    Some(Reading::Gone) | None => continue,
                };
                return Ok(Some(Hit::Other { role: Role::Dialog, name: node.name, bounds: node.bounds }));
            }
        }
        Ok(None)
    }
}

fn is_shown(inner: &Inner) -> bool {
    inner.states & state::SHOWING != 0
}
