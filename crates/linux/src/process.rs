//! Processes: which one a pid means, what state it is in, and ending it.
//!
//! A pid is a number that gets reused, so everything that acts takes the process instance as well: a token from the
//! machine's boot, the pid and the moment the process began. Signals go through a pidfd that was opened before the
//! instance was checked, so a reused pid is never hit. What belongs to whom (protected names, policy) is not decided
//! here.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// First part of every instance token; changes when the meaning of the rest does.
const PREFIX: &str = "linux-v1";

/// What can go wrong with a process.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProcessError {
    /// There is no process with this pid (in our pid namespace).
    Gone {
        /// The pid.
        pid: u32,
    },
    /// The pid belongs to another process than the instance says.
    Replaced {
        /// The pid.
        pid: u32,
    },
    /// We may not look at it or signal it.
    Denied {
        /// The pid.
        pid: u32,
    },
    /// The kernel said something unexpected.
    Other {
        /// The pid.
        pid: u32,
        /// What it said.
        cause: io::Error,
    },
}

impl fmt::Display for ProcessError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { pid } => write!(formatter, "no process with pid {pid}"),
            Self::Replaced { pid } => write!(formatter, "pid {pid} belongs to another process by now"),
            Self::Denied { pid } => write!(formatter, "no permission for process {pid}"),
            Self::Other { pid, cause } => write!(formatter, "process {pid}: {cause}"),
        }
    }
}

impl std::error::Error for ProcessError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

impl ProcessError {
    fn new(pid: u32, error: impl Into<io::Error>) -> Self {
        let cause = error.into();
        // ESRCH is what /proc answers when a process ends between open and read.
        let is_gone = cause.kind() == io::ErrorKind::NotFound
            || cause.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
        match cause.kind() {
            _ if is_gone => Self::Gone { pid },
            io::ErrorKind::PermissionDenied => Self::Denied { pid },
            _ => Self::Other { pid, cause },
        }
    }
}

type Result<T> = std::result::Result<T, ProcessError>;

/// What became of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessState {
    /// It runs or waits.
    Running,
    /// It was stopped (SIGSTOP, a terminal's Ctrl+Z, a debugger) and answers nothing.
    Stopped,
    /// It has ended and only waits for its parent to notice.
    Exited,
    /// Nothing has this pid.
    Gone,
    /// The pid belongs to another process by now.
    Replaced,
}

impl ProcessState {
    /// Whether the process still exists as something that could do work.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Running | Self::Stopped)
    }
}

/// What `/proc/<pid>/stat` says, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stat {
    name: String,
    state: char,
    parent: u32,
    /// Clock ticks since boot.
    start: u64,
}

impl Stat {
    /// The name stands in parentheses and may hold anything, parentheses and spaces included; the last `)` ends it.
    fn parse(line: &str) -> Option<Self> {
        let open = line.find('(')?;
        let close = line.rfind(')')?;
        let name = line.get(open + 1..close)?.to_owned();
        // From here on: field 3 (state), field 4 (parent), ... field 22 (start time).
        let mut fields = line.get(close + 1..)?.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Self { name, state, parent, start })
    }

    fn read(pid: u32) -> Result<Self> {
        // The name is bytes, not text.
        let bytes = fs::read(format!("/proc/{pid}/stat")).map_err(|error| ProcessError::new(pid, error))?;
        Self::parse(&String::from_utf8_lossy(&bytes)).ok_or_else(|| {
            ProcessError::new(pid, io::Error::new(io::ErrorKind::InvalidData, "unreadable /proc/<pid>/stat"))
        })
    }

    fn instance(&self, pid: u32) -> String {
        format!("{PREFIX}:{}:{pid}:{}", boot_id(), self.start)
    }

    fn process_state(&self) -> ProcessState {
        match self.state {
            'Z' | 'X' | 'x' => ProcessState::Exited,
            'T' | 't' => ProcessState::Stopped,
            _ => ProcessState::Running,
        }
    }
}

/// This boot of the machine; ticks since boot mean nothing without it.
fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        // Hidden in some sandboxes; tokens are then still told apart by pid and ticks.
        fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map_or_else(|_| "unknown".to_owned(), |text| text.trim().replace('-', ""))
    })
}

/// The token that tells this process from every other that has or will have its pid.
///
/// Opaque: compare for equality only. One small read.
///
/// # Errors
/// `Gone`, `Denied` (with `hidepid`), `Other`.
pub fn process_instance(pid: u32) -> Result<String> {
    Ok(Stat::read(pid)?.instance(pid))
}

/// What became of the process that `instance` names. One small read.
///
/// A process we may not look at counts as `Gone`.
pub fn state(pid: u32, instance: &str) -> ProcessState {
    match Stat::read(pid) {
        Ok(stat) if stat.instance(pid) == instance => stat.process_state(),
        Ok(_) => ProcessState::Replaced,
        Err(_) => ProcessState::Gone,
    }
}

/// The kernel's short name (at most 15 bytes), for example `gedit`.
///
/// # Errors
/// As [`process_instance`].
pub fn name(pid: u32) -> Result<String> {
    Ok(Stat::read(pid)?.name)
}

/// The process that started it, or took it over. 0: none within our pid namespace.
///
/// # Errors
/// As [`process_instance`].
pub fn parent(pid: u32) -> Result<u32> {
    Ok(Stat::read(pid)?.parent)
}

/// The program's file. Also right when the file was replaced meanwhile, as package updates do.
///
/// # Errors
/// `Gone`, `Denied` for other users' processes, `Other`.
pub fn executable(pid: u32) -> Result<PathBuf> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).map_err(|error| ProcessError::new(pid, error))?;
    let bytes = path.into_os_string().into_vec();
    let bytes = bytes.strip_suffix(b" (deleted)").map(<[u8]>::to_vec).unwrap_or(bytes);
    Ok(OsString::from_vec(bytes).into())
}

/// The arguments, the program's own name first. Empty for kernel threads and for ended processes.
///
/// # Errors
/// As [`process_instance`].
pub fn command_line(pid: u32) -> Result<Vec<OsString>> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).map_err(|error| ProcessError::new(pid, error))?;
    Ok(split_command_line(&bytes))
}

/// Each argument ends with NUL; programs that overwrite theirs (Chromium) may leave none, or many at the end.
fn split_command_line(bytes: &[u8]) -> Vec<OsString> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if end == 0 {
        return Vec::new();
    }
    bytes[..end].split(|byte| *byte == 0).map(|argument| OsString::from_vec(argument.to_vec())).collect()
}

/// All processes below `pid`, nearest first, without itself.
///
/// Reads every process's stat: a few milliseconds with hundreds of processes. Children whose parent has ended belong to
/// somebody else and are not found.
///
/// # Errors
/// `Other` when /proc cannot be read.
pub fn descendants(pid: u32) -> Result<Vec<u32>> {
    let entries = fs::read_dir("/proc").map_err(|error| ProcessError::new(pid, error))?;
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in entries.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Ok(stat) = Stat::read(process) {
            children.entry(stat.parent).or_default().push(process);
        }
    }
    Ok(walk_down(pid, &children))
}

fn walk_down(pid: u32, children: &HashMap<u32, Vec<u32>>) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut next = 0;
    let mut current = pid;
    loop {
        for child in children.get(&current).map(Vec::as_slice).unwrap_or_default() {
            // The table is no snapshot: a pid reused while it was read could make a circle.
            if *child != pid && !found.contains(child) {
                found.push(*child);
            }
        }
        let Some(process) = found.get(next) else { return found };
        current = *process;
        next += 1;
    }
}

/// Asks a process to end (SIGTERM); it may save first, or refuse.
///
/// A stopped process is continued first, or it could not hear. Poll [`state`] for the effect.
///
/// # Errors
/// `Gone` also when it has ended but its parent has not noticed, `Replaced`, `Denied`, `Other`. Nothing was sent then.
pub fn terminate(pid: u32, instance: &str) -> Result<()> {
    signal(pid, instance, &[Signal::TERM, Signal::CONT])
}

/// Ends a process at once (SIGKILL); unsaved work is lost. Poll [`state`] for the effect.
///
/// # Errors
/// As [`terminate`].
pub fn kill(pid: u32, instance: &str) -> Result<()> {
    signal(pid, instance, &[Signal::KILL])
}

fn signal(pid: u32, instance: &str, signals: &[Signal]) -> Result<()> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(ProcessError::Gone { pid })?;
    // First the handle, then the check: whatever the check sees, the handle cannot mean a later process.
    let handle = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(handle) => Some(handle),
        // Before Linux 5.3 and in some sandboxes there are none. The check then comes right before the signal,
        // and a pid would have to be reused within microseconds.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => None,
        Err(errno) => return Err(ProcessError::new(pid, errno)),
    };
    match state(pid, instance) {
        ProcessState::Running | ProcessState::Stopped => {}
        ProcessState::Exited | ProcessState::Gone => return Err(ProcessError::Gone { pid }),
        ProcessState::Replaced => return Err(ProcessError::Replaced { pid }),
    }
    for signal in signals {
        let sent = match &handle {
            Some(handle) => pidfd_send_signal(handle, *signal),
            None => rustix::process::kill_process(raw, *signal),
        };
        sent.map_err(|errno| ProcessError::new(pid, errno))?;
    }
    Ok(())
}

/// Whether a process started before the one with this token. What cannot be read did not.
pub(crate) fn started_before(pid: u32, instance: Option<&str>) -> bool {
    let ticks = |instance: &str| instance.rsplit(':').next()?.parse::<u64>().ok();
    match (Stat::read(pid), instance.and_then(ticks)) {
        (Ok(stat), Some(other)) => stat.start < other,
        _ => false,
    }
}

/// Whether a process was started with this variable in its environment, and this value, if one is given.
pub(crate) fn has_variable(pid: u32, name: &str, value: Option<&str>) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| {
        let rest = entry.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        rest.is_some_and(|rest| value.is_none_or(|value| rest == value.as_bytes()))
    })
}

/// The value of a variable that a process was started with.
pub(crate) fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// What is known about the application a process belongs to, best source first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApplicationHints {
    /// The id in Flatpak's own file inside the sandbox, for example `org.gnome.Maps`.
    pub flatpak: Option<String>,
    /// The Snap's name, for example `firefox`.
    pub snap: Option<String>,
    /// The id in the name of its systemd unit (`app-gnome-org.gnome.gedit-4242.scope`), set by the desktop.
    pub unit: Option<String>,
    /// The desktop file it was started from, when the starter said so in the environment.
    pub desktop_file: Option<PathBuf>,
}

/// Looks for the application id of a process. Four small reads; what cannot be read is left out.
pub fn application_hints(pid: u32) -> ApplicationHints {
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let flatpak = fs::read_to_string(format!("/proc/{pid}/root/.flatpak-info")).unwrap_or_default();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    ApplicationHints {
        flatpak: flatpak_id(&flatpak),
        snap: snap_name(&cgroup),
        unit: unit_id(&cgroup),
        desktop_file: launched_file(&environment, pid),
    }
}

/// `[Application]` / `name=`.
fn flatpak_id(text: &str) -> Option<String> {
    let mut in_group = false;
    for line in text.lines() {
        if line.starts_with('[') {
            in_group = line.trim_end() == "[Application]";
        } else if in_group && let Some(name) = line.strip_prefix("name=") {
            return Some(name.trim().to_owned()).filter(|name| !name.is_empty());
        }
    }
    None
}

/// Unit names as in <https://systemd.io/DESKTOP_ENVIRONMENTS/>: `app[-LAUNCHER]-ID-RANDOM.scope`,
/// `app[-LAUNCHER]-ID[@RANDOM].service`; a dash within an id is escaped as `\x2d`.
fn unit_id(cgroup: &str) -> Option<String> {
    cgroup.lines().flat_map(|line| line.split('/')).rev().find_map(|unit| {
        let rest = unit.strip_prefix("app-")?;
        let middle = if let Some(scope) = rest.strip_suffix(".scope") {
            scope.rsplit_once('-')?.0
        } else {
            let service = rest.strip_suffix(".service")?;
            service.split_once('@').map_or(service, |(id, _)| id)
        };
        let id = middle.rsplit_once('-').map_or(middle, |(_, id)| id);
        Some(unescape_unit(id)).filter(|id| !id.is_empty())
    })
}

/// systemd's `\xNN`.
fn unescape_unit(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = rest
            .strip_prefix(b"\\x")
            .and_then(|hexadecimal| hexadecimal.get(..2))
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        if let Some(code) = code {
            bytes.push(code);
            rest = &rest[4..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `snap.NAME.APP...` in the cgroup.
fn snap_name(cgroup: &str) -> Option<String> {
    cgroup.lines().flat_map(|line| line.split('/')).rev().find_map(|unit| {
        let name = unit.strip_prefix("snap.")?.split('.').next()?;
        (!name.is_empty()).then(|| unescape_unit(name))
    })
}

/// `GIO_LAUNCHED_DESKTOP_FILE`, if it was meant for this very process: children inherit it.
fn launched_file(environment: &[u8], pid: u32) -> Option<PathBuf> {
    let value = |name: &[u8]| {
        environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"=").map(<[u8]>::to_vec))
    };
    let meant_for = value(b"GIO_LAUNCHED_DESKTOP_FILE_PID")?;
    if meant_for != pid.to_string().into_bytes() {
        return None;
    }
    Some(OsString::from_vec(value(b"GIO_LAUNCHED_DESKTOP_FILE")?).into())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    const STAT: &str =
        "4100 (evil) S 1 (x) T 4099 4100 4100 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 98765 1000 200 rest";

    #[test]
    fn a_name_full_of_parentheses_is_still_a_name() {
        let stat = Stat::parse(STAT).unwrap();
        assert_eq!(stat, Stat { name: "evil) S 1 (x".to_owned(), state: 'T', parent: 4099, start: 98765 });
        for garbage in ["", "1 (a", "1 (a) S", "1 )a( S 1 2 3", "1 (a) S x 2 3 4 5"] {
            assert_eq!(Stat::parse(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn command_lines() {
        let split = |bytes: &[u8]| split_command_line(bytes);
        assert_eq!(split(b"a\0\0b\0"), ["a", "", "b"]);
        assert_eq!(split(b"chromium --type=x\0\0\0\0"), ["chromium --type=x"]);
        assert!(split(b"").is_empty() && split(b"\0\0").is_empty());
    }

    #[test]
    fn units_of_every_shape() {
        let id = |unit: &str| unit_id(&format!("0::/user.slice/user@1000.service/app.slice/{unit}\n"));
        assert_eq!(id("app-gnome-org.gnome.gedit-4242.scope").as_deref(), Some("org.gnome.gedit"));
        assert_eq!(id(r"app-gnome-google\x2dchrome-4242.scope").as_deref(), Some("google-chrome"));
        assert_eq!(id("app-org.kde.kcalc@1f2e.service").as_deref(), Some("org.kde.kcalc"));
        assert_eq!(id("app-flatpak-org.gnome.Maps-77.scope").as_deref(), Some("org.gnome.Maps"));
        assert_eq!(id("app-glib-foot-12.scope/tab-1.scope").as_deref(), Some("foot"));
        assert_eq!(id("session-2.scope"), None);
        assert_eq!(id("app-7.scope"), None);
    }

    #[test]
    fn sandboxes() {
        assert_eq!(
            flatpak_id("[Instance]\nname=x\n[Application]\nname=org.x.Y\n").as_deref(),
            Some("org.x.Y")
        );
        assert_eq!(snap_name("0::/a/snap.firefox.firefox-1234.scope").as_deref(), Some("firefox"));
        assert_eq!(
            launched_file(b"GIO_LAUNCHED_DESKTOP_FILE=/a\0GIO_LAUNCHED_DESKTOP_FILE_PID=5\0", 6),
            None
        );
        let file = launched_file(b"GIO_LAUNCHED_DESKTOP_FILE=/a\0GIO_LAUNCHED_DESKTOP_FILE_PID=6\0", 6);
        assert_eq!(file, Some("/a".into()));
    }

    #[test]
    fn a_circle_in_the_table_ends() {
        let children = HashMap::from([(1, vec![2]), (2, vec![3, 1]), (3, vec![2])]);
        assert_eq!(walk_down(1, &children), [2, 3]);
    }

    #[track_caller]
    fn wait_for(pid: u32, instance: &str, wanted: ProcessState) {
        let limit = Instant::now() + Duration::from_secs(5);
        while state(pid, instance) != wanted {
            assert!(Instant::now() < limit, "{:?}, not {wanted:?}", state(pid, instance));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_life_of_a_process() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let instance = process_instance(pid).unwrap();
        assert_eq!(process_instance(pid).unwrap(), instance);
        assert_eq!(state(pid, &instance), ProcessState::Running);
        assert_eq!(parent(pid).unwrap(), std::process::id());
        assert!(descendants(std::process::id()).unwrap().contains(&pid));
        // In the midst of its exec the child still has our own command line, then none.
        let limit = Instant::now() + Duration::from_secs(5);
        while command_line(pid).unwrap() != ["sleep", "60"] {
            assert!(Instant::now() < limit, "{:?}", command_line(pid));
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(name(pid).unwrap(), "sleep");
        assert!(executable(pid).unwrap().is_absolute());

        let raw = Pid::from_child(&child);
        rustix::process::kill_process(raw, Signal::STOP).unwrap();
        wait_for(pid, &instance, ProcessState::Stopped);

        let other = instance.replace(':', ";");
        assert!(matches!(kill(pid, &other), Err(ProcessError::Replaced { .. })));
        assert_eq!(state(pid, &other), ProcessState::Replaced);
        assert_eq!(state(pid, &instance), ProcessState::Stopped);

        terminate(pid, &instance).unwrap();
        wait_for(pid, &instance, ProcessState::Exited);
        assert!(matches!(kill(pid, &instance), Err(ProcessError::Gone { .. })));
        child.wait().unwrap();
        assert!(!state(pid, &instance).is_alive());
    }

    #[test]
    fn absent_pids() {
        assert_eq!(state(0, ""), ProcessState::Gone);
        assert!(matches!(process_instance(u32::MAX), Err(ProcessError::Gone { .. })));
        assert!(matches!(kill(u32::MAX, ""), Err(ProcessError::Gone { .. })));
    }
}
