//! pdflush, as of Linux 2.6.11 to 2.6.23 (`mm/page-writeback.c`, `fs/fs-writeback.c`): two
//! background jobs, and write-back work for writers.
//!
//! - `wb_kupdate`, every `dirty_writeback`: writes objects dirty for `dirty_expire`, oldest first,
//!   each completely, 1024 pages at a time.
//! - `background_writeout`, while the dirty pages exceed the background ratio: writes all objects
//!   in turn, 1024 pages each.
//! - `balance_dirty_pages`: above the dirty ratio (pages under write-back included), a writer
//!   writes back one and a half times its allowance. The writer continues after that, or when the
//!   dirty pages fall below the ratio.
//!
//! The jobs stop while the device's queue is congested, and continue after the congestion or after
//! 100 ms (`blk_congestion_wait`). A throttled writer waits for a place in the queue instead.
//!
//! Assumed: memory has no mapped pages, and there is one processor. Left out: high memory, tasks
//! with less throttling (`PF_LESS_THROTTLE`), laptop mode, several devices, and several pdflush
//! threads (a device never has more than one).

use super::{ThrottledWriter, WriteBack, WriterVerdict, ratio};
use crate::cache_parts::{Bounds, CacheParts, LeftoverPlace};
use crate::out::IoReason;
use crate::pages::ResidentPages;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Duration, Time};

/// `MAX_WRITEBACK_PAGES`: pages in the turn of an object.
const TURN: u64 = 1024;
/// Longest wait of `blk_congestion_wait`: `HZ/10`.
const CONGESTION_WAIT: Duration = Duration::from_millis(100);
/// "If a writeback event takes longer than a dirty_writeback_centisecs interval,
/// then leave a one-second gap."
const GAP: Duration = Duration::from_secs(1);
/// Pages between two questions of `balance_dirty_pages_ratelimited` while too much is dirty.
const EXCEEDED_ALLOWANCE: u64 = 8;

/// The `vm.*` knobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knobs {
    /// Background ratio in per cent.
    pub background: u64,
    /// Dirty ratio in per cent.
    pub dirty: u64,
    pub expire: Duration,
    pub writeback: Duration,
}

impl Knobs {
    /// Checks the ratios.
    pub(super) fn checked(self) -> Result<Knobs, ConfigError> {
        ratio("dirty_background_ratio", self.background)?;
        ratio("dirty_ratio", self.dirty)?;
        Ok(self)
    }
}

/// A job, and the latest end of its wait for the end of congestion.
#[derive(Clone, Copy, Debug)]
struct FlusherJob {
    until: Time,
    /// Only objects dirty since this time or before are written.
    dirtied: Time,
    left: u64,
    begun: Time,
}

pub(super) struct Pdflush {
    knobs: Knobs,
    background_limit: u64,
    dirty_limit: u64,
    /// `ratelimit_pages`.
    allowance: u64,
    /// Number of pages dirtied since the last question of a writer.
    dirtied: u64,
    exceeded: bool,
    periodic: Option<FlusherJob>,
    background: Option<FlusherJob>,
    next_periodic: Time,
}

impl Pdflush {
    pub fn new(knobs: Knobs, limit: u64) -> Pdflush {
        // get_dirty_limits, without mapped pages.
        let dirty = knobs.dirty.clamp(5, 50);
        let background = if knobs.background >= dirty {
            dirty / 2
        } else {
            knobs.background
        };
        let never = knobs.writeback == Duration::ZERO;
        Pdflush {
            knobs,
            background_limit: background * limit / 100,
            dirty_limit: dirty * limit / 100,
            // set_ratelimit: 1/32 of memory, 16 pages to 4 MiB.
            allowance: (limit / 32).clamp(16, 1024),
            dirtied: 0,
            exceeded: false,
            periodic: None,
            background: None,
            next_periodic: if never {
                Time::NEVER
            } else {
                Time::ZERO + knobs.writeback
            },
        }
    }

    fn over(&self, parts: &CacheParts<'_>) -> bool {
        parts.held().dirty + parts.held().writing > self.dirty_limit
    }

    /// Runs the periodic job: `wb_kupdate`.
    fn run_periodic(&mut self, parts: &mut CacheParts<'_>) {
        if self.next_periodic + self.knobs.writeback < parts.now && self.periodic.is_none() {
            // The kernel's timer went on while no page was dirty. The missed intervals are skipped
            // here.
            let late =
                parts.now.since(self.next_periodic).as_nanos() / self.knobs.writeback.as_nanos();
            self.next_periodic += self.knobs.writeback * late;
        }
        if self.periodic.is_none() && parts.now >= self.next_periodic {
            let expired = parts
                .now
                .as_nanos()
                .checked_sub(self.knobs.expire.as_nanos());
            match expired {
                Some(expired) => {
                    let dirtied = Time::from_nanos(expired);
                    let left = parts.held().dirty;
                    self.periodic = Some(FlusherJob {
                        until: Time::ZERO,
                        dirtied,
                        left,
                        begun: parts.now,
                    });
                }
                None => self.next_periodic += self.knobs.writeback,
            }
        }
        let Some(mut job) = self.periodic else { return };
        while job.left > 0 && ready(&job, parts) {
            let bounds = Bounds {
                most: TURN,
                nonblocking: true,
                why: IoReason::Periodic,
            };
            let wrote = parts.round(bounds, job.dirtied, LeftoverPlace::First);
            job.left = job.left.saturating_sub(wrote.pages);
            if wrote.stopped {
                job.until = parts.now + CONGESTION_WAIT;
            } else if wrote.pages < TURN {
                job.left = 0;
            }
        }
        self.periodic = (job.left > 0).then_some(job);
        if self.periodic.is_none() {
            self.next_periodic = (job.begun + self.knobs.writeback).max(parts.now + GAP);
        }
    }

    /// Runs the background job: `background_writeout`.
    fn run_background(&mut self, parts: &mut CacheParts<'_>) {
        let Some(mut job) = self.background else {
            return;
        };
        while ready(&job, parts) {
            if parts.held().dirty < self.background_limit.max(1) {
                self.background = None;
                return;
            }
            let bounds = Bounds {
                most: TURN,
                nonblocking: true,
                why: IoReason::Background,
            };
            let wrote = parts.round(bounds, parts.now, LeftoverPlace::AsNew);
            if wrote.stopped {
                job.until = parts.now + CONGESTION_WAIT;
            } else if wrote.pages == 0 {
                // All dirty pages are being written already.
                self.background = None;
                return;
            }
        }
        self.background = Some(job);
    }
}

/// True if a job need not wait for the end of congestion.
fn ready(job: &FlusherJob, parts: &CacheParts<'_>) -> bool {
    !parts.full() && (parts.now >= job.until || !parts.congested())
}

impl WriteBack for Pdflush {
    fn allowance(&self, _: u32) -> u64 {
        let allowance = if self.exceeded {
            EXCEEDED_ALLOWANCE
        } else {
            self.allowance
        };
        allowance.saturating_sub(self.dirtied).max(1)
    }

    fn dirtied(&mut self, _: u32, pages: u64, _: u64) -> bool {
        self.dirtied += pages;
        let due = self.dirtied
            >= if self.exceeded {
                EXCEEDED_ALLOWANCE
            } else {
                self.allowance
            };
        if due {
            self.dirtied = 0;
        }
        due
    }

    fn balance(
        &mut self,
        dirtier: &mut ThrottledWriter,
        parts: &mut CacheParts<'_>,
    ) -> WriterVerdict {
        // sync_writeback_pages.
        let chunk = self.allowance + self.allowance / 2;
        let mut stopped = false;
        if self.over(parts) && dirtier.written < chunk {
            self.exceeded = true;
            let bounds = Bounds {
                most: chunk - dirtier.written,
                nonblocking: false,
                why: IoReason::Throttled,
            };
            let wrote = parts.round(bounds, parts.now, LeftoverPlace::AsNew);
            dirtier.written += wrote.pages;
            stopped = wrote.stopped;
        }
        if self.over(parts) && dirtier.written < chunk {
            return if stopped {
                WriterVerdict::Room
            } else {
                WriterVerdict::Congestion(parts.now + CONGESTION_WAIT)
            };
        }
        self.exceeded = self.over(parts);
        if parts.held().dirty > self.background_limit && self.background.is_none() {
            let (until, dirtied) = (Time::ZERO, Time::NEVER);
            self.background = Some(FlusherJob {
                until,
                dirtied,
                left: u64::MAX,
                begun: parts.now,
            });
        }
        WriterVerdict::Go
    }

    fn run(&mut self, parts: &mut CacheParts<'_>) {
        self.run_periodic(parts);
        self.run_background(parts);
    }

    fn next_wake(&self, held: ResidentPages, full: bool) -> Time {
        // While no page is dirty, nothing is due. The grid of the timer stays the same.
        let until = |job: FlusherJob| if full { Time::NEVER } else { job.until };
        let periodic = match self.periodic {
            Some(job) => until(job),
            None if held.dirty == 0 => Time::NEVER,
            None => self.next_periodic,
        };
        periodic.min(self.background.map_or(Time::NEVER, until))
    }

    fn note_shortage(&mut self, _: &mut CacheParts<'_>) -> bool {
        // shrink_list writes the dirty pages that it finds (pageout).
        true
    }
}
