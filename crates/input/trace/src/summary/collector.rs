//! Statistics of requests, updated with each request.

use super::recent::Recent;
use super::spread::Spread;
use super::{
    Addresses, BYTES_PER_GIB, Completions, OperationSummary, Summary, gib, share, without_addresses,
};
use crate::footprint::Footprint;
use crate::{Record, TraceReader};
use fullstroke_contract::Operation;
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use std::cmp::Reverse;
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
    sizes: Spread,
    responses: Spread,
}

/// Recent past of one device.
#[derive(Default)]
struct Device {
    requests: u64,
    ends: Recent,
}

/// Statistics of the requests so far.
pub(super) struct Collector {
    requests: u64,
    operations: [OperationCollector; Operation::ALL.len()],
    devices: Vec<Device>,
    /// Index of each device in `devices`.
    numbers: BTreeMap<u32, usize>,
    /// Device of the latest request with its index. A shortcut, because the next request most often
    /// has the same device.
    latest: Option<(u32, usize)>,
    first_arrival: Option<Time>,
    last_arrival: Time,
    first_sector: u64,
    end_sector: u64,
    footprint: Footprint,
    sequential: u64,
    streaming: u64,
    interarrivals: Spread,
    services: Spread,
    depths: Spread,
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
            first_sector: u64::MAX,
            end_sector: 0,
            footprint: Footprint::new(),
            sequential: 0,
            streaming: 0,
            interarrivals: Spread::default(),
            services: Spread::default(),
            depths: Spread::default(),
            in_flight: BinaryHeap::new(),
        }
    }
}

impl Collector {
    #[inline]
    pub(super) fn add(&mut self, record: &Record) {
        self.requests += 1;
        self.add_arrival(record.arrival);
        self.add_operation(record);
        if record.operation != Operation::Flush {
            self.first_sector = self.first_sector.min(record.extent.start.0);
            self.end_sector = self.end_sector.max(record.extent.end().0);
        }
        if record.operation.transfers() {
            self.footprint.add(record.device, record.extent);
        }
        self.add_place(record);
        self.add_completion(record);
    }

    #[inline]
    fn add_arrival(&mut self, arrival: Time) {
        if self.first_arrival.is_some() {
            self.interarrivals
                .add(arrival.since(self.last_arrival).as_nanos());
        }
        self.first_arrival.get_or_insert(arrival);
        self.last_arrival = arrival;
    }

    #[inline]
    fn add_operation(&mut self, record: &Record) {
        let operation = &mut self.operations[record.operation as usize];
        operation.requests += 1;
        operation.sectors += u128::from(record.extent.sectors.0);
        if record.operation != Operation::Flush {
            operation.sizes.add(record.extent.sectors.0);
        }
        if let Some(response) = record.response() {
            operation.responses.add(response.as_nanos());
        }
    }

    /// Counts whether the request continues an earlier request of its device.
    #[inline]
    fn add_place(&mut self, record: &Record) {
        let known = match self.latest {
            Some((number, place)) if number == record.device => Some(place),
            _ => self.find_device(record.device),
        };
        let Some(place) = known else { return };
        let device = &mut self.devices[place];
        device.requests += 1;
        if record.operation.transfers() {
            let (sequential, streaming) = device.ends.continued(record.extent.start.0);
            self.sequential += u64::from(sequential);
            self.streaming += u64::from(streaming);
            device.ends.push(record.extent.end().0);
        }
    }

    /// Returns the index of a device, and adds a new device. Returns `None` if there are too many.
    fn find_device(&mut self, number: u32) -> Option<usize> {
        let place = match self.numbers.get(&number) {
            Some(&place) => place,
            None if self.devices.len() == DEVICES_MAX => return None,
            None => {
                self.numbers.insert(number, self.devices.len());
                self.devices.push(Device::default());
                self.devices.len() - 1
            }
        };
        self.latest = Some((number, place));
        Some(place)
    }

    #[inline]
    fn add_completion(&mut self, record: &Record) {
        while self
            .in_flight
            .peek()
            .is_some_and(|&Reverse(completion)| completion <= record.arrival)
        {
            self.in_flight.pop();
        }
        if let Some(service) = record.service() {
            self.services.add(service.as_nanos());
        }
        if let Some(completed) = record.completed {
            if self.in_flight.len() == IN_FLIGHT_MAX {
                self.in_flight.pop();
            }
            self.in_flight.push(Reverse(completed));
            self.depths.add(self.in_flight.len() as u64);
        }
    }

    fn addresses(&self) -> Addresses {
        let first_sector = self.first_sector.min(self.end_sector);
        let transfers = Operation::ALL
            .iter()
            .zip(&self.operations)
            .filter(|(operation, _)| operation.transfers());
        let transfers: u64 = transfers.map(|(_, collector)| collector.requests).sum();
        Addresses {
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

    /// Returns the sizes and the responses of all operations together.
    fn joined(&mut self) -> (Spread, Spread) {
        let (mut sizes, mut responses) = (Spread::default(), Spread::default());
        for operation in &mut self.operations {
            sizes.join(&mut operation.sizes);
            responses.join(&mut operation.responses);
        }
        (sizes, responses)
    }

    pub(super) fn summary(mut self, reader: &TraceReader) -> Summary {
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
        Summary {
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
            devices: self
                .numbers
                .iter()
                .map(|(&number, &place)| (number, self.devices[place].requests))
                .collect(),
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
