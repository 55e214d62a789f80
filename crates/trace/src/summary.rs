//! What a trace is like.

use crate::footprint::Footprint;
use crate::{Record, TraceError, TraceReader};
use comfy_table::{CellAlignment, Table, presets};
use fullstroke_contract::Operation;
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;

/// Devices that are told apart.
const DEVICES_MAX: usize = 1024;
/// Requests to a device whose ends a request may continue.
const STREAMS_MAX: usize = 32;
/// Requests in flight that are kept track of.
const IN_FLIGHT_MAX: usize = 1 << 16;
/// Significant digits of percentiles.
const DIGITS: u8 = 3;
/// Larger values than this (36 years in ns) count as it in percentiles.
const VALUE_MAX: u64 = 1 << 60;
const BYTES_PER_KIB: f64 = 1024.0;
const BYTES_PER_GIB: f64 = (1u64 << 30) as f64;

/// The spread of a quantity, in the unit that its field's name ends in.
/// Percentiles are right to three digits; the rest is exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// How many values there were.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub stddev: f64,
    /// The smallest.
    pub min: f64,
    /// Half of them are not above this.
    pub p50: f64,
    /// 90 % of them are not above this.
    pub p90: f64,
    /// 99 % of them are not above this.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// The requests of one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationSummary {
    /// read, write, flush or discard.
    pub operation: &'static str,
    /// How many there were.
    pub requests: u64,
    /// As a share of all requests, from 0 to 1.
    pub share: f64,
    /// What they moved or discarded.
    pub total_gib: f64,
    /// Their sizes; `None` for flushes.
    pub size_kib: Option<Distribution>,
    /// From arrival to completion, where it is known.
    pub response_ms: Option<Distribution>,
}

/// Of how many requests the completion is known. What is said of responses, of
/// service and of the queue's depth holds for these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completions {
    /// It is known.
    pub known: u64,
    /// The trace does not have it.
    pub unknown: u64,
    /// The trace has one which may be another request's; it is not used.
    pub doubtful: u64,
}

/// Where a trace's requests are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Addresses {
    /// The lowest first sector of any request that is no flush.
    pub first_sector: u64,
    /// The highest sector of any request, plus 1: the least volume that holds the trace.
    pub end_sector: u64,
    /// From the first sector to the end.
    pub span_gib: f64,
    /// Different blocks of 4 KiB that were read or written; see `footprint_exact`.
    pub footprint_gib: f64,
    /// Whether the footprint is exact (up to 65,536 blocks), or an estimate
    /// with a standard error of 0.8 %. Of a request above 64 MiB only the
    /// first 64 MiB count.
    pub footprint_exact: bool,
    /// Share of the reads and writes, from 0 to 1, that begin at the sector
    /// behind the previous read or write of the same device.
    pub sequential_share: f64,
    /// Share of the reads and writes, from 0 to 1, that begin at the sector
    /// behind one of the 32 previous reads and writes of the same device.
    pub stream_share: f64,
}

/// What a trace is like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The trace's file.
    pub file: String,
    /// Its format.
    pub format: &'static str,
    /// Requests read.
    pub requests: u64,
    /// Damaged rows that were left out.
    pub skipped_rows: u64,
    /// Of how many requests the completion is known.
    pub completions: Completions,
    /// What is wrong with the trace that the figures do not tell; a sentence each.
    pub notes: Vec<String>,
    /// From the first arrival to the last.
    pub duration_s: f64,
    /// Requests per second of the duration; `None` if it is 0.
    pub iops: Option<f64>,
    /// Megabytes (10^6) read and written per second of the duration; `None` if it is 0.
    pub mb_per_s: Option<f64>,
    /// Each operation that occurs.
    pub operations: Vec<OperationSummary>,
    /// Requests of each device. Beyond 1,024 devices further ones are left out.
    pub devices: BTreeMap<u32, u64>,
    /// Sizes of all requests that are no flushes.
    pub size_kib: Option<Distribution>,
    /// Where the requests are; `None` if the trace does not tell.
    #[serde(flatten)]
    pub addresses: Option<Addresses>,
    /// From one arrival to the next.
    pub interarrival_ms: Option<Distribution>,
    /// From arrival to completion, where it is known.
    pub response_ms: Option<Distribution>,
    /// From issue to completion, where it is known.
    pub service_ms: Option<Distribution>,
    /// Requests that are not complete when one arrives, itself included; of
    /// those whose completion is known.
    pub queue_depth: Option<Distribution>,
}

impl Summary {
    /// Reads `reader` to its end and sums it up, in bounded memory.
    ///
    /// # Errors
    /// If the trace cannot be read or understood.
    pub fn of(reader: &mut TraceReader) -> Result<Summary, TraceError> {
        let mut collector = Collector::default();
        while let Some(record) = reader.next()? {
            collector.add(&record);
        }
        Ok(collector.summary(reader))
    }
}

/// Values of one quantity as they come.
struct Spread {
    histogram: Option<Histogram<u64>>,
    count: u64,
    mean: f64,
    /// Sum of squared differences from the mean (B. Welford, Technometrics 1962).
    squares: f64,
    min: u64,
    max: u64,
}

impl Default for Spread {
    fn default() -> Spread {
        // Creation fails only for digits above 5.
        Spread {
            histogram: Histogram::new(DIGITS).ok(),
            count: 0,
            mean: 0.0,
            squares: 0.0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Spread {
    fn add(&mut self, value: u64) {
        if let Some(histogram) = &mut self.histogram {
            // It grows as needed; that fails for no value up to the greatest.
            let recorded = histogram.record(value.min(VALUE_MAX));
            debug_assert!(recorded.is_ok(), "{value}");
        }
        self.count += 1;
        let from_mean = value as f64 - self.mean;
        self.mean += from_mean / self.count as f64;
        self.squares += from_mean * (value as f64 - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// `None` if there was no value; else all figures times `unit`.
    fn distribution(&self, unit: f64) -> Option<Distribution> {
        let histogram = self.histogram.as_ref().filter(|_| self.count > 0)?;
        let quantile =
            |share: f64| histogram.value_at_quantile(share).clamp(self.min, self.max) as f64 * unit;
        Some(Distribution {
            count: self.count,
            mean: self.mean * unit,
            stddev: (self.squares / self.count as f64).sqrt() * unit,
            min: self.min as f64 * unit,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: self.max as f64 * unit,
        })
    }
}

#[derive(Default)]
struct OperationCollector {
    requests: u64,
    sectors: u128,
    sizes: Spread,
    responses: Spread,
}

/// One device's recent past.
#[derive(Default)]
struct Device {
    requests: u64,
    /// The ends of the latest reads and writes, latest last.
    ends: VecDeque<u64>,
}

struct Collector {
    requests: u64,
    operations: BTreeMap<Operation, OperationCollector>,
    devices: BTreeMap<u32, Device>,
    first_arrival: Option<Time>,
    last_arrival: Time,
    first_sector: u64,
    end_sector: u64,
    footprint: Footprint,
    transfers: u64,
    sequential: u64,
    streaming: u64,
    sizes: Spread,
    interarrivals: Spread,
    responses: Spread,
    services: Spread,
    depths: Spread,
    /// Completions that lie ahead, earliest first.
    in_flight: BinaryHeap<Reverse<Time>>,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector {
            requests: 0,
            operations: BTreeMap::new(),
            devices: BTreeMap::new(),
            first_arrival: None,
            last_arrival: Time::ZERO,
            first_sector: u64::MAX,
            end_sector: 0,
            footprint: Footprint::new(),
            transfers: 0,
            sequential: 0,
            streaming: 0,
            sizes: Spread::default(),
            interarrivals: Spread::default(),
            responses: Spread::default(),
            services: Spread::default(),
            depths: Spread::default(),
            in_flight: BinaryHeap::new(),
        }
    }
}

impl Collector {
    fn add(&mut self, record: &Record) {
        self.requests += 1;
        self.add_arrival(record.arrival);
        self.add_operation(record);
        if record.operation != Operation::Flush {
            self.first_sector = self.first_sector.min(record.extent.start.0);
            self.end_sector = self.end_sector.max(record.extent.end().0);
            self.sizes.add(record.extent.sectors.0);
        }
        if record.operation.transfers() {
            self.footprint.add(record.device, record.extent);
        }
        self.add_place(record);
        self.add_completion(record);
    }

    fn add_arrival(&mut self, arrival: Time) {
        if self.first_arrival.is_some() {
            self.interarrivals.add(arrival.since(self.last_arrival).as_nanos());
        }
        self.first_arrival.get_or_insert(arrival);
        self.last_arrival = arrival;
    }

    fn add_operation(&mut self, record: &Record) {
        let operation = self.operations.entry(record.operation).or_default();
        operation.requests += 1;
        operation.sectors += u128::from(record.extent.sectors.0);
        if record.operation != Operation::Flush {
            operation.sizes.add(record.extent.sectors.0);
        }
        if let Some(response) = record.response() {
            operation.responses.add(response.as_nanos());
        }
    }

    /// Whether the request goes on where an earlier one of its device ended.
    fn add_place(&mut self, record: &Record) {
        let known = self.devices.contains_key(&record.device) || self.devices.len() < DEVICES_MAX;
        self.transfers += u64::from(record.operation.transfers());
        if !known {
            return;
        }
        let device = self.devices.entry(record.device).or_default();
        device.requests += 1;
        if !record.operation.transfers() {
            return;
        }
        let start = record.extent.start.0;
        self.sequential += u64::from(device.ends.back() == Some(&start));
        self.streaming += u64::from(device.ends.contains(&start));
        if device.ends.len() == STREAMS_MAX {
            device.ends.pop_front();
        }
        device.ends.push_back(record.extent.end().0);
    }

    fn add_completion(&mut self, record: &Record) {
        while self.in_flight.peek().is_some_and(|&Reverse(completion)| completion <= record.arrival) {
            self.in_flight.pop();
        }
        let nanos = |span: Option<Duration>| span.map(Duration::as_nanos);
        if let Some(service) = nanos(record.service()) {
            self.services.add(service);
        }
        if let (Some(response), Some(completed)) = (nanos(record.response()), record.completed) {
            self.responses.add(response);
            if self.in_flight.len() == IN_FLIGHT_MAX {
                self.in_flight.pop();
            }
            self.in_flight.push(Reverse(completed));
            self.depths.add(self.in_flight.len() as u64);
        }
    }

    fn addresses(&self) -> Addresses {
        let first_sector = self.first_sector.min(self.end_sector);
        Addresses {
            first_sector,
            end_sector: self.end_sector,
            span_gib: gib(Sectors(self.end_sector - first_sector)),
            footprint_gib: self.footprint.bytes() / BYTES_PER_GIB,
            footprint_exact: self.footprint.is_exact(),
            sequential_share: share(self.sequential, self.transfers),
            stream_share: share(self.streaming, self.transfers),
        }
    }

    fn summary(self, reader: &TraceReader) -> Summary {
        const MILLISECONDS: f64 = 1e-6;
        let kib = SECTOR_BYTES as f64 / BYTES_PER_KIB;
        let duration = self.last_arrival.since(self.first_arrival.unwrap_or_default());
        let rate = |amount: f64| (duration > Duration::ZERO).then(|| amount / duration.as_secs_f64());
        let moved: u128 = self
            .operations
            .iter()
            .filter(|(operation, _)| operation.transfers())
            .map(|(_, collector)| collector.sectors)
            .sum();
        let known = self.responses.count;
        let doubtful = reader.doubtful().min(self.requests - known);
        let notes = reader.notes().into_iter().chain(reader.lacks_addresses().map(without_addresses));
        Summary {
            file: reader.file().to_owned(),
            format: reader.format().name,
            requests: self.requests,
            skipped_rows: reader.skipped(),
            completions: Completions { known, unknown: self.requests - known - doubtful, doubtful },
            notes: notes.collect(),
            duration_s: duration.as_secs_f64(),
            iops: rate(self.requests as f64),
            mb_per_s: rate(moved as f64 * SECTOR_BYTES as f64 / 1e6),
            operations: self
                .operations
                .iter()
                .map(|(&operation, collector)| OperationSummary {
                    operation: operation.name(),
                    requests: collector.requests,
                    share: share(collector.requests, self.requests),
                    total_gib: collector.sectors as f64 * SECTOR_BYTES as f64 / BYTES_PER_GIB,
                    size_kib: collector.sizes.distribution(kib),
                    response_ms: collector.responses.distribution(MILLISECONDS),
                })
                .collect(),
            devices: self.devices.iter().map(|(&number, device)| (number, device.requests)).collect(),
            size_kib: self.sizes.distribution(kib),
            addresses: reader.lacks_addresses().is_none().then(|| self.addresses()),
            interarrival_ms: self.interarrivals.distribution(MILLISECONDS),
            response_ms: self.responses.distribution(MILLISECONDS),
            service_ms: self.services.distribution(MILLISECONDS),
            queue_depth: self.depths.distribution(1.0),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn without_addresses(remedy: &'static str) -> String {
    format!("the addresses of the requests are not known, so that they cannot be simulated: {remedy}")
}

fn gib(sectors: Sectors) -> f64 {
    sectors.0 as f64 * SECTOR_BYTES as f64 / BYTES_PER_GIB
}

impl fmt::Display for Summary {
    /// For people; for programs there is serde.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} requests ({})", self.file, self.requests, self.format)?;
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

impl Addresses {
    fn facts(&self) -> [(&'static str, String); 3] {
        let (first, end) = (self.first_sector, self.end_sector);
        let exact = if self.footprint_exact { "exact" } else { "estimated, ±0.8 %" };
        let (one, many) = (self.sequential_share * 100.0, self.stream_share * 100.0);
        [
            ("span", format!("{:.3} GiB, sectors {first} to {end} (end excluded)", self.span_gib)),
            ("footprint", format!("{:.3} GiB in blocks of 4 KiB ({exact})", self.footprint_gib)),
            (
                "sequential",
                format!("{one:.1} % follow the device's last request, {many:.1} % one of its last 32"),
            ),
        ]
    }
}

impl Summary {
    fn facts(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.add_row(["duration".to_owned(), format!("{:.3} s", self.duration_s)]);
        if let (Some(iops), Some(mb_per_s)) = (self.iops, self.mb_per_s) {
            table.add_row(["rate".to_owned(), format!("{iops:.1} requests/s, {mb_per_s:.3} MB/s")]);
        }
        for operation in &self.operations {
            let share = operation.share * 100.0;
            let text = format!("{} ({share:.1} %), {:.3} GiB", operation.requests, operation.total_gib);
            table.add_row([operation.operation.to_owned(), text]);
        }
        for (name, text) in self.addresses.iter().flat_map(Addresses::facts) {
            table.add_row([name.to_owned(), text]);
        }
        let Completions { known, unknown, doubtful } = self.completions;
        if known > 0 && unknown + doubtful > 0 {
            let share = share(known, self.requests) * 100.0;
            let text = format!("{known} known ({share:.1} %), {unknown} unknown, {doubtful} doubtful");
            table.add_row(["completions".to_owned(), text]);
        }
        table.add_row(["devices".to_owned(), self.devices.len().to_string()]);
        table.trim_fmt()
    }

    fn spreads(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["", "mean", "stddev", "min", "p50", "p90", "p99", "max"]);
        let mut add = |name: String, distribution: &Option<Distribution>| {
            let Some(d) = distribution else { return };
            let figures = [d.mean, d.stddev, d.min, d.p50, d.p90, d.p99, d.max];
            table.add_row(std::iter::once(name).chain(figures.map(|figure| format!("{figure:.3}"))));
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
