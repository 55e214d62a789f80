//! A client of the file server: its window, and its data that is not stable yet.

use std::collections::VecDeque;

/// The state of one client.
#[derive(Debug)]
pub(super) struct Client {
    /// Calls that wait for the window.
    waiting: VecDeque<u32>,
    /// Size of the window, and its used part: slots of NFS, credits of SMB.
    window: u64,
    used: u64,
    /// Number of completed unstable writes that no COMMIT has covered.
    unstable: u64,
}

impl Client {
    pub(super) fn new(window: u64) -> Client {
        Client {
            waiting: VecDeque::new(),
            window,
            used: 0,
            unstable: 0,
        }
    }

    /// Adds a call.
    pub(super) fn wait(&mut self, call: u32) {
        self.waiting.push_back(call);
    }

    /// Returns the next call.
    pub(super) fn first(&self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// Removes the next call for its transmission, if the window has room for `charge`. A call
    /// larger than the window goes alone.
    pub(super) fn send(&mut self, charge: u64) -> bool {
        // Otherwise a call that is longer than the window would wait for ever.
        let fits = self.used == 0 || self.used + charge <= self.window;
        if fits {
            self.used += charge;
            self.waiting.pop_front();
        }
        fits
    }

    /// Notes the reply of a call.
    pub(super) fn received(&mut self, charge: u64) {
        assert!(
            self.used >= charge,
            "a reply of {charge} comes, and {} of the window are used",
            self.used
        );
        self.used -= charge;
    }

    /// Returns the number of unstable writes.
    pub(super) fn unstable(&self) -> u64 {
        self.unstable
    }

    /// Notes the reply of an unstable write.
    pub(super) fn wrote(&mut self) {
        self.unstable += 1;
    }

    /// Notes the reply of a COMMIT of `covered` writes.
    pub(super) fn committed(&mut self, covered: u64) {
        self.unstable = self.unstable.saturating_sub(covered);
    }
}
