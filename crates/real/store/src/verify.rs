//! Compares parity and copies with their data, and mends.
//!
//! The reads of a planned write are carried out here; `comparison.rs` compares the result.

use crate::ArrayError;
use crate::array::{ATTEMPTS, Array, RequestScratch};
use crate::buffers::{Buffers, RequestBytes};
use crate::comparison::{
    BATCH_SECTORS, ComparedMembers, Comparison, Decision, MemberName, RedundancyCheck, cut,
};
use crate::device::Aligned;
use crate::judge::Repair;
use crate::member_transfer::TransferDirection;
use crate::transfer::{Devices, persistently};
use fullstroke_contract::{Extent, MemberState, Operation};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Detail, Plan};
use std::sync::Arc;

/// Makes a plan; another call makes a new plan after a change of a member.
type Makes<'a> = dyn FnMut(&mut Plan) -> Result<(), ArrayError> + 'a;

/// The members of an array, for a comparison.
struct ArrayMembers<'a> {
    array: &'a Array,
    devices: Arc<Devices>,
    states: Vec<MemberState>,
    buffer: Aligned,
}

impl ArrayMembers<'_> {
    fn byte_of(&self, lbn: Lbn) -> u64 {
        self.array.facts.data_at + lbn.0 * SECTOR_BYTES
    }
}

impl ComparedMembers for ArrayMembers<'_> {
    type Error = ArrayError;

    fn name(&self, member: usize) -> MemberName {
        MemberName::Slot(member)
    }

    fn present(
        &mut self,
        member: usize,
        lbn: Lbn,
        sectors: Sectors,
    ) -> Result<Option<&[u8]>, ArrayError> {
        let at = self.byte_of(lbn);
        let device = self.devices[member].as_ref();
        let Some(device) = device.filter(|_| self.states[member] == MemberState::Alive) else {
            return Ok(Some(&[]));
        };
        let bytes = self.buffer.of(sectors.bytes().0 as usize);
        let read = persistently(|| device.read(at, bytes));
        Ok(read.is_ok().then_some(&*bytes))
    }

    fn write(&mut self, member: usize, lbn: Lbn, from: &[u8]) -> Result<(), ArrayError> {
        let at = self.byte_of(lbn);
        let Some(device) = self.devices[member].as_ref() else {
            return Ok(());
        };
        // The memory is aligned as the device demands, which the bytes of a piece need not be.
        let bytes = self.buffer.of(from.len());
        bytes.copy_from_slice(from);
        persistently(|| device.write(at, bytes)).or_else(|error| {
            let why = format!("write failed: {error}");
            self.array.drop_member(member, &why, error)
        })
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
                .check_rows(worker, next.0, Decision::Nothing(repair), found)
                .map(|next| next.map(Lbn));
        }
        let left = self.capacity().0.saturating_sub(next.0);
        let part = self.around(Extent {
            start: next,
            sectors: Sectors(left.min(BATCH_SECTORS)),
        });
        if left > 0 {
            assert!(part.end() > next, "a step of a scrub ends at {next} again");
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
                for part in cut(extent, self.facts.rows, self.capacity(), BATCH_SECTORS) {
                    self.compare(worker, part, None, &mut found)?;
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
        for slot in 0..planner.layout().members() {
            planner
                .layout()
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
        let buffers = Buffers {
            request: RequestBytes::From(data),
            scratch: wanted,
        };
        let decision = repair.map_or(Decision::Data, |repair| Decision::Members {
            repair,
            start: extent.start,
            // A scrub begins only with all members present; one may have failed since.
            is_whole: !self.planner().is_impaired(),
        });
        let with_parity = self.facts.rows.is_some();
        Comparison::new(&plan, &buffers, with_parity).carry_out(
            decision,
            &mut self.members(),
            found,
        )
    }

    /// Returns the present members for a comparison.
    fn members(&self) -> ArrayMembers<'_> {
        ArrayMembers {
            array: self,
            devices: self.devices(),
            states: self.states(),
            buffer: Aligned::default(),
        }
    }

    /// Compares redundancy of an array with gears with its source in the present gear: about 1 MiB
    /// from a row on. Returns the next row; `None` at the end.
    fn check_rows(
        &self,
        worker: &mut RequestScratch,
        from: u64,
        decision: Decision,
        found: &mut RedundancyCheck,
    ) -> Result<Option<u64>, ArrayError> {
        let mut plan = Plan::new(Detail::Bytes);
        let mut next = None;
        let mut check = |plan: &mut Plan| {
            let most = Sectors(BATCH_SECTORS);
            next = self.planner().plan_check(from, most, plan);
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
        assert!(next > from, "a comparison of rows is at row {from} again");
        let scratch = scratch.of(plan.scratch().bytes().0 as usize);
        let buffers = Buffers {
            request: RequestBytes::From(&[]),
            scratch,
        };
        Comparison::new(&plan, &buffers, false).carry_out(decision, &mut self.members(), found)?;
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
                        .check_rows(worker, from, Decision::Data, found)?
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
