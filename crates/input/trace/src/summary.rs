//! Summary of a trace.

mod collector;
mod recent;
mod spread;

use crate::{TraceError, TraceReader};
use collector::Collector;
use comfy_table::{CellAlignment, Table, presets};
use fullstroke_units::{SECTOR_BYTES, Sectors, three_digits};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Number of requests taken from the reader at a time. The batch stays in the first cache of a
/// processor while each statistic goes through the batch.
const BATCH: usize = 256;
const BYTES_PER_GIB: f64 = (1u64 << 30) as f64;

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

impl TraceSummary {
    /// Reads `reader` to its end and summarises it, in bounded memory.
    ///
    /// # Errors
    /// Fails if the trace cannot be read or parsed.
    pub fn of(reader: &mut TraceReader) -> Result<TraceSummary, TraceError> {
        let mut collector = Collector::default();
        let mut records = Vec::with_capacity(BATCH);
        // A second thread pays off, because parsing takes as long as the summary.
        reader.run_ahead();
        while reader.next_batch(&mut records, BATCH)? > 0 {
            collector.add(&records);
            records.clear();
        }
        reader.stop_ahead();
        Ok(collector.summary(reader))
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn without_addresses(remedy: &'static str) -> String {
    format!("the addresses of the requests are unknown, so the trace cannot be simulated: {remedy}")
}

fn gib(sectors: Sectors) -> f64 {
    sectors.0 as f64 * SECTOR_BYTES as f64 / BYTES_PER_GIB
}

impl fmt::Display for TraceSummary {
    /// Prints the summary as text. Programs use serde instead.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} requests ({})",
            self.file, self.requests, self.format
        )?;
        if self.skipped_rows > 0 {
            writeln!(f, "{} damaged rows were left out", self.skipped_rows)?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        writeln!(f)?;
        writeln!(f, "{}", self.facts())?;
        writeln!(f)?;
        write!(f, "{}", self.spreads())
    }
}

impl AddressSummary {
    fn facts(&self) -> [(&'static str, String); 3] {
        let (first, end) = (self.first_sector, self.end_sector);
        let exact = match self.footprint_exact {
            true => "exact".to_owned(),
            false => format!("estimated, ±{:.1} %", self.footprint_error * 100.0),
        };
        let (one, many) = (self.sequential_share * 100.0, self.stream_share * 100.0);
        [
            (
                "span",
                format!(
                    "{} GiB, sectors {first} to {end} (end excluded)",
                    three_digits(self.span_gib)
                ),
            ),
            (
                "footprint",
                format!(
                    "{} GiB in blocks of 4 KiB ({exact})",
                    three_digits(self.footprint_gib)
                ),
            ),
            (
                "sequential",
                format!(
                    "{one:.1} % follow the device's last request, {many:.1} % one of its last 32"
                ),
            ),
        ]
    }
}

impl TraceSummary {
    fn facts(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.add_row([
            "duration".to_owned(),
            format!("{} s", three_digits(self.duration_s)),
        ]);
        if let (Some(iops), Some(mb_per_s)) = (self.iops, self.mb_per_s) {
            table.add_row([
                "rate".to_owned(),
                format!(
                    "{} requests/s, {} MB/s",
                    three_digits(iops),
                    three_digits(mb_per_s)
                ),
            ]);
        }
        for operation in &self.operations {
            let share = operation.share * 100.0;
            let text = format!(
                "{} ({share:.1} %), {} GiB",
                operation.requests,
                three_digits(operation.total_gib)
            );
            table.add_row([operation.operation.to_owned(), text]);
        }
        for (name, text) in self.addresses.iter().flat_map(AddressSummary::facts) {
            table.add_row([name.to_owned(), text]);
        }
        let Completions {
            known,
            unknown,
            doubtful,
        } = self.completions;
        if known > 0 && unknown + doubtful > 0 {
            let share = share(known, self.requests) * 100.0;
            let text =
                format!("{known} known ({share:.1} %), {unknown} unknown, {doubtful} doubtful");
            table.add_row(["completions".to_owned(), text]);
        }
        table.add_row(["devices".to_owned(), self.devices.len().to_string()]);
        table.trim_fmt()
    }

    fn spreads(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["", "mean", "stddev", "min", "p50", "p90", "p99", "max"]);
        let mut add = |name: String, distribution: &Option<SummaryDistribution>| {
            let Some(d) = distribution else { return };
            let figures = [d.mean, d.stddev, d.min, d.p50, d.p90, d.p99, d.max];
            table.add_row(std::iter::once(name).chain(figures.map(three_digits)));
        };
        add("size KiB".to_owned(), &self.size_kib);
        for operation in &self.operations {
            add(format!("  {}", operation.operation), &operation.size_kib);
        }
        add("inter-arrival ms".to_owned(), &self.interarrival_ms);
        add("response ms".to_owned(), &self.response_ms);
        for operation in &self.operations {
            add(format!("  {}", operation.operation), &operation.response_ms);
        }
        add("service ms".to_owned(), &self.service_ms);
        add("queue depth".to_owned(), &self.queue_depth);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.trim_fmt()
    }
}

#[cfg(test)]
mod tests;
