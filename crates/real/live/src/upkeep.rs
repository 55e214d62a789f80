//! The times of the regular work of a server: tidying the stores, and looking for idle clients.

use std::time::{Duration, Instant};

/// Longest time between two turns of upkeep.
pub(crate) const IDLE_POLL: Duration = Duration::from_secs(1);
/// Time at the end in which requests in flight are finished at the world's pace; then without
/// waiting.
const DRAIN: Duration = Duration::from_secs(10);

/// The times of regular work, counted from the begin of the server.
pub(crate) struct Upkeep {
    began: Instant,
    tidy_at: Duration,
    sweep_at: Duration,
}

impl Upkeep {
    /// Begins now.
    pub(crate) fn begin() -> Upkeep {
        Upkeep {
            began: Instant::now(),
            tidy_at: IDLE_POLL,
            sweep_at: IDLE_POLL,
        }
    }

    /// Returns the time since the begin.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the time until stores are to be tidied.
    pub(crate) fn until_tidy(&self) -> Duration {
        self.tidy_at.saturating_sub(self.elapsed())
    }

    /// Returns the present if stores are to be tidied now.
    pub(crate) fn tidy_due(&mut self) -> Option<Duration> {
        let now = self.elapsed();
        let due = now >= self.tidy_at;
        if due {
            self.tidy_at = now + IDLE_POLL;
        }
        due.then_some(now)
    }

    /// Tidies again soon after work that began at `began`. Half of the time belongs to the clients.
    pub(crate) fn tidy_again(&mut self, began: Duration) {
        let ended = self.elapsed();
        self.tidy_at = ended + (ended - began);
    }

    /// Returns true if idle clients are to be looked for now.
    pub(crate) fn sweep_due(&mut self) -> bool {
        let now = self.elapsed();
        let due = now >= self.sweep_at;
        if due {
            self.sweep_at = now + IDLE_POLL;
        }
        due
    }
}

/// The end of a server.
#[derive(Default)]
pub(crate) struct Ending {
    since: Option<Instant>,
    hurrying: bool,
}

impl Ending {
    /// Returns true if no more requests begin.
    pub(crate) fn has_begun(&self) -> bool {
        self.since.is_some()
    }

    /// Returns the time since no more requests begin.
    pub(crate) fn lasts(&self) -> Option<Duration> {
        self.since.map(|since| since.elapsed())
    }

    /// Begins no more requests.
    pub(crate) fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Finishes requests in flight without waiting for the world's time.
    pub(crate) fn hurry(&mut self) {
        self.hurrying = true;
    }

    /// Hurries if the time for requests at the world's pace is over.
    pub(crate) fn hurry_if_late(&mut self) {
        self.hurrying |= self.lasts().is_some_and(|time| time >= DRAIN);
    }

    /// Returns true if requests in flight are finished without waiting for the world's time.
    pub(crate) fn is_hurrying(&self) -> bool {
        self.hurrying
    }
}
