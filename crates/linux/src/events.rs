//! What comes and goes on the desktop: windows, applications, the focus, open menus and dialogs.
//!
//! Two threads listen, one to the X server and one to the accessibility bus's own word about who joins and leaves. They
//! put what they learn into one queue at once, so that a window that lives for a moment is known also when nobody waits yet.
//! Nothing is registered with applications: some end when their last listener leaves. So what opens inside of a window
//! without being one, a popover, is found by looking, five times a second.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use agent_desktop_core::platform::{
    App, DesktopCounts, DesktopEvent, DesktopWatch, Platform, Surface, Window,
};
use agent_desktop_core::tree::Handle;
use agent_desktop_core::{Deadline, Error, ErrorCode, Result};

use crate::bus::Bus;
use crate::dbus::{Call, Failure};
use crate::platform::{Linux, screen_error, screen_only};
use crate::window_system::{self as screen, WindowKind, WindowSystemError, X11};

/// How often what no event tells is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// When applications are listed again after somebody joined the bus: it takes a moment until one says what it is.
const JOINING: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(150),
    Duration::from_millis(500),
    Duration::from_millis(1500),
];
/// How long no window must have the keyboard until that is said; between two windows there is a moment like that.
const UNFOCUSED: Duration = Duration::from_millis(150);
/// Slices in which the thread at the bus waits.
const SLICE: Duration = Duration::from_millis(200);
/// Events that wait for a reader at most; older ones are forgotten.
const MOST_EVENTS: usize = 4096;

/// What a thread has learned.
enum News {
    Windows(screen::Result<screen::WindowList>),
    /// Somebody joined the accessibility bus, or left it.
    Bus,
}

/// A watch over the desktop.
pub(crate) struct Watch {
    linux: Linux,
    news: Receiver<News>,
    is_over: Arc<AtomicBool>,
    counts: DesktopCounts,
    apps: HashMap<u32, App>,
    windows: Vec<Window>,
    focused: Option<String>,
    /// Since when no window has the keyboard.
    unfocused_since: Option<Instant>,
    surfaces_of: Option<App>,
    surfaces: Vec<Surface>,
    /// Menus on the screen that the accessibility bus did not know in time.
    bare_menus: HashSet<u32>,
    menus: HashSet<u32>,
    /// When applications are to be listed.
    due: Vec<Instant>,
    next_look: Instant,
    queue: VecDeque<DesktopEvent>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn is_ordinary(window: &screen::Window) -> bool {
    !matches!(window.kind, WindowKind::Desktop | WindowKind::Dock)
        && window.pid.or(window.claimed_pid).is_some_and(|pid| pid != 0)
}

fn is_menu(popup: &screen::Popup) -> bool {
    matches!(popup.kind, WindowKind::Menu | WindowKind::DropdownMenu | WindowKind::PopupMenu)
}

impl Watch {
    /// Begins to listen, and then looks what there is.
    ///
    /// # Errors
    /// `PLATFORM_NOT_SUPPORTED` without a display server; those of the first look.
    pub(crate) fn start(of: Option<&App>, deadline: Deadline) -> Result<Watch> {
        let display = X11::connect(None, deadline.at()).map_err(|error| match error {
            WindowSystemError::Connect { .. } => Error::new(
                ErrorCode::PlatformNotSupported,
                "events are told by a display server, and none can be reached",
            )
            .hint("run inside the desktop session, with DISPLAY set")
            .platform_detail(error.to_string()),
            error => screen_error(&error),
        })?;
        display.begin_watch(deadline.at()).map_err(|error| screen_error(&error))?;
        let list = display.windows(deadline.at()).map_err(|error| screen_error(&error))?;
        let (sender, news) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let linux = Linux::new();
        // Without an accessibility bus there are windows all the same.
        listen_to_bus(deadline, &is_over, &sender);
        let apps = by_process(linux.apps(deadline)?);
        let surfaces = match of {
            Some(app) => linux.surfaces(app, None, deadline)?,
            None => Vec::new(),
        };
        let mut watch = Watch {
            linux,
            news,
            is_over,
            counts: DesktopCounts::default(),
            apps,
            windows: Vec::new(),
            focused: None,
            unfocused_since: None,
            surfaces_of: of.cloned(),
            surfaces,
            bare_menus: HashSet::new(),
            menus: HashSet::new(),
            due: Vec::new(),
            next_look: Instant::now() + LOOK,
            queue: VecDeque::new(),
        };
        watch.take_list(&list);
        watch.queue.clear();
        watch.focused = watch.windows.iter().find(|window| window.is_focused).map(|window| window.id.clone());
        watch.unfocused_since = None;
        watch.counts = DesktopCounts {
            windows: watch.windows.len(),
            apps: watch.apps.len(),
            surfaces: watch.surfaces.len(),
        };
        let over = Arc::clone(&watch.is_over);
        std::thread::spawn(move || {
            crate::signals::leave_to_others();
            display.watch(list, |news| {
                let is_heard = news.is_none_or(|list| sender.send(News::Windows(list)).is_ok());
                is_heard && !over.load(Ordering::Relaxed)
            });
        });
        Ok(watch)
    }

    fn tell(&mut self, event: DesktopEvent) {
        if self.queue.len() >= MOST_EVENTS {
            self.queue.pop_front();
        }
        self.queue.push_back(event);
    }

    /// Compares a list of windows with the one before.
    fn take_list(&mut self, list: &screen::WindowList) {
        let ordinary: Vec<&screen::Window> =
            list.windows.iter().filter(|window| is_ordinary(window)).collect();
        let pid_of = |window: &screen::Window| window.pid.or(window.claimed_pid).unwrap_or(0);
        if ordinary.iter().any(|window| !self.apps.contains_key(&pid_of(window))) {
            self.list_apps();
            // It is on the screen before it is on the bus.
            self.expect_apps();
        }
        let now: Vec<Window> = ordinary
            .iter()
            .map(|seen| {
                let pid = pid_of(seen);
                let name = self.apps.get(&pid).map_or_else(|| seen.class.clone(), |app| app.name.clone());
                screen_only(seen, pid, name, None)
            })
            .collect();
        let before = std::mem::replace(&mut self.windows, now);
        let ids = |windows: &[Window]| windows.iter().map(|window| window.id.clone()).collect::<HashSet<_>>();
        let (old, new) = (ids(&before), ids(&self.windows));
        let closed: Vec<Window> = before.into_iter().filter(|window| !new.contains(&window.id)).collect();
        let opened: Vec<Window> =
            self.windows.iter().filter(|window| !old.contains(&window.id)).cloned().collect();
        if !closed.is_empty() {
            self.expect_apps();
        }
        for window in closed {
            self.tell(DesktopEvent::WindowClosed(window));
        }
        for window in opened {
            self.tell(DesktopEvent::WindowOpened(window));
        }
        self.take_focus();
        if let Some(app) = self.surfaces_of.clone() {
            let menus = list.popups.iter().filter(|popup| popup.pid == Some(app.pid) && is_menu(popup));
            let menus: HashSet<u32> = menus.map(|popup| popup.id.0).collect();
            self.take_menus(menus);
        }
    }

    fn take_focus(&mut self) {
        match self.windows.iter().find(|window| window.is_focused) {
            Some(window) => {
                self.unfocused_since = None;
                if self.focused.as_ref() != Some(&window.id) {
                    self.focused = Some(window.id.clone());
                    let window = window.clone();
                    self.tell(DesktopEvent::FocusChanged(Some(window)));
                }
            }
            None if self.focused.is_some() => {
                self.unfocused_since.get_or_insert_with(Instant::now);
            }
            None => {}
        }
    }

    /// Menus of the application on the screen. Those that the bus does not know are told all the same.
    fn take_menus(&mut self, menus: HashSet<u32>) {
        if menus == self.menus {
            return;
        }
        let known = self.surfaces.len();
        self.list_surfaces();
        for id in menus.difference(&self.menus).copied().collect::<Vec<_>>() {
            if self.surfaces.len() <= known {
                self.bare_menus.insert(id);
                self.tell(DesktopEvent::SurfaceAppeared(bare_menu(id)));
            }
        }
        for id in self.menus.difference(&menus).copied().collect::<Vec<_>>() {
            if self.bare_menus.remove(&id) {
                self.tell(DesktopEvent::SurfaceDismissed(bare_menu(id)));
            }
        }
        self.menus = menus;
    }

    fn expect_apps(&mut self) {
        let now = Instant::now();
        self.due = JOINING.iter().map(|delay| now + *delay).collect();
    }

    /// Compares the applications with those before. One that does not answer now does not make others come or go.
    fn list_apps(&mut self) {
        let Ok(now) = self.linux.apps(Deadline::after(Instant::now(), PATIENCE)) else { return };
        let now = by_process(now);
        let before = std::mem::replace(&mut self.apps, now);
        let is_same = |one: &App, other: &App| one.process_instance == other.process_instance;
        let mut events = Vec::new();
        for (pid, app) in &before {
            if self.apps.get(pid).is_none_or(|now| !is_same(now, app)) {
                if self.surfaces_of.as_ref().is_some_and(|of| of.pid == *pid) {
                    events.extend(self.surfaces.drain(..).map(DesktopEvent::SurfaceDismissed));
                }
                events.push(DesktopEvent::AppTerminated(app.clone()));
            }
        }
        for (pid, app) in &self.apps {
            match before.get(pid).filter(|old| is_same(old, app)) {
                None => events.push(DesktopEvent::AppLaunched(app.clone())),
                Some(old) if old.name != app.name => events.push(DesktopEvent::AppNamed(app.clone())),
                Some(_) => {}
            }
        }
        for event in events {
            self.tell(event);
        }
    }

    fn list_surfaces(&mut self) {
        let Some(app) = self.surfaces_of.clone() else { return };
        let deadline = Deadline::after(Instant::now(), PATIENCE);
        let now = match self.linux.surfaces(&app, None, deadline) {
            Ok(now) => now,
            // What is open in one that says nothing is not known; of one that is gone, nothing is.
            Err(_) if self.apps.contains_key(&app.pid) => return,
            Err(_) => Vec::new(),
        };
        let before = std::mem::replace(&mut self.surfaces, now);
        let has =
            |list: &[Surface], surface: &Surface| list.iter().any(|other| other.handle == surface.handle);
        let gone: Vec<Surface> = before.iter().filter(|old| !has(&self.surfaces, old)).cloned().collect();
        let came: Vec<Surface> = self.surfaces.iter().filter(|new| !has(&before, new)).cloned().collect();
        for surface in gone {
            self.tell(DesktopEvent::SurfaceDismissed(surface));
        }
        for surface in came {
            self.tell(DesktopEvent::SurfaceAppeared(surface));
        }
    }

    fn take(&mut self, news: News) -> Result<()> {
        match news {
            News::Windows(Ok(list)) => self.take_list(&list),
            News::Windows(Err(error)) => return Err(screen_error(&error)),
            News::Bus => self.expect_apps(),
        }
        Ok(())
    }

    /// What is due by now.
    fn look(&mut self) {
        let now = Instant::now();
        if self.due.iter().any(|due| *due <= now) {
            self.due.retain(|due| *due > now);
            self.list_apps();
        }
        if self.unfocused_since.is_some_and(|since| now.saturating_duration_since(since) >= UNFOCUSED) {
            self.unfocused_since = None;
            self.focused = None;
            self.tell(DesktopEvent::FocusChanged(None));
        }
        if self.surfaces_of.is_some() && now >= self.next_look {
            self.list_surfaces();
            self.next_look = Instant::now() + LOOK;
        }
    }

    /// When there is something to do without news.
    fn wake(&self, until: Instant) -> Instant {
        let focus = self.unfocused_since.map(|since| since + UNFOCUSED);
        let look = self.surfaces_of.is_some().then_some(self.next_look);
        self.due.iter().copied().chain(focus).chain(look).fold(until, Instant::min)
    }
}

impl DesktopWatch for Watch {
    fn counts(&self) -> DesktopCounts {
        self.counts
    }

    fn app(&self, pid: u32) -> Option<App> {
        self.apps.get(&pid).cloned()
    }

    fn next(&mut self, deadline: Deadline) -> Result<Option<DesktopEvent>> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(Some(event));
            }
            let wake = self.wake(deadline.at());
            match self.news.recv_timeout(wake.saturating_duration_since(Instant::now())) {
                Ok(news) => {
                    self.take(news)?;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("nobody listens to the desktop any more"));
                }
            }
            if self.queue.is_empty() && deadline.has_passed(Instant::now()) {
                return Ok(None);
            }
        }
    }
}

/// One entry a process: the one that says most.
fn by_process(apps: Vec<App>) -> HashMap<u32, App> {
    let mut known: HashMap<u32, App> = HashMap::new();
    for app in apps {
        let says_less = |old: &App| old.handle.is_none() && app.handle.is_some();
        if known.get(&app.pid).is_none_or(says_less) {
            known.insert(app.pid, app);
        }
    }
    known
}

fn bare_menu(id: u32) -> Surface {
    Surface {
        id: format!("w-{id:x}"),
        kind: "menu",
        title: None,
        item_count: None,
        handle: Handle::new(format!("w-{id:x}")),
        is_hidden: false,
    }
}

/// Starts the thread that hears who joins the accessibility bus and who leaves it.
fn listen_to_bus(deadline: Deadline, is_over: &Arc<AtomicBool>, sender: &Sender<News>) {
    let rule = "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged'";
    let Ok(mut bus) = Bus::connect(deadline) else { return };
    let asked = bus.connection.call(
        &Call {
            signature: "s",
            body: &|writer| writer.string(rule),
            ..Call::new("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch")
        },
        deadline.at(),
    );
    if asked.is_err() {
        return;
    }
    let (is_over, sender) = (Arc::clone(is_over), sender.clone());
    std::thread::spawn(move || {
        crate::signals::leave_to_others();
        while !is_over.load(Ordering::Relaxed) {
            match bus.connection.next_message(Instant::now() + SLICE) {
                Ok(message) if message.member() == "NameOwnerChanged" => {
                    if sender.send(News::Bus).is_err() {
                        return;
                    }
                }
                Ok(_) | Err(Failure::Timeout) => {}
                Err(_) => return,
            }
        }
    });
}
