//! Starting programs so that they live on without us.
//!
//! Decided here: how a program is started (own process group, nothing on its standard streams, none of our file
//! descriptors, no zombie) and what went wrong if it was not. Not decided: whether it may be started, whether one
//! that runs already will do, and when it counts as ready.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::desktop_entry::{DesktopEntry, EntryError, find_program, is_executable};
use crate::process::process_instance;

/// Variables of ours that would mislead the program: they belong to our own start.
const NOT_INHERITED: [&str; 4] = [
    "DESKTOP_STARTUP_ID",
    "XDG_ACTIVATION_TOKEN",
    "GIO_LAUNCHED_DESKTOP_FILE",
    "GIO_LAUNCHED_DESKTOP_FILE_PID",
];

/// Terminals to put around a command that wants one, with what comes before the command. The first found is taken.
const TERMINALS: [(&str, &[&str]); 8] = [
    ("xdg-terminal-exec", &[]),
    ("x-terminal-emulator", &["-e"]),
    ("gnome-terminal", &["--wait", "--"]),
    ("konsole", &["-e"]),
    ("xfce4-terminal", &["-x"]),
    ("foot", &[]),
    ("alacritty", &["-e"]),
    ("xterm", &["-e"]),
];

/// Why a program was not started. Nothing runs then.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no such program.
    NotFound {
        /// The name or path asked for.
        program: OsString,
    },
    /// There is a file, but it cannot be executed.
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// Why, as the operating system says.
        cause: String,
    },
    /// The working directory does not exist or may not be entered.
    BadWorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// An argument or a variable holds a NUL, or a variable's name is not one. The values are not shown.
    InvalidArgument {
        /// Which one.
        what: String,
    },
    /// The entry describes no command that can be started.
    Entry(EntryError),
    /// The command wants a terminal and none is installed.
    NoTerminal,
    /// The operating system could not start it: out of processes or memory.
    Spawn {
        /// The file.
        path: PathBuf,
        /// What it said.
        cause: io::Error,
    },
}

impl fmt::Display for LaunchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { program } => write!(formatter, "no program {}", program.display()),
            Self::NotExecutable { path, cause } => {
                write!(formatter, "{} cannot be executed: {cause}", path.display())
            }
            Self::BadWorkingDirectory { path, cause } => {
                write!(formatter, "working directory {}: {cause}", path.display())
            }
            Self::InvalidArgument { what } => write!(formatter, "{what} cannot be passed to a program"),
            Self::Entry(error) => error.fmt(formatter),
            Self::NoTerminal => write!(formatter, "the command wants a terminal and none was found"),
            Self::Spawn { path, cause } => write!(formatter, "{} was not started: {cause}", path.display()),
        }
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Entry(error) => Some(error),
            Self::Spawn { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// What to start.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct LaunchRequest {
    /// A bare name to be found in `PATH`, or an absolute path.
    pub program: OsString,
    /// Its arguments, without its own name.
    pub arguments: Vec<OsString>,
    /// Variables to add to ours or to replace there.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it begins; `None`: the user's home, as desktops do, or ours if that is unknown.
    pub working_directory: Option<PathBuf>,
}

impl fmt::Debug for LaunchRequest {
    /// Shows the names of variables only: values may be secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LaunchRequest")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("environment", &self.environment.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("working_directory", &self.working_directory)
            .finish()
    }
}

impl LaunchRequest {
    /// What a desktop entry says, with further arguments at the end. A command that wants a terminal gets one.
    ///
    /// # Errors
    /// `Entry`, `NoTerminal`, `NotFound` when `TryExec` says that it is not installed.
    pub fn from_entry(entry: &DesktopEntry, arguments: &[OsString]) -> Result<Self, LaunchError> {
        if !entry.is_installed() {
            let program = entry.probe.clone().unwrap_or_default().into();
            return Err(LaunchError::NotFound { program });
        }
        let mut command: Vec<OsString> =
            entry.arguments(&[]).map_err(LaunchError::Entry)?.into_iter().map(OsString::from).collect();
        command.extend(arguments.iter().cloned());
        if entry.needs_terminal {
            let (terminal, before) = TERMINALS
                .iter()
                .find(|(terminal, _)| find_program(terminal).is_some())
                .ok_or(LaunchError::NoTerminal)?;
            let words = std::iter::once(terminal).chain(before.iter()).map(OsString::from);
            command = words.chain(command).collect();
        }
        let program = command.remove(0);
        let working_directory = entry.working_directory.clone();
        Ok(Self { program, arguments: command, environment: Vec::new(), working_directory })
    }
}

/// A program that was started.
#[derive(Debug)]
pub struct Launched {
    /// Its process.
    pub pid: u32,
    /// Its instance, see [`process_instance`].
    pub instance: String,
    exit: Receiver<ExitStatus>,
    status: Option<ExitStatus>,
}

impl Launched {
    /// How it ended, if it has. Never blocks.
    ///
    /// An end with success in the first moments mostly means that it handed over to an instance that runs already.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.exit.try_recv().ok();
        }
        self.status
    }

    /// Waits for its end, up to `until`. `None`: it still runs.
    pub fn wait_for_exit(&mut self, until: Instant) -> Option<ExitStatus> {
        if self.exit_status().is_none() {
            let left = until.saturating_duration_since(Instant::now());
            self.status = self.exit.recv_timeout(left).ok();
        }
        self.status
    }
}

/// Starts a program detached from us, and returns at once; whether it goes on is for
/// [`Launched::wait_for_exit`] and for its windows to show.
///
/// It gets its own process group, so that a Ctrl+C for us does not reach it, and /dev/null for its standard streams. A thread
/// of ours waits for its end so that it leaves no zombie; when we end first, the system's init takes it over. All our
/// other descriptors, inherited ones included, are marked to close on exec, for good.
///
/// # Errors
/// See [`LaunchError`]; nothing runs then.
pub fn launch(request: &LaunchRequest) -> Result<Launched, LaunchError> {
    let path = resolve(&request.program)?;
    check_strings(request)?;
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|home| enterable(home).is_ok());
    let directory = match &request.working_directory {
        Some(directory) => {
            enterable(directory).map_err(|cause| LaunchError::BadWorkingDirectory {
                path: directory.clone(),
                cause: cause.to_string(),
            })?;
            Some(directory.clone())
        }
        None => home(),
    };
    let mut command = Command::new(&path);
    // Programs look at their name: busybox, and wrappers in PATH that find themselves by it.
    command.arg0(&request.program);
    command.args(&request.arguments);
    for name in NOT_INHERITED {
        command.env_remove(name);
    }
    command.envs(request.environment.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    // Rust's own descriptors close on exec, but those that our parent gave us (a shell's pipes, a build tool's job
    // server) would go on into the program, and whoever waits for the other end of such a pipe would wait as long as
    // the program runs.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|cause| spawn_error(path, cause))?;
    let pid = child.id();
    // Until somebody waits for it the pid cannot be reused, not even after a quick end.
    let instance = process_instance(pid).unwrap_or_default();
    let (sender, exit) = channel();
    let reaper = thread::Builder::new().name(format!("wait-{pid}")).stack_size(64 * 1024);
    // Without a thread it becomes a zombie when it ends, which is no reason to call the start failed.
    let _ = reaper.spawn(move || {
        crate::signals::leave_to_others();
        if let Ok(status) = child.wait() {
            let _ = sender.send(status);
        }
    });
    Ok(Launched { pid, instance, exit, status: None })
}

/// How long a caller should watch for an early end before it believes in the start.
pub const EARLY_EXIT: Duration = Duration::from_millis(200);

fn resolve(program: &OsStr) -> Result<PathBuf, LaunchError> {
    let not_found = || LaunchError::NotFound { program: program.to_owned() };
    if !program.as_bytes().contains(&b'/') {
        return program.to_str().and_then(find_program).ok_or_else(not_found);
    }
    let path = PathBuf::from(program);
    // Relative to what? Ours is not the caller's directory in a daemon.
    if !path.is_absolute() || !path.exists() {
        return Err(not_found());
    }
    if is_executable(&path) {
        return Ok(path);
    }
    let cause = if path.is_dir() { "it is a directory" } else { "permission denied" };
    Err(LaunchError::NotExecutable { path, cause: cause.to_owned() })
}

fn check_strings(request: &LaunchRequest) -> Result<(), LaunchError> {
    let has_nul = |text: &OsStr| text.as_bytes().contains(&0);
    if let Some(index) = request.arguments.iter().position(|argument| has_nul(argument)) {
        return Err(LaunchError::InvalidArgument { what: format!("argument {index} with a NUL") });
    }
    for (index, (name, value)) in request.environment.iter().enumerate() {
        if name.is_empty() || has_nul(name) || has_nul(value) || name.as_bytes().contains(&b'=') {
            return Err(LaunchError::InvalidArgument { what: format!("environment variable {index}") });
        }
    }
    Ok(())
}

fn enterable(directory: &Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(rustix::fs::access(directory, rustix::fs::Access::EXEC_OK)?)
}

fn spawn_error(path: PathBuf, cause: io::Error) -> LaunchError {
    match cause.kind() {
        // The file was there a moment ago, so what is missing is what runs it.
        io::ErrorKind::NotFound => {
            LaunchError::NotExecutable { path, cause: "its interpreter is missing".to_owned() }
        }
        io::ErrorKind::PermissionDenied => LaunchError::NotExecutable { path, cause: cause.to_string() },
        _ if cause.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            LaunchError::NotExecutable { path, cause: cause.to_string() }
        }
        _ => LaunchError::Spawn { path, cause },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::process::{self, ProcessState};

    fn request(program: &str, arguments: &[&str]) -> LaunchRequest {
        LaunchRequest {
            program: program.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            ..Default::default()
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("agent-desktop-launch-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn the_program_has_nothing_of_ours() {
        let folder = scratch("clean");
        // A descriptor of ours that is open while the child starts.
        let _ours = fs::File::create(folder.join("open")).unwrap();
        let script = "ls /proc/self/fd | wc -l > fds; ps -o pgid= -p $$ | tr -d ' ' > group; echo $$ > pid; \
                      s=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2); echo \"$s\" > streams; echo \"$A_KEY $1\" > given";
        let mut what = request("sh", &["-c", script, "sh", "an argument"]);
        what.environment = vec![("A_KEY".into(), "a value".into())];
        what.working_directory = Some(folder.clone());
        let mut launched = launch(&what).unwrap();
        assert!(launched.wait_for_exit(soon()).unwrap().success());
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        // 0 to 2, and the folder that ls itself has open.
        assert_eq!(read("fds").trim(), "4");
        assert_eq!(read("pid").trim(), launched.pid.to_string());
        assert_eq!(read("group"), read("pid"));
        assert_eq!(read("streams"), "/dev/null\n".repeat(3));
        assert_eq!(read("given").trim(), "a value an argument");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_early_end_is_seen_and_leaves_no_zombie() {
        let mut launched = launch(&request("sh", &["-c", "exit 7"])).unwrap();
        assert_eq!(launched.wait_for_exit(soon()).unwrap().code(), Some(7));
        assert_eq!(launched.exit_status().unwrap().code(), Some(7));
        assert_eq!(process::state(launched.pid, &launched.instance), ProcessState::Gone);
    }

    #[test]
    fn a_program_that_goes_on_has_no_status() {
        let mut launched = launch(&request("sleep", &["60"])).unwrap();
        assert_eq!(launched.wait_for_exit(Instant::now() + Duration::from_millis(50)), None);
        assert_eq!(process::state(launched.pid, &launched.instance), ProcessState::Running);
        process::kill(launched.pid, &launched.instance).unwrap();
        assert!(!launched.wait_for_exit(soon()).unwrap().success());
    }

    #[test]
    fn each_failure_has_its_name() {
        let folder = scratch("failures");
        let file = |name: &str, text: &str, mode| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let error = |what: LaunchRequest| launch(&what).unwrap_err();
        assert!(matches!(error(request("no-such-program-here", &[])), LaunchError::NotFound { .. }));
        assert!(matches!(error(request("/no/such", &[])), LaunchError::NotFound { .. }));
        assert!(matches!(error(request("./sh", &[])), LaunchError::NotFound { .. }));
        assert!(matches!(error(request("", &[])), LaunchError::NotFound { .. }));
        let plain = file("plain", "#!/bin/sh\n", 0o644);
        assert!(matches!(error(request(&plain, &[])), LaunchError::NotExecutable { .. }));
        assert!(matches!(error(request("/tmp", &[])), LaunchError::NotExecutable { .. }));
        let orphan = file("orphan", "#!/no/interpreter\n", 0o755);
        assert!(error(request(&orphan, &[])).to_string().contains("interpreter"));
        let garbage = file("garbage", "\u{1}\u{2}", 0o755);
        assert!(matches!(error(request(&garbage, &[])), LaunchError::NotExecutable { .. }));
        let nowhere = LaunchRequest { working_directory: Some("/no/folder".into()), ..request("true", &[]) };
        assert!(matches!(error(nowhere), LaunchError::BadWorkingDirectory { .. }));
        let file_as_folder = LaunchRequest { working_directory: Some(plain.into()), ..request("true", &[]) };
        assert!(matches!(error(file_as_folder), LaunchError::BadWorkingDirectory { .. }));
        assert!(matches!(error(request("true", &["a\0b"])), LaunchError::InvalidArgument { .. }));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn values_of_variables_are_never_shown() {
        let mut what = request("true", &[]);
        what.environment = vec![("TOKEN".into(), "secret".into())];
        let shown = format!("{what:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("secret"));
        what.environment = vec![("A=B".into(), "secret".into())];
        assert!(!launch(&what).unwrap_err().to_string().contains("secret"));
    }

    #[test]
    fn an_entry_becomes_a_request() {
        let text = "[Desktop Entry]\nType=Application\nName=N\nExec=sh -c \"exit 0\" %U\nPath=/tmp\n";
        let entry = DesktopEntry::parse(text, "n", Path::new("/n.desktop"), "").unwrap();
        let what = LaunchRequest::from_entry(&entry, &["more".into()]).unwrap();
        assert_eq!(what.program, "sh");
        assert_eq!(what.arguments, ["-c", "exit 0", "more"]);
        assert_eq!(what.working_directory, Some("/tmp".into()));
        let missing = DesktopEntry { probe: Some("no-such-program-here".to_owned()), ..entry };
        assert!(matches!(LaunchRequest::from_entry(&missing, &[]), Err(LaunchError::NotFound { .. })));
    }
}
