//! The copies of reclaim (`dmz_reclaim_copy`, and drivers/md/dm-kcopyd.c).

use super::node::{DmZoned, IoPurpose};
use super::progress::{CopyJob, ReclaimKind, ReclaimState, RunCopy};
use fullstroke_contract::{NodeContext, Operation};
use fullstroke_units::Time;

/// The next step of a copy.
enum CopyStep {
    Issue(CopyJob, bool),
    /// The run is copied, or another run begins.
    Again,
    Wait,
    Done,
    Abandon,
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
