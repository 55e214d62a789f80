//! Low latency: which queues are favoured with a raised weight, for how long,
//! and why.
//!
//! - *Interactive*: it had nothing to do for long, and now has. It is favoured
//!   for about as long as a large application takes to start, unless it has
//!   more sectors than that needs.
//! - *Soft real-time*: after each batch of requests it pauses, so that it needs
//!   no more than a rate, as a player of films does. It is favoured shortly,
//!   again and again.
//! - Neither, if many queues came to be at once: they are parts of one large
//!   task, whose throughput counts.

use super::Config;
use fullstroke_units::{Duration, Time};

/// The soft real-time are raised so many times more: `BFQ_SOFTRT_WEIGHT_FACTOR`.
const SOFT_FACTOR: u32 = 100;
/// An interactive queue that has had so many sectors was none: large applications
/// read less than that while they start (`max_service_from_wr`).
const INTERACTIVE_SECTORS_MAX: u64 = 120_000;
/// Asynchronous requests are favoured if the last one came so long ago:
/// `bfq_wr_min_inter_arr_async`.
const ASYNC_PAUSE: Duration = Duration::from_millis(500);
/// Beyond the idle slice, a soft real-time queue pauses so long, lest one that
/// is merely slow be taken for one (`bfq_bfqq_softrt_next_start`, which says
/// ticks of the kernel: at 1000 Hz).
const SOFT_PAUSE: Duration = Duration::from_millis(4);
/// So many queues, each that soon after another, are a large burst:
/// `bfq_large_burst_thresh`, `bfq_burst_interval`.
const BURST: usize = 8;
const BURST_INTERVAL: Duration = Duration::from_millis(180);

/// Why a queue is favoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Favour {
    /// It starts something.
    Interactive,
    /// It paces itself.
    SoftRealTime,
}

/// What a queue that gets requests again is found to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) interactive: bool,
    pub(super) soft_real_time: bool,
    pub(super) in_large_burst: bool,
    /// Whether it may be favoured at all: somebody waits for its requests.
    pub(super) synchronous: bool,
}

/// Whether and since when a queue is favoured, and what it is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raising {
    pub(super) favour: Option<Favour>,
    /// Since when; of the others, when the last request came or the last turn
    /// ended.
    since: Time,
    duration: Duration,
    /// Since when it was favoured as interactive before it was found to be soft
    /// real-time.
    interactive_since: Option<Time>,
    /// Sectors since it has been favoured.
    sectors: u64,
    /// It is soft real-time if its next requests come after this.
    next_start: Time,
    /// Since when it has requests, and sectors since then.
    pub(super) backlogged_since: Time,
    pub(super) backlogged_sectors: u64,
    /// `next_start` is to be set as soon as nothing is in flight any more.
    next_start_pending: bool,
}

impl Raising {
    pub(super) fn new(now: Time) -> Raising {
        Raising {
            favour: None,
            since: now,
            duration: Duration::ZERO,
            interactive_since: None,
            sectors: 0,
            next_start: now,
            backlogged_since: now,
            backlogged_sectors: 0,
            next_start_pending: false,
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.favour.is_some()
    }

    /// What the weight is multiplied by.
    pub(super) fn factor(&self, config: &Config) -> u32 {
        match self.favour {
            None => 1,
            Some(Favour::Interactive) => config.wr_coeff,
            Some(Favour::SoftRealTime) => config.wr_coeff * SOFT_FACTOR,
        }
    }

    /// Whether requests that come now come from one that paces itself.
    pub(super) fn is_paced(&self, now: Time) -> bool {
        self.next_start < now
    }

    /// The queue has got requests again. `longest` is how long an interactive
    /// one is favoured. Whether that begins now
    /// (`bfq_update_bfqq_wr_on_rq_arrival`).
    pub(super) fn awoken(
        &mut self,
        now: Time,
        found: Found,
        longest: Duration,
        config: &Config,
    ) -> bool {
        let before = self.favour;
        let deserves = found.synchronous && (found.interactive || found.soft_real_time);
        match before {
            None if deserves => self.begin(found.interactive, longest, config),
            None => {}
            Some(_) if found.interactive => self.favour_as(Favour::Interactive, longest),
            Some(_) if found.in_large_burst => self.favour = None,
            Some(_) if found.soft_real_time => self.recharge(now, config),
            Some(_) => {}
        }
        before.is_none() && self.is_raised()
    }

    fn begin(&mut self, interactive: bool, longest: Duration, config: &Config) {
        if interactive {
            self.sectors = 0;
            self.favour_as(Favour::Interactive, longest);
        } else {
            self.interactive_since = None;
            self.favour_as(Favour::SoftRealTime, config.wr_rt_max_time);
        }
    }

    fn recharge(&mut self, now: Time, config: &Config) {
        if self.favour != Some(Favour::SoftRealTime) {
            self.interactive_since = Some(self.since);
            self.favour_as(Favour::SoftRealTime, config.wr_rt_max_time);
        }
        self.since = now;
    }

    fn favour_as(&mut self, favour: Favour, duration: Duration) {
        self.favour = Some(favour);
        self.duration = duration;
    }

    /// An asynchronous request has come while others wait: the first after a
    /// pause is favoured.
    pub(super) fn async_arrived(&mut self, now: Time, longest: Duration) {
        if self.favour.is_none() && self.since + ASYNC_PAUSE < now {
            self.favour_as(Favour::Interactive, longest);
        }
    }

    /// A request has come. `was_raised` before it came.
    pub(super) fn arrived(&mut self, now: Time, was_raised: bool, interactive: bool) {
        if !was_raised || !self.is_raised() || interactive {
            self.since = now;
        }
    }

    /// The queue gets its turn, having had none since `left`: the soft real-time
    /// do not lose that time.
    pub(super) fn turn_begins(&mut self, now: Time, left: Time) {
        if self.favour == Some(Favour::SoftRealTime) && self.since < now && left < now {
            self.since = if left > self.since {
                self.since + now.since(left)
            } else {
                now
            };
        }
    }

    /// The queue's turn ends. `empty` if it has no requests, and `in_flight` if
    /// the device has some.
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

    /// Nothing of the queue is left.
    pub(super) fn drained(&mut self, now: Time, config: &Config) {
        if self.next_start_pending {
            self.set_next_start(now, config);
        }
    }

    /// Not of the interactive: what an application reads while it starts says
    /// nothing of its pace.
    fn set_next_start(&mut self, now: Time, config: &Config) {
        if self.favour != Some(Favour::Interactive) {
            let needed =
                Duration::from_secs(1) * self.backlogged_sectors / config.wr_max_softrt_rate;
            let paced = self.backlogged_since + needed;
            self.next_start = self
                .next_start
                .max(paced)
                .max(now + config.slice_idle + SOFT_PAUSE);
        }
    }

    /// The queue has requests again.
    pub(super) fn backlogged(&mut self, now: Time) {
        self.backlogged_since = now;
        self.backlogged_sectors = 0;
        self.next_start_pending = false;
    }

    /// The queue has had so many sectors.
    pub(super) fn served(&mut self, sectors: u64) {
        self.backlogged_sectors += sectors;
        if self.is_raised() {
            self.sectors += sectors;
        }
    }

    /// Ends or changes the favour if it is time: `bfq_update_wr_data`.
    pub(super) fn review(&mut self, now: Time, in_large_burst: bool, longest: Duration) {
        let Some(favour) = self.favour else { return };
        if in_large_burst {
            self.end(now);
        } else if self.since + self.duration < now {
            match self.interactive_since {
                Some(since) if favour == Favour::SoftRealTime && since + longest >= now => {
                    self.since = since;
                    self.favour_as(Favour::Interactive, longest);
                }
                _ => self.end(now),
            }
        }
        if self.favour == Some(Favour::Interactive) && self.sectors > INTERACTIVE_SECTORS_MAX {
            self.end(now);
        }
    }

    /// The favour ends.
    pub(super) fn end(&mut self, now: Time) {
        self.favour = None;
        self.since = now;
    }
}

/// Queues that came to be shortly after each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    queues: Vec<u32>,
    large: bool,
    latest: Time,
}

impl Burst {
    /// Whether a new queue may belong to a burst: a burst begins while nobody
    /// else is active.
    pub(super) fn concerns(&self, active: u32) -> bool {
        !self.queues.is_empty() || self.large || active == 0
    }

    /// A new queue. The queues that are now known to be part of a large burst
    /// (`bfq_handle_burst`, `bfq_add_to_burst`).
    pub(super) fn join(&mut self, now: Time, queue: u32, active: u32) -> Vec<u32> {
        let continues = now <= self.latest + BURST_INTERVAL;
        self.latest = now;
        if !continues {
            self.large = false;
            self.queues.clear();
            if active == 0 {
                self.queues.push(queue);
            }
            return Vec::new();
        }
        if self.large {
            return vec![queue];
        }
        self.queues.push(queue);
        if self.queues.len() < BURST {
            return Vec::new();
        }
        self.large = true;
        std::mem::take(&mut self.queues)
    }

    /// The queue has been idle for so long that it has nothing to do with it.
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
    const INTERACTIVE: Found = Found {
        interactive: true,
        soft_real_time: false,
        in_large_burst: false,
        synchronous: true,
    };
    const PACED: Found = Found {
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
        // After a pause, another may begin.
        assert!(burst.join(at(3000), 10, 5).is_empty());
        assert!(!burst.concerns(5));
    }

    #[test]
    fn interactive_favour_ends_with_time_or_sectors() {
        let mut raising = Raising::new(at(0));
        assert!(raising.awoken(at(0), INTERACTIVE, LONGEST, &config()));
        assert_eq!(raising.factor(&config()), 30);
        raising.review(at(5000), false, LONGEST);
        assert!(raising.is_raised());
        let mut greedy = raising;
        greedy.served(INTERACTIVE_SECTORS_MAX + 1);
        greedy.review(at(100), false, LONGEST);
        assert!(!greedy.is_raised());
        raising.review(at(5001), false, LONGEST);
        assert!(!raising.is_raised());
    }

    #[test]
    fn a_large_burst_is_not_favoured() {
        let mut raising = Raising::new(at(0));
        raising.awoken(at(0), INTERACTIVE, LONGEST, &config());
        raising.review(at(1), true, LONGEST);
        assert!(!raising.is_raised());
    }

    #[test]
    fn soft_real_time_favour_falls_back_to_what_is_left_of_the_interactive() {
        let mut raising = Raising::new(at(0));
        raising.awoken(at(0), INTERACTIVE, LONGEST, &config());
        assert!(
            !raising.awoken(at(1000), PACED, LONGEST, &config()),
            "it was favoured before"
        );
        assert_eq!(raising.factor(&config()), 3000);
        raising.review(at(1301), false, LONGEST);
        assert_eq!(raising.favour, Some(Favour::Interactive));
        raising.review(at(5001), false, LONGEST);
        assert_eq!(raising.favour, None);
    }

    #[test]
    fn who_has_had_many_sectors_is_paced_only_after_as_long_a_pause() {
        let mut raising = Raising::new(at(0));
        raising.backlogged(at(1000));
        raising.served(3500);
        raising.turn_ends(at(1020), true, true, &config());
        assert!(
            raising.is_paced(at(1020)),
            "not known before nothing is in flight"
        );
        raising.drained(at(1030), &config());
        // 3500 sectors at 7000 a second, from 1 s on.
        assert!(!raising.is_paced(at(1500)));
        assert!(raising.is_paced(at(1501)));
        // With few sectors, the idle slice and a little.
        raising.backlogged(at(2000));
        raising.turn_ends(at(2010), true, false, &config());
        assert!(!raising.is_paced(at(2022)));
        assert!(raising.is_paced(at(2023)));
    }
}
