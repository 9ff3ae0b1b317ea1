//! The interaction lease: one holder per user and machine.
//!
//! Two agents that act at the same moment would type into each other's windows. Whoever acts holds the lease from just
//! before the dispatch until its effect was looked for; nobody holds it while waiting. A guard inside the process, then
//! an exclusive lock on one file in the user's runtime directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent_desktop_core::Deadline;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::platform::Clock;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// The file that is locked.
const FILE: &str = "interaction.lock";
/// How long to wait between two attempts at the file.
pub(crate) const FILE_POLL: Duration = Duration::from_millis(10);
/// How long to wait between two attempts at the guard inside the process.
pub(crate) const PROCESS_POLL: Duration = Duration::from_millis(1);

/// Where the lease is, as the environment says.
#[derive(Clone, Debug, Default)]
pub struct LeaseSettings {
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// `AGENT_DESKTOP_INTERACTION_LEASE_FD`: number of a descriptor that our parent holds the lock by.
    pub inherited: Option<String>,
}

/// Locks that this process holds, by their directory. A file lock would keep two threads apart just as well, but at ten
/// times the pause.
static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

struct Guard(PathBuf);

impl Guard {
    fn take(path: &Path) -> Option<Guard> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(path.to_owned()).then(|| Guard(path.to_owned()))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// The lease, held until dropped.
pub struct Lease {
    // Dropped in this order: the file first, so that another process never waits for one that has let go.
    _file: Option<OwnedFd>,
    _guard: Guard,
    /// How often somebody else held it.
    pub contention_count: u64,
}

impl Lease {
    /// Takes the lease, waiting for it until the deadline.
    ///
    /// # Errors
    /// `TIMEOUT` at the deadline; `POLICY_DENIED` when an inherited descriptor is not the lock; `INTERNAL` when the
    /// runtime directory is not safe to use.
    pub fn take(
        settings: &LeaseSettings,
        clock: &(impl Clock + ?Sized),
        deadline: Deadline,
    ) -> Result<Lease> {
        let (directory, path) = open_directory(settings)?;
        let mut contention_count = 0;
        let guard = loop {
            if let Some(guard) = Guard::take(&path) {
                break guard;
            }
            contention_count += 1;
            if deadline.has_passed(clock.now()) {
                return Err(timeout("interaction_process_lock_timeout", None, contention_count));
            }
            clock.sleep(PROCESS_POLL);
        };
        if let Some(number) = &settings.inherited {
            adopt(number, &directory)?;
            return Ok(Lease { _file: None, _guard: guard, contention_count });
        }
        let file = open_lock(&directory)?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lease { _file: Some(file), _guard: guard, contention_count }),
                Err(Errno::WOULDBLOCK) => {
                    contention_count += 1;
                    let remaining = deadline.remaining(clock.now());
                    if remaining.is_zero() {
                        return Err(timeout("lock_timeout", Some(&path), contention_count));
                    }
                    clock.sleep(FILE_POLL.min(remaining));
                }
                Err(error) => return Err(unusable("the interaction lock cannot be taken", error)),
            }
        }
    }
}

/// Who holds the lock file now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// Nobody.
    Nobody,
    /// Somebody; the number of the process where the system tells.
    Somebody(Option<u32>),
}

/// Looks who holds the lease, without taking it for longer than the look.
///
/// # Errors
/// As [`Lease::take`], but for the timeout.
pub(crate) fn holder(settings: &LeaseSettings) -> Result<Holder> {
    let (directory, _) = open_directory(settings)?;
    let file = open_lock(&directory)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(Holder::Nobody),
        Err(Errno::WOULDBLOCK) => {
            let status = rustix::fs::fstat(&file)
                .map_err(|error| unusable("the interaction lock cannot be looked at", error))?;
            let table = std::fs::read_to_string("/proc/locks").unwrap_or_default();
            Ok(Holder::Somebody(holder_in(&table, status.st_ino)))
        }
        Err(error) => Err(unusable("the interaction lock cannot be taken", error)),
    }
}

/// The process that holds a file in the kernel's table: `1: FLOCK  ADVISORY  WRITE 4242 08:01:131 0 EOF`.
fn holder_in(table: &str, inode: u64) -> Option<u32> {
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A line with an arrow is somebody who waits.
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = words[..] else { return None };
        let is_it = file.rsplit(':').next().and_then(|word| word.parse().ok()) == Some(inode);
        is_it.then(|| pid.parse().ok()).flatten()
    })
}

fn timeout(kind: &'static str, path: Option<&Path>, contention_count: u64) -> Error {
    let error = Error::new(
        ErrorCode::Timeout,
        "another command is acting on this desktop, and did not finish in time",
    )
    .kind(kind)
    .detail("purpose", "interaction")
    .detail("contention_count", contention_count)
    .hint("retry, or allow more time with --timeout-ms")
    .delivery(Delivery::NotDelivered);
    match path {
        Some(path) => error.detail("path", path.join(FILE).display().to_string()),
        None => error,
    }
}

fn unusable(message: &'static str, error: Errno) -> Error {
    Error::internal(message).platform_detail(error.to_string()).delivery(Delivery::NotDelivered)
}

/// The directory of the lock: in the user's runtime directory, or else one of our own among the temporary files.
fn open_directory(settings: &LeaseSettings) -> Result<(OwnedFd, PathBuf)> {
    let user = rustix::process::geteuid().as_raw();
    let runtime = settings
        .runtime_dir
        .clone()
        .into_iter()
        // Without the variable (ssh, cron) the directory is often there all the same, and the desktop's own commands
        // lock there.
        .chain([PathBuf::from(format!("/run/user/{user}"))])
        .find(|path| path.is_absolute() && is_private(path));
    let path = match runtime {
        Some(runtime) => runtime.join("agent-desktop"),
        None => std::env::temp_dir().join(format!("agent-desktop-{user}")),
    };
    match rustix::fs::mkdir(&path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(unusable("the directory of the interaction lock cannot be made", error)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(&path, flags, Mode::empty())
        .map_err(|error| unusable("the directory of the interaction lock cannot be opened", error))?;
    let status = rustix::fs::fstat(&directory)
        .map_err(|error| unusable("the directory of the interaction lock cannot be looked at", error))?;
    if status.st_uid != user || status.st_mode & 0o077 != 0 {
        return Err(Error::internal(format!("{} is not a private directory of this user", path.display()))
            .hint("remove it, or give it to this user with mode 0700")
            .delivery(Delivery::NotDelivered));
    }
    Ok((directory, path))
}

fn is_private(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok_and(|status| {
        FileType::from_raw_mode(status.st_mode) == FileType::Directory
            && status.st_uid == rustix::process::geteuid().as_raw()
            && status.st_mode & 0o022 == 0
    })
}

fn open_lock(directory: &OwnedFd) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, FILE, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| unusable("the interaction lock cannot be opened", error))?;
    let status = rustix::fs::fstat(&file)
        .map_err(|error| unusable("the interaction lock cannot be looked at", error))?;
    if FileType::from_raw_mode(status.st_mode) == FileType::RegularFile && status.st_nlink == 1 {
        Ok(file)
    } else {
        Err(Error::internal("the interaction lock is not a file of its own").delivery(Delivery::NotDelivered))
    }
}

/// Accepts the lock that the parent process holds and handed down.
fn adopt(number: &str, directory: &OwnedFd) -> Result<()> {
    let refused = |message: &str| {
        Error::new(ErrorCode::PolicyDenied, message.to_owned())
            .hint("unset the variable, or inherit the descriptor of the interaction lock that is held")
            .delivery(Delivery::NotDelivered)
    };
    if number.is_empty() || number.len() > 10 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused("the inherited interaction lease is not the number of a descriptor"));
    }
    let identity = |status: &rustix::fs::Stat| (status.st_dev, status.st_ino);
    let inherited = rustix::fs::stat(format!("/proc/self/fd/{number}"));
    let ours = rustix::fs::statat(directory, FILE, AtFlags::SYMLINK_NOFOLLOW);
    match (inherited, ours) {
        (Ok(inherited), Ok(ours)) if identity(&inherited) == identity(&ours) => {}
        _ => return Err(refused("the inherited descriptor is not the interaction lock")),
    }
    // Somebody has to hold it; a descriptor that holds nothing protects nobody.
    let probe = File::from(open_lock(directory)?);
    match rustix::fs::flock(&probe, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Ok(()),
        _ => Err(refused("the inherited descriptor does not hold the interaction lock")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    #[test]
    fn the_holder_stands_in_the_kernels_table() {
        let table = "1: POSIX  ADVISORY  WRITE 7 08:01:131 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 8 08:01:131 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 9 08:01:131 0 EOF\n4: FLOCK  ADVISORY  WRITE 10 08:01:1310 0 EOF\n";
        assert_eq!(holder_in(table, 131), Some(9));
        assert_eq!(holder_in(table, 31), None);
    }

    struct System;
    impl Clock for System {
        fn now(&self) -> Instant {
            Instant::now()
        }
        fn sleep(&self, duration: Duration) {
            std::thread::sleep(duration);
        }
    }

    fn deadline(ms: u64) -> Deadline {
        Deadline::after(Instant::now(), Duration::from_millis(ms))
    }

    #[test]
    fn one_holder_a_safe_directory_and_a_true_descriptor() {
        let runtime = std::env::temp_dir().join(format!("ad-lease-{}", std::process::id()));
        std::fs::create_dir(&runtime).unwrap();
        std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut settings = LeaseSettings { runtime_dir: Some(runtime.clone()), inherited: None };

        let lease = Lease::take(&settings, &System, deadline(1000)).unwrap();
        assert_eq!(lease.contention_count, 0);
        let error = Lease::take(&settings, &System, deadline(20)).err().unwrap();
        assert_eq!(
            (error.code(), error.get_kind()),
            (ErrorCode::Timeout, "interaction_process_lock_timeout")
        );
        assert_eq!(error.get_delivery(), Delivery::NotDelivered);
        drop(lease);

        // Another process, by another open file.
        let path = runtime.join("agent-desktop").join(FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let other = File::open(&path).unwrap();
        rustix::fs::flock(&other, FlockOperation::LockExclusive).unwrap();
        let error = Lease::take(&settings, &System, deadline(30)).err().unwrap();
        assert_eq!((error.code(), error.get_kind()), (ErrorCode::Timeout, "lock_timeout"));
        assert!(error.details().iter().any(|(name, _)| name == "contention_count"));

        // Its descriptor is accepted while it holds the lock, another file's is not, nor one that holds nothing.
        settings.inherited = Some(other.as_raw_fd().to_string());
        assert!(Lease::take(&settings, &System, deadline(30)).is_ok());
        rustix::fs::flock(&other, FlockOperation::Unlock).unwrap();
        let denied = |settings: &LeaseSettings| {
            Lease::take(settings, &System, deadline(30)).err().map(|error| error.code())
        };
        assert_eq!(denied(&settings), Some(ErrorCode::PolicyDenied));
        for wrong in ["0", "99999", "-1", "", "x"] {
            settings.inherited = Some(wrong.to_owned());
            assert_eq!(denied(&settings), Some(ErrorCode::PolicyDenied), "{wrong:?}");
        }

        // A directory that others can enter is refused; so is a link.
        settings.inherited = None;
        let directory = runtime.join("agent-desktop");
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(denied(&settings), Some(ErrorCode::Internal));
        std::fs::remove_dir_all(&directory).unwrap();
        std::os::unix::fs::symlink("/tmp", &directory).unwrap();
        assert_eq!(denied(&settings), Some(ErrorCode::Internal));
        std::fs::remove_dir_all(&runtime).unwrap();
    }
}
