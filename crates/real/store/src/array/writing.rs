//! Writes to an array: parts of rows, whole rows, and rows with several writers.

use super::{ATTEMPTS, Array, AttemptFailure, RequestScratch, Sabotage};
use crate::ArrayError;
use crate::gather::{self, WriterRole};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};

impl Array {
    /// Writes from the byte `at` on.
    ///
    /// # Errors
    /// Out of range, lost, or a device's. Part of the bytes may have been written then, sector by
    /// sector.
    pub fn write(
        &self,
        worker: &mut RequestScratch,
        at: u64,
        from: &[u8],
    ) -> Result<(), ArrayError> {
        let extent = self.around_bytes(at, from.len())?;
        let length = extent.sectors.bytes().0 as usize;
        let whole = length == from.len();
        // The bytes beside the write in its blocks are read and written back. No other writer may
        // change them meanwhile.
        let _edges = self.order.hold_blocks(extent, !whole);
        if whole && self.takes_it_as_it_is(from.len()) {
            return self.write_extent(worker, extent, from);
        }
        let mut data = std::mem::take(&mut worker.data);
        let bytes = data.of(length);
        let offset = (at - (extent.start.0 * SECTOR_BYTES)) as usize;
        let result = if whole {
            bytes.copy_from_slice(from);
            self.write_extent(worker, extent, bytes)
        } else {
            self.read_extent(worker, extent, bytes).and_then(|()| {
                bytes[offset..][..from.len()].copy_from_slice(from);
                self.write_extent(worker, extent, bytes)
            })
        };
        worker.data = data;
        result
    }

    /// Makes the bytes read as zeros.
    ///
    /// # Errors
    /// As [`write`](Array::write).
    pub fn write_zeroes(
        &self,
        worker: &mut RequestScratch,
        at: u64,
        length: u64,
    ) -> Result<(), ArrayError> {
        let zeros = vec![0; length.min(1 << 20) as usize];
        let mut done = 0;
        while done < length {
            // Each step ends at a multiple of 1 MiB, which is a whole number of rows in many
            // arrays.
            let step = ((1 << 20) - (at + done) % (1 << 20)).min(length - done);
            self.write(worker, at + done, &zeros[..step as usize])?;
            done += step;
        }
        Ok(())
    }

    fn write_extent(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        from: &[u8],
    ) -> Result<(), ArrayError> {
        // A single writer does not wait for other parts of a row.
        let writer = self.order.begin_write();
        let result = match self.facts.rows {
            Some(rows) if writer.has_company() => {
                self.write_with_others(worker, extent, from, rows.data.0)
            }
            _ => self.write_parts(worker, extent, from),
        };
        drop(writer);
        // A failure during the write must be on record before the write is answered.
        result.and_then(|()| self.settle())
    }

    fn write_parts(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        from: &[u8],
    ) -> Result<(), ArrayError> {
        for part in self.parts(extent) {
            let bytes = part_of(from, extent, part);
            if !self.write_part(worker, part, bytes)? {
                for row in self.rows_of(part) {
                    self.write_part(worker, row, part_of(from, extent, row))?;
                }
            }
        }
        Ok(())
    }

    /// Writes an extent while others write too. Parts of rows may be joined with the parts of other
    /// writers. Whole rows are written first, to give other writers time to join. The writer's own
    /// gatherings are written before the wait for gatherings of others, so no two writers wait for
    /// each other.
    fn write_with_others(
        &self,
        worker: &mut RequestScratch,
        extent: Extent,
        from: &[u8],
        row: u64,
    ) -> Result<(), ArrayError> {
        let parts: Vec<Extent> = self.parts(extent).collect();
        let (whole, cut): (Vec<Extent>, Vec<Extent>) = parts
            .into_iter()
            .partition(|&part| self.around(part) == part);
        let (mut led, mut joined) = (Vec::new(), Vec::new());
        for part in cut {
            let first = (part.start.0 % row) as usize;
            let bytes = part_of(from, extent, part);
            let gatherings = self.order.gatherings();
            match gatherings.enter(part.start.0 / row, row as usize, first, bytes) {
                WriterRole::First(gathering) => led.push((part, gathering)),
                WriterRole::Joined(gathering) => joined.push((part, gathering)),
            }
        }
        let mut result = Ok(());
        for part in whole {
            result =
                result.and_then(|()| self.write_parts(worker, part, part_of(from, extent, part)));
        }
        for (part, gathering) in led {
            let (number, first) = (part.start.0 / row, (part.start.0 % row) as usize);
            let others = self.order.gatherings().close(number, &gathering);
            let bytes = part_of(from, extent, part);
            let written = if others.is_empty() {
                self.write_parts(worker, part, bytes)
            } else {
                self.write_runs(worker, number * row, gather::runs(first, bytes, &others))
            };
            gathering.end(written.is_ok());
            result = result.and(written);
        }
        for (part, gathering) in joined {
            if self.sabotage != Sabotage::JoinedEarly && !gathering.wait() {
                // The joined write failed. The writer repeats its own part, so it gets the error of
                // its own part.
                result = result.and(self.write_parts(worker, part, part_of(from, extent, part)));
            }
        }
        result
    }

    fn write_runs(
        &self,
        worker: &mut RequestScratch,
        row: u64,
        runs: Vec<(usize, Vec<u8>)>,
    ) -> Result<(), ArrayError> {
        let mut gathered = std::mem::take(&mut worker.gathered);
        let mut result = Ok(());
        for (first, bytes) in runs {
            let aligned = gathered.of(bytes.len());
            aligned.copy_from_slice(&bytes);
            let run = Extent::new(row + first as u64, bytes.len() as u64 / SECTOR_BYTES);
            result = result.and_then(|()| self.write_parts(worker, run, aligned));
        }
        worker.gathered = gathered;
        result
    }

    /// Returns the part of the first row unless the row is whole, the whole rows, and the rest.
    fn parts(&self, extent: Extent) -> impl Iterator<Item = Extent> + use<> {
        let whole = self.facts.rows.map_or(extent, |rows| rows.within(extent));
        let cut = |from: Lbn, to: Lbn| Extent {
            start: from,
            sectors: Sectors(to.0.saturating_sub(from.0)),
        };
        let all = match whole.sectors {
            // No row is whole, but the extent may touch two rows.
            Sectors::ZERO => {
                let row = self.facts.rows.map_or(u64::MAX, |rows| rows.data.0);
                let border = Lbn(extent.start.0.saturating_add(row) / row * row).min(extent.end());
                [
                    cut(extent.start, border),
                    cut(border, extent.end()),
                    Extent::default(),
                ]
            }
            _ => [
                cut(extent.start, whole.start),
                whole,
                cut(whole.end(), extent.end()),
            ],
        };
        all.into_iter().filter(|part| part.sectors > Sectors::ZERO)
    }

    /// Cuts the extent at the borders of rows.
    fn rows_of(&self, extent: Extent) -> impl Iterator<Item = Extent> + use<> {
        let row = self.facts.rows.map_or(u64::MAX, |rows| rows.data.0);
        let end = extent.end().0;
        let mut at = extent.start.0;
        std::iter::from_fn(move || {
            let next = (at / row).saturating_add(1).saturating_mul(row).min(end);
            let part = (at < end).then(|| Extent::new(at, next - at));
            at = next;
            part
        })
    }

    /// Writes a part. Returns false if the part must be written row by row instead.
    fn write_part(
        &self,
        worker: &mut RequestScratch,
        part: Extent,
        from: &[u8],
    ) -> Result<bool, ArrayError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.try_to_write(worker, part, from) {
                Ok(done) => return Ok(done),
                Err(AttemptFailure::Again) => {}
                Err(AttemptFailure::Error(error)) => return Err(error),
                Err(AttemptFailure::Unread(failed)) => self.mend_read(worker, failed, &mut last)?,
            }
        }
        Err(ArrayError::Lost { extent: part })
    }

    fn try_to_write(
        &self,
        worker: &mut RequestScratch,
        part: Extent,
        from: &[u8],
    ) -> Result<bool, AttemptFailure> {
        let _passed = self.order.pass();
        let _held = self.order.hold_rows(
            self.held_with(part),
            self.sabotage != Sabotage::RowsUnlocked,
        );
        self.condition.check_changes()?;
        let (version, missing) = self.plan(Operation::Write, part, &mut worker.plan)?;
        let journalled = self.is_journalled(&worker.plan, part, missing);
        if (journalled || self.goes_row_by_row()) && self.rows_of(part).nth(1).is_some() {
            return Ok(false);
        }
        if !journalled && self.has_journalled_rows(part) {
            // This write makes no record. A record of an earlier change would overwrite it in a
            // replay.
            self.give_up_records()?;
        }
        self.marked(worker, version, part, missing, |worker| {
            self.make(worker, part, from, journalled)
        })?;
        Ok(true)
    }
}

/// Returns the bytes of a part.
fn part_of(bytes: &[u8], extent: Extent, part: Extent) -> &[u8] {
    assert!(
        extent.start <= part.start && part.end() <= extent.end(),
        "{part:?} is no part of {extent:?}"
    );
    let start = part.start.since(extent.start).bytes().0 as usize;
    &bytes[start..][..part.sectors.bytes().0 as usize]
}
