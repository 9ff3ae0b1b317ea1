//! A scripted desktop: a [`Platform`] made of plain data, on a clock of its own.
//!
//! Tests of the engine run on it, because it can do what no real application does on demand: answer late, lie, lose a
//! reply, rename a button between two calls, end in the middle of an action.
//!
//! ```
//! use std::time::Duration;
//! use agent_desktop_core::platform::{Clock, Platform};
//! use agent_desktop_testkit::fake::{Call, Effect, Fake, button, textfield};
//!
//! let fake = Fake::app("Notes")
//!     .window("Inbox", [button("New"), textfield("Search").value("invoice"), button("Send").effect(Effect::Nothing)])
//!     .build();
//! fake.after(Duration::from_millis(300), |world| world.disable("New"));
//! fake.on(Call::Perform, 1, |world| world.rename("Send", "Sending"));
//!
//! fake.sleep(Duration::from_secs(1)); // takes no time
//! assert_eq!(fake.world(|world| world.activations("New")), 0);
//! ```
//!
//! A deed is recorded in [`World::deeds`] whether or not it had an effect, and an effect is seen in the world whether or
//! not the reply told of it: a test compares both with what the product says.

mod widget;
mod world;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use agent_desktop_core::action::Capability;
use agent_desktop_core::deadline::Deadline;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::geometry::{Point, Rect};
use agent_desktop_core::platform::{
    App, CaptureTarget, Check, CheckState, ClipboardContent, ClipboardForm, ClipboardOffer, Clock,
    DesktopWatch, Display, Examination, Hit, Image, Input, LaunchRequest, Launched, Limits, Notification,
    NotificationAction, NotificationWatch, Observation, Operation, Performed, Permission, Permissions,
    Platform, ProcessState, Reading, Safety, Scope, Statistics, Stop, Surface, SurfaceKind, TextContent,
    TextQuery, Window, WindowOperation,
};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Cut, Handle, NodeId, Tree};

pub use widget::{
    Effect, Widget, button, checkbox, combobox, dialog, group, link, list, menuitem, option, radiobutton,
    slider, text, textfield, treeitem,
};
pub use world::{Call, Deed, World};

use widget::Change;
use world::{FakeApp, Front};

/// Builds a [`FakePlatform`]: applications, and the windows of each.
#[derive(Debug)]
pub struct Fake {
    world: World,
    app: usize,
    origin: Instant,
}

impl Fake {
    /// A desktop without any application.
    pub fn empty() -> FakePlatform {
        let origin = Instant::now();
        FakePlatform::new(World::new(origin), origin)
    }

    /// A desktop with this application; windows that follow are its own.
    pub fn app(name: &str) -> Fake {
        let origin = Instant::now();
        let mut world = World::new(origin);
        let app = world.add_app(name, true);
        Fake { world, app, origin }
    }

    /// Another application; windows that follow are its own.
    #[must_use]
    pub fn and_app(mut self, name: &str) -> Fake {
        self.app = self.world.add_app(name, true);
        self
    }

    /// An application that can be started, and opens one window then.
    #[must_use]
    pub fn and_installed(mut self, name: &str) -> Fake {
        self.app = self.world.add_app(name, false);
        self
    }

    /// A window of the last application. The first of all has the focus.
    #[must_use]
    pub fn window(mut self, title: &str, content: impl IntoIterator<Item = Widget>) -> Fake {
        self.world.add_window(self.app, title, content.into_iter().collect());
        self
    }

    /// The desktop.
    pub fn build(self) -> FakePlatform {
        FakePlatform::new(self.world, self.origin)
    }
}

/// The scripted desktop.
pub struct FakePlatform {
    world: RefCell<World>,
    now: Cell<Instant>,
    origin: Instant,
    latency: Cell<Duration>,
    hooks: RefCell<Vec<(Call, u32, Change)>>,
    calls: RefCell<BTreeMap<Call, u32>>,
    surfaces: Cell<&'static [SurfaceKind]>,
}

impl std::fmt::Debug for FakePlatform {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FakePlatform").field("world", &self.world).finish_non_exhaustive()
    }
}

impl FakePlatform {
    fn new(world: World, origin: Instant) -> FakePlatform {
        const SURFACES: &[SurfaceKind] = &[
            SurfaceKind::Window,
            SurfaceKind::Focused,
            SurfaceKind::Menu,
            SurfaceKind::Sheet,
            SurfaceKind::Popover,
            SurfaceKind::Alert,
        ];
        FakePlatform {
            world: RefCell::new(world),
            now: Cell::new(origin),
            origin,
            latency: Cell::new(Duration::from_micros(100)),
            hooks: RefCell::default(),
            calls: RefCell::default(),
            surfaces: Cell::new(SURFACES),
        }
    }

    /// Looks at the world, or changes it now.
    pub fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world.borrow_mut();
        world.now = self.now.get();
        look(&mut world)
    }

    /// Changes the world after some time.
    pub fn after(&self, delay: Duration, change: impl Fn(&mut World) + 'static) {
        self.world(|world| world.later(delay, change));
    }

    /// Changes the world just before the `nth` call (from 1, counted from the beginning) of this method.
    pub fn on(&self, call: Call, nth: u32, change: impl Fn(&mut World) + 'static) {
        self.hooks.borrow_mut().push((call, nth, Rc::new(change)));
    }

    /// Changes the world just before the next call of this method.
    pub fn on_next(&self, call: Call, change: impl Fn(&mut World) + 'static) {
        self.on(call, self.calls(call) + 1, change);
    }

    /// Changes the time that every call takes; 0.1 ms in the beginning.
    pub fn set_latency(&self, latency: Duration) {
        self.latency.set(latency);
    }

    /// How often a method was called.
    pub fn calls(&self, call: Call) -> u32 {
        self.calls.borrow().get(&call).copied().unwrap_or(0)
    }

    /// Time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.now.get().saturating_duration_since(self.origin)
    }

    /// The handle of a widget, by handle or name.
    #[track_caller]
    pub fn handle(&self, name: &str) -> Handle {
        self.world.borrow().handle(name)
    }

    /// The window of this title.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn window(&self, title: &str) -> Window {
        let world = self.world.borrow();
        let window =
            world.windows.iter().map(|window| world.as_window(window)).find(|window| window.title == title);
        window.unwrap_or_else(|| panic!("the fake desktop has no window {title:?}"))
    }

    /// What reached the desktop, in order.
    pub fn deeds(&self) -> Vec<Deed> {
        self.world.borrow().deeds.clone()
    }

    /// The operations that reached widgets, by the widget's name.
    pub fn operations(&self) -> Vec<(String, Operation)> {
        let operation =
            |deed| if let Deed::Operation(name, operation) = deed { Some((name, operation)) } else { None };
        self.deeds().into_iter().filter_map(operation).collect()
    }

    /// The physical input that was sent.
    pub fn inputs(&self) -> Vec<Input> {
        self.deeds()
            .into_iter()
            .filter_map(|deed| if let Deed::Input(input) = deed { Some(input) } else { None })
            .collect()
    }

    // --- Time

    /// Lets time pass up to this moment; what is due happens at its own time.
    fn advance_to(&self, moment: Instant) {
        loop {
            let mut world = self.world.borrow_mut();
            let due = world
                .later
                .iter()
                .enumerate()
                .filter(|(_, (at, _))| *at <= moment)
                .min_by_key(|(index, (at, _))| (*at, *index))
                .map(|(index, _)| index);
            let Some(index) = due else { break };
            let (at, change) = world.later.remove(index);
            self.now.set(self.now.get().max(at));
            world.now = self.now.get();
            change(&mut world);
        }
        self.now.set(self.now.get().max(moment));
    }

    fn begin(&self, call: Call) {
        self.advance_to(self.now.get() + self.latency.get());
        let nth = {
            let mut calls = self.calls.borrow_mut();
            let count = calls.entry(call).or_default();
            *count += 1;
            *count
        };
        let due: Vec<Change> = {
            let mut hooks = self.hooks.borrow_mut();
            let (due, rest) =
                std::mem::take(&mut *hooks).into_iter().partition(|hook| (hook.0, hook.1) == (call, nth));
            *hooks = rest;
            due.into_iter().map(|(_, _, change): (Call, u32, Change)| change).collect()
        };
        for change in due {
            self.world(|world| change(world));
        }
    }

    /// Waits until an application answers; false when the deadline comes first.
    fn answers(&self, app: usize, deadline: Deadline) -> bool {
        loop {
            {
                let world = self.world.borrow();
                if !world.apps[app].is_hung || !world.apps[app].is_running {
                    return true;
                }
            }
            if deadline.has_passed(self.now.get()) {
                return false;
            }
            let next = self.world.borrow().later.iter().map(|(at, _)| *at).min();
            self.advance_to(next.map_or(deadline.at(), |next| next.min(deadline.at())));
        }
    }

    fn app_of(&self, handle: &Handle) -> Option<usize> {
        self.world.borrow().live(handle).map(|live| live.app)
    }

    /// The bounds that decide what is offscreen: those of the surface or window the element is in.
    fn place(&self, handle: &Handle, window: &Window) -> Rect {
        let world = self.world.borrow();
        let root = world.ancestors(handle).pop().unwrap_or_else(|| handle.clone());
        match world.surfaces.iter().find(|surface| surface.root == root) {
            Some(surface) => world.live(&surface.root).and_then(|live| live.node.bounds).unwrap_or_default(),
            None => window.bounds.unwrap_or_default(),
        }
    }
}

fn unanswered(what: &str) -> Error {
    Error::new(ErrorCode::AppUnresponsive, format!("{what} did not answer in time"))
        .delivery(Delivery::NotDelivered)
        .retryable(true)
}

fn lost() -> Error {
    Error::new(ErrorCode::Timeout, "the answer did not come in time")
        .kind("deadline")
        .delivery(Delivery::Uncertain)
}

fn gone(what: &str) -> Error {
    Error::new(ErrorCode::StaleRef, format!("{what} is gone")).delivery(Delivery::NotDelivered)
}

const fn label(operation: &Operation) -> &'static str {
    match operation {
        Operation::Activate => "press",
        Operation::ShowMenu => "show_menu",
        Operation::Focus => "focus",
        Operation::SetText(_) => "set_text",
        Operation::InsertText(_) => "insert_text",
        Operation::SetCaret(_) => "set_caret",
        Operation::SelectText(..) => "select_text",
        Operation::ReplaceText { .. } => "replace_text",
        Operation::SetNumber(_) => "set_number",
        Operation::Toggle => "toggle",
        Operation::SetExpanded(true) => "expand",
        Operation::SetExpanded(false) => "collapse",
        Operation::Select => "select",
        Operation::Scroll(_) => "scroll",
        Operation::ScrollIntoView => "scroll_into_view",
    }
}

const fn needed(operation: &Operation) -> Capability {
    match operation {
        Operation::Activate => Capability::Click,
        Operation::ShowMenu => Capability::RightClick,
        Operation::Focus => Capability::SetFocus,
        Operation::SetText(_) | Operation::SetNumber(_) => Capability::SetValue,
        Operation::InsertText(_)
        | Operation::SetCaret(_)
        | Operation::SelectText(..)
        | Operation::ReplaceText { .. } => Capability::TypeText,
        Operation::Toggle => Capability::Toggle,
        Operation::SetExpanded(true) => Capability::Expand,
        Operation::SetExpanded(false) => Capability::Collapse,
        Operation::Select => Capability::Select,
        Operation::Scroll(_) => Capability::Scroll,
        Operation::ScrollIntoView => Capability::ScrollTo,
    }
}

impl Clock for FakePlatform {
    fn now(&self) -> Instant {
        self.now.get()
    }

    fn sleep(&self, duration: Duration) {
        self.advance_to(self.now.get() + duration);
    }
}

/// An observation in the making.
struct Walk<'a> {
    world: &'a World,
    limits: &'a Limits,
    place: Rect,
    tree: Tree,
    stopped: Option<Stop>,
}

impl Walk<'_> {
    fn is_full(&mut self) -> bool {
        let (limit, reason) = self.world.stop_after.unwrap_or((usize::MAX, Stop::Deadline));
        if self.tree.len() >= limit {
            self.stopped = Some(reason);
        } else if self.tree.len() >= self.limits.nodes as usize {
            self.stopped = Some(Stop::Limit("nodes"));
        }
        self.stopped.is_some_and(|stop| stop != Stop::Unreadable)
    }

    fn visit(&mut self, parent: Option<NodeId>, handle: &Handle, depth: u32, raw_depth: u32) {
        let (Some(node), Some(live)) = (self.world.reading(handle, self.place), self.world.live(handle))
        else {
            return;
        };
        if !node.gaps.is_empty() {
            self.stopped.get_or_insert(Stop::Unreadable);
        }
        let is_wrapper = node.is_web && node.role == Role::Group && node.name.is_none();
        let inner_depth = if is_wrapper { depth } else { depth + 1 };
        let is_shown = |child: &&Handle| {
            self.limits.include_hidden
                || self.world.live(child).is_some_and(|live| !live.node.states.has(State::Hidden))
        };
        let children: Vec<&Handle> = live.children.iter().filter(is_shown).collect();
        let id = self.tree.push(parent, node);
        let mut cut = live.virtual_total.map(|_| Cut::Virtual);
        let total = live.virtual_total.unwrap_or(live.children.len() as u32);
        if !children.is_empty()
            && (inner_depth > self.limits.max_depth || raw_depth >= self.limits.max_raw_depth)
        {
            cut = Some(Cut::Depth);
        } else {
            for (index, child) in children.into_iter().enumerate() {
                if index >= self.limits.children as usize {
                    self.stopped = Some(Stop::Limit("children"));
                }
                if self.is_full() {
                    cut = Some(Cut::Budget);
                    break;
                }
                self.visit(Some(id), child, inner_depth, raw_depth + 1);
            }
        }
        if cut.is_some() {
            let node = self.tree.node_mut(id);
            node.cut = cut;
            node.children_count = Some(total);
        }
    }
}

impl Platform for FakePlatform {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn safety(&self) -> Safety {
        Safety { blocked_chords: &["alt+f4", "ctrl+alt+delete"], protected_processes: &["fake-shell"] }
    }

    fn supported_surfaces(&self) -> &'static [SurfaceKind] {
        self.surfaces.get()
    }

    fn statistics(&self) -> Statistics {
        let calls = self.calls.borrow().values().map(|&count| u64::from(count)).sum();
        Statistics { calls, waits: calls }
    }

    fn permissions(&self, _deadline: Deadline) -> Permissions {
        Permissions {
            accessibility: Permission::Granted,
            screen_recording: Permission::NotRequired,
            automation: Permission::NotRequired,
        }
    }

    fn apps(&self, _deadline: Deadline) -> Result<Vec<App>> {
        self.begin(Call::Apps);
        Ok(self.world(|world| world.apps.iter().filter(|app| app.is_running).map(FakeApp::as_app).collect()))
    }

    fn windows(&self, app: Option<&App>, _deadline: Deadline) -> Result<Vec<Window>> {
        self.begin(Call::Windows);
        Ok(self.world(|world| {
            let index = app.map(|app| world.index_of_app(app));
            let is_wanted =
                |owner: usize| world.apps[owner].is_running && index.is_none_or(|index| index == Some(owner));
            world
                .windows
                .iter()
                .filter(|window| is_wanted(window.app))
                .map(|window| world.as_window(window))
                .collect()
        }))
    }

    fn displays(&self, _deadline: Deadline) -> Result<Vec<Display>> {
        let bounds = Rect::from_pixels(0, 0, 1920, 1080);
        Ok(vec![Display { id: "1".to_owned(), bounds, is_primary: true, scale: 1.0 }])
    }

    fn surfaces(&self, app: &App, kind: Option<SurfaceKind>, deadline: Deadline) -> Result<Vec<Surface>> {
        self.begin(Call::Surfaces);
        let Some(index) = self.world(|world| world.index_of_app(app)) else { return Ok(Vec::new()) };
        if !self.answers(index, deadline) {
            return Err(unanswered(&app.name));
        }
        let is_wanted = |surface: &Surface| match kind {
            None => true,
            Some(SurfaceKind::Menu) => matches!(surface.kind, "menu" | "context_menu"),
            Some(kind) => surface.kind == kind.as_json(),
        };
        Ok(self.world(|world| {
            let own = world.surfaces.iter().filter(|surface| surface.app == index);
            own.map(|surface| world.as_surface(surface)).filter(is_wanted).collect()
        }))
    }

    fn process_state(&self, pid: u32, instance: Option<&str>) -> ProcessState {
        self.world(|world| {
            let app = world.apps.iter().find(|app| {
                app.is_running
                    && app.pid == pid
                    && instance.is_none_or(|instance| instance == app.process_instance())
            });
            // One that does not answer runs all the same: only a stopped process is seen from outside.
            if app.is_some() { ProcessState::Running } else { ProcessState::Exited }
        })
    }

    fn observe(&self, scope: &Scope, limits: &Limits, deadline: Deadline) -> Result<Observation> {
        self.begin(Call::Observe);
        let root =
            scope.root.clone().or_else(|| scope.window.handle.clone()).ok_or_else(|| gone("the window"))?;
        let app = self
            .app_of(&root)
            .ok_or_else(|| gone(if scope.root.is_some() { "the element" } else { "the window" }))?;
        let has_answered = self.answers(app, deadline);
        let place = self.place(&root, &scope.window);
        Ok(self.world(|world| {
            let limits = if has_answered { *limits } else { Limits { nodes: 1, ..*limits } };
            let mut walk = Walk { world, limits: &limits, place, tree: Tree::default(), stopped: None };
            walk.visit(None, &root, 0, 0);
            let nodes_visited = walk.tree.len() as u32;
            let stopped = if has_answered { walk.stopped } else { Some(Stop::Deadline) };
            Observation { tree: walk.tree, stopped, nodes_visited, needs_activation: world.needs_activation }
        }))
    }

    fn read(&self, handles: &[Handle], window: &Window, deadline: Deadline) -> Result<Vec<Reading>> {
        self.begin(Call::Read);
        Ok(handles
            .iter()
            .map(|handle| match self.app_of(handle) {
                None => Reading::Gone,
                Some(app) if !self.answers(app, deadline) => Reading::Unanswered,
                Some(_) => {
                    let place = self.place(handle, window);
                    let node = self.world(|world| world.reading(handle, place));
                    node.map_or(Reading::Gone, |node| Reading::Live(Box::new(node)))
                }
            })
            .collect())
    }

    fn ancestors(&self, handle: &Handle, deadline: Deadline) -> Result<Vec<Handle>> {
        self.begin(Call::Ancestors);
        let app = self.app_of(handle).ok_or_else(|| gone("the element"))?;
        if !self.answers(app, deadline) {
            return Err(unanswered("the element"));
        }
        Ok(self.world(|world| world.ancestors(handle)))
    }

    fn hit_test(&self, target: &Handle, _window: &Window, point: Point, deadline: Deadline) -> Result<Hit> {
        self.begin(Call::HitTest);
        let app = self.app_of(target).ok_or_else(|| gone("the element"))?;
        if !self.answers(app, deadline) {
            return Ok(Hit::Unknown);
        }
        Ok(self.world(|world| match world.front(point) {
            Front::Nothing => Hit::Unknown,
            Front::Cover(role, name, bounds) => Hit::Other { role, name: Some(name), bounds: Some(bounds) },
            Front::Widget(front) if front == *target || world.ancestors(&front).contains(target) => {
                Hit::Target
            }
            Front::Widget(front) if world.ancestors(target).contains(&front) => Hit::Unknown,
            Front::Widget(front) => match world.live(&front) {
                Some(live) => Hit::Other {
                    role: live.node.role,
                    name: live.node.name.clone(),
                    bounds: live.node.bounds,
                },
                None => Hit::Unknown,
            },
        }))
    }

    fn text(&self, target: &Handle, query: &TextQuery, _deadline: Deadline) -> Result<Option<TextContent>> {
        self.begin(Call::Read);
        self.world(|world| {
            let live = world.live(target).ok_or_else(|| gone("the element"))?;
            let Some(value) = &live.node.value else { return Ok(None) };
            let length = value.chars().count() as u32;
            let (start, end) = query.range.unwrap_or((0, length));
            let (start, end) = (start.min(length), end.min(length).min(start.saturating_add(query.limit)));
            Ok(Some(TextContent {
                length,
                start,
                end,
                text: value.chars().skip(start as usize).take(end.saturating_sub(start) as usize).collect(),
                caret: live.caret,
                selections: live.selection.into_iter().collect(),
                runs: Vec::new(),
                is_secret: false,
            }))
        })
    }

    fn dialog_over(&self, _target: &Handle, _window: &Window, _deadline: Deadline) -> Result<Option<Hit>> {
        Ok(None)
    }

    fn perform(&self, target: &Handle, operation: &Operation, deadline: Deadline) -> Result<Performed> {
        self.begin(Call::Perform);
        let app = self.app_of(target).ok_or_else(|| gone("the element"))?;
        let (effect, is_offered, is_disabled, name) = self.world(|world| {
            let live = world.live(target).expect("its application was just found");
            let node = &live.node;
            let name = node.name.clone().unwrap_or_else(|| node.role.to_string());
            let is_offered = node.capabilities.has(needed(operation))
                && (!matches!(operation, Operation::SetNumber(_)) || node.number.is_some());
            (live.effect.clone(), is_offered, node.states.has(State::Disabled), name)
        });
        let label = label(operation);
        if !is_offered || matches!(effect, Effect::NotOffered) {
            return Ok(Performed::NotOffered);
        }
        if let Effect::Fails(error) = effect {
            return Err(error);
        }
        self.world(|world| world.deeds.push(Deed::Operation(name, operation.clone())));
        if !self.answers(app, deadline) {
            return Err(lost());
        }
        let done = Performed::Done { label, native: format!("fake.{label}") };
        if is_disabled {
            return Ok(done); // as toolkits do: they say yes and do nothing
        }
        let apply = |mangled: Option<&str>| self.world(|world| world.apply(target, operation, mangled));
        match effect {
            Effect::Works => apply(None),
            // The last two were answered above.
            Effect::Nothing | Effect::NotOffered | Effect::Fails(_) => {}
            Effect::Late(delay) => {
                let (target, operation) = (target.clone(), operation.clone());
                self.after(delay, move |world| world.apply(&target, &operation, None));
            }
            Effect::Mangled(text) => apply(Some(&text)),
            Effect::Denied | Effect::Refused => {
                if matches!(effect, Effect::Denied) {
                    apply(None);
                }
                return Ok(Performed::Refused { label, native: format!("fake.{label} = false") });
            }
            Effect::ReplyLost => {
                apply(None);
                self.advance_to(deadline.at());
                return Err(lost());
            }
            Effect::Kills => {
                self.world(|world| world.end(app));
                return Err(Error::new(ErrorCode::ActionFailed, "the application ended during the call")
                    .delivery(Delivery::Uncertain));
            }
        }
        Ok(done)
    }

    fn input(&self, input: &Input, deadline: Deadline) -> Result<usize> {
        self.begin(Call::Input);
        let effect = self.world(|world| world.input_effect.clone());
        if let Effect::Fails(error) = effect {
            return Err(error);
        }
        self.world(|world| world.deeds.push(Deed::Input(input.clone())));
        let characters = if let Input::Text(text) = input { text.chars().count() } else { 0 };
        match effect {
            Effect::Works | Effect::Denied => self.world(|world| world.apply_input(input)),
            Effect::Late(delay) => {
                let input = input.clone();
                self.after(delay, move |world| world.apply_input(&input));
            }
            Effect::Mangled(text) => {
                let input = if characters > 0 { Input::Text(text) } else { input.clone() };
                self.world(|world| world.apply_input(&input));
            }
            Effect::ReplyLost | Effect::Kills => {
                self.world(|world| world.apply_input(input));
                self.advance_to(deadline.at());
                return Err(lost());
            }
            Effect::Nothing | Effect::Refused | Effect::NotOffered | Effect::Fails(_) => {}
        }
        Ok(characters)
    }

    fn window_operation(
        &self,
        window: &Window,
        operation: WindowOperation,
        _deadline: Deadline,
    ) -> Result<()> {
        self.begin(Call::WindowOperation);
        self.world(|world| {
            if !world.windows.iter().any(|own| own.id == window.id) {
                return Err(Error::new(ErrorCode::WindowNotFound, "the window is closed"));
            }
            world.deeds.push(Deed::Window(window.title.clone(), operation));
            if operation == WindowOperation::Focus {
                world.focus_window(&window.id);
                return Ok(());
            }
            let own = world.windows.iter_mut().find(|own| own.id == window.id);
            let own = own.expect("the window was just there");
            match operation {
                WindowOperation::Focus => {}
                WindowOperation::Move(point) => (own.bounds.x, own.bounds.y) = (point.x, point.y),
                WindowOperation::Resize(width, height) => {
                    (own.bounds.width, own.bounds.height) = (width, height);
                }
                WindowOperation::Minimize => own.is_minimized = true,
                WindowOperation::Maximize => (own.is_maximized, own.is_minimized) = (true, false),
                WindowOperation::Restore if own.is_minimized => own.is_minimized = false,
                WindowOperation::Restore => own.is_maximized = false,
            }
            Ok(())
        })
    }

    fn instances(&self, _name: &str, _apps: &[App]) -> Vec<App> {
        Vec::new()
    }

    fn comes_from(&self, _pid: u32, _launched: &Launched) -> bool {
        true
    }

    fn launch(&self, request: &LaunchRequest, _deadline: Deadline) -> Result<Launched> {
        self.begin(Call::Launch);
        self.world(|world| {
            let Some(app) = world.apps.iter_mut().find(|app| app.name == request.app) else {
                return Err(Error::new(ErrorCode::AppNotFound, "no application of this name is installed"));
            };
            app.is_running = true;
            let launched = Launched {
                name: app.name.clone(),
                pid: app.pid,
                process_instance: Some(app.process_instance()),
                mark: None,
            };
            world.deeds.push(Deed::Launch(request.clone()));
            Ok(launched)
        })
    }

    fn close(&self, app: &App, force: bool, _deadline: Deadline) -> Result<()> {
        self.begin(Call::Close);
        self.world(|world| {
            let index = world
                .index_of_app(app)
                .ok_or_else(|| Error::new(ErrorCode::AppNotFound, "it does not run"))?;
            world.deeds.push(Deed::Close(app.name.clone(), force));
            match (world.apps[index].close.clone(), force) {
                (Effect::Fails(error), false) => return Err(error),
                (Effect::Nothing | Effect::Refused | Effect::NotOffered, false) => {}
                (Effect::Late(delay), false) => world.later(delay, move |world| world.end(index)),
                _ => world.end(index),
            }
            Ok(())
        })
    }

    /// Nobody copies anything here.
    fn clipboard_offer(&self, _deadline: Deadline) -> Result<ClipboardOffer> {
        Ok(ClipboardOffer::default())
    }

    fn clipboard_read(
        &self,
        _form: ClipboardForm,
        _limit: usize,
        _deadline: Deadline,
    ) -> Result<Option<ClipboardContent>> {
        Ok(None)
    }

    fn clipboard_write(&self, _content: Option<&ClipboardContent>, _deadline: Deadline) -> Result<()> {
        Ok(())
    }

    /// Nobody notifies anybody here.
    fn has_notification_service(&self, _deadline: Deadline) -> Result<bool> {
        Ok(false)
    }

    fn watch_desktop(&self, _app: Option<&App>, _deadline: Deadline) -> Result<Box<dyn DesktopWatch>> {
        Err(Error::new(ErrorCode::PlatformNotSupported, "nothing comes or goes here"))
    }

    fn watch_notifications(&self, _deadline: Deadline) -> Result<Box<dyn NotificationWatch + '_>> {
        Err(Error::new(ErrorCode::PlatformNotSupported, "nobody notifies anybody here"))
    }

    fn dismiss_notification(&self, _handle: &Handle, _deadline: Deadline) -> Result<()> {
        Err(Error::new(ErrorCode::NotificationNotFound, "nobody notifies anybody here"))
    }

    fn invoke_notification(
        &self,
        _notification: &Notification,
        _action: &NotificationAction,
        _deadline: Deadline,
    ) -> Result<Delivery> {
        Err(Error::new(ErrorCode::NotificationNotFound, "nobody notifies anybody here"))
    }

    fn capture(&self, target: &CaptureTarget, _deadline: Deadline) -> Result<Image> {
        self.begin(Call::Capture);
        let bounds = match target {
            CaptureTarget::Display(display) => display.bounds,
            CaptureTarget::Window(window) => {
                let is_open = self.world(|world| world.windows.iter().any(|own| own.id == window.id));
                if !is_open {
                    return Err(Error::new(ErrorCode::WindowNotFound, "the window is closed"));
                }
                window.bounds.unwrap_or_default()
            }
            CaptureTarget::Region(region) => *region,
        };
        let (width, height) = (bounds.width as u32, bounds.height as u32);
        Ok(Image { area: bounds, width, height, rgb: vec![0x80; width as usize * height as usize * 3] })
    }

    fn diagnose(&self, _examination: Examination, _deadline: Deadline) -> Result<Vec<Check>> {
        let why = "a scripted desktop always works";
        Ok(vec![Check::new("desktop", why, CheckState::Ok, "it is scripted")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_desktop_core::action::MouseButton;
    use agent_desktop_core::tree::{Gaps, Node};

    fn notes() -> FakePlatform {
        Fake::app("Notes")
            .window(
                "Inbox",
                [
                    button("New"),
                    textfield("Search").value("in"),
                    checkbox("Unread"),
                    combobox("Sort", &["Date", "Sender"]),
                    list("Mail").children([option("Alice"), option("Bob"), option("Carol")]),
                ],
            )
            .build()
    }

    fn second(fake: &FakePlatform) -> Deadline {
        Deadline::after(fake.now(), Duration::from_secs(1))
    }

    fn observe(fake: &FakePlatform, limits: Limits) -> Observation {
        let scope = Scope { window: fake.window("Inbox"), root: None };
        fake.observe(&scope, &limits, second(fake)).unwrap()
    }

    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "calls read better")]
    fn perform(fake: &FakePlatform, name: &str, operation: Operation) -> Result<Performed> {
        fake.perform(&fake.handle(name), &operation, second(fake))
    }

    #[track_caller]
    fn read(fake: &FakePlatform, name: &str) -> Node {
        match fake.read(&[fake.handle(name)], &fake.window("Inbox"), second(fake)).unwrap().remove(0) {
            Reading::Live(node) => *node,
            other => panic!("{name} is {other:?}"),
        }
    }

    fn is_done(result: &Result<Performed>) -> bool {
        matches!(result, Ok(Performed::Done { .. }))
    }

    #[test]
    fn what_is_built_is_observed_in_order_with_places() {
        let observation = observe(&notes(), Limits::default());
        let names: Vec<String> = observation.tree.iter().map(|(_, node)| node.label()).collect();
        assert_eq!(names, ["Inbox", "New", "Search", "Unread", "Sort", "Mail", "Alice", "Bob", "Carol"]);
        assert_eq!(observation.stopped, None);
        assert_eq!(observation.tree.path(7), [4, 1]);
        for (_, node) in observation.tree.iter() {
            assert!(node.bounds.is_some_and(|bounds| !bounds.is_empty()), "{node:?}");
            assert!(!node.states.has(State::Offscreen));
        }
    }

    #[test]
    fn limits_cut_and_say_where() {
        let fake = notes();
        let flat = observe(&fake, Limits { max_depth: 1, ..Limits::default() });
        assert_eq!((flat.tree.len(), flat.stopped), (6, None));
        assert_eq!((flat.tree.node(5).cut, flat.tree.node(5).children_count), (Some(Cut::Depth), Some(3)));
        let few = observe(&fake, Limits { nodes: 3, ..Limits::default() });
        assert_eq!((few.tree.len(), few.stopped), (3, Some(Stop::Limit("nodes"))));
        assert_eq!(few.tree.node(0).cut, Some(Cut::Budget));
        fake.world(|world| world.stop_after = Some((2, Stop::Gone)));
        assert_eq!(observe(&fake, Limits::default()).stopped, Some(Stop::Gone));
    }

    #[test]
    fn operations_have_their_effects_and_are_recorded() {
        let fake = notes();
        assert!(is_done(&perform(&fake, "New", Operation::Activate)));
        assert!(is_done(&perform(&fake, "Search", Operation::InsertText("voice".to_owned()))));
        assert!(is_done(&perform(&fake, "Unread", Operation::Toggle)));
        assert_eq!(fake.world(|world| world.activations("New")), 1);
        assert_eq!(read(&fake, "Search").value.as_deref(), Some("invoice"));
        assert!(read(&fake, "Unread").states.has(State::Checked));
        assert!(matches!(perform(&fake, "New", Operation::Toggle), Ok(Performed::NotOffered)));
        let names: Vec<String> = fake.operations().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["New", "Search", "Unread"]);
    }

    #[test]
    fn a_combo_box_opens_its_list_and_takes_what_is_chosen() {
        let fake = notes();
        perform(&fake, "Sort", Operation::SetExpanded(true)).unwrap();
        let app = fake.apps(second(&fake)).unwrap().remove(0);
        let menu = fake.surfaces(&app, Some(SurfaceKind::Menu), second(&fake)).unwrap().remove(0);
        assert_eq!((menu.kind, menu.item_count), ("menu", Some(2)));
        perform(&fake, "Sender", Operation::Activate).unwrap();
        assert_eq!(read(&fake, "Sort").value.as_deref(), Some("Sender"));
        assert_eq!(fake.surfaces(&app, None, second(&fake)).unwrap(), []);
    }

    #[test]
    fn every_kind_of_lie() {
        let check = |effect: Effect| {
            let fake = notes();
            fake.world(|world| world.set_effect("Unread", effect));
            let result = perform(&fake, "Unread", Operation::Toggle);
            let is_alive = !fake.apps(second(&fake)).unwrap().is_empty();
            (result, is_alive && fake.world(|world| world.node("Unread").states.has(State::Checked)), fake)
        };
        let (result, happened, _) = check(Effect::Nothing);
        assert!(is_done(&result) && !happened);
        let (result, happened, _) = check(Effect::Denied);
        assert!(matches!(result, Ok(Performed::Refused { .. })) && happened);
        let (result, happened, _) = check(Effect::Refused);
        assert!(matches!(result, Ok(Performed::Refused { .. })) && !happened);
        let (result, happened, fake) = check(Effect::ReplyLost);
        assert_eq!(result.unwrap_err().get_delivery(), Delivery::Uncertain);
        assert!(happened && fake.elapsed() >= Duration::from_secs(1));
        let (result, happened, fake) = check(Effect::Late(Duration::from_millis(200)));
        assert!(is_done(&result) && !happened);
        fake.sleep(Duration::from_millis(200));
        assert!(read(&fake, "Unread").states.has(State::Checked));
        let (result, ..) = check(Effect::Fails(Error::invalid("no")));
        assert_eq!(result, Err(Error::invalid("no")));
        let (result, _, fake) = check(Effect::Kills);
        assert_eq!(result.unwrap_err().get_delivery(), Delivery::Uncertain);
        assert!(fake.windows(None, second(&fake)).unwrap().is_empty());
        let fake = notes();
        fake.world(|world| world.set_effect("Search", Effect::Mangled("inv".to_owned())));
        assert!(is_done(&perform(&fake, "Search", Operation::SetText("invoice".to_owned()))));
        assert_eq!(read(&fake, "Search").value.as_deref(), Some("inv"));
    }

    #[test]
    fn scripts_run_at_their_time_and_call() {
        let fake = notes();
        fake.after(Duration::from_millis(50), |world| world.rename("New", "Newer"));
        fake.on(Call::Read, 2, |world| world.remove("Newer"));
        let handle = fake.handle("New");
        fake.sleep(Duration::from_millis(60));
        assert_eq!(read(&fake, "Newer").name.as_deref(), Some("Newer"));
        let again = fake.read(std::slice::from_ref(&handle), &fake.window("Inbox"), second(&fake)).unwrap();
        assert!(matches!(again[0], Reading::Gone));
        assert_eq!(perform(&notes(), "New", Operation::Activate).map(|_| ()), Ok(()));
        let error = fake.perform(&handle, &Operation::Activate, second(&fake)).unwrap_err();
        assert_eq!((error.code(), error.get_delivery()), (ErrorCode::StaleRef, Delivery::NotDelivered));
    }

    #[test]
    fn a_hung_application_costs_the_deadline_until_it_recovers() {
        let fake = notes();
        fake.world(|world| world.hang("Notes"));
        let observation = observe(&fake, Limits::default());
        assert_eq!((observation.stopped, observation.tree.len()), (Some(Stop::Deadline), 1));
        assert!(fake.elapsed() >= Duration::from_secs(1));
        assert_eq!(
            perform(&fake, "New", Operation::Activate).unwrap_err().get_delivery(),
            Delivery::Uncertain
        );
        assert_eq!(fake.world(|world| world.activations("New")), 0);
        fake.after(Duration::from_millis(300), |world| world.recover("Notes"));
        let before = fake.elapsed();
        assert_eq!(read(&fake, "New").name.as_deref(), Some("New"));
        assert!((300..310).contains(&fake.elapsed().saturating_sub(before).as_millis()));
    }

    #[test]
    fn a_restart_is_told_only_by_the_instance() {
        let fake = notes();
        let before = fake.window("Inbox");
        fake.world(|world| world.restart("Notes"));
        let after = fake.window("Inbox");
        assert_eq!((&before.id, before.pid), (&after.id, after.pid));
        assert_eq!(fake.process_state(before.pid, before.process_instance.as_deref()), ProcessState::Exited);
        assert_eq!(fake.process_state(after.pid, after.process_instance.as_deref()), ProcessState::Running);
    }

    #[test]
    fn a_pointer_reaches_what_is_in_front() {
        let fake = notes();
        let (handle, window) = (fake.handle("New"), fake.window("Inbox"));
        let at = read(&fake, "New").bounds.unwrap().center();
        let hit = |fake: &FakePlatform| fake.hit_test(&handle, &window, at, second(fake)).unwrap();
        assert_eq!(hit(&fake), Hit::Target);
        let click = Input::Click { at, button: MouseButton::Left, count: 2, modifiers: vec![] };
        fake.input(&click, second(&fake)).unwrap();
        assert_eq!(fake.world(|world| world.activations("New")), 2);
        fake.world(|world| world.cover("New", Role::Dialog, "Unsaved changes"));
        assert!(matches!(hit(&fake), Hit::Other { role: Role::Dialog, .. }));
        fake.input(&click, second(&fake)).unwrap();
        assert_eq!(fake.world(|world| world.activations("New")), 2);
        fake.world(World::uncover);
        assert_eq!(hit(&fake), Hit::Target);
    }

    #[test]
    fn keys_go_to_the_focus() {
        let fake = notes();
        perform(&fake, "Search", Operation::Focus).unwrap();
        let type_text = |text: &str| fake.input(&Input::Text(text.to_owned()), second(&fake)).unwrap();
        assert_eq!(type_text("k"), 1);
        assert_eq!(read(&fake, "Search").value.as_deref(), Some("ink"));
        let chord = |text: &str| Input::Chord(agent_desktop_core::key::Chord::parse(text).unwrap());
        fake.input(&chord("ctrl+a"), second(&fake)).unwrap();
        type_text("new");
        assert_eq!(read(&fake, "Search").value.as_deref(), Some("new"));
        fake.world(|world| world.input_effect = Effect::Nothing);
        type_text("lost");
        assert_eq!(read(&fake, "Search").value.as_deref(), Some("new"));
    }

    #[test]
    fn widgets_can_be_moved_renewed_and_unreadable() {
        let fake = notes();
        let old = fake.handle("Bob");
        let new = fake.world(|world| world.renew("Bob"));
        assert!(
            old != new && observe(&fake, Limits::default()).tree.iter().any(|(_, node)| node.handle == new)
        );
        fake.world(|world| {
            world.reparent("Bob", "Inbox");
            world.move_to("Carol", 2000.0, 0.0);
            world.node_mut("Search").gaps = Gaps { value: true, ..Gaps::default() };
            world.insert("Mail", option("Dave"));
        });
        assert!(read(&fake, "Carol").states.has(State::Offscreen));
        let observation = observe(&fake, Limits::default());
        assert_eq!(observation.stopped, Some(Stop::Unreadable));
        let names: Vec<String> = observation.tree.iter().map(|(_, node)| node.label()).collect();
        assert_eq!(names[5..], ["Mail", "Alice", "Carol", "Dave", "Bob"]);
        perform(&fake, "Carol", Operation::ScrollIntoView).unwrap();
        assert!(!read(&fake, "Carol").states.has(State::Offscreen));
    }

    #[test]
    fn windows_open_take_the_focus_and_close() {
        let fake = Fake::app("Notes")
            .window(
                "Inbox",
                [button("Send").on_activate(|world| world.open_window("Notes", "Sent?", [button("OK")]))],
            )
            .build();
        perform(&fake, "Send", Operation::Activate).unwrap();
        let titles = || -> Vec<(String, bool)> {
            let windows = fake.windows(None, second(&fake)).unwrap();
            windows.into_iter().map(|window| (window.title, window.is_focused)).collect()
        };
        assert_eq!(titles(), [("Sent?".to_owned(), true), ("Inbox".to_owned(), false)]);
        let inbox = fake.window("Inbox");
        fake.window_operation(&inbox, WindowOperation::Focus, second(&fake)).unwrap();
        assert!(fake.window("Inbox").is_focused);
        fake.world(|world| world.close_window("Inbox"));
        assert_eq!(titles(), [("Sent?".to_owned(), true)]);
        assert!(fake.window_operation(&inbox, WindowOperation::Focus, second(&fake)).is_err());
    }

    #[test]
    fn applications_start_and_quit() {
        let fake = Fake::app("Notes").window("Inbox", []).and_installed("Calc").window("Sheet", []).build();
        assert_eq!(fake.windows(None, second(&fake)).unwrap().len(), 1);
        let request = LaunchRequest { app: "Calc".to_owned(), ..LaunchRequest::default() };
        fake.launch(&request, second(&fake)).unwrap();
        let app = fake.apps(second(&fake)).unwrap().remove(1);
        assert_eq!(fake.windows(Some(&app), second(&fake)).unwrap().len(), 1);
        fake.world(|world| world.set_close_effect("Calc", Effect::Nothing));
        fake.close(&app, false, second(&fake)).unwrap();
        assert_eq!(fake.process_state(app.pid, None), ProcessState::Running);
        fake.close(&app, true, second(&fake)).unwrap();
        assert_eq!(fake.process_state(app.pid, None), ProcessState::Exited);
    }
}
