//! Write-back throttling, as in Linux since 4.10 (`block/blk-wbt.c`, `block/blk-rq-qos.c`): limits
//! the asynchronous writes in the elevator and in flight, so that reads stay fast. Names in
//! brackets are those of Linux 6.
//!
//! 1. A window of 100 ms or less observes reads and writes (`wb_timer_fn`).
//! 2. If the fastest read of a window with reads and writes took longer than the target, the limit is
//!    halved; otherwise the limit grows again, step by step (`scale_down`, `scale_up`).
//! 3. With writes alone the limit may grow beyond the usual one.

use fullstroke_units::{Duration, Time};

/// Length of a window while nothing is scaled: `RWB_WINDOW_NSEC`.
const WINDOW: Duration = Duration::from_millis(100);
/// Number of writes that a window needs to be judged: `RWB_MIN_WRITE_SAMPLES`.
const WRITES_MIN: u32 = 3;
/// Number of windows without a judgement after which the limit goes back to the usual one by a
/// step: `RWB_UNKNOWN_BUMP`.
const UNKNOWN_MAX: u32 = 5;
/// Usual number of writes: `RWB_DEF_DEPTH`.
const USUAL_DEPTH: u32 = 16;
/// Time for which other I/O counts as recent (`close_io`): a tenth of a second.
const RECENT: Duration = Duration::from_millis(100);

/// What a window has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowVerdict {
    Good,
    Exceeded,
    /// Only writes were there.
    OnlyWrites,
    Unknown,
}

/// The completions of a window.
#[derive(Clone, Copy, Debug, Default)]
struct LatencyWindow {
    reads: u32,
    fastest_read: Duration,
    writes: u32,
}

/// The limit of asynchronous writes, and the observations for it.
#[derive(Clone, Debug)]
pub(super) struct WriteBackThrottle {
    /// Longest time of the fastest read: `wbt_lat_usec`.
    target: Duration,
    /// Number of requests of the device.
    queue_depth: u32,
    /// Power of two by which the limit is divided. Negative values multiply.
    step: i32,
    /// True if the limit cannot grow.
    at_most: bool,
    /// Largest limit (`max_depth`).
    depth: u32,
    /// Number of asynchronous writes, waiting in the elevator and in flight.
    inflight: u32,
    window: LatencyWindow,
    window_began: Time,
    /// End of the present window; NEVER while nothing is observed.
    due: Time,
    unknown: u32,
    /// Last dispatch and last completion of other I/O.
    other: Option<Time>,
    /// Dispatch of the read that is watched, and its slot (`sync_issue`).
    watched: Option<(u32, Time)>,
}

impl WriteBackThrottle {
    pub(super) fn new(target: Duration, queue_depth: u32) -> WriteBackThrottle {
        let mut throttle = WriteBackThrottle {
            target,
            queue_depth,
            step: 0,
            at_most: false,
            depth: 0,
            inflight: 0,
            window: LatencyWindow::default(),
            window_began: Time::ZERO,
            due: Time::NEVER,
            unknown: 0,
            other: None,
            watched: None,
        };
        throttle.measure_depth();
        throttle
    }

    /// Sets the limit from the step (`rq_depth_calc_max_depth`).
    fn measure_depth(&mut self) {
        if self.queue_depth == 1 {
            // A device without a queue gets one more request while nothing is scaled down.
            self.depth = if self.step > 0 { 1 } else { 2 };
            self.at_most = self.step <= 0;
            return;
        }
        let usual = USUAL_DEPTH.min(self.queue_depth);
        if self.step >= 0 {
            self.depth = 1 + ((usual - 1) >> self.step.min(31));
            return;
        }
        // `rq_depth_calc_max_depth` leaves a quarter of the device to reads.
        let most = 3 * self.queue_depth / 4;
        let grown = 1 + (u64::from(usual - 1) << self.step.unsigned_abs().min(31));
        self.at_most = grown > u64::from(most);
        self.depth = grown.min(u64::from(most)) as u32;
    }

    /// Returns the limit for a write at `now` (`get_limit`). Writes in the background of other I/O
    /// get a quarter of the depth, other asynchronous writes a half (`calc_wb_limits`).
    fn limit(&self, now: Time) -> u32 {
        let (normal, background) = if self.depth <= 2 {
            (self.depth, 1)
        } else {
            (self.depth.div_ceil(2), self.depth.div_ceil(4))
        };
        let recent = self.other.is_some_and(|other| now < other + RECENT);
        if recent { background } else { normal }
    }

    /// Lets an asynchronous write in, if the limit allows one more. Returns false if the submitter
    /// must wait (`wbt_wait`).
    pub(super) fn admits(&mut self, now: Time) -> bool {
        let admitted = self.inflight < self.limit(now);
        if admitted {
            self.inflight += 1;
            self.observe(now);
        }
        admitted
    }

    /// Takes an admission back: the write found no free request, or it joined another.
    pub(super) fn withdraw(&mut self) {
        assert!(self.inflight > 0, "no asynchronous write is in flight");
        self.inflight -= 1;
    }

    /// Begins a window, if none is open (`rwb_arm_timer`). With a smaller limit the windows are
    /// shorter: 100 ms over the square root of the step plus one.
    fn observe(&mut self, now: Time) {
        if self.due == Time::NEVER {
            self.window = LatencyWindow::default();
            self.window_began = now;
            self.due = now + self.length();
        }
    }

    fn length(&self) -> Duration {
        if self.step <= 0 {
            return WINDOW;
        }
        // `rwb_arm_timer`: a scaled-down window shrinks with the root of the step, as in CoDel.
        let root = (u64::from(self.step.unsigned_abs() + 1) << 8).isqrt();
        Duration::from_nanos((WINDOW.as_nanos() << 4) / root)
    }

    /// Notes the dispatch of the request in `slot` (`wbt_issue`).
    pub(super) fn issued(&mut self, now: Time, slot: u32, read: bool, counted: bool) {
        if !counted {
            self.other = Some(now);
        }
        if read && self.watched.is_none() {
            self.watched = Some((slot, now));
        }
    }

    /// Notes the completion of a request that was dispatched at `dispatched` (`wbt_done`).
    pub(super) fn completed(
        &mut self,
        now: Time,
        slot: u32,
        dispatched: Time,
        read: bool,
        counted: bool,
    ) {
        let time = now.since(dispatched);
        if read {
            let fastest = self.window.fastest_read;
            self.window.fastest_read = if self.window.reads == 0 {
                time
            } else {
                fastest.min(time)
            };
            self.window.reads += 1;
        } else {
            self.window.writes += 1;
        }
        if self.watched.is_some_and(|(watched, _)| watched == slot) {
            self.watched = None;
        }
        if counted {
            self.withdraw();
        } else {
            self.other = Some(now);
        }
    }

    /// Judges the window (`latency_exceeded`).
    fn verdict(&self, now: Time) -> WindowVerdict {
        let age = self
            .watched
            .map_or(Duration::ZERO, |(_, since)| now.since(since));
        let LatencyWindow {
            reads,
            fastest_read,
            writes,
        } = self.window;
        // A read in flight has no time yet. Without this test a device that answers no read would
        // count as one with writes only.
        if age > now.since(self.window_began) || (age > self.target && reads == 0) {
            return WindowVerdict::Exceeded;
        }
        // Too few samples say nothing of the device (`latency_exceeded`).
        if reads == 0 || writes < WRITES_MIN {
            return if writes > 0 || self.inflight > 0 {
                WindowVerdict::OnlyWrites
            } else {
                WindowVerdict::Unknown
            };
        }
        if fastest_read > self.target {
            WindowVerdict::Exceeded
        } else {
            WindowVerdict::Good
        }
    }

    /// Ends the window if its time has come. Returns true if the limit has changed
    /// (`wb_timer_fn`).
    pub(super) fn wake(&mut self, now: Time) -> bool {
        if self.due > now {
            return false;
        }
        let depth = self.depth;
        match self.verdict(now) {
            WindowVerdict::Exceeded => self.scale_down(true),
            WindowVerdict::Good | WindowVerdict::OnlyWrites => self.scale_up(),
            WindowVerdict::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_MAX {
                    match self.step.signum() {
                        1 => self.scale_up(),
                        -1 => self.scale_down(false),
                        _ => {}
                    }
                }
            }
        }
        self.due = Time::NEVER;
        if self.step != 0 || self.inflight > 0 {
            self.observe(now);
        }
        self.depth != depth
    }

    fn scale_up(&mut self) {
        if !self.at_most {
            self.step -= 1;
            self.measure_depth();
            self.unknown = 0;
        }
    }

    /// Lowers the limit. A limit above the usual one falls back to the usual one at once, if reads
    /// have suffered.
    fn scale_down(&mut self, suffered: bool) {
        if self.depth == 1 {
            return;
        }
        self.step = if self.step < 0 && suffered {
            0
        } else {
            self.step + 1
        };
        self.at_most = false;
        self.measure_depth();
        self.unknown = 0;
    }

    /// Returns the end of the window; NEVER while nothing is observed.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// True if the limit goes back to the usual one without any I/O: no run waits for that.
    pub(super) fn is_idle(&self) -> bool {
        self.inflight == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn throttle(queue_depth: u32) -> WriteBackThrottle {
        WriteBackThrottle::new(Duration::from_millis(75), queue_depth)
    }

    fn admitted(throttle: &mut WriteBackThrottle, now: Time) -> u32 {
        (0..1000).take_while(|_| throttle.admits(now)).count() as u32
    }

    #[test]
    fn half_of_the_depth_is_for_writes_and_a_quarter_beside_other_requests() {
        // `calc_wb_limits` with a depth of 16 and of 8.
        for (queue_depth, normal, background) in [(32, 8, 4), (8, 4, 2), (1, 2, 1)] {
            assert_eq!(admitted(&mut throttle(queue_depth), at(0)), normal);
            let mut beside = throttle(queue_depth);
            beside.issued(at(1000), 7, true, false);
            assert_eq!(admitted(&mut beside, at(1099)), background, "{queue_depth}");
            beside.withdraw();
            assert_eq!(
                admitted(&mut beside, at(1100)),
                1 + normal - background,
                "the other request is long ago"
            );
        }
    }

    #[test]
    fn slow_reads_lower_the_limit_and_fast_reads_raise_it_again() {
        let mut throttle = throttle(32);
        let window = |throttle: &mut WriteBackThrottle, now: u64, read_ms: u64| {
            assert!(throttle.admits(at(now)));
            for slot in 0..3 {
                throttle.completed(at(now + 90), slot, at(now), false, false);
            }
            throttle.completed(at(now + 90), 9, at(now + 90 - read_ms), true, false);
            throttle.withdraw();
            let due = throttle.due();
            throttle.wake(due);
            throttle.depth
        };
        assert_eq!(window(&mut throttle, 0, 80), 8);
        assert_eq!(throttle.length(), Duration::from_nanos(72_727_272));
        assert_eq!(window(&mut throttle, 1000, 80), 4);
        assert_eq!(window(&mut throttle, 2000, 10), 8);
        assert_eq!(window(&mut throttle, 3000, 10), 16);
    }

    #[test]
    fn writes_alone_may_use_three_quarters_of_the_device() {
        let mut throttle = throttle(32);
        assert!(throttle.admits(at(0)));
        throttle.completed(at(50), 1, at(0), false, false);
        assert!(throttle.wake(at(100)));
        assert_eq!(throttle.depth, 24);
        assert!(!throttle.wake(at(200)), "the limit is at its largest");
        // A read that waits for longer than the target brings the usual depth back at once.
        throttle.issued(at(210), 5, true, false);
        assert!(throttle.wake(at(400)));
        assert_eq!(throttle.depth, 16);
    }
}
