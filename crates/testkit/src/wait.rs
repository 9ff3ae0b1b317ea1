//! Waiting for something another process does: poll, and say what was missing when time is up.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);

/// Polls until `look` gives something; panics with `what` at the limit.
#[track_caller]
pub fn wait_for<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(PAUSE);
    }
}

/// Polls until `holds` is true; panics with `what` at the limit.
#[track_caller]
pub fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    wait_for(what, limit, || holds().then_some(()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_what_was_found() {
        let mut left = 3;
        let found = wait_for("the third look", Duration::from_secs(5), || {
            left -= 1;
            (left == 0).then_some("here")
        });
        assert_eq!(found, "here");
    }

    #[test]
    #[should_panic(expected = "a miracle: not within 50ms")]
    fn says_what_was_missing() {
        wait_until("a miracle", Duration::from_millis(50), || false);
    }
}
