//! A private desktop for one test: how the test gets into it, and what can be seen of it from outside.
//!
//! The test binary runs itself again inside `desktops/NAME.sh`, so that the whole test, the product and the applications
//! share one process namespace and agree on pids. The script ends everything when the inner run ends.

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::Cli;

/// Where the inner run notes that it found its test.
const MARK: &str = "AGENT_DESKTOP_TEST_MARK";
/// The Python that has `PySide6`, found outside, since HOME is another one inside.
const QT_PYTHON: &str = "AGENT_DESKTOP_TEST_QT_PYTHON";

/// Which desktop a test runs in.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Script in `desktops/`, without `.sh`.
    pub desktop: &'static str,
    /// Settings of the script, `DESK_…` variables.
    pub settings: Vec<(&'static str, &'static str)>,
    /// The whole test ends after this.
    pub limit: Duration,
}

impl Default for Setup {
    /// X11 with openbox, two minutes.
    fn default() -> Self {
        Self { desktop: "x11", settings: Vec::new(), limit: Duration::from_secs(120) }
    }
}

impl Setup {
    /// X11 with another window manager: `openbox`, `xfwm4`, `metacity`, `mutter` or `none`.
    #[must_use]
    pub fn wm(name: &'static str) -> Self {
        Self { settings: vec![("DESK_WM", name)], ..Self::default() }
    }

    /// One of the desktops in `desktops/`: `x11`, `sway`, `kwin`, `gnome`, `labwc`.
    #[must_use]
    pub fn on(desktop: &'static str) -> Self {
        Self { desktop, ..Self::default() }
    }

    /// The same with another limit.
    #[must_use]
    pub fn within(self, seconds: u64) -> Self {
        Self { limit: Duration::from_secs(seconds), ..self }
    }
}

/// Writes tests that run inside a desktop of their own.
///
/// ```ignore
/// desktop_test! {
///     fn the_button_is_pressed(desktop: &Desktop) {
///         let app = desktop.gtk3("controls");
///         …
///     }
///
///     on Setup::wm("metacity").within(30) =>
///     fn another_window_manager(desktop: &Desktop) { … }
/// }
/// ```
#[macro_export]
macro_rules! desktop_test {
    () => {};
    ($(#[$meta:meta])* fn $name:ident($desktop:ident: &Desktop) $body:block $($rest:tt)*) => {
        $crate::desktop_test! { on $crate::Setup::default() => $(#[$meta])* fn $name($desktop: &Desktop) $body $($rest)* }
    };
    (on $setup:expr => $(#[$meta:meta])* fn $name:ident($desktop:ident: &Desktop) $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            fn body($desktop: &$crate::Desktop) $body
            $crate::desktop::run(&$setup, concat!(module_path!(), "::", stringify!($name)), body);
        }
        $crate::desktop_test! { $($rest)* }
    };
}

/// Runs `body` in the desktop that is there, or this test once more inside a new one. Use [`desktop_test!`].
pub fn run(setup: &Setup, path: &str, body: fn(&Desktop)) {
    // The name as the test harness knows it: without the crate.
    let name = path.split_once("::").map_or(path, |(_, rest)| rest);
    if std::env::var_os("DESK").is_some() {
        inside(name, body);
    } else {
        outside(setup, name);
    }
}

fn inside(name: &str, body: fn(&Desktop)) {
    if let Some(mark) = std::env::var_os(MARK) {
        fs::write(mark, name).expect("the mark can be written");
    }
    let desktop = Desktop::here(name);
    let Err(panic) = panic::catch_unwind(AssertUnwindSafe(|| body(&desktop))) else { return };
    desktop.keep_evidence(name);
    panic::resume_unwind(panic);
}

fn outside(setup: &Setup, name: &str) {
    let exe = std::env::current_exe().expect("the test binary's own path");
    let scratch = std::env::temp_dir().join(format!(
        "agent-desktop-test-{}-{}",
        std::process::id(),
        name.replace("::", "-")
    ));
    fs::create_dir_all(&scratch).expect("the temporary folder can be written");
    let (mark, output) = (scratch.join("mark"), scratch.join("output"));
    let log = fs::File::create(&output).expect("the temporary folder can be written");
    let mut command = Command::new(crate::root().join("desktops").join(format!("{}.sh", setup.desktop)));
    command.args(["run", "--"]).arg(&exe).args([
        "--exact",
        name,
        "--nocapture",
        "--include-ignored",
        "--test-threads=1",
    ]);
    command.envs(setup.settings.iter().copied()).env(MARK, &mark).env(QT_PYTHON, qt_python());
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
    let mut child = command.spawn().expect("the desktop script can be started");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the script is ours") {
            break Some(status);
        }
        if start.elapsed() > setup.limit {
            // Politely first: then the script removes its folder and the display's lock.
            let pid = Pid::from_child(&child);
            let _ = kill_process(pid, Signal::TERM);
            let asked = Instant::now();
            while asked.elapsed() < Duration::from_secs(5) && child.try_wait().is_ok_and(|s| s.is_none()) {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let said = String::from_utf8_lossy(&fs::read(&output).unwrap_or_default()).into_owned();
    let found = mark.exists();
    let _ = fs::remove_dir_all(&scratch);
    print!("{said}");
    match status {
        None => panic!("{name}: not done within {:?}, ended", setup.limit),
        Some(status) if status.code() == Some(125) && !found => panic!("{name}: the desktop did not start"),
        Some(status) => {
            assert!(status.success(), "{name}: failed inside its desktop ({status})");
            assert!(found, "{name}: the run inside the desktop found no test of this name");
        }
    }
}

fn cache_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from)
}

/// Path of the Python with `PySide6`, made by `scripts/install.sh test`.
pub(crate) fn qt_python() -> PathBuf {
    if let Some(path) = std::env::var_os(QT_PYTHON) {
        return path.into();
    }
    let inside = "agent-desktop-test/venv/bin/python";
    let here = cache_home().join(inside);
    if here.exists() {
        return here;
    }
    // In a desktop started by hand HOME is another one; cargo's folder is still beside the cache.
    let cargo = PathBuf::from(std::env::var_os("CARGO_HOME").unwrap_or_default());
    cargo.parent().map_or(here, |home| home.join(".cache").join(inside))
}

/// A window that the window manager lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// X11 id.
    pub id: u32,
    /// Process that says it owns the window; 0 when it says nothing.
    pub pid: u32,
    /// Title.
    pub title: String,
}

/// A rectangle on the screen, pixels, origin at the top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Left edge.
    pub x: i32,
    /// Upper edge.
    pub y: i32,
    /// Width.
    pub width: i32,
    /// Height.
    pub height: i32,
}

/// The desktop that the test runs in.
#[derive(Debug)]
pub struct Desktop {
    folder: PathBuf,
    name: String,
}

impl Desktop {
    fn here(test: &str) -> Self {
        let desk = std::env::var_os("DESK").expect("inside a desktop");
        let folder = PathBuf::from(desk).join("tmp").join(test.replace("::", "-"));
        fs::create_dir_all(&folder).expect("the desktop's folder can be written");
        Self { folder, name: std::env::var("DESK_NAME").unwrap_or_default() }
    }

    /// Which desktop: `x11`, `sway`, …
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A path in this test's temporary folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file in the temporary folder.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("the temporary folder can be written");
        path
    }

    /// The product, with a state folder of this test's own.
    pub fn cli(&self) -> Cli {
        Cli::new(self.path("state"))
    }

    /// Runs a tool of the desktop (`xdotool`, `xprop`, …) and gives its output; panics when it fails.
    #[track_caller]
    pub fn tool(&self, program: &str, args: &[&str]) -> String {
        self.try_tool(program, args).unwrap_or_else(|said| panic!("{program} {args:?}: {said}"))
    }

    /// The same, with the tool's complaint as the error.
    pub fn try_tool(&self, program: &str, args: &[&str]) -> Result<String, String> {
        let output =
            Command::new(program).args(args).stdin(Stdio::null()).output().map_err(|error| {
                format!("cannot be started: {error} (scripts/install.sh test installs it)")
            })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// The windows that the window manager lists, oldest first.
    pub fn windows(&self) -> Vec<Window> {
        let Ok(list) = self.try_tool("wmctrl", &["-lp"]) else { return Vec::new() };
        list.lines().filter_map(Window::parse).collect()
    }

    /// The first window whose title contains `part`.
    pub fn window(&self, part: &str) -> Option<Window> {
        self.windows().into_iter().find(|window| window.title.contains(part))
    }

    /// Waits for a window whose title contains `part`.
    #[track_caller]
    pub fn wait_window(&self, part: &str) -> Window {
        crate::wait_for(&format!("a window titled {part:?}"), Duration::from_secs(20), || self.window(part))
    }

    /// The window with the focus, by the window manager's word.
    pub fn active_window(&self) -> Option<u32> {
        let said = self.try_tool("xprop", &["-root", "_NET_ACTIVE_WINDOW"]).ok()?;
        // xfwm4 writes a second number behind it.
        let id = said.split_once("0x")?.1.split(',').next()?;
        u32::from_str_radix(id.trim(), 16).ok().filter(|id| *id != 0)
    }

    /// The client area of a window on the screen, without the window manager's frame.
    #[track_caller]
    pub fn area(&self, window: u32) -> Area {
        let said = self.tool("xwininfo", &["-id", &window.to_string()]);
        let number = |label: &str| -> i32 {
            let line = said.lines().find_map(|line| line.trim().strip_prefix(label));
            line.and_then(|rest| rest.trim().parse().ok()).unwrap_or_else(|| panic!("{label} in {said}"))
        };
        Area {
            x: number("Absolute upper-left X:"),
            y: number("Absolute upper-left Y:"),
            width: number("Width:"),
            height: number("Height:"),
        }
    }

    /// Moves a window so that its frame is at (x, y), and waits until it is there.
    #[track_caller]
    pub fn move_window(&self, window: u32, x: i32, y: i32) {
        let before = self.area(window);
        self.tool("wmctrl", &["-i", "-r", &format!("{window:#x}"), "-e", &format!("0,{x},{y},-1,-1")]);
        crate::wait_until("the window to move", Duration::from_secs(5), || {
            let now = self.area(window);
            (now.x, now.y) != (before.x, before.y) || ((now.x - x).abs() < 40 && (now.y - y).abs() < 40)
        });
    }

    /// Gives a window the focus, as a person would, and waits until it has it.
    #[track_caller]
    pub fn activate(&self, window: u32) {
        self.tool("wmctrl", &["-i", "-a", &format!("{window:#x}")]);
        crate::wait_until("the window to be active", Duration::from_secs(5), || {
            self.active_window() == Some(window)
        });
    }

    /// Where the pointer is.
    #[track_caller]
    pub fn pointer(&self) -> (i32, i32) {
        let said = self.tool("xdotool", &["getmouselocation", "--shell"]);
        let number =
            |label: &str| said.lines().find_map(|l| l.strip_prefix(label)?.parse().ok()).expect("a position");
        (number("X="), number("Y="))
    }

    /// A picture of the whole screen, as PNG.
    pub fn picture(&self, path: &Path) -> Result<(), String> {
        self.try_tool("import", &["-window", "root", &path.to_string_lossy()]).map(drop)
    }

    /// After a failure: the screen and all logs go to `target/PROFILE/failures/TEST`.
    fn keep_evidence(&self, test: &str) {
        let Some(profile) =
            std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.to_owned()))
        else {
            return;
        };
        let folder = profile.join("failures").join(test.replace("::", "-"));
        let _ = fs::remove_dir_all(&folder);
        if fs::create_dir_all(&folder).is_err() {
            return;
        }
        if let Err(error) = self.picture(&folder.join("screen.png")) {
            eprintln!("no picture of the screen: {error}");
        }
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|kind| kind == "log" || kind == "out") {
                let _ = fs::copy(&path, folder.join(entry.file_name()));
            }
        }
        eprintln!("screen and logs are kept in {}", folder.display());
    }
}

impl Window {
    /// A line of `wmctrl -lp`: id, workspace, pid, host, title.
    fn parse(line: &str) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            rest = rest.trim_start();
            let end = rest.find(' ').unwrap_or(rest.len());
            let (word, tail) = rest.split_at(end);
            rest = tail;
            word.to_owned()
        };
        let (id, _workspace, pid, _host) = (word(), word(), word(), word());
        Some(Self {
            id: u32::from_str_radix(id.strip_prefix("0x")?, 16).ok()?,
            pid: pid.parse().ok()?,
            title: rest.strip_prefix(' ').unwrap_or(rest).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_window_list() {
        let window = Window::parse("0x00400007  0 74     vm note.txt (~/x y) - gedit").expect("a window");
        assert_eq!(window, Window { id: 0x40_0007, pid: 74, title: "note.txt (~/x y) - gedit".into() });
    }

    #[test]
    fn a_window_without_title() {
        assert_eq!(Window::parse("0x00400007  0 0      vm ").expect("a window").title, "");
    }
}
