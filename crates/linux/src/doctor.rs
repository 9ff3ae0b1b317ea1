//! What keeps a desktop from being read and operated: the buses, the display, the window manager, the environment, and
//! applications without a tree.
//!
//! Each check says what was seen, and asks by itself rather than through what commands use, so that it can say which link is
//! broken. A check that depends on one that failed is skipped. What may be changed is `org.a11y.Status.IsEnabled`, which is
//! there to be switched on; `ScreenReaderEnabled` would make applications talk to somebody who is not there.

use std::time::{Duration, Instant};

use agent_desktop_core::Deadline;
use agent_desktop_core::platform::{AppAdvice, Check, CheckState, Platform};

use crate::bus::{ACCESSIBLE, Object, PROPERTIES, REGISTRY, ROOT, accessibility_address, send_get};
use crate::bus::{variant_bool, variant_number};
use crate::dbus::{Call, Connection, Failure, session_bus_addresses};
use crate::notifications;
use crate::platform::Linux;
use crate::process;
use crate::window_system::{Rectangle, Server, WindowSystemError, X11};

/// The share of the time that is left which one check may take.
const SHARE: u32 = 3;
/// What one check may take at most.
const LONGEST: Duration = Duration::from_millis(1500);
/// Side of the picture that is taken, pixels.
const PICTURE: u32 = 16;

const STATUS: &str = "org.a11y.Status";
const A11Y: &str = "org.a11y.Bus";
const A11Y_PATH: &str = "/org/a11y/bus";

/// Variables that switch accessibility off, with the values that do, and whom they concern.
const SWITCHES: &[(&str, &[&str], &str)] = &[
    ("NO_AT_BRIDGE", &["1", "true", "yes"], "GTK 3, LibreOffice"),
    ("GTK_A11Y", &["none"], "GTK 4"),
    ("QT_ACCESSIBILITY", &["0"], "Qt"),
    ("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", &["0"], "Qt"),
    ("GNOME_ACCESSIBILITY", &["0"], "Firefox"),
];

/// What a program is made with, as far as that decides how its tree is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Chromium,
    Firefox,
    Java,
    Gtk4,
    Gtk3,
    Qt,
    Unknown,
}

impl Maker {
    /// From the files that a process has in its memory.
    fn of(maps: &str) -> Maker {
        // A browser or a suite loads a toolkit as well: who is more special comes first.
        let signs = [
            (Maker::Chromium, &["/icudtl.dat", "/v8_context_snapshot", "/snapshot_blob.bin"][..]),
            (Maker::Firefox, &["/libxul.so"]),
            (Maker::Java, &["/libjvm.so"]),
            (Maker::Gtk4, &["/libgtk-4.so"]),
            (Maker::Gtk3, &["/libgtk-3.so", "/libgtk-x11-2.0.so"]),
            (Maker::Qt, &["/libQt5Gui.so", "/libQt6Gui.so", "/libQtGui.so"]),
        ];
        let found = signs.iter().find(|(_, files)| files.iter().any(|file| maps.contains(file)));
        found.map_or(Maker::Unknown, |(maker, _)| *maker)
    }

    /// How the tree of such a program is switched on.
    const fn advice(self) -> &'static str {
        match self {
            Maker::Chromium => "start it again with --force-renderer-accessibility",
            Maker::Firefox => "start it again with GNOME_ACCESSIBILITY=1 in its environment",
            Maker::Java => {
                "install the ATK wrapper of its runtime (libatk-wrapper-java-jni), and start it again with \
                 -Djavax.accessibility.assistive_technologies=org.GNOME.Accessibility.AtkWrapper"
            }
            Maker::Gtk4 | Maker::Gtk3 => "start it again, now that there is an accessibility bus",
            Maker::Qt => "start it again with QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1 in its environment",
            Maker::Unknown => {
                "its toolkit is not one that is known to have a tree: use screenshot, and mouse-click and press with --headed"
            }
        }
    }
}

/// The variables among these that switch accessibility off.
fn switched_off(value_of: impl Fn(&str) -> Option<String>) -> Vec<(String, &'static str)> {
    let is_off = |(name, values, whom): &(&str, &[&str], &'static str)| {
        let value = value_of(name)?;
        let is_off = values.iter().any(|off| value.eq_ignore_ascii_case(off));
        is_off.then(|| (format!("{name}={value}"), *whom))
    };
    SWITCHES.iter().filter_map(is_off).collect()
}

/// What to do so that a running application gets a tree.
fn advice_for(pid: u32) -> String {
    let off = switched_off(|name| process::variable(pid, name));
    if !off.is_empty() {
        let names: Vec<&str> = off.iter().map(|(word, _)| word.as_str()).collect();
        return format!("start it again without {} in its environment", names.join(" and "));
    }
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    Maker::of(&String::from_utf8_lossy(&maps)).advice().to_owned()
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Asks a bus for its own id: the least that whoever is a bus answers.
fn greet(connection: &mut Connection, deadline: Instant) -> Result<(), Failure> {
    let call = Call::new("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId");
    connection.call(&call, deadline).map(drop)
}

fn open(address: &str, deadline: Instant) -> Result<Connection, Failure> {
    let mut connection = Connection::open(address, true)?;
    greet(&mut connection, deadline)?;
    Ok(connection)
}

/// What one examination has found out so far.
struct Examiner<'a> {
    linux: &'a Linux,
    deadline: Deadline,
    repair: bool,
    checks: Vec<Check>,
}

impl Examiner<'_> {
    /// The time of the next check.
    fn share(&self) -> Deadline {
        let now = Instant::now();
        self.deadline.within(now, (self.deadline.remaining(now) / SHARE).min(LONGEST))
    }

    fn session_bus(&mut self) -> Option<Connection> {
        let why = "the accessibility bus and the notification service are found through it";
        let id = "session_bus";
        let mut failed = Vec::new();
        for address in session_bus_addresses(&environment) {
            match open(&address, self.share().at()) {
                Ok(connection) => {
                    let seen = format!("{address} answers");
                    self.checks.push(Check::new(id, why, CheckState::Ok, seen));
                    return Some(connection);
                }
                Err(failure) => failed.push(format!("{address}: {failure}")),
            }
        }
        let advice = "run inside the desktop session, or set DBUS_SESSION_BUS_ADDRESS to that of the session \
                      (mostly unix:path=/run/user/UID/bus)";
        self.checks.push(Check::new(id, why, CheckState::Failed, failed.join("; ")).advise(advice));
        None
    }

    fn accessibility_bus(&mut self, session: Option<&Connection>) -> Option<Connection> {
        let (id, why) = ("accessibility_bus", "applications are read and operated over it");
        let mut noted = String::new();
        if let Some(address) = environment("AT_SPI_BUS_ADDRESS") {
            match open(&address, self.share().at()) {
                Ok(connection) => {
                    let seen = format!("{address} answers (AT_SPI_BUS_ADDRESS)");
                    self.checks.push(Check::new(id, why, CheckState::Ok, seen));
                    return Some(connection);
                }
                Err(failure) => noted = format!("AT_SPI_BUS_ADDRESS is dead ({failure}); "),
            }
        }
        if session.is_none() {
            let seen = format!("{noted}there is no session bus to ask for it");
            self.checks.push(Check::new(id, why, CheckState::Skipped, seen));
            return None;
        }
        let share = self.share();
        let mut failed = None;
        for session in session_bus_addresses(&environment) {
            let address = accessibility_address(&session, share.at());
            match address.and_then(|address| Ok((open(&address, share.at())?, address))) {
                Ok((connection, address)) => {
                    let seen = format!("{noted}{address} answers");
                    let state = if noted.is_empty() { CheckState::Ok } else { CheckState::Warning };
                    let check = Check::new(id, why, state, seen);
                    let check =
                        if noted.is_empty() { check } else { check.advise("unset AT_SPI_BUS_ADDRESS") };
                    self.checks.push(check);
                    return Some(connection);
                }
                // Who was asked and has no answer is the one to tell of, not the next who is not there.
                Err(failure @ (Failure::Timeout | Failure::Remote { .. })) => {
                    failed = Some(failure);
                    break;
                }
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        let advice = if matches!(failed, Some(Failure::Timeout)) {
            "end at-spi-bus-launcher, which hangs; the session bus starts it again"
        } else {
            "install at-spi2-core, then log in anew or start /usr/libexec/at-spi-bus-launcher"
        };
        let seen = failed.map_or_else(|| "no answer".to_owned(), |failure| failure.to_string());
        let seen = format!("{noted}org.a11y.Bus: {seen}");
        self.checks.push(Check::new(id, why, CheckState::Failed, seen).advise(advice));
        None
    }

    fn registry(&mut self, accessibility: Option<&mut Connection>) {
        let (id, why) = ("accessibility_registry", "it knows which applications can be read");
        let Some(connection) = accessibility else {
            let seen = "there is no accessibility bus to ask";
            self.checks.push(Check::new(id, why, CheckState::Skipped, seen));
            return;
        };
        let serial = send_get(connection, &Object::new(REGISTRY, ROOT), ACCESSIBLE, "ChildCount");
        let count = connection.wait(serial, self.share().at()).and_then(|message| variant_number(&message));
        self.checks.push(match count {
            Ok(count) => Check::new(
                id,
                why,
                CheckState::Ok,
                format!("it answers; {count} applications are registered"),
            ),
            Err(failure) => Check::new(id, why, CheckState::Failed, failure.to_string())
                .advise("end at-spi2-registryd, which the accessibility bus starts again, or log in anew"),
        });
    }

    fn enabled(&mut self, session: Option<&mut Connection>) {
        let id = "accessibility_enabled";
        let why = "Qt, Chromium, Electron and Firefox build their trees only while it is on, some only if it was at their start";
        let Some(session) = session else {
            let seen = "there is no session bus to ask";
            self.checks.push(Check::new(id, why, CheckState::Skipped, seen));
            return;
        };
        let share = self.share();
        let read = |session: &mut Connection| is_enabled(session, share.at());
        let check = match read(session) {
            Ok(true) => Check::new(id, why, CheckState::Ok, "org.a11y.Status.IsEnabled is true"),
            Ok(false) if self.repair => match enable(session, share.at()).and_then(|()| read(session)) {
                Ok(true) => {
                    let mut check = Check::new(
                        id,
                        why,
                        CheckState::Ok,
                        "org.a11y.Status.IsEnabled was false, and is true",
                    );
                    check.fixed = Some("org.a11y.Status.IsEnabled set to true".to_owned());
                    check.advise("start applications again that have no tree yet")
                }
                outcome => {
                    let seen = match outcome {
                        Err(failure) => format!("org.a11y.Status.IsEnabled cannot be set: {failure}"),
                        Ok(_) => "org.a11y.Status.IsEnabled was set to true and is still false".to_owned(),
                    };
                    Check::new(id, why, CheckState::Failed, seen).advise(
                        "switch accessibility on in the settings of the desktop (toolkit-accessibility)",
                    )
                }
            },
            Ok(false) => {
                let mut check =
                    Check::new(id, why, CheckState::Warning, "org.a11y.Status.IsEnabled is false")
                        .advise("agent-desktop doctor --fix sets it; then start those applications again");
                check.can_fix = true;
                check
            }
            Err(failure) => {
                let seen = format!("org.a11y.Status.IsEnabled: {failure}");
                Check::new(id, why, CheckState::Warning, seen).advise("see accessibility_bus")
            }
        };
        self.checks.push(check);
    }

    /// The display, what it can do, and who manages its windows.
    fn display(&mut self) {
        let (id, why) = ("display", "windows, pictures, keys and the pointer are those of an X11 display");
        let (display, wayland) = (environment("DISPLAY").unwrap_or_default(), environment("WAYLAND_DISPLAY"));
        let share = self.share();
        let linux = self.linux;
        let found =
            linux.display(share).and_then(|server| server.server(share.at()).map(|facts| (server, facts)));
        let (server, facts) = match found {
            Ok(found) => found,
            Err(error) => {
                let seen = match (&error, display.is_empty()) {
                    (WindowSystemError::Connect { .. }, true) => "DISPLAY is not set".to_owned(),
                    (error, _) => error.to_string(),
                };
                let advice = match (&error, &wayland) {
                    (WindowSystemError::Connect { .. }, Some(_)) => {
                        "this is a Wayland session; switch Xwayland on in its compositor"
                    }
                    (WindowSystemError::Connect { .. }, None) => {
                        "run inside the desktop session, or set DISPLAY (mostly :0) and XAUTHORITY to those of the session"
                    }
                    _ => "the X server is there and does not answer; see whether it hangs",
                };
                self.checks.push(Check::new(id, why, CheckState::Failed, seen).advise(advice));
                for (id, why) in [WINDOW_MANAGER, INPUT, CAPTURE] {
                    let seen = "there is no display to ask";
                    self.checks.push(Check::new(id, why, CheckState::Skipped, seen));
                }
                return;
            }
        };
        let size = format!("{}x{}", facts.screen.width, facts.screen.height);
        let seen = format!("{display} is {}, {size}", facts.vendor);
        let check = if facts.is_xwayland || wayland.is_some() {
            Check::new(id, why, CheckState::Warning, format!("{seen}, inside of a Wayland session")).advise(
                "windows of Wayland programs cannot be placed, pictured or clicked: start those with GDK_BACKEND=x11, \
                 QT_QPA_PLATFORM=xcb or --ozone-platform=x11",
            )
        } else {
            Check::new(id, why, CheckState::Ok, seen)
        };
        self.checks.push(check);
        self.checks.push(window_manager(&facts));
        self.checks.push(input(&facts));
        let check = capture(server, self.share());
        self.checks.push(check);
    }

    fn environment(&mut self) {
        let (id, why) = ("environment", "what is launched from here inherits it, and then has no tree");
        let off = switched_off(environment);
        self.checks.push(if off.is_empty() {
            Check::new(id, why, CheckState::Ok, "no variable switches accessibility off")
        } else {
            let words: Vec<String> = off.iter().map(|(word, whom)| format!("{word} ({whom})")).collect();
            let names: Vec<&str> = off.iter().filter_map(|(word, _)| word.split('=').next()).collect();
            Check::new(id, why, CheckState::Warning, words.join(", "))
                .advise(format!("unset {}", names.join(" ")))
        });
    }

    fn applications(&mut self) {
        let (id, why) = ("applications", "what has windows and no tree can only be seen and clicked");
        let is_there = |id: &str| {
            let check = self.checks.iter().find(|check| check.id == id);
            check.is_some_and(|check| matches!(check.state, CheckState::Ok | CheckState::Warning))
        };
        if !is_there("accessibility_registry") || !is_there("display") {
            let seen = "it takes the accessibility registry and the display to know";
            self.checks.push(Check::new(id, why, CheckState::Skipped, seen));
            return;
        }
        let apps = match self.linux.apps(self.share()) {
            Ok(apps) => apps,
            Err(error) => {
                let seen = error.get_platform_detail().unwrap_or(error.message()).to_owned();
                self.checks.push(Check::new(id, why, CheckState::Failed, seen));
                return;
            }
        };
        let total = apps.len();
        let odd: Vec<AppAdvice> = apps
            .into_iter()
            .filter_map(|app| {
                let advice = match app.accessible {
                    Some(true) => return None,
                    Some(false) => advice_for(app.pid),
                    None => "it has a tree and does not answer: see whether it hangs".to_owned(),
                };
                Some(AppAdvice { name: app.name, pid: app.pid, advice })
            })
            .collect();
        self.checks.push(if odd.is_empty() {
            Check::new(id, why, CheckState::Ok, format!("{total} are there, and all have a tree"))
        } else {
            let names: Vec<&str> = odd.iter().map(|app| app.name.as_str()).collect();
            let seen = format!("{} of {total} cannot be read: {}", odd.len(), names.join(", "));
            let check = Check::new(id, why, CheckState::Warning, seen);
            Check { apps: odd, ..check }.advise("each application has its own way, see there")
        });
    }

    fn notifications(&mut self, has_bus: bool) {
        let (id, why) =
            ("notifications", "list-notifications and its kin need a service that shows notifications");
        if !has_bus {
            let seen = "there is no session bus to ask";
            self.checks.push(Check::new(id, why, CheckState::Skipped, seen));
            return;
        }
        self.checks.push(match notifications::has_service(self.share()) {
            Ok(true) => Check::new(id, why, CheckState::Ok, "org.freedesktop.Notifications has an owner"),
            Ok(false) => {
                Check::new(id, why, CheckState::Warning, "nobody owns org.freedesktop.Notifications")
                    .advise("start one if notifications matter: dunst, or that of the desktop")
            }
            Err(error) => {
                let seen = error.get_platform_detail().unwrap_or(error.message()).to_owned();
                Check::new(id, why, CheckState::Failed, seen)
            }
        });
    }
}

const WINDOW_MANAGER: (&str, &str) =
    ("window_manager", "focus-window, minimize, maximize and restore ask it; keys need the focus");
const INPUT: (&str, &str) = ("input", "commands with --headed send keys and move the pointer with XTEST");
const CAPTURE: (&str, &str) = ("screen_capture", "screenshot reads the screen");

fn window_manager(facts: &Server) -> Check {
    let (id, why) = WINDOW_MANAGER;
    match &facts.window_manager {
        None => Check::new(id, why, CheckState::Warning, "none that speaks EWMH")
            .advise("start one, such as openbox; moving and resizing windows and the pointer work without"),
        Some(name) => {
            let name = if name.is_empty() { "one without a name" } else { name };
            if facts.missing.is_empty() {
                Check::new(id, why, CheckState::Ok, format!("{name} speaks EWMH"))
            } else {
                let seen = format!("{name} lacks {}", facts.missing.join(", "));
                Check::new(id, why, CheckState::Warning, seen)
                    .advise("use another window manager if the commands that need these matter")
            }
        }
    }
}

fn input(facts: &Server) -> Check {
    let (id, why) = INPUT;
    if facts.has_xtest {
        Check::new(id, why, CheckState::Ok, "the server has XTEST")
    } else {
        Check::new(id, why, CheckState::Failed, "the server has no XTEST")
            .advise("start the X server with XTEST; without --headed nothing needs it")
    }
}

/// Takes a small picture. What it shows is not judged: an empty desktop is black.
fn capture(display: &X11, deadline: Deadline) -> Check {
    let (id, why) = CAPTURE;
    match display.capture_region(Rectangle::new(0, 0, PICTURE, PICTURE), deadline.at()) {
        Ok(capture) => {
            let (width, height) = (capture.image.width(), capture.image.height());
            Check::new(id, why, CheckState::Ok, format!("a picture of {width}x{height} pixels was taken"))
        }
        Err(error) => Check::new(id, why, CheckState::Failed, error.to_string())
            .advise("see whether the X server refuses pictures to this user"),
    }
}

fn is_enabled(session: &mut Connection, deadline: Instant) -> Result<bool, Failure> {
    let serial = send_get(session, &Object::new(A11Y, A11Y_PATH), STATUS, "IsEnabled");
    session.wait(serial, deadline).and_then(|message| variant_bool(&message))
}

fn enable(session: &mut Connection, deadline: Instant) -> Result<(), Failure> {
    let call = Call {
        signature: "ssv",
        body: &|writer| {
            writer.string(STATUS);
            writer.string("IsEnabled");
            writer.signature("b");
            writer.bool(true);
        },
        ..Call::new(A11Y, A11Y_PATH, PROPERTIES, "Set")
    };
    session.call(&call, deadline).map(drop)
}

impl Linux {
    /// Everything that can be seen from here, in the order in which one thing needs the other. `repair`: also switches
    /// accessibility on.
    pub(crate) fn examine(&self, repair: bool, deadline: Deadline) -> Vec<Check> {
        let mut examiner = Examiner { linux: self, deadline, repair, checks: Vec::new() };
        let mut session = examiner.session_bus();
        let mut accessibility = examiner.accessibility_bus(session.as_ref());
        examiner.registry(accessibility.as_mut());
        examiner.enabled(session.as_mut());
        examiner.display();
        examiner.environment();
        examiner.applications();
        examiner.notifications(session.is_some());
        examiner.checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_what_it_has_loaded() {
        let line = |file: &str| format!("7f00-7f01 r--p 00000000 08:01 1 {file}\n");
        for (files, maker) in [
            (&["/usr/lib/libgtk-3.so.0.2", "/usr/lib/chromium/icudtl.dat"][..], Maker::Chromium),
            (&["/usr/lib/libgtk-3.so.0.2", "/usr/lib/firefox/libxul.so"], Maker::Firefox),
            (&["/usr/lib/jvm/lib/server/libjvm.so"], Maker::Java),
            (&["/usr/lib/libgtk-4.so.1"], Maker::Gtk4),
            (&["/usr/lib/libgtk-3.so.0"], Maker::Gtk3),
            (&["/usr/lib/libQt6Gui.so.6"], Maker::Qt),
            (&["/usr/lib/libXaw.so.7"], Maker::Unknown),
        ] {
            let maps: String = files.iter().map(|file| line(file)).collect();
            assert_eq!(Maker::of(&maps), maker, "{files:?}");
        }
    }

    #[test]
    fn a_check_that_hangs_leaves_time_for_the_others() {
        for (seconds, longest) in [(3, Duration::from_secs(1)), (60, LONGEST)] {
            let deadline = Deadline::after(Instant::now(), Duration::from_secs(seconds));
            let linux = Linux::new();
            let examiner = Examiner { linux: &linux, deadline, repair: false, checks: Vec::new() };
            let share = examiner.share().remaining(Instant::now());
            assert!(share <= longest && share > longest / 2, "{share:?} of {seconds} s");
        }
    }

    #[test]
    fn only_the_values_that_switch_off_are_told_of() {
        let off = |name: &'static str, value: &'static str| {
            switched_off(|asked| (asked == name).then(|| value.to_owned())).len()
        };
        for (name, value) in [("NO_AT_BRIDGE", "1"), ("GTK_A11Y", "None"), ("QT_ACCESSIBILITY", "0")] {
            assert_eq!(off(name, value), 1, "{name}={value}");
        }
        for (name, value) in [("NO_AT_BRIDGE", "0"), ("GTK_A11Y", "atspi"), ("QT_ACCESSIBILITY", "1")] {
            assert_eq!(off(name, value), 0, "{name}={value}");
        }
    }
}
