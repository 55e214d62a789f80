//! One successful read or write, and rates.

use fullstroke_units::{SECTOR_BYTES, Time};

/// Operations with data transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationClass {
    Read = 0,
    Write = 1,
}

/// Index of the transfer time in [`CompletedSample::parts`].
pub(crate) const TRANSFER: usize = 5;

/// One successful read or write; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedSample {
    pub(crate) response: u64,
    /// Queue, parity, overhead, seek, rotation, transfer.
    pub(crate) parts: [u64; 6],
    pub(crate) sectors: u64,
    pub(crate) finished: Time,
}

/// Returns `amount` per second; zero for a run without duration.
pub(crate) fn rate(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// Returns megabytes (10^6) per second.
pub(crate) fn megabytes(sectors: u64, seconds: f64) -> f64 {
    rate(sectors as f64 * SECTOR_BYTES as f64 / 1e6, seconds)
}
