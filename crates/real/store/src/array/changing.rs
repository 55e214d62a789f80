//! The steps of a change: marks, journals, members.

use super::race::RowsOfReads;
use super::{Array, AttemptFailure, RequestScratch, Sabotage};
use crate::bitmap::Granules;
use crate::buffers::{Buffers, RequestBytes};
use crate::device::Aligned;
use crate::journal::{Change, ChangeRun, ChangedContent, JournalFull};
use crate::journals::WrittenRecord;
use crate::member_transfer::TransferDirection;
use crate::superblock::JournalPolicy;
use crate::transfer::Devices;
use fullstroke_contract::{Extent, Operation};
use fullstroke_volume::{Content, Plan};
use std::collections::BTreeSet;
use std::convert::Infallible;

impl Array {
    /// Marks the regions of the plan, carries the plan out, and ends the marks. `missing` is true
    /// if a member lacks the new data.
    pub(super) fn marked(
        &self,
        worker: &mut RequestScratch,
        version: u64,
        part: Extent,
        missing: bool,
        carry_out: impl FnOnce(&mut RequestScratch) -> Result<(), AttemptFailure>,
    ) -> Result<(), AttemptFailure> {
        let Some(bitmap) = self
            .bitmap
            .as_ref()
            .filter(|_| self.sabotage != Sabotage::NoMarks)
        else {
            return carry_out(worker);
        };
        let ios = worker
            .plan
            .ios()
            .iter()
            .filter(|io| io.operation == Operation::Write);
        let homes = self.native_run(part);
        let regions = ios.map(|io| io.extent).chain(homes);
        let regions: BTreeSet<u32> = regions
            .flat_map(|extent| bitmap.regions_of(extent))
            .collect();
        debug_assert!(!regions.is_empty(), "{part:?} is written in no region");
        let Ok(()) = bitmap.begin(&regions, missing, |granules| {
            self.write_granules(&granules, true);
            Ok::<(), Infallible>(())
        });
        // If a member failed since planning, the regions were not marked as missed by it. So the
        // write is planned again.
        let result = if self.planner().version() == version {
            carry_out(worker)
        } else {
            Err(AttemptFailure::Again)
        };
        bitmap.end(&regions, self.epochs.present());
        result
    }

    /// True if the planned change is written to the journal first.
    pub(super) fn is_journalled(&self, plan: &Plan, part: Extent, missing: bool) -> bool {
        let Some(rows) = self.facts.rows else {
            return false;
        };
        let sabotaged = self.sabotage == Sabotage::NoJournal
            || self.sabotage == Sabotage::LowUnjournalled && self.reads_soft();
        if sabotaged || self.facts.policy == JournalPolicy::None {
            return false;
        }
        let whole = rows.within(part) == part && !missing;
        let usual = self.facts.policy == JournalPolicy::Partial && whole;
        !usual
            && plan
                .pieces()
                .iter()
                .any(|piece| self.is_written_parity(plan, piece))
    }

    fn is_written_parity(&self, plan: &Plan, piece: &fullstroke_volume::MemoryPiece) -> bool {
        let parity = matches!(piece.content, Content::Parity | Content::SecondParity);
        parity && plan.ios()[piece.io as usize].operation == Operation::Write
    }

    /// Carries out the plan of a write.
    pub(super) fn make(
        &self,
        worker: &mut RequestScratch,
        part: Extent,
        from: &[u8],
        journalled: bool,
    ) -> Result<(), AttemptFailure> {
        let devices = self.devices();
        let RequestScratch {
            plan,
            scratch,
            carrier,
            record,
            ..
        } = worker;
        let scratch = scratch.of(plan.scratch().bytes().0 as usize);
        let mut buffers = Buffers {
            request: RequestBytes::From(from),
            scratch,
        };
        let reads = self.transfers(plan, Operation::Read);
        // The caller holds the rows, so no other writer changes them.
        let rows = RowsOfReads::Held;
        let failed = self.carry_reads(carrier, &reads, &devices, &mut buffers, rows);
        if let Some(failed) = failed.into_iter().next() {
            return Err(AttemptFailure::Unread(failed));
        }
        buffers.run_steps(plan);
        let records = match journalled {
            true => self.write_down(plan, part, &buffers, &devices, record)?,
            false => Vec::new(),
        };
        let writes = self.transfers(plan, Operation::Write);
        let failed = carrier.carry(TransferDirection::Write, &writes, &devices, &mut buffers);
        // All other members have been written, so the row is whole without the failed ones.
        for failed in failed {
            let why = format!("write failed: {}", failed.error);
            self.drop_member(failed.transfer.slot, &why, failed.error)?;
        }
        records
            .into_iter()
            .for_each(|record| self.journals.made(record));
        Ok(())
    }

    /// Writes the bytes of the plan to the journals of the members with the row's parity, and makes
    /// the records durable.
    fn write_down(
        &self,
        plan: &Plan,
        part: Extent,
        buffers: &Buffers<'_>,
        devices: &Devices,
        record: &mut Aligned,
    ) -> Result<Vec<WrittenRecord>, AttemptFailure> {
        let id = self.journals.number_change();
        let mut change = Change {
            id,
            runs: Vec::new(),
            bytes: Vec::new(),
        };
        let mut holders = BTreeSet::new();
        for piece in plan.pieces() {
            let io = &plan.ios()[piece.io as usize];
            if io.operation == Operation::Write {
                assert!(
                    piece.sectors.0 <= u64::from(u32::MAX),
                    "a record holds no run of {}",
                    piece.sectors
                );
                let run = ChangeRun {
                    slot: io.member,
                    sectors: piece.sectors.0 as u32,
                    lbn: piece.lbn.0,
                    kind: ChangedContent::Written,
                };
                change.runs.push(run);
                change
                    .bytes
                    .extend_from_slice(buffers.at(piece.place, piece.sectors));
            }
            if self.is_written_parity(plan, piece) {
                holders.insert(io.member as usize);
            }
        }
        if let Some(shared) = self.shared_journals(part) {
            holders = shared.into_iter().collect();
        }
        debug_assert!(
            !holders.is_empty(),
            "no journal takes the change of {part:?}"
        );
        let row = self.facts.rows.map_or(0, |rows| part.start.0 / rows.data.0);
        let mut records = Vec::new();
        for slot in holders {
            let Some(device) = &devices[slot] else {
                continue;
            };
            self.journals.check_fits(slot, &change)?;
            let written = loop {
                let appended = self.journals.append(slot, &**device, row, &change, record);
                match appended {
                    Ok(written) => break written,
                    Err(JournalFull) => self.give_up_records()?,
                }
            };
            let durable = written.and_then(|record| {
                records.push(record);
                if self.sabotage == Sabotage::JournalUnflushed {
                    return Ok(());
                }
                self.journals.flush(slot, &**device)
            });
            if let Err(error) = durable {
                let why = format!("write of the journal failed: {error}");
                self.drop_member(slot, &why, error)?;
                // No member is changed before the others have recorded the failure. Otherwise power
                // may fail, and the failed member may be back afterwards without the record.
                self.settle()?;
                records
                    .into_iter()
                    .for_each(|record| self.journals.made(record));
                return Err(AttemptFailure::Again);
            }
        }
        Ok(records)
    }

    pub(super) fn has_journalled_rows(&self, part: Extent) -> bool {
        let Some(rows) = self.facts.rows.filter(|_| !self.journals.are_absent()) else {
            return false;
        };
        let (first, behind) = (
            part.start.0 / rows.data.0,
            part.end().0.div_ceil(rows.data.0),
        );
        self.journals.hold(first..behind)
    }

    /// Writes parts of the bitmap to every member.
    pub(crate) fn write_granules(&self, granules: &Granules, durable: bool) {
        let at = self.facts.bitmap_at;
        let devices = self.turning();
        let mut buffer = Aligned::default();
        for (slot, device) in devices.iter().enumerate() {
            let Some(device) = device else { continue };
            let written = granules.iter().try_for_each(|(offset, bytes)| {
                let aligned = buffer.of(bytes.len());
                aligned.copy_from_slice(bytes);
                device.write(at + offset, aligned)
            });
            if let Err(error) = written {
                // A member whose bitmap cannot be written fails. If the array does not survive
                // that, `drop_member` halts the array, so no write is made without a mark.
                let _ =
                    self.drop_member(slot, &format!("write of the bitmap failed: {error}"), error);
            }
        }
        if durable {
            self.flush_devices();
        }
    }
}
