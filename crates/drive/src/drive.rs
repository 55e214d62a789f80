//! The drive as a layer: requests wait in its queue, the arm serves one at a
//! time.

use crate::config::DriveConfig;
use crate::mechanics::{Access, Head, Mechanics, milliseconds};
use crate::queue::{Arm, Choice, CommandQueue, Waiting};
use crate::statistics::Statistics;
use fullstroke_contract::{
    Below, Breakdown, Completion, ConfigError, Gauge, Layer, MemberStatistics, Operation, Out, Request,
    RequestId, Status, TrackTable,
};
use fullstroke_units::{Cylinder, Duration, Lbn, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// What all drives of one model share: build it once, then as many drives from
/// it as the array has.
#[derive(Clone, Debug)]
pub struct Model {
    mechanics: Arc<Mechanics>,
    config: Arc<DriveConfig>,
    command_overhead: Duration,
}

/// One disk drive.
///
/// - **Events in**: `submit`, `wake`.
/// - **Effects out**: `complete`.
/// - **Getters**: `next_wake`, `gauge`, [`statistics`](Layer::statistics).
///
/// Requests beyond the queue's depth wait outside of it, in order of arrival:
/// the drive does not see them when it chooses.
pub struct Drive {
    mechanics: Arc<Mechanics>,
    command_overhead: Duration,
    depth: u32,
    queue: CommandQueue,
    outside: VecDeque<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    head: Head,
    next_lbn: Lbn,
    service: Option<Service>,
    idle_since: Time,
    statistics: Statistics,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    request: Request,
    submitted: Time,
}

/// The request under the heads.
#[derive(Clone, Copy, Debug)]
struct Service {
    slot: u32,
    finish: Time,
    breakdown: Breakdown,
}

impl Model {
    /// Checks and tabulates a description.
    ///
    /// # Errors
    /// Names the key that cannot be.
    pub fn new(config: DriveConfig) -> Result<Model, ConfigError> {
        let mechanics = Mechanics::new(&config)?;
        config.queue.build().map_err(|error| error.below("queue"))?;
        Ok(Model {
            command_overhead: milliseconds("command_overhead_ms", config.command_overhead_ms)?,
            mechanics: Arc::new(mechanics),
            config: Arc::new(config),
        })
    }

    /// The description.
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// Arm and platters.
    pub fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// How addresses lie.
    pub fn tracks(&self) -> Arc<dyn TrackTable> {
        Arc::clone(self.mechanics.geometry()) as Arc<dyn TrackTable>
    }

    /// A drive of this model: heads at cylinder 0, surface 0, nothing queued.
    ///
    /// # Errors
    /// Names the key of the queue that cannot be.
    pub fn drive(&self) -> Result<Drive, ConfigError> {
        Ok(Drive {
            mechanics: Arc::clone(&self.mechanics),
            command_overhead: self.command_overhead,
            depth: self.config.queue.depth,
            queue: self.config.queue.build().map_err(|error| error.below("queue"))?,
            outside: VecDeque::new(),
            slots: Vec::new(),
            free: Vec::new(),
            head: Head::default(),
            next_lbn: Lbn(0),
            service: None,
            idle_since: Time::ZERO,
            statistics: Statistics::default(),
        })
    }
}

impl Drive {
    /// Finishes and begins everything that was due up to `now`, each at its own
    /// instant.
    fn catch_up(&mut self, now: Time, out: &mut Out) {
        while let Some(service) = self.service.filter(|service| service.finish <= now) {
            self.finish(service, out);
            self.begin_next(service.finish);
        }
    }

    fn finish(&mut self, service: Service, out: &mut Out) {
        let Slot { request, submitted } = self.slots[service.slot as usize];
        self.service = None;
        self.idle_since = service.finish;
        self.free.push(service.slot);
        self.statistics.finished(
            service.finish,
            request.operation,
            request.extent.sectors,
            &service.breakdown,
        );
        out.complete(Completion {
            id: request.id,
            submitted,
            finished: service.finish,
            status: Status::Done,
            breakdown: service.breakdown,
        });
        if let Some(slot) = self.outside.pop_front() {
            self.enqueue(slot, service.finish);
        }
    }

    fn enqueue(&mut self, slot: u32, now: Time) {
        let request = &self.slots[slot as usize].request;
        let position = self.mechanics.geometry().locate(request.extent.start);
        let first_track = request.extent.sectors.min(position.sectors_left);
        self.queue.insert(Waiting {
            slot,
            lbn: request.extent.start,
            position,
            span: self.mechanics.span(&position, first_track),
            write: request.operation == Operation::Write,
            arrived: now,
        });
    }

    /// Takes the next request into service at `now`, if one waits.
    fn begin_next(&mut self, now: Time) {
        let moves = now + self.command_overhead;
        let arm = Arm { now: moves, head: self.head, next_lbn: self.next_lbn, mechanics: &self.mechanics };
        let Some(Choice { waiting: next, via }) = self.queue.take(arm) else { return };
        let Slot { request, submitted } = self.slots[next.slot as usize];
        let extent = request.extent;
        let detour = self.visit(via);
        let mut access = self.mechanics.access(
            &mut self.head,
            moves + detour,
            extent.start,
            extent.sectors,
            &next.position,
            next.write,
        );
        access.seek += detour;
        self.next_lbn = extent.end();
        self.service = Some(Service {
            slot: next.slot,
            finish: moves + access.duration(),
            breakdown: self.breakdown(now.since(submitted), &access),
        });
    }

    /// Moves the arm to a cylinder on the way; how long that takes.
    fn visit(&mut self, via: Option<Cylinder>) -> Duration {
        let Some(cylinder) = via else { return Duration::ZERO };
        let time = self.mechanics.seek(self.head, cylinder, self.head.surface, false);
        self.head.cylinder = cylinder;
        time
    }

    fn breakdown(&self, queue: Duration, access: &Access) -> Breakdown {
        Breakdown {
            queue,
            parity: Duration::ZERO,
            overhead: self.command_overhead,
            seek: access.seek,
            rotation: access.rotation,
            transfer: access.transfer,
            seek_cylinders: access.seek_cylinders,
        }
    }

    fn keep(&mut self, slot: Slot) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        }
    }

    fn in_flight(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }
}

/// The answer to a request on which the arm does not work.
fn answer(id: RequestId, now: Time, status: Status) -> Completion {
    Completion { id, submitted: now, finished: now, status, breakdown: Breakdown::default() }
}

impl Layer for Drive {
    /// Without a write cache there is nothing to flush, and discarded sectors
    /// are only bookkeeping: both are answered at once.
    fn submit(&mut self, now: Time, request: Request, _: Below<'_>, out: &mut Out) {
        self.catch_up(now, out);
        if !request.operation.transfers() {
            return out.complete(answer(request.id, now, Status::Done));
        }
        let capacity = self.mechanics.geometry().capacity();
        if !request.extent.within(capacity) || request.extent.sectors.0 == 0 {
            return out.complete(answer(request.id, now, Status::OutOfRange));
        }
        let waiting = self.queue.len() as u32 + u32::from(self.service.is_some());
        self.statistics.arrived(now);
        let slot = self.keep(Slot { request, submitted: now });
        if waiting < self.depth {
            self.enqueue(slot, now);
        } else {
            self.outside.push_back(slot);
        }
        if self.service.is_none() {
            self.begin_next(now);
        }
    }

    fn completed(&mut self, _: Time, _: usize, _: Completion, _: Below<'_>, _: &mut Out) {
        unreachable!("a drive has no members")
    }

    fn wake(&mut self, now: Time, _: Below<'_>, out: &mut Out) {
        self.catch_up(now, out);
    }

    fn next_wake(&self) -> Time {
        self.service.map_or(Time::NEVER, |service| service.finish)
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: self.in_flight(),
            head: self.head.cylinder,
            idle_since: self.service.is_none().then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    fn statistics(&self) -> Option<MemberStatistics> {
        Some(self.statistics.so_far())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::small_drive;
    use crate::queue::QueueConfig;
    use fullstroke_contract::{Effect, Extent};
    use proptest::prelude::*;

    fn request(id: u64, lbn: u64, sectors: u64, operation: Operation) -> Request {
        Request { id: RequestId(id), extent: Extent::new(lbn, sectors), operation, ..Request::default() }
    }

    fn completions(out: &mut Out) -> Vec<Completion> {
        let completion = |effect| match effect {
            Effect::Complete(completion) => completion,
            other => panic!("a drive only completes: {other:?}"),
        };
        out.drain().map(completion).collect()
    }

    type Arrival = (u64, u64, u64, bool);

    /// Runs arrivals through a drive; wake-ups come `late` after they are due.
    fn run(config: DriveConfig, arrivals: &[Arrival], late: u64) -> Vec<Completion> {
        let mut drive = Model::new(config).unwrap().drive().unwrap();
        let mut out = Out::new();
        let mut done = Vec::new();
        for (id, &(at, lbn, sectors, write)) in arrivals.iter().enumerate() {
            while drive.next_wake() + Duration::from_nanos(late) < Time::from_nanos(at) {
                drive.wake(drive.next_wake() + Duration::from_nanos(late), Below::NOTHING, &mut out);
                done.extend(completions(&mut out));
            }
            let operation = if write { Operation::Write } else { Operation::Read };
            drive.submit(
                Time::from_nanos(at),
                request(id as u64, lbn, sectors, operation),
                Below::NOTHING,
                &mut out,
            );
            done.extend(completions(&mut out));
        }
        while drive.next_wake() != Time::NEVER {
            drive.wake(drive.next_wake() + Duration::from_nanos(late), Below::NOTHING, &mut out);
            done.extend(completions(&mut out));
        }
        done
    }

    fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
        prop::collection::vec((0u64..5_000_000, 0u64..1360, 1u64..40, any::<bool>()), 1..80).prop_map(
            |gaps| {
                let mut now = 0;
                let at = |(gap, lbn, sectors, write)| {
                    now += gap;
                    (now, lbn, sectors, write)
                };
                gaps.into_iter().map(at).collect()
            },
        )
    }

    proptest! {
        #[test]
        fn every_request_completes_once_and_its_parts_add_up(arrivals in arrivals(), depth in 1u32..9) {
            let queue = QueueConfig { depth, ..QueueConfig::default() };
            let done = run(DriveConfig { queue, ..small_drive() }, &arrivals, 0);
            let mut ids: Vec<u64> = done.iter().map(|completion| completion.id.0).collect();
            ids.sort_unstable();
            prop_assert_eq!(ids, (0..arrivals.len() as u64).collect::<Vec<_>>());
            for completion in done {
                prop_assert_eq!(completion.finished.since(completion.submitted), completion.breakdown.response());
            }
        }

        #[test]
        fn late_wake_ups_do_not_move_the_timeline(arrivals in arrivals(), late in 0u64..30_000_000) {
            prop_assert_eq!(run(small_drive(), &arrivals, 0), run(small_drive(), &arrivals, late));
        }
    }

    #[test]
    fn a_request_beyond_the_drive_is_refused() {
        let done = run(small_drive(), &[(0, 1399, 2, false), (0, u64::MAX, 1, false)], 0);
        assert!(done.iter().all(|completion| completion.status == Status::OutOfRange));
    }
}
