//! Sectors that cannot be read are computed from the other members and written again.

use crate::ArrayError;
use crate::array::{Array, RequestScratch};
use crate::device::Aligned;
use crate::member_transfer::FailedTransfer;
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES};
use fullstroke_volume::{Detail, Plan};
use std::io;

impl Array {
    /// Computes an unreadable piece from the other members and repeats its write, as md does
    /// (`fix_read_error` of Linux's raid1.c). If this does not help, the member has failed.
    ///
    /// # Errors
    /// The piece cannot be computed: the device's error.
    pub(crate) fn mend_read(
        &self,
        worker: &mut RequestScratch,
        failed: FailedTransfer,
        last: &mut Option<(usize, u64)>,
    ) -> Result<(), ArrayError> {
        let _alone = self.order.alone();
        self.mend_or_drop(worker, failed, last)
    }

    /// As [`mend_read`](Array::mend_read), for callers with the gate held exclusively.
    pub(crate) fn mend_or_drop(
        &self,
        worker: &mut RequestScratch,
        failed: FailedTransfer,
        last: &mut Option<(usize, u64)>,
    ) -> Result<(), ArrayError> {
        let slot = failed.transfer.slot;
        let Some(device) = self.devices()[slot].clone() else {
            return Ok(());
        };
        assert!(
            failed.transfer.at >= self.facts.data_at,
            "byte {} of slot {slot} is mended, before its data at {}",
            failed.transfer.at,
            self.facts.data_at
        );
        let lbn = (failed.transfer.at - self.facts.data_at) / SECTOR_BYTES;
        let place = (slot, failed.transfer.at);
        let again = last.replace(place) == Some(place);
        // A device that is shorter than before has no bad sector; it has failed.
        let shrunk = failed.error.kind() == io::ErrorKind::UnexpectedEof;
        if !again && !shrunk && self.mend(worker, slot, Extent::new(lbn, failed.transfer.sectors.0))
        {
            self.note_mended(slot, device.name(), lbn);
            return Ok(());
        }
        if self.facts.survived == 0 || !self.try_to_drop(slot) {
            // Without redundancy no client expects another copy, so the next flush reports nothing.
            if self.facts.survived > 0 {
                self.condition.note_loss();
            }
            return Err(ArrayError::device(device.name(), "read", failed.error));
        }
        let why = format!("read failed: {}", failed.error);
        self.happened("failed", slot, device.name(), &why);
        self.settle()
    }

    /// Mends a piece that a member could not read after its request was answered. The piece is
    /// written again without another attempt to read it: a disk that retries a bad sector may take
    /// a minute, and all requests would wait.
    ///
    /// # Errors
    /// As [`mend_read`](Array::mend_read).
    pub(crate) fn mend_left_behind(
        &self,
        worker: &mut RequestScratch,
        failed: FailedTransfer,
    ) -> Result<(), ArrayError> {
        let _alone = self.order.alone();
        let (slot, sectors) = (failed.transfer.slot, failed.transfer.sectors);
        let Some(device) = self.devices()[slot].clone() else {
            return Ok(());
        };
        let lbn = (failed.transfer.at - self.facts.data_at) / SECTOR_BYTES;
        if failed.error.kind() != io::ErrorKind::UnexpectedEof
            && self.write_again(worker, slot, Extent::new(lbn, sectors.0))
        {
            self.note_mended(slot, device.name(), lbn);
            return Ok(());
        }
        self.mend_or_drop(worker, failed, &mut None)
    }

    fn note_mended(&self, slot: usize, device: String, lbn: u64) {
        let mended = if self.is_read_only() {
            "is kept in memory"
        } else {
            "was written again"
        };
        let why = format!("sector {lbn} could not be read, and {mended}");
        self.happened("mended", slot, device, &why);
    }

    /// Computes a piece of a member from the others, and writes the piece. Returns true on success.
    fn write_again(&self, worker: &mut RequestScratch, slot: usize, extent: Extent) -> bool {
        let mut plan = Plan::new(Detail::Bytes);
        let mut at = extent.start.0;
        while at < extent.end().0 {
            let piece = Extent::new(at, extent.end().0 - at);
            match self.plan_mend(slot, piece, &mut plan) {
                Some(next) if self.carry_out_alone(worker, &plan).is_ok() => {
                    assert!(
                        next.0 > at,
                        "sector {at} of slot {slot} is written again and again"
                    );
                    at = next.0;
                }
                _ => return false,
            }
        }
        true
    }

    /// Mends block by block, and only unreadable blocks: the other members may have unreadable
    /// sectors nearby.
    fn mend(&self, worker: &mut RequestScratch, slot: usize, extent: Extent) -> bool {
        let Some(device) = self.devices()[slot].clone() else {
            return false;
        };
        // With gears, the source of a block may be beside it on the same member, so smaller pieces
        // are mended.
        let whole_unit = self.facts.gears.is_none();
        let step = if whole_unit {
            self.facts.unit
        } else {
            self.facts.block_bytes / SECTOR_BYTES
        };
        let mut buffer = Aligned::default();
        let mut plan = Plan::new(Detail::Bytes);
        let mut at = extent.start.0 / step * step;
        while at < extent.end().0 {
            let piece = Extent::new(at, step.min(extent.end().0 - at));
            let bytes = buffer.of(piece.sectors.bytes().0 as usize);
            if device
                .read(self.facts.data_at + at * SECTOR_BYTES, bytes)
                .is_ok()
            {
                at = piece.end().0;
                continue;
            }
            match self.plan_mend(slot, piece, &mut plan) {
                Some(next) if self.carry_out_alone(worker, &plan).is_ok() => {
                    assert!(
                        next.0 > at,
                        "sector {at} of slot {slot} is mended again and again"
                    );
                    at = next.0;
                }
                _ => return false,
            }
        }
        true
    }

    /// Plans the computation of a piece of a member from the others, and its write. Returns the
    /// sector behind the written piece; `None` if the piece cannot be computed.
    fn plan_mend(&self, slot: usize, piece: Extent, plan: &mut Plan) -> Option<Lbn> {
        self.planner().plan_repair(slot, piece, plan)
    }
}
