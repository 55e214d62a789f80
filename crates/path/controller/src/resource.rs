//! The processor and the link: one user at a time, in order of asking.

use fullstroke_units::{Duration, Time};

/// A resource that is used by one command after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    free: Time,
}

/// When a use begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) begins: Time,
    pub(crate) ends: Time,
}

impl Resource {
    pub(crate) const FREE: Resource = Resource { free: Time::ZERO };

    /// The next use, asked for at `now`; askers come in order of time.
    pub(crate) fn take(&mut self, now: Time, span: Duration) -> Use {
        let begins = self.free.max(now);
        // A queue of users of a link of a byte a year may end after every run.
        self.free = begins.capped_add(span);
        Use {
            begins,
            ends: self.free,
        }
    }
}
