//! Processes, as far as reading needs them.

/// Whether the process is stopped.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

/// The kernel's name for the process.
pub(crate) fn command_name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// Proof that a process is the same later.
pub fn process_instance(pid: u32) -> std::io::Result<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = text.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)).unwrap_or("0").to_owned();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(format!("linux:{}:{ticks}", boot.trim()))
}
/// To come.
pub(crate) fn application_id(_pid: u32) -> Option<String> { None }
/// To come.
pub(crate) fn has_current_atk_bridge(_pid: u32) -> bool { true }
/// To come.
pub(crate) fn kill(_pid: u32, _instance: Option<&str>) -> std::io::Result<()> { Ok(()) }
/// To come.
pub(crate) fn terminate(_pid: u32, _instance: Option<&str>) -> std::io::Result<()> { Ok(()) }
