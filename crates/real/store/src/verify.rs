//! Compares parity and copies with their data.
//!
//! The comparison knows no layout: it plans a write of the present data. The plan tells the right
//! parity and copies, and their places.

use crate::ArrayError;
use crate::array::{ATTEMPTS, Array, RequestScratch};
use crate::buffers::{Buffers, RequestBytes};
use crate::device::Aligned;
use crate::judge::{DifferingSectors, Repair, differing, judge};
use crate::member_transfer::{MemberTransfer, TransferDirection};
use crate::transfer::persistently;
use fullstroke_contract::{Extent, MemberState, Operation};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Content, Detail, Plan};
use serde::Serialize;

/// Size of a read: 1 MiB.
const BATCH_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;
/// Largest number of listed mismatches; all are counted.
const LISTED: usize = 16;

/// Makes a plan; another call makes a new plan after a change of a member.
type Makes<'a> = dyn FnMut(&mut Plan) -> Result<(), ArrayError> + 'a;

/// Results of a comparison of redundancy with data.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct RedundancyCheck {
    /// Compared sectors of the array's addresses.
    pub compared_sectors: u64,
    /// Sectors of parity, copies or data in contradiction to the rest, or unreadable.
    pub mismatched_sectors: u64,
    /// Mismatched sectors left as they are, because nothing proves which of the sectors is wrong.
    pub undecided_sectors: u64,
    /// Mismatched sectors written again.
    pub repaired_sectors: u64,
    /// Failed reads of data, parity and copies, of up to 1 MiB each. Unreadable data is computed
    /// from the other members and written again, as for a client's read. Unreadable redundancy is
    /// written again only if the scrub may repair.
    pub failed_reads: u64,
    /// The first mismatches, one for each run of sectors.
    pub first: Vec<Mismatch>,
}

/// A run of sectors of a member in contradiction to the other members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Slot of the member.
    pub slot: usize,
    /// First sector of the run on the member, counted from its data.
    pub lbn: Lbn,
    /// Address of the run in the array, in sectors. For parity: the address of the row's first data
    /// in the same column. `None` in arrays with gears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Lbn>,
    /// True if nothing proves this run wrong.
    pub undecided: bool,
}

impl RedundancyCheck {
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
    /// Continues a comparison at address `next`, over about 1 MiB, and writes wrong sectors again
    /// as far as `repair` allows. Of three and more copies the majority decides. P and Q of a row
    /// identify the wrong member. With two copies, with one parity, and in arrays with gears
    /// nothing decides. Returns the next address; `None` at the end. Arrays with gears count rows
    /// instead of addresses: native rows first, then rows of the soft state.
    ///
    /// # Errors
    /// Members are missing, so there is nothing to compare with. Or data can neither be read nor be
    /// computed.
    pub fn scrub_step(
        &self,
        worker: &mut RequestScratch,
        next: Lbn,
        repair: Repair,
        found: &mut RedundancyCheck,
    ) -> Result<Option<Lbn>, ArrayError> {
        let _alone = self.order.alone();
        if repair.changes() {
            self.condition.check_changes()?;
        }
        self.condition.check_running()?;
        if self.facts.survived == 0 || self.planner().is_impaired() {
            let why = if self.facts.survived == 0 {
                "has no redundancy"
            } else {
                "lacks members"
            };
            return Err(ArrayError::Refused(format!(
                "the array {why}: there is no redundancy to compare"
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

    /// Makes redundancy follow from the data in these regions. Unreadable data is first computed
    /// from redundancy, as for a client.
    pub(crate) fn mend_regions(
        &self,
        worker: &mut RequestScratch,
        regions: &[u32],
    ) -> Result<RedundancyCheck, ArrayError> {
        let mut found = RedundancyCheck::default();
        if self.facts.gears.is_some() {
            self.mend_rows_in(worker, regions, &mut found)?;
            return Ok(found);
        }
        for &region in regions {
            for extent in self.addresses_of(region) {
                let row = self.facts.rows.map_or(1, |rows| rows.data.0);
                // At least one row, because parity belongs to whole rows.
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

    /// Returns the array's addresses with data in a region of the members, in whole rows, each
    /// once.
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
        // Several members own the same rows; in order of address they can be joined.
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

    /// Compares one part. With `repair` the wrong sectors are determined. Without it redundancy is
    /// made to follow from the data, as after a loss of power: any version is valid then, because
    /// none is older than the last flush.
    fn compare(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        repair: Option<Repair>,
        found: &mut RedundancyCheck,
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
        // With parity, the data in the buffer was just read from this very place.
        let follows = |content| self.facts.rows.is_none() || content != Content::Data;
        let Some(repair) = repair else {
            let plan = (&plan, &mut buffers);
            return self.compare_written(worker, plan, &follows, Repair::Data, found);
        };
        let mut first = RedundancyCheck::default();
        let looks = (&plan, &mut buffers);
        self.compare_written(worker, looks, &follows, Repair::Nothing, &mut first)?;
        // `first` has only looked. Its mismatches are counted when they are judged.
        found.failed_reads += first.failed_reads;
        match first.mismatched_sectors {
            0 => Ok(()),
            _ => self.judge(extent.start, (&plan, &buffers), repair, found),
        }
    }

    /// Determines the wrong sectors among contradicting ones, and repairs as far as `repair`
    /// allows.
    fn judge(
        &self,
        start: Lbn,
        (plan, buffers): (&Plan, &Buffers<'_>),
        repair: Repair,
        found: &mut RedundancyCheck,
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
        // A scrub begins only with all members present; one may have failed since.
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

    /// Compares the bytes of the planned write with the present bytes. This proves only one fault:
    /// unreadable sectors must be written again.
    fn compare_written(
        &self,
        worker: &mut RequestScratch,
        (plan, buffers): (&Plan, &mut Buffers<'_>),
        follows: &dyn Fn(Content) -> bool,
        repair: Repair,
        found: &mut RedundancyCheck,
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
                // An unreadable piece counts as a mismatch, because another write may make it
                // readable.
                found.failed_reads += 1;
                Some(DifferingSectors {
                    first: 0,
                    sectors: piece.sectors.0,
                })
            };
            let Some(DifferingSectors {
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
                let transfer = MemberTransfer {
                    slot,
                    at,
                    place: piece.place,
                    sectors: piece.sectors,
                };
                let failed =
                    worker
                        .carrier
                        .carry(TransferDirection::Write, &[transfer], &devices, buffers);
                for failed in failed {
                    let why = format!("write failed: {}", failed.error);
                    self.drop_member(slot, &why, failed.error)?;
                }
            }
        }
        Ok(())
    }

    /// Compares redundancy of an array with gears with its source in the present gear: about 1 MiB
    /// from a row on. Returns the next row; `None` at the end.
    fn check_rows(
        &self,
        worker: &mut RequestScratch,
        from: u64,
        repair: Repair,
        found: &mut RedundancyCheck,
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

    /// Mends the rows of these regions. Native rows come first, because these are the source of the
    /// soft state's parity.
    fn mend_rows_in(
        &self,
        worker: &mut RequestScratch,
        regions: &[u32],
        found: &mut RedundancyCheck,
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

    /// Carries out the reads and the arithmetic of a plan. An unreadable piece is mended, or its
    /// member fails; then the plan is made again.
    fn read_alone(
        &self,
        worker: &mut RequestScratch,
        (make, plan): (&mut Makes<'_>, &mut Plan),
        mut request: RequestBytes<'_>,
        scratch: &mut Aligned,
        found: &mut RedundancyCheck,
    ) -> Result<(), ArrayError> {
        let mut last = None;
        // Bounded: each repair may uncover the next unreadable place.
        for _ in 0..ATTEMPTS {
            make(plan)?;
            let request = match &mut request {
                RequestBytes::Into(bytes) => RequestBytes::Into(bytes),
                RequestBytes::From(bytes) => RequestBytes::From(bytes),
            };
            let scratch = scratch.of(plan.scratch().bytes().0 as usize);
            let mut buffers = Buffers { request, scratch };
            let reads = self.transfers(plan, Operation::Read);
            let failed = worker.carrier.carry(
                TransferDirection::Read,
                &reads,
                &self.devices(),
                &mut buffers,
            );
            // Only the first failure is mended, because mending it may mend others, or fail a
            // member.
            let Some(failed) = failed.into_iter().next() else {
                buffers.run_steps(plan);
                return Ok(());
            };
            found.failed_reads += 1;
            self.mend_or_drop(worker, failed, &mut last)?;
        }
        let why = "the data to compare could not be read, in spite of repairs";
        Err(ArrayError::Refused(why.to_owned()))
    }
}
