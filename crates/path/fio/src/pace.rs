//! Rate limits: the time at which a rate allows the next I/O.
//!
//! As in fio, the timetable counts from the beginning of the job. A late job therefore catches up.

use crate::job::{FioJob, IoDirection};
use fullstroke_units::{Duration, Random, Time};

const NS_PER_S: u128 = 1_000_000_000;

/// Smallest number of I/Os of a direction for a judgement that it is behind. A confidence interval
/// needs as many.
const IOS_MIN: u64 = 320;

/// Delay of a job against its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RateLag {
    pub(crate) behind: Duration,
    /// Time since the beginning of the timetable.
    pub(crate) elapsed: Duration,
}

/// Timetable of one direction.
#[derive(Clone, Copy, Debug)]
struct DirectionTimetable {
    bytes_per_s: u64,
    /// Size of a block in bytes, for the conversion of `rate_iops`.
    block: u64,
    began: Time,
    issued: u64,
    due: Time,
}

/// Timetables of all directions.
#[derive(Clone, Debug)]
pub(crate) struct DirectionTimetables {
    lanes: [Option<DirectionTimetable>; 3],
    poisson: bool,
    ignores_think: bool,
}

impl DirectionTimetables {
    pub(crate) fn new(job: &FioJob) -> DirectionTimetables {
        let lane = |direction: IoDirection| {
            let at = direction as usize;
            let block = job.blocks[at].smallest();
            let by_count = job.rate_iops[at].map(|iops| iops.saturating_mul(block));
            let bytes_per_s = job.rate_bytes_per_s[at].or(by_count)?;
            Some(DirectionTimetable {
                bytes_per_s,
                block,
                began: Time::ZERO,
                issued: 0,
                due: Time::ZERO,
            })
        };
        DirectionTimetables {
            lanes: IoDirection::ALL.map(lane),
            poisson: job.poisson,
            ignores_think: job.rate_ignores_think,
        }
    }

    /// Begins the timetables at `now`.
    pub(crate) fn restart(&mut self, now: Time) {
        for lane in self.lanes.iter_mut().flatten() {
            (lane.began, lane.issued, lane.due) = (now, 0, now);
        }
    }

    /// Returns the time when the next I/O of `direction` may be issued; time 0 without a rate.
    pub(crate) fn due(&self, direction: IoDirection) -> Time {
        self.lanes[direction as usize].map_or(Time::ZERO, |lane| lane.due)
    }

    /// Records that `bytes` were issued.
    pub(crate) fn issued(&mut self, direction: IoDirection, bytes: u64, random: &mut Random) {
        let Some(lane) = &mut self.lanes[direction as usize] else {
            return;
        };
        lane.issued = lane.issued.saturating_add(bytes);
        // Gaps of a Poisson process are independent, so a late I/O is not caught up.
        lane.due = if self.poisson {
            lane.due + random.exponential(span(lane.block, lane.bytes_per_s))
        } else {
            // Counted from the beginning, so that rounding never accumulates.
            lane.began + span(lane.issued, lane.bytes_per_s)
        };
    }

    /// Returns the delay of the slowest timetable at `now`. Returns `None` without a rate, or if
    /// too few I/Os were issued for a judgement.
    pub(crate) fn behind(&self, now: Time) -> Option<RateLag> {
        let lag = |lane: &DirectionTimetable| RateLag {
            behind: now.saturating_since(lane.due),
            elapsed: now.saturating_since(lane.began),
        };
        let enough = |lane: &&DirectionTimetable| lane.issued / lane.block.max(1) >= IOS_MIN;
        self.lanes
            .iter()
            .flatten()
            .filter(enough)
            .map(lag)
            .max_by_key(|lag| lag.behind)
    }

    /// Records a pause of the job. If the job must not catch up, the timetable moves by the pause,
    /// less the time of one block that may be issued at once.
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
            // fio's `handle_thinktime` leaves out the time that the next block would have waited
            // anyway.
            let shift = pause.saturating_sub(span(lane.block, lane.bytes_per_s));
            lane.began += shift;
            lane.due += shift;
        }
    }
}

/// Returns the time that `bytes` take at a rate, at most [`Duration::LONGEST`]. The limit is needed
/// because a job may combine a rate of one byte a second with more bytes than a century has
/// seconds.
fn span(bytes: u64, bytes_per_s: u64) -> Duration {
    let nanoseconds = u128::from(bytes) * NS_PER_S / u128::from(bytes_per_s.max(1));
    u64::try_from(nanoseconds)
        .map_or(Duration::LONGEST, Duration::from_nanos)
        .min(Duration::LONGEST)
}
