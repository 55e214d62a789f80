//! Which regions of the volume may have redundancy that does not follow from
//! the data, were the process to be killed now.
//!
//! One bit a region, in a file. It is set before the first change of a region
//! is made, and cleared some time after the last, when all changes are durable.

use crate::bytes::StoreError;
use crate::bytes::lock::OWNER;
use crate::bytes::sealed::{BITS_BYTES, BLOCK_BYTES, StoreId, seal, unseal};
use crate::bytes::sync::ToSync;
use fullstroke_contract::Extent;
use fullstroke_units::Sectors;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file's name in a store's folder.
pub(crate) const NAME: &str = "regions";

/// The least size of a region: 16 MiB.
const LEAST_SECTORS: u64 = (16 << 20) / fullstroke_units::SECTOR_BYTES;
/// The largest number of regions, which bounds file and memory.
const MOST: u64 = 1 << 19;

/// The regions of a volume.
#[derive(Debug)]
pub(crate) struct Regions {
    path: PathBuf,
    file: Arc<File>,
    size: Sectors,
    /// Whether a set bit is made durable before it is relied upon.
    durable: bool,
    /// The store that the file is of.
    id: StoreId,
    /// Whether the file was not whole, so that all regions count as dirty.
    pub(crate) lost: bool,
    /// As in the file.
    bits: Vec<u8>,
    /// For each region, the epoch of its last change; 0 while its bit is clear.
    changed: Vec<u64>,
    /// The regions whose bits are set.
    dirty: Vec<u32>,
    /// Set bits that are not known to be durable, and which setting set each.
    undurable: Vec<(u32, u64)>,
    /// Counts settings of bits.
    settings: u64,
}

impl Regions {
    /// How large the regions of a new store are: as small as their number
    /// allows, and a power of two.
    pub(crate) fn size_for(capacity: Sectors) -> Sectors {
        Sectors(
            capacity
                .0
                .div_ceil(MOST)
                .next_power_of_two()
                .max(LEAST_SECTORS),
        )
    }

    /// Opens or makes the file. Regions that it says are dirty have been so
    /// since epoch 1. Where it is not whole, all are, unless none can be by what
    /// else is known.
    pub(crate) fn open(
        folder: &Path,
        capacity: Sectors,
        size: Sectors,
        durable: bool,
        id: StoreId,
        none_is_dirty: bool,
    ) -> Result<Regions, StoreError> {
        let path = folder.join(NAME);
        let count = capacity.0.div_ceil(size.0) as usize;
        let open = || {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(OWNER)
                .open(&path)?;
            let bits = decode(&std::fs::read(&path)?, count.div_ceil(8), &id);
            Ok((file, bits))
        };
        let (file, found) = open().map_err(|error| StoreError::host("open", &path, error))?;
        let lost = found.is_none() && !none_is_dirty;
        let whole = found.is_some();
        let bits = found.unwrap_or_else(|| vec![if lost { 0xFF } else { 0 }; count.div_ceil(8)]);
        let dirty: Vec<u32> = (0..count as u32)
            .filter(|&region| bits[region as usize / 8] >> (region % 8) & 1 == 1)
            .collect();
        let mut changed = vec![0; count];
        for &region in &dirty {
            changed[region as usize] = 1;
        }
        let (file, undurable) = (Arc::new(file), Vec::new());
        let regions = Regions {
            path,
            file,
            size,
            durable,
            id,
            lost,
            bits,
            changed,
            dirty,
            undurable,
            settings: 0,
        };
        if !whole {
            regions.write(0..regions.bits.len())?;
        }
        // A process that was killed may have left marks that are not durable yet.
        if !whole || durable && !regions.dirty.is_empty() {
            regions.sync()?;
        }
        Ok(regions)
    }

    /// The dirty regions of a store that was killed, by the file as it is, and
    /// whether that was not whole, so that all are.
    pub(crate) fn look(
        folder: &Path,
        capacity: Sectors,
        size: Sectors,
        id: &StoreId,
    ) -> (Vec<Extent>, bool) {
        let count = capacity.0.div_ceil(size.0) as usize;
        let file = std::fs::read(folder.join(NAME)).unwrap_or_default();
        let found = decode(&file, count.div_ceil(8), id);
        let is_dirty = |&region: &usize| match &found {
            Some(bits) => bits[region / 8] >> (region % 8) & 1 == 1,
            None => true,
        };
        let extent = |region: usize| {
            let start = region as u64 * size.0;
            Extent::new(start, size.0.min(capacity.0 - start))
        };
        (
            (0..count).filter(is_dirty).map(extent).collect(),
            found.is_none(),
        )
    }

    /// The dirty regions, the latest to become so last.
    pub(crate) fn dirty(&self) -> &[u32] {
        &self.dirty
    }

    /// The addresses of a region; the last may reach behind the volume's end.
    pub(crate) fn extent(&self, region: u32) -> Extent {
        Extent::new(u64::from(region) * self.size.0, self.size.0)
    }

    /// `extent` is about to change, in `epoch`. When this returns well, the
    /// file says so.
    #[inline]
    pub(crate) fn mark(&mut self, extent: Extent, epoch: u64) -> Result<(), StoreError> {
        let first = extent.start.0 / self.size.0;
        let last = (extent.end().0 - 1) / self.size.0;
        let mut newly = false;
        for region in first as usize..=last as usize {
            newly |= self.changed[region] == 0;
        }
        if newly {
            self.set(first as u32, last as u32)?;
        }
        self.changed[first as usize..=last as usize].fill(epoch);
        if !self.undurable.is_empty() && !self.is_durable(first, last) {
            self.sync()?;
            self.undurable.clear();
        }
        Ok(())
    }

    /// The same, but the file may say so only in the host's memory. Answers
    /// whether that is durable, as far as it must be: [`to_sync`](Regions::to_sync)
    /// makes it so.
    pub(crate) fn mark_ahead(&mut self, extent: Extent, epoch: u64) -> Result<bool, StoreError> {
        let first = extent.start.0 / self.size.0;
        let last = (extent.end().0 - 1) / self.size.0;
        let all = first as usize..=last as usize;
        if self.changed[all.clone()].contains(&0) {
            self.set(first as u32, last as u32)?;
            // It must not be forgotten before the change comes.
            self.changed[all]
                .iter_mut()
                .filter(|changed| **changed == 0)
                .for_each(|changed| *changed = epoch);
        }
        Ok(self.is_durable(first, last))
    }

    /// What makes the marks durable that were set up to now, and their number for
    /// [`note_durable`](Regions::note_durable); `None` if they are.
    pub(crate) fn to_sync(&self) -> Option<(ToSync, u64)> {
        if self.undurable.is_empty() {
            return None;
        }
        let name = self.path.display().to_string();
        Some((
            ToSync {
                medium: None,
                name,
                file: self.file.clone(),
            },
            self.settings,
        ))
    }

    /// Marks up to this setting are durable.
    pub(crate) fn note_durable(&mut self, setting: u64) {
        self.undurable.retain(|&(_, set)| set > setting);
    }

    fn is_durable(&self, first: u64, last: u64) -> bool {
        !self
            .undurable
            .iter()
            .any(|&(region, _)| (first..=last).contains(&u64::from(region)))
    }

    #[cold]
    fn set(&mut self, first: u32, last: u32) -> Result<(), StoreError> {
        let clear: Vec<u32> = (first..=last)
            .filter(|&region| self.changed[region as usize] == 0)
            .collect();
        for &region in &clear {
            self.bits[region as usize / 8] |= 1 << (region % 8);
        }
        let (from, to) = (first as usize / 8, last as usize / 8 + 1);
        self.write(from..to)?;
        self.settings += 1;
        if self.durable {
            self.undurable
                .extend(clear.iter().map(|&region| (region, self.settings)));
        }
        self.dirty.extend(clear);
        Ok(())
    }

    /// Clears the bits of regions that were last changed before `epoch`. What
    /// changed in them must be durable.
    pub(crate) fn clear_before(&mut self, epoch: u64) -> Result<(), StoreError> {
        let (mut first, mut behind) = (usize::MAX, 0);
        for &region in &self.dirty {
            let region = region as usize;
            if self.changed[region] < epoch {
                self.changed[region] = 0;
                self.bits[region / 8] &= !(1 << (region % 8));
                (first, behind) = (first.min(region / 8), behind.max(region / 8 + 1));
            }
        }
        let changed = &self.changed;
        self.undurable
            .retain(|&(region, _)| changed[region as usize] > 0);
        self.dirty.retain(|&region| changed[region as usize] > 0);
        if first < behind {
            self.write(first..behind)
        } else {
            Ok(())
        }
    }

    fn write(&self, bytes: std::ops::Range<usize>) -> Result<(), StoreError> {
        let blocks = bytes.start / BITS_BYTES..bytes.end.div_ceil(BITS_BYTES);
        let sealed: Vec<u8> = blocks
            .clone()
            .flat_map(|index| {
                let bits =
                    &self.bits[index * BITS_BYTES..self.bits.len().min((index + 1) * BITS_BYTES)];
                seal(bits, index as u64, &self.id)
            })
            .collect();
        let written = self
            .file
            .write_all_at(&sealed, (blocks.start * BLOCK_BYTES) as u64);
        written.map_err(|error| StoreError::host("write to", &self.path, error))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.file
            .sync_data()
            .map_err(|error| StoreError::host("make durable", &self.path, error))
    }
}

/// The bits of a file; `None` if one of its blocks is not whole.
fn decode(file: &[u8], bytes: usize, id: &StoreId) -> Option<Vec<u8>> {
    let mut bits = Vec::with_capacity(bytes + BITS_BYTES);
    for index in 0..bytes.div_ceil(BITS_BYTES) {
        let block = file.get(index * BLOCK_BYTES..)?.get(..BLOCK_BYTES)?;
        bits.extend(unseal(block, index as u64, id)?);
    }
    bits.truncate(bytes);
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Sectors = Sectors(LEAST_SECTORS);

    fn opened(folder: &Path) -> Regions {
        let id = "0123456789abcdef0123456789abcdef".parse().unwrap();
        Regions::open(
            folder,
            Sectors(LEAST_SECTORS * 21 - 5),
            SIZE,
            false,
            id,
            true,
        )
        .unwrap()
    }

    #[test]
    fn a_change_marks_every_region_that_it_touches_before_it_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let mut regions = opened(folder.path());
        regions
            .mark(Extent::new(LEAST_SECTORS * 2 - 1, LEAST_SECTORS + 2), 1)
            .unwrap();
        regions.mark(Extent::new(LEAST_SECTORS * 20, 8), 1).unwrap();
        assert_eq!(opened(folder.path()).dirty(), [1, 2, 3, 20]);
    }

    #[test]
    fn what_is_marked_ahead_is_durable_once_a_sync_has_passed_that_began_later() {
        let folder = tempfile::tempdir().unwrap();
        let id = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let mut regions = Regions::open(
            folder.path(),
            Sectors(LEAST_SECTORS * 21 - 5),
            SIZE,
            true,
            id,
            true,
        )
        .unwrap();
        assert!(!regions.mark_ahead(Extent::new(0, 8), 1).unwrap());
        assert_eq!(
            opened(folder.path()).dirty(),
            [0],
            "the death of the process is survived already"
        );
        let (_, first) = regions.to_sync().unwrap();
        assert!(
            !regions
                .mark_ahead(Extent::new(LEAST_SECTORS, 8), 1)
                .unwrap()
        );
        regions.note_durable(first);
        assert!(regions.mark_ahead(Extent::new(0, 8), 1).unwrap());
        assert!(
            !regions
                .mark_ahead(Extent::new(LEAST_SECTORS, 8), 1)
                .unwrap(),
            "it came after the sync"
        );
        regions.mark(Extent::new(LEAST_SECTORS, 8), 1).unwrap();
        assert!(
            regions.to_sync().is_none(),
            "a change waits for it by itself"
        );
        regions.clear_before(2).unwrap();
        assert!(
            !regions.mark_ahead(Extent::new(0, 8), 2).unwrap(),
            "forgotten, and marked anew"
        );
    }

    #[test]
    fn only_regions_that_were_not_changed_since_are_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let mut regions = opened(folder.path());
        regions.mark(Extent::new(0, LEAST_SECTORS * 10), 1).unwrap();
        regions.mark(Extent::new(LEAST_SECTORS * 4, 1), 2).unwrap();
        regions.clear_before(2).unwrap();
        assert_eq!(regions.dirty(), [4]);
        assert_eq!(opened(folder.path()).dirty(), [4]);
        regions.mark(Extent::new(0, 1), 3).unwrap();
        assert_eq!(opened(folder.path()).dirty(), [0, 4]);
    }

    #[test]
    fn large_volumes_have_larger_regions_rather_than_more() {
        assert_eq!(Regions::size_for(Sectors(1)), SIZE);
        let large = Sectors(1 << 40);
        assert_eq!(large.0 / Regions::size_for(large).0, MOST);
    }
}
