//! When a rate allows the next I/O.
//!
//! As in fio, the timetable runs from the job's beginning: whoever falls behind
//! catches up.

use crate::job::{Direction, Job};
use fullstroke_units::{Duration, Random, Time};

const NS_PER_S: u128 = 1_000_000_000;

/// I/Os of a direction from which on it can be said to be behind: those that
/// also an interval needs.
const IOS_MIN: u64 = 320;

/// How far a job is behind its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lag {
    pub(crate) behind: Duration,
    /// Since the timetable began.
    pub(crate) elapsed: Duration,
}

/// The timetable of one direction.
#[derive(Clone, Copy, Debug)]
struct Lane {
    bytes_per_s: u64,
    /// Bytes of the block by which `rate_iops` is measured.
    block: u64,
    began: Time,
    issued: u64,
    due: Time,
}

/// The timetables of all directions.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    lanes: [Option<Lane>; 3],
    poisson: bool,
    ignores_think: bool,
}

impl Pace {
    pub(crate) fn new(job: &Job) -> Pace {
        let lane = |direction: Direction| {
            let at = direction as usize;
            let block = job.blocks[at].smallest();
            let by_count = job.rate_iops[at].map(|iops| iops.saturating_mul(block));
            let bytes_per_s = job.rate_bytes_per_s[at].or(by_count)?;
            Some(Lane {
                bytes_per_s,
                block,
                began: Time::ZERO,
                issued: 0,
                due: Time::ZERO,
            })
        };
        Pace {
            lanes: Direction::ALL.map(lane),
            poisson: job.poisson,
            ignores_think: job.rate_ignores_think,
        }
    }

    /// The timetables begin at `now`.
    pub(crate) fn restart(&mut self, now: Time) {
        for lane in self.lanes.iter_mut().flatten() {
            (lane.began, lane.issued, lane.due) = (now, 0, now);
        }
    }

    /// When the next I/O of `direction` may go; time 0 without a rate.
    pub(crate) fn due(&self, direction: Direction) -> Time {
        self.lanes[direction as usize].map_or(Time::ZERO, |lane| lane.due)
    }

    /// `bytes` were issued.
    pub(crate) fn issued(&mut self, direction: Direction, bytes: u64, random: &mut Random) {
        let Some(lane) = &mut self.lanes[direction as usize] else {
            return;
        };
        lane.issued = lane.issued.saturating_add(bytes);
        lane.due = if self.poisson {
            lane.due + random.exponential(span(lane.block, lane.bytes_per_s))
        } else {
            lane.began + span(lane.issued, lane.bytes_per_s)
        };
    }

    /// How far the slowest timetable is behind at `now`, and since when it runs;
    /// `None` without a rate, or with too few I/Os to say.
    pub(crate) fn behind(&self, now: Time) -> Option<Lag> {
        let lag = |lane: &Lane| Lag {
            behind: now.saturating_since(lane.due),
            elapsed: now.saturating_since(lane.began),
        };
        let enough = |lane: &&Lane| lane.issued / lane.block.max(1) >= IOS_MIN;
        self.lanes
            .iter()
            .flatten()
            .filter(enough)
            .map(lag)
            .max_by_key(|lag| lag.behind)
    }

    /// The job has paused for `pause`: without catching up, the timetable moves
    /// on as far, less one block that may go at once.
    pub(crate) fn paused(&mut self, pause: Duration) {
        if !self.ignores_think {
            return;
        }
        for lane in self.lanes.iter_mut().flatten() {
            debug_assert!(
                lane.began <= lane.due,
                "a timetable from {:?} on was due at {:?}",
                lane.began,
                lane.due
            );
            let shift = pause.saturating_sub(span(lane.block, lane.bytes_per_s));
            lane.began += shift;
            lane.due += shift;
        }
    }
}

/// The time that `bytes` take at a rate, at most [`Duration::LONGEST`]: a job may
/// ask for a byte a second and for more bytes than a century has seconds.
fn span(bytes: u64, bytes_per_s: u64) -> Duration {
    let nanoseconds = u128::from(bytes) * NS_PER_S / u128::from(bytes_per_s.max(1));
    u64::try_from(nanoseconds)
        .map_or(Duration::LONGEST, Duration::from_nanos)
        .min(Duration::LONGEST)
}
