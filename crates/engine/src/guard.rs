//! A desktop seen through the policy file: what it denies is not read, not pictured and not operated.
//!
//! Decided here: what a rule about applications and windows means for each thing a platform can do, and that nothing
//! reaches an application before the audit log says so. It stands between every command and the platform, so that no
//! command can forget it. Titles of denied windows are masked; that there is such a window is no secret.
//!
//! What is not covered: what an allowed application shows of a denied one, popups of a denied application outside of its
//! windows, and what happens between the look and the input that follows it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use agent_desktop_core::Deadline;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::geometry::{Point, Rect};
use agent_desktop_core::platform::{
    App, CaptureTarget, Check, ClipboardContent, ClipboardForm, ClipboardOffer, Clock, DesktopCounts,
    DesktopEvent, DesktopWatch, Display, Examination, Hit, Image, Input, LaunchRequest, Launched, Limits,
    Notification, NotificationAction, NotificationEvent, NotificationWatch, Observation, Operation,
    Performed, Permissions, Platform, ProcessState, Reading, Safety, Scope, Statistics, Surface, SurfaceKind,
    TextContent, TextQuery, Window, WindowOperation,
};
use agent_desktop_core::tree::Handle;

use crate::audit::Audit;
use crate::rules::{Denial, Rules};

/// The application and the title, the number behind it aside, of the window of the self-test.
const SELF_TEST: &str = "agent-desktop self-test";
/// What stands in the place of the title of a denied window.
pub(crate) const MASK: &str = "(denied by policy)";

/// A window that the last look found to be denied.
struct Denied {
    denial: Denial,
    pid: u32,
    handle: Option<Handle>,
}

/// The names of a process: of each application in it, and their ids.
#[derive(Clone, Default)]
struct Names {
    names: Vec<String>,
    ids: Vec<String>,
}

/// A platform behind the rules, for one command.
pub(crate) struct Guard<'a> {
    inner: &'a dyn Platform,
    rules: &'a Rules,
    audit: &'a Audit,
    denied: RefCell<HashMap<String, Denied>>,
    names: RefCell<HashMap<u32, Names>>,
    /// Whether something has reached an application: a later refusal then does not mean that nothing did.
    has_acted: Cell<bool>,
}

fn place(window: &Window) -> Option<Rect> {
    window.frame.or(window.bounds)
}

fn shows(window: &Window) -> bool {
    window.visible != Some(false) && window.minimized != Some(true)
}

impl<'a> Guard<'a> {
    pub(crate) fn new(inner: &'a dyn Platform, rules: &'a Rules, audit: &'a Audit) -> Guard<'a> {
        Guard {
            inner,
            rules,
            audit,
            denied: RefCell::default(),
            names: RefCell::default(),
            has_acted: Cell::default(),
        }
    }

    /// Whether these rules and this log need one.
    pub(crate) fn is_needed(rules: &Rules, audit: &Audit) -> bool {
        rules.has_apps() || rules.has_windows() || audit.is_on()
    }

    fn has_places(&self) -> bool {
        self.rules.has_apps() || self.rules.has_windows()
    }

    fn refuse(&self, denial: &Denial, message: impl Into<String>) -> Error {
        let error = denial.error(message.into());
        if self.has_acted.get() { error } else { error.delivery(Delivery::NotDelivered) }
    }

    /// Call before anything is sent.
    fn act(&self) -> Result<()> {
        self.audit.start()?;
        self.has_acted.set(true);
        Ok(())
    }

    fn names_of(&self, pid: u32, deadline: Deadline) -> Result<Names> {
        if let Some(names) = self.names.borrow().get(&pid) {
            return Ok(names.clone());
        }
        self.apps(deadline)?;
        // One that is not listed has no other name than the one it came with.
        Ok(self.names.borrow_mut().entry(pid).or_default().clone())
    }

    fn app_denial(
        &self,
        name: &str,
        id: Option<&str>,
        pid: u32,
        deadline: Deadline,
    ) -> Result<Option<Denial>> {
        if !self.rules.has_apps() {
            return Ok(None);
        }
        let known = self.names_of(pid, deadline)?;
        let names: Vec<&str> =
            [name].into_iter().chain(id).chain(known.ids.iter().map(String::as_str)).collect();
        let others: Vec<&str> = known.names.iter().map(String::as_str).collect();
        Ok(self.rules.app(&names, &others))
    }

    fn window_denial(&self, window: &Window, deadline: Deadline) -> Result<Option<Denial>> {
        let by_app = self.app_denial(&window.app_name, None, window.pid, deadline)?;
        Ok(by_app.or_else(|| self.rules.title(&window.title)))
    }

    fn check_app(&self, app: &App, deadline: Deadline) -> Result<()> {
        match self.app_denial(&app.name, app.application_id.as_deref(), app.pid, deadline)? {
            Some(denial) => {
                Err(self.refuse(&denial, format!("the policy file denies the application {:?}", app.name)))
            }
            None => Ok(()),
        }
    }

    fn check_window(&self, window: &Window, deadline: Deadline) -> Result<()> {
        if !self.has_places() {
            return Ok(());
        }
        let known = self.denied.borrow().get(&window.id).map(|denied| denied.denial.clone());
        let denial = match known {
            Some(denial) => Some(denial),
            None => self.window_denial(window, deadline)?,
        };
        match denial {
            Some(denial) => Err(self.refuse(
                &denial,
                format!("the policy file denies the window {} of {:?}", window.id, window.app_name),
            )),
            None => Ok(()),
        }
    }

    /// Refuses what is inside of a denied window of the same application: a dialog is read by way of any window of its
    /// application.
    fn check_inside(&self, handle: &Handle, window: &Window, deadline: Deadline) -> Result<()> {
        match self.denial_around(handle, window.pid, deadline)? {
            Some(denial) => {
                Err(self.refuse(&denial, format!("the policy file denies a window of {:?}", window.app_name)))
            }
            None => Ok(()),
        }
    }

    fn denial_around(&self, handle: &Handle, pid: u32, deadline: Deadline) -> Result<Option<Denial>> {
        let roots: Vec<(Handle, Denial)> = self
            .denied
            .borrow()
            .values()
            .filter(|denied| denied.pid == pid)
            .filter_map(|denied| Some((denied.handle.clone()?, denied.denial.clone())))
            .collect();
        if roots.is_empty() {
            return Ok(None);
        }
        let above = self.inner.ancestors(handle, deadline)?;
        let found = roots.into_iter().find(|(root, _)| root == handle || above.contains(root));
        Ok(found.map(|(_, denial)| denial))
    }

    /// Refuses an area of the screen in which a denied window can be seen, or might.
    fn check_area(&self, area: &Rect, deadline: Deadline) -> Result<()> {
        if !self.has_places() {
            return Ok(());
        }
        for window in self.windows(None, deadline)? {
            let is_inside = place(&window).is_none_or(|place| place.intersection(area).is_some());
            let denial = self.denied.borrow().get(&window.id).map(|denied| denied.denial.clone());
            if let (true, true, Some(denial)) = (is_inside, shows(&window), denial) {
                return Err(self
                    .refuse(
                        &denial,
                        format!(
                            "the picture would show a window of {:?} that the policy file denies",
                            window.app_name
                        ),
                    )
                    .detail("window_id", window.id));
            }
        }
        Ok(())
    }

    /// Refuses input that would go to a denied window.
    fn check_input(&self, input: &Input, deadline: Deadline) -> Result<()> {
        let points: &[Point] = match input {
            Input::Move(at) | Input::Click { at, .. } | Input::Wheel { at, .. } => &[*at],
            Input::Drag { from, to, .. } => &[*from, *to],
            Input::Chord(_) | Input::Text(_) => &[],
        };
        let windows = self.windows(None, deadline)?;
        if points.is_empty() {
            return match windows.iter().find(|window| window.is_focused) {
                Some(window) => self.check_window(window, deadline),
                None => match self.rules.nowhere() {
                    Some(denial) => Err(self
                        .refuse(
                            &denial,
                            "no listed window has the keyboard, so nobody can say whether the policy file allows keys",
                        )
                        .hint("focus a window first: focus-window, or press --app")),
                    None => Ok(()),
                },
            };
        }
        for point in points {
            // In the order in which they lie on each other.
            let is_hit =
                |window: &&Window| shows(window) && place(window).is_some_and(|place| place.contains(*point));
            if let Some(window) = windows.iter().find(is_hit) {
                self.check_window(window, deadline)?;
            }
        }
        Ok(())
    }
}

/// Notifications, without what denied applications say in them.
struct GuardedWatch<'a> {
    inner: Box<dyn NotificationWatch + 'a>,
    rules: &'a Rules,
}

impl NotificationWatch for GuardedWatch<'_> {
    fn next(&mut self, deadline: Deadline) -> Result<Option<NotificationEvent>> {
        let mut event = self.inner.next(deadline)?;
        if let Some(NotificationEvent::Shown(shown)) = &mut event
            && self.rules.app(&[&shown.app_name], &[]).is_some()
        {
            MASK.clone_into(&mut shown.title);
            shown.body.clear();
            shown.actions.clear();
        }
        Ok(event)
    }
}

/// What comes and goes, without the titles of denied windows.
struct GuardedDesktopWatch {
    inner: Box<dyn DesktopWatch>,
    rules: Rules,
}

impl GuardedDesktopWatch {
    fn mask(&self, window: &mut Window) {
        let known = self.inner.app(window.pid);
        let id = known.as_ref().and_then(|app| app.application_id.as_deref());
        let names: Vec<&str> = [window.app_name.as_str()].into_iter().chain(id).collect();
        let others: Vec<&str> = known.iter().map(|app| app.name.as_str()).collect();
        if self.rules.app(&names, &others).is_some() || self.rules.title(&window.title).is_some() {
            MASK.clone_into(&mut window.title);
        }
    }
}

impl DesktopWatch for GuardedDesktopWatch {
    fn counts(&self) -> DesktopCounts {
        self.inner.counts()
    }
    fn app(&self, pid: u32) -> Option<App> {
        self.inner.app(pid)
    }
    fn next(&mut self, deadline: Deadline) -> Result<Option<DesktopEvent>> {
        let mut event = self.inner.next(deadline)?;
        match &mut event {
            Some(
                DesktopEvent::WindowOpened(window)
                | DesktopEvent::WindowClosed(window)
                | DesktopEvent::FocusChanged(Some(window)),
            ) => self.mask(window),
            // In which window it is nobody can tell any more.
            Some(DesktopEvent::SurfaceAppeared(surface) | DesktopEvent::SurfaceDismissed(surface))
                if self.rules.has_windows() =>
            {
                surface.title = surface.title.take().map(|_| MASK.to_owned());
            }
            _ => {}
        }
        Ok(event)
    }
}

impl Clock for Guard<'_> {
    fn now(&self) -> Instant {
        self.inner.now()
    }
    fn sleep(&self, duration: Duration) {
        self.inner.sleep(duration);
    }
}

impl Platform for Guard<'_> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn safety(&self) -> Safety {
        self.inner.safety()
    }
    fn supported_surfaces(&self) -> &'static [SurfaceKind] {
        self.inner.supported_surfaces()
    }
    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
    fn permissions(&self, deadline: Deadline) -> Permissions {
        self.inner.permissions(deadline)
    }

    fn apps(&self, deadline: Deadline) -> Result<Vec<App>> {
        let apps = self.inner.apps(deadline)?;
        if self.rules.has_apps() {
            let mut names = self.names.borrow_mut();
            names.clear();
            for app in &apps {
                let known = names.entry(app.pid).or_default();
                known.names.push(app.name.clone());
                known.ids.extend(app.application_id.clone());
            }
        }
        Ok(apps)
    }

    fn windows(&self, app: Option<&App>, deadline: Deadline) -> Result<Vec<Window>> {
        let mut windows = self.inner.windows(app, deadline)?;
        if !self.has_places() {
            return Ok(windows);
        }
        for window in &mut windows {
            let Some(denial) = self.window_denial(window, deadline)? else {
                self.denied.borrow_mut().remove(&window.id);
                continue;
            };
            let denied = Denied { denial, pid: window.pid, handle: window.handle.clone() };
            self.denied.borrow_mut().insert(window.id.clone(), denied);
            MASK.clone_into(&mut window.title);
        }
        Ok(windows)
    }

    fn displays(&self, deadline: Deadline) -> Result<Vec<Display>> {
        self.inner.displays(deadline)
    }

    fn surfaces(&self, app: &App, kind: Option<SurfaceKind>, deadline: Deadline) -> Result<Vec<Surface>> {
        self.check_app(app, deadline)?;
        let mut surfaces = self.inner.surfaces(app, kind, deadline)?;
        if self.rules.has_windows() && !surfaces.is_empty() {
            // Which windows are denied must be known before a dialog can be told to be one.
            self.windows(Some(app), deadline)?;
            for surface in &mut surfaces {
                if self.denial_around(&surface.handle, app.pid, deadline)?.is_some() {
                    surface.title = Some(MASK.to_owned());
                }
            }
        }
        Ok(surfaces)
    }

    fn process_state(&self, pid: u32, instance: Option<&str>) -> ProcessState {
        self.inner.process_state(pid, instance)
    }

    fn observe(&self, scope: &Scope, limits: &Limits, deadline: Deadline) -> Result<Observation> {
        self.check_window(&scope.window, deadline)?;
        if let Some(root) = &scope.root {
            self.check_inside(root, &scope.window, deadline)?;
        }
        self.inner.observe(scope, limits, deadline)
    }

    fn read(&self, handles: &[Handle], window: &Window, deadline: Deadline) -> Result<Vec<Reading>> {
        self.check_window(window, deadline)?;
        for handle in handles {
            self.check_inside(handle, window, deadline)?;
        }
        self.inner.read(handles, window, deadline)
    }

    // These three know no window. Whoever has a handle has it from a tree that was observed, or from a ref whose element
    // was read a moment ago: both were checked.
    fn text(&self, target: &Handle, query: &TextQuery, deadline: Deadline) -> Result<Option<TextContent>> {
        self.inner.text(target, query, deadline)
    }
    fn ancestors(&self, handle: &Handle, deadline: Deadline) -> Result<Vec<Handle>> {
        self.inner.ancestors(handle, deadline)
    }
    fn is_opened_by(&self, surface: &Handle, target: &Handle, deadline: Deadline) -> Result<bool> {
        self.inner.is_opened_by(surface, target, deadline)
    }

    fn default_button(&self, dialog: &Handle, deadline: Deadline) -> Result<Option<Handle>> {
        self.inner.default_button(dialog, deadline)
    }

    fn show_location(&self, dialog: &Handle, deadline: Deadline) -> Result<bool> {
        self.act()?;
        self.inner.show_location(dialog, deadline)
    }

    fn hit_test(&self, target: &Handle, window: &Window, point: Point, deadline: Deadline) -> Result<Hit> {
        self.check_window(window, deadline)?;
        self.inner.hit_test(target, window, point, deadline)
    }

    fn dialog_over(&self, target: &Handle, window: &Window, deadline: Deadline) -> Result<Option<Hit>> {
        self.check_window(window, deadline)?;
        self.inner.dialog_over(target, window, deadline)
    }

    fn perform(&self, target: &Handle, operation: &Operation, deadline: Deadline) -> Result<Performed> {
        self.act()?;
        self.inner.perform(target, operation, deadline)
    }

    fn input(&self, input: &Input, deadline: Deadline) -> Result<usize> {
        if self.has_places() {
            self.check_input(input, deadline)?;
        }
        self.act()?;
        self.inner.input(input, deadline)
    }

    fn window_operation(
        &self,
        window: &Window,
        operation: WindowOperation,
        deadline: Deadline,
    ) -> Result<()> {
        self.check_window(window, deadline)?;
        self.act()?;
        self.inner.window_operation(window, operation, deadline)
    }

    fn instances(&self, name: &str, apps: &[App]) -> Vec<App> {
        self.inner.instances(name, apps)
    }
    fn comes_from(&self, pid: u32, launched: &Launched) -> bool {
        self.inner.comes_from(pid, launched)
    }

    fn launch(&self, request: &LaunchRequest, deadline: Deadline) -> Result<Launched> {
        if let Some(denial) = self.rules.app(&[&request.app], &[]) {
            return Err(
                self.refuse(&denial, format!("the policy file denies the application {:?}", request.app))
            );
        }
        self.act()?;
        self.inner.launch(request, deadline)
    }

    fn close(&self, app: &App, force: bool, deadline: Deadline) -> Result<()> {
        self.check_app(app, deadline)?;
        self.act()?;
        self.inner.close(app, force, deadline)
    }

    fn clipboard_offer(&self, deadline: Deadline) -> Result<ClipboardOffer> {
        self.inner.clipboard_offer(deadline)
    }
    fn clipboard_read(
        &self,
        form: ClipboardForm,
        limit: usize,
        deadline: Deadline,
    ) -> Result<Option<ClipboardContent>> {
        self.inner.clipboard_read(form, limit, deadline)
    }
    fn clipboard_write(&self, content: Option<&ClipboardContent>, deadline: Deadline) -> Result<()> {
        self.act()?;
        self.inner.clipboard_write(content, deadline)
    }

    fn has_notification_service(&self, deadline: Deadline) -> Result<bool> {
        self.inner.has_notification_service(deadline)
    }
    fn watch_desktop(&self, app: Option<&App>, deadline: Deadline) -> Result<Box<dyn DesktopWatch>> {
        if let Some(app) = app {
            self.check_app(app, deadline)?;
        }
        let inner = self.inner.watch_desktop(app, deadline)?;
        Ok(Box::new(GuardedDesktopWatch { inner, rules: self.rules.clone() }))
    }
    fn watch_notifications(&self, deadline: Deadline) -> Result<Box<dyn NotificationWatch + '_>> {
        let inner = self.inner.watch_notifications(deadline)?;
        Ok(Box::new(GuardedWatch { inner, rules: self.rules }))
    }
    // Whose it is is known to the journal only, and looked at there.
    fn dismiss_notification(&self, handle: &Handle, deadline: Deadline) -> Result<()> {
        self.act()?;
        self.inner.dismiss_notification(handle, deadline)
    }
    fn invoke_notification(
        &self,
        notification: &Notification,
        action: &NotificationAction,
        deadline: Deadline,
    ) -> Result<Delivery> {
        self.act()?;
        self.inner.invoke_notification(notification, action, deadline)
    }

    fn capture(&self, target: &CaptureTarget, deadline: Deadline) -> Result<Image> {
        match target {
            CaptureTarget::Window(window) => self.check_window(window, deadline)?,
            CaptureTarget::Display(display) => self.check_area(&display.bounds, deadline)?,
            CaptureTarget::Region(region) => self.check_area(region, deadline)?,
        }
        self.inner.capture(target, deadline)
    }

    fn diagnose(&self, examination: Examination, deadline: Deadline) -> Result<Vec<Check>> {
        // The window of the self-test is a window as others are; nothing else gets what it sends.
        if examination == Examination::Prove
            && let Some(denial) = self.rules.app(&[SELF_TEST], &[]).or_else(|| self.rules.title(SELF_TEST))
        {
            return Err(self.refuse(&denial, "the policy file denies the window of the self-test"));
        }
        if examination != Examination::Look {
            self.act()?;
        }
        self.inner.diagnose(examination, deadline)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fake::{Bench, app, window};
    use crate::rules::PolicyFile;

    /// Mail (pid 7) with its focused window "Inbox" at 0,0 200 x 100, and behind it, to the right, Vault (pid 8) with
    /// "Passwords" at 250,0 100 x 100.
    fn bench(name: &str, policy: &str) -> Bench {
        let mut bench = Bench::new(name);
        let path = bench.folder().join("policy.toml");
        std::fs::write(&path, policy).unwrap();
        bench.options.policy_files = vec![PolicyFile { path, must_exist: true }];
        bench.options.headed = true;
        bench.fake.now_be(|scene| {
            let vault = App { application_id: Some("org.vault.Vault".to_owned()), ..app("Vault", 8) };
            let place = Rect::from_pixels(250, 0, 100, 100);
            scene.windows.push(Window { bounds: Some(place), ..window("w-2", "Passwords", &vault) });
            scene.apps.push(vault);
        });
        bench
    }

    #[track_caller]
    fn denied(bench: &Bench, name: &str, arguments: Value, rule: &str) {
        let error = bench.error(name, arguments, "POLICY_DENIED", Some("policy_file"), "not_delivered");
        assert_eq!(error["details"]["rule"], rule, "{error}");
        assert!(error["details"]["file"].as_str().unwrap().ends_with("policy.toml"), "{error}");
        assert_eq!(bench.fake.inputs.borrow().len(), 0);
    }

    #[test]
    fn a_denied_application_is_listed_and_nothing_else() {
        for (number, pattern) in ["va*", "org.VAULT.*", "vault"].into_iter().enumerate() {
            let bench = bench(&format!("guard-app-{number}"), &format!("[apps]\ndeny = [{pattern:?}]"));
            let rule = format!("apps.deny {pattern:?}");
            let titles: Vec<Value> = bench
                .data("list-windows", json!({}))
                .as_array()
                .unwrap()
                .iter()
                .map(|window| window["title"].clone())
                .collect();
            assert_eq!(titles, ["Inbox", MASK]);
            for (name, arguments) in [
                ("snapshot", json!({"app": "Vault"})),
                ("snapshot", json!({"window_id": "w-2"})),
                ("find", json!({"app": "Vault", "name": "Send"})),
                ("list-surfaces", json!({"app": "Vault"})),
                ("wait", json!({"text": "Send", "app": "Vault"})),
                ("screenshot", json!({"app": "Vault"})),
                ("screenshot", json!({})),
                ("screenshot", json!({"region": "240,0,20,20"})),
                ("focus-window", json!({"app": "Vault"})),
                ("minimize", json!({"window_id": "w-2"})),
                ("close-app", json!({"app": "Vault"})),
                ("mouse-click", json!({"xy": "300,50"})),
                ("mouse-move", json!({"xy": "300,50"})),
                ("mouse-wheel", json!({"x": 300, "y": 50})),
                ("drag", json!({"from_xy": "10,10", "to_xy": "300,50"})),
                ("press", json!({"combo": "a", "app": "Vault"})),
            ] {
                denied(&bench, name, arguments, &rule);
            }
            bench.data("snapshot", json!({"app": "Mail"}));
            bench.data("screenshot", json!({"app": "Mail"}));
            bench.data("screenshot", json!({"region": "0,0,20,20"}));
            bench.data("mouse-click", json!({"xy": "10,10"}));
            bench.data("press", json!({"combo": "a"}));
            assert_eq!(bench.fake.inputs.borrow().len(), 2);
        }
    }

    #[test]
    fn a_denied_application_is_not_launched() {
        let bench = bench("guard-launch", "[apps]\ndeny = [\"keepass*\"]");
        denied(&bench, "launch", json!({"app": "KeePassXC"}), "apps.deny \"keepass*\"");
        denied(&bench, "launch", json!({"app": "org.keepassxc.KeePassXC"}), "apps.deny \"keepass*\"");
    }

    #[test]
    fn an_allow_list_denies_every_other_application() {
        let bench = bench("guard-allow", "[apps]\nallow = [\"Mail\"]");
        bench.data("snapshot", json!({"app": "Mail"}));
        denied(&bench, "snapshot", json!({"app": "Vault"}), "apps.allow");
        denied(&bench, "launch", json!({"app": "other"}), "apps.allow");
    }

    #[test]
    fn a_ref_from_before_the_rule_is_not_acted_on() {
        let mut bench = bench("guard-ref", "[apps]\ndeny = [\"Mail\"]");
        let files = std::mem::take(&mut bench.options.policy_files);
        let reference = bench.reference("Send");
        bench.options.policy_files = files;
        for name in ["click", "get", "text"] {
            let arguments = match name {
                "get" => json!({"ref_id": reference, "property": "text"}),
                "text" => json!({"action": "get", "ref_id": reference}),
                _ => json!({"ref_id": reference}),
            };
            denied(&bench, name, arguments, "apps.deny \"Mail\"");
        }
    }

    #[test]
    fn titles_decide_as_they_are_now() {
        let bench = bench("guard-title", "[windows]\ndeny = [\"*bank*\"]");
        let reference = bench.reference("Send");
        bench.fake.now_be(|scene| scene.windows[0].title = "My Bank".to_owned());
        denied(&bench, "click", json!({"ref_id": reference}), "windows.deny \"*bank*\"");
        denied(&bench, "press", json!({"combo": "a"}), "windows.deny \"*bank*\"");
        denied(&bench, "type", json!({"ref_id": reference, "text": "x"}), "windows.deny \"*bank*\"");
        let text = bench.text("list-windows", json!({}));
        assert!(text.contains(MASK) && text.contains("Passwords") && !text.contains("Bank"), "{text}");
        bench.fake.now_be(|scene| scene.windows[0].title = "Inbox".to_owned());
        bench.data("press", json!({"combo": "a"}));
        // In the middle of a command as well: the window is looked at again before something is sent.
        let bench = self::bench("guard-race", "[windows]\ndeny = [\"*bank*\"]");
        bench.fake.now_be(|scene| scene.windows[0].is_focused = false);
        bench.fake.on_focus(|scene| {
            scene.windows[0].is_focused = true;
            scene.windows[0].title = "My Bank".to_owned();
        });
        let error = bench.run("press", json!({"combo": "a", "app": "Mail"}));
        assert_eq!(error["error"]["details"]["kind"], "policy_file", "{error}");
        assert_eq!(bench.fake.inputs.borrow().len(), 0);
    }

    #[test]
    fn what_covers_a_denied_window_takes_the_pointer() {
        let bench = bench("guard-covered", "[apps]\ndeny = [\"Vault\"]");
        bench.fake.now_be(|scene| scene.windows[0].frame = Some(Rect::from_pixels(0, 0, 400, 300)));
        bench.data("mouse-click", json!({"xy": "300,50"}));
        bench.fake.now_be(|scene| scene.windows.swap(0, 1));
        let error = bench.run("mouse-click", json!({"xy": "300,50"}));
        assert_eq!(error["error"]["details"]["kind"], "policy_file", "{error}");
        // What is minimized is in nobody's way.
        bench.fake.now_be(|scene| scene.windows[0].minimized = Some(true));
        bench.data("mouse-click", json!({"xy": "300,50"}));
        bench.data("screenshot", json!({}));
    }

    #[test]
    fn keys_that_would_go_nobody_knows_where_are_refused() {
        let bench = bench("guard-nowhere", "[windows]\ndeny = [\"*bank*\"]");
        bench.fake.now_be(|scene| scene.windows[0].is_focused = false);
        denied(&bench, "press", json!({"combo": "a"}), "windows");
    }

    #[test]
    fn a_surface_inside_a_denied_window_of_an_allowed_application_is_masked_and_not_read() {
        let bench = bench("guard-surface", "[windows]\ndeny = [\"Secret*\"]");
        bench.fake.now_be(|scene| {
            let mail = scene.apps[0].clone();
            let dialog = window("w-3", "Secret question", &mail);
            scene.surfaces.push(Surface {
                id: "s1".to_owned(),
                kind: "menu",
                title: Some("Secret question".to_owned()),
                item_count: None,
                handle: dialog.handle.clone().unwrap(),
                is_hidden: false,
            });
            scene.windows.push(dialog);
        });
        let text = bench.text("list-surfaces", json!({"app": "Mail"}));
        assert!(text.contains(MASK) && !text.contains("question"), "{text}");
        denied(&bench, "snapshot", json!({"app": "Mail", "surface": "menu"}), "windows.deny \"Secret*\"");
    }

    #[test]
    fn a_refusal_after_something_was_sent_does_not_call_a_retry_safe() {
        let bench = bench("guard-late", "[apps]\ndeny = [\"Vault\"]");
        let (rules, audit) = (Rules::load(&bench.options.policy_files), Audit::default());
        let guard = Guard::new(&bench.fake, &rules, &audit);
        let deadline = Deadline::after(bench.fake.now(), Duration::from_secs(5));
        let click = |x: f64| Input::Move(Point { x, y: 50.0 });
        assert!(guard.input(&click(300.0), deadline).unwrap_err().is_stamped());
        guard.input(&click(10.0), deadline).unwrap();
        assert!(!guard.input(&click(300.0), deadline).unwrap_err().is_stamped());
    }

    #[test]
    fn every_entry_of_a_batch_is_checked() {
        let bench = bench("guard-batch", "[commands]\nallow = [\"list-*\"]\n[apps]\ndeny = [\"Vault\"]");
        let list = json!([{"command": "list-windows"}, {"command": "snapshot", "args": {"app": "Mail"}}]);
        let results = bench.data("batch", json!({"json": list.to_string()}))["results"].take();
        assert_eq!(results[0]["data"][1]["title"], MASK, "{results}");
        assert_eq!(results[1]["error"]["details"]["rule"], "commands.allow", "{results}");
    }

    #[test]
    fn blocked_keys_and_protected_applications_need_force_which_may_be_denied() {
        let rules = "[input]\nblocked = [\"Control + W\"]\n[processes]\nprotected = [\"mai*\"]\n";
        let bench = bench("guard-force", rules);
        denied(&bench, "press", json!({"combo": "ctrl+w"}), "input.blocked \"Control + W\"");
        denied(&bench, "key-down", json!({"combo": "ctrl+w"}), "input.blocked \"Control + W\"");
        denied(&bench, "key-up", json!({"combo": "ctrl+w"}), "input.blocked \"Control + W\"");
        denied(&bench, "close-app", json!({"app": "pid:7"}), "processes.protected \"mai*\"");
        bench.data("press", json!({"combo": "ctrl+w", "force": true}));
        bench.fake.on_close(|scene| scene.process = ProcessState::Exited);
        bench.data("close-app", json!({"app": "Mail", "force": true}));
        let bench = self::bench("guard-no-force", &format!("allow_force = false\n{rules}"));
        for (name, arguments) in [
            ("press", json!({"combo": "ctrl+w", "force": true})),
            ("key-down", json!({"combo": "shift", "force": true})),
            ("key-up", json!({"combo": "a", "force": true})),
            ("close-app", json!({"app": "Vault", "force": true})),
        ] {
            denied(&bench, name, arguments, "allow_force");
        }
        bench.data("press", json!({"combo": "ctrl+e"}));
    }

    #[test]
    fn a_file_that_cannot_be_used_denies_everything_but_version() {
        let bench = bench("guard-broken", "read_only = true\nnonsense = 1");
        for spec in ["status", "list-apps", "snapshot", "permissions", "session"] {
            let error = bench.error(
                spec,
                if spec == "session" { json!({"action": "list"}) } else { json!({}) },
                "POLICY_DENIED",
                Some("policy_invalid"),
                "not_delivered",
            );
            assert_eq!(error["details"]["line"], 2, "{error}");
        }
        bench.data("version", json!({}));
    }

    #[test]
    fn status_names_the_files() {
        let bench = bench("guard-status", "read_only = true\naudit = true");
        let policy = bench.data("status", json!({}))["policy"].take();
        assert_eq!((&policy["read_only"], &policy["audit"]), (&json!(true), &json!(true)));
        assert!(policy["files"][0].as_str().unwrap().ends_with("policy.toml"), "{policy}");
    }
}
