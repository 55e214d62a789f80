//! The processor and the link: one user at a time, in the order of the requests.

use fullstroke_units::{Duration, Time};

/// The processor and the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resources {
    processor: Resource,
    link: Resource,
}

impl Default for Resources {
    fn default() -> Resources {
        Resources {
            processor: Resource::FREE,
            link: Resource::FREE,
        }
    }
}

impl Resources {
    /// Occupies the processor; see [`Resource::take`].
    pub(crate) fn process(&mut self, now: Time, span: Duration) -> ResourceUse {
        self.processor.take(now, span)
    }

    /// Occupies the link; see [`Resource::take`].
    pub(crate) fn carry(&mut self, now: Time, span: Duration) -> ResourceUse {
        self.link.take(now, span)
    }
}

/// A resource used by one command after another.
#[derive(Clone, Copy, Debug)]
struct Resource {
    free: Time,
}

/// Begin and end of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceUse {
    pub(crate) begins: Time,
    pub(crate) ends: Time,
}

impl Resource {
    const FREE: Resource = Resource { free: Time::ZERO };

    /// Returns the next use after a request at `now`. Requests must come in order of time.
    fn take(&mut self, now: Time, span: Duration) -> ResourceUse {
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
