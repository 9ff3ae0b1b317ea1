//! Top-level windows and popups on X11: the list, hit tests, and asking the window manager for changes.
//!
//! The list is true to the server rather than to the window manager: stacking comes from the root's children,
//! positions from the server's own translation, and a window manager that died (its properties stay on the root)
//! is noticed. EWMH fills in what only a window manager knows. Whether a request had its effect is for the caller
//! to poll: window managers may refuse, and some animate.
//!
//! EWMH: <https://specifications.freedesktop.org/wm-spec/latest/>

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use x11rb::connection::Connection as _;
use x11rb::cookie::Cookie;
use x11rb::protocol::res::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConfigureWindowAux, ConnectionExt as _, EventMask, GetGeometryReply,
    GetPropertyReply, GetWindowAttributesReply, InputFocus, MapState, QueryTreeReply, StackMode,
    Window as Xid, WindowClass,
};

use super::connection::{Failure, Outcome, Wire, X11, present};
use super::{Point, Rectangle, Result, WindowId, WindowSystemError};

/// How deep below a frame the application's own window is looked for. Reparenting window managers use one or two
/// levels; more is a toolkit's inside.
const MAXIMUM_FRAME_DEPTH: usize = 4;

/// Longest property read, in units of four bytes: 16 KiB, enough for any title worth showing.
const PROPERTY_WORDS: u32 = 4096;

/// `_NET_WM_DESKTOP` of a window that is on every desktop.
const ALL_DESKTOPS: u32 = u32::MAX;

/// Source indication "pager": the request comes from the user's tools and not from the application itself.
const SOURCE_PAGER: u32 = 2;

/// The width of something on each side of a rectangle. Physical pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extents {
    /// Left side.
    pub left: u32,
    /// Right side.
    pub right: u32,
    /// Upper side.
    pub top: u32,
    /// Lower side.
    pub bottom: u32,
}

/// What a window is for, by `_NET_WM_WINDOW_TYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WindowKind {
    /// An ordinary window; also what says nothing about itself.
    Normal,
    /// A dialog; also what says nothing but belongs to another window.
    Dialog,
    /// A tool window.
    Utility,
    /// A torn-off toolbar.
    Toolbar,
    /// A torn-off menu.
    Menu,
    /// A splash screen.
    Splash,
    /// A menu opened from a menu bar.
    DropdownMenu,
    /// A context menu.
    PopupMenu,
    /// The list of a combo box.
    Combo,
    /// A tooltip.
    Tooltip,
    /// A notification bubble.
    Notification,
    /// A panel.
    Dock,
    /// The desktop's background.
    Desktop,
    /// Something being dragged.
    Drag,
}

/// How the window manager has laid a window out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowState {
    /// As the user sized it.
    Normal,
    /// Hidden behind an icon. Wins over the others, which come back with the window.
    Minimized,
    /// Filling the work area in both directions.
    Maximized,
    /// Filling the display.
    Fullscreen,
}

/// A top-level window that the window manager handles.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The application's own window, not the frame around it.
    pub id: WindowId,
    /// The child of the root that holds it: the window manager's frame, or the window itself.
    pub top_level: WindowId,
    /// `_NET_WM_NAME`, else `WM_NAME`; may be empty.
    pub title: String,
    /// Process behind the window: who holds the connection that made it, as the X server's kernel says (pids of the
    /// server's namespace), else what the window claims. `None` for windows of other machines.
    pub pid: Option<u32>,
    /// `_NET_WM_PID`: what the window itself claims. Wrong in sandboxes with their own pid namespace.
    pub claimed_pid: Option<u32>,
    /// First part of `WM_CLASS`, for example `gedit`.
    pub instance: String,
    /// Second part of `WM_CLASS`, for example `Gedit`.
    pub class: String,
    /// The application's area, on the desktop. Holds the client-side shadow, if any.
    pub client: Rectangle,
    /// What a user calls the window: with the window manager's decorations, without a client-side shadow.
    pub frame: Rectangle,
    /// Client-side shadow and invisible resize borders: part of `client`, not of `frame`.
    pub shadow: Extents,
    /// Whether it is the active window.
    pub is_focused: bool,
    /// Whether it is mapped and on the current desktop. It may still be covered.
    pub is_visible: bool,
    /// Whether it blocks its parent.
    pub is_modal: bool,
    /// Minimised, maximised, full screen or neither.
    pub state: WindowState,
    /// What it is for.
    pub kind: WindowKind,
    /// The window it belongs to (dialogs).
    pub transient_for: Option<WindowId>,
    /// Place in the stack of all top-level windows and popups; higher is nearer to the user.
    pub stacking: usize,
}

/// A mapped window that the window manager does not handle: a menu, the list of a combo box, a tooltip.
#[derive(Debug, Clone, PartialEq)]
pub struct Popup {
    /// The window.
    pub id: WindowId,
    /// Its title; mostly empty.
    pub title: String,
    /// Process behind it, as in [`Window::pid`].
    pub pid: Option<u32>,
    /// First part of `WM_CLASS`.
    pub instance: String,
    /// Second part of `WM_CLASS`.
    pub class: String,
    /// Where it is.
    pub area: Rectangle,
    /// What it is for.
    pub kind: WindowKind,
    /// The window it belongs to.
    pub transient_for: Option<WindowId>,
    /// Place in the stack, as in [`Window::stacking`].
    pub stacking: usize,
}

/// All windows at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WindowList {
    /// Windows the window manager handles, topmost first.
    pub windows: Vec<Window>,
    /// Other windows on screen, topmost first.
    pub popups: Vec<Popup>,
    /// Whether a living window manager that speaks EWMH was found.
    pub has_window_manager: bool,
}

/// What lies under a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The child of the root under the point.
    pub top_level: WindowId,
    /// The application's window in it; equal to `top_level` for popups. `None`: something of the window manager.
    pub window: Option<WindowId>,
    /// Whether it is a popup.
    pub is_popup: bool,
    /// Whether the point lies on the window manager's decoration rather than on the application.
    pub is_on_frame: bool,
}

/// What the root window says about the window manager.
pub(super) struct WindowManager {
    pub(super) is_alive: bool,
    supported: HashSet<u32>,
}

impl WindowManager {
    pub(super) fn supports(&self, atom: u32) -> bool {
        self.is_alive && self.supported.contains(&atom)
    }
}

/// The properties and geometry of one window, asked for and not yet read.
struct FullQuestion<'connection> {
    window: Xid,
    attributes: Cookie<'connection, Wire, GetWindowAttributesReply>,
    geometry: Cookie<'connection, Wire, GetGeometryReply>,
    position: Cookie<'connection, Wire, x11rb::protocol::xproto::TranslateCoordinatesReply>,
    tree: Cookie<'connection, Wire, QueryTreeReply>,
    properties: [Cookie<'connection, Wire, GetPropertyReply>; 12],
}

/// What was read about one window.
struct Full {
    window: Xid,
    parent: Xid,
    is_viewable: bool,
    area: Rectangle,
    title: String,
    instance: String,
    class: String,
    claimed_pid: Option<u32>,
    is_local: bool,
    states: Vec<u32>,
    icccm_state: Option<u32>,
    types: Vec<u32>,
    transient_for: Option<Xid>,
    decoration: Option<Extents>,
    shadow: Option<Extents>,
    desktop: Option<u32>,
}

/// Where a window is on screen and in which child of the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) top: Xid,
    /// Area of `top`, its border included.
    pub(super) outer: Rectangle,
    pub(super) border: u32,
    pub(super) depth: u8,
    pub(super) visual: u32,
    /// The part of `outer` that a user calls the window.
    pub(super) frame: Rectangle,
    pub(super) is_viewable: bool,
}

impl X11 {
    /// All windows and popups.
    ///
    /// Four or five round trips, whatever the number of windows.
    ///
    /// # Errors
    /// `Timeout`, `Lost`. A window that vanishes meanwhile is left out.
    pub fn windows(&self, deadline: Instant) -> Result<WindowList> {
        self.begin(deadline);
        self.windows_now().map_err(|failure| failure.during("listing the windows"))
    }

    fn windows_now(&self) -> Outcome<WindowList> {
        // Wave 1: the root.
        let atoms = &self.atoms;
        let manager = self.ask_window_manager()?;
        let client_list = self.ask_property(self.root, atoms._NET_CLIENT_LIST)?;
        let active = self.ask_property(self.root, atoms._NET_ACTIVE_WINDOW)?;
        let desktop = self.ask_property(self.root, atoms._NET_CURRENT_DESKTOP)?;
        let tree = self.wire.query_tree(self.root)?;
        let focus = self.wire.get_input_focus()?;
        let clients = self
            .extensions
            .resources
            .then(|| {
                let everybody = res::ClientIdSpec { client: 0, mask: res::ClientIdMask::LOCAL_CLIENT_PID };
                self.wire.res_query_client_ids(&[everybody])
            })
            .transpose()?;
        let claimed_list = words(present(client_list.reply())?);
        let claimed_active = words(present(active.reply())?).first().copied();
        let current_desktop = words(present(desktop.reply())?).first().copied();
        let children = tree.reply()?.children;
        let focus = focus.reply()?.focus;
        let mut pids = HashMap::new();
        if let Some(cookie) = clients {
            for id in present(cookie.reply())?.map(|reply| reply.ids).unwrap_or_default() {
                pids.extend(id.value.first().map(|pid| (id.spec.client & !self.resource_mask(), *pid)));
            }
        }

        // Wave 2: the clients the window manager names, and every other child of the root in short. A dead window
        // manager's list is not asked for: its windows may have become somebody else's.
        let manager = self.read_window_manager(manager)?;
        let mut known: Vec<Xid> = if manager.is_alive { claimed_list } else { Vec::new() };
        let mut seen = HashSet::new();
        known.retain(|window| *window != self.root && seen.insert(*window));
        let questions = known.iter().map(|window| self.ask_full(*window)).collect::<Outcome<Vec<_>>>()?;
        let others: Vec<Xid> = children
            .iter()
            .copied()
            .filter(|child| !seen.contains(child) && *child != self.own_window)
            .collect();
        let shorts = others
            .iter()
            .map(|child| {
                Ok((
                    self.wire.get_window_attributes(*child)?,
                    self.wire.get_geometry(*child)?,
                    self.wire.query_tree(*child)?,
                    self.ask_property(*child, self.atoms.WM_STATE)?,
                    self.ask_property(*child, AtomEnum::WM_CLASS)?,
                ))
            })
            .collect::<Outcome<Vec<_>>>()?;
        let mut fulls = Vec::new();
        for question in questions {
            fulls.extend(self.read_full(question)?);
        }
        let child_set: HashSet<Xid> = children.iter().copied().collect();
        let mut top_of: HashMap<Xid, Xid> = HashMap::new();
        self.find_tops(&fulls, &child_set, &mut top_of)?;
        let frames: HashSet<Xid> = top_of.values().copied().collect();
        let mut frame_areas: HashMap<Xid, Rectangle> = HashMap::new();
        let mut popups = Vec::new();
        let mut missing = Vec::new();
        let mut unexplored = Vec::new();
        for (child, (attributes, geometry, tree, state, class)) in others.iter().zip(shorts) {
            let attributes = present(attributes.reply())?;
            let geometry = present(geometry.reply())?;
            let tree = present(tree.reply())?;
            let has_state = words(present(state.reply())?).first().is_some_and(|state| *state != 0);
            let has_class = present(class.reply())?.is_some_and(|class| !class.value.is_empty());
            let (Some(attributes), Some(geometry), Some(tree)) = (attributes, geometry, tree) else {
                continue;
            };
            let area = outer_area(&geometry);
            frame_areas.insert(*child, area);
            if frames.contains(child) || attributes.class == WindowClass::INPUT_ONLY {
                continue;
            }
            let is_viewable = attributes.map_state == MapState::VIEWABLE;
            if has_state || (is_viewable && has_class && !attributes.override_redirect) {
                missing.push(*child);
            } else if !has_class && !tree.children.is_empty() && is_viewable {
                unexplored.push((*child, tree.children, area, attributes.override_redirect));
            } else if is_viewable && area.width > 1 && area.height > 1 {
                popups.push(*child);
            }
        }

        // Frames of a window manager that keeps no client list: the client inside carries WM_STATE.
        for (frame, children, area, is_unmanaged) in unexplored {
            if let Some(client) = self.client_among(children)? {
                if seen.insert(client) {
                    top_of.insert(client, frame);
                    missing.push(client);
                }
            } else if area.width > 1 && area.height > 1 {
                if is_unmanaged { popups.push(frame) } else { missing.push(frame) }
            }
        }

        // Wave 3: in full what wave 2 found.
        let questions = missing.iter().map(|window| self.ask_full(*window)).collect::<Outcome<Vec<_>>>()?;
        let popup_questions =
            popups.iter().map(|window| self.ask_full(*window)).collect::<Outcome<Vec<_>>>()?;
        for question in questions {
            if let Some(full) = self.read_full(question)? {
                top_of.entry(full.window).or_insert(full.window);
                fulls.push(full);
            }
        }
        let mut popups = Vec::new();
        for question in popup_questions {
            popups.extend(self.read_full(question)?);
        }

        let focused = self.focused_client(&fulls, claimed_active.filter(|_| manager.is_alive), focus)?;
        let rank: HashMap<Xid, usize> =
            children.iter().enumerate().map(|(index, child)| (*child, index)).collect();
        let pid_of = |full: &Full| {
            let by_server = pids.get(&(full.window & !self.resource_mask())).copied();
            by_server.or(full.claimed_pid.filter(|_| full.is_local))
        };
        let mut windows: Vec<Window> = fulls
            .iter()
            .map(|full| {
                let top = top_of.get(&full.window).copied().unwrap_or(full.window);
                let around = (top != full.window).then(|| frame_areas.get(&top).copied()).flatten();
                Window {
                    id: WindowId(full.window),
                    top_level: WindowId(top),
                    title: full.title.clone(),
                    pid: pid_of(full),
                    claimed_pid: full.claimed_pid,
                    instance: full.instance.clone(),
                    class: full.class.clone(),
                    client: full.area,
                    frame: frame_area(full.area, full.decoration, full.shadow, around),
                    shadow: full.shadow.unwrap_or_default(),
                    is_focused: focused == Some(full.window),
                    is_visible: self.is_visible(full, current_desktop),
                    is_modal: full.states.contains(&atoms._NET_WM_STATE_MODAL),
                    state: self.state_of(full),
                    kind: self.kind_of(full),
                    transient_for: full.transient_for.map(WindowId),
                    stacking: rank.get(&top).copied().unwrap_or(0),
                }
            })
            .collect();
        let mut popups: Vec<Popup> = popups
            .iter()
            .map(|full| Popup {
                id: WindowId(full.window),
                title: full.title.clone(),
                pid: pid_of(full),
                instance: full.instance.clone(),
                class: full.class.clone(),
                area: full.area,
                kind: self.kind_of(full),
                transient_for: full.transient_for.map(WindowId),
                stacking: rank.get(&full.window).copied().unwrap_or(0),
            })
            .collect();
        windows.sort_by_key(|window| std::cmp::Reverse(window.stacking));
        popups.sort_by_key(|popup| std::cmp::Reverse(popup.stacking));
        Ok(WindowList { windows, popups, has_window_manager: manager.is_alive })
    }

    /// The bits that tell one client's resources apart; the rest of an XID is the client.
    fn resource_mask(&self) -> u32 {
        self.wire.setup().resource_id_mask
    }

    fn is_visible(&self, full: &Full, current_desktop: Option<u32>) -> bool {
        let is_on_desktop = match (full.desktop, current_desktop) {
            (Some(desktop), Some(current)) => desktop == current || desktop == ALL_DESKTOPS,
            _ => true,
        };
        full.is_viewable && is_on_desktop && !full.states.contains(&self.atoms._NET_WM_STATE_HIDDEN)
    }

    fn state_of(&self, full: &Full) -> WindowState {
        let has = |atom| full.states.contains(&atom);
        // ICCCM's iconic state alone also means "on another desktop" with some window managers, hence the
        // second condition.
        let is_iconic = full.icccm_state == Some(3) && full.states.is_empty() && full.desktop.is_none();
        if has(self.atoms._NET_WM_STATE_HIDDEN) || is_iconic {
            WindowState::Minimized
        } else if has(self.atoms._NET_WM_STATE_FULLSCREEN) {
            WindowState::Fullscreen
        } else if has(self.atoms._NET_WM_STATE_MAXIMIZED_HORZ) && has(self.atoms._NET_WM_STATE_MAXIMIZED_VERT)
        {
            WindowState::Maximized
        } else {
            WindowState::Normal
        }
    }

    fn kind_of(&self, full: &Full) -> WindowKind {
        let atoms = &self.atoms;
        // The types are listed best first; unknown ones are skipped, as EWMH says.
        for kind in &full.types {
            return match *kind {
                atom if atom == atoms._NET_WM_WINDOW_TYPE_NORMAL => WindowKind::Normal,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_DIALOG => WindowKind::Dialog,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_UTILITY => WindowKind::Utility,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_TOOLBAR => WindowKind::Toolbar,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_MENU => WindowKind::Menu,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_SPLASH => WindowKind::Splash,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_DROPDOWN_MENU => WindowKind::DropdownMenu,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_POPUP_MENU => WindowKind::PopupMenu,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_COMBO => WindowKind::Combo,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_TOOLTIP => WindowKind::Tooltip,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_NOTIFICATION => WindowKind::Notification,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_DOCK => WindowKind::Dock,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_DESKTOP => WindowKind::Desktop,
                atom if atom == atoms._NET_WM_WINDOW_TYPE_DND => WindowKind::Drag,
                _ => continue,
            };
        }
        if full.transient_for.is_some() { WindowKind::Dialog } else { WindowKind::Normal }
    }

    fn ask_property(
        &self,
        window: Xid,
        property: impl Into<u32>,
    ) -> Outcome<Cookie<'_, Wire, GetPropertyReply>> {
        Ok(self.wire.get_property(false, window, property.into(), AtomEnum::ANY, 0, PROPERTY_WORDS)?)
    }

    fn ask_full(&self, window: Xid) -> Outcome<FullQuestion<'_>> {
        let atoms = &self.atoms;
        Ok(FullQuestion {
            window,
            attributes: self.wire.get_window_attributes(window)?,
            geometry: self.wire.get_geometry(window)?,
            position: self.wire.translate_coordinates(window, self.root, 0, 0)?,
            tree: self.wire.query_tree(window)?,
            properties: [
                self.ask_property(window, atoms._NET_WM_NAME)?,
                self.ask_property(window, AtomEnum::WM_NAME)?,
                self.ask_property(window, AtomEnum::WM_CLASS)?,
                self.ask_property(window, atoms._NET_WM_PID)?,
                self.ask_property(window, AtomEnum::WM_CLIENT_MACHINE)?,
                self.ask_property(window, atoms._NET_WM_STATE)?,
                self.ask_property(window, atoms.WM_STATE)?,
                self.ask_property(window, atoms._NET_WM_WINDOW_TYPE)?,
                self.ask_property(window, AtomEnum::WM_TRANSIENT_FOR)?,
                self.ask_property(window, atoms._NET_FRAME_EXTENTS)?,
                self.ask_property(window, atoms._GTK_FRAME_EXTENTS)?,
                self.ask_property(window, atoms._NET_WM_DESKTOP)?,
            ],
        })
    }

    /// `None`: the window has gone.
    fn read_full(&self, question: FullQuestion<'_>) -> Outcome<Option<Full>> {
        let attributes = present(question.attributes.reply())?;
        let geometry = present(question.geometry.reply())?;
        let position = present(question.position.reply())?;
        let tree = present(question.tree.reply())?;
        let mut properties = Vec::with_capacity(question.properties.len());
        for cookie in question.properties {
            properties.push(present(cookie.reply())?);
        }
        let (Some(attributes), Some(geometry), Some(position), Some(tree)) =
            (attributes, geometry, position, tree)
        else {
            return Ok(None);
        };
        let mut properties = properties.into_iter();
        let mut next = || properties.next().flatten();
        let (name, old_name, class, pid, machine) = (next(), next(), next(), next(), next());
        let title = name
            .filter(|name| !name.value.is_empty())
            .or(old_name)
            .map(|name| decode_text(&name.value, name.type_, self.atoms.UTF8_STRING))
            .unwrap_or_default();
        let (instance, class) = split_class(class.as_ref().map_or(&[], |class| &class.value));
        let own_name = rustix::system::uname();
        Ok(Some(Full {
            window: question.window,
            parent: tree.parent,
            is_viewable: attributes.map_state == MapState::VIEWABLE,
            area: Rectangle::new(
                position.dst_x.into(),
                position.dst_y.into(),
                geometry.width.into(),
                geometry.height.into(),
            ),
            title,
            instance,
            class,
            claimed_pid: words(pid).first().copied().filter(|pid| *pid != 0),
            is_local: machine.is_none_or(|machine| machine.value == own_name.nodename().to_bytes()),
            states: words(next()),
            icccm_state: words(next()).first().copied(),
            types: words(next()),
            transient_for: words(next())
                .first()
                .copied()
                .filter(|parent| *parent != 0 && *parent != self.root),
            decoration: extents(&words(next())),
            shadow: extents(&words(next())),
            desktop: words(next()).first().copied(),
        }))
    }

    /// Finds for each window the child of the root that holds it.
    fn find_tops(
        &self,
        fulls: &[Full],
        children: &HashSet<Xid>,
        tops: &mut HashMap<Xid, Xid>,
    ) -> Outcome<()> {
        let mut open: Vec<(Xid, Xid)> = fulls
            .iter()
            .map(|full| {
                (full.window, if children.contains(&full.window) { full.window } else { full.parent })
            })
            .collect();
        for _ in 0..MAXIMUM_FRAME_DEPTH {
            let (done, rest): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|(_, top)| children.contains(top));
            tops.extend(done);
            if rest.is_empty() {
                return Ok(());
            }
            let questions = rest
                .iter()
                .map(|(_, ancestor)| self.wire.query_tree(*ancestor))
                .collect::<std::result::Result<Vec<_>, _>>()?;
            open = Vec::new();
            for ((window, _), question) in rest.into_iter().zip(questions) {
                open.extend(present(question.reply())?.map(|reply| (window, reply.parent)));
            }
        }
        Ok(())
    }

    /// The window with `WM_STATE` among `level` and what lies below, a level a round trip.
    fn client_among(&self, mut level: Vec<Xid>) -> Outcome<Option<Xid>> {
        for _ in 0..MAXIMUM_FRAME_DEPTH {
            if level.is_empty() {
                break;
            }
            let questions = level
                .iter()
                .map(|window| {
                    Ok((self.ask_property(*window, self.atoms.WM_STATE)?, self.wire.query_tree(*window)?))
                })
                .collect::<Outcome<Vec<_>>>()?;
            let mut below = Vec::new();
            let mut found = None;
            for (window, (state, tree)) in level.iter().zip(questions) {
                if words(present(state.reply())?).first().is_some_and(|state| *state != 0) {
                    found = found.or(Some(*window));
                }
                below.extend(present(tree.reply())?.map(|tree| tree.children).unwrap_or_default());
            }
            if found.is_some() {
                return Ok(found);
            }
            level = below;
        }
        Ok(None)
    }

    /// Whether two windows were made over the same connection. Free.
    fn is_same_client(&self, one: Xid, other: Xid) -> bool {
        one & !self.resource_mask() == other & !self.resource_mask()
    }

    /// Which of the clients has the focus: the one the window manager names, else the one around the server's input
    /// focus.
    ///
    /// The two must agree on the application: a busy window manager still names the window that had the focus a second
    /// ago, or one whose XID has a new owner (openbox, seen after changes of the keyboard map). Within an application
    /// the name counts, since toolkits give the input focus to hidden windows of their own.
    fn focused_client(&self, fulls: &[Full], claimed: Option<Xid>, focus: Xid) -> Outcome<Option<Xid>> {
        let clients: HashSet<Xid> = fulls.iter().map(|full| full.window).collect();
        if let Some(claimed) = claimed
            && clients.contains(&claimed)
            && self.is_same_client(claimed, focus)
        {
            return Ok(Some(claimed));
        }
        self.ancestor_where(focus, |window| clients.contains(&window))
    }

    /// The nearest ancestor, or the window itself, that `is_wanted`. One round trip a level.
    fn ancestor_where(&self, mut window: Xid, is_wanted: impl Fn(Xid) -> bool) -> Outcome<Option<Xid>> {
        // Focus "none" is 0 and focus "pointer root" is 1.
        while window > 1 && window != self.root {
            if is_wanted(window) {
                return Ok(Some(window));
            }
            match present(self.wire.query_tree(window)?.reply())? {
                Some(tree) => window = tree.parent,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    fn ask_window_manager(&self) -> Outcome<[Cookie<'_, Wire, GetPropertyReply>; 2]> {
        Ok([
            self.ask_property(self.root, self.atoms._NET_SUPPORTING_WM_CHECK)?,
            self.ask_property(self.root, self.atoms._NET_SUPPORTED)?,
        ])
    }

    /// The check window must exist and name itself; a dead window manager's is gone while the root's properties
    /// stay for ever.
    fn read_window_manager(
        &self,
        question: [Cookie<'_, Wire, GetPropertyReply>; 2],
    ) -> Outcome<WindowManager> {
        let [check, supported] = question;
        let check = words(present(check.reply())?).first().copied();
        let supported = words(present(supported.reply())?).into_iter().collect();
        let is_alive = match check {
            Some(check) if check != 0 => {
                let echo = self.ask_property(check, self.atoms._NET_SUPPORTING_WM_CHECK)?;
                words(present(echo.reply())?).first() == Some(&check)
            }
            _ => false,
        };
        Ok(WindowManager { is_alive, supported })
    }

    pub(super) fn window_manager(&self) -> Outcome<WindowManager> {
        let question = self.ask_window_manager()?;
        self.read_window_manager(question)
    }

    /// The window that has the focus, as the window manager says or, failing that, the input focus.
    ///
    /// Two round trips, more without a window manager. For confirming [`activate`](Self::activate).
    ///
    /// # Errors
    /// `Timeout`, `Lost`.
    pub fn active_window(&self, deadline: Instant) -> Result<Option<WindowId>> {
        self.begin(deadline);
        self.active_window_now().map_err(|failure| failure.during("asking for the active window"))
    }

    pub(super) fn active_window_now(&self) -> Outcome<Option<WindowId>> {
        let manager = self.ask_window_manager()?;
        let active = self.ask_property(self.root, self.atoms._NET_ACTIVE_WINDOW)?;
        let focus = self.wire.get_input_focus()?;
        let active = words(present(active.reply())?).first().copied().filter(|window| *window != 0);
        let focus = focus.reply()?.focus;
        let manager = self.read_window_manager(manager)?;
        if let Some(active) = active.filter(|active| manager.is_alive && self.is_same_client(*active, focus))
            && present(self.wire.get_geometry(active)?.reply())?.is_some()
        {
            return Ok(Some(WindowId(active)));
        }
        let mut window = focus;
        while window > 1 && window != self.root {
            let state = self.ask_property(window, self.atoms.WM_STATE)?;
            let tree = self.wire.query_tree(window)?;
            let has_state = words(present(state.reply())?).first().is_some_and(|state| *state != 0);
            let Some(tree) = present(tree.reply())? else { return Ok(None) };
            // Without a window manager nobody sets WM_STATE, and the top-level window is the root's child.
            if has_state || (tree.parent == self.root && !manager.is_alive) {
                return Ok(Some(WindowId(window)));
            }
            window = tree.parent;
        }
        Ok(None)
    }

    /// The topmost window at a point, as the server would deliver a click there (input shapes count).
    ///
    /// Two to four round trips. `None`: the bare root, or outside the screen.
    ///
    /// # Errors
    /// `Timeout`, `Lost`.
    pub fn window_at(&self, point: Point, deadline: Instant) -> Result<Option<Hit>> {
        self.begin(deadline);
        let (Ok(x), Ok(y)) = (i16::try_from(point.x), i16::try_from(point.y)) else { return Ok(None) };
        self.window_at_now(point, x, y).map_err(|failure| failure.during("looking for the window at a point"))
    }

    fn window_at_now(&self, point: Point, x: i16, y: i16) -> Outcome<Option<Hit>> {
        let top = self.wire.translate_coordinates(self.root, self.root, x, y)?.reply()?.child;
        if top == x11rb::NONE {
            return Ok(None);
        }
        let attributes = self.wire.get_window_attributes(top)?;
        let tree = self.wire.query_tree(top)?;
        let state = self.ask_property(top, self.atoms.WM_STATE)?;
        let class = self.ask_property(top, AtomEnum::WM_CLASS)?;
        let attributes = present(attributes.reply())?;
        let tree = present(tree.reply())?;
        let has_state = words(present(state.reply())?).first().is_some_and(|state| *state != 0);
        let has_class = present(class.reply())?.is_some_and(|class| !class.value.is_empty());
        let (Some(attributes), Some(tree)) = (attributes, tree) else { return Ok(None) };
        let hit = Hit { top_level: WindowId(top), window: None, is_popup: false, is_on_frame: false };
        if has_state {
            return Ok(Some(Hit { window: Some(WindowId(top)), ..hit }));
        }
        if let Some(client) = self.client_among(tree.children)? {
            let geometry = self.wire.get_geometry(client)?;
            let position = self.wire.translate_coordinates(client, self.root, 0, 0)?;
            let (geometry, position) = (present(geometry.reply())?, present(position.reply())?);
            let is_on_frame = match (geometry, position) {
                (Some(geometry), Some(position)) => !Rectangle::new(
                    position.dst_x.into(),
                    position.dst_y.into(),
                    geometry.width.into(),
                    geometry.height.into(),
                )
                .contains(point),
                _ => true,
            };
            return Ok(Some(Hit { window: Some(WindowId(client)), is_on_frame, ..hit }));
        }
        let window = (has_class || attributes.override_redirect).then_some(WindowId(top));
        Ok(Some(Hit { window, is_popup: attributes.override_redirect, ..hit }))
    }

    /// Asks for the focus on a window: raises it, and un-minimises it or changes the desktop if needed.
    ///
    /// Five round trips. Returns once the request was delivered; poll [`active_window`](Self::active_window) for
    /// the effect. Without a window manager the window is raised and given the input focus directly.
    ///
    /// # Errors
    /// `Gone`, `NotViewable` (without a window manager only), `Timeout`, `Lost`.
    pub fn activate(&self, window: WindowId, deadline: Instant) -> Result<()> {
        self.begin(deadline);
        let doing = "activating a window";
        let viewable = self.activate_now(window.0).map_err(|failure| failure.on(window, doing))?;
        if viewable { Ok(()) } else { Err(WindowSystemError::NotViewable { window }) }
    }

    fn activate_now(&self, window: Xid) -> Outcome<bool> {
        let attributes = self.wire.get_window_attributes(window)?;
        let protocols = self.ask_property(window, self.atoms.WM_PROTOCOLS)?;
        let attributes = attributes.reply()?;
        let takes_focus = words(present(protocols.reply())?).contains(&self.atoms.WM_TAKE_FOCUS);
        let manager = self.window_manager()?;
        // A request older than the user's last action in another window would be taken for focus stealing.
        let time = self.server_time()?;
        if manager.supports(self.atoms._NET_ACTIVE_WINDOW) {
            self.tell_root(window, self.atoms._NET_ACTIVE_WINDOW, [SOURCE_PAGER, time, 0, 0, 0])?;
            self.sync()?;
            return Ok(true);
        }
        if attributes.map_state == MapState::UNMAPPED {
            self.wire.map_window(window)?;
        }
        // Under a frame both must rise.
        let tops = self.wire.query_tree(self.root)?.reply()?.children.into_iter().collect::<HashSet<_>>();
        let top = self.ancestor_where(window, |ancestor| tops.contains(&ancestor))?.unwrap_or(window);
        self.wire.configure_window(top, &ConfigureWindowAux::new().stack_mode(StackMode::ABOVE))?;
        if self.wire.get_window_attributes(window)?.reply()?.map_state != MapState::VIEWABLE {
            return Ok(false);
        }
        self.wire.set_input_focus(InputFocus::PARENT, window, time)?.check()?;
        if takes_focus {
            self.tell_window(window, self.atoms.WM_PROTOCOLS, [self.atoms.WM_TAKE_FOCUS, time, 0, 0, 0])?;
        }
        self.sync()?;
        Ok(true)
    }

    /// Asks a window to close, as its close button does. The application may ask its user first, or refuse.
    ///
    /// Four round trips. Never kills the client.
    ///
    /// # Errors
    /// `Gone`, `Unsupported` when neither the window manager nor the window knows how, `Timeout`, `Lost`.
    pub fn close_window(&self, window: WindowId, deadline: Instant) -> Result<()> {
        self.begin(deadline);
        let is_asked = self.close_now(window.0).map_err(|failure| failure.on(window, "closing a window"))?;
        if is_asked {
            return Ok(());
        }
        Err(WindowSystemError::Unsupported { what: format!("window {window} takes no close request") })
    }

    /// Asks a popup to close, past the window manager, which knows nothing of it. Does nothing where it takes no such request.
    ///
    /// # Errors
    /// `Gone`, `Timeout`, `Lost`.
    pub fn close_popup(&self, window: WindowId, deadline: Instant) -> Result<()> {
        self.begin(deadline);
        self.close_popup_now(window.0).map_err(|failure| failure.on(window, "closing a popup"))
    }

    fn close_popup_now(&self, window: Xid) -> Outcome<()> {
        let protocols = words(present(self.ask_property(window, self.atoms.WM_PROTOCOLS)?.reply())?);
        if protocols.contains(&self.atoms.WM_DELETE_WINDOW) {
            let time = self.server_time()?;
            self.tell_window(window, self.atoms.WM_PROTOCOLS, [self.atoms.WM_DELETE_WINDOW, time, 0, 0, 0])?;
        }
        self.sync()
    }

    fn close_now(&self, window: Xid) -> Outcome<bool> {
        self.wire.get_geometry(window)?.reply()?;
        let protocols = words(present(self.ask_property(window, self.atoms.WM_PROTOCOLS)?.reply())?);
        let manager = self.window_manager()?;
        let time = self.server_time()?;
        let is_asked = if manager.supports(self.atoms._NET_CLOSE_WINDOW) {
            self.tell_root(window, self.atoms._NET_CLOSE_WINDOW, [time, SOURCE_PAGER, 0, 0, 0])?;
            true
        } else if protocols.contains(&self.atoms.WM_DELETE_WINDOW) {
            self.tell_window(window, self.atoms.WM_PROTOCOLS, [self.atoms.WM_DELETE_WINDOW, time, 0, 0, 0])?;
            true
        } else {
            false
        };
        self.sync()?;
        Ok(is_asked)
    }

    /// Moves and resizes a window so that its [`frame`](Window::frame) becomes what is given; `None` keeps the
    /// position or the size.
    ///
    /// Four round trips. The window manager may adapt it (size steps of a terminal, struts); a maximised window
    /// mostly stays as it is.
    ///
    /// # Errors
    /// `Gone`, `InvalidArgument` for a size too small for the decorations or beyond 32767, `Timeout`, `Lost`.
    pub fn move_resize(
        &self,
        window: WindowId,
        position: Option<Point>,
        size: Option<(u32, u32)>,
        deadline: Instant,
    ) -> Result<()> {
        self.begin(deadline);
        let doing = "moving a window";
        let (decoration, shadow) = self.extents_now(window.0).map_err(|failure| failure.on(window, doing))?;
        let size = size
            .map(|(width, height)| {
                let client = (
                    i64::from(width) - i64::from(decoration.left) - i64::from(decoration.right)
                        + i64::from(shadow.left)
                        + i64::from(shadow.right),
                    i64::from(height) - i64::from(decoration.top) - i64::from(decoration.bottom)
                        + i64::from(shadow.top)
                        + i64::from(shadow.bottom),
                );
                let is_possible = |length: i64| (1..=i64::from(i16::MAX)).contains(&length);
                if is_possible(client.0) && is_possible(client.1) {
                    return Ok((client.0 as u32, client.1 as u32));
                }
                Err(WindowSystemError::InvalidArgument {
                    what: format!(
                        "size {width}x{height}, which is {}x{} without the decorations",
                        client.0, client.1
                    ),
                })
            })
            .transpose()?;
        // The client-side shadow sticks out of the frame, so the window itself begins further out.
        let position = position.map(|point| {
            (point.x.saturating_sub_unsigned(shadow.left), point.y.saturating_sub_unsigned(shadow.top))
        });
        self.move_resize_now(window.0, position, size, decoration)
            .map_err(|failure| failure.on(window, doing))
    }

    /// A window's top-level ancestor and its visible frame, read afresh.
    pub(super) fn place_now(&self, window: Xid) -> Outcome<Place> {
        let question = self.ask_full(window)?;
        let Some(full) = self.read_full(question)? else {
            // Ask once more for the error itself, which says that the window has gone.
            self.wire.get_geometry(window)?.reply()?;
            return Err(Failure::Lost("a window came and went".to_owned()));
        };
        let (mut top, mut parent) = (window, full.parent);
        while parent != self.root && parent != x11rb::NONE {
            top = parent;
            parent = self.wire.query_tree(top)?.reply()?.parent;
        }
        let geometry = self.wire.get_geometry(top)?;
        let attributes = self.wire.get_window_attributes(top)?;
        let (geometry, attributes) = (geometry.reply()?, attributes.reply()?);
        let outer = outer_area(&geometry);
        let frame = frame_area(full.area, full.decoration, full.shadow, (top != window).then_some(outer));
        Ok(Place {
            top,
            outer,
            border: geometry.border_width.into(),
            depth: geometry.depth,
            visual: attributes.visual,
            frame: frame.intersection(&outer).unwrap_or(outer),
            is_viewable: full.is_viewable && attributes.map_state == MapState::VIEWABLE,
        })
    }

    fn extents_now(&self, window: Xid) -> Outcome<(Extents, Extents)> {
        let geometry = self.wire.get_geometry(window)?;
        let decoration = self.ask_property(window, self.atoms._NET_FRAME_EXTENTS)?;
        let shadow = self.ask_property(window, self.atoms._GTK_FRAME_EXTENTS)?;
        geometry.reply()?;
        let decoration = extents(&words(present(decoration.reply())?)).unwrap_or_default();
        let shadow = extents(&words(present(shadow.reply())?)).unwrap_or_default();
        Ok((decoration, shadow))
    }

    fn move_resize_now(
        &self,
        window: Xid,
        position: Option<(i32, i32)>,
        size: Option<(u32, u32)>,
        decoration: Extents,
    ) -> Outcome<()> {
        let manager = self.window_manager()?;
        if manager.supports(self.atoms._NET_MOVERESIZE_WINDOW) {
            // Gravity north-west: the position is that of the frame's corner.
            let mut flags = 1 | (SOURCE_PAGER << 12);
            let mut data = [0; 5];
            if let Some((x, y)) = position {
                flags |= 0b0011 << 8;
                (data[1], data[2]) = (x as u32, y as u32);
            }
            if let Some((width, height)) = size {
                flags |= 0b1100 << 8;
                (data[3], data[4]) = (width, height);
            }
            data[0] = flags;
            self.tell_root(window, self.atoms._NET_MOVERESIZE_WINDOW, data)?;
        } else {
            // A configure request by another client reaches the window manager as if it were the application's.
            let mut request = ConfigureWindowAux::new();
            if let Some((x, y)) = position {
                let is_managed = manager.is_alive;
                let (left, top) = if is_managed { (0, 0) } else { (decoration.left, decoration.top) };
                request = request.x(x.saturating_add_unsigned(left)).y(y.saturating_add_unsigned(top));
            }
            if let Some((width, height)) = size {
                request = request.width(width).height(height);
            }
            self.wire.configure_window(window, &request)?;
        }
        self.sync()
    }

    /// Asks the window manager to minimise a window.
    ///
    /// Four round trips.
    ///
    /// # Errors
    /// `Gone`, `Unsupported` without a window manager, `Timeout`, `Lost`.
    pub fn minimize(&self, window: WindowId, deadline: Instant) -> Result<()> {
        self.begin(deadline);
        self.ask_manager(window, "minimising a window", |_| {
            self.tell_root(window.0, self.atoms.WM_CHANGE_STATE, [3, 0, 0, 0, 0])
        })
    }

    /// Asks the window manager to maximise a window in both directions.
    ///
    /// Four round trips. A minimised window comes back first.
    ///
    /// # Errors
    /// `Gone`, `Unsupported` without a window manager, `Timeout`, `Lost`.
    pub fn maximize(&self, window: WindowId, deadline: Instant) -> Result<()> {
        self.begin(deadline);
        self.ask_manager(window, "maximising a window", |states| {
            if states.contains(&self.atoms._NET_WM_STATE_HIDDEN) {
                self.wire.map_window(window.0)?;
            }
            self.change_state(
                window.0,
                true,
                [self.atoms._NET_WM_STATE_MAXIMIZED_VERT, self.atoms._NET_WM_STATE_MAXIMIZED_HORZ],
            )
        })
    }

    /// Asks the window manager to bring a minimised window back; one that is not minimised loses its maximised and
    /// full-screen states.
    ///
    /// Four round trips.
    ///
    /// # Errors
    /// `Gone`, `Unsupported` without a window manager, `Timeout`, `Lost`.
    pub fn restore(&self, window: WindowId, deadline: Instant) -> Result<()> {
        self.begin(deadline);
        self.ask_manager(window, "restoring a window", |states| {
            if states.contains(&self.atoms._NET_WM_STATE_HIDDEN) {
                // ICCCM 4.1.4: mapping it is how an iconic window asks to come back. The window manager gets this as
                // a request, and unlike _NET_ACTIVE_WINDOW it need not move the focus.
                self.wire.map_window(window.0)?;
                return Ok(());
            }
            self.change_state(window.0, false, [self.atoms._NET_WM_STATE_FULLSCREEN, 0])?;
            self.change_state(
                window.0,
                false,
                [self.atoms._NET_WM_STATE_MAXIMIZED_VERT, self.atoms._NET_WM_STATE_MAXIMIZED_HORZ],
            )
        })
    }

    fn change_state(&self, window: Xid, add: bool, states: [u32; 2]) -> Outcome<()> {
        self.tell_root(
            window,
            self.atoms._NET_WM_STATE,
            [u32::from(add), states[0], states[1], SOURCE_PAGER, 0],
        )
    }

    fn ask_manager(
        &self,
        window: WindowId,
        doing: &'static str,
        ask: impl FnOnce(&[u32]) -> Outcome<()>,
    ) -> Result<()> {
        let attempt = || -> Outcome<bool> {
            let geometry = self.wire.get_geometry(window.0)?;
            let states = self.ask_property(window.0, self.atoms._NET_WM_STATE)?;
            geometry.reply()?;
            let states = words(present(states.reply())?);
            if !self.window_manager()?.is_alive {
                return Ok(false);
            }
            ask(&states)?;
            self.sync()?;
            Ok(true)
        };
        match attempt() {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(WindowSystemError::Unsupported { what: format!("{doing} without a window manager") })
            }
            Err(failure) => Err(failure.on(window, doing)),
        }
    }

    /// Sends the window manager a message about `window`.
    pub(super) fn tell_root(&self, window: Xid, kind: u32, data: [u32; 5]) -> Outcome<()> {
        let event = ClientMessageEvent::new(32, window, kind, data);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.wire.send_event(false, self.root, mask, event)?;
        Ok(())
    }

    /// Sends the application a message.
    pub(super) fn tell_window(&self, window: Xid, kind: u32, data: [u32; 5]) -> Outcome<()> {
        let event = ClientMessageEvent::new(32, window, kind, data);
        self.wire.send_event(false, window, EventMask::NO_EVENT, event)?;
        Ok(())
    }

    /// Whether the window answers `_NET_WM_PING`; see the typing engine, which uses it as a barrier.
    pub(super) fn answers_ping(&self, window: Xid) -> Outcome<bool> {
        let protocols = self.ask_property(window, self.atoms.WM_PROTOCOLS)?;
        Ok(words(present(protocols.reply())?).contains(&self.atoms._NET_WM_PING))
    }
}

/// Outer area of a child of the root, its border included.
pub(super) fn outer_area(geometry: &GetGeometryReply) -> Rectangle {
    let border = u32::from(geometry.border_width);
    Rectangle::new(
        geometry.x.into(),
        geometry.y.into(),
        u32::from(geometry.width) + 2 * border,
        u32::from(geometry.height) + 2 * border,
    )
}

/// A property of 32-bit items; empty when it is absent or of another format.
pub(super) fn words(reply: Option<GetPropertyReply>) -> Vec<u32> {
    reply.and_then(|reply| reply.value32().map(Iterator::collect)).unwrap_or_default()
}

fn extents(words: &[u32]) -> Option<Extents> {
    match *words {
        [left, right, top, bottom, ..] => {
            // No screen is that large: a client wrote rubbish.
            let is_sane = [left, right, top, bottom].iter().all(|width| *width < 4096);
            is_sane.then_some(Extents { left, right, top, bottom })
        }
        _ => None,
    }
}

/// What the user sees as the window.
fn frame_area(
    client: Rectangle,
    decoration: Option<Extents>,
    shadow: Option<Extents>,
    around: Option<Rectangle>,
) -> Rectangle {
    let shadow = shadow.unwrap_or_default();
    match (decoration, around) {
        (Some(decoration), _) => grow(client, decoration, shadow),
        // The frame may have invisible resize borders; only without the extents it is the best guess.
        (None, Some(frame)) if shadow == Extents::default() => frame,
        (None, _) => grow(client, Extents::default(), shadow),
    }
}

fn grow(area: Rectangle, outside: Extents, inside: Extents) -> Rectangle {
    let sum = |length: u32, out: u32, cut: u32| length.saturating_add(out).saturating_sub(cut);
    Rectangle::new(
        area.x.saturating_sub_unsigned(outside.left).saturating_add_unsigned(inside.left),
        area.y.saturating_sub_unsigned(outside.top).saturating_add_unsigned(inside.top),
        sum(area.width, outside.left + outside.right, inside.left + inside.right),
        sum(area.height, outside.top + outside.bottom, inside.top + inside.bottom),
    )
}

/// `WM_CLASS` is two strings, each ended by NUL.
fn split_class(value: &[u8]) -> (String, String) {
    let mut parts = value.split(|byte| *byte == 0).map(decode_latin_or_utf8);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

fn decode_text(value: &[u8], kind: u32, utf8: u32) -> String {
    let value = value.split(|byte| *byte == 0).next().unwrap_or_default();
    if kind == utf8 {
        return String::from_utf8_lossy(value).into_owned();
    }
    decode_latin_or_utf8(value)
}

/// Old string properties are Latin-1 by the book and UTF-8 in practice.
fn decode_latin_or_utf8(value: &[u8]) -> String {
    std::str::from_utf8(value)
        .map_or_else(|_| value.iter().map(|byte| char::from(*byte)).collect(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_has_two_parts_and_survives_garbage() {
        assert_eq!(split_class(b"gedit\0Gedit\0"), ("gedit".to_owned(), "Gedit".to_owned()));
        assert_eq!(split_class(b"only"), ("only".to_owned(), String::new()));
        assert_eq!(split_class(b""), (String::new(), String::new()));
        assert_eq!(split_class(b"\xe9\0x\0"), ("\u{e9}".to_owned(), "x".to_owned()));
    }

    #[test]
    fn old_titles_are_latin_or_utf8() {
        assert_eq!(decode_text("Grüße".as_bytes(), 31, 99), "Grüße");
        assert_eq!(decode_text(b"Gr\xfc\xdfe", 31, 99), "Grüße");
        assert_eq!(decode_text(b"Gr\xfc", 99, 99), "Gr\u{fffd}");
    }

    #[test]
    fn frame_has_decorations_and_no_shadow() {
        let client = Rectangle::new(100, 100, 200, 100);
        let decoration = Extents { left: 1, right: 1, top: 20, bottom: 4 };
        assert_eq!(frame_area(client, Some(decoration), None, None), Rectangle::new(99, 80, 202, 124));
        let shadow = Extents { left: 26, right: 26, top: 23, bottom: 29 };
        assert_eq!(
            frame_area(client, Some(Extents::default()), Some(shadow), None),
            Rectangle::new(126, 123, 148, 48)
        );
        let around = Rectangle::new(95, 75, 210, 130);
        assert_eq!(frame_area(client, None, None, Some(around)), around);
        assert_eq!(frame_area(client, None, None, None), client);
    }

    #[test]
    fn absurd_extents_are_ignored() {
        assert_eq!(extents(&[0, 0, 4_000_000_000, 0]), None);
        assert_eq!(extents(&[1, 2]), None);
    }
}
