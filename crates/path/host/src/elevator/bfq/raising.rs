//! Low latency: favours certain queues with a raised weight for a time.
//!
//! - *Interactive*: the queue was idle for a long time, and now has requests. The favour lasts
//!   about as long as the start of a large application. The favour ends earlier if the queue has
//!   had more sectors than such a start needs.
//! - *Soft real-time*: the queue pauses after each batch of requests, and so stays below a rate, as
//!   a film player does. The favour is short and recurs.
//! - No favour: many queues appeared at once. The queues are parts of one large task. Only its
//!   throughput counts.

use super::config::Config;
use fullstroke_units::{Duration, Time};

/// Factor of soft real-time queues over interactive queues: `BFQ_SOFTRT_WEIGHT_FACTOR`.
const SOFT_FACTOR: u32 = 100;
/// Number of sectors after which a queue does not count as interactive: large applications read
/// less during their start (`max_service_from_wr`).
const INTERACTIVE_SECTORS_MAX: u64 = 120_000;
/// Pause after which an asynchronous request is favoured: `bfq_wr_min_inter_arr_async`.
const ASYNC_PAUSE: Duration = Duration::from_millis(500);
/// Number of ticks beyond the idle slice for which a soft real-time queue pauses. Without the
/// pause, a merely slow queue would count as soft real-time (`bfq_bfqq_softrt_next_start`).
const SOFT_PAUSE_TICKS: u64 = 4;
/// Ticks a second of the kernel: the default of `kernel/Kconfig.hz`. The kernel's BFQ keeps all
/// times of this file in ticks.
const HZ: u64 = 250;
/// Number of queues in a large burst, and the longest time between two of them:
/// `bfq_large_burst_thresh`, `bfq_burst_interval`.
const BURST: usize = 8;
const BURST_INTERVAL: Duration = Duration::from_millis(180);

/// Reason for the favour of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FavourReason {
    /// The process starts a program or action.
    Interactive,
    /// The process paces itself.
    SoftRealTime,
}

/// Findings about a queue with new requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueFindings {
    pub(super) interactive: bool,
    pub(super) soft_real_time: bool,
    pub(super) in_large_burst: bool,
    /// True if the queue may be favoured at all, because a process waits for its requests.
    pub(super) synchronous: bool,
}

/// Returns the time of the last tick before `now`.
pub(super) fn tick_of(now: Time) -> Time {
    let tick = 1_000_000_000 / HZ;
    Time::from_nanos(now.as_nanos() - now.as_nanos() % tick)
}

/// Returns `time` in whole ticks, at least one (`msecs_to_jiffies`).
pub(super) fn whole_ticks(time: Duration) -> Duration {
    let tick = 1_000_000_000 / HZ;
    Duration::from_nanos(time.as_nanos().div_ceil(tick).max(1).saturating_mul(tick))
}

fn soft_pause() -> Duration {
    Duration::from_secs(1) * SOFT_PAUSE_TICKS / HZ
}

/// Favour of a queue, and the observations for its judgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueFavour {
    pub(super) favour: Option<FavourReason>,
    /// Start of the favour. Without favour: time of the last request or of the end of the last
    /// turn.
    since: Time,
    duration: Duration,
    /// Start of the interactive favour, if the queue became soft real-time during the favour.
    interactive_since: Option<Time>,
    /// Sectors since the start of the favour.
    sectors: u64,
    /// If the next requests come later than this, the queue is soft real-time.
    next_start: Time,
    /// Time since which the queue has requests, and sectors since then.
    pub(super) backlogged_since: Time,
    pub(super) backlogged_sectors: u64,
    /// Time of the first service since `backlogged_since` (`first_IO_time`).
    first_service: Time,
    /// True if `next_start` must be set as soon as no request is in flight.
    next_start_pending: bool,
}

impl QueueFavour {
    pub(super) fn new(now: Time) -> QueueFavour {
        QueueFavour {
            favour: None,
            since: now,
            duration: Duration::ZERO,
            interactive_since: None,
            sectors: 0,
            next_start: now,
            backlogged_since: now,
            backlogged_sectors: 0,
            first_service: now,
            next_start_pending: false,
        }
    }

    /// True if the queue has had service for longer than `limit` since it became busy
    /// (`bfq_too_late_for_merging`).
    pub(super) fn is_served_for(&self, now: Time, limit: Duration) -> bool {
        self.backlogged_sectors > 0 && self.first_service + limit < tick_of(now)
    }

    /// Passes the favour to the queue `heir`, if the heir has none. The favour ends here
    /// (`bfq_merge_bfqqs`).
    pub(super) fn pass_to(&mut self, heir: &mut QueueFavour) {
        let Some(favour) = self.favour.take() else {
            return;
        };
        if heir.favour.is_none() {
            heir.favour = Some(favour);
            heir.since = self.since;
            heir.duration = self.duration;
            heir.interactive_since = self.interactive_since;
        }
    }

    /// Returns the favour that a new queue would have got with its first request
    /// (`bfq_bfqq_save_state`).
    pub(super) fn as_if_started(self, now: Time, longest: Duration) -> QueueFavour {
        QueueFavour {
            favour: Some(FavourReason::Interactive),
            since: now,
            duration: longest,
            interactive_since: None,
            ..self
        }
    }

    /// Returns these observations with a favour that was saved before a merge. The kernel saves the
    /// favour and no observations of the pace (`bfq_bfqq_resume_state`).
    pub(super) fn resumed(self, saved: &QueueFavour) -> QueueFavour {
        QueueFavour {
            favour: saved.favour,
            since: saved.since,
            duration: saved.duration,
            interactive_since: saved.interactive_since,
            sectors: saved.sectors,
            ..self
        }
    }

    /// Ends a soft real-time favour of a queue that only seeks. What is left of an interactive
    /// favour goes on (`bfq_update_io_seektime`).
    pub(super) fn seeks_only(&mut self, now: Time, longest: Duration) {
        if self.favour == Some(FavourReason::SoftRealTime) {
            self.fall_back(now, longest);
        }
    }

    fn fall_back(&mut self, now: Time, longest: Duration) {
        match self.interactive_since {
            Some(since) if since + longest >= now => {
                self.since = since;
                self.favour_as(FavourReason::Interactive, longest);
            }
            _ => self.end(now),
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.favour.is_some()
    }

    /// Returns the factor on the weight.
    pub(super) fn factor(&self, config: &Config) -> u32 {
        match self.favour {
            None => 1,
            Some(FavourReason::Interactive) => config.wr_coeff,
            Some(FavourReason::SoftRealTime) => config.wr_coeff * SOFT_FACTOR,
        }
    }

    /// True if requests at `now` come from a self-paced process.
    pub(super) fn is_paced(&self, now: Time) -> bool {
        self.next_start < now
    }

    /// Notes the first request after a time without requests. `longest` is the duration of an
    /// interactive favour. Returns true if a favour begins now
    /// (`bfq_update_bfqq_wr_on_rq_arrival`).
    pub(super) fn note_first_request(
        &mut self,
        now: Time,
        found: QueueFindings,
        longest: Duration,
        config: &Config,
    ) -> bool {
        let before = self.favour;
        let deserves = found.synchronous && (found.interactive || found.soft_real_time);
        match before {
            None if deserves => self.begin(found.interactive, longest, config),
            None => {}
            Some(_) if found.interactive => self.favour_as(FavourReason::Interactive, longest),
            Some(_) if found.in_large_burst => self.favour = None,
            Some(_) if found.soft_real_time => self.recharge(now, config),
            Some(_) => {}
        }
        before.is_none() && self.is_raised()
    }

    fn begin(&mut self, interactive: bool, longest: Duration, config: &Config) {
        if interactive {
            self.sectors = 0;
            self.favour_as(FavourReason::Interactive, longest);
        } else {
            self.interactive_since = None;
            self.favour_as(FavourReason::SoftRealTime, config.wr_rt_max_time);
        }
    }

    fn recharge(&mut self, now: Time, config: &Config) {
        if self.favour != Some(FavourReason::SoftRealTime) {
            // The rest of the interactive favour comes back if the pace does not last
            // (`wr_start_at_switch_to_srt`).
            self.interactive_since = Some(self.since);
            self.favour_as(FavourReason::SoftRealTime, config.wr_rt_max_time);
        }
        // A soft real-time queue that keeps its pace keeps its favour.
        self.since = now;
    }

    fn favour_as(&mut self, favour: FavourReason, duration: Duration) {
        self.favour = Some(favour);
        self.duration = duration;
    }

    /// Notes an asynchronous request at a busy queue. The first after a pause is favoured.
    pub(super) fn async_arrived(&mut self, now: Time, longest: Duration) {
        if self.favour.is_none() && self.since + ASYNC_PAUSE < now {
            self.favour_as(FavourReason::Interactive, longest);
        }
    }

    /// Notes a request. `was_raised` tells if the queue was favoured before the request.
    pub(super) fn arrived(&mut self, now: Time, was_raised: bool, interactive: bool) {
        // A favour that goes on keeps its start, or it would never end.
        if !was_raised || !self.is_raised() || interactive {
            self.since = now;
        }
    }

    /// Notes the start of a turn after the last turn ended at `left`. The favour of a soft
    /// real-time queue is prolonged by the time between.
    pub(super) fn turn_begins(&mut self, now: Time, left: Time) {
        if self.favour == Some(FavourReason::SoftRealTime) && self.since < now && left < now {
            self.since = if left > self.since {
                self.since + now.since(left)
            } else {
                now
            };
        }
    }

    /// Notes the end of a turn. `empty` is true if no request waits, `in_flight` if requests are in
    /// flight. An interactive queue that ends a turn without requests gets its `next_start` too
    /// (`bfq_bfqq_expire`, since Linux 5.12). Otherwise a process that sends each request after the
    /// completion of the one before would count as soft real-time at its next turn.
    pub(super) fn turn_ends(&mut self, now: Time, empty: bool, in_flight: bool, config: &Config) {
        if !self.is_raised() {
            self.since = now;
        }
        if empty && config.wr_max_softrt_rate > 0 {
            self.next_start_pending |= in_flight;
            if !in_flight {
                self.set_next_start(now, config);
            }
        }
    }

    /// Notes the end of the last request, waiting or in flight. The reads of a starting application
    /// say nothing of its pace, so an interactive queue keeps its `next_start`
    /// (`bfq_completed_request`).
    pub(super) fn drained(&mut self, now: Time, config: &Config) {
        if self.next_start_pending && self.favour != Some(FavourReason::Interactive) {
            self.set_next_start(now, config);
        }
    }

    /// Sets `next_start` (`bfq_bfqq_softrt_next_start`).
    fn set_next_start(&mut self, now: Time, config: &Config) {
        let needed = Duration::from_secs(1) * self.backlogged_sectors / config.wr_max_softrt_rate;
        let paced = self.backlogged_since + needed;
        self.next_start = self
            .next_start
            .max(paced)
            .max(now + config.slice_idle + soft_pause());
    }

    /// Notes the first request after a time without requests.
    pub(super) fn backlogged(&mut self, now: Time) {
        self.backlogged_since = now;
        self.backlogged_sectors = 0;
        self.next_start_pending = false;
    }

    /// Counts sectors of service at `now`.
    pub(super) fn served(&mut self, now: Time, sectors: u64) {
        if self.backlogged_sectors == 0 {
            self.first_service = now;
        }
        self.backlogged_sectors += sectors;
        if self.is_raised() {
            self.sectors += sectors;
        }
    }

    /// Ends or changes the favour if the time has come: `bfq_update_wr_data`.
    pub(super) fn review(&mut self, now: Time, in_large_burst: bool, longest: Duration) {
        let Some(favour) = self.favour else { return };
        if in_large_burst {
            self.end(now);
        } else if self.since + self.duration < now {
            match favour {
                FavourReason::SoftRealTime => self.fall_back(now, longest),
                FavourReason::Interactive => self.end(now),
            }
        }
        if self.favour == Some(FavourReason::Interactive) && self.sectors > INTERACTIVE_SECTORS_MAX
        {
            self.end(now);
        }
    }

    /// Ends the favour. After an interactive favour the pace is judged anew from now on
    /// (`bfq_bfqq_end_wr`).
    pub(super) fn end(&mut self, now: Time) {
        if self.favour != Some(FavourReason::SoftRealTime) {
            self.next_start = now;
        }
        self.favour = None;
        self.since = now;
    }
}

/// Queues that appeared shortly after each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    queues: Vec<u32>,
    /// Number of queues that have joined the burst. Queues that have left the burst still count.
    size: usize,
    large: bool,
    latest: Time,
}

impl Burst {
    /// True if a new queue may belong to a burst. A burst begins only while no other queue is
    /// active.
    pub(super) fn concerns(&self, active: u32) -> bool {
        self.size > 0 || active == 0
    }

    /// Adds a new queue. Returns the queues that are now known to be part of a large burst
    /// (`bfq_handle_burst`, `bfq_add_to_burst`).
    pub(super) fn join(&mut self, now: Time, queue: u32, active: u32) -> Vec<u32> {
        let continues = now <= self.latest + BURST_INTERVAL;
        self.latest = now;
        if !continues {
            self.large = false;
            self.queues.clear();
            self.size = usize::from(active == 0);
            if active == 0 {
                self.queues.push(queue);
            }
            return Vec::new();
        }
        if self.large {
            return vec![queue];
        }
        self.queues.push(queue);
        self.size += 1;
        if self.size < BURST {
            return Vec::new();
        }
        self.large = true;
        std::mem::take(&mut self.queues)
    }

    /// True if the queue waits for the burst to become large.
    pub(super) fn has(&self, queue: u32) -> bool {
        self.queues.contains(&queue)
    }

    pub(super) fn is_large(&self) -> bool {
        self.large
    }

    /// Adds a queue again that was split off a shared queue. The queue has been counted before
    /// (`bfq_get_bfqq_handle_split`).
    pub(super) fn rejoin(&mut self, queue: u32) {
        self.queues.push(queue);
    }

    /// Removes a queue that no longer belongs to the burst, because it was idle for long or is no
    /// queue any more. The queue still counts as created in the burst.
    pub(super) fn leave(&mut self, queue: u32) {
        self.queues.retain(|&other| other != queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::registry::{Keys, read};

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn config() -> Config {
        read(&Keys::new()).unwrap()
    }

    const LONGEST: Duration = Duration::from_secs(5);
    const INTERACTIVE: QueueFindings = QueueFindings {
        interactive: true,
        soft_real_time: false,
        in_large_burst: false,
        synchronous: true,
    };
    const PACED: QueueFindings = QueueFindings {
        interactive: false,
        soft_real_time: true,
        ..INTERACTIVE
    };

    #[test]
    fn eight_queues_in_quick_succession_are_a_large_burst() {
        let mut burst = Burst::default();
        let mut found = Vec::new();
        for queue in 0..10 {
            found.push(burst.join(
                at(1000 + 100 * u64::from(queue)),
                queue,
                u32::from(queue > 0),
            ));
        }
        assert!(found[..7].iter().all(Vec::is_empty));
        assert_eq!(found[7], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(found[8..], [[8], [9]]);
        // After a pause another burst may begin.
        assert!(burst.join(at(3000), 10, 5).is_empty());
        assert!(!burst.concerns(5));
    }

    #[test]
    fn interactive_favour_ends_with_time_or_sectors() {
        let mut raising = QueueFavour::new(at(0));
        assert!(raising.note_first_request(at(0), INTERACTIVE, LONGEST, &config()));
        assert_eq!(raising.factor(&config()), 30);
        raising.review(at(5000), false, LONGEST);
        assert!(raising.is_raised());
        let mut greedy = raising;
        greedy.served(at(1), INTERACTIVE_SECTORS_MAX + 1);
        greedy.review(at(100), false, LONGEST);
        assert!(!greedy.is_raised());
        raising.review(at(5001), false, LONGEST);
        assert!(!raising.is_raised());
    }

    #[test]
    fn a_large_burst_is_not_favoured() {
        let mut raising = QueueFavour::new(at(0));
        raising.note_first_request(at(0), INTERACTIVE, LONGEST, &config());
        raising.review(at(1), true, LONGEST);
        assert!(!raising.is_raised());
    }

    #[test]
    fn soft_real_time_favour_falls_back_to_what_is_left_of_the_interactive() {
        let mut raising = QueueFavour::new(at(0));
        raising.note_first_request(at(0), INTERACTIVE, LONGEST, &config());
        assert!(
            !raising.note_first_request(at(1000), PACED, LONGEST, &config()),
            "it was favoured before"
        );
        assert_eq!(raising.factor(&config()), 3000);
        raising.review(at(1301), false, LONGEST);
        assert_eq!(raising.favour, Some(FavourReason::Interactive));
        raising.review(at(5001), false, LONGEST);
        assert_eq!(raising.favour, None);
    }

    #[test]
    fn who_has_had_many_sectors_is_paced_only_after_as_long_a_pause() {
        let mut raising = QueueFavour::new(at(0));
        raising.backlogged(at(1000));
        raising.served(at(1000), 3500);
        raising.turn_ends(at(1020), true, true, &config());
        assert!(
            raising.is_paced(at(1020)),
            "not known before nothing is in flight"
        );
        raising.drained(at(1030), &config());
        // 3500 sectors at 7000 a second take until 1.5 s, counted from 1 s.
        assert!(!raising.is_paced(at(1500)));
        assert!(raising.is_paced(at(1501)));
        // With few sectors, the idle slice and a short pause decide.
        raising.backlogged(at(2000));
        raising.turn_ends(at(2010), true, false, &config());
        assert!(!raising.is_paced(at(2034)));
        assert!(raising.is_paced(at(2035)));
    }

    /// A closed loop of depth 1 that loses its turn while it is favoured: its next request comes
    /// within milliseconds, and must not count as the next picture of a film.
    #[test]
    fn a_closed_loop_under_interactive_favour_does_not_become_soft_real_time() {
        let mut raising = QueueFavour::new(at(0));
        raising.note_first_request(at(4), INTERACTIVE, LONGEST, &config());
        raising.backlogged(at(4));
        raising.turn_ends(at(40), true, false, &config());
        assert!(!raising.is_paced(at(44)));
        assert!(raising.is_paced(at(68)));
    }

    #[test]
    fn a_shared_queue_inherits_the_favour_of_the_queue_that_joins() {
        let mut raising = QueueFavour::new(at(0));
        raising.note_first_request(at(0), INTERACTIVE, LONGEST, &config());
        let mut heir = QueueFavour::new(at(0));
        raising.pass_to(&mut heir);
        assert!(!raising.is_raised());
        assert_eq!(heir.favour, Some(FavourReason::Interactive));
        heir.review(at(5001), false, LONGEST);
        assert!(!heir.is_raised(), "the favour has its old end");
    }

    /// `bfq_bfqq_resume_state` restores the favour. The first request of the queue after a split
    /// may merge by place again, because the service before the merge is forgotten.
    #[test]
    fn a_split_queue_has_its_favour_back_and_no_service_of_before() {
        let mut saved = QueueFavour::new(at(0));
        saved.note_first_request(at(0), INTERACTIVE, LONGEST, &config());
        saved.served(at(0), 800);
        assert!(saved.is_served_for(at(500), Duration::from_millis(100)));
        let resumed = QueueFavour::new(at(500)).resumed(&saved);
        assert_eq!(resumed.favour, Some(FavourReason::Interactive));
        assert!(!resumed.is_served_for(at(500), Duration::from_millis(100)));
    }

    #[test]
    fn times_are_whole_ticks() {
        assert_eq!(
            whole_ticks(Duration::from_millis(124)),
            Duration::from_millis(124)
        );
        assert_eq!(
            whole_ticks(Duration::from_millis(125)),
            Duration::from_millis(128)
        );
        assert_eq!(whole_ticks(Duration::ZERO), Duration::from_millis(4));
    }
}
