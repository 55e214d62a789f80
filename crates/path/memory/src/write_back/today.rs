//! `today`: write-back since Linux 3.2 (`mm/page-writeback.c`, `fs/fs-writeback.c`). One flusher
//! serves the device. Writers pause, to dirty no more pages than the device writes.
//!
//! - The flusher (`wb_writeback`) writes while the dirty pages exceed the background ratio. Every
//!   `dirty_writeback` the flusher also writes objects dirty for `dirty_expire`. In its turn an
//!   object writes as much as the device writes in half a second, at least 4 MiB
//!   (`writeback_chunk_size`).
//! - `balance_dirty_pages` lets a writer continue while the dirty pages stay below the middle of
//!   the two ratios. Above the middle the writer pauses. Its rate then follows `dirty_ratelimit` ·
//!   `pos_ratio`. `dirty_ratelimit` is steered to the rate of the device, shared among the writers.
//!   `pos_ratio` falls from 2 to 0 as the dirty pages grow towards the dirty ratio
//!   (`wb_position_ratio`).
//!
//! As in the kernel with HZ = 1000, times are counted in milliseconds. An open file stands for its
//! process. Left out: cgroups, several devices and their shares, dirty limits in bytes, strict
//! limits, and `dirtytime`. Also left out: the slowly following limit of shrinking memory, and the
//! block layer's own throttling of write-back.

use super::{ThrottledWriter, WriteBack, WriterVerdict, ratio};
use crate::cache_parts::{Bounds, CacheParts};
use crate::dirty::DirtyList;
use crate::out::IoReason;
use crate::pages::ResidentPages;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Object};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "Linux 3.2 and later: a flusher above 10 % of dirty memory; pauses keep writers below 20 %";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Threshold of background write-back of dirty pages, in per cent of memory; default 10.
    #[serde(default = "dirty_background_ratio")]
    dirty_background_ratio: u64,
    /// Limit of dirty pages in per cent of memory, kept by pauses of the writers; default 20.
    #[serde(default = "dirty_ratio")]
    dirty_ratio: u64,
    /// Age of a dirty object at its periodic write-back; default 30s.
    #[serde(default = "super::v2_6_17::dirty_expire")]
    dirty_expire: Duration,
    /// Interval of the search for objects dirty for too long; default 5s. 0s: never.
    #[serde(default = "super::v2_6_17::dirty_writeback")]
    dirty_writeback: Duration,
    /// Age in place of `dirty_expire` while a drive below tells that it cleans shingled bands; at
    /// least `dirty_expire`. Default: `dirty_expire`, as in a host that does not hear the drive.
    cleaning_expire: Option<Duration>,
}

// `mm/page-writeback.c`: dirty_background_ratio, vm_dirty_ratio.
fn dirty_background_ratio() -> u64 {
    10
}

fn dirty_ratio() -> u64 {
    20
}

/// `INIT_BW`: 100 MiB a second, in pages a second.
const FIRST_RATE: u64 = 25_600;
/// `BANDWIDTH_INTERVAL`, in milliseconds.
const INTERVAL: u64 = 200;
/// `MAX_PAUSE`, in milliseconds.
const LONGEST_PAUSE: u64 = 200;
/// Period of the average of the writing rate: 3 seconds, rounded up to a power of two, in
/// milliseconds.
const PERIOD: u64 = 4096;
/// The value 1 of `pos_ratio` (`RATELIMIT_CALC_SHIFT`).
const ONE: i64 = 1 << 10;
/// `MIN_WRITEBACK_PAGES`.
const TURN_LEAST: u64 = 1024;
/// `DIRTY_POLL_THRESH`.
const POLL_PAGES: u64 = 32;
/// Allowance of a writer while too much is dirty: 32 KiB, in pages.
const EXCEEDED_ALLOWANCE: u64 = 8;
/// `roundup_pow_of_two(HZ)`.
const HZ_POW: u64 = 1024;
const HZ: u64 = 1000;

/// State of a task in the kernel (`nr_dirtied`, `nr_dirtied_pause`, `dirty_paused_when`).
#[derive(Clone, Copy, Debug)]
struct Writer {
    dirtied: u64,
    allowance: u64,
    paused: u64,
}

impl Default for Writer {
    fn default() -> Writer {
        // 128 KiB.
        Writer {
            dirtied: 0,
            allowance: 32,
            paused: 0,
        }
    }
}

/// Present work of the flusher.
#[derive(Clone, Copy, Debug)]
struct FlusherWork {
    why: IoReason,
    /// Only objects dirty since this time or before are written.
    until: Time,
    left: u64,
}

/// Rates of the device and its writers, in pages a second.
#[derive(Clone, Copy, Debug)]
struct WritebackRates {
    /// Time of the last estimate, in milliseconds.
    stamp: u64,
    dirtied: u64,
    written: u64,
    write: u64,
    write_average: u64,
    /// `dirty_ratelimit`, `balanced_dirty_ratelimit`.
    limit: u64,
    balanced: u64,
}

struct CurrentWriteBack {
    expire: Duration,
    /// The same while a drive cleans.
    cleaning_expire: Duration,
    /// True while a drive cleans.
    cleaning: bool,
    writeback: Duration,
    background_limit: u64,
    dirty_limit: u64,
    writers: Vec<Writer>,
    exceeded: bool,
    rates: WritebackRates,
    /// Number of pages dirtied so far, and the start of the present work in milliseconds.
    dirtied: u64,
    begun: u64,
    work: Option<FlusherWork>,
    /// Object with the turn, and the pages left in the turn.
    turn: Option<(Object, u64)>,
    next_periodic: Time,
}

pub(super) fn build(keys: &Keys, limit: u64) -> Result<Box<dyn WriteBack>, ConfigError> {
    let config: Config = read(keys)?;
    let background = ratio("dirty_background_ratio", config.dirty_background_ratio)?;
    let dirty = ratio("dirty_ratio", config.dirty_ratio)?;
    let dirty_limit = dirty * limit / 100;
    let background_limit = background * limit / 100;
    let rate = FIRST_RATE;
    let cleaning_expire = config.cleaning_expire.unwrap_or(config.dirty_expire);
    if cleaning_expire < config.dirty_expire {
        let message = format!(
            "found {cleaning_expire}; expected at least `dirty_expire`, {}",
            config.dirty_expire
        );
        return Err(ConfigError::new("cleaning_expire", message));
    }
    Ok(Box::new(CurrentWriteBack {
        expire: config.dirty_expire,
        cleaning_expire,
        cleaning: false,
        writeback: config.dirty_writeback,
        // domain_dirty_limits.
        background_limit: if background_limit >= dirty_limit {
            dirty_limit / 2
        } else {
            background_limit
        },
        dirty_limit,
        writers: Vec::new(),
        exceeded: false,
        rates: WritebackRates {
            stamp: 0,
            dirtied: 0,
            written: 0,
            write: rate,
            write_average: rate,
            limit: rate,
            balanced: rate,
        },
        dirtied: 0,
        begun: 0,
        work: None,
        turn: None,
        next_periodic: Time::NEVER,
    }))
}

fn milliseconds(now: Time) -> u64 {
    now.as_nanos() / 1_000_000
}

impl WritebackRates {
    /// Updates the writing rate: `wb_update_write_bandwidth`.
    fn update_writing(&mut self, elapsed: u64, written: u64) {
        let rate = (written - self.written) * HZ;
        let (old, average) = (self.write, self.write_average);
        if elapsed > PERIOD {
            self.write = rate / elapsed;
            self.write_average = self.write.max(1);
            return;
        }
        self.write = (rate + old * (PERIOD - elapsed)) / PERIOD;
        // The average follows only a rate that goes on in one direction, so one burst does not move
        // it.
        if average > old && old >= self.write {
            self.write_average = average - ((average - old) >> 3);
        } else if average < old && old <= self.write {
            self.write_average = average + ((old - average) >> 3);
        }
        self.write_average = self.write_average.max(1);
    }

    /// Updates the rate limit of the writers: `wb_update_dirty_ratelimit`.
    fn update_limit(
        &mut self,
        elapsed: u64,
        dirtied: u64,
        dirty: u64,
        setpoint: u64,
        pos_ratio: i64,
    ) {
        let dirty_rate = (dirtied - self.dirtied) * HZ / elapsed;
        let task = ((self.limit as i64 * pos_ratio) / ONE) as u64 + 1;
        // The device's rate, shared among as many writers as the rate of dirtying stands for. No
        // writer alone gets more than the device.
        let balanced = (task * self.write_average / (dirty_rate | 1)).min(self.write_average);
        let (least, most) = (
            self.balanced.min(balanced).min(task),
            self.balanced.max(balanced).max(task),
        );
        // The limit moves only towards the setpoint. On the other side `pos_ratio` does the rest.
        let step = if dirty < setpoint {
            least.saturating_sub(self.limit)
        } else {
            self.limit.saturating_sub(most)
        };
        // The step becomes smaller near the target.
        let shift = self.limit / (2 * step + 1);
        let step = if shift < 64 {
            (step >> shift).div_ceil(8)
        } else {
            0
        };
        self.limit = if self.limit < balanced {
            self.limit + step
        } else {
            self.limit.saturating_sub(step)
        }
        .max(1);
        self.balanced = balanced;
    }
}

impl CurrentWriteBack {
    fn setpoint(&self) -> u64 {
        (self.freerun() + self.dirty_limit) / 2
    }

    /// Returns the limit of dirty pages for writers without pauses: `dirty_freerun_ceiling`.
    fn freerun(&self) -> u64 {
        (self.background_limit + self.dirty_limit) / 2
    }

    /// Returns the factor of the rate limit: `wb_position_ratio`, for one device with all dirty
    /// pages.
    fn pos_ratio(&self, dirty: u64) -> i64 {
        if dirty >= self.dirty_limit {
            return 0;
        }
        let (setpoint, limit) = (self.setpoint() as i64, self.dirty_limit as i64);
        let dirty = dirty as i64;
        // A polynomial of third order: 2 at the end of the free run, 1 at the setpoint, 0 at the
        // limit.
        let x = (setpoint - dirty) * ONE / ((limit - setpoint) | 1);
        let cube = ((((x * x) >> 10) * x) >> 10) + ONE;
        let ratio = cube.clamp(0, 2 * ONE);
        // A line with the value 1 at the setpoint. It falls to 0 over the pages written in 8
        // seconds.
        let span = (8 * self.rates.write_average as i64).max(4);
        let zero = setpoint + span;
        let ratio = if dirty < zero - span / 4 {
            ratio * (zero - dirty) / (span | 1)
        } else {
            ratio / 4
        };
        // With few dirty pages the factor grows, so that the device does not run dry.
        let reserve = limit / 2;
        match dirty {
            _ if dirty >= reserve => ratio,
            _ if dirty > reserve / 8 => ratio * reserve / dirty,
            _ => ratio * 8,
        }
    }

    /// Updates the rates every 200 ms: `__wb_update_bandwidth`.
    fn update(&mut self, parts: &CacheParts<'_>, pos_ratio: Option<i64>) {
        let now = milliseconds(parts.now);
        let elapsed = now.saturating_sub(self.rates.stamp);
        if elapsed < INTERVAL {
            return;
        }
        let (dirtied, written) = (self.dirtied, self.written(parts));
        // "Skip quiet periods when disk bandwidth is under-utilized."
        let quiet = elapsed > HZ && self.rates.stamp < self.begun;
        if !quiet {
            if let Some(pos_ratio) = pos_ratio {
                let dirty = parts.held().dirty + parts.held().writing;
                self.rates
                    .update_limit(elapsed, dirtied, dirty, self.setpoint(), pos_ratio);
            }
            self.rates.update_writing(elapsed, written);
        }
        (self.rates.stamp, self.rates.dirtied, self.rates.written) = (now, dirtied, written);
    }

    /// Returns the number of pages whose write-back has ended.
    fn written(&self, parts: &CacheParts<'_>) -> u64 {
        let counters = &parts.counters;
        let begun = counters.back_background
            + counters.back_periodic
            + counters.back_throttled
            + counters.back_sync
            + counters.back_reclaim
            + counters.back_pull;
        assert!(
            begun >= parts.held().writing,
            "{} pages are being written, and {begun} were begun",
            parts.held().writing
        );
        begun - parts.held().writing
    }

    /// Returns the longest pause in milliseconds: `wb_max_pause`.
    fn longest_pause(&self, dirty: u64) -> u64 {
        (dirty / (1 + self.rates.write_average / 128) + 1).min(LONGEST_PAUSE)
    }

    /// Returns the shortest useful pause in milliseconds, and the number of pages before the
    /// writer's next question: `wb_min_pause`.
    fn shortest_pause(&self, longest: u64, task: u64) -> (u64, u64) {
        let (high, low) = (self.rates.write_average.ilog2(), self.rates.limit.ilog2());
        let mut pause = HZ / 100 + u64::from(high.saturating_sub(low)) * (10 * HZ) / 1024;
        pause = pause.min(1 + longest / 2);
        let mut pages = self.rates.limit * pause / HZ_POW;
        if pages < POLL_PAGES {
            pause = longest;
            pages = self.rates.limit * pause / HZ_POW;
            if pages > POLL_PAGES {
                pages = POLL_PAGES;
                pause = HZ * POLL_PAGES / self.rates.limit;
            }
        }
        if HZ * pages / (task + 1) > longest {
            pause = longest;
            pages = task * pause / HZ_POW;
        }
        (
            if pages >= POLL_PAGES {
                1 + pause / 2
            } else {
                pause
            },
            pages,
        )
    }

    fn over_background(&self, parts: &CacheParts<'_>) -> bool {
        parts.held().dirty > self.background_limit
    }

    /// Returns the next work of the flusher: `wb_check_background_flush`,
    /// `wb_check_old_data_flush`.
    fn next_work(&mut self, parts: &CacheParts<'_>) -> Option<FlusherWork> {
        if self.over_background(parts) {
            return Some(FlusherWork {
                why: IoReason::Background,
                until: Time::NEVER,
                left: u64::MAX,
            });
        }
        if parts.dirty.are_none() || self.writeback == Duration::ZERO {
            self.next_periodic = Time::NEVER;
            return None;
        }
        if self.next_periodic == Time::NEVER {
            // wb_wakeup_delayed: the interval begins when the first page becomes dirty.
            self.next_periodic = parts.now + self.writeback;
        }
        if parts.now < self.next_periodic {
            return None;
        }
        self.next_periodic = parts.now + self.writeback;
        let expire = if self.cleaning {
            self.cleaning_expire
        } else {
            self.expire
        };
        let expired = parts.now.as_nanos().checked_sub(expire.as_nanos())?;
        // The kernel limits this work to `get_nr_dirty_pages`, which adds the number of inodes in
        // use to the dirty pages. A host has more inodes than pages become dirty during the work.
        // So the work ends when no object is old enough.
        Some(FlusherWork {
            why: IoReason::Periodic,
            until: Time::from_nanos(expired),
            left: u64::MAX,
        })
    }

    /// Returns the number of pages of a turn: `writeback_chunk_size`.
    fn turn_pages(&self, left: u64) -> u64 {
        let pages = (self.rates.write_average / 2)
            .min(self.dirty_limit / 8)
            .min(left);
        (pages + TURN_LEAST) / TURN_LEAST * TURN_LEAST
    }

    /// Works until the device's queue is full: `wb_writeback`. Returns true if the work is
    /// complete.
    fn flush(&mut self, work: &mut FlusherWork, parts: &mut CacheParts<'_>) -> bool {
        loop {
            if work.left == 0 || (work.why == IoReason::Background && !self.over_background(parts))
            {
                return true;
            }
            if self.turn.is_none() && !self.next_turn(work, parts) {
                return true;
            }
            let Some((object, left)) = self.turn else {
                return true;
            };
            if parts.full() {
                return false;
            }
            let bounds = Bounds {
                most: left,
                nonblocking: false,
                why: work.why,
            };
            let wrote = parts.write_object(object, bounds);
            work.left = work.left.saturating_sub(wrote.pages);
            assert!(
                wrote.pages <= left,
                "{} pages of an object are written in a turn of {left}",
                wrote.pages
            );
            let left = left - wrote.pages;
            if wrote.stopped {
                self.turn = Some((object, left));
                return false;
            }
            self.turn = None;
            self.requeue(object, left, parts);
            self.update(parts, None);
            // All remaining dirty pages are being written already.
            if wrote.pages == 0
                && parts.dirty.is_empty(DirtyList::Io)
                && parts.dirty.is_empty(DirtyList::More)
            {
                return true;
            }
        }
    }

    /// Begins the turn of the next object: `queue_io` and the next object of `b_io`.
    fn next_turn(&mut self, work: &FlusherWork, parts: &mut CacheParts<'_>) -> bool {
        if parts.dirty.is_empty(DirtyList::Io) {
            parts
                .dirty
                .splice(DirtyList::More, DirtyList::Io, Time::NEVER);
            // Objects that become dirty during the work stay out.
            parts
                .dirty
                .splice(DirtyList::Dirty, DirtyList::Io, work.until.min(parts.now));
        }
        let next = parts
            .oldest(DirtyList::Io)
            .map(|(object, _)| (object, self.turn_pages(work.left)));
        self.turn = next;
        next.is_some()
    }

    /// Puts an object into a list after its turn: `requeue_inode`. If the turn was too short, the
    /// object waits for the next round. If pages became dirty behind the write-back, the object
    /// moves behind the others.
    fn requeue(&self, object: Object, left: u64, parts: &mut CacheParts<'_>) {
        if !parts.is_dirty(object) {
            parts.dirty.leave(object);
        } else if left == 0 {
            parts.dirty.requeue(object, DirtyList::More, None);
        } else {
            parts.dirty.redirty(object, parts.now);
        }
    }
}

/// `dirty_poll_interval`: about the square root of the number of pages left before the limit.
fn poll_interval(dirty: u64, limit: u64) -> u64 {
    if limit > dirty {
        1 << ((limit - dirty).ilog2() / 2)
    } else {
        1
    }
}

impl WriteBack for CurrentWriteBack {
    fn allowance(&self, file: u32) -> u64 {
        let writer = self.writers.get(file as usize).copied().unwrap_or_default();
        let allowance = if self.exceeded {
            writer.allowance.min(EXCEEDED_ALLOWANCE)
        } else {
            writer.allowance
        };
        allowance.saturating_sub(writer.dirtied).max(1)
    }

    fn dirtied(&mut self, file: u32, _: u64, newly: u64) -> bool {
        self.dirtied += newly;
        if self.writers.len() <= file as usize {
            self.writers.resize(file as usize + 1, Writer::default());
        }
        let writer = &mut self.writers[file as usize];
        writer.dirtied += newly;
        let allowance = if self.exceeded {
            writer.allowance.min(EXCEEDED_ALLOWANCE)
        } else {
            writer.allowance
        };
        writer.dirtied >= allowance
    }

    fn balance(
        &mut self,
        dirtier: &mut ThrottledWriter,
        parts: &mut CacheParts<'_>,
    ) -> WriterVerdict {
        let now = milliseconds(parts.now);
        let dirty = parts.held().dirty + parts.held().writing;
        let file = dirtier.file as usize;
        if dirty <= self.freerun() {
            self.exceeded = false;
            self.writers[file] = Writer {
                dirtied: 0,
                allowance: poll_interval(dirty, self.dirty_limit),
                paused: now,
            };
            return WriterVerdict::Go;
        }
        self.exceeded = dirty > self.dirty_limit;
        let pos_ratio = self.pos_ratio(dirty);
        self.update(parts, Some(pos_ratio));
        let task = (self.rates.limit as i64 * pos_ratio / ONE) as u64;
        let longest = self.longest_pause(dirty);
        let (shortest, allowance) = self.shortest_pause(longest, task);
        let writer = &mut self.writers[file];
        let after = |pause: u64| parts.now + Duration::from_millis(pause);
        if task == 0 {
            *writer = Writer {
                dirtied: 0,
                allowance,
                paused: now + longest,
            };
            return WriterVerdict::Again(after(longest));
        }
        let period = HZ * writer.dirtied / task;
        // The think time of the writer since its last pause counts as pause.
        let pause = period as i64 - (now as i64 - writer.paused as i64);
        if pause < shortest as i64 {
            // More than a second of think time is no credit: the file may be written rarely.
            if pause < -(HZ as i64) {
                (writer.paused, writer.dirtied) = (now, 0);
            } else if period > 0 {
                (writer.paused, writer.dirtied) = (writer.paused + period, 0);
            } else if writer.allowance <= writer.dirtied {
                writer.allowance += writer.dirtied;
            }
            return WriterVerdict::Go;
        }
        let pause = (pause as u64).min(longest);
        *writer = Writer {
            dirtied: 0,
            allowance,
            paused: now + pause,
        };
        WriterVerdict::Pause(after(pause))
    }

    fn run(&mut self, parts: &mut CacheParts<'_>) {
        // The usual case: no page is dirty.
        if self.work.is_none() && parts.dirty.are_none() {
            self.next_periodic = Time::NEVER;
            return;
        }
        loop {
            let mut work = match self.work.take() {
                Some(work) => work,
                None => {
                    let Some(work) = self.next_work(parts) else {
                        return;
                    };
                    self.begun = milliseconds(parts.now);
                    work
                }
            };
            if !self.flush(&mut work, parts) {
                self.work = Some(work);
                return;
            }
            // All dirty pages may be under write-back already. Another round would then find
            // nothing to write.
            if work.why == IoReason::Background && self.over_background(parts) {
                return;
            }
        }
    }

    fn next_wake(&self, _: ResidentPages, _: bool) -> Time {
        if self.work.is_some() {
            Time::NEVER
        } else {
            self.next_periodic
        }
    }

    fn fsync_cleans(&self) -> bool {
        // fsync leaves I_DIRTY_PAGES set (ext4, XFS, block devices). __writeback_single_inode
        // clears it later.
        false
    }

    fn note_cleaning(&mut self, runs: bool) {
        self.cleaning = runs;
    }

    fn note_shortage(&mut self, parts: &mut CacheParts<'_>) -> bool {
        // shrink_folio_list leaves dirty pages to the flusher, and wakes it
        // (wakeup_flusher_threads, for all dirty pages).
        if self.work.is_none() {
            self.work = Some(FlusherWork {
                why: IoReason::Reclaim,
                until: Time::NEVER,
                left: parts.held().dirty,
            });
        }
        false
    }
}
