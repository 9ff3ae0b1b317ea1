//! Files that belong to one user and to nobody else.
//!
//! Every path is walked component by component from `/` with open directories, so that nobody can swap a component for
//! a symbolic link between a check and its use. Directories are 0700 and files 0600, owned by the user, regular, with
//! one name only. Writes go to a temporary file that is renamed: a reader sees the old content or the new one.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use rustix::fs::{Access, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

const DIRECTORY_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::from_bits_retain(0o600);

/// How long to wait between two attempts at a lock.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// How long a sign of life may be in the hands of those who look at it.
const HOLD_TIMEOUT: Duration = Duration::from_millis(500);
/// Levels of directories below one that is removed with all that is in it.
const TREE_LEVELS: u8 = 8;
/// Files and directories that are looked at for their modes.
pub(crate) const MOST_AUDITED: u64 = 50_000;

/// An open directory of ours.
#[derive(Debug)]
pub(crate) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

/// One name in a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) is_directory: bool,
    pub(crate) is_link: bool,
}

/// An exclusive lock, held until dropped.
#[derive(Debug)]
pub(crate) struct FileLock(#[allow(dead_code, reason = "closing it releases the lock")] OwnedFd);

fn failed(what: &str, path: &Path, error: Errno) -> Error {
    let hint = match error {
        Errno::NOSPC | Errno::DQUOT => {
            Some("free some disk space and retry; what was stored before is intact")
        }
        Errno::ROFS => Some("set AGENT_DESKTOP_HOME to a directory that can be written"),
        _ => None,
    };
    let error = Error::internal(format!("{what} {}", path.display()))
        .platform_detail(error.to_string())
        .delivery(Delivery::NotDelivered);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn unsafe_path(path: &Path, cause: &str) -> Error {
    Error::internal(format!("{} is not safe to use: {cause}", path.display()))
        .hint("remove it, or set AGENT_DESKTOP_HOME to a directory of your own")
        .delivery(Delivery::NotDelivered)
}

fn kind_of(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a symbolic link in this directory can have been made by the system only.
///
/// `/home -> /usr/home` is one. Nobody but root can write there. For root itself, whose own links look the same, only
/// links in `/` count.
fn holds_system_links(parent: &Stat, depth: usize) -> bool {
    parent.st_uid == 0 && parent.st_mode & 0o022 == 0 && (user() != 0 || depth == 0)
}

impl Directory {
    /// Opens a directory, making what is missing of it when `create`; `None` when it is missing and is not to be made.
    pub(crate) fn open(path: &Path, create: bool) -> Result<Option<Directory>> {
        let directory = Directory::walk(path, create)?;
        if let Some(directory) = &directory {
            directory.check(create)?;
        }
        Ok(directory)
    }

    /// The same, whoever may write in it: to be looked at, not to be used.
    fn walk(path: &Path, create: bool) -> Result<Option<Directory>> {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => names.push(name),
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(unsafe_path(path, "it contains .."));
                }
            }
        }
        if !path.is_absolute() || names.is_empty() {
            return Err(unsafe_path(path, "it is not an absolute path below the root"));
        }
        let passing = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut fd = rustix::fs::open("/", passing, Mode::empty())
            .map_err(|error| failed("cannot open", path, error))?;
        let mut walked = PathBuf::from("/");
        for (depth, name) in names.iter().enumerate() {
            walked.push(name);
            let is_last = depth + 1 == names.len();
            let flags = if is_last { OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC } else { passing };
            fd = match rustix::fs::openat(&fd, *name, flags | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::NOENT) if create => {
                    make(&fd, name, &walked)?;
                    rustix::fs::openat(&fd, *name, flags | OFlags::NOFOLLOW, Mode::empty())
                        .map_err(|error| failed("cannot open", &walked, error))?
                }
                Err(Errno::NOENT) => return Ok(None),
                Err(error @ (Errno::NOTDIR | Errno::LOOP)) => {
                    let is_link = rustix::fs::statat(&fd, *name, AtFlags::SYMLINK_NOFOLLOW)
                        .is_ok_and(|status| kind_of(&status) == FileType::Symlink);
                    if !is_link {
                        return Err(failed("not a directory:", &walked, error));
                    }
                    let parent =
                        rustix::fs::fstat(&fd).map_err(|error| failed("cannot look at", &walked, error))?;
                    if is_last || !holds_system_links(&parent, depth) {
                        return Err(unsafe_path(&walked, "it is a symbolic link"));
                    }
                    rustix::fs::openat(&fd, *name, flags, Mode::empty())
                        .map_err(|error| failed("cannot open", &walked, error))?
                }
                Err(error) => return Err(failed("cannot open", &walked, error)),
            };
        }
        Ok(Some(Directory { fd, path: path.to_owned() }))
    }

    /// Opens a directory inside this one.
    pub(crate) fn child(&self, name: &str, create: bool) -> Result<Option<Directory>> {
        let path = self.path.join(name);
        let open = || {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(&self.fd, name, flags, Mode::empty())
        };
        let fd = match open() {
            Ok(fd) => fd,
            Err(Errno::NOENT) if create => {
                make(&self.fd, OsStr::new(name), &path)?;
                open().map_err(|error| failed("cannot open", &path, error))?
            }
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(unsafe_path(&path, "it is a symbolic link or a file where a directory belongs"));
            }
            Err(error) => return Err(failed("cannot open", &path, error)),
        };
        let directory = Directory { fd, path };
        directory.check(create)?;
        Ok(Some(directory))
    }

    /// Owner and mode. A directory that others can write is refused, because whatever is in it may be theirs; one that
    /// they can only read is closed to them before something is written.
    fn check(&self, is_for_writing: bool) -> Result<()> {
        let status =
            rustix::fs::fstat(&self.fd).map_err(|error| failed("cannot look at", &self.path, error))?;
        if status.st_uid != user() {
            return Err(unsafe_path(&self.path, "it belongs to another user"));
        }
        if status.st_mode & 0o022 != 0 {
            return Err(unsafe_path(&self.path, "others can write in it"));
        }
        if is_for_writing && status.st_mode & 0o055 != 0 {
            rustix::fs::fchmod(&self.fd, DIRECTORY_MODE)
                .map_err(|error| failed("cannot protect", &self.path, error))?;
        }
        Ok(())
    }

    /// Where it is; for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it, dot files included.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        let listing = |error| failed("cannot list", &self.path, error);
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(listing)? {
            let entry = entry.map_err(listing)?;
            // Names of ours are ASCII; others are none of our business.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name != "." && name != ".." {
                entries.push(Entry {
                    name: name.to_owned(),
                    is_directory: entry.file_type() == FileType::Directory,
                    is_link: entry.file_type() == FileType::Symlink,
                });
            }
        }
        Ok(entries)
    }

    /// When something in it was written last, in nanoseconds of an arbitrary epoch; 0 when that cannot be told.
    pub(crate) fn modified(&self, name: &str) -> i128 {
        rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).map_or(0, |status| {
            i128::from(status.st_mtime) * 1_000_000_000 + i128::from(status.st_mtime_nsec)
        })
    }

    /// Reads a file of at most `limit` bytes; `None` when there is none.
    pub(crate) fn read(&self, name: &str, limit: usize) -> Result<Option<Vec<u8>>> {
        use std::io::Read;
        let path = self.path.join(name);
        let Some((file, length)) = self.open_file(name)? else { return Ok(None) };
        if length > limit as u64 {
            return Err(too_large(&path, limit));
        }
        let mut bytes = Vec::with_capacity(length as usize);
        // It may grow while it is read.
        file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|error| {
            Error::internal(format!("cannot read {}", path.display()))
                .platform_detail(error.to_string())
                .delivery(Delivery::NotDelivered)
        })?;
        if bytes.len() > limit { Err(too_large(&path, limit)) } else { Ok(Some(bytes)) }
    }

    /// Replaces a file of this directory, or leaves it as it was. The temporary file is made in `scratch`, which must be
    /// on the same disk. `durable`: it survives a power failure once this returns.
    pub(crate) fn write(&self, name: &str, bytes: &[u8], scratch: &Directory, durable: bool) -> Result<()> {
        let path = self.path.join(name);
        // An existing one that is not ours to replace is a finding, not something to paper over.
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => check_status(&status, &path)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(failed("cannot look at", &path, error)),
        }
        let temporary = temporary_name(name);
        let outcome = self.write_by(&temporary, name, bytes, scratch, durable);
        if outcome.is_err() {
            let _ = rustix::fs::unlinkat(&scratch.fd, &*temporary, AtFlags::empty());
        }
        outcome.map_err(|error| failed("cannot write", &path, error))
    }

    fn write_by(
        &self,
        temporary: &str,
        name: &str,
        bytes: &[u8],
        scratch: &Directory,
        durable: bool,
    ) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&scratch.fd, temporary, flags, FILE_MODE)?;
        let mut rest = bytes;
        while !rest.is_empty() {
            match rustix::io::write(&fd, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        if durable {
            rustix::fs::fdatasync(&fd)?;
        }
        rustix::fs::renameat(&scratch.fd, temporary, &self.fd, name)?;
        if durable {
            // The file is in place and readable; a directory that cannot be synced (some network disks) is no failure.
            let _ = rustix::fs::fsync(&self.fd);
        }
        Ok(())
    }

    /// Removes a file; nothing happens when there is none.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("cannot remove", &self.path.join(name), error)),
        }
    }

    /// Removes a directory of files. Links are removed, not followed; directories inside make it fail.
    pub(crate) fn remove_directory(&self, name: &str) -> Result<()> {
        if let Some(directory) = self.child(name, false)? {
            for entry in directory.entries()? {
                directory.remove(&entry.name)?;
            }
        }
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("cannot remove", &self.path.join(name), error)),
        }
    }

    /// Makes a directory that was not there; `None` when something of this name is.
    pub(crate) fn create(&self, name: &str) -> Result<Option<Directory>> {
        match rustix::fs::mkdirat(&self.fd, name, DIRECTORY_MODE) {
            Ok(()) => self.child(name, true),
            Err(Errno::EXIST) => Ok(None),
            Err(error) => Err(failed("cannot make", &self.path.join(name), error)),
        }
    }

    /// Gives something in this directory another name, which nothing has yet; false when something has it.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<bool> {
        match rustix::fs::renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(false),
            Err(error) => Err(failed("cannot rename", &self.path.join(from), error)),
        }
    }

    /// Removes a directory with all that is in it. Links are removed, not followed.
    pub(crate) fn remove_tree(&self, name: &str) -> Result<()> {
        self.remove_levels(name, TREE_LEVELS)
    }

    fn remove_levels(&self, name: &str, levels: u8) -> Result<()> {
        if levels == 0 {
            return Err(unsafe_path(&self.path.join(name), "it is deeper than anything we make"));
        }
        if let Some(directory) = self.child(name, false)? {
            for entry in directory.entries()? {
                if entry.is_directory {
                    directory.remove_levels(&entry.name, levels - 1)?;
                } else {
                    directory.remove(&entry.name)?;
                }
            }
        }
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("cannot remove", &self.path.join(name), error)),
        }
    }

    /// Opens a file for lines to be added at its end, making it if need be.
    pub(crate) fn append(&self, name: &str) -> Result<File> {
        let path = self.path.join(name);
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, name, flags, FILE_MODE) {
            Ok(fd) => fd,
            Err(Errno::LOOP) => return Err(unsafe_path(&path, "it is a symbolic link")),
            Err(error) => return Err(failed("cannot open", &path, error)),
        };
        check_file(&fd, &path)?;
        Ok(File::from(fd))
    }

    /// Opens a file for reading, and says how long it is; `None` when there is none.
    pub(crate) fn open_file(&self, name: &str) -> Result<Option<(File, u64)>> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => {
                let length = check_file(&fd, &path)?.st_size as u64;
                Ok(Some((File::from(fd), length)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP) => Err(unsafe_path(&path, "it is a symbolic link")),
            Err(error) => Err(failed("cannot open", &path, error)),
        }
    }

    /// Makes a file of a new name and holds its lock, as a sign that somebody is here.
    pub(crate) fn hold(&self, name: &str) -> Result<FileLock> {
        let path = self.path.join(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, FILE_MODE)
            .map_err(|error| failed("cannot make", &path, error))?;
        // Whoever looks whether somebody is here has the lock for a moment.
        let start = Instant::now();
        loop {
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(FileLock(fd)),
                Err(Errno::WOULDBLOCK) if start.elapsed() < HOLD_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(failed("cannot lock", &path, error)),
            }
        }
    }

    /// Whether somebody holds the lock of a file. What cannot be found out counts as held: it protects.
    pub(crate) fn is_held(&self, name: &str) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => rustix::fs::flock(&fd, FlockOperation::NonBlockingLockShared).is_err(),
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => false,
            Err(_) => true,
        }
    }

    /// Takes the exclusive lock on a file of this directory.
    ///
    /// # Errors
    /// `TIMEOUT` of kind `lock_timeout`.
    pub(crate) fn lock(&self, name: &str, timeout: Duration) -> Result<FileLock> {
        self.lock_by(name, timeout, FlockOperation::NonBlockingLockExclusive)
    }

    /// The same, together with others who do not want it for themselves.
    ///
    /// # Errors
    /// As [`Directory::lock`].
    pub(crate) fn share(&self, name: &str, timeout: Duration) -> Result<FileLock> {
        self.lock_by(name, timeout, FlockOperation::NonBlockingLockShared)
    }

    fn lock_by(&self, name: &str, timeout: Duration, operation: FlockOperation) -> Result<FileLock> {
        let path = self.path.join(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, name, flags, FILE_MODE) {
            Ok(fd) => fd,
            Err(Errno::LOOP) => return Err(unsafe_path(&path, "it is a symbolic link")),
            Err(error) => return Err(failed("cannot open", &path, error)),
        };
        check_file(&fd, &path)?;
        let start = Instant::now();
        let mut contention_count = 0_u64;
        loop {
            match rustix::fs::flock(&fd, operation) {
                Ok(()) => return Ok(FileLock(fd)),
                Err(Errno::WOULDBLOCK) if start.elapsed() < timeout => {
                    contention_count += 1;
                    std::thread::sleep(LOCK_POLL);
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(Error::new(
                        ErrorCode::Timeout,
                        "another command is writing the stored snapshots",
                    )
                    .kind("lock_timeout")
                    .detail("purpose", "refstore")
                    .detail("path", path.display().to_string())
                    .detail("contention_count", contention_count)
                    .hint("retry, or give each agent a --session of its own")
                    .delivery(Delivery::NotDelivered));
                }
                Err(error) => return Err(failed("cannot lock", &path, error)),
            }
        }
    }
}

/// What is wrong with a tree of files that is to be one user's own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Audit {
    /// What was looked at.
    pub(crate) count: u64,
    /// Others can write in the directory itself, which is why commands refuse it.
    pub(crate) is_refused: bool,
    /// What others can read or, of directories, write: a mode sets it right.
    pub(crate) open: Vec<PathBuf>,
    /// What may not be ours, with the reason: a person has to look.
    pub(crate) strange: Vec<(PathBuf, &'static str)>,
    /// Not all was looked at.
    pub(crate) is_cut: bool,
}

impl Audit {
    /// Looks through a directory; `None` when there is none. Reads no file, follows no link, changes nothing.
    ///
    /// # Errors
    /// `INTERNAL` when it cannot be opened: what is in its way says why.
    pub(crate) fn of(path: &Path) -> Result<Option<Audit>> {
        let Some(root) = Directory::walk(path, false)? else { return Ok(None) };
        let mut audit = Audit::default();
        audit.directory(&root, TREE_LEVELS, false)?;
        audit.is_refused = audit.strange.iter().any(|(strange, _)| strange == path)
            || rustix::fs::fstat(&root.fd).is_ok_and(|status| status.st_mode & 0o022 != 0);
        Ok(Some(audit))
    }

    /// Closes to others what is open, and looks again. Changes nothing while there is something strange: what others could
    /// write they may have written.
    ///
    /// # Errors
    /// As [`Audit::of`].
    pub(crate) fn repair(self, path: &Path) -> Result<Audit> {
        if !self.strange.is_empty() || self.is_cut {
            return Ok(self);
        }
        let Some(root) = Directory::walk(path, false)? else { return Ok(self) };
        Audit::default().directory(&root, TREE_LEVELS, true)?;
        Ok(Audit::of(path)?.unwrap_or_default())
    }

    fn directory(&mut self, directory: &Directory, levels: u8, repair: bool) -> Result<()> {
        self.count += 1;
        let path = &directory.path;
        let status =
            rustix::fs::fstat(&directory.fd).map_err(|error| failed("cannot look at", path, error))?;
        if status.st_uid != user() {
            self.strange.push((path.clone(), "it belongs to another user"));
            return Ok(());
        }
        if status.st_mode & 0o077 != 0 {
            self.open.push(path.clone());
            if repair {
                rustix::fs::fchmod(&directory.fd, DIRECTORY_MODE)
                    .map_err(|error| failed("cannot protect", path, error))?;
            }
        }
        for entry in Dir::read_from(&directory.fd).map_err(|error| failed("cannot list", path, error))? {
            let entry = entry.map_err(|error| failed("cannot list", path, error))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.count >= MOST_AUDITED || levels == 0 {
                self.is_cut = true;
                return Ok(());
            }
            let path = path.join(OsStr::from_bytes(name.to_bytes()));
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match rustix::fs::openat(&directory.fd, name, flags, Mode::empty()) {
                Ok(fd) => self.entry(fd, path, levels, repair)?,
                Err(Errno::LOOP) => self.strange.push((path, "it is a symbolic link")),
                Err(Errno::NOENT) => {} // gone meanwhile
                Err(_) => self.strange.push((path, "it cannot be opened")),
            }
        }
        Ok(())
    }

    fn entry(&mut self, fd: OwnedFd, path: PathBuf, levels: u8, repair: bool) -> Result<()> {
        let status = rustix::fs::fstat(&fd).map_err(|error| failed("cannot look at", &path, error))?;
        if kind_of(&status) == FileType::Directory {
            return self.directory(&Directory { fd, path }, levels - 1, repair);
        }
        self.count += 1;
        let cause = match kind_of(&status) {
            FileType::RegularFile if status.st_uid != user() => Some("it belongs to another user"),
            // One that was just removed has none.
            FileType::RegularFile if status.st_nlink > 1 => Some("it has another name elsewhere"),
            FileType::RegularFile if status.st_mode & 0o022 != 0 => Some("others can write it"),
            FileType::RegularFile => None,
            _ => Some("it is not a regular file"),
        };
        match cause {
            Some(cause) => self.strange.push((path, cause)),
            None if status.st_mode & 0o077 != 0 => {
                if repair {
                    rustix::fs::fchmod(&fd, FILE_MODE)
                        .map_err(|error| failed("cannot protect", &path, error))?;
                }
                self.open.push(path);
            }
            None => {}
        }
        Ok(())
    }
}

/// Whether this user could make or write something there: the nearest directory that exists decides.
pub(crate) fn can_write(path: &Path) -> bool {
    let there = path.ancestors().find(|path| path.exists());
    there.is_some_and(|path| {
        rustix::fs::accessat(rustix::fs::CWD, path, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .is_ok()
    })
}

fn make(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<()> {
    match rustix::fs::mkdirat(parent, name.as_bytes(), DIRECTORY_MODE) {
        // Somebody else may have made it meanwhile; it is checked like any other.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(failed("cannot make", path, error)),
    }
}

fn too_large(path: &Path, limit: usize) -> Error {
    Error::internal(format!("{} is larger than {limit} bytes", path.display()))
        .hint("it was not written by this program; remove it and take a new snapshot")
        .delivery(Delivery::NotDelivered)
}

fn check_file(fd: &OwnedFd, path: &Path) -> Result<Stat> {
    let status = rustix::fs::fstat(fd).map_err(|error| failed("cannot look at", path, error))?;
    check_status(&status, path)?;
    Ok(status)
}

fn check_status(status: &Stat, path: &Path) -> Result<()> {
    let cause = match kind_of(status) {
        FileType::RegularFile if status.st_uid != user() => "it belongs to another user",
        FileType::RegularFile if status.st_nlink != 1 => "it has another name elsewhere",
        FileType::RegularFile if status.st_mode & 0o022 != 0 => "others can write it",
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "it is a symbolic link",
        _ => "it is not a regular file",
    };
    Err(unsafe_path(path, cause))
}

/// `.name.<hex>.tmp`; the number is new for each call, in every process.
fn temporary_name(name: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut temporary = format!(".{name}.");
    let _ = write!(temporary, "{:08x}{nanos:016x}{count:04x}.tmp", std::process::id());
    temporary
}

/// Whether a name is one of [`Directory::write`]'s temporary files.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && Path::new(name).extension().is_some_and(|extension| extension == "tmp")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A directory of its own for a test, removed afterwards.
    pub(crate) struct Scratch(pub(crate) PathBuf);

    impl Scratch {
        pub(crate) fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("ad-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn makes_private_directories_and_files() {
        let scratch = Scratch::new("private");
        assert!(Directory::open(&scratch.0.join("a"), false).unwrap().is_none());
        let directory = Directory::open(&scratch.0.join("a/b"), true).unwrap().unwrap();
        directory.write("f", b"one", &directory, true).unwrap();
        directory.write("f", b"two", &directory, false).unwrap();
        assert_eq!(directory.read("f", 3).unwrap().unwrap(), b"two");
        assert!(directory.read("f", 2).unwrap_err().message().contains("larger than 2"));
        assert_eq!(directory.read("none", 2).unwrap(), None);
        assert_eq!((mode(&scratch.0.join("a")), mode(&scratch.0.join("a/b/f"))), (0o700, 0o600));
        assert_eq!(directory.entries().unwrap().len(), 1, "no temporary file is left");
    }

    #[test]
    fn refuses_links_twins_strangers_and_open_doors() {
        let scratch = Scratch::new("refuses");
        let at = |name: &str| scratch.0.join(name);
        let directory = Directory::open(&at("d"), true).unwrap().unwrap();

        symlink(at("d"), at("link")).unwrap();
        for path in [at("link"), at("link/x"), at("d/../d")] {
            assert!(Directory::open(&path, true).is_err(), "{}", path.display());
        }
        symlink("/etc", at("d/sub")).unwrap();
        assert!(directory.child("sub", true).is_err());

        std::fs::write(at("outside"), "secret").unwrap();
        symlink(at("outside"), at("d/soft")).unwrap();
        std::fs::hard_link(at("outside"), at("d/hard")).unwrap();
        std::fs::create_dir(at("d/dir")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("d/fifo"), FileType::Fifo, FILE_MODE, 0).unwrap();
        std::fs::write(at("d/open"), "x").unwrap();
        std::fs::set_permissions(at("d/open"), std::fs::Permissions::from_mode(0o666)).unwrap();
        for name in ["soft", "hard", "dir", "fifo", "open"] {
            assert!(directory.read(name, 100).is_err(), "read {name}");
            assert!(directory.write(name, b"x", &directory, false).is_err(), "write {name}");
            assert!(directory.lock(name, Duration::ZERO).is_err(), "lock {name}");
        }
        assert_eq!(std::fs::read(at("outside")).unwrap(), b"secret");

        std::fs::set_permissions(at("d"), std::fs::Permissions::from_mode(0o770)).unwrap();
        assert!(Directory::open(&at("d"), true).unwrap_err().message().contains("others can write"));
        std::fs::set_permissions(at("d"), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Directory::open(&at("d"), true).is_ok());
        assert_eq!(mode(&at("d")), 0o700, "closed to others");
    }

    #[test]
    fn an_audit_finds_what_is_open_and_closes_it_unless_something_is_strange() {
        let scratch = Scratch::new("audit");
        let at = |name: &str| scratch.0.join(name);
        assert_eq!(Audit::of(&at("d")).unwrap(), None);
        let directory = Directory::open(&at("d/e"), true).unwrap().unwrap();
        directory.write("f", b"x", &directory, false).unwrap();
        let audit = Audit::of(&at("d")).unwrap().unwrap();
        assert_eq!(audit, Audit { count: 3, ..Audit::default() });

        std::fs::set_permissions(at("d/e"), std::fs::Permissions::from_mode(0o770)).unwrap();
        std::fs::set_permissions(at("d/e/f"), std::fs::Permissions::from_mode(0o640)).unwrap();
        std::fs::hard_link(at("d/e/f"), at("twin")).unwrap();
        let audit = Audit::of(&at("d")).unwrap().unwrap();
        assert_eq!((audit.open.as_slice(), audit.is_refused), (&[at("d/e")][..], false));
        assert_eq!(audit.strange, [(at("d/e/f"), "it has another name elsewhere")]);
        assert_eq!(audit.repair(&at("d")).unwrap().open, [at("d/e")]);
        assert_eq!((mode(&at("d/e")), mode(&at("twin"))), (0o770, 0o640));

        std::fs::remove_file(at("twin")).unwrap();
        let audit = Audit::of(&at("d")).unwrap().unwrap();
        assert_eq!(audit.open, [at("d/e"), at("d/e/f")]);
        assert_eq!(audit.repair(&at("d")).unwrap(), Audit { count: 3, ..Audit::default() });
        assert_eq!((mode(&at("d/e")), mode(&at("d/e/f"))), (0o700, 0o600));
    }

    #[test]
    fn a_lock_is_exclusive_and_bounded() {
        let scratch = Scratch::new("lock");
        let directory = Directory::open(&scratch.0.join("d"), true).unwrap().unwrap();
        let held = directory.lock("l", Duration::ZERO).unwrap();
        let error = directory.lock("l", Duration::from_millis(25)).unwrap_err();
        assert_eq!((error.code(), error.get_kind()), (ErrorCode::Timeout, "lock_timeout"));
        drop(held);
        assert!(directory.lock("l", Duration::ZERO).is_ok());
    }
}
