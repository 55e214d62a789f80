//! The numbers of a summary.

use fullstroke_units::{SECTOR_BYTES, Sectors};
use serde::Serialize;
use std::collections::BTreeMap;

pub(super) const BYTES_PER_GIB: f64 = (1u64 << 30) as f64;

/// Distribution of a quantity, in the unit at the end of its field's name. Percentiles have three
/// correct digits; the other values are exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SummaryDistribution {
    /// Number of values.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Smallest value.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
}

/// Summary of the requests of one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationSummary {
    /// read, write, flush or discard.
    pub operation: &'static str,
    /// Number of requests.
    pub requests: u64,
    /// Share of all requests, from 0 to 1.
    pub share: f64,
    /// Data read, written or discarded.
    pub total_gib: f64,
    /// Sizes; `None` for flushes.
    pub size_kib: Option<SummaryDistribution>,
    /// Times from arrival to completion, if known.
    pub response_ms: Option<SummaryDistribution>,
}

/// Number of requests with and without a known completion. Responses, service times and queue
/// depths cover only requests with a known completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completions {
    /// Requests with a known completion.
    pub known: u64,
    /// Requests without a completion in the trace.
    pub unknown: u64,
    /// Requests with a completion that may belong to another request; it is not used.
    pub doubtful: u64,
}

/// Addresses of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AddressSummary {
    /// Lowest first sector of all requests except flushes.
    pub first_sector: u64,
    /// Highest sector of all requests, plus 1. This is the smallest volume that holds the trace.
    pub end_sector: u64,
    /// Distance from the first sector to the end.
    pub span_gib: f64,
    /// Number of different blocks of 4 KiB read or written; see `footprint_exact`.
    pub footprint_gib: f64,
    /// True if the footprint is exact: at most 131,072 regions of 256 KiB are touched. Otherwise it
    /// is an estimate from a sample of the regions. Of a request above 64 MiB only the first 64 MiB
    /// count.
    pub footprint_exact: bool,
    /// Standard error of the footprint, relative to the footprint.
    pub footprint_error: f64,
    /// Share of reads and writes, from 0 to 1, that begin at the sector behind the previous read or
    /// write of the same device.
    pub sequential_share: f64,
    /// Share of reads and writes, from 0 to 1, that begin at the sector behind one of the 32
    /// previous reads and writes of the same device.
    pub stream_share: f64,
}

/// Summary of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceSummary {
    /// File of the trace.
    pub file: String,
    /// Format of the trace.
    pub format: &'static str,
    /// Number of requests read.
    pub requests: u64,
    /// Number of damaged rows skipped.
    pub skipped_rows: u64,
    /// Number of requests with a known completion.
    pub completions: Completions,
    /// Problems of the trace, invisible in the figures, one sentence each.
    pub notes: Vec<String>,
    /// Time from the first arrival to the last.
    pub duration_s: f64,
    /// Requests per second of the duration; `None` if the duration is 0.
    pub iops: Option<f64>,
    /// Megabytes (10^6) read and written per second of the duration; `None` if the duration is 0.
    pub mb_per_s: Option<f64>,
    /// Operations with requests.
    pub operations: Vec<OperationSummary>,
    /// Number of requests of each device. Devices beyond the first 1,024 are left out.
    pub devices: BTreeMap<u32, u64>,
    /// Sizes of all requests except flushes.
    pub size_kib: Option<SummaryDistribution>,
    /// Addresses of the requests; `None` if the trace has none.
    #[serde(flatten)]
    pub addresses: Option<AddressSummary>,
    /// Times from one arrival to the next.
    pub interarrival_ms: Option<SummaryDistribution>,
    /// Times from arrival to completion, if known.
    pub response_ms: Option<SummaryDistribution>,
    /// Times from issue to completion, if known.
    pub service_ms: Option<SummaryDistribution>,
    /// Number of incomplete requests at each arrival, including the arriving one. Only requests
    /// with a known completion count.
    pub queue_depth: Option<SummaryDistribution>,
}

pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

pub(super) fn gib(sectors: Sectors) -> f64 {
    sectors.0 as f64 * SECTOR_BYTES as f64 / BYTES_PER_GIB
}
