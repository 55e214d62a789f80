//! Requests to the device: their number by purpose, and the calls that pay for them.

use crate::call_costs::CallCosts;
use fullstroke_programs::CallKind;

/// Number of requests to the device by purpose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestCounts {
    pub data: u64,
    pub metadata_reads: u64,
    pub metadata_writes: u64,
    pub log_writes: u64,
    pub flushes: u64,
}

/// The accounts of all requests.
#[derive(Debug, Default)]
pub(crate) struct RequestAccounts {
    costs: CallCosts,
    traffic: RequestCounts,
}

impl RequestAccounts {
    /// Returns the costs of calls.
    pub fn costs(&self) -> &CallCosts {
        &self.costs
    }

    /// Returns the number of requests by purpose.
    pub fn traffic(&self) -> RequestCounts {
        self.traffic
    }

    /// Counts a call.
    pub fn call(&mut self, kind: CallKind) {
        self.costs.call(kind);
    }

    /// Counts a read of data for a call of this kind.
    pub fn read_data(&mut self, kind: CallKind) {
        self.traffic.data += 1;
        self.costs.read(kind);
    }

    /// Counts a write of data.
    pub fn write_data(&mut self) {
        self.traffic.data += 1;
        self.costs.write(CallKind::Write);
    }

    /// Counts a read of metadata for a call of this kind.
    pub fn read_metadata(&mut self, kind: CallKind) {
        self.traffic.metadata_reads += 1;
        self.costs.read(kind);
    }

    /// Counts one write request for `pages` of metadata from `first` on.
    pub fn write_metadata(&mut self, first: u64, pages: u64) {
        self.traffic.metadata_writes += 1;
        self.costs.write_metadata(first, pages);
    }

    /// Counts a write to the log.
    pub fn write_log(&mut self) {
        self.traffic.log_writes += 1;
        self.costs.write_log();
    }

    /// Counts a flush.
    pub fn flush(&mut self) {
        self.traffic.flushes += 1;
    }

    /// Notes a change of a page of metadata by a call of this kind.
    pub fn dirty(&mut self, page: u64, kind: CallKind) {
        self.costs.dirty(page, kind);
    }

    /// Drops a page that is no longer metadata.
    pub fn forget(&mut self, page: u64) {
        self.costs.forget(page);
    }

    /// Closes a transaction: see [`CallCosts::close_transaction`].
    pub fn close_transaction(&mut self, kind: CallKind) {
        self.costs.close_transaction(kind);
    }
}
