//! Discards: giving room back.

use super::{Array, AttemptFailure, JournalPolicy, RequestScratch};
use crate::ArrayError;
use crate::member_transfer::MemberTransfer;
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{SECTOR_BYTES, Sectors};

/// Size of a step of a trim, 32 MiB. Short steps keep the rows locked only for a short time.
const TRIMMED_SECTORS: u64 = 32 << 11;

impl Array {
    /// True if discards are possible: all members are there and support them, and no journal would
    /// have to record them.
    pub fn trims(&self) -> bool {
        let journalled = self.facts.rows.is_some() && self.facts.policy == JournalPolicy::All;
        // With gears, the soft state would have to follow.
        let follows = self.facts.gears.is_some();
        !journalled
            && !follows
            && self
                .devices()
                .iter()
                .all(|device| device.as_ref().is_some_and(|device| device.trims()))
    }

    /// Gives back the room of the bytes in simple cases: only of whole rows, whose parity becomes
    /// zeros too, and not while a member is missing. Discarded bytes read as zeros, the others as
    /// before.
    ///
    /// # Errors
    /// As [`write`](Array::write).
    pub fn trim(
        &self,
        worker: &mut RequestScratch,
        at: u64,
        length: u64,
    ) -> Result<(), ArrayError> {
        let block = self.facts.block_bytes;
        let (first, behind) = (
            at.next_multiple_of(block),
            at.saturating_add(length) / block * block,
        );
        let asked = Extent::new(
            first / SECTOR_BYTES,
            behind.saturating_sub(first) / SECTOR_BYTES,
        );
        let whole = self.facts.rows.map_or(asked, |rows| rows.within(asked));
        if whole.sectors == Sectors::ZERO || !self.trims() {
            return Ok(());
        }
        if !whole.within(self.facts.capacity) {
            return Err(ArrayError::OutOfRange {
                extent: whole,
                capacity: self.facts.capacity,
            });
        }
        let row = self.facts.rows.map_or(1, |rows| rows.data.0);
        let step = (TRIMMED_SECTORS / row).max(1) * row;
        let mut from = whole.start.0;
        while from < whole.end().0 {
            let part = Extent::new(from, step.min(whole.end().0 - from));
            match self.try_to_trim(worker, part) {
                // A member failed meanwhile. The discard is only a hint, so this part is left.
                Ok(()) | Err(AttemptFailure::Again | AttemptFailure::Unread(_)) => {}
                Err(AttemptFailure::Error(error)) => return Err(error),
            }
            from += step;
        }
        self.settle()
    }

    fn try_to_trim(&self, worker: &mut RequestScratch, part: Extent) -> Result<(), AttemptFailure> {
        let _passed = self.order.pass();
        let _held = self.order.hold_rows(part, true);
        self.condition.check_changes()?;
        let (version, missing) = self.plan(Operation::Write, part, &mut worker.plan)?;
        if missing {
            return Ok(());
        }
        if self.has_journalled_rows(part) {
            self.give_up_records()?;
        }
        self.marked(worker, version, part, missing, |worker| {
            let devices = self.devices();
            for (slot, at, bytes) in runs(&self.transfers(&worker.plan, Operation::Write)) {
                let Some(device) = &devices[slot] else {
                    continue;
                };
                // The bytes must become zeros even if the device cannot discard: the other members
                // of the row have become zeros.
                if let Err(error) = device.zero(at, bytes, true) {
                    self.drop_member(slot, &format!("trim failed: {error}"), error)?;
                }
            }
            Ok(())
        })
    }
}

/// Joins the transfers to runs for each member: slot, first byte, bytes.
fn runs(transfers: &[MemberTransfer]) -> Vec<(usize, u64, u64)> {
    let mut runs: Vec<_> = transfers
        .iter()
        .map(|each| (each.slot, each.at, each.bytes()))
        .collect();
    runs.sort_unstable();
    runs.dedup_by(|later, run| {
        let goes_on = later.0 == run.0 && later.1 == run.1 + run.2;
        run.2 += if goes_on { later.2 } else { 0 };
        goes_on
    });
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Design, Device, FileDevice, OpenPurpose, RedundancyCheck, Repair, assemble, create,
    };
    use fullstroke_units::Lbn;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    const MIB: u64 = 1 << 20;

    fn room(paths: &[PathBuf]) -> u64 {
        paths
            .iter()
            .map(|path| std::fs::metadata(path).unwrap().blocks() * 512)
            .sum()
    }

    fn made(folder: &Path, sparse: bool, journal: JournalPolicy) -> (Array, Vec<PathBuf>) {
        let paths: Vec<PathBuf> = (0..3)
            .map(|number| folder.join(format!("d{number}")))
            .collect();
        let open = |path: &PathBuf| {
            std::fs::File::create(path)
                .unwrap()
                .set_len(64 * MIB)
                .unwrap();
            let device = FileDevice::open(path, OpenPurpose::Own).unwrap();
            Arc::new(device) as Arc<dyn Device>
        };
        let devices: Vec<Arc<dyn Device>> = paths.iter().map(open).collect();
        let design = Design {
            name: "vol".into(),
            layout: "raid5".into(),
            keys: serde_json::json!({ "chunk": "64KiB" })
                .as_object()
                .unwrap()
                .clone(),
            journal,
            spares: 0,
            force: false,
            sparse,
            member_bytes: None,
            region_bytes: None,
            measured: Vec::new(),
        };
        create(&design, &devices).unwrap();
        (assemble(&devices, false).unwrap().0, paths)
    }

    fn read(array: &Array, worker: &mut RequestScratch, at: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        array.read(worker, at, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn sparse_files_get_their_room_back_and_rows_stay_right() {
        let folder = tempfile::tempdir().unwrap();
        let (array, paths) = made(folder.path(), true, JournalPolicy::Partial);
        let mut worker = RequestScratch::new();
        array
            .write(&mut worker, 0, &vec![7; 8 * MIB as usize])
            .unwrap();
        let before = room(&paths);
        // Rows are of 128 KiB: the rows that are cut at both ends stay.
        array.trim(&mut worker, MIB + 512, 4 * MIB).unwrap();
        let freed = before - room(&paths);
        assert!(freed >= 5 * MIB, "{freed} of {before}");
        assert!(
            read(&array, &mut worker, MIB, 512)
                .iter()
                .all(|byte| *byte == 7)
        );
        assert!(
            read(&array, &mut worker, MIB + 128 * 1024, 3 * MIB)
                .iter()
                .all(|byte| *byte == 0)
        );
        assert!(
            read(&array, &mut worker, 5 * MIB + 512, MIB)
                .iter()
                .all(|byte| *byte == 7)
        );
        let (mut found, mut next) = (RedundancyCheck::default(), Some(Lbn(0)));
        while let Some(from) = next {
            next = array
                .scrub_step(&mut worker, from, Repair::Nothing, &mut found)
                .unwrap();
        }
        assert_eq!(found.mismatched_sectors, 0);
        assert!(
            array
                .trim(&mut worker, array.capacity().0 * 512, 4 * MIB)
                .is_err()
        );
    }

    #[test]
    fn what_cannot_give_room_back_is_left_as_it_was() {
        for (sparse, journal) in [(false, JournalPolicy::Partial), (true, JournalPolicy::All)] {
            let folder = tempfile::tempdir().unwrap();
            let (array, _) = made(folder.path(), sparse, journal);
            let mut worker = RequestScratch::new();
            array.write(&mut worker, 0, &vec![7; MIB as usize]).unwrap();
            assert!(!array.trims());
            array.trim(&mut worker, 0, MIB).unwrap();
            assert!(
                read(&array, &mut worker, 0, MIB)
                    .iter()
                    .all(|byte| *byte == 7)
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let (array, _) = made(folder.path(), true, JournalPolicy::Partial);
        let mut worker = RequestScratch::new();
        array.write(&mut worker, 0, &vec![7; MIB as usize]).unwrap();
        array.fail(1).unwrap();
        array.trim(&mut worker, 0, MIB).unwrap();
        assert!(
            read(&array, &mut worker, 0, MIB)
                .iter()
                .all(|byte| *byte == 7)
        );
    }
}
