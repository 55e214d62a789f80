//! Statistics of requests, updated with each request.

use super::numbers::{
    AddressSummary, BYTES_PER_GIB, Completions, OperationSummary, TraceSummary, gib, share,
};
use super::recent::RecentEnds;
use super::spread::QuantityDistribution;
use crate::footprint::Footprint;
use crate::{TraceReader, TraceRecord};
use fullstroke_contract::Operation;
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time, map_of};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};

/// Largest number of devices with separate statistics.
const DEVICES_MAX: usize = 1024;
/// Largest number of tracked requests in flight.
const IN_FLIGHT_MAX: usize = 1 << 16;
const BYTES_PER_KIB: f64 = 1024.0;

/// Statistics of the requests of one operation.
#[derive(Default)]
struct OperationCollector {
    requests: u64,
    sectors: u128,
    sizes: QuantityDistribution,
    responses: QuantityDistribution,
}

/// Recent past of one device.
#[derive(Default)]
struct DeviceHistory {
    requests: u64,
    ends: RecentEnds,
}

impl DeviceHistory {
    /// Adds requests of this device. Returns the number of reads and writes that continue the
    /// latest one, and the number of those that continue one of the latest.
    fn add(&mut self, records: &[TraceRecord]) -> (u64, u64) {
        self.requests += records.len() as u64;
        let (mut sequential, mut streaming) = (0, 0);
        for record in records {
            if record.operation.transfers() {
                let (latest, any) = self.ends.continued(record.extent.start.0);
                sequential += u64::from(latest);
                streaming += u64::from(any);
                self.ends.push(record.extent.end().0);
            }
        }
        (sequential, streaming)
    }
}

/// Statistics of the addresses of requests.
struct AddressCollector {
    first_sector: u64,
    end_sector: u64,
    footprint: Footprint,
    /// Requests that continue the latest of their device, and one of the latest.
    sequential: u64,
    streaming: u64,
}

impl AddressCollector {
    fn new() -> AddressCollector {
        AddressCollector {
            first_sector: u64::MAX,
            end_sector: 0,
            footprint: Footprint::new(),
            sequential: 0,
            streaming: 0,
        }
    }

    /// Adds the addresses of requests.
    fn add(&mut self, records: &[TraceRecord]) {
        let (mut first, mut end) = (self.first_sector, self.end_sector);
        for record in records {
            // A flush has no addresses.
            if record.operation != Operation::Flush {
                first = first.min(record.extent.start.0);
                end = end.max(record.extent.end().0);
            }
            if record.operation.transfers() {
                self.footprint.add(record.device, record.extent);
            }
        }
        (self.first_sector, self.end_sector) = (first, end);
    }

    /// Returns the summary of `transfers` reads and writes.
    fn summary(&mut self, transfers: u64) -> AddressSummary {
        // Without addresses, the first sector is still `u64::MAX`.
        let first_sector = self.first_sector.min(self.end_sector);
        AddressSummary {
            first_sector,
            end_sector: self.end_sector,
            span_gib: gib(Sectors(self.end_sector - first_sector)),
            footprint_gib: self.footprint.bytes() / BYTES_PER_GIB,
            footprint_exact: self.footprint.is_exact(),
            footprint_error: self.footprint.error(),
            sequential_share: share(self.sequential, transfers),
            stream_share: share(self.streaming, transfers),
        }
    }
}

/// Statistics of the requests so far.
pub(super) struct Collector {
    requests: u64,
    operations: [OperationCollector; Operation::ALL.len()],
    devices: Vec<DeviceHistory>,
    /// Index of each device in `devices`.
    numbers: BTreeMap<u32, usize>,
    /// Device of the latest request with its index. A shortcut, because the next request most often
    /// has the same device.
    latest: Option<(u32, usize)>,
    first_arrival: Option<Time>,
    last_arrival: Time,
    addresses: AddressCollector,
    interarrivals: QuantityDistribution,
    services: QuantityDistribution,
    depths: QuantityDistribution,
    /// Future completions, earliest first.
    in_flight: BinaryHeap<Reverse<Time>>,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector {
            requests: 0,
            operations: Default::default(),
            devices: Vec::new(),
            numbers: BTreeMap::new(),
            latest: None,
            first_arrival: None,
            last_arrival: Time::ZERO,
            addresses: AddressCollector::new(),
            interarrivals: QuantityDistribution::default(),
            services: QuantityDistribution::default(),
            depths: QuantityDistribution::default(),
            in_flight: BinaryHeap::new(),
        }
    }
}

impl Collector {
    /// Adds the requests of a batch. Each statistic goes through the batch on its own, so that its
    /// state stays in registers.
    pub(super) fn add(&mut self, records: &[TraceRecord]) {
        self.requests += records.len() as u64;
        self.add_arrivals(records);
        self.add_operations(records);
        self.addresses.add(records);
        self.add_places(records);
        self.add_completions(records);
    }

    fn add_arrivals(&mut self, records: &[TraceRecord]) {
        let Some(first) = records.first() else {
            return;
        };
        let (rest, mut last) = match self.first_arrival {
            Some(_) => (records, self.last_arrival),
            // The first request of all has no time since another.
            None => (&records[1..], first.arrival),
        };
        self.first_arrival.get_or_insert(first.arrival);
        for record in rest {
            self.interarrivals
                .add(record.arrival.since(last).as_nanos());
            last = record.arrival;
        }
        self.last_arrival = last;
    }

    fn add_operations(&mut self, records: &[TraceRecord]) {
        for record in records {
            let operation = &mut self.operations[record.operation as usize];
            operation.requests += 1;
            operation.sectors += u128::from(record.extent.sectors.0);
            if record.operation != Operation::Flush {
                // A flush has no size, and zeros would distort the distribution.
                operation.sizes.add(record.extent.sectors.0);
            }
            if let Some(response) = record.response() {
                operation.responses.add(response.as_nanos());
            }
        }
    }

    /// Counts the requests that continue an earlier request of their device.
    fn add_places(&mut self, records: &[TraceRecord]) {
        let mut rest = records;
        while let Some(first) = rest.first() {
            let number = first.device;
            let same = rest.iter().take_while(|record| record.device == number);
            let (run, behind) = rest.split_at(same.count());
            rest = behind;
            let known = match self.latest {
                Some((latest, place)) if latest == number => Some(place),
                _ => self.find_device(number),
            };
            if let Some(place) = known {
                let (sequential, streaming) = self.devices[place].add(run);
                self.addresses.sequential += sequential;
                self.addresses.streaming += streaming;
            }
        }
    }

    /// Returns the index of a device, and adds a new device. Returns `None` if there are too many.
    fn find_device(&mut self, number: u32) -> Option<usize> {
        let place = match self.numbers.get(&number) {
            Some(&place) => place,
            None if self.devices.len() == DEVICES_MAX => return None,
            None => {
                self.numbers.insert(number, self.devices.len());
                self.devices.push(DeviceHistory::default());
                self.devices.len() - 1
            }
        };
        self.latest = Some((number, place));
        Some(place)
    }

    fn add_completions(&mut self, records: &[TraceRecord]) {
        for record in records {
            while let Some(earliest) = self.in_flight.peek_mut()
                && earliest.0 <= record.arrival
            {
                PeekMut::pop(earliest);
            }
            let Some(completed) = record.completed else {
                continue;
            };
            if let Some(issued) = record.issued {
                self.services.add(completed.since(issued).as_nanos());
            }
            if self.in_flight.len() == IN_FLIGHT_MAX {
                // The earliest goes, because it would leave next.
                self.in_flight.pop();
            }
            self.in_flight.push(Reverse(completed));
            self.depths.add(self.in_flight.len() as u64);
        }
    }

    fn addresses(&mut self) -> AddressSummary {
        let transfers = Operation::ALL
            .iter()
            .zip(&self.operations)
            .filter(|(operation, _)| operation.transfers());
        let transfers: u64 = transfers.map(|(_, collector)| collector.requests).sum();
        self.addresses.summary(transfers)
    }

    /// Returns the sizes and the responses of all operations together.
    fn joined(&mut self) -> (QuantityDistribution, QuantityDistribution) {
        let (mut sizes, mut responses) = (
            QuantityDistribution::default(),
            QuantityDistribution::default(),
        );
        for operation in &mut self.operations {
            sizes.join(&mut operation.sizes);
            responses.join(&mut operation.responses);
        }
        (sizes, responses)
    }

    pub(super) fn summary(mut self, reader: &TraceReader) -> TraceSummary {
        const MILLISECONDS: f64 = 1e-6;
        let kib = SECTOR_BYTES as f64 / BYTES_PER_KIB;
        let duration = self
            .last_arrival
            .since(self.first_arrival.unwrap_or_default());
        let rate =
            |amount: f64| (duration > Duration::ZERO).then(|| amount / duration.as_secs_f64());
        let each = Operation::ALL.iter().zip(&self.operations);
        let transfers = each.filter(|(operation, _)| operation.transfers());
        let moved: u128 = transfers.map(|(_, collector)| collector.sectors).sum();
        let (mut sizes, mut responses) = self.joined();
        let response_ms = responses.distribution(MILLISECONDS);
        let known = response_ms.map_or(0, |responses| responses.count);
        let doubtful = reader.doubtful().min(self.requests - known);
        let notes = reader
            .notes()
            .into_iter()
            .chain(reader.lacks_addresses().map(without_addresses));
        TraceSummary {
            file: reader.file().to_owned(),
            format: reader.format().name,
            requests: self.requests,
            skipped_rows: reader.skipped(),
            completions: Completions {
                known,
                unknown: self.requests - known - doubtful,
                doubtful,
            },
            notes: notes.collect(),
            duration_s: duration.as_secs_f64(),
            iops: rate(self.requests as f64),
            mb_per_s: rate(moved as f64 * SECTOR_BYTES as f64 / 1e6),
            addresses: reader.lacks_addresses().is_none().then(|| self.addresses()),
            operations: operations(&mut self.operations, self.requests, kib, MILLISECONDS),
            devices: map_of(
                self.numbers
                    .iter()
                    .map(|(&number, &place)| (number, self.devices[place].requests)),
            ),
            size_kib: sizes.distribution(kib),
            interarrival_ms: self.interarrivals.distribution(MILLISECONDS),
            response_ms,
            service_ms: self.services.distribution(MILLISECONDS),
            queue_depth: self.depths.distribution(1.0),
        }
    }
}

/// Returns the summaries of the occurring operations, of `requests` in all.
fn operations(
    collectors: &mut [OperationCollector; Operation::ALL.len()],
    requests: u64,
    size_unit: f64,
    time_unit: f64,
) -> Vec<OperationSummary> {
    let each = Operation::ALL
        .iter()
        .zip(collectors)
        .filter(|(_, collector)| collector.requests > 0);
    each.map(|(operation, collector)| OperationSummary {
        operation: operation.name(),
        requests: collector.requests,
        share: share(collector.requests, requests),
        total_gib: collector.sectors as f64 * SECTOR_BYTES as f64 / BYTES_PER_GIB,
        size_kib: collector.sizes.distribution(size_unit),
        response_ms: collector.responses.distribution(time_unit),
    })
    .collect()
}

fn without_addresses(remedy: &'static str) -> String {
    format!("the addresses of the requests are unknown, so the trace cannot be simulated: {remedy}")
}
