//! What calls cost in requests to the device.
//!
//! A read is charged to the call that had it made. Data that are written back are
//! charged to writes; a page of metadata to the call that made it dirty first since
//! it was last written, in its share of the request; the log to the calls whose
//! changes are in it, by their number.

use fullstroke_programs::CallKind;
use std::collections::BTreeMap;

/// Requests, of which a call has shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    pub reads: f64,
    pub writes: f64,
}

/// Costs by kind of call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bill {
    costs: [Cost; CallKind::ALL.len()],
    calls: [u64; CallKind::ALL.len()],
    /// Who made a page of metadata dirty.
    dirtied: BTreeMap<u64, CallKind>,
    /// Changes by kind since the last transaction was closed.
    changes: [u64; CallKind::ALL.len()],
    /// The same of the one that is being written to the log.
    logged: [u64; CallKind::ALL.len()],
}

impl Bill {
    pub fn of(&self, kind: CallKind) -> Cost {
        self.costs[kind as usize]
    }

    /// Calls of a kind that were made.
    pub fn calls(&self, kind: CallKind) -> u64 {
        self.calls[kind as usize]
    }

    /// A call is made.
    pub fn call(&mut self, kind: CallKind) {
        self.calls[kind as usize] += 1;
    }

    /// A request that reads for a call of a kind.
    pub fn read(&mut self, kind: CallKind) {
        self.costs[kind as usize].reads += 1.0;
    }

    /// A request that writes.
    pub fn write(&mut self, kind: CallKind) {
        self.costs[kind as usize].writes += 1.0;
    }

    /// Metadata pages of the device are written with one request.
    pub fn write_metadata(&mut self, first: u64, pages: u64) {
        for page in first..first + pages {
            let kind = self.dirtied.remove(&page).unwrap_or(CallKind::Write);
            self.costs[kind as usize].writes += 1.0 / pages as f64;
        }
    }

    /// A call changes a page of metadata.
    pub fn dirty(&mut self, page: u64, kind: CallKind) {
        self.dirtied.entry(page).or_insert(kind);
        self.changes[kind as usize] += 1;
    }

    /// A page need not be written any more.
    pub fn forget(&mut self, page: u64) {
        self.dirtied.remove(&page);
    }

    /// A transaction is closed: what follows is charged to those in it, or, if nobody
    /// is, to `kind`.
    pub fn close_transaction(&mut self, kind: CallKind) {
        self.logged = std::mem::take(&mut self.changes);
        if self.logged.iter().all(|&changes| changes == 0) {
            self.logged[kind as usize] = 1;
        }
    }

    /// The log is written.
    pub fn write_log(&mut self) {
        let all: u64 = self.logged.iter().sum();
        debug_assert!(all > 0, "the log is written for no call");
        for kind in CallKind::ALL {
            self.costs[kind as usize].writes +=
                self.logged[kind as usize] as f64 / all.max(1) as f64;
        }
    }
}
