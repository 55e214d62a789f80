//! The node of a drive with shingled tracks.

use super::buffer::PendingWrites;
use super::config::Shingles;
use super::map::ShingledMap;
use super::under_way::{BandCleaning, InnerIo, LogMove, MediumWrite};
use crate::drive::Drive;
use crate::statistics::DriveCounters;
use fullstroke_contract::{
    Breakdown, Completion, Counters, Effect, Effects, Extent, Gauge, LayerReadings,
    MemberStatistics, Node, NodeContext, Operation, Port, Request, RequestId, RequestStatus,
    Signal, Slots, Wake,
};
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use std::collections::VecDeque;

/// A drive with shingled tracks.
///
/// - **Events in**: `submit`, `wake`.
/// - **Effects out**: `complete`, notice of the begin and the end of cleaning, and the notices of
///   the drive inside.
///
/// The drive inside is a conventional drive of the same mechanics without a write buffer. Its
/// requests are reads of places on the medium, writes to the cache, and the reads and writes of
/// cleaning.
///
/// Invariants: a write of the medium and a cleaned band are under way one at a time. A band that is
/// being cleaned gets no write in place. So a band never receives older data after newer ones.
pub(crate) struct ShingledDrive {
    pub(super) drive: Drive,
    pub(super) shingles: Shingles,
    pub(super) map: ShingledMap,
    pub(super) pending: PendingWrites,
    /// Effects of the drive inside; empty between events.
    inside: Effects,
    slots: Slots<HostRequest>,
    ios: Slots<InnerIo>,
    /// Writes that wait for room in the buffer, in order.
    waiting: VecDeque<u32>,
    /// Requests that wait until all earlier writes are on the medium.
    pub(super) barriers: VecDeque<Barrier>,
    /// Completions at the interface, in order.
    held: VecDeque<(u32, Completion)>,
    /// Time from which the interface is free.
    bus_free: Time,
    /// Write of the medium under way.
    pub(super) writing: Option<MediumWrite>,
    /// Band under cleaning.
    pub(super) cleaning: Option<BandCleaning>,
    /// Move of the log under way.
    pub(super) moving: Option<LogMove>,
    /// Time since when a write waits for a full cache.
    pub(super) starved: Option<Time>,
    /// Number of cleaned bands and moves at which such a write goes on.
    pub(super) writes_go_on: u64,
    /// True if data were written to the cache since the last record.
    pub(super) unrecorded: bool,
    /// Time since when the layers above know that cleaning runs.
    told: Option<Time>,
    idle_since: Time,
    /// Time of the last event.
    clock: Time,
    statistics: DriveCounters,
    pub(super) counts: ShingledCounts,
}

/// A request of the host.
#[derive(Clone, Copy, Debug)]
struct HostRequest {
    request: Request,
    submitted: Time,
    /// True for a write at the write pointers of its zones.
    in_order: bool,
    /// Reads inside that are still under way.
    left: u32,
    last: Completion,
}

/// A request that waits for earlier writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    slot: u32,
    /// Number of sectors that must have gone to the medium.
    pub(super) sectors: u64,
}

/// Totals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShingledCounts {
    pub(super) bands: u64,
    pub(super) host_sectors: u64,
    pub(super) cache_sectors: u64,
    pub(super) band_sectors: u64,
    pub(super) moves: u64,
    pub(super) moved_sectors: u64,
    pub(super) starved: Duration,
    /// Time from the begin of cleaning until nothing was left to clean.
    pub(super) cleaning: Duration,
}

impl ShingledDrive {
    pub(crate) fn new(drive: Drive, shingles: &Shingles) -> ShingledDrive {
        ShingledDrive {
            drive,
            map: ShingledMap::new(shingles.capacity, shingles.band, shingles.cache),
            shingles: shingles.clone(),
            pending: PendingWrites::default(),
            inside: Effects::new(),
            slots: Slots::default(),
            ios: Slots::default(),
            waiting: VecDeque::new(),
            barriers: VecDeque::new(),
            held: VecDeque::new(),
            bus_free: Time::ZERO,
            writing: None,
            cleaning: None,
            moving: None,
            starved: None,
            writes_go_on: 0,
            unrecorded: false,
            told: None,
            idle_since: Time::ZERO,
            clock: Time::ZERO,
            statistics: DriveCounters::default(),
            counts: ShingledCounts::default(),
        }
    }

    /// Submits a request to the drive inside.
    pub(super) fn issue(&mut self, now: Time, operation: Operation, extent: Extent, io: InnerIo) {
        let slot = self.ios.keep(io);
        let request = Request {
            id: RequestId(u64::from(slot)),
            operation,
            extent,
            ..Request::default()
        };
        self.drive.submit(
            now,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.inside),
        );
    }

    /// Carries out everything due by `now`, each at its time.
    fn advance(&mut self, now: Time, out: &mut Effects) {
        loop {
            self.take(out);
            let inside = self.drive.next_wake().at();
            let held = self
                .held
                .front()
                .map_or(Time::NEVER, |held| held.1.finished);
            let own = self.own_alarm();
            let next = inside.min(held).min(own);
            self.tell(out);
            if next > now {
                self.clock = self.clock.max(now);
                return;
            }
            self.clock = self.clock.max(next);
            if held == next {
                if let Some((slot, completion)) = self.held.pop_front() {
                    self.finish(slot, completion, out);
                }
            } else if inside == next {
                self.drive
                    .wake(next, &mut NodeContext::alone(&mut self.inside));
            } else {
                self.go_on(next);
            }
        }
    }

    /// Tells the layers above that cleaning has begun, or that nothing is left to clean. A request
    /// that interrupts cleaning does not end it.
    fn tell(&mut self, out: &mut Effects) {
        match self.told {
            None if self.cleaning.is_some() => {
                self.told = Some(self.clock);
                out.signal(Signal::CleaningBegan);
            }
            Some(since) if self.is_clean() => {
                self.told = None;
                self.counts.cleaning += self.clock.since(since);
                out.signal(Signal::CleaningEnded);
            }
            _ => {}
        }
    }

    /// Takes the effects of the drive inside.
    fn take(&mut self, out: &mut Effects) {
        // A completion may begin the next step, which may complete at once.
        while !self.inside.is_empty() {
            let mut inside = std::mem::take(&mut self.inside);
            for effect in inside.drain() {
                match effect {
                    Effect::Complete { completion, .. } => self.completed_inside(&completion, out),
                    Effect::Notice { port, notice } => out.notice(port, notice),
                    Effect::Issue { .. } => unreachable!("a drive has no lower port"),
                }
            }
            // Effects of the calls above are in the new collection.
            if self.inside.is_empty() {
                self.inside = inside;
            }
        }
    }

    fn completed_inside(&mut self, completion: &Completion, out: &mut Effects) {
        let now = completion.finished.max(self.clock);
        match self.ios.take(completion.id.0 as u32) {
            InnerIo::Read(slot) => {
                let request = &mut self.slots[slot];
                request.left -= 1;
                // The part that ends last decides the times of the whole read.
                if completion.finished >= request.last.finished {
                    request.last = *completion;
                }
                if request.left == 0 {
                    let HostRequest {
                        request,
                        submitted,
                        last,
                        ..
                    } = *request;
                    self.finish(slot, last.held_since(submitted, request.id), out);
                }
            }
            InnerIo::Command(slot) => {
                let HostRequest {
                    request, submitted, ..
                } = self.slots[slot];
                self.finish(slot, completion.held_since(submitted, request.id), out);
            }
            InnerIo::Write => self.medium_written(now),
            InnerIo::Clean => self.cleaned_step(now),
            InnerIo::Move => self.move_step(now),
        }
        self.go_on(now);
    }

    /// Begins what can begin at `now`.
    fn go_on(&mut self, now: Time) {
        self.take_in(now);
        self.write_on(now);
        self.clean_on(now);
    }

    /// Takes waiting writes into the buffer while there is room.
    fn take_in(&mut self, now: Time) {
        while let Some(&slot) = self.waiting.front() {
            let HostRequest {
                request,
                submitted,
                in_order,
                ..
            } = self.slots[slot];
            let sectors = request.extent.sectors.0;
            let through = self.shingles.buffer == 0 || request.hints.force_unit_access;
            // A write larger than the buffer enters an empty buffer, or the write would wait for
            // ever.
            let room = self.pending.is_empty()
                || self.pending.sectors() + sectors <= self.shingles.buffer.max(1);
            if !room {
                return;
            }
            self.waiting.pop_front();
            self.counts.host_sectors += sectors;
            self.pending
                .add(request.extent.start.0, sectors, in_order, now);
            if through {
                self.pending.end_stream();
                self.barriers.push_back(Barrier {
                    slot,
                    sectors: self.pending.came,
                });
            } else {
                self.hold(slot, submitted, now, sectors);
            }
        }
    }

    /// Completes a request of `sectors` sectors at the interface, from `now` on.
    fn hold(&mut self, slot: u32, submitted: Time, now: Time, sectors: u64) {
        let begun = now.max(self.bus_free);
        let overhead = self.shingles.hit_overhead;
        let transfer = self.shingles.bus_each * sectors;
        let finished = begun + overhead + transfer;
        self.bus_free = finished;
        let completion = Completion {
            id: self.slots[slot].request.id,
            submitted,
            finished,
            status: RequestStatus::Done,
            breakdown: Breakdown {
                queue: begun.since(submitted),
                overhead: overhead + transfer,
                ..Breakdown::default()
            },
        };
        self.held.push_back((slot, completion));
    }

    /// Completes the requests whose earlier writes are on the medium at `now`.
    pub(super) fn pass_barriers(&mut self, now: Time) {
        while let Some(barrier) = self.barriers.front()
            && barrier.sectors <= self.pending.went
            // Without the record of the map, a loss of power would lose the data in the cache.
            && !self.unrecorded
        {
            let slot = barrier.slot;
            self.barriers.pop_front();
            let HostRequest {
                request, submitted, ..
            } = self.slots[slot];
            match request.operation {
                Operation::Standby | Operation::Start => {
                    self.issue(
                        now,
                        request.operation,
                        request.extent,
                        InnerIo::Command(slot),
                    );
                }
                _ => self.hold(slot, submitted, now, 0),
            }
        }
    }

    fn finish(&mut self, slot: u32, completion: Completion, out: &mut Effects) {
        let request = self.slots.take(slot).request;
        self.idle_since = self.idle_since.max(completion.finished);
        self.statistics.finished(
            completion.finished,
            request.operation,
            request.extent.sectors,
            &completion.breakdown,
        );
        out.complete(completion);
    }

    /// Reads an extent: the parts that are in the buffer at once, the others from their places.
    fn read(&mut self, now: Time, slot: u32) {
        let HostRequest {
            request, submitted, ..
        } = self.slots[slot];
        let (start, end) = (request.extent.start.0, request.extent.end().0);
        let mut reads: Vec<Extent> = Vec::new();
        let map = &self.map;
        self.pending.uncovered(start, end, &mut |from, to| {
            map.places(from, to - from, &mut |place| {
                let at = match place.cached {
                    Some(cached) => map.on_medium(cached),
                    None => place.start,
                };
                match reads.last_mut() {
                    Some(last) if last.end().0 == at => last.sectors += Sectors(place.sectors),
                    _ => reads.push(Extent::new(at, place.sectors)),
                }
            });
        });
        if reads.is_empty() {
            return self.hold(slot, submitted, now, request.extent.sectors.0);
        }
        self.slots[slot].left = reads.len() as u32;
        for extent in reads {
            self.issue(now, Operation::Read, extent, InnerIo::Read(slot));
        }
    }

    /// True if no request of the host needs the medium, now or soon.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.pending.is_empty()
    }

    /// Time since which the drive is idle.
    pub(super) fn idle_from(&self) -> Time {
        self.idle_since
    }

    /// Time of the next event that no request and no drive inside brings.
    fn own_alarm(&self) -> Time {
        // What became due in the past is due now.
        self.stream_ends().min(self.cleaning_due()).max(self.clock)
    }
}

impl ShingledDrive {
    /// Takes a request. `in_order` is true for a write of a host-aware drive at the write pointer of
    /// each of its zones.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        request: Request,
        in_order: bool,
        cx: &mut NodeContext<'_>,
    ) {
        self.advance(now, cx.out);
        let Request {
            operation, extent, ..
        } = request;
        let transfers = operation.transfers();
        let empty = transfers && extent.sectors.0 == 0;
        if empty || !extent.within(Sectors(self.shingles.capacity)) {
            let status = RequestStatus::OutOfRange;
            return cx
                .out
                .complete(Completion::at_once(request.id, now, status));
        }
        self.statistics.arrived(now);
        let slot = self.slots.keep(HostRequest {
            request,
            submitted: now,
            in_order,
            left: 0,
            last: Completion::default(),
        });
        match operation {
            Operation::Read => self.read(now, slot),
            Operation::Write => self.waiting.push_back(slot),
            Operation::Discard => {
                if self.shingles.trim {
                    self.map.unmap(extent.start.0, extent.sectors.0);
                }
                self.hold(slot, now, now, 0);
            }
            _ => {
                self.pending.end_stream();
                self.barriers.push_back(Barrier {
                    slot,
                    // Writes that wait for room came before this command, so the command waits for
                    // them too.
                    sectors: self.pending.came + self.waiting_sectors(),
                });
            }
        }
        self.go_on(now);
        self.advance(now, cx.out);
    }
}

impl Node for ShingledDrive {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        self.arrive(now, request, false, cx);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.advance(now, cx.out);
    }

    fn next_wake(&self) -> Wake {
        let held = self
            .held
            .front()
            .map_or(Time::NEVER, |held| held.1.finished);
        let inside = self.drive.next_wake().at();
        let at = inside.min(held).min(self.own_alarm());
        // Writes of buffered data and cleaning do not keep a run from ending.
        if self.slots.is_empty() && at < Time::NEVER {
            Wake::Chore(at)
        } else {
            Wake::Work(at)
        }
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: self.slots.len() as u32,
            idle_since: self.slots.is_empty().then_some(self.idle_since),
            ..self.drive.gauge()
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        let mut inside = Counters::default();
        self.drive.count(now, &mut inside);
        for drive in &mut inside.drives {
            // The requests of cleaning are no requests of the host. So only the times of the
            // mechanics come from the drive inside.
            *drive = MemberStatistics {
                busy: drive.busy,
                seek: drive.seek,
                rotation: drive.rotation,
                transfer: drive.transfer,
                buffer_hits: drive.buffer_hits,
                power: drive.power,
                ..self.statistics.so_far()
            };
        }
        counters.drives.append(&mut inside.drives);
        counters.layers.append(&mut inside.layers);
        let counts = &self.counts;
        let starved = self
            .starved
            .map_or(Duration::ZERO, |since| now.saturating_since(since));
        let cleaning = self
            .told
            .map_or(Duration::ZERO, |since| now.saturating_since(since));
        let mb = |sectors: u64| (sectors * SECTOR_BYTES) as f64 / 1e6;
        let readings = [
            ("shingled_cleaned_bands", counts.bands as f64),
            ("shingled_host_mb", mb(counts.host_sectors)),
            ("shingled_cache_mb", mb(counts.cache_sectors)),
            ("shingled_band_mb", mb(counts.band_sectors)),
            ("shingled_moved_mb", mb(counts.moved_sectors)),
            ("shingled_stall_s", (counts.starved + starved).as_secs_f64()),
            (
                "shingled_cleaning_s",
                (counts.cleaning + cleaning).as_secs_f64(),
            ),
            (
                "shingled_cache_share",
                self.map.used() as f64 / self.shingles.cache as f64,
            ),
        ];
        counters
            .layers
            .push(LayerReadings::new("shingled", &readings));
    }
}

impl ShingledDrive {
    fn waiting_sectors(&self) -> u64 {
        (self.waiting.iter())
            .map(|&slot| self.slots[slot].request.extent.sectors.0)
            .sum()
    }
}
