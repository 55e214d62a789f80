//! Writing dirty data back: passes in the order of addresses, at the rate of a controller.

use super::config::BcacheConfig;
use fullstroke_units::{Duration, SECTOR_BYTES, Time};

/// Copies in flight (`in_flight`, writeback.c).
const IN_FLIGHT: u32 = 64;
/// Time between two settings of the rate (`WRITEBACK_RATE_UPDATE_SECS_DEFAULT`).
const UPDATE: Duration = Duration::from_secs(5);
/// Settings without I/O after which the rate is the largest one (`set_at_max_writeback_rate`).
const IDLE_UPDATES: u32 = 6;
/// Inverse of the factors of the proportional and the integral term (`bch_cached_dev_writeback_init`).
const P_INVERSE: i64 = 40;
const I_INVERSE: i64 = 10_000;
/// Rate at the beginning, in sectors a second.
const FIRST_RATE: i64 = 1024;
/// Largest rate, in sectors a second (`NSEC_PER_SEC`).
const LARGEST_RATE: i64 = 1_000_000_000;
/// Bounds of the lag and the lead of the rate limit (`bch_next_delay`, util.c).
const LAG: Duration = Duration::from_secs(2);
const LEAD: Duration = Duration::from_millis(2500);
/// Delay that a copy after its neighbour does not wait for (`read_dirty`).
const NEIGHBOUR_DELAY: Duration = Duration::from_millis(50);

/// State of writing back.
#[derive(Clone, Debug)]
pub(super) struct Writeback {
    /// Dirty sectors, the target of the controller.
    target: i64,
    /// True if dirty data are written without a limit of the rate.
    unlimited: bool,
    minimum: i64,
    delay: Duration,
    idle_maximum: bool,
    rate: i64,
    integral: i64,
    /// Time at which the rate lets the next copy begin.
    next: Time,
    next_update: Time,
    /// Settings since the last I/O of the host.
    idle_updates: u32,
    /// True while there are dirty data.
    has_dirty: bool,
    /// No pass begins before this time.
    rests_until: Time,
    /// True if the pass has all dirty data.
    last: bool,
    /// Address of the next copy of the pass.
    pub(super) at: u64,
    pub(super) in_flight: u32,
}

impl Writeback {
    pub(super) fn new(config: &BcacheConfig, cache_sectors: u64) -> Writeback {
        Writeback {
            target: (cache_sectors * u64::from(config.writeback_percent) / 100) as i64,
            unlimited: config.writeback_percent == 0,
            minimum: (config.writeback_rate_minimum.0 / SECTOR_BYTES) as i64,
            delay: config.writeback_delay,
            idle_maximum: config.idle_max_writeback_rate,
            rate: FIRST_RATE,
            integral: 0,
            next: Time::ZERO,
            next_update: Time::ZERO + UPDATE,
            idle_updates: 0,
            has_dirty: false,
            rests_until: Time::ZERO,
            last: false,
            at: 0,
            in_flight: 0,
        }
    }

    /// Takes note of dirty data. The first ones wake the thread (`bch_writeback_add`).
    pub(super) fn dirtied(&mut self, now: Time) {
        if !self.has_dirty {
            self.has_dirty = true;
            // New data do not shorten the pause (`schedule_timeout_interruptible` in
            // `bch_writeback_thread`).
            self.rests_until = self.rests_until.max(now);
            // The settings go on in the background every 5 s, and do nothing without dirty data.
            let missed = now.saturating_since(self.next_update).as_nanos() / UPDATE.as_nanos();
            self.next_update += UPDATE.saturating_mul(missed);
            if self.next_update <= now {
                self.next_update += UPDATE;
            }
        }
    }

    /// Takes note of a request of the host (`quit_max_writeback_rate`).
    pub(super) fn disturbed(&mut self) {
        if self.idle_updates >= IDLE_UPDATES && self.idle_maximum {
            self.rate = 1;
        }
        self.idle_updates = 0;
    }

    /// True if a copy may begin at `now`.
    pub(super) fn may_copy(&self, now: Time) -> bool {
        self.has_dirty && self.in_flight < IN_FLIGHT && now >= self.rests_until
    }

    /// True if the rate lets a copy begin at `now`. A neighbour of the last copy need not wait for a
    /// short delay.
    pub(super) fn rate_allows(&self, now: Time, start: u64) -> bool {
        let delay = self.next.saturating_since(now);
        self.unlimited || delay == Duration::ZERO || (start == self.at && delay <= NEIGHBOUR_DELAY)
    }

    /// Notes the begin of a copy.
    pub(super) fn began(&mut self, now: Time, start: u64, sectors: u64) {
        self.at = start + sectors;
        self.in_flight += 1;
        let span = Duration::from_nanos((sectors * 1_000_000_000) / self.rate.max(1) as u64);
        let next = self.next.saturating_add(span);
        // A long pause gives no credit beyond the lag, so that write-back does not rush afterwards.
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(LAG.as_nanos()));
        self.next = next.max(earliest).min(now + LEAD);
    }

    /// Begins a pass. With `last`, the pass has all dirty data, and a pause follows.
    pub(super) fn pass_begins(&mut self, last: bool) {
        self.last = last;
    }

    /// True if the pass has all dirty data.
    pub(super) fn is_last_pass(&self) -> bool {
        self.last
    }

    /// Ends a pass over all dirty data.
    pub(super) fn pass_ended(&mut self, now: Time, dirty: u64) {
        self.last = false;
        self.has_dirty = dirty > 0;
        self.rests_until = now + self.delay.max(Duration::from_millis(1));
        // `bch_ratelimit_reset` after the pause.
        self.next = self.rests_until;
    }

    /// Sets the rate, if a setting is due (`__update_writeback_rate`, writeback.c).
    pub(super) fn update(&mut self, now: Time, dirty: u64) {
        if now < self.next_update {
            return;
        }
        self.next_update = now + UPDATE;
        if !self.has_dirty || self.unlimited {
            return;
        }
        self.idle_updates = self.idle_updates.saturating_add(1);
        if self.idle_maximum && self.idle_updates >= IDLE_UPDATES {
            self.rate = LARGEST_RATE;
            return;
        }
        let error = dirty as i64 - self.target;
        // The integral does not grow while the array cannot keep up with the rate.
        let keeps_up = now < self.next.saturating_add(Duration::from_millis(1));
        if (error < 0 && self.integral > 0) || (error > 0 && keeps_up) {
            self.integral += error * (UPDATE.as_nanos() / 1_000_000_000) as i64;
        }
        let rate = error / P_INVERSE + self.integral / I_INVERSE;
        self.rate = rate.clamp(self.minimum, LARGEST_RATE);
    }

    /// Time from which a pass may copy. [`Time::NEVER`] if only the end of a copy lets copies begin.
    pub(super) fn next_pass(&self) -> Time {
        match self.has_dirty && self.in_flight < IN_FLIGHT {
            true => self.rests_until,
            false => Time::NEVER,
        }
    }

    /// Time at which the rate lets the next copy begin.
    pub(super) fn next_copy(&self) -> Time {
        self.next
    }

    /// Time of the next setting of the rate. [`Time::NEVER`] without dirty data.
    pub(super) fn next_update(&self) -> Time {
        match self.has_dirty {
            true => self.next_update,
            false => Time::NEVER,
        }
    }
}
