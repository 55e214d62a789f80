//! The state of reclaim: its present zone, and the copy of the zone's blocks.

use super::throttle::CopyThrottle;
use fullstroke_units::Time;
use std::collections::VecDeque;

/// Blocks of a piece of a copy: 512 KiB (`DEFAULT_SUB_JOB_SIZE_KB`).
const PIECE: u32 = 128;
/// Blocks of a write of zeros: 1 MiB, the pages of a bio.
const ZEROS: u32 = 256;
/// Pieces under way at once (`SPLIT_COUNT`).
const PIECES: u32 = 8;

/// Reclaim of one zone after the other.
#[derive(Debug)]
pub(super) struct Reclaim {
    pub(super) state: ReclaimState,
    /// Time of the next look for work. [`Time::NEVER`] if only an event can bring work.
    pub(super) work_at: Time,
    /// End of a pause of the copies. [`Time::NEVER`] without a pause.
    pub(super) pause: Time,
    pub(super) throttle: CopyThrottle,
}

/// Present work of reclaim.
#[derive(Debug)]
pub(super) enum ReclaimState {
    /// No zone is being reclaimed.
    Resting,
    /// The valid blocks of a zone are being copied.
    Copying(ZoneCopy),
    /// All blocks are copied, and the map waits for its change.
    Copied(ZoneCopy),
    /// The changed map is being written.
    Flushing,
}

/// Way in which a random zone becomes free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReclaimKind {
    /// The buffer goes to the data zone, behind the write pointer (`dmz_reclaim_buf`).
    Buffer,
    /// The data zone goes to the buffer, which becomes the data zone (`dmz_reclaim_seq_data`).
    Sequential,
    /// A random data zone goes to a free sequential zone (`dmz_reclaim_rnd_data`).
    Random,
}

/// A copy of the valid blocks of a zone.
#[derive(Debug)]
pub(super) struct ZoneCopy {
    pub(super) kind: ReclaimKind,
    pub(super) source: u32,
    pub(super) target: u32,
    /// First block that is not copied yet.
    pub(super) block: u32,
    /// Block behind the last block of the source.
    pub(super) end: u32,
    pub(super) run: Option<RunCopy>,
    /// True if a request waits for the chunk.
    pub(super) interrupted: bool,
    /// True if the drive has failed to read or write.
    pub(super) failed: bool,
}

/// A copy of a run of valid blocks, or zeros in front of the run.
#[derive(Debug)]
pub(super) struct RunCopy {
    pub(super) zeros: bool,
    pub(super) end: u32,
    /// First block without a piece.
    pub(super) cut: u32,
    /// First block without a write, for a target whose writes keep their order.
    pub(super) next_write: u32,
    /// Pieces under way.
    pub(super) pieces: u32,
    /// I/Os that are not issued yet.
    pub(super) jobs: VecDeque<CopyJob>,
    /// I/Os in flight.
    pub(super) in_flight: u32,
}

/// An I/O of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyJob {
    pub(super) write: bool,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl ZoneCopy {
    pub(super) fn new(kind: ReclaimKind, source: u32, target: u32, end: u32) -> ZoneCopy {
        ZoneCopy {
            kind,
            source,
            target,
            block: 0,
            end,
            run: None,
            interrupted: false,
            failed: false,
        }
    }
}

impl RunCopy {
    pub(super) fn new(start: u32, end: u32, zeros: bool) -> RunCopy {
        RunCopy {
            zeros,
            end,
            cut: start,
            next_write: start,
            pieces: 0,
            jobs: VecDeque::new(),
            in_flight: 0,
        }
    }

    /// Cuts pieces off the run until eight are under way.
    pub(super) fn cut_pieces(&mut self) {
        while self.pieces < PIECES && self.cut < self.end {
            let size = if self.zeros { ZEROS } else { PIECE };
            let end = self.end.min(self.cut + size);
            self.jobs.push_back(CopyJob {
                // Zeros come from memory, so a piece of zeros begins with its write.
                write: self.zeros,
                start: self.cut,
                end,
            });
            (self.cut, self.pieces) = (end, self.pieces + 1);
        }
    }

    /// Returns the index of the first job that may be issued (`pop_io_job`).
    pub(super) fn next_job(&self, ordered: bool) -> Option<usize> {
        // A sequential zone takes writes at the write pointer only.
        let may = |job: &CopyJob| !job.write || !ordered || job.start == self.next_write;
        self.jobs.iter().position(may)
    }
}

impl Reclaim {
    pub(super) fn new() -> Reclaim {
        Reclaim {
            state: ReclaimState::Resting,
            work_at: Time::NEVER,
            pause: Time::NEVER,
            throttle: CopyThrottle::new(),
        }
    }

    pub(super) fn rests(&self) -> bool {
        matches!(self.state, ReclaimState::Resting)
    }

    /// Looks for work at `at` at the latest.
    pub(super) fn watch(&mut self, at: Time) {
        self.work_at = self.work_at.min(at);
    }

    /// Ends a reclaim whose changed map is written.
    pub(super) fn flushed(&mut self, now: Time) {
        if matches!(self.state, ReclaimState::Flushing) {
            self.state = ReclaimState::Resting;
            self.work_at = now;
        }
    }

    /// Ends a reclaim early, at the next gap between valid blocks, because a request waits for the
    /// chunk (`DMZ_RECLAIM_TERMINATE`).
    pub(super) fn interrupt(&mut self) {
        if let ReclaimState::Copying(copy) = &mut self.state {
            copy.interrupted = true;
        }
    }

    /// Returns the next time at which reclaim has work. No reclaim begins while changed metadata
    /// are being written.
    pub(super) fn alarm(&self, writes_metadata: bool) -> Time {
        match &self.state {
            ReclaimState::Resting if !writes_metadata => self.work_at,
            ReclaimState::Copying(_) => self.pause,
            _ => Time::NEVER,
        }
    }

    pub(super) fn run(&mut self) -> &mut RunCopy {
        match &mut self.state {
            ReclaimState::Copying(ZoneCopy { run: Some(run), .. }) => run,
            _ => unreachable!("an I/O of a copy belongs to a run of blocks"),
        }
    }

    /// Takes the end of a read of the source.
    pub(super) fn read_ended(&mut self, now: Time, start: u32, end: u32, done: bool) {
        self.throttle.end(now);
        let run = self.run();
        run.in_flight -= 1;
        run.jobs.push_back(CopyJob {
            write: true,
            start,
            end,
        });
        self.note(done);
    }

    /// Takes the end of a write of the target.
    pub(super) fn write_ended(&mut self, now: Time, _start: u32, _end: u32, done: bool) {
        let run = self.run();
        run.in_flight -= 1;
        run.pieces -= 1;
        if !run.zeros {
            self.throttle.end(now);
        }
        self.note(done);
    }

    pub(super) fn note(&mut self, done: bool) {
        if let ReclaimState::Copying(copy) = &mut self.state {
            copy.failed |= !done;
        }
    }
}
