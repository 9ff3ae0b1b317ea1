//! Open menus, dialogs and popovers.
//!
//! The window system says cheaply whether anything transient is open; only then, or when a kind is asked for that it
//! does not know (a popover drawn inside its window, a menu bar), are the trees of the application read.

use std::collections::BTreeSet;

use agent_desktop_core::geometry::Rect;
use agent_desktop_core::platform::{App, Limits, Platform, Surface, SurfaceKind};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Handle, NodeId, Tree};
use agent_desktop_core::{Deadline, Result};

use crate::bus::{
    ACCESSIBLE, Object, Registered, extents_of, send_extents, send_get, send_plain, variant_string,
};
use crate::map::{Toolkit, role, state};
use crate::platform::{Candidate, Linux, silence};
use crate::qt_menus::{number_of, unreadable};
use crate::tree::{Manner, Survey, Surveyed};
use crate::window_system::WindowKind;

/// Nodes that are read of a window while looking for a menu.
const MOST_NODES: u32 = 5000;

fn kind_word(kind: SurfaceKind) -> &'static [&'static str] {
    match kind {
        SurfaceKind::Menu => &["menu", "context_menu"],
        SurfaceKind::MenuBar => &["menubar"],
        SurfaceKind::Sheet => &["sheet"],
        SurfaceKind::Popover => &["popover"],
        SurfaceKind::Alert => &["alert"],
        _ => &[],
    }
}

impl Linux {
    pub(crate) fn list_surfaces(
        &self,
        app: &App,
        kind: Option<SurfaceKind>,
        deadline: Deadline,
    ) -> Result<Vec<Surface>> {
        let registered = self.registered(deadline)?;
        let mut surfaces = Vec::new();
        for application in registered.iter().filter(|application| application.pid == app.pid) {
            // What is open in an application that says nothing is not known: least of all that nothing is.
            if !application.answers {
                return Err(silence(application.pid, deadline));
            }
            let windows = self.accessible_windows(application, deadline)?;
            surfaces.extend(windows.iter().filter_map(dialog));
            if matches!(kind, None | Some(SurfaceKind::Sheet | SurfaceKind::Alert)) {
                for window in &windows {
                    self.add_browser_dialogs(application, window, &mut surfaces, deadline)?;
                }
            }
            if self.may_have_popups(application.pid, kind, deadline)? {
                let mut seen = Seen::default();
                for window in &windows {
                    self.look_inside(application, window, &mut surfaces, &mut seen, deadline)?;
                }
                if kind == Some(SurfaceKind::MenuBar) && application.toolkit() == Toolkit::Gecko {
                    for window in &windows {
                        self.add_hidden_bar(window, &mut surfaces, deadline)?;
                    }
                }
                if application.toolkit() == Toolkit::Qt {
                    self.add_unlisted_menus(application, &seen, &mut surfaces, deadline)?;
                }
            }
        }
        surfaces.retain(|surface| match kind {
            Some(kind) => kind_word(kind).contains(&surface.kind),
            None => surface.kind != "menubar",
        });
        // A menu may hang below what opened it and below a window of its own at once.
        let mut seen = Vec::new();
        surfaces.retain(|surface| {
            let is_new = !seen.contains(&surface.handle);
            seen.push(surface.handle.clone());
            is_new
        });
        for surface in &mut surfaces {
            surface.id = surface_id(surface.handle.as_str());
        }
        Ok(surfaces)
    }

    /// Whether the trees have to be read.
    fn may_have_popups(&self, pid: u32, kind: Option<SurfaceKind>, deadline: Deadline) -> Result<bool> {
        match kind {
            Some(SurfaceKind::Sheet | SurfaceKind::Alert) => return Ok(false),
            Some(SurfaceKind::MenuBar | SurfaceKind::Popover) => return Ok(true),
            _ => {}
        }
        let Some(list) = self.screen_windows(deadline)? else { return Ok(true) };
        Ok(list.popups.iter().any(|popup| {
            popup.pid == Some(pid)
                && !matches!(popup.kind, WindowKind::Tooltip | WindowKind::Notification | WindowKind::Drag)
        }))
    }

    fn look_inside(
        &self,
        application: &Registered,
        window: &Candidate,
        surfaces: &mut Vec<Surface>,
        seen: &mut Seen,
        deadline: Deadline,
    ) -> Result<()> {
        let owner = window.object.bus.clone();
        let known = self.known(&owner, deadline)?;
        let manner = Manner {
            toolkit: known.toolkit,
            owner: owner.clone(),
            origin: (0, 0),
            has_safe_actions: known.has_safe_actions,
        };
        let limits = Limits { max_depth: 20, nodes: MOST_NODES, ..Limits::default() };
        let prefetches = self.may_prefetch(&owner, manner.toolkit, application.pid, false, deadline)?;
        let surveyed = self.near(&owner, manner.toolkit, deadline, |connection| {
            let mut survey = Survey::new(connection, &manner, limits, deadline.at());
            if prefetches {
                survey.prefetch();
            }
            survey.tree(window.object.clone(), false)
        })?;
        for (_, node) in surveyed.tree.iter() {
            if let Ok(object) = Object::from_handle(&node.handle) {
                seen.numbers.extend(number_of(&object.path));
            }
            if node.role == Role::MenuButton && node.states.has(State::Expanded) {
                seen.opener = Some(Opener { name: node.name.clone() });
            }
        }
        for id in 0..surveyed.tree.len() as NodeId {
            let kind = match surveyed.natives[id as usize] {
                role::MENU_BAR => "menubar",
                _ if surveyed.popovers.contains(&id) && !holds_menu(&surveyed, id) => "popover",
                // Firefox says of the list of every select that it shows.
                role::MENU if application.toolkit() == Toolkit::Gecko && is_in_closed_box(&surveyed, id) => {
                    continue;
                }
                role::MENU | role::POPUP_MENU if is_open_menu(&surveyed, id) => menu_kind(&surveyed, id),
                // GTK 3 hangs the items of a menu button directly below it.
                role::TOGGLE_BUTTON | role::PUSH_BUTTON if has_items(&surveyed, id) => "menu",
                _ => continue,
            };
            let node = surveyed.tree.node(id);
            let items =
                node.children.iter().filter(|&&child| is_item(surveyed.natives[child as usize])).count();
            surfaces.push(Surface {
                id: String::new(),
                kind,
                title: node.name.clone().or_else(|| opener_name(&surveyed.tree, id)),
                item_count: (items > 0).then_some(items as u32),
                handle: node.handle.clone(),
                is_hidden: false,
            });
        }
        Ok(())
    }
}

/// How far the list of a combo box may be from it, in pixels: a border, or one that both share.
const GAP: f64 = 4.0;

impl Linux {
    /// Whether an open surface is the list or menu of `target`.
    ///
    /// Firefox shows the list of every select of a page in one combo box of its own, which is nowhere on the screen, and
    /// the select says "expanded" for a moment or never. Which select it is for, only the place tells.
    pub(crate) fn is_list_of(&self, surface: &Handle, target: &Handle, deadline: Deadline) -> Result<bool> {
        let above = self.ancestors(surface, deadline)?;
        if surface == target || above.contains(target) {
            return Ok(true);
        }
        let Some(parent) = above.first() else { return Ok(false) };
        let objects = [surface, parent, target].map(Object::from_handle);
        let [Ok(list), Ok(holder), Ok(target)] = objects else { return Ok(false) };
        if list.bus != target.bus {
            return Ok(false);
        }
        let seen = self.placed(&[holder, target, list], deadline)?;
        let [(role::COMBO_BOX, None), (role::COMBO_BOX, Some(target)), (_, Some(list))] = seen[..] else {
            return Ok(false);
        };
        Ok(is_attached(&list, &target))
    }

    /// What these are and where they are on the screen, if they are. One wave.
    fn placed(&self, objects: &[Object], deadline: Deadline) -> Result<Vec<(u32, Option<Rect>)>> {
        self.with_bus(deadline, |bus| {
            let connection = &mut bus.connection;
            let mut serials = Vec::with_capacity(objects.len() * 2);
            for object in objects {
                serials.push(send_plain(connection, object, ACCESSIBLE, "GetRole"));
                serials.push(send_extents(connection, object));
            }
            let answers: Vec<_> = connection.call_all(&serials, deadline.at());
            let placed = answers.chunks(2).map(|answers| {
                let native = answers[0].as_ref().ok().and_then(|message| message.body("u").ok()?.u32().ok());
                let bounds = answers[1].as_ref().ok().and_then(|message| extents_of(message).ok());
                (native.unwrap_or(0), bounds.filter(|bounds| !bounds.is_empty()))
            });
            Ok(placed.collect())
        })
    }
}

/// Whether a list begins or ends where the box ends or begins, one above the other.
fn is_attached(list: &Rect, combo: &Rect) -> bool {
    let is_near = |one: f64, other: f64| (one - other).abs() <= GAP;
    is_near(list.x, combo.x)
        && (is_near(list.y, combo.y + combo.height) || is_near(list.y + list.height, combo.y))
}

/// What was met while looking for what is open.
#[derive(Default)]
struct Seen {
    /// Numbers of objects of Qt.
    numbers: BTreeSet<u32>,
    /// A button whose menu is open.
    opener: Option<Opener>,
}

/// A button that has opened its menu.
#[derive(Clone)]
struct Opener {
    name: Option<String>,
}

impl Linux {
    /// Adds the questions that a browser asks inside its window.
    fn add_browser_dialogs(
        &self,
        application: &Registered,
        window: &Candidate,
        surfaces: &mut Vec<Surface>,
        deadline: Deadline,
    ) -> Result<()> {
        for dialog in self.browser_dialogs(&window.object, application.toolkit(), deadline)? {
            let handle = dialog.object.handle();
            surfaces.push(Surface {
                id: String::new(),
                kind: if dialog.is_alert { "alert" } else { "sheet" },
                title: self.name_of(&dialog.object, deadline)?,
                item_count: None,
                handle,
                is_hidden: false,
            });
        }
        Ok(())
    }

    /// Adds the menu bar that Firefox keeps out of sight until Alt is pressed.
    fn add_hidden_bar(
        &self,
        window: &Candidate,
        surfaces: &mut Vec<Surface>,
        deadline: Deadline,
    ) -> Result<()> {
        let owner = window.object.bus.clone();
        let known = self.known(&owner, deadline)?;
        let manner = Manner {
            toolkit: known.toolkit,
            owner: owner.clone(),
            origin: (0, 0),
            has_safe_actions: known.has_safe_actions,
        };
        // It is in a tool bar of the window: no page is read.
        let limits = Limits { max_depth: 2, nodes: MOST_NODES, include_hidden: true, ..Limits::default() };
        let surveyed = self.near(&owner, manner.toolkit, deadline, |connection| {
            Survey::new(connection, &manner, limits, deadline.at()).tree(window.object.clone(), false)
        })?;
        for (id, node) in surveyed.tree.iter() {
            let is_known = surfaces.iter().any(|surface| surface.handle == node.handle);
            if surveyed.natives[id as usize] == role::MENU_BAR && !is_known {
                surfaces.push(Surface {
                    id: String::new(),
                    kind: "menubar",
                    title: node.name.clone(),
                    item_count: node.children_count,
                    handle: node.handle.clone(),
                    is_hidden: true,
                });
            }
        }
        Ok(())
    }

    fn name_of(&self, object: &Object, deadline: Deadline) -> Result<Option<String>> {
        self.with_bus(deadline, |bus| {
            let serial = send_get(&mut bus.connection, object, ACCESSIBLE, "Name");
            let name =
                bus.connection.wait(serial, deadline.at()).and_then(|message| variant_string(&message));
            Ok(name.ok().filter(|name| !name.is_empty()))
        })
    }

    /// Adds the open menus of Qt that are in no tree.
    ///
    /// # Errors
    /// `ACTION_NOT_SUPPORTED` when the screen shows a menu and nothing is known of it.
    fn add_unlisted_menus(
        &self,
        application: &Registered,
        seen: &Seen,
        surfaces: &mut Vec<Surface>,
        deadline: Deadline,
    ) -> Result<()> {
        let is_known = surfaces.iter().any(|surface| matches!(surface.kind, "menu" | "context_menu"));
        if is_known || self.menu_windows(application.pid, deadline)?.is_empty() {
            return Ok(());
        }
        let owner = &application.root.bus;
        let menus = self.unlisted_menus(owner, &seen.numbers, deadline)?;
        if menus.is_empty() && !self.menu_windows(application.pid, deadline)?.is_empty() {
            return Err(unreadable());
        }
        for menu in menus {
            let items = self.children(&menu, deadline)?.iter().filter(|child| is_item(child.role)).count();
            surfaces.push(Surface {
                id: String::new(),
                kind: if seen.opener.is_some() { "menu" } else { "context_menu" },
                title: seen.opener.clone().and_then(|opener| opener.name),
                item_count: (items > 0).then_some(items as u32),
                handle: menu.handle(),
                is_hidden: false,
            });
        }
        Ok(())
    }
}

/// The same for the same surface, whatever else is open and asked for: a hash (FNV-1a) of where it is.
fn surface_id(handle: &str) -> String {
    let hash =
        handle.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("s{hash:08x}")
}

fn dialog(window: &Candidate) -> Option<Surface> {
    let is_there = window.states & (state::SHOWING | state::VISIBLE | state::ACTIVE) != 0;
    let kind = match window.role {
        role::ALERT => "alert",
        role::DIALOG | role::FILE_CHOOSER | role::COLOR_CHOOSER | role::FONT_CHOOSER => "sheet",
        _ => return None,
    };
    is_there.then(|| Surface {
        id: String::new(),
        kind,
        title: Some(window.title.clone()).filter(|title| !title.is_empty()),
        item_count: None,
        handle: window.object.handle(),
        is_hidden: false,
    })
}

fn is_item(native: u32) -> bool {
    matches!(native, role::MENU | role::MENU_ITEM | role::CHECK_MENU_ITEM | role::RADIO_MENU_ITEM)
}

/// A menu that shows items is open: hidden ones are not in the tree.
fn is_open_menu(surveyed: &Surveyed, id: NodeId) -> bool {
    surveyed.tree.subtree(id).skip(1).any(|inner| is_item(surveyed.natives[inner as usize]))
}

fn is_in_closed_box(surveyed: &Surveyed, id: NodeId) -> bool {
    surveyed.tree.ancestors(id).next().is_some_and(|parent| {
        surveyed.natives[parent as usize] == role::COMBO_BOX
            && !surveyed.tree.node(parent).states.has(State::Expanded)
    })
}

fn has_items(surveyed: &Surveyed, id: NodeId) -> bool {
    let is_choice =
        |native: u32| matches!(native, role::MENU_ITEM | role::CHECK_MENU_ITEM | role::RADIO_MENU_ITEM);
    surveyed.tree.node(id).children.iter().any(|&child| is_choice(surveyed.natives[child as usize]))
}

fn holds_menu(surveyed: &Surveyed, id: NodeId) -> bool {
    surveyed
        .tree
        .subtree(id)
        .skip(1)
        .any(|inner| matches!(surveyed.natives[inner as usize], role::MENU | role::POPUP_MENU))
}

/// A menu that nothing in the window opens is a context menu.
fn menu_kind(surveyed: &Surveyed, id: NodeId) -> &'static str {
    let has_opener = matches!(surveyed.natives[id as usize], role::MENU)
        && surveyed.tree.node(id).name.is_some()
        || surveyed.tree.ancestors(id).any(|ancestor| {
            matches!(
                surveyed.natives[ancestor as usize],
                role::MENU_BAR
                    | role::MENU
                    | role::MENU_ITEM
                    | role::POPUP_MENU
                    | role::PUSH_BUTTON
                    | role::TOGGLE_BUTTON
                    | role::COMBO_BOX
            )
        });
    if has_opener { "menu" } else { "context_menu" }
}

/// What the control that opened a nameless menu is called.
fn opener_name(tree: &Tree, id: NodeId) -> Option<String> {
    tree.ancestors(id).take(2).find_map(|ancestor| tree.node(ancestor).name.clone())
}
