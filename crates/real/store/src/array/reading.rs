//! Reads of an array.

use super::race::RowsOfReads;
use super::{ATTEMPTS, Array, AttemptFailure, COPIED_BELOW, RequestScratch};
use crate::ArrayError;
use crate::buffers::{Buffers, RequestBytes};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::SECTOR_BYTES;

impl Array {
    /// Reads from the byte `at` on.
    ///
    /// # Errors
    /// Out of range, lost, or a device's.
    pub fn read(
        &self,
        worker: &mut RequestScratch,
        at: u64,
        into: &mut [u8],
    ) -> Result<(), ArrayError> {
        let extent = self.around_bytes(at, into.len())?;
        if extent.sectors.bytes().0 == into.len() as u64 && self.takes_it_as_it_is(into.len()) {
            return self.read_extent(worker, extent, into);
        }
        let mut data = std::mem::take(&mut worker.data);
        let bytes = data.of(extent.sectors.bytes().0 as usize);
        let result = self.read_extent(worker, extent, bytes);
        if result.is_ok() {
            into.copy_from_slice(
                &bytes[(at - (extent.start.0 * SECTOR_BYTES)) as usize..][..into.len()],
            );
        }
        worker.data = data;
        result
    }

    /// True if members accept memory of any alignment, and a copy of `length` bytes would cost more
    /// than it saves.
    pub(super) fn takes_it_as_it_is(&self, length: usize) -> bool {
        length >= COPIED_BELOW
            && self
                .devices()
                .iter()
                .flatten()
                .all(|device| device.is_cached())
    }

    /// Returns the whole blocks around a run of bytes.
    pub(super) fn around_bytes(&self, at: u64, length: usize) -> Result<Extent, ArrayError> {
        let block = self.facts.block_bytes;
        let end = at.saturating_add(length as u64);
        let asked = Extent::new(
            at / SECTOR_BYTES,
            end.div_ceil(SECTOR_BYTES) - at / SECTOR_BYTES,
        );
        if length == 0 || !asked.within(self.facts.capacity) {
            return Err(ArrayError::OutOfRange {
                extent: asked,
                capacity: self.facts.capacity,
            });
        }
        let (first, behind) = (at / block * block, end.next_multiple_of(block));
        Ok(Extent::new(
            first / SECTOR_BYTES,
            (behind - first) / SECTOR_BYTES,
        ))
    }

    pub(super) fn read_extent(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        into: &mut [u8],
    ) -> Result<(), ArrayError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            // `try_to_read` has released the gate when it returns. `mend_read` needs the gate
            // exclusively, and would wait forever otherwise.
            match self.try_to_read(worker, extent, into) {
                Ok(()) => return Ok(()),
                Err(AttemptFailure::Again) => {}
                Err(AttemptFailure::Error(error)) => return Err(error),
                Err(AttemptFailure::Unread(failed)) => self.mend_read(worker, failed, &mut last)?,
            }
        }
        Err(ArrayError::Lost { extent })
    }

    fn try_to_read(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        into: &mut [u8],
    ) -> Result<(), AttemptFailure> {
        let _passed = self.order.pass();
        let mut held = None;
        loop {
            self.plan(Operation::Read, extent, &mut worker.plan)?;
            // Data is computed from several members, so no writer may change its row meanwhile. A
            // member may fail while the lock is waited for, so the plan is made again.
            if worker.plan.bands().is_empty() || held.is_some() {
                break;
            }
            held = Some(self.order.hold_rows(self.held_with(extent), false));
        }
        let devices = self.devices();
        let RequestScratch {
            plan,
            scratch,
            carrier,
            ..
        } = worker;
        let scratch = scratch.of(plan.scratch().bytes().0 as usize);
        let mut buffers = Buffers {
            request: RequestBytes::Into(into),
            scratch,
        };
        let reads = self.transfers(plan, Operation::Read);
        let rows = match held {
            Some(_) => RowsOfReads::Held,
            None => RowsOfReads::Free(extent),
        };
        let failed = self.carry_reads(carrier, &reads, &devices, &mut buffers, rows);
        if let Some(failed) = failed.into_iter().next() {
            return Err(AttemptFailure::Unread(failed));
        }
        buffers.run_steps(plan);
        Ok(())
    }
}
