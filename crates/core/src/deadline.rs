//! Deadlines: the moment by which an operation has to answer.
//!
//! One deadline is made per command and handed through every call. It is compared with a time that is handed in, so
//! that tests run on a clock of their own.

use std::time::{Duration, Instant};

/// A moment, and the budget it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Instant,
    budget: Duration,
}

impl Deadline {
    /// A deadline `budget` after `now`.
    pub fn after(now: Instant, budget: Duration) -> Deadline {
        Deadline { at: now + budget, budget }
    }

    /// The moment itself.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// The time that was given in the beginning.
    pub fn budget(&self) -> Duration {
        self.budget
    }

    /// What is left; zero when it has passed.
    pub fn remaining(&self, now: Instant) -> Duration {
        self.at.saturating_duration_since(now)
    }

    /// Whether the moment has come.
    pub fn has_passed(&self, now: Instant) -> bool {
        now >= self.at
    }

    /// The same deadline, or one `limit` after `now` if that is sooner.
    #[must_use]
    pub fn within(&self, now: Instant, limit: Duration) -> Deadline {
        if now + limit < self.at { Deadline::after(now, limit) } else { *self }
    }

    /// Milliseconds since the deadline was made.
    pub fn elapsed_ms(&self, now: Instant) -> u64 {
        (now + self.budget).saturating_duration_since(self.at).as_millis() as u64
    }
}
