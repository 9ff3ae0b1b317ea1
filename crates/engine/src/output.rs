//! Files that a caller names by path: pictures to write, lists and pictures to read.
//!
//! Unlike the store these lie where the caller wants them: folders may be anything the caller can reach. The file
//! itself is replaced whole, is private, and is never somebody else's behind a link.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, Result};
use rustix::fs::{Mode, OFlags};

/// Checks that a path can be written, before anything else is done.
///
/// # Errors
/// `INVALID_ARGS` for a link, something that is no file, a folder that does not exist, or `..` in the folder.
pub fn check(path: &Path) -> Result<()> {
    target(path).map(|_| ())
}

/// The folder and the name.
fn target(path: &Path) -> Result<(PathBuf, &std::ffi::OsStr)> {
    let refuse = |cause: &str| {
        Error::invalid(format!("{} cannot be written: {cause}", path.display()))
            .hint("give the path of a file in a folder that exists")
    };
    let name = path.file_name().ok_or_else(|| refuse("it names no file"))?;
    // `file_name` overlooks a trailing slash.
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(refuse("it names a folder"));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    if folder.components().any(|component| component == Component::ParentDir) {
        return Err(refuse("its folder contains .."));
    }
    if !folder.is_dir() {
        return Err(refuse("its folder does not exist"));
    }
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => Err(refuse("it is a symbolic link")),
        Ok(metadata) if !metadata.is_file() => Err(refuse("it is not a regular file")),
        _ => Ok((folder, name)),
    }
}

/// Writes a file of mode 0600, replacing what was there, or leaves all as it was.
///
/// # Errors
/// As [`check`]; `INTERNAL` when the disk refuses.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let (folder, name) = target(path)?;
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{}.{:x}-{count:x}.tmp", name.display(), std::process::id()));
    let outcome = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&temporary, path));
    outcome.map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        let hint = if error.kind() == std::io::ErrorKind::StorageFull {
            "free some disk space and retry"
        } else {
            "choose a folder that can be written"
        };
        Error::internal(format!("{} cannot be written", path.display()))
            .platform_detail(error.to_string())
            .hint(hint)
    })
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// `INVALID_ARGS` when there is no such file, it cannot be read or is too large.
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>> {
    let refuse = |cause: String| {
        Error::invalid(format!("{} cannot be read: {cause}", path.display()))
            .hint("give the path of a regular file")
            .delivery(Delivery::NotDelivered)
    };
    // A pipe without a writer would be waited for otherwise.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| refuse(error.to_string()))?;
    let file = std::fs::File::from(file);
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(refuse("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let most = limit as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(|error| refuse(error.to_string()))?;
    if bytes.len() > limit {
        return Err(refuse(format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_files::tests::Scratch;
    use agent_desktop_core::ErrorCode;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn writes_privately_and_replaces() {
        let scratch = Scratch::new("output");
        let path = scratch.0.join("a.png");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 1);
    }

    #[test]
    fn refuses_links_folders_and_dots() {
        let scratch = Scratch::new("output-refuses");
        std::fs::write(scratch.0.join("real"), "x").unwrap();
        symlink(scratch.0.join("real"), scratch.0.join("link")).unwrap();
        symlink("nowhere", scratch.0.join("dangling")).unwrap();
        let at = |name: &str| scratch.0.join(name);
        let bad = [
            at("link"),
            at("dangling"),
            at("."),
            at("none/a.png"),
            at("x/../a.png"),
            at("new/"),
            "/".into(),
            "".into(),
        ];
        for path in bad {
            let error = write(&path, b"y").unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgs, "{}", path.display());
        }
        assert_eq!(std::fs::read(at("real")).unwrap(), b"x");
    }
}
