//! Signals that would end the process while it holds keys or buttons, put off until those are released.
//!
//! The server keeps down what a dead client pressed. So the signals that people and supervisors end a command with are
//! blocked while input is being sent; a descriptor says that one has come, the input breaks off and lets go, and then
//! the signals are let through: the process ends as it would have ended at once. Outside of input nothing is blocked.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What breaks input off.
const ENDING: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];

/// Signals are put off until this is dropped.
#[derive(Debug)]
pub(crate) struct Deferred {
    before: Option<SigSet>,
    arrivals: Option<SignalFd>,
}

impl Deferred {
    /// Begins to put them off, in this thread.
    pub(crate) fn start() -> Deferred {
        let ignored = ignored();
        let blocked = SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty());
        // What is ignored (`nohup`), or blocked by whoever started us, does not end the process: no reason to break off.
        let watched: SigSet = ENDING
            .into_iter()
            .filter(|signal| !blocked.contains(*signal) && ignored & (1 << (*signal as u32 - 1)) == 0)
            .collect();
        let arrivals = SignalFd::with_flags(&watched, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).ok();
        let mut held = watched;
        // A key that is down while the process sleeps in a shell's background would repeat without end.
        held.add(Signal::SIGTSTP);
        Deferred { before: held.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok(), arrivals }
    }

    /// Readable once a signal has come. `None`: nobody can be told, the signals wait all the same.
    pub(crate) fn arrivals(&self) -> Option<BorrowedFd<'_>> {
        self.arrivals.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        // The signal was not read from the descriptor, so it is still on its way, and is delivered in here.
        if let Some(before) = &self.before {
            let _ = before.thread_set_mask();
        }
    }
}

/// Keeps every signal away from this thread. For threads that run beside the one that sends input: a signal for the
/// process is given to any thread that takes it.
pub(crate) fn leave_to_others() {
    let _ = SigSet::all().thread_block();
}

/// The signals that are ignored, a bit each. Nothing safe asks for that without changing it.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_comes_back() {
        let before = SigSet::thread_get_mask().unwrap();
        let deferred = Deferred::start();
        assert!(SigSet::thread_get_mask().unwrap().contains(Signal::SIGTERM));
        drop(deferred);
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }

    #[test]
    fn a_signal_that_is_blocked_already_does_not_break_off() {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGHUP);
        mask.thread_block().unwrap();
        let deferred = Deferred::start();
        nix::sys::signal::raise(Signal::SIGHUP).unwrap();
        let arrivals = deferred.arrivals().unwrap();
        let mut polled = [rustix::event::PollFd::from_borrowed_fd(arrivals, rustix::event::PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut polled, Some(&now)), Ok(0));
        drop(deferred);
        // Taken from the queue, or it would end the test.
        assert_eq!(mask.wait(), Ok(Signal::SIGHUP));
    }
}
