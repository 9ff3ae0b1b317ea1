//! `Platform` on Linux: accessibility and window system put together.
//!
//! Decided here: which accessible window is which window of the screen, where a toolkit's coordinates begin, which
//! connection a question goes over. The bus and the display are reached when they are first needed, once.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use agent_desktop_core::action::MouseButton;
use agent_desktop_core::geometry::{Point, Rect};
use agent_desktop_core::key::{Key, Modifier};
use agent_desktop_core::platform::{
    App, CaptureTarget, Check, ClipboardContent, ClipboardForm, ClipboardOffer, Clock, DesktopWatch, Display,
    Examination, Hit, Image, Input, LaunchRequest, Launched, Limits, Notification, NotificationAction,
    NotificationWatch, Observation, Operation, Performed, Permission, Permissions, Platform, Presentation,
    ProcessState, Reading, Safety, Scope, Statistics, Stop, Surface, SurfaceKind, TextContent, TextQuery,
    Window, WindowOperation,
};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Handle, Node};
use agent_desktop_core::{Deadline, Delivery, Error, ErrorCode, Result};

use crate::act::Actor;
use crate::bus::{
    ACCESSIBLE, APPLICATION, Bus, COMPONENT, Object, ROOT, Registered, bus_error, extents_of, object,
    objects, owned_by, send_extents, send_get, send_plain, states, variant_string,
};
use crate::clipboard;
use crate::dbus::{Call, Connection, Failure};
use crate::map::{self, Toolkit, role, state};
use crate::popups::{self, Popovers, PopupWindow};
use crate::text::Units;
use crate::tree::{Manner, Single, Survey, is_told_by_label, opens_by_inner_button};
use crate::window_system::{
    self as screen, Keysym, Rectangle, TypingOptions, WindowId, WindowKind, WindowState, WindowSystemError,
    X11, keysym_for_character, keysym_for_name,
};
use crate::{host, notifications, process, start};

/// Chords that end, lock or leave more than the caller means to.
const BLOCKED_CHORDS: &[&str] = &[
    "alt+f4",
    "ctrl+alt+forwarddelete",
    "ctrl+alt+backspace",
    "ctrl+alt+escape",
    "meta+l",
    "ctrl+alt+l",
    "ctrl+q",
    "ctrl+shift+q",
    "ctrl+alt+f1",
    "ctrl+alt+f2",
    "ctrl+alt+f3",
    "ctrl+alt+f4",
    "ctrl+alt+f5",
    "ctrl+alt+f6",
    "ctrl+alt+f7",
    "ctrl+alt+f8",
    "ctrl+alt+f9",
    "ctrl+alt+f10",
    "ctrl+alt+f11",
    "ctrl+alt+f12",
    "shift+forwarddelete",
];

/// Processes whose end ends the session.
const PROTECTED_PROCESSES: &[&str] = &[
    "init",
    "systemd",
    "dbus-daemon",
    "dbus-broker",
    "at-spi2-registryd",
    "at-spi-bus-launcher",
    "gdm",
    "gdm3",
    "sddm",
    "lightdm",
    "xorg",
    "xwayland",
    "xvfb",
    "gnome-shell",
    "gnome-session-binary",
    "plasmashell",
    "kwin_x11",
    "kwin_wayland",
    "sway",
    "labwc",
    "hyprland",
    "mutter",
    "openbox",
    "xfwm4",
    "xfce4-session",
    "xfce4-panel",
    "cinnamon",
    "mate-session",
    "marco",
    "metacity",
    "pipewire",
    "wireplumber",
];

const SUPPORTED_SURFACES: &[SurfaceKind] = &[
    SurfaceKind::Window,
    SurfaceKind::Focused,
    SurfaceKind::Menu,
    SurfaceKind::MenuBar,
    SurfaceKind::Sheet,
    SurfaceKind::Popover,
    SurfaceKind::Alert,
];

/// Children of an application that are looked at as windows.
/// How long it may take to find out where the popups of a tree are, once the tree was read.
const PLACING: Duration = Duration::from_millis(100);
/// Objects of a dialog that are looked at for one of them.
const MOST_IN_DIALOG: usize = 500;
/// Characters of a title.
const MOST_TITLE: usize = 1000;
const MOST_WINDOWS: usize = 256;
/// Objects inside a control that are looked at for its label.
const MOST_LABEL_NODES: u32 = 40;

/// How one application has to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) toolkit: Toolkit,
    pid: u32,
    pub(crate) has_safe_actions: bool,
}

/// The Linux desktop of this session.
pub struct Linux {
    bus: RefCell<Option<Bus>>,
    display: OnceCell<X11>,
    known: RefCell<HashMap<Box<str>, Known>>,
    /// Processes that did not answer when everybody was last asked.
    silent: RefCell<Vec<u32>>,
    direct: RefCell<HashMap<Box<str>, Option<Connection>>>,
    retired: Cell<Statistics>,
}

impl Default for Linux {
    fn default() -> Linux {
        Linux::new()
    }
}

impl Clock for Linux {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// What stands between a point and a window.
enum InFront {
    Nothing,
    /// A popup of the same application.
    OwnPopup(Hit),
    Other(Hit),
}

/// An object inside a window, as far as its kind matters.
pub(crate) struct Inner {
    pub(crate) object: Object,
    pub(crate) role: u32,
    pub(crate) states: u64,
}

/// An accessible window, before it is known which window of the screen it is.
pub(crate) struct Candidate {
    pub(crate) object: Object,
    pub(crate) role: u32,
    pub(crate) states: u64,
    pub(crate) title: String,
    pub(crate) extents: Option<Rect>,
}

impl Linux {
    /// The desktop that the environment names. Nothing is connected yet.
    pub fn new() -> Linux {
        Linux {
            bus: RefCell::new(None),
            display: OnceCell::new(),
            known: RefCell::new(HashMap::new()),
            silent: RefCell::default(),
            direct: RefCell::new(HashMap::new()),
            retired: Cell::new(Statistics::default()),
        }
    }

    pub(crate) fn with_bus<T>(
        &self,
        deadline: Deadline,
        work: impl FnOnce(&mut Bus) -> Result<T>,
    ) -> Result<T> {
        let mut slot = self.bus.borrow_mut();
        if slot.is_none() {
            *slot = Some(Bus::connect(deadline)?);
        }
        let bus = slot.as_mut().expect("the bus was just connected");
        work(bus)
    }

    /// The display server, if there is one. One that could not be reached is tried again the next time.
    pub(crate) fn display(&self, deadline: Deadline) -> std::result::Result<&X11, WindowSystemError> {
        if let Some(display) = self.display.get() {
            return Ok(display);
        }
        let display = X11::connect(None, deadline.at())?;
        Ok(self.display.get_or_init(|| display))
    }

    fn need_display(&self, deadline: Deadline) -> Result<&X11> {
        self.display(deadline).map_err(|error| match error {
            WindowSystemError::Connect { .. } => {
                Error::new(ErrorCode::PlatformNotSupported, "no display server can be reached")
                    .hint("run inside the desktop session, with DISPLAY set")
                    .platform_detail(error.to_string())
                    .delivery(Delivery::NotDelivered)
            }
            error => screen_error(&error),
        })
    }

    /// The display server for those who can do without; `None` where there is none.
    ///
    /// One that is there and silent is an error: without it the same question would have another answer.
    fn display_if_any(&self, deadline: Deadline) -> Result<Option<&X11>> {
        match self.display(deadline) {
            Ok(display) => Ok(Some(display)),
            Err(WindowSystemError::Connect { .. }) => Ok(None),
            Err(error) => Err(screen_error(&error)),
        }
    }

    /// The windows on the screen; `None` where there is no display server.
    ///
    /// One that is there and fails is an error: without its list every window would go by another id.
    pub(crate) fn screen_windows(&self, deadline: Deadline) -> Result<Option<screen::WindowList>> {
        let Some(display) = self.display_if_any(deadline)? else { return Ok(None) };
        display.windows(deadline.at()).map(Some).map_err(|error| screen_error(&error))
    }

    /// Everyone on the accessibility bus; remembers how each has to be asked.
    pub(crate) fn registered(&self, deadline: Deadline) -> Result<Vec<Registered>> {
        let applications = self.with_bus(deadline, |bus| bus.applications(deadline))?;
        let silent = applications.iter().filter(|application| !application.answers);
        *self.silent.borrow_mut() = silent.map(|application| application.pid).collect();
        let mut known = self.known.borrow_mut();
        for application in applications.iter().filter(|application| application.answers) {
            known.entry(application.root.bus.clone()).or_insert_with(|| Known {
                toolkit: application.toolkit(),
                pid: application.pid,
                has_safe_actions: has_safe_actions(application.toolkit(), application.pid),
            });
        }
        Ok(applications)
    }

    /// How the owner of this object has to be asked. One round trip the first time.
    pub(crate) fn known(&self, owner: &str, deadline: Deadline) -> Result<Known> {
        if let Some(known) = self.known.borrow().get(owner) {
            return Ok(known.clone());
        }
        let known = self.with_bus(deadline, |bus| {
            let connection = &mut bus.connection;
            let root = Object::new(owner, ROOT);
            let pid = connection.send(&Call {
                signature: "s",
                body: &|writer| writer.string(owner),
                ..Call::new(
                    "org.freedesktop.DBus",
                    "/org/freedesktop/DBus",
                    "org.freedesktop.DBus",
                    "GetConnectionUnixProcessID",
                )
            });
            let toolkit = send_get(connection, &root, APPLICATION, "ToolkitName");
            let pid = match connection.wait(pid, deadline.at()) {
                Ok(message) => message.body("u").and_then(|mut body| body.u32()).unwrap_or(0),
                Err(failure) if failure.is_gone() => return Err(gone()),
                Err(failure) => return Err(bus_error(&failure)),
            };
            let toolkit = match connection.wait(toolkit, deadline.at()) {
                Ok(message) => Toolkit::from_name(&variant_string(&message).unwrap_or_default()),
                Err(Failure::Timeout) => return Err(unresponsive(pid, None)),
                Err(failure) if failure.is_gone() => return Err(gone()),
                Err(_) => Toolkit::Other,
            };
            Ok(Known { toolkit, pid, has_safe_actions: has_safe_actions(toolkit, pid) })
        })?;
        self.known.borrow_mut().insert(owner.into(), known.clone());
        Ok(known)
    }

    pub(crate) fn manner(&self, owner: &str, window: &Window, deadline: Deadline) -> Result<Manner> {
        let known = self.known(owner, deadline)?;
        let origin = match window.bounds {
            // GTK 4 counts from what is seen of the window: a shadow that it draws itself lies outside of that, a frame of
            // the window manager further out.
            Some(bounds) if known.toolkit.extents_are_window_relative() => {
                let seen = window.frame.unwrap_or(bounds);
                (bounds.x.max(seen.x) as i32, bounds.y.max(seen.y) as i32)
            }
            _ => (0, 0),
        };
        Ok(Manner {
            toolkit: known.toolkit,
            owner: owner.into(),
            origin,
            has_safe_actions: known.has_safe_actions,
        })
    }

    /// Does the work over the application's own socket where it has one, else over the bus.
    pub(crate) fn near<T>(
        &self,
        owner: &str,
        toolkit: Toolkit,
        deadline: Deadline,
        work: impl FnOnce(&mut Connection) -> T,
    ) -> Result<T> {
        if toolkit.has_atk_bridge() && toolkit.survives_visitors() {
            let mut direct = self.direct.borrow_mut();
            if !direct.contains_key(owner) {
                let connection =
                    self.with_bus(deadline, |bus| Ok(open_direct(&mut bus.connection, owner, deadline)))?;
                direct.insert(owner.into(), connection);
            }
            if let Some(Some(connection)) = direct.get_mut(owner) {
                return Ok(work(connection));
            }
        }
        self.with_bus(deadline, |bus| Ok(work(&mut bus.connection)))
    }

    /// Operates an object of an application that is not stopped.
    fn act<T>(
        &self,
        target: &Object,
        deadline: Deadline,
        work: impl FnOnce(&mut Actor<'_>) -> Result<T>,
    ) -> Result<T> {
        let known = self.known(&target.bus, deadline)?;
        if host::is_stopped(known.pid) {
            return Err(unresponsive(known.pid, None));
        }
        self.with_bus(deadline, |bus| {
            work(&mut Actor {
                connection: &mut bus.connection,
                toolkit: known.toolkit,
                has_safe_actions: known.has_safe_actions,
                units: Units::of(known.toolkit, host::is_office(known.pid)),
                deadline,
            })
        })
    }

    /// Whether a tree of this application is read from its cache; makes it ready for that.
    pub(crate) fn may_prefetch(
        &self,
        owner: &str,
        toolkit: Toolkit,
        pid: u32,
        include_hidden: bool,
        deadline: Deadline,
    ) -> Result<bool> {
        if !prefetches(toolkit, pid, include_hidden) {
            return Ok(false);
        }
        // GTK 4 answers everybody.
        if toolkit == Toolkit::Gtk4 {
            return Ok(true);
        }
        // The registry tells all applications that somebody listens, whomever we mean; where a Chromium runs beside the one
        // that is read, nobody may.
        if self.known.borrow().values().any(|known| known.toolkit == Toolkit::Chromium) {
            return Ok(false);
        }
        self.with_bus(deadline, |bus| {
            bus.listen(owner, deadline);
            Ok(true)
        })
    }

    /// The windows that an application shows on the accessibility bus.
    ///
    /// # Errors
    /// `APP_UNRESPONSIVE` when one of them is not told of in time: a list without it would say that it is not there.
    pub(crate) fn accessible_windows(
        &self,
        application: &Registered,
        deadline: Deadline,
    ) -> Result<Vec<Candidate>> {
        if !application.answers {
            return Ok(Vec::new());
        }
        self.with_bus(deadline, |bus| {
            let connection = &mut bus.connection;
            let asked: Vec<(&Object, [u32; 4])> = application
                .windows
                .iter()
                .filter(|window| !window.is_null())
                .take(MOST_WINDOWS)
                .map(|window| {
                    let serials = [
                        send_plain(connection, window, ACCESSIBLE, "GetRole"),
                        send_plain(connection, window, ACCESSIBLE, "GetState"),
                        send_get(connection, window, ACCESSIBLE, "Name"),
                        send_extents(connection, window),
                    ];
                    (window, serials)
                })
                .collect();
            let mut candidates = Vec::new();
            for (window, [role, native, name, extents]) in asked {
                let mut is_silent = false;
                let mut read = |serial| {
                    let answer = connection.wait(serial, deadline.at());
                    is_silent |= matches!(answer, Err(Failure::Timeout));
                    answer
                };
                let role = read(role).and_then(|message| Ok(message.body("u")?.u32()?));
                let native = read(native).and_then(|message| states(&message));
                let name = read(name).and_then(|message| variant_string(&message));
                let extents = read(extents).and_then(|message| Ok(extents_of(&message)?));
                if is_silent {
                    return Err(unresponsive(application.pid, Some(&Failure::Timeout)));
                }
                let (Ok(role), Ok(native)) = (role, native) else { continue };
                candidates.push(Candidate {
                    object: window.clone(),
                    role,
                    states: native,
                    title: bounded_title(name.unwrap_or_default()),
                    extents: extents.ok().filter(|rect| !rect.is_empty()),
                });
            }
            Ok(candidates)
        })
    }

    /// Joins what the accessibility bus and the window system say about windows.
    fn join_windows(
        &self,
        applications: &[Registered],
        listed: Option<&screen::WindowList>,
        only: Option<&App>,
        deadline: Deadline,
    ) -> Result<Vec<Window>> {
        let mut found: Vec<(usize, Window)> = Vec::new();
        let mut taken: Vec<WindowId> = Vec::new();
        let wanted = |pid: u32, handle: Option<&Handle>| {
            only.is_none_or(|app| {
                app.pid == pid && (app.handle.is_none() || handle.is_none() || app.handle.as_ref() == handle)
            })
        };
        for application in applications {
            if !wanted(application.pid, Some(&application.root.handle())) {
                continue;
            }
            let mut candidates = match self.accessible_windows(application, deadline) {
                Ok(candidates) => candidates,
                // In a list of everything, one that is silent has windows of the screen only.
                Err(error) if error.code() == ErrorCode::AppUnresponsive && only.is_none() => {
                    self.silent.borrow_mut().push(application.pid);
                    Vec::new()
                }
                Err(error) => return Err(error),
            };
            candidates.retain(|candidate| is_window_role(candidate.role));
            let instance = process::process_instance(application.pid).ok();
            let owned: Vec<&screen::Window> = listed
                .iter()
                .flat_map(|list| &list.windows)
                .filter(|window| {
                    window.pid == Some(application.pid) || window.claimed_pid == Some(application.pid)
                })
                .collect();
            let pairs = pair(&candidates, &owned);
            for (candidate, pair) in candidates.iter().zip(pairs) {
                let seen = pair.map(|index| owned[index]);
                // Not on the screen although its siblings are: an unmapped window, a popup's shell.
                let is_shown = candidate.states & (state::SHOWING | state::VISIBLE) != 0;
                if seen.is_none() && (!owned.is_empty() || !is_shown) {
                    continue;
                }
                if let Some(seen) = seen {
                    taken.push(seen.id);
                }
                let order = seen.map_or(usize::MAX, |seen| usize::MAX - 1 - seen.stacking);
                found.push((order, window_of(application, instance.clone(), candidate, seen)));
            }
        }
        // Windows of which the accessibility bus knows nothing are there all the same.
        for seen in listed.iter().flat_map(|list| &list.windows) {
            let pid = seen.pid.or(seen.claimed_pid).unwrap_or(0);
            let is_ordinary = !matches!(seen.kind, WindowKind::Desktop | WindowKind::Dock);
            if taken.contains(&seen.id) || pid == 0 || !is_ordinary || !wanted(pid, None) {
                continue;
            }
            let application = applications.iter().find(|application| application.pid == pid);
            let app_name = application.map_or_else(|| seen.class.clone(), |known| name_of(known, listed));
            // A window that its application has not listed yet, or has listed a moment before it came.
            let is_readable = application.is_some_and(|known| !known.answers || !known.windows.is_empty());
            let accessible = if is_readable { None } else { Some(false) };
            found.push((usize::MAX - 1 - seen.stacking, screen_only(seen, pid, app_name, accessible)));
        }
        // Nothing was found of an application that said nothing: what it has is not known.
        if found.is_empty()
            && let Some(silent) = applications
                .iter()
                .find(|known| !known.answers && only.is_some_and(|app| app.pid == known.pid))
        {
            return Err(silence(silent.pid, deadline));
        }
        found.sort_by_key(|(order, _)| *order);
        Ok(found.into_iter().map(|(_, window)| window).collect())
    }
}

/// Whether an application survives `Action.GetActions`.
///
/// The bridge fetches name, description and shortcut of an action before it sends them, and Firefox keeps one place for all
/// three: a long shortcut moves it, the others are read where nothing is any more, and that the answer is no text ends
/// Firefox. Its menus have such shortcuts.
fn has_safe_actions(toolkit: Toolkit, pid: u32) -> bool {
    toolkit != Toolkit::Gecko && (!toolkit.has_atk_bridge() || host::has_current_atk_bridge(pid))
}

/// Whether a tree is read from one call for the whole cache.
///
/// GTK 4's cache lists what was looked at before and costs next to nothing; GTK 3's saves a round trip a level. Of browsers
/// and office suites most is hidden: theirs pays when everything is wanted. Chromium must not be listened to, and gives
/// its cache to listeners only.
fn prefetches(toolkit: Toolkit, pid: u32, include_hidden: bool) -> bool {
    match toolkit {
        Toolkit::Gtk4 => true,
        Toolkit::Gtk3 => include_hidden || !host::is_office(pid),
        _ => include_hidden && toolkit.has_atk_bridge() && toolkit.survives_visitors(),
    }
}

fn open_direct(bus: &mut Connection, owner: &str, deadline: Deadline) -> Option<Connection> {
    let serial = send_plain(bus, &Object::new(owner, ROOT), APPLICATION, "GetApplicationBusAddress");
    let message = bus.wait(serial, deadline.at()).ok()?;
    let address = message.body("s").ok()?.string().ok()?.into_owned();
    Connection::open(&address, false).ok()
}

/// A title as long as anybody reads.
fn bounded_title(mut title: String) -> String {
    if let Some((at, _)) = title.char_indices().nth(MOST_TITLE) {
        title.truncate(at);
    }
    title
}

fn is_window_role(number: u32) -> bool {
    matches!(
        number,
        role::FRAME
            | role::WINDOW
            | role::DIALOG
            | role::ALERT
            | role::FILE_CHOOSER
            | role::COLOR_CHOOSER
            | role::FONT_CHOOSER
            | role::FILLER
            | role::INTERNAL_FRAME
            | role::PANEL
    )
}

/// Whether an accessible window may be a window of the screen.
type Rule<'a> = &'a dyn Fn(&Candidate, &screen::Window) -> bool;

/// Which window of the screen each accessible window is: same title first, then same place and size, then the only
/// ones left.
fn pair(candidates: &[Candidate], owned: &[&screen::Window]) -> Vec<Option<usize>> {
    let mut pairs: Vec<Option<usize>> = vec![None; candidates.len()];
    let mut free: Vec<bool> = vec![true; owned.len()];
    let size_differs = |candidate: &Candidate, window: &screen::Window| {
        let Some(extents) = candidate.extents else { return f64::MAX };
        let client = rect(window.client);
        let frame = rect(window.frame);
        let distance =
            |other: &Rect| (extents.width - other.width).abs() + (extents.height - other.height).abs();
        let place = (extents.x - client.x).abs().min(200.0) + (extents.y - client.y).abs().min(200.0);
        distance(&client).min(distance(&frame)) + place / 1000.0
    };
    let same_title = |candidate: &Candidate, window: &screen::Window| {
        !candidate.title.is_empty() && candidate.title == window.title
    };
    let same_place = |candidate: &Candidate, window: &screen::Window| size_differs(candidate, window) < 60.0;
    // A popup's shell has no title; it must not take a real window.
    let is_left =
        |candidate: &Candidate, _: &screen::Window| !matches!(candidate.role, role::WINDOW | role::PANEL);
    let rules: [Rule<'_>; 3] = [&same_title, &same_place, &is_left];
    for rule in rules {
        for (index, candidate) in candidates.iter().enumerate() {
            if pairs[index].is_some() {
                continue;
            }
            let best =
                owned.iter().enumerate().filter(|(at, window)| free[*at] && rule(candidate, window)).min_by(
                    |(_, a), (_, b)| size_differs(candidate, a).total_cmp(&size_differs(candidate, b)),
                );
            if let Some((at, _)) = best {
                free[at] = false;
                pairs[index] = Some(at);
            }
        }
    }
    pairs
}

pub(crate) fn rect(area: Rectangle) -> Rect {
    Rect {
        x: f64::from(area.x),
        y: f64::from(area.y),
        width: f64::from(area.width),
        height: f64::from(area.height),
    }
}

/// The name an application gives itself. Who does not answer cannot say it; its windows may have it.
fn name_of(application: &Registered, listed: Option<&screen::WindowList>) -> String {
    if application.answers {
        return application.name.clone();
    }
    let mut windows = listed.into_iter().flat_map(|list| &list.windows);
    windows
        .find(|window| window.pid == Some(application.pid) && !window.instance.is_empty())
        .map_or_else(|| application.name.clone(), |window| window.instance.clone())
}

fn window_id(seen: &screen::Window) -> String {
    format!("w-{:x}", seen.id.0)
}

/// The window of the screen behind an id of ours.
fn screen_id(id: &str) -> Option<WindowId> {
    u32::from_str_radix(id.strip_prefix("w-")?, 16).ok().map(WindowId)
}

fn window_of(
    application: &Registered,
    instance: Option<String>,
    candidate: &Candidate,
    seen: Option<&screen::Window>,
) -> Window {
    let id = seen.map_or_else(
        || {
            let handle = candidate.object.handle();
            let tail: String =
                handle.as_str().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            format!("a{tail}")
        },
        window_id,
    );
    let title = match seen {
        Some(seen) if candidate.title.is_empty() => seen.title.clone(),
        _ => candidate.title.clone(),
    };
    Window {
        id,
        title,
        app_name: application.name.clone(),
        pid: application.pid,
        process_instance: instance,
        bounds: seen.map(|seen| rect(seen.client)).or(candidate.extents),
        frame: seen.map(|seen| rect(seen.frame)),
        is_focused: seen.map_or(candidate.states & state::ACTIVE != 0, |seen| seen.is_focused),
        minimized: Some(
            seen.map_or(candidate.states & state::ICONIFIED != 0, |seen| {
                seen.state == WindowState::Minimized
            }),
        ),
        maximized: seen.map(|seen| fills_display(seen.state)),
        // One that the window system does not know, or not yet, may be about to appear.
        visible: seen.map(|seen| seen.is_visible),
        is_modal: candidate.states & state::MODAL != 0 || seen.is_some_and(|seen| seen.is_modal),
        handle: Some(candidate.object.handle()),
        accessible: Some(true),
    }
}

fn fills_display(state: WindowState) -> bool {
    matches!(state, WindowState::Maximized | WindowState::Fullscreen)
}

pub(crate) fn screen_only(
    seen: &screen::Window,
    pid: u32,
    app_name: String,
    accessible: Option<bool>,
) -> Window {
    Window {
        id: window_id(seen),
        title: seen.title.clone(),
        app_name,
        pid,
        process_instance: process::process_instance(pid).ok(),
        bounds: Some(rect(seen.client)),
        frame: Some(rect(seen.frame)),
        is_focused: seen.is_focused,
        minimized: Some(seen.state == WindowState::Minimized),
        maximized: Some(fills_display(seen.state)),
        visible: Some(seen.is_visible),
        is_modal: seen.is_modal,
        handle: None,
        accessible,
    }
}

fn gone() -> Error {
    Error::new(ErrorCode::StaleRef, "the application is gone")
        .hint("start it again and take a new snapshot")
        .delivery(Delivery::NotDelivered)
}

/// The failure to read an application that has not answered by now.
pub(crate) fn silence(pid: u32, deadline: Deadline) -> Error {
    if deadline.has_passed(Instant::now()) && !host::is_stopped(pid) {
        return bus_error(&Failure::Timeout)
            .retryable(true)
            .hint("allow more time with --timeout-ms; see whether the application hangs");
    }
    unresponsive(pid, None)
}

pub(crate) fn unresponsive(pid: u32, failure: Option<&Failure>) -> Error {
    let is_stopped = host::is_stopped(pid);
    let (why, process) = if is_stopped {
        ("its process is stopped", "unresponsive")
    } else {
        ("it did not answer in time", "running")
    };
    let error = Error::new(ErrorCode::AppUnresponsive, format!("the application does not answer: {why}"))
        .kind("app_unresponsive")
        .retryable(!is_stopped && matches!(failure, Some(Failure::Timeout)))
        .detail("process_state", agent_desktop_core::error::facts([("state", process.into())]))
        .hint("see whether the application hangs; once it answers, retry")
        .delivery(Delivery::NotDelivered);
    match failure {
        Some(failure) => error.platform_detail(failure.to_string()),
        None => error,
    }
}

pub(crate) fn screen_error(error: &WindowSystemError) -> Error {
    let text = error.to_string();
    let (code, delivery) = match error {
        WindowSystemError::Connect { .. } | WindowSystemError::Unsupported { .. } => {
            (ErrorCode::PlatformNotSupported, Delivery::NotDelivered)
        }
        WindowSystemError::Timeout { started, .. } => {
            let delivery = if *started { Delivery::Uncertain } else { Delivery::NotDelivered };
            return Error::new(ErrorCode::Timeout, text)
                .kind("deadline")
                .hint("give more time with --timeout-ms; a display server that stays silent hangs")
                .delivery(delivery);
        }
        WindowSystemError::TooLate { needed, .. } => {
            return Error::new(ErrorCode::Timeout, text)
                .kind("deadline")
                .hint(format!("--timeout-ms has to be more than {}", needed.as_millis()))
                .delivery(Delivery::NotDelivered);
        }
        WindowSystemError::Gone { .. } => (ErrorCode::WindowNotFound, Delivery::NotDelivered),
        WindowSystemError::NotViewable { .. } | WindowSystemError::Obscured { .. } => {
            (ErrorCode::ActionFailed, Delivery::NotDelivered)
        }
        WindowSystemError::OutsideScreen { .. } | WindowSystemError::InvalidArgument { .. } => {
            (ErrorCode::InvalidArgs, Delivery::NotDelivered)
        }
        WindowSystemError::Untypable { .. } | WindowSystemError::NoSuchKey { .. } => {
            (ErrorCode::ActionNotSupported, Delivery::NotDelivered)
        }
        _ => (ErrorCode::ActionFailed, Delivery::Uncertain),
    };
    Error::new(code, text).delivery(delivery)
}

fn keysym(key: Key) -> Option<Keysym> {
    match key {
        Key::Char(character) => keysym_for_character(character),
        Key::Space => keysym_for_character(' '),
        other => keysym_for_name(&other.to_string()),
    }
}

fn modifier_keysyms(modifiers: &[Modifier]) -> Vec<Keysym> {
    modifiers.iter().filter_map(|modifier| keysym_for_name(modifier.as_str())).collect()
}

fn pixel(point: Point) -> screen::Point {
    screen::Point { x: point.x.floor() as i32, y: point.y.floor() as i32 }
}

impl Platform for Linux {
    fn name(&self) -> &'static str {
        "linux"
    }

    fn safety(&self) -> Safety {
        Safety { blocked_chords: BLOCKED_CHORDS, protected_processes: PROTECTED_PROCESSES }
    }

    fn supported_surfaces(&self) -> &'static [SurfaceKind] {
        SUPPORTED_SURFACES
    }

    fn statistics(&self) -> Statistics {
        let mut total = self.retired.get();
        if let Some(bus) = self.bus.borrow().as_ref() {
            total.calls += bus.connection.calls;
            total.waits += bus.connection.waits;
        }
        for connection in self.direct.borrow().values().flatten() {
            total.calls += connection.calls;
            total.waits += connection.waits;
        }
        total
    }

    fn permissions(&self, deadline: Deadline) -> Permissions {
        // One that is silent must leave time to ask the other: a share each.
        let share = |part: u32| deadline.within(self.now(), deadline.remaining(self.now()) / part);
        let greeting = share(3);
        let accessibility = match self.with_bus(greeting, |bus| bus.greet(greeting)) {
            Ok(()) => Permission::Granted,
            // A bus that is there and silent forbids nothing.
            Err(error) if error.code() == ErrorCode::Timeout => Permission::Unknown,
            Err(error) => Permission::Denied(error.get_hint().unwrap_or(error.message()).to_owned()),
        };
        let screen_recording = match self.display(share(2)) {
            Ok(_) => Permission::Granted,
            Err(WindowSystemError::Connect { .. }) => Permission::Denied(
                "no display can be reached: run inside the session, with DISPLAY set".into(),
            ),
            Err(_) => Permission::Unknown,
        };
        Permissions { accessibility, screen_recording, automation: Permission::NotRequired }
    }

    fn apps(&self, deadline: Deadline) -> Result<Vec<App>> {
        let listed = self.screen_windows(deadline)?;
        let registered = self.registered(deadline)?;
        let has_window = |pid: u32| {
            listed
                .iter()
                .flat_map(|list| &list.windows)
                .any(|window| window.pid == Some(pid) || window.claimed_pid == Some(pid))
        };
        let mut apps = Vec::new();
        for application in &registered {
            // One process may register several objects; those without windows beside one that has some are shells.
            let is_shell = application.windows.is_empty()
                && registered.iter().any(|other| {
                    other.pid == application.pid
                        && other.root != application.root
                        && !other.windows.is_empty()
                });
            if is_shell {
                continue;
            }
            let has_windows = !application.windows.is_empty() || has_window(application.pid);
            apps.push(App {
                name: name_of(application, listed.as_ref()),
                pid: application.pid,
                process_instance: process::process_instance(application.pid).ok(),
                application_id: host::application_id(application.pid),
                presentation: Some(if has_windows {
                    Presentation::Foreground
                } else {
                    Presentation::Background
                }),
                toolkit: (!application.toolkit_name.is_empty()).then(|| {
                    format!("{} {}", application.toolkit_name, application.toolkit_version).trim().to_owned()
                }),
                handle: application.answers.then(|| application.root.handle()),
                accessible: application.answers.then_some(true),
            });
        }
        for window in listed.iter().flat_map(|list| &list.windows) {
            let Some(pid) = window.pid.or(window.claimed_pid) else { continue };
            if matches!(window.kind, WindowKind::Desktop | WindowKind::Dock)
                || apps.iter().any(|app| app.pid == pid)
            {
                continue;
            }
            let name = if window.class.is_empty() { host::command_name(pid) } else { window.class.clone() };
            apps.push(App {
                name,
                pid,
                process_instance: process::process_instance(pid).ok(),
                application_id: host::application_id(pid),
                presentation: Some(Presentation::Foreground),
                toolkit: None,
                handle: None,
                accessible: Some(false),
            });
        }
        Ok(apps)
    }

    fn windows(&self, app: Option<&App>, deadline: Deadline) -> Result<Vec<Window>> {
        // The window system first: an application that does not answer must not keep us from seeing its windows.
        let listed = self.screen_windows(deadline)?;
        let registered = self.registered(deadline)?;
        self.join_windows(&registered, listed.as_ref(), app, deadline)
    }

    fn displays(&self, deadline: Deadline) -> Result<Vec<Display>> {
        let displays =
            self.need_display(deadline)?.displays(deadline.at()).map_err(|error| screen_error(&error))?;
        Ok(displays
            .into_iter()
            .map(|display| Display {
                id: display.id,
                bounds: rect(display.area),
                is_primary: display.is_primary,
                scale: display.scale,
            })
            .collect())
    }

    fn surfaces(&self, app: &App, kind: Option<SurfaceKind>, deadline: Deadline) -> Result<Vec<Surface>> {
        self.list_surfaces(app, kind, deadline)
    }

    fn process_state(&self, pid: u32, instance: Option<&str>) -> ProcessState {
        let now = process::process_instance(pid).ok();
        match (now, instance) {
            (Some(now), Some(instance)) if now != instance => ProcessState::Exited,
            (Some(now), _) => match process::state(pid, &now) {
                process::ProcessState::Running => ProcessState::Running,
                process::ProcessState::Stopped => ProcessState::Unresponsive,
                _ => ProcessState::Exited,
            },
            (None, _) => ProcessState::Exited,
        }
    }

    fn observe(&self, scope: &Scope, limits: &Limits, deadline: Deadline) -> Result<Observation> {
        let Some(handle) = scope.root.as_ref().or(scope.window.handle.as_ref()) else {
            if host::is_stopped(scope.window.pid) || self.silent.borrow().contains(&scope.window.pid) {
                return Err(unresponsive(scope.window.pid, None));
            }
            // An application that has windows and does not say which of them this is: it is starting, or ending.
            if scope.window.accessible.is_none() {
                return Err(unresponsive(scope.window.pid, None).retryable(true));
            }
            return Err(Error::new(
                ErrorCode::ActionNotSupported,
                format!("the window {:?} of {:?} is not accessible", scope.window.title, scope.window.app_name),
            )
            .kind("window_without_accessibility_element")
            .hint("the application publishes no tree for it; use screenshot and the mouse commands, or start the \
                   application again now that accessibility is on")
            .delivery(Delivery::NotDelivered));
        };
        let root = Object::from_handle(handle)?;
        if host::is_stopped(scope.window.pid) {
            return Err(unresponsive(scope.window.pid, None));
        }
        let manner = self.manner(&root.bus, &scope.window, deadline)?;
        let prefetches =
            self.may_prefetch(&root.bus, manner.toolkit, scope.window.pid, limits.include_hidden, deadline)?;
        let mut surveyed = self.near(&root.bus.clone(), manner.toolkit, deadline, |connection| {
            let mut survey = Survey::new(connection, &manner, *limits, deadline.at());
            if prefetches {
                survey.prefetch();
            }
            survey.tree(root, false)
        })?;
        if surveyed.root_failed {
            return Err(match &surveyed.failure {
                Some(Failure::Timeout) | None if surveyed.stopped == Some(Stop::Deadline) => {
                    unresponsive(scope.window.pid, surveyed.failure.as_ref())
                }
                _ => Error::new(ErrorCode::WindowNotFound, "the window or element is gone")
                    .hint("list the windows again, then take a new snapshot")
                    .delivery(Delivery::NotDelivered),
            });
        }
        let mut tree = std::mem::take(&mut surveyed.tree);
        // What was read until the last moment is still put in its place.
        let now = self.now();
        let placing =
            if deadline.remaining(now) < PLACING { Deadline::after(now, PLACING) } else { deadline };
        let mut popups = OnceCell::new();
        if manner.toolkit == Toolkit::Gtk4 {
            let mut open = self.popups(scope.window.pid, placing)?;
            if let Some(root) = &scope.root
                && let Some((popup, (dx, dy))) = self.popup_around(root, &open, placing)?
            {
                let (left, top) = manner.origin;
                popups::move_all(&mut tree, (dx - f64::from(left), dy - f64::from(top)));
                open.retain(|other| other.id != popup.id);
                popups::place(&mut tree, &Popovers::of(&surveyed), &open);
                open.push(popup);
            } else {
                popups::place(&mut tree, &Popovers::of(&surveyed), &open);
            }
            popups = OnceCell::from(open);
        }
        if let Some(window) = scope.window.bounds {
            for id in 0..tree.len() as u32 {
                let node = tree.node_mut(id);
                let outside =
                    node.bounds.filter(|bounds| !bounds.is_empty() && bounds.intersection(&window).is_none());
                // A menu reaches over the edge of its window.
                let is_outside = match outside {
                    Some(bounds) => {
                        !popups::is_inside(self.popups_once(&popups, scope.window.pid, placing)?, &bounds)
                    }
                    None => false,
                };
                node.states.set(State::Offscreen, is_outside);
            }
        }
        let cursor = tree
            .iter()
            .find(|(_, node)| may_be_sheet_cell(node, manner.toolkit) && node.states.has(State::Focused))
            .map(|(id, _)| id);
        if let Some(cursor) = cursor
            && host::is_office(scope.window.pid)
        {
            let node = tree.node_mut(cursor);
            let cell = Object::from_handle(&node.handle)?;
            self.correct_emptied(&cell, node, deadline)?;
        }
        let select = tree.iter().find(|(_, node)| may_be_open_select(node)).map(|(id, _)| id);
        if manner.toolkit == Toolkit::Gecko
            && let Some(select) = select
            && self.has_open_list(&scope.window, deadline)?
        {
            tree.node_mut(select).states.insert(State::Expanded);
        }
        let needs_activation = manner.toolkit == Toolkit::Chromium
            && scope.root.is_none()
            && tree.len() <= 2
            && !tree.iter().any(|(_, node)| node.role == Role::WebArea);
        Ok(Observation { tree, stopped: surveyed.stopped, nodes_visited: surveyed.visited, needs_activation })
    }

    fn read(&self, handles: &[Handle], window: &Window, deadline: Deadline) -> Result<Vec<Reading>> {
        let mut readings: Vec<Option<Reading>> = handles.iter().map(|_| None).collect();
        let targets: Vec<Object> = handles.iter().map(Object::from_handle).collect::<Result<_>>()?;
        let mut owners: Vec<&str> = targets.iter().map(|target| &*target.bus).collect();
        owners.sort_unstable();
        owners.dedup();
        for owner in owners {
            let chosen: Vec<usize> = (0..targets.len()).filter(|&at| &*targets[at].bus == owner).collect();
            let manner = match self.manner(owner, window, deadline) {
                Ok(manner) => manner,
                Err(error) => {
                    let reading = match error.code() {
                        ErrorCode::StaleRef => Reading::Gone,
                        ErrorCode::AppUnresponsive => Reading::Unanswered,
                        _ => return Err(error),
                    };
                    for at in chosen {
                        readings[at] = Some(reading.clone());
                    }
                    continue;
                }
            };
            let objects: Vec<Object> = chosen.iter().map(|&at| targets[at].clone()).collect();
            let popups = OnceCell::new();
            let singles = self.with_bus(deadline, |bus| {
                Ok(Survey::new(&mut bus.connection, &manner, Limits::default(), deadline.at())
                    .singles(&objects))
            })?;
            for (at, single) in chosen.into_iter().zip(singles) {
                readings[at] = Some(match single {
                    Single::Live(mut node) => {
                        if manner.toolkit == Toolkit::Gtk4
                            && (is_told_by_label(&node) || opens_by_inner_button(&node))
                        {
                            self.read_label(&targets[at], &mut node, &manner, deadline)?;
                        }
                        if manner.toolkit == Toolkit::Gtk4
                            && map::can_be_disabled(node.role)
                            && !node.states.has(State::Disabled)
                            && self.is_in_insensitive(&node.handle, deadline)?
                        {
                            node.states.insert(State::Disabled);
                        }
                        if may_be_sheet_cell(&node, manner.toolkit) {
                            self.read_cell(&targets[at], &mut node, &manner, deadline)?;
                        }
                        if manner.toolkit == Toolkit::Gecko && may_be_open_select(&node) {
                            let is_open = self.has_open_list(window, deadline)?;
                            node.states.set(State::Expanded, is_open);
                        }
                        self.place_single(&mut node, &manner, window, &popups, deadline)?;
                        Reading::Live(node)
                    }
                    Single::Gone => Reading::Gone,
                    Single::Unanswered => Reading::Unanswered,
                });
            }
        }
        Ok(readings.into_iter().map(|reading| reading.unwrap_or(Reading::Unanswered)).collect())
    }

    fn ancestors(&self, handle: &Handle, deadline: Deadline) -> Result<Vec<Handle>> {
        let mut here = Object::from_handle(handle)?;
        let mut found = Vec::new();
        self.with_bus(deadline, |bus| {
            for _ in 0..64 {
                let serial = send_get(&mut bus.connection, &here, ACCESSIBLE, "Parent");
                let parent = match bus.connection.wait(serial, deadline.at()) {
                    Ok(message) => parent_of(&message, &here.bus),
                    Err(Failure::Timeout) => return Err(unresponsive(0, Some(&Failure::Timeout))),
                    Err(_) => None,
                };
                let Some(parent) = parent else { break };
                if found.contains(&parent.handle()) || &*parent.path == ROOT {
                    break;
                }
                found.push(parent.handle());
                here = parent;
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn is_opened_by(&self, surface: &Handle, target: &Handle, deadline: Deadline) -> Result<bool> {
        self.is_list_of(surface, target, deadline)
    }

    fn default_button(&self, dialog: &Handle, deadline: Deadline) -> Result<Option<Handle>> {
        let is_default =
            |inner: &Inner| inner.states & state::IS_DEFAULT != 0 && inner.states & state::SHOWING != 0;
        Ok(self.inside_dialog(dialog, deadline, is_default)?.map(|inner| inner.object.handle()))
    }

    fn show_location(&self, dialog: &Handle, deadline: Deadline) -> Result<bool> {
        let is_chooser = |inner: &Inner| inner.role == role::FILE_CHOOSER;
        let Some(chooser) = self.inside_dialog(dialog, deadline, is_chooser)? else { return Ok(false) };
        self.act(&chooser.object, deadline, |actor| {
            let live = actor.look(&chooser.object)?;
            let Some(index) = live.actions.iter().position(|name| name == "show_location") else {
                return Ok(false);
            };
            let done = actor.do_action(&chooser.object, "show_location", index, &live)?;
            Ok(matches!(done, Performed::Done { .. }))
        })
    }

    fn hit_test(&self, target: &Handle, window: &Window, point: Point, deadline: Deadline) -> Result<Hit> {
        let popup = match self.window_in_front(window, point, deadline)? {
            InFront::Nothing => None,
            InFront::Other(hit) => return Ok(hit),
            InFront::OwnPopup(hit) => {
                if let Some(hit) = self.popup_in_front(target, window, point, deadline)? {
                    return Ok(hit);
                }
                // A menu or the list of a combo box is a window of its own. What stands in it is reached there; whatever
                // else lies under it is not.
                if self.is_in_popup(target, deadline)? {
                    // GTK 4 does not say where things in its popovers are: its boxes are off.
                    let owner = Object::from_handle(target)?.bus;
                    let is_placed = self.known(&owner, deadline)?.toolkit != Toolkit::Gtk4;
                    return Ok(if is_placed { Hit::Target } else { Hit::Unknown });
                }
                Some(hit)
            }
        };
        let Some(root) = &window.handle else { return Ok(Hit::Unknown) };
        let target = Object::from_handle(target)?;
        let root = Object::from_handle(root)?;
        let manner = self.manner(&target.bus, window, deadline)?;
        let at = pixel(point);
        let (x, y) = (at.x - manner.origin.0, at.y - manner.origin.1);
        let found = self.with_bus(deadline, |bus| {
            let mut here = root;
            let mut deepest = None;
            // Toolkits answer with the child at that point; some go all the way down, some one level.
            for _ in 0..64 {
                let call = Call {
                    signature: "iiu",
                    body: &|writer| {
                        writer.i32(x);
                        writer.i32(y);
                        writer.u32(0);
                    },
                    ..Call::new(&here.bus, &here.path, COMPONENT, "GetAccessibleAtPoint")
                };
                let next = match bus.connection.call(&call, deadline.at()) {
                    Ok(message) => {
                        object(&message, &here.bus).ok().filter(|next| !next.is_null() && *next != here)
                    }
                    Err(Failure::Timeout) => return Err(unresponsive(0, Some(&Failure::Timeout))),
                    Err(_) => None,
                };
                let Some(next) = next else { break };
                if next == target {
                    return Ok(Some(next));
                }
                deepest = Some(next.clone());
                here = next;
            }
            Ok(deepest)
        })?;
        let Some(found) = found else { return Ok(Hit::Unknown) };
        if found == target || self.ancestors(&found.handle(), deadline)?.contains(&target.handle()) {
            return Ok(popup.unwrap_or(Hit::Target));
        }
        if self.ancestors(&target.handle(), deadline)?.contains(&found.handle()) {
            return Ok(Hit::Unknown);
        }
        match self.read(&[found.handle()], window, deadline)?.into_iter().next() {
            Some(Reading::Live(node)) => {
                Ok(Hit::Other { role: node.role, name: node.name, bounds: node.bounds })
            }
            _ => Ok(Hit::Unknown),
        }
    }

    fn text(&self, target: &Handle, query: &TextQuery, deadline: Deadline) -> Result<Option<TextContent>> {
        let target = Object::from_handle(target)?;
        self.act(&target, deadline, |actor| actor.read_text(&target, actor.units, query))
    }

    fn dialog_over(&self, target: &Handle, window: &Window, deadline: Deadline) -> Result<Option<Hit>> {
        let toolkit = self.known(&Object::from_handle(target)?.bus, deadline)?.toolkit;
        if !matches!(toolkit, Toolkit::Chromium | Toolkit::Gecko) {
            return Ok(None);
        }
        self.browser_dialog_over(target, window, toolkit, deadline)
    }

    fn perform(&self, target: &Handle, operation: &Operation, deadline: Deadline) -> Result<Performed> {
        let target = Object::from_handle(target)?;
        let known = self.known(&target.bus, deadline)?;
        if known.toolkit == Toolkit::Qt
            && let Some(done) = self.perform_on_qt_menu(&target, operation, known.pid, deadline)?
        {
            return Ok(done);
        }
        self.act(&target, deadline, |actor| actor.perform(&target, operation))
    }

    fn input(&self, input: &Input, deadline: Deadline) -> Result<usize> {
        let display = self.need_display(deadline)?;
        let until = deadline.at();
        let button = |button: MouseButton| match button {
            MouseButton::Left => screen::Button::Left,
            MouseButton::Right => screen::Button::Right,
            MouseButton::Middle => screen::Button::Middle,
        };
        let result = match input {
            Input::Move(at) => display.move_pointer(pixel(*at), until),
            Input::Click { at, button: which, count, modifiers } => {
                display.click(pixel(*at), button(*which), *count, &modifier_keysyms(modifiers), until)
            }
            Input::Wheel { at, dy, dx, modifiers } => {
                display.wheel(pixel(*at), *dx, *dy, &modifier_keysyms(modifiers), until)
            }
            Input::Drag { from, to, duration, drop_delay } => display.drag(
                &screen::Drag {
                    from: pixel(*from),
                    to: pixel(*to),
                    button: screen::Button::Left,
                    duration: *duration,
                    drop_delay: *drop_delay,
                    modifiers: Vec::new(),
                },
                until,
            ),
            Input::Chord(chord) => {
                let key =
                    keysym(chord.key).ok_or_else(|| Error::invalid(format!("no key gives {}", chord.key)))?;
                display.press_chord(&modifier_keysyms(&chord.modifiers), key, until)
            }
            Input::Text(text) => {
                return display.type_text(text, TypingOptions::default(), until).map_err(|error| {
                    let sent = error.sent;
                    let delivery = if sent > 0 { Delivery::Uncertain } else { Delivery::NotDelivered };
                    screen_error(&error.cause).detail("characters_sent", sent).redelivered(delivery)
                });
            }
        };
        result.map(|()| 0).map_err(|error| screen_error(&error))
    }

    fn window_operation(
        &self,
        window: &Window,
        operation: WindowOperation,
        deadline: Deadline,
    ) -> Result<()> {
        let display = self.need_display(deadline)?;
        let id = screen_id(&window.id).ok_or_else(|| {
            Error::new(ErrorCode::ActionNotSupported, "the window system does not know this window")
                .delivery(Delivery::NotDelivered)
        })?;
        let at = deadline.at();
        match operation {
            WindowOperation::Focus => display.activate(id, at),
            WindowOperation::Move(point) => display.move_resize(id, Some(pixel(point)), None, at),
            WindowOperation::Resize(width, height) => {
                let size = (width.round() as u32, height.round() as u32);
                display.move_resize(id, None, Some(size), at)
            }
            WindowOperation::Minimize => display.minimize(id, at),
            WindowOperation::Maximize => display.maximize(id, at),
            WindowOperation::Restore => display.restore(id, at),
        }
        .map_err(|error| screen_error(&error))
    }

    fn instances(&self, name: &str, apps: &[App]) -> Vec<App> {
        start::instances(name, apps)
    }

    fn comes_from(&self, pid: u32, launched: &Launched) -> bool {
        start::comes_from(pid, launched)
    }

    fn launch(&self, request: &LaunchRequest, deadline: Deadline) -> Result<Launched> {
        start::start(request, deadline)
    }

    fn close(&self, app: &App, force: bool, deadline: Deadline) -> Result<()> {
        let refused = |error: &dyn std::fmt::Display| {
            Error::new(ErrorCode::ActionFailed, format!("{:?} cannot be asked to end", app.name))
                .platform_detail(error.to_string())
                .delivery(Delivery::NotDelivered)
        };
        // Without proof of which process it is, a later one of the same number could be hit.
        let instance = app.process_instance.as_deref().unwrap_or("");
        if force {
            return process::kill(app.pid, instance).map_err(|error| refused(&error));
        }
        let mut asked = false;
        if let Some(display) = self.display_if_any(deadline)? {
            let list = display.windows(deadline.at()).map_err(|error| screen_error(&error))?;
            for window in list.windows {
                let is_theirs = window.pid == Some(app.pid) || window.claimed_pid == Some(app.pid);
                if !is_theirs {
                    continue;
                }
                match display.close_window(window.id, deadline.at()) {
                    Ok(()) => asked = true,
                    // Ending the process instead would be another thing than what was asked for.
                    Err(error @ WindowSystemError::Timeout { .. }) => return Err(screen_error(&error)),
                    Err(_) => {}
                }
            }
        }
        if asked {
            return Ok(());
        }
        process::terminate(app.pid, instance).map_err(|error| refused(&error))
    }

    fn clipboard_offer(&self, deadline: Deadline) -> Result<ClipboardOffer> {
        clipboard::offer(self.need_display(deadline)?, deadline)
    }

    fn clipboard_read(
        &self,
        form: ClipboardForm,
        limit: usize,
        deadline: Deadline,
    ) -> Result<Option<ClipboardContent>> {
        clipboard::read(self.need_display(deadline)?, form, limit, deadline)
    }

    fn clipboard_write(&self, content: Option<&ClipboardContent>, deadline: Deadline) -> Result<()> {
        let display = self.need_display(deadline)?;
        match content {
            Some(content) => clipboard::write(content, deadline),
            None => display.clipboard_clear(deadline.at()).map_err(|error| screen_error(&error)),
        }
    }

    fn watch_desktop(&self, app: Option<&App>, deadline: Deadline) -> Result<Box<dyn DesktopWatch>> {
        Ok(Box::new(crate::events::Watch::start(app, deadline)?))
    }

    fn has_notification_service(&self, deadline: Deadline) -> Result<bool> {
        notifications::has_service(deadline)
    }

    fn watch_notifications(&self, deadline: Deadline) -> Result<Box<dyn NotificationWatch + '_>> {
        Ok(Box::new(notifications::Watch::start(deadline)?))
    }

    fn dismiss_notification(&self, handle: &Handle, deadline: Deadline) -> Result<()> {
        notifications::dismiss(handle, deadline)
    }

    fn invoke_notification(
        &self,
        notification: &Notification,
        action: &NotificationAction,
        deadline: Deadline,
    ) -> Result<Delivery> {
        self.invoke(notification, action, deadline)
    }

    fn diagnose(&self, examination: Examination, deadline: Deadline) -> Result<Vec<Check>> {
        Ok(match examination {
            Examination::Look => self.examine(false, deadline),
            Examination::Repair => self.examine(true, deadline),
            Examination::Prove => self.prove(deadline),
        })
    }

    fn capture(&self, target: &CaptureTarget, deadline: Deadline) -> Result<Image> {
        let display = self.need_display(deadline)?;
        let region = |area: &Rect| {
            let left = area.x.floor() as i32;
            let top = area.y.floor() as i32;
            let right = (area.x + area.width).ceil() as i32;
            let bottom = (area.y + area.height).ceil() as i32;
            Rectangle::new(left, top, (right - left).max(0) as u32, (bottom - top).max(0) as u32)
        };
        let capture = match target {
            CaptureTarget::Display(shown) => display.capture_region(region(&shown.bounds), deadline.at()),
            CaptureTarget::Region(area) => display.capture_region(region(area), deadline.at()),
            CaptureTarget::Window(window) => {
                let id = screen_id(&window.id).ok_or_else(|| {
                    Error::new(ErrorCode::ActionNotSupported, "the window system does not know this window")
                })?;
                display.capture_window(id, deadline.at())
            }
        }
        .map_err(|error| screen_error(&error))?;
        let rgb =
            capture.image.pixels().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        Ok(Image {
            area: rect(capture.area),
            width: capture.image.width(),
            height: capture.image.height(),
            rgb,
        })
    }
}

impl Linux {
    /// What has to be done otherwise because a menu of Qt does not close by what is done in it or to its button; `None`: nothing.
    fn perform_on_qt_menu(
        &self,
        target: &Object,
        operation: &Operation,
        pid: u32,
        deadline: Deadline,
    ) -> Result<Option<Performed>> {
        let is_meant =
            matches!(operation, Operation::Activate | Operation::Select | Operation::SetExpanded(false));
        if !is_meant {
            return Ok(None);
        }
        let menus = self.menu_windows(pid, deadline)?;
        if menus.is_empty() {
            return Ok(None);
        }
        let live = self.act(target, deadline, |actor| actor.look(target))?;
        match (operation, live.role) {
            (Operation::SetExpanded(_), role::PUSH_BUTTON | role::TOGGLE_BUTTON) => {
                self.close_menus(&menus, deadline)?;
                let native = "WM_DELETE_WINDOW".to_owned();
                Ok(Some(Performed::Done { label: "collapse", native }))
            }
            // One that opens a further menu goes on.
            (Operation::Activate | Operation::Select, role::MENU_ITEM)
                if map::own_menu_action(&live.actions).is_none() =>
            {
                let done = self.act(target, deadline, |actor| actor.perform(target, operation))?;
                if matches!(done, Performed::Done { .. }) {
                    let left = self.menu_windows(pid, deadline)?;
                    self.close_menus(&left, deadline)?;
                }
                Ok(Some(done))
            }
            _ => Ok(None),
        }
    }

    /// Closes menus, innermost first, each as its window is closed.
    fn close_menus(&self, menus: &[WindowId], deadline: Deadline) -> Result<()> {
        let display = self.need_display(deadline)?;
        for menu in menus {
            match display.close_popup(*menu, deadline.at()) {
                Ok(()) | Err(WindowSystemError::Gone { .. }) => {}
                Err(error) => return Err(screen_error(&error)),
            }
        }
        Ok(())
    }

    /// Whether something around an object of GTK 4 takes no input: then nothing inside does, whatever it says.
    fn is_in_insensitive(&self, handle: &Handle, deadline: Deadline) -> Result<bool> {
        let around: Vec<Object> =
            self.ancestors(handle, deadline)?.iter().map(Object::from_handle).collect::<Result<_>>()?;
        self.with_bus(deadline, |bus| {
            let connection = &mut bus.connection;
            let serials: Vec<u32> =
                around.iter().map(|object| send_plain(connection, object, ACCESSIBLE, "GetState")).collect();
            Ok(connection
                .call_all(&serials, deadline.at())
                .into_iter()
                .any(|answer| answer.and_then(|message| states(&message)).is_ok_and(map::is_insensitive)))
        })
    }

    /// Reads the text of a cell of a sheet where it is true.
    ///
    /// `LibreOffice` keeps the object of a cell alive with the text it had when the cell is emptied: its table gives another
    /// object for the same cell then. Only of the cell with the cursor it gives the old one; what that holds stands in
    /// the input line.
    fn read_cell(&self, cell: &Object, node: &mut Node, manner: &Manner, deadline: Deadline) -> Result<()> {
        if !host::is_office(self.known(&cell.bus, deadline)?.pid) {
            return Ok(());
        }
        let Some((column, row)) = node.name.as_deref().and_then(map::cell_address) else { return Ok(()) };
        let living = self.act(cell, deadline, |actor| actor.living_cell(cell, row, column))?;
        let Some(living) = living.filter(|living| living != cell) else {
            return self.correct_emptied(cell, node, deadline);
        };
        let single = self.with_bus(deadline, |bus| {
            Ok(Survey::new(&mut bus.connection, manner, Limits::default(), deadline.at())
                .singles(std::slice::from_ref(&living))
                .pop())
        })?;
        if let Some(Single::Live(now)) = single {
            node.value = now.value;
            node.text_length = now.text_length;
            node.number = now.number;
            node.states.set(State::Focused, now.states.has(State::Focused));
        }
        self.correct_emptied(&living, node, deadline)
    }

    /// Takes away the text of the cell with the cursor where the input line is empty.
    fn correct_emptied(&self, cell: &Object, node: &mut Node, deadline: Deadline) -> Result<()> {
        let may_be_empty = node.states.has(State::Focused) && node.value.is_some();
        if may_be_empty && self.act(cell, deadline, |actor| actor.is_input_line_empty(cell))? {
            node.value = None;
            node.text_length = Some(0);
        }
        Ok(())
    }

    /// Whether Firefox shows the list of a select of the page. It is a combo box of the window's own, beside everything else,
    /// and the select itself only has the focus.
    fn has_open_list(&self, window: &Window, deadline: Deadline) -> Result<bool> {
        let children = self.children_of_window(window, deadline)?;
        Ok(children.iter().any(|child| {
            child.role == role::COMBO_BOX
                && child.states & state::EXPANDED != 0
                && child.states & state::SHOWING != 0
        }))
    }

    /// The direct children of a window, with their roles and states.
    pub(crate) fn children_of_window(&self, window: &Window, deadline: Deadline) -> Result<Vec<Inner>> {
        let Some(root) = &window.handle else { return Ok(Vec::new()) };
        self.children(&Object::from_handle(root)?, deadline)
    }

    /// The children of an object that lists few, with their roles and states. What is gone by now is left out.
    ///
    /// # Errors
    /// `APP_UNRESPONSIVE` when one of them does not answer: silence is not absence.
    pub(crate) fn children(&self, parent: &Object, deadline: Deadline) -> Result<Vec<Inner>> {
        self.with_bus(deadline, |bus| {
            let connection = &mut bus.connection;
            let serial = send_plain(connection, parent, ACCESSIBLE, "GetChildren");
            let found = match connection.wait(serial, deadline.at()) {
                Ok(message) => objects(&message, &parent.bus).unwrap_or_default(),
                Err(Failure::Timeout) => return Err(unresponsive(0, Some(&Failure::Timeout))),
                Err(_) => Vec::new(),
            };
            let asked: Vec<(Object, [u32; 2])> = found
                .into_iter()
                .filter(|child| !child.is_null())
                .take(MOST_WINDOWS)
                .map(|child| {
                    let serials = [
                        send_plain(connection, &child, ACCESSIBLE, "GetRole"),
                        send_plain(connection, &child, ACCESSIBLE, "GetState"),
                    ];
                    (child, serials)
                })
                .collect();
            let mut inner = Vec::new();
            for (object, [number, native]) in asked {
                let number = connection
                    .wait(number, deadline.at())
                    .and_then(|message| Ok(message.body("u")?.u32()?));
                let native = connection.wait(native, deadline.at()).and_then(|message| states(&message));
                match (number, native) {
                    (Ok(role), Ok(states)) => inner.push(Inner { object, role, states }),
                    (Err(Failure::Timeout), _) | (_, Err(Failure::Timeout)) => {
                        return Err(unresponsive(0, Some(&Failure::Timeout)));
                    }
                    _ => {}
                }
            }
            Ok(inner)
        })
    }

    /// The first object inside a dialog that is so; lists are not looked into.
    fn inside_dialog(
        &self,
        dialog: &Handle,
        deadline: Deadline,
        is_wanted: impl Fn(&Inner) -> bool,
    ) -> Result<Option<Inner>> {
        let mut open = VecDeque::from([Object::from_handle(dialog)?]);
        let mut seen = 0;
        while let Some(object) = open.pop_front() {
            for inner in self.children(&object, deadline)? {
                seen += 1;
                if is_wanted(&inner) {
                    return Ok(Some(inner));
                }
                let holds_items = matches!(
                    inner.role,
                    role::TABLE
                        | role::TREE_TABLE
                        | role::TREE
                        | role::LIST
                        | role::LIST_BOX
                        | role::COMBO_BOX
                );
                if !holds_items && inner.states & state::SHOWING != 0 {
                    open.push_back(inner.object);
                }
            }
            if seen > MOST_IN_DIALOG {
                break;
            }
        }
        Ok(None)
    }

    /// Reads what is inside a control of GTK 4 that is named, or whose value is told, by a label in it.
    fn read_label(
        &self,
        target: &Object,
        node: &mut Node,
        manner: &Manner,
        deadline: Deadline,
    ) -> Result<()> {
        let limits = Limits { nodes: MOST_LABEL_NODES, ..Limits::default() };
        let surveyed = self.with_bus(deadline, |bus| {
            Ok(Survey::new(&mut bus.connection, manner, limits, deadline.at()).tree(target.clone(), false))
        })?;
        if let Some(root) = surveyed.tree.root() {
            let told = surveyed.tree.node(root);
            node.name.clone_from(&told.name);
            node.value.clone_from(&told.value);
            node.states.set(State::Expanded, told.states.has(State::Expanded));
        }
        Ok(())
    }

    /// Corrects where a node is said to be, and finds out whether that is outside of what can be seen.
    fn place_single(
        &self,
        node: &mut Node,
        manner: &Manner,
        window: &Window,
        popups: &OnceCell<Vec<PopupWindow>>,
        deadline: Deadline,
    ) -> Result<()> {
        let Some(bounds) = node.bounds.filter(|bounds| !bounds.is_empty()) else { return Ok(()) };
        let open = || self.popups_once(popups, window.pid, deadline);
        if manner.toolkit == Toolkit::Gtk4
            && let Some((_, shift)) = self.popup_around(&node.handle, open()?, deadline)?
        {
            let said = popups::moved(bounds, (-f64::from(manner.origin.0), -f64::from(manner.origin.1)));
            node.bounds = Some(popups::moved(said, shift));
            return Ok(());
        }
        let is_outside = window.bounds.is_some_and(|window| bounds.intersection(&window).is_none())
            && !popups::is_inside(open()?, &bounds);
        node.states.set(State::Offscreen, is_outside);
        Ok(())
    }

    /// What a popup of the same application at that point means for a click on `target`; `None`: there is no popup.
    fn popup_in_front(
        &self,
        target: &Handle,
        window: &Window,
        point: Point,
        deadline: Deadline,
    ) -> Result<Option<Hit>> {
        let popups = self.popups(window.pid, deadline)?;
        if popups.is_empty() {
            return Ok(None);
        }
        let Some(display) = self.display_if_any(deadline)? else { return Ok(None) };
        let at = display.window_at(pixel(point), deadline.at()).map_err(|error| screen_error(&error))?;
        let Some(hit) = at else { return Ok(None) };
        let Some(front) = popups.iter().find(|popup| Some(popup.id) == hit.window) else { return Ok(None) };
        if self.is_item_of(target, front, window, deadline)? {
            return Ok(Some(Hit::Target));
        }
        let around = self.popup_around(target, &popups, deadline)?;
        Ok(match around {
            Some((popup, _)) if popup.id == front.id => Some(Hit::Target),
            _ if self.manner(&Object::from_handle(target)?.bus, window, deadline)?.toolkit
                == Toolkit::Gtk4 =>
            {
                Some(Hit::Other { role: Role::Popover, name: None, bounds: Some(front.area) })
            }
            _ => None,
        })
    }

    /// Whether it is an item of the menu that a popup is the window of. In GTK 3 that menu is no object of its own: its items
    /// are children of the control that opens it, which stands elsewhere.
    fn is_item_of(
        &self,
        target: &Handle,
        popup: &PopupWindow,
        window: &Window,
        deadline: Deadline,
    ) -> Result<bool> {
        let mut handles = vec![target.clone()];
        handles.extend(self.ancestors(target, deadline)?.into_iter().take(1));
        let bounds: Vec<Option<(Role, Rect)>> = self
            .read(&handles, window, deadline)?
            .into_iter()
            .map(|reading| match reading {
                Reading::Live(node) => node.bounds.map(|bounds| (node.role, bounds)),
                _ => None,
            })
            .collect();
        let [Some((Role::MenuItem | Role::CheckBox | Role::RadioButton, item)), Some((_, opener))] =
            bounds[..]
        else {
            return Ok(false);
        };
        Ok(popup.area.contains(item.center()) && !opener.contains(item.center()))
    }

    /// What stands between a point and a window, if it is another window.
    fn window_in_front(&self, window: &Window, point: Point, deadline: Deadline) -> Result<InFront> {
        let Some(own) = screen_id(&window.id) else { return Ok(InFront::Nothing) };
        let Some(display) = self.display_if_any(deadline)? else { return Ok(InFront::Nothing) };
        let at = display.window_at(pixel(point), deadline.at()).map_err(|error| screen_error(&error))?;
        let Some(hit) = at else { return Ok(InFront::Nothing) };
        if hit.window == Some(own) && !hit.is_on_frame {
            return Ok(InFront::Nothing);
        }
        let list = display.windows(deadline.at()).map_err(|error| screen_error(&error))?;
        if let Some(popup) = list.popups.iter().find(|popup| Some(popup.id) == hit.window) {
            // A tooltip goes away by itself when the pointer comes.
            if popup.kind == WindowKind::Tooltip {
                return Ok(InFront::Nothing);
            }
            let name = Some(popup.title.clone()).filter(|title| !title.is_empty());
            let hit = Hit::Other { role: Role::Menu, name, bounds: Some(rect(popup.area)) };
            return Ok(if popup.pid == Some(window.pid) {
                InFront::OwnPopup(hit)
            } else {
                InFront::Other(hit)
            });
        }
        // Whatever is there and is not the window takes the click, known or not.
        let other = list.windows.iter().find(|other| Some(other.id) == hit.window);
        let is_dialog = other.is_some_and(|other| other.is_modal || other.kind == WindowKind::Dialog);
        Ok(InFront::Other(Hit::Other {
            role: if is_dialog { Role::Dialog } else { Role::Window },
            name: other.map(|other| other.title.clone()).filter(|title| !title.is_empty()),
            bounds: other.map(|other| rect(other.frame)),
        }))
    }

    /// Whether an element stands in something that pops up: a menu, a list, a popover.
    fn is_in_popup(&self, target: &Handle, deadline: Deadline) -> Result<bool> {
        let mut chain = vec![target.clone()];
        chain.extend(self.ancestors(target, deadline)?);
        let objects: Vec<Object> = chain.iter().map(Object::from_handle).collect::<Result<_>>()?;
        self.with_bus(deadline, |bus| {
            let connection = &mut bus.connection;
            let asked: Vec<[u32; 2]> = objects
                .iter()
                .map(|object| {
                    [
                        send_plain(connection, object, ACCESSIBLE, "GetRole"),
                        send_get(connection, object, ACCESSIBLE, "Name"),
                    ]
                })
                .collect();
            let mut is_inside = false;
            for [number, name] in asked {
                let number = connection
                    .wait(number, deadline.at())
                    .and_then(|message| Ok(message.body("u")?.u32()?));
                let name = connection.wait(name, deadline.at()).and_then(|message| variant_string(&message));
                is_inside |= matches!(
                    number,
                    Ok(role::MENU
                        | role::POPUP_MENU
                        | role::MENU_ITEM
                        | role::CHECK_MENU_ITEM
                        | role::RADIO_MENU_ITEM)
                ) || name.is_ok_and(|name| name == "GtkPopover" || name == "GtkPopoverMenu");
            }
            // The list of a combo box hangs below the box.
            Ok(is_inside)
        })
    }
}

/// Whether it may be a cell of a `LibreOffice` sheet.
fn may_be_sheet_cell(node: &Node, toolkit: Toolkit) -> bool {
    toolkit == Toolkit::Gtk3 && node.role == Role::Cell && !node.states.has(State::Secure)
}

/// Whether it may be the select of a page whose list Firefox shows.
fn may_be_open_select(node: &Node) -> bool {
    node.is_web && node.role == Role::ComboBox && node.states.has(State::Focused)
}

fn parent_of(message: &crate::dbus::Message, owner: &str) -> Option<Object> {
    let mut body = message.body("v").ok()?;
    (body.signature().ok()? == "(so)").then_some(())?;
    let (bus, path) = body.reference().ok()?;
    Some(owned_by(&bus, &path, owner)).filter(|parent| !parent.is_null())
}
