//! The scripted desktop itself: what is there, and how a script changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use agent_desktop_core::action::{Capabilities, Capability, Direction, MouseButton};
use agent_desktop_core::geometry::{Point, Rect};
use agent_desktop_core::key::{Key, Modifier};
use agent_desktop_core::platform::{
    App, Input, LaunchRequest, Operation, Presentation, Stop, Surface, Window, WindowOperation,
};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::{State, States};
use agent_desktop_core::tree::{Gaps, Handle, Node};

use super::widget::{Change, Effect, Widget};

/// Pixels that a line of scrolling moves.
const LINE: f64 = 24.0;

/// A method of the platform that touches applications, for scripts that act on the n-th call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each variant is the method of its name")]
pub enum Call {
    Apps,
    Windows,
    Surfaces,
    Observe,
    Read,
    Ancestors,
    HitTest,
    Perform,
    Input,
    WindowOperation,
    Launch,
    Close,
    Capture,
}

/// Something that reached the desktop.
#[derive(Clone, Debug)]
pub enum Deed {
    /// An operation on the widget of this name (its role, if it has none).
    Operation(String, Operation),
    /// Physical input.
    Input(Input),
    /// An operation on the window of this title.
    Window(String, WindowOperation),
    /// A start.
    Launch(LaunchRequest),
    /// A request to quit, or an end by force (true), for the application of this name.
    Close(String, bool),
}

/// An application that exists and may run.
pub(crate) struct FakeApp {
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) instance: u32,
    pub(crate) is_running: bool,
    pub(crate) is_hung: bool,
    pub(crate) close: Effect,
}

impl FakeApp {
    pub(crate) fn process_instance(&self) -> String {
        format!("fake:{}:{}", self.pid, self.instance)
    }

    pub(crate) fn as_app(&self) -> App {
        App {
            name: self.name.clone(),
            pid: self.pid,
            process_instance: Some(self.process_instance()),
            application_id: None,
            presentation: Some(Presentation::Foreground),
            toolkit: Some("fake".to_owned()),
            handle: Some(Handle::new(format!("app/{}", self.pid))),
            accessible: Some(true),
        }
    }
}

pub(crate) struct FakeWindow {
    pub(crate) id: String,
    pub(crate) app: usize,
    pub(crate) root: Handle,
    pub(crate) bounds: Rect,
    pub(crate) is_focused: bool,
    pub(crate) is_modal: bool,
    pub(crate) is_maximized: bool,
    pub(crate) is_minimized: bool,
}

pub(crate) struct FakeSurface {
    pub(crate) app: usize,
    pub(crate) kind: &'static str,
    pub(crate) root: Handle,
}

pub(crate) struct Live {
    pub(crate) node: Node,
    pub(crate) app: usize,
    pub(crate) parent: Option<Handle>,
    pub(crate) children: Vec<Handle>,
    pub(crate) effect: Effect,
    pub(crate) caret: Option<u32>,
    pub(crate) selection: Option<(u32, u32)>,
    on_activate: Option<Change>,
    menu: Vec<Widget>,
    pub(crate) virtual_total: Option<u32>,
}

struct Cover {
    bounds: Rect,
    role: Role,
    name: String,
}

/// The scripted desktop. Widgets are named by their handle, or else by their accessible name.
///
/// # Panics
/// Every function that takes the name of a widget, a window or an application panics when there is none or several: a
/// script that misses its target proves nothing.
pub struct World {
    pub(crate) now: Instant,
    pub(crate) apps: Vec<FakeApp>,
    /// Topmost first.
    pub(crate) windows: Vec<FakeWindow>,
    pub(crate) surfaces: Vec<FakeSurface>,
    pub(crate) widgets: BTreeMap<String, Live>,
    covers: Vec<Cover>,
    pub(crate) deeds: Vec<Deed>,
    /// What comes of physical input.
    pub input_effect: Effect,
    /// Ends every observation after so many nodes, for this reason.
    pub stop_after: Option<(usize, Stop)>,
    /// Whether observations say that the application does not publish its content yet.
    pub needs_activation: bool,
    pub(crate) later: Vec<(Instant, Change)>,
    activated: BTreeMap<String, u32>,
    is_all_selected: bool,
    pointer: Option<Point>,
    last_number: u32,
}

impl fmt::Debug for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("World").field("deeds", &self.deeds).finish_non_exhaustive()
    }
}

impl World {
    pub(crate) fn new(now: Instant) -> World {
        World {
            now,
            apps: Vec::new(),
            windows: Vec::new(),
            surfaces: Vec::new(),
            widgets: BTreeMap::new(),
            covers: Vec::new(),
            deeds: Vec::new(),
            input_effect: Effect::Works,
            stop_after: None,
            needs_activation: false,
            later: Vec::new(),
            activated: BTreeMap::new(),
            is_all_selected: false,
            pointer: None,
            last_number: 0,
        }
    }

    fn number(&mut self) -> u32 {
        self.last_number += 1;
        self.last_number
    }

    // --- Looking

    /// The handle of a widget, by handle or name.
    #[track_caller]
    pub fn handle(&self, name: &str) -> Handle {
        if self.widgets.contains_key(name) {
            return Handle::new(name);
        }
        let mut found = self.widgets.values().filter(|widget| widget.node.name.as_deref() == Some(name));
        match (found.next(), found.next()) {
            (Some(widget), None) => widget.node.handle.clone(),
            (None, _) => panic!("the fake desktop has no widget {name:?}"),
            (Some(_), Some(_)) => panic!("the fake desktop has several widgets {name:?}; give them handles"),
        }
    }

    /// A widget as it is now.
    #[track_caller]
    pub fn node(&self, name: &str) -> &Node {
        &self.widgets[self.handle(name).as_str()].node
    }

    /// A widget, to change anything about it.
    #[track_caller]
    pub fn node_mut(&mut self, name: &str) -> &mut Node {
        let handle = self.handle(name);
        &mut self.live_mut(&handle).node
    }

    /// How often a widget was activated, by whatever way, wherever the reply went.
    #[track_caller]
    pub fn activations(&self, name: &str) -> u32 {
        self.activated.get(self.handle(name).as_str()).copied().unwrap_or(0)
    }

    /// What reached the desktop, in order.
    pub fn deeds(&self) -> &[Deed] {
        &self.deeds
    }

    /// Where the pointer is, if it was moved.
    pub fn pointer(&self) -> Option<Point> {
        self.pointer
    }

    pub(crate) fn live(&self, handle: &Handle) -> Option<&Live> {
        self.widgets.get(handle.as_str()).filter(|widget| self.apps[widget.app].is_running)
    }

    fn live_mut(&mut self, handle: &Handle) -> &mut Live {
        self.widgets.get_mut(handle.as_str()).expect("the widget is there")
    }

    #[track_caller]
    fn app_index(&self, name: &str) -> usize {
        self.apps
            .iter()
            .position(|app| app.name == name)
            .unwrap_or_else(|| panic!("the fake desktop has no application {name:?}"))
    }

    pub(crate) fn index_of_app(&self, app: &App) -> Option<usize> {
        self.apps.iter().position(|own| {
            own.is_running
                && own.pid == app.pid
                && app.process_instance.as_ref().is_none_or(|instance| *instance == own.process_instance())
        })
    }

    #[track_caller]
    fn window_index(&self, title: &str) -> usize {
        self.windows
            .iter()
            .position(|window| self.title(window) == title || window.id == title)
            .unwrap_or_else(|| panic!("the fake desktop has no window {title:?}"))
    }

    pub(crate) fn title(&self, window: &FakeWindow) -> String {
        self.live(&window.root).and_then(|root| root.node.name.clone()).unwrap_or_default()
    }

    pub(crate) fn as_window(&self, window: &FakeWindow) -> Window {
        let app = &self.apps[window.app];
        Window {
            id: window.id.clone(),
            title: self.title(window),
            app_name: app.name.clone(),
            pid: app.pid,
            process_instance: Some(app.process_instance()),
            bounds: Some(window.bounds),
            frame: Some(window.bounds),
            is_focused: window.is_focused,
            minimized: Some(window.is_minimized),
            maximized: Some(window.is_maximized),
            visible: Some(!window.is_minimized),
            is_modal: window.is_modal,
            handle: Some(window.root.clone()),
            accessible: Some(true),
        }
    }

    pub(crate) fn as_surface(&self, surface: &FakeSurface) -> Surface {
        let root = self.live(&surface.root);
        Surface {
            id: surface.root.as_str().to_owned(),
            kind: surface.kind,
            title: root.and_then(|root| root.node.name.clone()),
            item_count: root.map(|root| root.children.len() as u32),
            handle: surface.root.clone(),
            is_hidden: false,
        }
    }

    /// Ancestors, nearest first.
    pub(crate) fn ancestors(&self, handle: &Handle) -> Vec<Handle> {
        std::iter::successors(self.live(handle).and_then(|widget| widget.parent.clone()), |parent| {
            self.live(parent).and_then(|widget| widget.parent.clone())
        })
        .collect()
    }

    /// The facts of a widget as they can be read now: what cannot be read is left out.
    pub(crate) fn reading(&self, handle: &Handle, window: Rect) -> Option<Node> {
        let live = self.live(handle)?;
        let mut node = live.node.clone();
        if let Some(parent) = live.parent.as_ref().and_then(|parent| self.live(parent)) {
            node.index_in_parent =
                parent.children.iter().position(|child| child == handle).unwrap_or(0) as u32;
        }
        if node.bounds.is_some_and(|bounds| window.intersection(&bounds).is_none()) {
            node.states.insert(State::Offscreen);
        }
        if node.states.has(State::Secure) {
            node.value = None;
        }
        let Gaps { basics, value, bounds, native_id, actions } = node.gaps;
        if basics {
            (node.role, node.name, node.description, node.states) = (Role::Unknown, None, None, States::NONE);
        }
        if value {
            node.value = None;
        }
        if bounds {
            node.bounds = None;
        }
        if native_id {
            node.native_id = None;
        }
        if actions {
            node.capabilities = Capabilities::NONE;
        }
        Some(node)
    }

    // --- Building

    pub(crate) fn add_app(&mut self, name: &str, is_running: bool) -> usize {
        let pid = 1000 + self.number();
        self.apps.push(FakeApp {
            name: name.to_owned(),
            pid,
            instance: 1,
            is_running,
            is_hung: false,
            close: Effect::Works,
        });
        self.apps.len() - 1
    }

    pub(crate) fn add_window(&mut self, app: usize, title: &str, content: Vec<Widget>) {
        let offset = 40 * self.windows.len() as i32;
        let bounds = Rect::from_pixels(offset, offset, 800, 600);
        let root = self.add_root(app, Widget::new(Role::Window, title).children(content), bounds);
        let id = format!("w-{}", self.number());
        let is_focused = self.windows.is_empty();
        let window = FakeWindow {
            id,
            app,
            root,
            bounds,
            is_focused,
            is_modal: false,
            is_minimized: false,
            is_maximized: false,
        };
        self.windows.push(window);
    }

    fn add_root(&mut self, app: usize, widget: Widget, place: Rect) -> Handle {
        let mut row = place.y + 30.0;
        let handle = self.add_widget(app, None, widget, place.x + 10.0, &mut row);
        self.live_mut(&handle).node.bounds.get_or_insert(place);
        handle
    }

    /// Adds a widget and all below it, laid out one row after the other.
    fn add_widget(
        &mut self,
        app: usize,
        parent: Option<Handle>,
        widget: Widget,
        x: f64,
        row: &mut f64,
    ) -> Handle {
        let spelling = widget.handle.unwrap_or_else(|| {
            let number = self.number();
            format!("{}/{number}", self.apps[app].pid)
        });
        let handle = Handle::new(spelling.as_str());
        let is_root = parent.is_none();
        let mut node = widget.node;
        node.handle = handle.clone();
        let top = *row;
        let live = Live {
            node,
            app,
            parent,
            caret: None,
            selection: None,
            children: Vec::new(),
            effect: widget.effect,
            on_activate: widget.on_activate,
            menu: widget.menu,
            virtual_total: widget.virtual_total,
        };
        assert!(self.widgets.insert(spelling, live).is_none(), "two widgets have the handle {handle:?}");
        let is_leaf = widget.children.is_empty();
        let children = widget
            .children
            .into_iter()
            .map(|child| self.add_widget(app, Some(handle.clone()), child, x, row))
            .collect();
        if is_leaf && !is_root {
            *row += LINE;
        }
        let (bottom, has_place) = (*row, widget.has_place && !is_root);
        let live = self.live_mut(&handle);
        live.children = children;
        if has_place {
            live.node.bounds.get_or_insert(Rect {
                x,
                y: top,
                width: 200.0,
                height: (bottom - top - 4.0).max(1.0),
            });
        }
        handle
    }

    // --- Changing

    /// Gives a widget another name.
    #[track_caller]
    pub fn rename(&mut self, name: &str, to: &str) {
        self.node_mut(name).name = Some(to.to_owned());
    }

    /// Takes a widget away, with all below it.
    #[track_caller]
    pub fn remove(&mut self, name: &str) {
        let handle = self.handle(name);
        if let Some(parent) = self.widgets[handle.as_str()].parent.clone() {
            self.live_mut(&parent).children.retain(|child| *child != handle);
        }
        self.forget(&handle);
    }

    fn forget(&mut self, handle: &Handle) {
        if let Some(widget) = self.widgets.remove(handle.as_str()) {
            for child in widget.children {
                self.forget(&child);
            }
        }
    }

    /// Puts a widget elsewhere on the desktop, with all below it.
    #[track_caller]
    pub fn move_to(&mut self, name: &str, x: f64, y: f64) {
        let handle = self.handle(name);
        let bounds =
            self.widgets[handle.as_str()].node.bounds.unwrap_or(Rect { x, y, width: 200.0, height: 20.0 });
        self.live_mut(&handle).node.bounds = Some(bounds);
        self.shift(&handle, x - bounds.x, y - bounds.y);
    }

    fn shift(&mut self, handle: &Handle, dx: f64, dy: f64) {
        let live = self.live_mut(handle);
        live.node.bounds = live.node.bounds.map(|bounds| bounds.offset(dx, dy));
        for child in live.children.clone() {
            self.shift(&child, dx, dy);
        }
    }

    /// Makes a widget the last child of another one.
    #[track_caller]
    pub fn reparent(&mut self, name: &str, parent: &str) {
        let (handle, parent) = (self.handle(name), self.handle(parent));
        if let Some(old) = self.live_mut(&handle).parent.replace(parent.clone()) {
            self.live_mut(&old).children.retain(|child| *child != handle);
        }
        self.live_mut(&parent).children.push(handle);
    }

    /// Adds a widget as the last child of another one.
    #[track_caller]
    pub fn insert(&mut self, parent: &str, widget: Widget) {
        let parent = self.handle(parent);
        let live = &self.widgets[parent.as_str()];
        let place = live.node.bounds.unwrap_or_default();
        let app = live.app;
        let mut row = live
            .children
            .iter()
            .filter_map(|child| self.widgets[child.as_str()].node.bounds)
            .map(|bounds| bounds.y + LINE)
            .fold(place.y, f64::max);
        let child = self.add_widget(app, Some(parent.clone()), widget, place.x, &mut row);
        self.live_mut(&parent).children.push(child);
    }

    /// Replaces a widget by an equal one with another handle, as toolkits do that build their content anew.
    #[track_caller]
    pub fn renew(&mut self, name: &str) -> Handle {
        let old = self.handle(name);
        let new = Handle::new(format!("{}/new{}", old.as_str(), self.number()));
        let mut live = self.widgets.remove(old.as_str()).expect("the widget is there");
        live.node.handle = new.clone();
        if let Some(parent) = live.parent.clone() {
            let children = &mut self.live_mut(&parent).children;
            children.iter_mut().filter(|child| **child == old).for_each(|child| *child = new.clone());
        }
        for child in &live.children {
            self.live_mut(child).parent = Some(new.clone());
        }
        for root in self.windows.iter_mut().map(|window| &mut window.root).filter(|root| **root == old) {
            *root = new.clone();
        }
        self.widgets.insert(new.as_str().to_owned(), live);
        new
    }

    /// Sets or clears a state.
    #[track_caller]
    pub fn set_state(&mut self, name: &str, state: State, on: bool) {
        self.node_mut(name).states.set(state, on);
    }

    /// Disables a widget.
    #[track_caller]
    pub fn disable(&mut self, name: &str) {
        self.set_state(name, State::Disabled, true);
    }

    /// Enables a widget.
    #[track_caller]
    pub fn enable(&mut self, name: &str) {
        self.set_state(name, State::Disabled, false);
    }

    /// Sets a value.
    #[track_caller]
    pub fn set_value(&mut self, name: &str, value: &str) {
        let handle = self.handle(name);
        self.write(&handle, value.to_owned());
    }

    /// What comes of operations on a widget from now on.
    #[track_caller]
    pub fn set_effect(&mut self, name: &str, effect: Effect) {
        let handle = self.handle(name);
        self.live_mut(&handle).effect = effect;
    }

    /// Puts something in front of a widget, so that a pointer does not reach it.
    #[track_caller]
    pub fn cover(&mut self, name: &str, role: Role, by: &str) {
        let bounds = self.node(name).bounds.expect("what is covered has a place");
        self.covers.push(Cover { bounds, role, name: by.to_owned() });
    }

    /// Takes away everything that [`World::cover`] put somewhere.
    pub fn uncover(&mut self) {
        self.covers.clear();
    }

    /// Opens another window of an application, on top and with the focus.
    #[track_caller]
    pub fn open_window(&mut self, app: &str, title: &str, content: impl IntoIterator<Item = Widget>) {
        let app = self.app_index(app);
        self.add_window(app, title, content.into_iter().collect());
        let window = self.windows.pop().expect("it was just added");
        self.windows.insert(0, window);
        self.focus_index(0);
    }

    /// Makes a window modal.
    #[track_caller]
    pub fn make_modal(&mut self, title: &str) {
        let index = self.window_index(title);
        self.windows[index].is_modal = true;
    }

    /// Closes a window.
    #[track_caller]
    pub fn close_window(&mut self, title: &str) {
        let window = self.windows.remove(self.window_index(title));
        self.forget(&window.root);
        if window.is_focused && !self.windows.is_empty() {
            self.focus_index(0);
        }
    }

    /// Gives a window the keyboard and puts it on top.
    #[track_caller]
    pub fn focus_window(&mut self, title: &str) {
        let window = self.windows.remove(self.window_index(title));
        self.windows.insert(0, window);
        self.focus_index(0);
    }

    fn focus_index(&mut self, focused: usize) {
        for (index, window) in self.windows.iter_mut().enumerate() {
            window.is_focused = index == focused;
        }
    }

    /// Minimizes a window, or brings it back.
    #[track_caller]
    pub fn minimize(&mut self, title: &str, is_minimized: bool) {
        let index = self.window_index(title);
        self.windows[index].is_minimized = is_minimized;
    }

    /// Opens something transient: `menu`, `context_menu`, `sheet`, `popover` or `alert`.
    #[track_caller]
    pub fn open_surface(
        &mut self,
        app: &str,
        kind: &'static str,
        title: &str,
        content: impl IntoIterator<Item = Widget>,
    ) {
        let app = self.app_index(app);
        self.add_surface(app, kind, title, content.into_iter().collect());
    }

    fn add_surface(&mut self, app: usize, kind: &'static str, title: &str, content: Vec<Widget>) {
        let role = match kind {
            "menu" | "context_menu" => Role::Menu,
            "sheet" => Role::Sheet,
            "popover" => Role::Popover,
            _ => Role::Alert,
        };
        let place = Rect::from_pixels(300, 100, 220, 24 * content.len() as i32 + 40);
        let root = self.add_root(app, Widget::new(role, title).children(content), place);
        self.surfaces.push(FakeSurface { app, kind, root });
    }

    /// Closes everything transient of an application.
    #[track_caller]
    pub fn close_surfaces(&mut self, app: &str) {
        let app = self.app_index(app);
        self.close_surfaces_of(app);
    }

    fn close_surfaces_of(&mut self, app: usize) {
        for surface in std::mem::take(&mut self.surfaces) {
            if surface.app == app {
                self.forget(&surface.root);
            } else {
                self.surfaces.push(surface);
            }
        }
    }

    /// Stops an application from answering; windows are still listed. Calls to it end at their deadline.
    #[track_caller]
    pub fn hang(&mut self, app: &str) {
        let app = self.app_index(app);
        self.apps[app].is_hung = true;
    }

    /// Lets an application answer again.
    #[track_caller]
    pub fn recover(&mut self, app: &str) {
        let app = self.app_index(app);
        self.apps[app].is_hung = false;
    }

    /// Ends an application.
    #[track_caller]
    pub fn die(&mut self, app: &str) {
        let app = self.app_index(app);
        self.end(app);
    }

    pub(crate) fn end(&mut self, app: usize) {
        self.apps[app].is_running = false;
        self.windows.retain(|window| window.app != app);
        self.surfaces.retain(|surface| surface.app != app);
        self.widgets.retain(|_, widget| widget.app != app);
        if !self.windows.is_empty() && !self.windows.iter().any(|window| window.is_focused) {
            self.focus_index(0);
        }
    }

    /// Ends an application and starts it again with the same process number, the same window ids and the same handles:
    /// only the process instance tells.
    #[track_caller]
    pub fn restart(&mut self, app: &str) {
        let app = self.app_index(app);
        self.apps[app].instance += 1;
        self.apps[app].is_hung = false;
    }

    /// What comes of asking an application to quit.
    #[track_caller]
    pub fn set_close_effect(&mut self, app: &str, effect: Effect) {
        let app = self.app_index(app);
        self.apps[app].close = effect;
    }

    /// Makes a change after some time.
    pub fn later(&mut self, delay: Duration, change: impl Fn(&mut World) + 'static) {
        self.later.push((self.now + delay, std::rc::Rc::new(change)));
    }

    // --- Effects

    /// Does what an operation is meant to do. `mangled`: what texts and numbers become instead.
    pub(crate) fn apply(&mut self, handle: &Handle, operation: &Operation, mangled: Option<&str>) {
        if self.live(handle).is_none() {
            return; // gone before a late effect
        }
        match operation {
            Operation::Activate => self.activate(handle),
            Operation::ShowMenu => self.show_menu(handle, "context_menu"),
            Operation::Focus => self.focus(handle),
            Operation::SetText(text) => self.write(handle, mangled.unwrap_or(text).to_owned()),
            Operation::InsertText(text) => {
                let before = self.live(handle).and_then(|live| live.node.value.clone()).unwrap_or_default();
                let is_replaced = std::mem::take(&mut self.is_all_selected);
                let before = if is_replaced { String::new() } else { before };
                self.write(handle, before + mangled.unwrap_or(text));
            }
            Operation::SetCaret(offset) => self.live_mut(handle).caret = Some(*offset),
            Operation::SelectText(start, end) => self.live_mut(handle).selection = Some((*start, *end)),
            Operation::ReplaceText { start, end, text } => {
                let before = self.live(handle).and_then(|live| live.node.value.clone()).unwrap_or_default();
                let head = before.chars().take(*start as usize);
                let tail = before.chars().skip(*end as usize);
                let after = head.chain(mangled.unwrap_or(text).chars()).chain(tail).collect();
                self.write(handle, after);
            }
            Operation::SetNumber(number) => {
                let number = mangled.and_then(|text| text.parse().ok()).unwrap_or(*number);
                let live = self.live_mut(handle);
                if let Some(value) = &mut live.node.number {
                    value.current = number.clamp(value.minimum, value.maximum);
                    live.node.value = Some(value.current.to_string());
                }
            }
            Operation::Toggle => self.toggle(handle),
            Operation::SetExpanded(open) => {
                self.live_mut(handle).node.states.set(State::Expanded, *open);
                if *open {
                    self.show_menu(handle, "menu");
                } else {
                    let app = self.widgets[handle.as_str()].app;
                    self.close_surfaces_of(app);
                }
            }
            Operation::Select => self.select(handle, State::Selected),
            Operation::Scroll(direction) => {
                let (dx, dy) = match direction {
                    Direction::Up => (0.0, LINE),
                    Direction::Down => (0.0, -LINE),
                    Direction::Left => (LINE, 0.0),
                    Direction::Right => (-LINE, 0.0),
                };
                for child in self.widgets[handle.as_str()].children.clone() {
                    self.shift(&child, dx, dy);
                }
            }
            Operation::ScrollIntoView => {
                let root = self.ancestors(handle).pop();
                let place = root.and_then(|root| self.live(&root).and_then(|live| live.node.bounds));
                if let (Some(place), Some(bounds)) = (place, self.widgets[handle.as_str()].node.bounds) {
                    self.shift(handle, place.x + 10.0 - bounds.x, place.y + 30.0 - bounds.y);
                }
                self.live_mut(handle).node.states.remove(State::Offscreen);
            }
        }
    }

    fn write(&mut self, handle: &Handle, text: String) {
        let node = &mut self.live_mut(handle).node;
        node.text_length = Some(text.chars().count() as u32);
        if let (Some(number), Ok(current)) = (&mut node.number, text.parse()) {
            number.current = current;
        }
        node.value = (!text.is_empty()).then_some(text);
    }

    fn activate(&mut self, handle: &Handle) {
        *self.activated.entry(handle.as_str().to_owned()).or_default() += 1;
        let live = &self.widgets[handle.as_str()];
        let (role, app, change) = (live.node.role, live.app, live.on_activate.clone());
        match role {
            Role::CheckBox | Role::Switch | Role::RadioButton => self.toggle(handle),
            Role::ComboBox | Role::MenuButton => {
                self.live_mut(handle).node.states.insert(State::Expanded);
                self.show_menu(handle, "menu");
            }
            Role::MenuItem => self.choose(handle, app),
            Role::Option | Role::TreeItem | Role::Tab => self.select(handle, State::Selected),
            _ => {}
        }
        if let Some(change) = change {
            change(self);
        }
    }

    /// An item of an open list becomes the value of the combo box that opened it; any menu closes.
    fn choose(&mut self, item: &Handle, app: usize) {
        let root = self.ancestors(item).pop();
        let opener = root.as_ref().and_then(|root| root.as_str().strip_suffix("/menu")).map(Handle::new);
        let name = self.widgets[item.as_str()].node.name.clone();
        if let (Some(opener), Some(name)) = (opener, name)
            && self.live(&opener).is_some_and(|live| live.node.role == Role::ComboBox)
        {
            self.write(&opener, name);
            self.live_mut(&opener).node.states.remove(State::Expanded);
        }
        self.close_surfaces_of(app);
    }

    fn show_menu(&mut self, handle: &Handle, kind: &'static str) {
        let live = &self.widgets[handle.as_str()];
        let root = format!("{}/menu", handle.as_str());
        if live.menu.is_empty() || self.widgets.contains_key(&root) {
            return;
        }
        let (app, items) = (live.app, live.menu.clone());
        let place = Rect::from_pixels(300, 100, 220, 24 * items.len() as i32 + 40);
        let root = self.add_root(app, Widget::new(Role::Menu, "").handle(&root).children(items), place);
        self.surfaces.push(FakeSurface { app, kind, root });
    }

    fn focus(&mut self, handle: &Handle) {
        for live in self.widgets.values_mut() {
            live.node.states.remove(State::Focused);
        }
        self.is_all_selected = false;
        self.live_mut(handle).node.states.insert(State::Focused);
    }

    fn toggle(&mut self, handle: &Handle) {
        let live = self.live_mut(handle);
        if live.node.role == Role::RadioButton {
            self.select(handle, State::Checked);
        } else {
            let state = if live.node.role == Role::Button { State::Pressed } else { State::Checked };
            let is_on = live.node.states.has(state);
            live.node.states.set(state, !is_on);
            live.node.states.remove(State::Indeterminate);
        }
    }

    /// Of a widget and its siblings, only the widget is in this state.
    fn select(&mut self, handle: &Handle, state: State) {
        let siblings = match self.widgets[handle.as_str()].parent.clone() {
            Some(parent) => self.widgets[parent.as_str()].children.clone(),
            None => Vec::new(),
        };
        for sibling in siblings {
            self.live_mut(&sibling).node.states.remove(state);
        }
        self.live_mut(handle).node.states.insert(state);
    }

    // --- Physical input

    /// What is in front at a point: a cover, or the innermost widget.
    pub(crate) fn front(&self, point: Point) -> Front {
        if let Some(cover) = self.covers.iter().find(|cover| cover.bounds.contains(point)) {
            return Front::Cover(cover.role, cover.name.clone(), cover.bounds);
        }
        let surfaces = self.surfaces.iter().rev().map(|surface| &surface.root);
        let windows = self.windows.iter().filter(|window| !window.is_minimized).map(|window| &window.root);
        for root in surfaces.chain(windows) {
            if let Some(handle) = self.innermost(root, point) {
                return Front::Widget(handle);
            }
        }
        Front::Nothing
    }

    fn innermost(&self, handle: &Handle, point: Point) -> Option<Handle> {
        let live = self.live(handle)?;
        if live.node.states.has(State::Hidden)
            || !live.node.bounds.is_some_and(|bounds| bounds.contains(point))
        {
            return None;
        }
        // Later siblings lie on top.
        let inner = live.children.iter().rev().find_map(|child| self.innermost(child, point));
        inner.or_else(|| Some(handle.clone()))
    }

    pub(crate) fn apply_input(&mut self, input: &Input) {
        match input {
            Input::Move(at) => self.pointer = Some(*at),
            Input::Click { at, button, count, .. } => {
                self.pointer = Some(*at);
                let Front::Widget(handle) = self.front(*at) else { return };
                if self.widgets[handle.as_str()].node.states.has(State::Disabled) {
                    return;
                }
                if self.widgets[handle.as_str()].node.capabilities.has(Capability::SetFocus) {
                    self.focus(&handle);
                }
                for _ in 0..*count {
                    match button {
                        MouseButton::Right => self.show_menu(&handle, "context_menu"),
                        _ if self.live(&handle).is_some() => self.activate(&handle),
                        _ => {}
                    }
                }
            }
            Input::Wheel { at, dy, dx, .. } => {
                self.pointer = Some(*at);
                let Front::Widget(handle) = self.front(*at) else { return };
                let mut line = std::iter::once(handle.clone()).chain(self.ancestors(&handle));
                let scrolls =
                    |handle: &Handle| self.widgets[handle.as_str()].node.capabilities.has(Capability::Scroll);
                if let Some(handle) = line.find(scrolls) {
                    for child in self.widgets[handle.as_str()].children.clone() {
                        self.shift(&child, f64::from(*dx) * LINE, f64::from(*dy) * LINE);
                    }
                }
            }
            Input::Drag { to, .. } => self.pointer = Some(*to),
            Input::Chord(chord) => {
                let focused = self.focused();
                match (chord.modifiers.as_slice(), chord.key) {
                    ([Modifier::Ctrl], Key::Char('a')) => self.is_all_selected = true,
                    ([], Key::Backspace | Key::ForwardDelete) => {
                        if let Some(focused) = focused {
                            self.delete(&focused);
                        }
                    }
                    ([], Key::Escape) => {
                        let apps: BTreeSet<usize> = self.surfaces.iter().map(|surface| surface.app).collect();
                        for app in apps {
                            self.close_surfaces_of(app);
                        }
                    }
                    ([], Key::Space | Key::Return) => {
                        if let Some(focused) = focused {
                            self.activate(&focused);
                        }
                    }
                    _ => {}
                }
            }
            Input::Text(text) => {
                if let Some(focused) = self.focused() {
                    self.apply(&focused, &Operation::InsertText(text.clone()), None);
                }
            }
        }
    }

    fn delete(&mut self, handle: &Handle) {
        let mut text = self.widgets[handle.as_str()].node.value.clone().unwrap_or_default();
        if std::mem::take(&mut self.is_all_selected) {
            text.clear();
        } else {
            text.pop();
        }
        self.write(handle, text);
    }

    fn focused(&self) -> Option<Handle> {
        self.widgets
            .values()
            .find(|live| live.node.states.has(State::Focused))
            .map(|live| live.node.handle.clone())
    }
}

/// What is in front at a point.
pub(crate) enum Front {
    Widget(Handle),
    Cover(Role, String, Rect),
    Nothing,
}
