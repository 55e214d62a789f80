//! The processor and the link: one user at a time, in the order of the requests.

use fullstroke_units::{Duration, Time};

/// A resource used by one command after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    free: Time,
}

/// Begin and end of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceUse {
    pub(crate) begins: Time,
    pub(crate) ends: Time,
}

impl Resource {
    pub(crate) const FREE: Resource = Resource { free: Time::ZERO };

    /// Returns the next use after a request at `now`. Requests must come in order of time.
    pub(crate) fn take(&mut self, now: Time, span: Duration) -> ResourceUse {
        let begins = self.free.max(now);
        // A queue of users of a very slow link, such as one byte a year, may end after every run.
        // The addition is therefore capped.
        self.free = begins.capped_add(span);
        ResourceUse {
            begins,
            ends: self.free,
        }
    }
}
