//! Holds parity and copies against the data that they follow from.
//!
//! No knowledge of any layout is needed for that: a plan that writes what is
//! there already says what parity and copies should be, and where.

use crate::ArrayError;
use crate::array::{ATTEMPTS, Array, Worker};
use crate::buffers::{Buffers, RequestBytes};
use crate::bytes::{Differing, differing};
use crate::device::Aligned;
use crate::judge::{Repair, judge};
use crate::transfer::{Direction, Transfer, persistently};
use fullstroke_contract::{Extent, MemberState, Operation};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Content, Detail, Plan};
use serde::Serialize;

/// What is read at once.
const BATCH_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;
/// How many mismatches are listed; all are counted.
const LISTED: usize = 16;

/// What makes a plan, again if a member has changed since.
type Makes<'a> = dyn FnMut(&mut Plan) -> Result<(), ArrayError> + 'a;

/// What a comparison of redundancy with data has found.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Comparison {
    /// Sectors of the array's addresses that were compared.
    pub compared_sectors: u64,
    /// Sectors of parity, copies or data that did not agree with the rest, those among them that
    /// could not be read.
    pub mismatched_sectors: u64,
    /// Sectors among them of which nothing proves which is wrong, and which were left as they are.
    pub undecided_sectors: u64,
    /// Sectors among them that were written again.
    pub repaired_sectors: u64,
    /// Reads of data, parity and copies that failed, of up to a MiB each. Data is computed from
    /// the others and written again, as when a client reads it; the rest only if it is to be
    /// mended.
    pub failed_reads: u64,
    /// The first of them, one for each run.
    pub first: Vec<Mismatch>,
}

/// A run of a member that does not agree with the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The place of the member that holds it.
    pub slot: usize,
    /// The run's first sector on that member, counted from its data.
    pub lbn: Lbn,
    /// The array's address, in sectors; of parity that of the row's first data in the same column. Not
    /// said in arrays with gears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Lbn>,
    /// Whether nothing proves that this run is the wrong one.
    pub undecided: bool,
}

impl Comparison {
    fn note(&mut self, mismatch: Mismatch, sectors: u64, is_written: bool) {
        self.mismatched_sectors += sectors;
        if is_written {
            self.repaired_sectors += sectors;
        } else if mismatch.undecided {
            self.undecided_sectors += sectors;
        }
        if self.first.len() < LISTED {
            self.first.push(mismatch);
        }
    }
}

impl Array {
    /// Compares on from address `next`, over about a MiB, and writes again what is wrong as far
    /// as `repair` says. Of three and more copies the majority decides; P and Q of one row name the
    /// member that is wrong. Two copies, one parity, and arrays with gears decide nothing. Answers
    /// where to go on; nothing at the end. In arrays with gears it is rows that are counted, native
    /// ones and then those of the soft state.
    ///
    /// # Errors
    /// Members are missing, so that there is nothing to compare with; data that cannot
    /// be read and not be computed.
    pub fn scrub_step(
        &self,
        worker: &mut Worker,
        next: Lbn,
        repair: Repair,
        found: &mut Comparison,
    ) -> Result<Option<Lbn>, ArrayError> {
        let _alone = self.alone();
        self.check_running()?;
        if self.facts.survived == 0 || self.planner().is_impaired() {
            let why = if self.facts.survived == 0 {
                "has no redundancy"
            } else {
                "lacks members"
            };
            return Err(ArrayError::Refused(format!(
                "the array {why}: there is nothing to compare"
            )));
        }
        if self.facts.gears.is_some() {
            return self
                .check_rows(worker, next.0, repair, found)
                .map(|next| next.map(Lbn));
        }
        let left = self.capacity().0.saturating_sub(next.0);
        let part = self.around(Extent {
            start: next,
            sectors: Sectors(left.min(BATCH_SECTORS)),
        });
        if left > 0 {
            self.compare(worker, part, Some(repair), found)?;
        }
        Ok((part.end().0 < self.capacity().0 && left > 0).then_some(part.end()))
    }

    /// Makes redundancy follow from the data in these regions. Data that cannot be read is computed
    /// from redundancy first, as it would be for a client.
    pub(crate) fn mend_regions(
        &self,
        worker: &mut Worker,
        regions: &[u32],
    ) -> Result<Comparison, ArrayError> {
        let mut found = Comparison::default();
        if self.facts.gears.is_some() {
            self.mend_rows_in(worker, regions, &mut found)?;
            return Ok(found);
        }
        for &region in regions {
            for extent in self.addresses_of(region) {
                let row = self.facts.rows.map_or(1, |rows| rows.data.0);
                let step = (BATCH_SECTORS / row).max(1) * row;
                let end = extent.end().0.min(self.capacity().0);
                for at in (extent.start.0..end).step_by(step as usize) {
                    self.compare(
                        worker,
                        Extent::new(at, step.min(end - at)),
                        None,
                        &mut found,
                    )?;
                }
            }
        }
        Ok(found)
    }

    /// The array's addresses that have something in a region of the members, in
    /// whole rows; each once.
    fn addresses_of(&self, region: u32) -> Vec<Extent> {
        let Some(bitmap) = &self.bitmap else {
            return Vec::new();
        };
        let region = bitmap.extent(region);
        let planner = self.planner();
        let mut owned = Vec::new();
        for slot in 0..planner.layout.members() {
            planner
                .layout
                .owners(slot, region, &mut |extent| owned.push(self.around(extent)));
        }
        drop(planner);
        owned.sort_unstable_by_key(|extent| extent.start);
        let mut merged: Vec<Extent> = Vec::new();
        for extent in owned {
            match merged.last_mut() {
                Some(last) if last.end() >= extent.start => {
                    last.sectors = last.end().max(extent.end()).since(last.start);
                }
                _ => merged.push(extent),
            }
        }
        merged
    }

    /// With `repair` what is wrong is judged. Without, all is made to follow from the data, as after a
    /// loss of power: whichever of the versions stands there, none is older than the last flush.
    fn compare(
        &self,
        worker: &mut Worker,
        extent: Extent,
        repair: Option<Repair>,
        found: &mut Comparison,
    ) -> Result<(), ArrayError> {
        found.compared_sectors += extent.sectors.0;
        let mut plan = Plan::new(Detail::Bytes);
        let [mut data, mut scratch] = [(); 2].map(|()| Aligned::default());
        let data = data.of(extent.sectors.bytes().0 as usize);
        let mut reads = |plan: &mut Plan| self.plan(Operation::Read, extent, plan).map(drop);
        self.read_alone(
            worker,
            (&mut reads, &mut plan),
            RequestBytes::Into(data),
            &mut scratch,
            found,
        )?;
        let mut writes = |plan: &mut Plan| self.plan(Operation::Write, extent, plan).map(drop);
        self.read_alone(
            worker,
            (&mut writes, &mut plan),
            RequestBytes::From(data),
            &mut scratch,
            found,
        )?;
        let wanted = scratch.of(plan.scratch().bytes().0 as usize);
        let mut buffers = Buffers {
            request: RequestBytes::From(data),
            scratch: wanted,
        };
        // Where there is parity, the data is what was just read from there.
        let follows = |content| self.facts.rows.is_none() || content != Content::Data;
        let Some(repair) = repair else {
            let plan = (&plan, &mut buffers);
            return self.compare_written(worker, plan, &follows, Repair::Data, found);
        };
        let mut first = Comparison::default();
        let looks = (&plan, &mut buffers);
        self.compare_written(worker, looks, &follows, Repair::Nothing, &mut first)?;
        found.failed_reads += first.failed_reads;
        match first.mismatched_sectors {
            0 => Ok(()),
            _ => self.judge(extent.start, (&plan, &buffers), repair, found),
        }
    }

    /// Finds out which of the sectors that contradict each other are wrong, and writes them again if
    /// `repair` says so.
    fn judge(
        &self,
        start: Lbn,
        (plan, buffers): (&Plan, &Buffers<'_>),
        repair: Repair,
        found: &mut Comparison,
    ) -> Result<(), ArrayError> {
        let devices = self.devices();
        let at = |lbn: Lbn| self.facts.data_at + lbn.0 * SECTOR_BYTES;
        let mut buffer = Aligned::default();
        let mut read = |slot: usize, lbn: Lbn, sectors: Sectors| {
            let bytes = buffer.of(sectors.bytes().0 as usize);
            let device = devices[slot].as_ref();
            let read =
                device.is_some_and(|device| persistently(|| device.read(at(lbn), bytes)).is_ok());
            Ok::<_, ArrayError>(read.then(|| bytes.to_vec()))
        };
        // A scrub begins only where all members are there; one may have failed since.
        let is_whole = !self.planner().is_impaired();
        let findings = judge(plan, buffers, start, is_whole, &mut read)?;
        for finding in findings {
            let sectors = finding.sectors();
            let mismatch = Mismatch {
                slot: finding.member,
                lbn: finding.lbn,
                address: Some(finding.address),
                undecided: !finding.is_proven,
            };
            let is_written = repair.writes(finding.is_proven);
            found.note(mismatch, sectors, is_written);
            let Some(device) = devices[finding.member].as_ref().filter(|_| is_written) else {
                continue;
            };
            let right = buffer.of(finding.right.len());
            right.copy_from_slice(&finding.right);
            if let Err(error) = persistently(|| device.write(at(finding.lbn), right)) {
                let why = format!("it could not be written: {error}");
                self.drop_member(finding.member, &why, error)?;
            }
        }
        Ok(())
    }

    /// Holds what the plan would write against what stands there. Nothing is proven here, but that
    /// what cannot be read is to be written again.
    fn compare_written(
        &self,
        worker: &mut Worker,
        (plan, buffers): (&Plan, &mut Buffers<'_>),
        follows: &dyn Fn(Content) -> bool,
        repair: Repair,
        found: &mut Comparison,
    ) -> Result<(), ArrayError> {
        let mut present = Aligned::default();
        let devices = self.devices();
        let states = self.states();
        for piece in plan.pieces() {
            let io = &plan.ios()[piece.io as usize];
            let slot = io.member as usize;
            let is_written = io.operation == Operation::Write && follows(piece.content);
            if !is_written || states[slot] != MemberState::Alive {
                continue;
            }
            let Some(device) = &devices[slot] else {
                continue;
            };
            let at = self.facts.data_at + piece.lbn.0 * SECTOR_BYTES;
            let present = present.of(piece.sectors.bytes().0 as usize);
            let wanted = buffers.at(piece.place, piece.sectors);
            let is_read = persistently(|| device.read(at, present)).is_ok();
            let difference = if is_read {
                differing(present, wanted)
            } else {
                // What cannot be read does not follow; to write it again may help.
                found.failed_reads += 1;
                Some(Differing {
                    first: 0,
                    sectors: piece.sectors.0,
                })
            };
            let Some(Differing {
                first,
                sectors: count,
            }) = difference
            else {
                continue;
            };
            let mismatch = Mismatch {
                slot,
                lbn: piece.lbn + Sectors(first),
                address: None,
                undecided: is_read,
            };
            let is_written = repair.writes(!is_read);
            found.note(mismatch, count, is_written);
            if is_written {
                let transfer = Transfer {
                    slot,
                    at,
                    place: piece.place,
                    sectors: piece.sectors,
                };
                let failed = worker
                    .carrier
                    .carry(Direction::Write, &[transfer], &devices, buffers);
                for failed in failed {
                    let why = format!("it could not be written: {}", failed.error);
                    self.drop_member(slot, &why, failed.error)?;
                }
            }
        }
        Ok(())
    }

    /// Compares redundancy of an array with gears with what it follows from, in this gear: from a row on, about
    /// a MiB. Answers the next row; nothing at the end.
    fn check_rows(
        &self,
        worker: &mut Worker,
        from: u64,
        repair: Repair,
        found: &mut Comparison,
    ) -> Result<Option<u64>, ArrayError> {
        let mut plan = Plan::new(Detail::Bytes);
        let mut next = None;
        let mut check = |plan: &mut Plan| {
            let mut planner = self.planner();
            plan.clear();
            next = planner
                .layout
                .gears()
                .and_then(|gears| gears.plan_check(from, Sectors(BATCH_SECTORS), plan));
            Ok(())
        };
        let mut scratch = Aligned::default();
        self.read_alone(
            worker,
            (&mut check, &mut plan),
            RequestBytes::From(&[]),
            &mut scratch,
            found,
        )?;
        let Some(next) = next else { return Ok(None) };
        let scratch = scratch.of(plan.scratch().bytes().0 as usize);
        let mut buffers = Buffers {
            request: RequestBytes::From(&[]),
            scratch,
        };
        self.compare_written(worker, (&plan, &mut buffers), &|_| true, repair, found)?;
        let data = self.facts.rows.map_or(0, |rows| rows.data.0);
        let rows = self.capacity().0 / data.max(1);
        found.compared_sectors += (next.min(rows) - from.min(rows)) * data;
        Ok(Some(next))
    }

    /// Native rows in these regions first: parity of the soft state follows from them.
    fn mend_rows_in(
        &self,
        worker: &mut Worker,
        regions: &[u32],
        found: &mut Comparison,
    ) -> Result<(), ArrayError> {
        let rows = self.facts.gears.as_ref().and_then(|gears| gears.rows);
        let (Some(bitmap), Some(rows)) = (&self.bitmap, rows) else {
            return Ok(());
        };
        for native in [true, false] {
            for &region in regions {
                let rows = rows.checked_in(bitmap.extent(region), native);
                let mut from = rows.start;
                while from < rows.end {
                    from = self
                        .check_rows(worker, from, Repair::Data, found)?
                        .unwrap_or(rows.end);
                }
            }
        }
        Ok(())
    }

    /// Reads what a plan reads, and does its steps. What cannot be read is mended, or its member
    /// has failed; then the plan is made again.
    fn read_alone(
        &self,
        worker: &mut Worker,
        (make, plan): (&mut Makes<'_>, &mut Plan),
        mut request: RequestBytes<'_>,
        scratch: &mut Aligned,
        found: &mut Comparison,
    ) -> Result<(), ArrayError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            make(plan)?;
            let request = match &mut request {
                RequestBytes::Into(bytes) => RequestBytes::Into(bytes),
                RequestBytes::From(bytes) => RequestBytes::From(bytes),
            };
            let scratch = scratch.of(plan.scratch().bytes().0 as usize);
            let mut buffers = Buffers { request, scratch };
            let reads = self.transfers(plan, Operation::Read);
            let failed =
                worker
                    .carrier
                    .carry(Direction::Read, &reads, &self.devices(), &mut buffers);
            // One at a time: what mends it may mend others, or a member goes.
            let Some(failed) = failed.into_iter().next() else {
                buffers.run_steps(plan);
                return Ok(());
            };
            found.failed_reads += 1;
            self.mend_or_drop(worker, failed, &mut last)?;
        }
        let why = "what was to be compared could not be read, however often it was mended";
        Err(ArrayError::Refused(why.to_owned()))
    }
}
