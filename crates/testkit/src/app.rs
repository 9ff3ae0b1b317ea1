//! Applications under test: start, wait until they can be operated, watch, end.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::desktop::{Desktop, Window, qt_python};
use crate::{fixture, look, wait_for, wait_until};

/// How long an application may take until it can be operated.
const START: Duration = Duration::from_secs(40);
/// How long an application may take to answer something small.
const SOON: Duration = Duration::from_secs(5);
/// Address space for `LibreOffice`: a reader that walks into a sheet makes it grow without end.
const OFFICE_LIMIT: u64 = 6 << 30;

/// How an application is started.
#[derive(Debug)]
pub struct Launch<'a> {
    desktop: &'a Desktop,
    name: String,
    command: Vec<String>,
    env: Vec<(String, String)>,
    memory: Option<u64>,
    log: Option<PathBuf>,
    control: Option<PathBuf>,
}

impl<'a> Launch<'a> {
    /// `name` is the one on the accessibility bus, case-insensitive.
    pub fn new<S: Into<String>>(
        desktop: &'a Desktop,
        name: &str,
        command: impl IntoIterator<Item = S>,
    ) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        Self { desktop, name: name.into(), command, env: Vec::new(), memory: None, log: None, control: None }
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Limits the address space, in bytes.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Starts it and does not wait.
    #[track_caller]
    pub fn spawn(self) -> App {
        let output = self.desktop.path(&format!("{}-{}.out", self.name, unique()));
        let file = File::create(&output).expect("the temporary folder can be written");
        let mut words = self.command.iter();
        let mut command = if let Some(bytes) = self.memory {
            let mut command = Command::new("prlimit");
            command.args([format!("--as={bytes}"), "--".into()]);
            command
        } else {
            Command::new(words.next().expect("a program"))
        };
        command.args(words).envs(self.env.iter().map(|(k, v)| (k, v)));
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("a second handle")).stderr(file);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("{:?} cannot be started: {error} (scripts/install.sh test installs it)", self.command)
        });
        App { name: self.name, child, output, log: self.log, control: self.control, code: None }
    }

    /// Starts it and waits until it has a window on the accessibility bus.
    #[track_caller]
    pub fn start(self) -> App {
        let mut app = self.spawn();
        app.wait_registered(START);
        app
    }
}

fn unique() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A running application. Dropping it ends its process group, and nothing else.
#[derive(Debug)]
pub struct App {
    name: String,
    child: Child,
    output: PathBuf,
    log: Option<PathBuf>,
    control: Option<PathBuf>,
    code: Option<i32>,
}

impl App {
    /// Its name on the accessibility bus.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process that was started; a browser's or an office's window may belong to a child of it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether a process of it is still there.
    pub fn is_running(&mut self) -> bool {
        self.exit_code().is_none()
    }

    /// The exit code when it has ended; 128 + number when a signal ended it.
    pub fn exit_code(&mut self) -> Option<i32> {
        if self.code.is_none()
            && let Some(status) = self.child.try_wait().expect("the process is ours")
        {
            use std::os::unix::process::ExitStatusExt;
            self.code = status.code().or_else(|| status.signal().map(|number| 128 + number));
        }
        self.code
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait_exit(&mut self, limit: Duration) -> i32 {
        let what = format!("the end of {}", self.name);
        wait_for(&what, limit, || self.exit_code())
    }

    /// Stops all its processes (SIGSTOP): it answers nothing from now on.
    pub fn stop(&self) {
        kill_process_group(self.group(), Signal::STOP).expect("the application is there");
    }

    /// Lets it go on (SIGCONT).
    pub fn cont(&self) {
        kill_process_group(self.group(), Signal::CONT).expect("the application is there");
    }

    /// Ends it by force and waits until it is gone.
    pub fn kill(&mut self) {
        // Ended like this it cannot remove its sockets in the common temporary folder.
        for path in
            self.sockets().into_iter().filter(|path| path.to_string_lossy().starts_with("/tmp/OSL_PIPE_"))
        {
            let _ = fs::remove_file(path);
        }
        let _ = kill_process_group(self.group(), Signal::KILL);
        if self.code.is_none() {
            let _ = self.child.wait();
        }
    }

    /// What it wrote to its output, for messages.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// The fixture's log: one line for each thing that happened inside.
    pub fn log(&self) -> String {
        let path = self.log.as_ref().expect("only fixtures have a log");
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
    }

    /// The log's lines.
    pub fn log_lines(&self) -> Vec<String> {
        self.log().lines().map(str::to_owned).collect()
    }

    /// What happened since the start, without focus, pointer entry and opening menus: what a command has caused.
    pub fn effects(&self) -> Vec<String> {
        let noise = ["window focused", "focus ", "pointer entered", "done ", "menu shown"];
        let lines = self.log_lines().into_iter().skip_while(|line| !line.starts_with("ready ")).skip(1);
        lines.filter(|line| !noise.iter().any(|start| line.starts_with(start))).collect()
    }

    /// Whether the log has this line.
    pub fn logged(&self, line: &str) -> bool {
        self.log().lines().any(|found| found == line)
    }

    /// Waits for a line of the log.
    #[track_caller]
    pub fn wait_log(&self, line: &str) {
        let start = Instant::now();
        while !self.logged(line) {
            let log = self.log();
            assert!(start.elapsed() < SOON, "{}: no line {line:?} in its log:\n{log}", self.name);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a command to the fixture and does not wait (`hang 3`, `crash`).
    #[track_caller]
    pub fn send(&self, command: &str) {
        let path = self.control.as_ref().expect("only fixtures take commands");
        let mut pipe = File::options().write(true).open(path).expect("the control pipe is there");
        writeln!(pipe, "{command}").expect("the control pipe is read");
    }

    /// Sends a command to the fixture and waits until it was carried out (`rename Save Store`).
    #[track_caller]
    pub fn command(&self, command: &str) {
        let (done, failed) = (format!("done {command}"), format!("failed {command}"));
        let count = |log: &str| log.lines().filter(|line| *line == done || line.starts_with(&failed)).count();
        let before = count(&self.log());
        self.send(command);
        wait_until(&format!("{}: {command}", self.name), SOON, || count(&self.log()) > before);
        let log = self.log();
        assert!(!log.lines().any(|line| line.starts_with(&failed)), "{}: {log}", self.name);
    }

    /// Its windows, by process group.
    pub fn windows(&self, desktop: &Desktop) -> Vec<Window> {
        let ours = |pid: u32| pid != 0 && process_group(pid) == Some(self.pid());
        desktop.windows().into_iter().filter(|window| ours(window.pid)).collect()
    }

    /// Its first window.
    #[track_caller]
    pub fn window(&self, desktop: &Desktop) -> Window {
        wait_for(&format!("a window of {}", self.name), SOON, || self.windows(desktop).into_iter().next())
    }

    /// The title of its first window.
    #[track_caller]
    pub fn title(&self, desktop: &Desktop) -> String {
        self.window(desktop).title
    }

    /// Waits until the title of one of its windows contains `part`.
    #[track_caller]
    pub fn wait_title(&self, desktop: &Desktop, part: &str) -> String {
        let what = format!("a title of {} with {part:?}", self.name);
        wait_for(&what, SOON, || {
            self.windows(desktop).into_iter().map(|w| w.title).find(|title| title.contains(part))
        })
    }

    /// The most memory that its processes ever had, in bytes (resident, summed).
    pub fn memory(&self) -> u64 {
        processes().filter(|pid| process_group(*pid) == Some(self.pid())).filter_map(peak_memory).sum()
    }

    /// Paths of the sockets that its processes hold.
    fn sockets(&self) -> Vec<PathBuf> {
        let members = processes().filter(|pid| process_group(*pid) == Some(self.pid()));
        let links =
            members.flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
        let held: Vec<String> = links
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .filter_map(|link| {
                Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
            })
            .collect();
        // Columns: address, count, protocol, flags, type, state, inode, path.
        let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let bound = table.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(6);
            Some((words.next()?, words.next()?))
        });
        bound
            .filter(|(inode, _)| held.iter().any(|ours| ours == inode))
            .map(|(_, path)| path.into())
            .collect()
    }

    /// Waits until the accessibility bus lists it with a window.
    #[track_caller]
    fn wait_registered(&mut self, limit: Duration) {
        if !self.try_registered(limit) {
            let ended = self.exit_code().map_or_else(String::new, |code| format!(" (it ended with {code})"));
            panic!(
                "{} has no window on the accessibility bus{ended}; it said:\n{}",
                self.name,
                self.output()
            );
        }
    }

    fn try_registered(&mut self, limit: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < limit && self.exit_code().is_none() {
            let left = limit.saturating_sub(start.elapsed()).min(Duration::from_secs(2));
            if look::wait_app(&self.name, self.pid(), left) {
                return true;
            }
        }
        false
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.kill();
    }
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// Fields of `/proc/PID/stat` behind the name: state, parent, process group, …
fn process_group(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

fn peak_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    kilobytes.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|n| n * 1024)
}

/// The launchers.
impl Desktop {
    #[track_caller]
    fn fixture_app(&self, python: &Path, script: &str, name: &str, args: &[&str]) -> App {
        let number = unique();
        let (log, control) =
            (self.path(&format!("{name}-{number}.log")), self.path(&format!("{name}-{number}.pipe")));
        self.tool("mkfifo", &[&control.to_string_lossy()]);
        let mut command =
            vec![python.to_string_lossy().into_owned(), fixture(script).to_string_lossy().into_owned()];
        command.extend(["--log".into(), log.to_string_lossy().into_owned()]);
        command.extend(["--control".into(), control.to_string_lossy().into_owned()]);
        command.extend(args.iter().map(ToString::to_string));
        let mut launch =
            Launch::new(self, name, command).env("GSK_RENDERER", "cairo").env("PYTHONDONTWRITEBYTECODE", "1");
        launch.log = Some(log);
        launch.control = Some(control);
        let mut app = launch.spawn();
        let start = Instant::now();
        while !app.log().lines().any(|line| line.starts_with("ready ")) {
            let ended = app.exit_code();
            let late = ended.is_some() || start.elapsed() > START;
            assert!(!late, "{name} did not start (exit code {ended:?}); it said:\n{}", app.output());
            std::thread::sleep(Duration::from_millis(20));
        }
        app.wait_registered(SOON);
        app
    }

    /// The GTK 3 fixture; pages: `controls`, `texts`, `lists`, `dialogs`, `scroll`.
    #[track_caller]
    pub fn gtk3(&self, page: &str) -> App {
        self.gtk3_with(&["--page", page])
    }

    /// The GTK 3 fixture with other arguments (`--title`, `--name`, `--size`).
    #[track_caller]
    pub fn gtk3_with(&self, args: &[&str]) -> App {
        self.fixture_app(
            Path::new("/usr/bin/python3"),
            "gtk3.py",
            option(args, "--name", "fixture-gtk3"),
            args,
        )
    }

    /// The GTK 4 fixture.
    #[track_caller]
    pub fn gtk4(&self, page: &str) -> App {
        self.gtk4_with(&["--page", page])
    }

    /// The GTK 4 fixture with other arguments.
    #[track_caller]
    pub fn gtk4_with(&self, args: &[&str]) -> App {
        self.fixture_app(
            Path::new("/usr/bin/python3"),
            "gtk4.py",
            option(args, "--name", "fixture-gtk4"),
            args,
        )
    }

    /// The Qt 6 fixture.
    #[track_caller]
    pub fn qt6(&self, page: &str) -> App {
        self.qt6_with(&["--page", page])
    }

    /// The Qt 6 fixture with other arguments.
    #[track_caller]
    pub fn qt6_with(&self, args: &[&str]) -> App {
        self.fixture_app(&qt_python(), "qt6.py", option(args, "--name", "fixture-qt6"), args)
    }

    /// The fixture that answers as no toolkit does; pages: see `odd.py`.
    #[track_caller]
    pub fn odd(&self, page: &str, toolkit: &str) -> App {
        let args = ["--page", page, "--toolkit", toolkit];
        self.fixture_app(Path::new("/usr/bin/python3"), "odd.py", "fixture-odd", &args)
    }

    /// An installed application, by its command and its name on the bus.
    #[track_caller]
    pub fn start(&self, name: &str, command: &[&str]) -> App {
        Launch::new(self, name, command.iter().copied()).start()
    }

    /// gnome-calculator (GTK 4).
    #[track_caller]
    pub fn calculator(&self) -> App {
        Launch::new(self, "gnome-calculator", ["gnome-calculator"]).env("GSK_RENDERER", "cairo").start()
    }

    /// gedit (GTK 3) with a file, in a process of its own.
    #[track_caller]
    pub fn gedit(&self, file: &Path) -> App {
        Launch::new(
            self,
            "gedit",
            ["gedit".into(), "--standalone".into(), file.to_string_lossy().into_owned()],
        )
        .start()
    }

    /// The widget gallery of GTK 3.
    #[track_caller]
    pub fn gtk3_widget_factory(&self) -> App {
        self.start("gtk3-widget-factory", &["gtk3-widget-factory"])
    }

    /// The widget gallery of GTK 4.
    #[track_caller]
    pub fn gtk4_widget_factory(&self) -> App {
        Launch::new(self, "gtk4-widget-factory", ["gtk4-widget-factory"]).env("GSK_RENDERER", "cairo").start()
    }

    /// kcalc (Qt 5). Now and then it connects to the bus and never registers; another start does.
    #[track_caller]
    pub fn kcalc(&self) -> App {
        for _ in 0..8 {
            let mut app = Launch::new(self, "kcalc", ["kcalc"]).spawn();
            if app.try_registered(Duration::from_secs(4)) {
                return app;
            }
        }
        panic!("kcalc did not register on the accessibility bus in eight starts");
    }

    /// Chromium with a page, without network, with its tree switched on.
    #[track_caller]
    pub fn chromium(&self, page: &Path) -> App {
        let profile = format!("--user-data-dir={}", self.path(&format!("chromium-{}", unique())).display());
        let url = format!("file://{}", page.display());
        let flags = [
            "chromium",
            "--no-sandbox",
            "--force-renderer-accessibility",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-background-networking",
            "--disable-sync",
            "--disable-component-update",
            "--disable-extensions",
            "--disable-gpu",
            "--proxy-server=127.0.0.1:9",
            "--password-store=basic",
        ];
        let command = flags.into_iter().chain([profile.as_str(), url.as_str()]);
        let app = Launch::new(self, "Chromium", command).start();
        wait_page(&app, page);
        app
    }

    /// Firefox ESR with a page, without network.
    #[track_caller]
    pub fn firefox(&self, page: &Path) -> App {
        let profile = self.path(&format!("firefox-{}", unique()));
        fs::create_dir_all(&profile).expect("the temporary folder can be written");
        fs::copy(fixture("firefox.js"), profile.join("user.js")).expect("the preferences are there");
        let url = format!("file://{}", page.display());
        let command =
            ["firefox-esr", "--no-remote", "--profile", &profile.to_string_lossy(), &url].map(str::to_owned);
        let app = Launch::new(self, "Firefox", command).env("GNOME_ACCESSIBILITY", "1").start();
        wait_page(&app, page);
        app
    }

    /// `LibreOffice` Writer with a document, under a memory limit.
    #[track_caller]
    pub fn writer(&self, document: &Path) -> App {
        self.office("--writer", document)
    }

    /// `LibreOffice` Calc with a sheet, under a memory limit.
    #[track_caller]
    pub fn calc(&self, sheet: &Path) -> App {
        self.office("--calc", sheet)
    }

    #[track_caller]
    fn office(&self, kind: &str, document: &Path) -> App {
        let profile =
            format!("-env:UserInstallation=file://{}", self.path(&format!("office-{}", unique())).display());
        let path = document.to_string_lossy().into_owned();
        let command = [
            "soffice",
            "--norestore",
            "--nologo",
            "--nolockcheck",
            "--nofirststartwizard",
            &profile,
            kind,
            &path,
        ];
        let app = Launch::new(self, "soffice", command)
            .env("SAL_USE_VCLPLUGIN", "gtk3")
            .memory(OFFICE_LIMIT)
            .start();
        let name = document.file_name().expect("a file").to_string_lossy().into_owned();
        wait_until(&format!("the window of {name}"), START, || self.window(&name).is_some());
        app
    }
}

fn option<'a>(args: &[&'a str], name: &str, default: &'a str) -> &'a str {
    args.iter().position(|arg| *arg == name).and_then(|at| args.get(at + 1)).copied().unwrap_or(default)
}

/// Waits until the page's tree is there: its heading has been read by somebody else.
#[track_caller]
fn wait_page(app: &App, page: &Path) {
    let html = fs::read_to_string(page).expect("the page is there");
    let heading = html
        .split_once("<h1>")
        .and_then(|(_, rest)| rest.split_once("</h1>"))
        .map(|(text, _)| text.to_owned());
    let heading = heading.expect("a test page has a heading");
    wait_until(&format!("the page {heading:?} in {}", app.name), START, || {
        !look::find(app.name(), Some("83"), Some(&heading)).is_empty()
    });
}
