//! A scripted desktop for the tests of this crate: a tree, windows, a clock that sleeping moves on, and a plan of what
//! happens when.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use agent_desktop_core::action::{Capabilities, Capability};
use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::geometry::{Point, Rect};
use agent_desktop_core::platform::{
    App, CaptureTarget, Check, CheckState, ClipboardContent, ClipboardForm, ClipboardOffer, Clock,
    DesktopCounts, DesktopEvent, DesktopWatch, Display, Examination, Hit, Image, Input, LaunchRequest,
    Launched, Limits, Notification, NotificationAction, NotificationEvent, NotificationWatch, Observation,
    Operation, Performed, Permission, Permissions, Platform, ProcessState, Reading, Safety, Scope,
    Statistics, Stop, Surface, SurfaceKind, TextContent, TextQuery, Window, WindowOperation,
};
use agent_desktop_core::role::Role;
use agent_desktop_core::tree::{Handle, Node, NodeId, Tree};
use agent_desktop_core::{Deadline, Delivery};
use serde_json::{Value, json};

use crate::private_files::tests::Scratch;
use crate::{Command, Options, execute};

/// What a desktop looks like at a moment.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) apps: Vec<App>,
    pub(crate) windows: Vec<Window>,
    pub(crate) tree: Tree,
    pub(crate) surfaces: Vec<Surface>,
    pub(crate) stopped: Option<Stop>,
    pub(crate) process: ProcessState,
    pub(crate) permission: Permission,
    /// Every native call fails with this code.
    pub(crate) failing: Option<ErrorCode>,
    /// What is heard of notifications.
    pub(crate) heard: VecDeque<Result<NotificationEvent>>,
}

type Change = Box<dyn FnOnce(&mut Scene)>;

pub(crate) struct Fake {
    start: Instant,
    elapsed: Cell<Duration>,
    pub(crate) scene: RefCell<Scene>,
    plan: RefCell<Vec<(Duration, Change)>>,
    on_launch: RefCell<Option<Change>>,
    on_close: RefCell<Option<Change>>,
    on_focus: RefCell<Option<Change>>,
    on_perform: RefCell<Option<Change>>,
    pub(crate) inputs: RefCell<Vec<Input>>,
    pub(crate) panics: Cell<bool>,
    calls: Cell<u64>,
    clipboard: RefCell<Option<ClipboardContent>>,
    pub(crate) conceals: Cell<bool>,
    pub(crate) has_notification_service: Cell<bool>,
    pub(crate) dismissed: RefCell<Vec<String>>,
    pub(crate) invoked: RefCell<Vec<String>>,
    /// What the one check of the platform comes to.
    pub(crate) check: Cell<CheckState>,
    pub(crate) examinations: RefCell<Vec<Examination>>,
    /// What comes and goes.
    pub(crate) events: Rc<RefCell<VecDeque<DesktopEvent>>>,
    /// Which applications were looked into for it, one a watch.
    pub(crate) watched: RefCell<Vec<Option<String>>>,
}

pub(crate) fn app(name: &str, pid: u32) -> App {
    App {
        name: name.to_owned(),
        pid,
        process_instance: Some(format!("p:{pid}")),
        application_id: None,
        presentation: None,
        toolkit: None,
        handle: Some(Handle::new(format!("app{pid}"))),
        accessible: Some(true),
    }
}

pub(crate) fn window(id: &str, title: &str, app: &App) -> Window {
    Window {
        id: id.to_owned(),
        title: title.to_owned(),
        app_name: app.name.clone(),
        pid: app.pid,
        process_instance: app.process_instance.clone(),
        bounds: Some(Rect::from_pixels(0, 0, 200, 100)),
        is_focused: false,
        minimized: Some(false),
        visible: Some(true),
        is_modal: false,
        frame: None,
        maximized: None,
        handle: Some(Handle::new(format!("window{id}"))),
        accessible: Some(true),
    }
}

fn node(role: Role, name: &str, handle: &str, bounds: Rect, capability: Option<Capability>) -> Node {
    Node {
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        bounds: Some(bounds),
        capabilities: capability.into_iter().collect::<Capabilities>(),
        ..Node::new(role, Handle::new(handle))
    }
}

/// A window with a toolbar of two buttons, a field and a text.
pub(crate) fn tree() -> Tree {
    let mut tree = Tree::default();
    let root = tree.push(None, node(Role::Window, "Inbox", "root", Rect::from_pixels(0, 0, 200, 100), None));
    let mut push = |parent: NodeId, index: u32, node: Node| {
        tree.push(Some(parent), Node { index_in_parent: index, ..node })
    };
    let bar = push(root, 0, node(Role::Toolbar, "", "bar", Rect::from_pixels(0, 0, 200, 20), None));
    push(bar, 0, node(Role::Button, "New", "new", Rect::from_pixels(0, 0, 20, 20), Some(Capability::Click)));
    push(
        bar,
        1,
        node(Role::Button, "Send", "send", Rect::from_pixels(20, 0, 20, 20), Some(Capability::Click)),
    );
    let field = node(
        Role::TextField,
        "Search",
        "search",
        Rect::from_pixels(0, 20, 200, 20),
        Some(Capability::SetValue),
    );
    push(root, 1, Node { value: Some("invoice".to_owned()), ..field });
    push(root, 2, node(Role::StaticText, "3 messages", "text", Rect::from_pixels(0, 40, 200, 20), None));
    tree
}

impl Fake {
    /// Mail with one focused window.
    pub(crate) fn new() -> Fake {
        let mail = app("Mail", 7);
        let inbox = Window { is_focused: true, ..window("w-1", "Inbox", &mail) };
        Fake {
            start: Instant::now(),
            elapsed: Cell::default(),
            scene: RefCell::new(Scene {
                apps: vec![mail],
                windows: vec![inbox],
                tree: tree(),
                surfaces: Vec::new(),
                stopped: None,
                process: ProcessState::Running,
                permission: Permission::Granted,
                failing: None,
                heard: VecDeque::new(),
            }),
            plan: RefCell::default(),
            on_launch: RefCell::default(),
            on_close: RefCell::default(),
            on_focus: RefCell::default(),
            on_perform: RefCell::default(),
            inputs: RefCell::default(),
            panics: Cell::default(),
            calls: Cell::default(),
            clipboard: RefCell::default(),
            conceals: Cell::default(),
            has_notification_service: Cell::new(true),
            dismissed: RefCell::default(),
            invoked: RefCell::default(),
            check: Cell::new(CheckState::Ok),
            examinations: RefCell::default(),
            events: Rc::default(),
            watched: RefCell::default(),
        }
    }

    pub(crate) fn now_be(&self, change: impl FnOnce(&mut Scene)) {
        change(&mut self.scene.borrow_mut());
    }

    /// After so many milliseconds from the start of everything.
    pub(crate) fn at(&self, ms: u64, change: impl FnOnce(&mut Scene) + 'static) {
        self.plan.borrow_mut().push((Duration::from_millis(ms), Box::new(change)));
    }

    pub(crate) fn on_launch(&self, change: impl FnOnce(&mut Scene) + 'static) {
        *self.on_launch.borrow_mut() = Some(Box::new(change));
    }

    pub(crate) fn on_close(&self, change: impl FnOnce(&mut Scene) + 'static) {
        *self.on_close.borrow_mut() = Some(Box::new(change));
    }

    pub(crate) fn on_perform(&self, change: impl FnOnce(&mut Scene) + 'static) {
        *self.on_perform.borrow_mut() = Some(Box::new(change));
    }

    pub(crate) fn on_focus(&self, change: impl FnOnce(&mut Scene) + 'static) {
        *self.on_focus.borrow_mut() = Some(Box::new(change));
    }

    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.elapsed.get().as_millis() as u64
    }

    fn call(&self) -> Result<Scene> {
        assert!(!self.panics.get(), "the platform has a bug");
        self.calls.set(self.calls.get() + 1);
        // Every call takes a moment; nothing can spin for ever.
        self.advance(Duration::from_micros(500));
        let scene = self.scene.borrow().clone();
        match scene.failing {
            Some(code) => {
                let error = Error::new(code, "scripted");
                let is_silence = code == ErrorCode::AppUnresponsive;
                Err(if is_silence { error.retryable(true) } else { error })
            }
            None => Ok(scene),
        }
    }

    fn advance(&self, duration: Duration) {
        self.elapsed.set(self.elapsed.get() + duration);
        loop {
            let due = {
                let mut plan = self.plan.borrow_mut();
                plan.sort_by_key(|(at, _)| *at);
                if plan.first().is_some_and(|(at, _)| *at <= self.elapsed.get()) {
                    Some(plan.remove(0).1)
                } else {
                    None
                }
            };
            match due {
                Some(change) => change(&mut self.scene.borrow_mut()),
                None => break,
            }
        }
    }

    fn trigger(&self, change: &RefCell<Option<Change>>) {
        if let Some(change) = change.borrow_mut().take() {
            change(&mut self.scene.borrow_mut());
        }
    }
}

impl Clock for Fake {
    fn now(&self) -> Instant {
        self.start + self.elapsed.get()
    }
    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

impl Platform for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }
    fn safety(&self) -> Safety {
        Safety { blocked_chords: &["alt+f4"], protected_processes: &["Shell"] }
    }
    fn supported_surfaces(&self) -> &'static [SurfaceKind] {
        &[SurfaceKind::Window, SurfaceKind::Menu]
    }
    fn statistics(&self) -> Statistics {
        Statistics { calls: self.calls.get(), waits: 0 }
    }
    fn permissions(&self, _: Deadline) -> Permissions {
        Permissions {
            accessibility: self.scene.borrow().permission.clone(),
            screen_recording: Permission::Granted,
            automation: Permission::NotRequired,
        }
    }
    fn apps(&self, _: Deadline) -> Result<Vec<App>> {
        Ok(self.call()?.apps)
    }
    fn windows(&self, app: Option<&App>, _: Deadline) -> Result<Vec<Window>> {
        let mut windows = self.call()?.windows;
        windows.retain(|window| app.is_none_or(|app| app.pid == window.pid));
        Ok(windows)
    }
    fn displays(&self, _: Deadline) -> Result<Vec<Display>> {
        self.call()?;
        Ok(vec![Display {
            id: "d0".to_owned(),
            bounds: Rect::from_pixels(0, 0, 400, 300),
            is_primary: true,
            scale: 1.0,
        }])
    }
    fn surfaces(&self, _: &App, kind: Option<SurfaceKind>, _: Deadline) -> Result<Vec<Surface>> {
        let mut surfaces = self.call()?.surfaces;
        surfaces.retain(|surface| kind.is_none_or(|kind| surface.kind == kind.as_json()));
        Ok(surfaces)
    }
    fn process_state(&self, _: u32, _: Option<&str>) -> ProcessState {
        self.scene.borrow().process
    }
    fn observe(&self, scope: &Scope, _: &Limits, _: Deadline) -> Result<Observation> {
        let scene = self.call()?;
        let mut tree = scene.tree;
        let root = scope.root.as_ref();
        let root = root.and_then(|root| tree.iter().find(|(_, node)| node.handle == *root).map(|(id, _)| id));
        if let Some(id) = root {
            let mut below = Tree::default();
            let start = id;
            for id in tree.subtree(id) {
                let node = tree.node(id).clone();
                let parent = node.parent.filter(|_| id != start).map(|parent| parent - start);
                below.push(parent, node);
            }
            tree = below;
        }
        let nodes_visited = tree.len() as u32;
        Ok(Observation { tree, stopped: scene.stopped, nodes_visited, needs_activation: false })
    }
    fn read(&self, handles: &[Handle], _: &Window, _: Deadline) -> Result<Vec<Reading>> {
        let scene = self.call()?;
        let read = |handle: &Handle| {
            let found = scene.tree.iter().find(|(_, node)| node.handle == *handle);
            found.map_or(Reading::Gone, |(_, node)| Reading::Live(Box::new(node.clone())))
        };
        Ok(handles.iter().map(read).collect())
    }
    fn text(&self, target: &Handle, _: &TextQuery, _: Deadline) -> Result<Option<TextContent>> {
        let scene = self.call()?;
        let node = scene.tree.iter().find(|(_, node)| node.handle == *target).map(|(_, node)| node);
        Ok(node.and_then(|node| node.value.clone()).map(|text| {
            let length = text.chars().count() as u32;
            TextContent { length, end: length, text, ..TextContent::default() }
        }))
    }
    fn ancestors(&self, _: &Handle, _: Deadline) -> Result<Vec<Handle>> {
        Ok(Vec::new())
    }
    fn hit_test(&self, _: &Handle, _: &Window, _: Point, _: Deadline) -> Result<Hit> {
        Ok(Hit::Target)
    }
    fn dialog_over(&self, _: &Handle, _: &Window, _: Deadline) -> Result<Option<Hit>> {
        Ok(None)
    }
    fn perform(&self, _: &Handle, _: &Operation, _: Deadline) -> Result<Performed> {
        self.call()?;
        self.trigger(&self.on_perform);
        Ok(Performed::Done { label: "press", native: "click".to_owned() })
    }
    fn input(&self, input: &Input, _: Deadline) -> Result<usize> {
        self.call()?;
        self.inputs.borrow_mut().push(input.clone());
        Ok(0)
    }
    fn window_operation(&self, _: &Window, _: WindowOperation, _: Deadline) -> Result<()> {
        self.call()?;
        self.trigger(&self.on_focus);
        Ok(())
    }
    fn instances(&self, _: &str, _: &[App]) -> Vec<App> {
        Vec::new()
    }
    fn comes_from(&self, _: u32, _: &Launched) -> bool {
        true
    }
    fn launch(&self, request: &LaunchRequest, _: Deadline) -> Result<Launched> {
        self.call()?;
        self.trigger(&self.on_launch);
        Ok(Launched {
            name: request.app.clone(),
            pid: 50,
            process_instance: Some("p:50".to_owned()),
            mark: None,
        })
    }
    fn close(&self, _: &App, _: bool, _: Deadline) -> Result<()> {
        self.call()?;
        self.trigger(&self.on_close);
        Ok(())
    }
    fn clipboard_offer(&self, _: Deadline) -> Result<ClipboardOffer> {
        self.call()?;
        let content = self.clipboard.borrow();
        let forms = match *content {
            None => Vec::new(),
            Some(ClipboardContent::Text(_)) => vec![ClipboardForm::Text],
            Some(ClipboardContent::Files(_)) => vec![ClipboardForm::Files, ClipboardForm::Text],
            Some(ClipboardContent::Image(_)) => vec![ClipboardForm::Image],
        };
        Ok(ClipboardOffer { owner: "1".to_owned(), forms, is_concealed: self.conceals.get() })
    }
    fn clipboard_read(&self, form: ClipboardForm, _: usize, _: Deadline) -> Result<Option<ClipboardContent>> {
        self.call()?;
        Ok(match (form, self.clipboard.borrow().clone()) {
            (ClipboardForm::Text, Some(ClipboardContent::Files(files))) => {
                Some(ClipboardContent::Text(files.join("\n")))
            }
            (ClipboardForm::Text, content @ Some(ClipboardContent::Text(_)))
            | (ClipboardForm::Files, content @ Some(ClipboardContent::Files(_)))
            | (ClipboardForm::Image, content @ Some(ClipboardContent::Image(_))) => content,
            _ => None,
        })
    }
    fn clipboard_write(&self, content: Option<&ClipboardContent>, _: Deadline) -> Result<()> {
        self.call()?;
        *self.clipboard.borrow_mut() = content.cloned();
        Ok(())
    }
    fn has_notification_service(&self, _: Deadline) -> Result<bool> {
        self.call()?;
        Ok(self.has_notification_service.get())
    }
    fn watch_desktop(&self, app: Option<&App>, _: Deadline) -> Result<Box<dyn DesktopWatch>> {
        let scene = self.call()?;
        self.watched.borrow_mut().push(app.map(|app| app.name.clone()));
        Ok(Box::new(FakeDesktopWatch { apps: scene.apps, events: Rc::clone(&self.events) }))
    }
    fn watch_notifications(&self, _: Deadline) -> Result<Box<dyn NotificationWatch + '_>> {
        self.call()?;
        Ok(Box::new(FakeWatch(self)))
    }
    fn dismiss_notification(&self, handle: &Handle, _: Deadline) -> Result<()> {
        self.call()?;
        self.dismissed.borrow_mut().push(handle.as_str().to_owned());
        Ok(())
    }
    fn invoke_notification(
        &self,
        notification: &Notification,
        action: &NotificationAction,
        _: Deadline,
    ) -> Result<Delivery> {
        self.call()?;
        let handle = notification.handle.as_ref().map(Handle::as_str).unwrap_or_default();
        self.invoked.borrow_mut().push(format!("{handle} {}", action.key));
        Ok(Delivery::Verified)
    }
    fn capture(&self, target: &CaptureTarget, _: Deadline) -> Result<Image> {
        self.call()?;
        let bounds = match target {
            CaptureTarget::Display(display) => display.bounds,
            CaptureTarget::Window(window) => window.bounds.unwrap_or_default(),
            CaptureTarget::Region(region) => *region,
        };
        // Twice as many pixels as logical ones.
        let (width, height) = (bounds.width as u32 * 2, bounds.height as u32 * 2);
        Ok(Image { area: bounds, width, height, rgb: vec![7; (width * height * 3) as usize] })
    }
    fn diagnose(&self, examination: Examination, _: Deadline) -> Result<Vec<Check>> {
        self.call()?;
        self.examinations.borrow_mut().push(examination);
        let state = self.check.get();
        if examination == Examination::Prove {
            return Ok(vec![Check::new("self_test", "it shows that input works", state, "a click")]);
        }
        let mut check = Check::new("bus", "applications are read over it", state, "it answers");
        check.can_fix = state == CheckState::Warning;
        if check.can_fix && examination == Examination::Repair {
            check.state = CheckState::Ok;
            check.fixed = Some("switched on".to_owned());
        }
        Ok(vec![check])
    }
}

/// Hears what the scene says, at its time.
/// Tells what the test says has happened; then the deadline has come.
struct FakeDesktopWatch {
    apps: Vec<App>,
    events: Rc<RefCell<VecDeque<DesktopEvent>>>,
}

impl DesktopWatch for FakeDesktopWatch {
    fn counts(&self) -> DesktopCounts {
        DesktopCounts { windows: 1, apps: self.apps.len(), surfaces: 0 }
    }
    fn app(&self, pid: u32) -> Option<App> {
        self.apps.iter().find(|app| app.pid == pid).cloned()
    }
    fn next(&mut self, _: Deadline) -> Result<Option<DesktopEvent>> {
        let event = self.events.borrow_mut().pop_front();
        if let Some(DesktopEvent::AppNamed(app) | DesktopEvent::AppLaunched(app)) = &event {
            self.apps.push(app.clone());
        }
        Ok(event)
    }
}

struct FakeWatch<'a>(&'a Fake);

impl NotificationWatch for FakeWatch<'_> {
    fn next(&mut self, deadline: Deadline) -> Result<Option<NotificationEvent>> {
        loop {
            if let Some(event) = self.0.scene.borrow_mut().heard.pop_front() {
                return event.map(Some);
            }
            if deadline.has_passed(self.0.now()) {
                return Ok(None);
            }
            self.0.advance(Duration::from_millis(1));
        }
    }
}

/// A desktop with a store of its own, driven by JSON commands.
pub(crate) struct Bench {
    pub(crate) fake: Fake,
    pub(crate) options: Options,
    scratch: Scratch,
}

impl Bench {
    pub(crate) fn new(name: &str) -> Bench {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new(name);
        std::fs::set_permissions(&scratch.0, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut options =
            Options { state_root: Some(scratch.0.join("state").into_os_string()), ..Options::default() };
        options.lease.runtime_dir = Some(scratch.0.clone());
        Bench { fake: Fake::new(), options, scratch }
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.scratch.0
    }

    pub(crate) fn text(&self, name: &str, arguments: Value) -> String {
        let command = Command::decode(name, arguments).unwrap();
        execute(&command, &self.fake, &self.options).text
    }

    /// Runs a command; the whole envelope.
    pub(crate) fn run(&self, name: &str, arguments: Value) -> Value {
        serde_json::from_str(&self.text(name, arguments)).unwrap()
    }

    /// The data of a command that must succeed.
    #[track_caller]
    pub(crate) fn data(&self, name: &str, arguments: Value) -> Value {
        let mut envelope = self.run(name, arguments);
        assert_eq!(envelope["ok"], true, "{envelope}");
        envelope["data"].take()
    }

    /// The error of a command that must fail with this code, this kind and this delivery.
    #[track_caller]
    pub(crate) fn error(
        &self,
        name: &str,
        arguments: Value,
        code: &str,
        kind: Option<&str>,
        delivery: &str,
    ) -> Value {
        let mut envelope = self.run(name, arguments);
        assert_eq!(envelope["ok"], false, "{envelope}");
        let error = envelope["error"].take();
        assert_eq!(
            (&error["code"], &error["details"]["kind"], &error["disposition"]["delivery"]),
            (&json!(code), &json!(kind), &json!(delivery)),
            "{error}"
        );
        error
    }

    /// The ref of the element of this name in a new snapshot.
    pub(crate) fn reference(&self, name: &str) -> String {
        fn look(node: &Value, name: &str) -> Option<String> {
            if node["name"] == name && node["ref_id"].is_string() {
                return node["ref_id"].as_str().map(str::to_owned);
            }
            node["children"].as_array()?.iter().find_map(|child| look(child, name))
        }
        let data = self.data("snapshot", json!({"app": "Mail"}));
        look(&data["tree"], name).unwrap_or_else(|| panic!("no ref of {name} in {data}"))
    }
}
