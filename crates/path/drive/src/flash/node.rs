//! The flash device as a layer.

use super::config::{Flash, FlashPath};
use crate::statistics::DriveCounters;
use fullstroke_contract::{
    Breakdown, Completion, Counters, Draw, Extent, Gauge, LayerReadings, MemberStatistics, Node,
    NodeContext, Operation, Port, PowerState, PowerStatistics, Request, RequestStatus, Residency,
    Slots, Wake,
};
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A flash device.
///
/// - **Events in**: `submit`, `wake`.
/// - **Effects out**: `complete`.
///
/// Invariants: the end of a command is known at its arrival, because nothing overtakes on the path
/// of the data. The parts of a breakdown add up to the response time.
pub(crate) struct FlashDrive {
    flash: Flash,
    draw: Option<Draw>,
    /// Times at which the units are free.
    units: Vec<Time>,
    /// Time at which the path of the data is free.
    path_free: Time,
    /// End of the latest write.
    written: Time,
    slots: Slots<FlashCommand>,
    /// Ends of the commands in the device, with their numbers and slots.
    ends: BinaryHeap<Reverse<(Time, u64, u32)>>,
    cache: WriteCache,
    idle_since: Time,
    statistics: DriveCounters,
    power: FlashPower,
    counts: FlashCounts,
}

#[derive(Clone, Copy, Debug)]
struct FlashCommand {
    operation: Operation,
    extent: Extent,
    completion: Completion,
}

/// The write cache of cells with one bit.
#[derive(Clone, Copy, Debug, Default)]
struct WriteCache {
    /// Sectors in the cache.
    used: u64,
    /// Sectors that were written while the cache was full.
    past: u64,
}

/// Time in each power state.
#[derive(Clone, Copy, Debug, Default)]
struct FlashPower {
    since: Time,
    reads: u32,
    writes: u32,
    residency: Residency,
    busy: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct FlashCounts {
    /// Number of commands so far.
    commands: u64,
    written: u64,
    transfer: Duration,
}

impl FlashDrive {
    pub(crate) fn new(flash: &Flash, draw: Option<Draw>) -> FlashDrive {
        FlashDrive {
            units: vec![Time::ZERO; flash.units],
            flash: flash.clone(),
            draw,
            path_free: Time::ZERO,
            written: Time::ZERO,
            slots: Slots::default(),
            ends: BinaryHeap::new(),
            cache: WriteCache::default(),
            idle_since: Time::ZERO,
            statistics: DriveCounters::default(),
            power: FlashPower::default(),
            counts: FlashCounts::default(),
        }
    }

    /// Completes everything that ends by `now`.
    fn advance(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while let Some(&Reverse((end, _, slot))) = self.ends.peek()
            && end <= now
        {
            self.ends.pop();
            let FlashCommand {
                operation,
                extent,
                completion,
                ..
            } = self.slots.take(slot);
            self.power.ends(end, operation);
            self.statistics
                .finished(end, operation, extent.sectors, &completion.breakdown);
            self.idle_since = end;
            cx.out.complete(completion);
        }
    }

    /// Returns the times of a transfer of `sectors` sectors that arrives at `now`.
    fn transfer(&mut self, now: Time, operation: Operation, sectors: u64) -> (Time, Breakdown) {
        let path = match operation {
            Operation::Read => self.flash.read,
            _ => self.flash.write,
        };
        let (unit, free) = self.first_unit();
        let begun = now.max(free);
        self.units[unit] = begun + path.latency;
        let moved = (begun + path.latency).max(self.path_free);
        let transfer = match operation {
            Operation::Read => span(path.sector_ns, sectors),
            _ => self.cached_write(now, path, sectors),
        };
        let end = moved + transfer;
        self.path_free = end.max(moved + path.least);
        self.counts.transfer += transfer;
        let breakdown = Breakdown {
            queue: begun.since(now) + moved.since(begun + path.latency),
            overhead: path.latency,
            transfer,
            ..Breakdown::default()
        };
        (end, breakdown)
    }

    /// Returns the unit that is free first, and the time.
    fn first_unit(&self) -> (usize, Time) {
        let units = self.units.iter().copied().enumerate();
        // The lower number decides a tie, so that runs repeat to the bit.
        let first = units.min_by_key(|&(unit, free)| (free, unit));
        first.unwrap_or((0, Time::ZERO))
    }

    /// Returns the time of a write: through the write cache while it has room.
    fn cached_write(&mut self, now: Time, path: FlashPath, sectors: u64) -> Duration {
        if self.flash.cache == u64::MAX {
            return span(path.sector_ns, sectors);
        }
        // Only an idle device empties its cache (`idle` and `behind_mb_per_s` of a drive file). A
        // command that comes earlier finds the cache as the last command left it.
        if self.slots.is_empty() {
            let idle = now.saturating_since(self.idle_since + self.flash.idle);
            let emptied = idle.as_nanos() as f64 / self.flash.behind_ns;
            self.cache.used = self.cache.used.saturating_sub(emptied as u64);
        }
        let fast = sectors.min(self.flash.cache - self.cache.used);
        self.cache.used += fast;
        self.cache.past += sectors - fast;
        span(path.sector_ns, fast) + span(self.flash.behind_ns, sectors - fast)
    }
}

fn span(sector_ns: f64, sectors: u64) -> Duration {
    Duration::from_nanos((sector_ns * sectors as f64).round() as u64)
}

impl FlashPower {
    fn pass(&mut self, now: Time) {
        let span = now.saturating_since(self.since);
        let state = match (self.reads, self.writes) {
            (0, 0) => PowerState::IdleA,
            (_, 0) => PowerState::Read,
            _ => PowerState::Write,
        };
        self.residency.add(state, span);
        if state != PowerState::IdleA {
            self.busy += span;
        }
        self.since = self.since.max(now);
    }

    fn begins(&mut self, now: Time, operation: Operation) {
        self.pass(now);
        match operation {
            Operation::Read => self.reads += 1,
            _ => self.writes += 1,
        }
    }

    fn ends(&mut self, now: Time, operation: Operation) {
        self.pass(now);
        match operation {
            Operation::Read => self.reads -= 1,
            _ => self.writes -= 1,
        }
    }
}

impl Node for FlashDrive {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        self.advance(now, cx);
        let Request {
            id,
            operation,
            extent,
            ..
        } = request;
        let empty = operation.transfers() && extent.sectors == Sectors::ZERO;
        if empty || !extent.within(self.flash.capacity) {
            let status = RequestStatus::OutOfRange;
            return cx.out.complete(Completion::at_once(id, now, status));
        }
        self.statistics.arrived(now);
        let (end, breakdown) = match operation {
            Operation::Read | Operation::Write => self.transfer(now, operation, extent.sectors.0),
            Operation::Flush => {
                // A flush makes earlier writes durable, so the flush ends after these writes.
                let queue = self.written.saturating_since(now);
                let breakdown = Breakdown {
                    queue,
                    overhead: self.flash.flush,
                    ..Breakdown::default()
                };
                (now + queue + self.flash.flush, breakdown)
            }
            // A device without platters has nothing to stop, and notes a discard in its map.
            _ => (now, Breakdown::default()),
        };
        if operation == Operation::Write {
            self.written = self.written.max(end);
            self.counts.written += extent.sectors.0;
        }
        self.power.begins(now, operation);
        self.counts.commands += 1;
        let slot = self.slots.keep(FlashCommand {
            operation,
            extent,
            completion: Completion {
                id,
                submitted: now,
                finished: end,
                status: RequestStatus::Done,
                breakdown,
            },
        });
        // Commands that end together complete in the order of their arrival. The slot says nothing
        // about the order, because slots are used again.
        self.ends.push(Reverse((end, self.counts.commands, slot)));
        self.advance(now, cx);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.advance(now, cx);
    }

    fn next_wake(&self) -> Wake {
        match self.ends.peek() {
            Some(&Reverse((end, ..))) => Wake::Work(end),
            None => Wake::NEVER,
        }
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: self.slots.len() as u32,
            idle_since: self.slots.is_empty().then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        let mut power = self.power;
        power.pass(now);
        counters.drives.push(MemberStatistics {
            busy: power.busy,
            transfer: self.counts.transfer,
            power: self
                .draw
                .map(|draw| PowerStatistics::new(&draw, power.residency, 0, 0, 0)),
            ..self.statistics.so_far()
        });
        let bytes = (self.counts.written * SECTOR_BYTES) as f64;
        let mut readings = vec![("flash_written_mb", bytes / 1e6)];
        if self.flash.cache != u64::MAX {
            let past = (self.cache.past * SECTOR_BYTES) as f64 / 1e6;
            readings.push(("flash_past_cache_mb", past));
        }
        if let Some(endurance) = self.flash.endurance {
            readings.push(("flash_wear_share", bytes / endurance));
            let years = now.as_secs_f64() / (365.25 * 86_400.0);
            if bytes > 0.0 {
                readings.push(("flash_life_years", years * endurance / bytes));
            }
        }
        counters.layers.push(LayerReadings::new("flash", &readings));
    }
}
