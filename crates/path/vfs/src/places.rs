//! Map from device addresses to addresses in files.

use fullstroke_contract::Extent;
use fullstroke_files::{PAGE_SECTORS, PageMapping, PagePlace};

/// Runs of files on the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilePlaces {
    /// Runs by first sector, without overlap.
    runs: Vec<FileRun>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileRun {
    device: u64,
    sectors: u64,
    above: u64,
}

impl FilePlaces {
    /// Removes all runs.
    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Adds the pieces of a file. The first sector of the file has the address `start` above; only
    /// the first `sectors` sectors count. Call [`sort`](FilePlaces::sort) after the last file.
    pub fn add(&mut self, start: u64, sectors: u64, pieces: &[PageMapping]) {
        let runs = pieces.iter().filter_map(|piece| {
            let PagePlace::Device(device) = piece.place else {
                return None;
            };
            let first = piece.page * PAGE_SECTORS;
            // The last page of a file may extend beyond the end of the disk.
            let sectors = (piece.pages * PAGE_SECTORS).min(sectors.saturating_sub(first));
            (sectors > 0).then_some(FileRun {
                device: device.0,
                sectors,
                above: start + first,
            })
        });
        self.runs.extend(runs);
    }

    /// Ends the additions.
    pub fn sort(&mut self) {
        self.runs.sort_unstable_by_key(|run| run.device);
        debug_assert!(
            self.runs
                .windows(2)
                .all(|two| two[0].device + two[0].sectors <= two[1].device),
            "two pieces of files lie on the same sectors"
        );
    }

    /// Calls `each` with the addresses above of all parts of `extent`, in ascending order of device
    /// addresses.
    pub fn above(&self, extent: Extent, mut each: impl FnMut(Extent)) {
        let (start, end) = (extent.start.0, extent.end().0);
        let first = self
            .runs
            .partition_point(|run| run.device + run.sectors <= start);
        for run in self.runs[first..].iter().take_while(|run| run.device < end) {
            let (from, to) = (start.max(run.device), end.min(run.device + run.sectors));
            each(Extent::new(run.above + (from - run.device), to - from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Lbn;
    use proptest::prelude::*;

    proptest! {
        /// Pieces of random lengths lie on the device in another order and with gaps. Each sector
        /// of the device must lead to its own address and to no other.
        #[test]
        fn every_sector_leads_back_to_its_address(
            lengths in prop::collection::vec((1u64..5, 0u64..3, any::<u16>()), 1..12),
            (from, sectors) in (0u64..300, 1u64..120),
            cut in 0u64..PAGE_SECTORS,
        ) {
            let mut page = 0;
            let mut pieces = Vec::new();
            for &(pages, gap, rank) in &lengths {
                pieces.push((rank, gap, PageMapping { page, pages, place: PagePlace::Hole }));
                page += pages;
            }
            let whole = page * PAGE_SECTORS - cut;
            pieces.sort_by_key(|(rank, _, piece)| (*rank, piece.page));
            let mut device = 0;
            for (_, gap, piece) in &mut pieces {
                piece.place = PagePlace::Device(Lbn(device));
                device += (piece.pages + *gap) * PAGE_SECTORS;
            }
            let laid: Vec<PageMapping> = pieces.into_iter().map(|(_, _, piece)| piece).collect();
            let mut places = FilePlaces::default();
            places.add(1000, whole, &laid);
            places.sort();
            let address_at = |sector: u64| {
                let holds = |piece: &&PageMapping| matches!(piece.place, PagePlace::Device(Lbn(start))
                    if (start..start + piece.pages * PAGE_SECTORS).contains(&sector));
                let piece = laid.iter().find(holds)?;
                let PagePlace::Device(Lbn(start)) = piece.place else { return None };
                let address = piece.page * PAGE_SECTORS + (sector - start);
                (address < whole).then_some(1000 + address)
            };
            let expected: Vec<u64> = (from..from + sectors).filter_map(address_at).collect();
            let mut found = Vec::new();
            places.above(Extent::new(from, sectors), |extent| found.extend(extent.start.0..extent.end().0));
            prop_assert_eq!(found, expected);
        }
    }
}
