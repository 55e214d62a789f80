//! Cost of calls in requests to the device.
//!
//! A read is charged to its call. A write-back of data is charged to writes. A request for metadata
//! pages is charged in equal shares: for each page, to the call of its first change since its last
//! write. A write to the log is charged to the calls with changes in the log, in proportion to
//! their changes.

use fullstroke_programs::CallKind;
use std::collections::BTreeMap;

/// Number of requests. A call may have a share of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RequestShare {
    pub reads: f64,
    pub writes: f64,
}

/// Costs by kind of call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCosts {
    costs: [RequestShare; CallKind::ALL.len()],
    calls: [u64; CallKind::ALL.len()],
    /// For each dirty metadata page, the kind of call of its first change.
    dirtied: BTreeMap<u64, CallKind>,
    /// Number of changes by kind since the last transaction was closed.
    changes: [u64; CallKind::ALL.len()],
    /// Number of changes by kind in the transaction on its way to the log.
    logged: [u64; CallKind::ALL.len()],
}

impl CallCosts {
    pub fn of(&self, kind: CallKind) -> RequestShare {
        self.costs[kind as usize]
    }

    /// Returns the number of calls of a kind.
    pub fn calls(&self, kind: CallKind) -> u64 {
        self.calls[kind as usize]
    }

    /// Counts a call.
    pub fn call(&mut self, kind: CallKind) {
        self.calls[kind as usize] += 1;
    }

    /// Counts a read request for a call of this kind.
    pub fn read(&mut self, kind: CallKind) {
        self.costs[kind as usize].reads += 1.0;
    }

    /// Counts a write request.
    pub fn write(&mut self, kind: CallKind) {
        self.costs[kind as usize].writes += 1.0;
    }

    /// Counts one write request for metadata pages.
    pub fn write_metadata(&mut self, first: u64, pages: u64) {
        for page in first..first + pages {
            let kind = self.dirtied.remove(&page).unwrap_or(CallKind::Write);
            self.costs[kind as usize].writes += 1.0 / pages as f64;
        }
    }

    /// Records a change of a metadata page by a call.
    pub fn dirty(&mut self, page: u64, kind: CallKind) {
        self.dirtied.entry(page).or_insert(kind);
        self.changes[kind as usize] += 1;
    }

    /// Forgets a page without a write.
    pub fn forget(&mut self, page: u64) {
        self.dirtied.remove(&page);
    }

    /// Closes a transaction. Later writes of the log are charged to the calls in the transaction,
    /// or to `kind` if there are none.
    pub fn close_transaction(&mut self, kind: CallKind) {
        self.logged = std::mem::take(&mut self.changes);
        if self.logged.iter().all(|&changes| changes == 0) {
            self.logged[kind as usize] = 1;
        }
    }

    /// Counts a write to the log.
    pub fn write_log(&mut self) {
        let all: u64 = self.logged.iter().sum();
        debug_assert!(all > 0, "the log is written for no call");
        for kind in CallKind::ALL {
            self.costs[kind as usize].writes +=
                self.logged[kind as usize] as f64 / all.max(1) as f64;
        }
    }
}
