//! The copies of reclaim (`dmz_reclaim_copy`, and drivers/md/dm-kcopyd.c).

use super::node::{DmZoned, IoPurpose};
use super::reclaim::{Reclaim, ReclaimKind, ReclaimState};
use fullstroke_contract::{NodeContext, Operation};
use fullstroke_units::Time;
use std::collections::VecDeque;

/// Blocks of a piece of a copy: 512 KiB (`DEFAULT_SUB_JOB_SIZE_KB`).
const PIECE: u32 = 128;
/// Blocks of a write of zeros: 1 MiB, the pages of a bio.
const ZEROS: u32 = 256;
/// Pieces under way at once (`SPLIT_COUNT`).
const PIECES: u32 = 8;

/// A copy of the valid blocks of a zone.
#[derive(Debug)]
pub(super) struct ZoneCopy {
    pub(super) kind: ReclaimKind,
    pub(super) source: u32,
    pub(super) target: u32,
    /// First block that is not copied yet.
    block: u32,
    /// Block behind the last block of the source.
    end: u32,
    run: Option<RunCopy>,
    /// True if a request waits for the chunk.
    pub(super) interrupted: bool,
    /// True if the drive has failed to read or write.
    pub(super) failed: bool,
}

/// A copy of a run of valid blocks, or zeros in front of the run.
#[derive(Debug)]
struct RunCopy {
    zeros: bool,
    end: u32,
    /// First block without a piece.
    cut: u32,
    /// First block without a write, for a target whose writes keep their order.
    next_write: u32,
    /// Pieces under way.
    pieces: u32,
    /// I/Os that are not issued yet.
    jobs: VecDeque<CopyJob>,
    /// I/Os in flight.
    in_flight: u32,
}

/// An I/O of a piece.
#[derive(Clone, Copy, Debug)]
struct CopyJob {
    write: bool,
    start: u32,
    end: u32,
}

/// The next step of a copy.
enum CopyStep {
    Issue(CopyJob, bool),
    /// The run is copied, or another run begins.
    Again,
    Wait,
    Done,
    Abandon,
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
    fn new(start: u32, end: u32, zeros: bool) -> RunCopy {
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
    fn cut_pieces(&mut self) {
        while self.pieces < PIECES && self.cut < self.end {
            let size = if self.zeros { ZEROS } else { PIECE };
            let end = self.end.min(self.cut + size);
            self.jobs.push_back(CopyJob {
                write: self.zeros,
                start: self.cut,
                end,
            });
            (self.cut, self.pieces) = (end, self.pieces + 1);
        }
    }

    /// Returns the index of the first job that may be issued (`pop_io_job`).
    fn next_job(&self, ordered: bool) -> Option<usize> {
        let may = |job: &CopyJob| !job.write || !ordered || job.start == self.next_write;
        self.jobs.iter().position(may)
    }
}

impl Reclaim {
    fn run(&mut self) -> &mut RunCopy {
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

    fn note(&mut self, done: bool) {
        if let ReclaimState::Copying(copy) = &mut self.state {
            copy.failed |= !done;
        }
    }
}

impl DmZoned {
    /// Goes on with the copy under way. Returns true if the copy has ended.
    pub(super) fn copy_on(&mut self, now: Time, cx: &mut NodeContext<'_>) -> bool {
        loop {
            match self.copy_step() {
                CopyStep::Wait => return false,
                CopyStep::Again => {}
                CopyStep::Issue(job, zeros) => {
                    if self.reclaim.pause > now && self.reclaim.pause < Time::NEVER {
                        return false;
                    }
                    self.reclaim.pause = Time::NEVER;
                    if !zeros && let Some(until) = self.reclaim.throttle.begin(now) {
                        self.reclaim.pause = until;
                        return false;
                    }
                    self.issue_job(job, zeros, cx);
                }
                step @ (CopyStep::Done | CopyStep::Abandon) => {
                    self.reclaim.pause = Time::NEVER;
                    let resting = ReclaimState::Resting;
                    let state = std::mem::replace(&mut self.reclaim.state, resting);
                    let ReclaimState::Copying(copy) = state else {
                        return false;
                    };
                    match step {
                        CopyStep::Done => self.reclaim.state = ReclaimState::Copied(copy),
                        _ => {
                            self.abandon(now, &copy, cx);
                            self.schedule_reclaim(now);
                        }
                    }
                    return true;
                }
            }
        }
    }

    /// Decides the next step of the copy under way.
    fn copy_step(&mut self) -> CopyStep {
        let ReclaimState::Copying(copy) = &mut self.reclaim.state else {
            return CopyStep::Wait;
        };
        let ordered = !self.map.format.is_random(copy.target);
        if let Some(run) = &mut copy.run {
            if copy.failed {
                return match run.in_flight {
                    0 => CopyStep::Abandon,
                    _ => CopyStep::Wait,
                };
            }
            run.cut_pieces();
            if let Some(job) = run.next_job(ordered) {
                return CopyStep::Issue(run.jobs[job], run.zeros);
            }
            if run.pieces > 0 {
                return CopyStep::Wait;
            }
            copy.block = run.end;
            copy.run = None;
            return CopyStep::Again;
        }
        // A request waits for the data zone; a buffer is copied to the end (`dmz_reclaim_copy`
        // tests the flag of the source).
        if copy.interrupted && copy.kind != ReclaimKind::Buffer {
            return CopyStep::Abandon;
        }
        let source = &self.map.zone(copy.source).valid;
        let Some((start, end)) = source.next_run(copy.block, copy.end) else {
            return CopyStep::Done;
        };
        let pointer = self.map.zone(copy.target).pointer;
        copy.run = Some(match ordered && pointer < start {
            // The gap in front of the run gets zeros (`dmz_reclaim_align_wp`).
            true => RunCopy::new(pointer, start, true),
            false => RunCopy::new(start, end, false),
        });
        CopyStep::Again
    }

    /// Issues an I/O of the copy under way.
    fn issue_job(&mut self, job: CopyJob, zeros: bool, cx: &mut NodeContext<'_>) {
        let ReclaimState::Copying(copy) = &mut self.reclaim.state else {
            unreachable!("a job belongs to a copy")
        };
        let (source, target) = (copy.source, copy.target);
        let Some(run) = &mut copy.run else {
            unreachable!("a job belongs to a run of blocks")
        };
        run.jobs.retain(|other| {
            (other.write, other.start, other.end) != (job.write, job.start, job.end)
        });
        run.in_flight += 1;
        let CopyJob { write, start, end } = job;
        if !write {
            let purpose = IoPurpose::CopyRead(start, end);
            return self.issue(Operation::Read, (source, start, end), purpose, cx);
        }
        run.next_write = end;
        let blocks = u64::from(end - start);
        match zeros {
            true => self.counts.zeroed += blocks,
            false => self.counts.copied += blocks,
        }
        if !self.map.format.is_random(target) {
            self.map.zone_mut(target).pointer = end;
        }
        let purpose = IoPurpose::CopyWrite(start, end);
        self.issue(Operation::Write, (target, start, end), purpose, cx);
    }
}
