//! What the host says about a process that reading depends on.

use std::path::PathBuf;

use crate::process::{self, ProcessState};

/// Whether the process is stopped and so answers nothing.
pub(crate) fn is_stopped(pid: u32) -> bool {
    process::process_instance(pid)
        .is_ok_and(|instance| process::state(pid, &instance) == ProcessState::Stopped)
}

/// What the process is called; empty if it is gone.
///
/// The kernel keeps 15 bytes of the name. Where that may have cut it, the program's first argument or file has the rest.
pub(crate) fn command_name(pid: u32) -> String {
    let short = process::name(pid).unwrap_or_default();
    if short.len() < 15 {
        return short;
    }
    let base = |path: &std::path::Path| Some(path.file_name()?.to_string_lossy().into_owned());
    let first = process::command_line(pid).ok().and_then(|words| base(std::path::Path::new(words.first()?)));
    let file = || process::executable(pid).ok().and_then(|path| base(&path));
    [first, file()].into_iter().flatten().find(|name| name.starts_with(&short)).unwrap_or(short)
}

/// Whether the process is an office suite, whose windows hold far more than they show.
pub(crate) fn is_office(pid: u32) -> bool {
    command_name(pid).starts_with("soffice")
}

/// The id of the application that a process belongs to.
pub(crate) fn application_id(pid: u32) -> Option<String> {
    let hints = process::application_hints(pid);
    let from_file = || {
        let file = hints.desktop_file.as_ref()?;
        Some(file.file_stem()?.to_string_lossy().into_owned())
    };
    hints.flatpak.clone().or_else(|| hints.unit.clone()).or_else(from_file).or_else(|| hints.snap.clone())
}

/// Where distributions keep the accessibility toolkit library.
const LIBRARY_FOLDERS: &[&str] =
    &["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "app/lib"];

/// Whether the process uses an ATK bridge of at-spi2-core 2.46 or later.
///
/// Earlier bridges (Ubuntu 22.04) end their application when `Action.GetActions` meets an action without a description.
/// Since 2.46 the bridge comes from one source with ATK, whose library carries the version in its file name
/// (`libatk-1.0.so.0.24609.1`). The library is looked up as the process sees it, so that sandboxes count. What cannot be
/// found out counts as old: the safe way costs a few calls.
pub(crate) fn has_current_atk_bridge(pid: u32) -> bool {
    LIBRARY_FOLDERS
        .iter()
        .filter_map(|folder| {
            std::fs::read_link(PathBuf::from(format!("/proc/{pid}/root/{folder}/libatk-1.0.so.0"))).ok()
        })
        .find_map(|target| atk_version(&target.to_string_lossy()))
        .is_some_and(|version| version >= 24_600)
}

fn atk_version(file: &str) -> Option<u32> {
    let name = file.rsplit('/').next()?;
    name.strip_prefix("libatk-1.0.so.0.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_in_the_name_of_the_library() {
        assert_eq!(atk_version("libatk-1.0.so.0.24609.1"), Some(24_609));
        assert_eq!(atk_version("/usr/lib/libatk-1.0.so.0.23609.1"), Some(23_609));
        assert_eq!(atk_version("libatk-1.0.so"), None);
    }
}
