//! The pool's own objects at rest, which a scan reads beside the records (`dsl_scan_visit` begins with
//! them, OpenZFS 2.2).
//!
//! Each copy of a block is read with its parity, or on all drives of a mirror. The copies lie in short
//! runs in the metaslabs for metadata, behind the records, so they go last.

use super::Pool;
use crate::allocate::FOR_METADATA;
use crate::keys::ScanRecords;
use crate::place::Dva;

/// Blocks of the objects: object set, dnodes, directories, space maps. Each has three copies
/// (`dmu_objset_open_impl`). Scrubs of five pools in the kernel laboratory (OpenZFS 2.2.2) read 225 to
/// 274 copies of 4 KiB.
const OBJECTS: u32 = 80;
const COPIES: u32 = 3;

/// Number of transaction groups in which the blocks were written. A scrub in the kernel laboratory read the copies on a
/// drive in 20 to 36 pieces, from six metaslabs for metadata.
const GROUPS: u32 = 2;

/// Bytes on each drive between the blocks of two groups: blocks that a later group wrote anew, so that
/// their places are free. More than the gap over which reads join.
const FREED_BETWEEN: u64 = 64 << 10;

impl Pool {
    /// Returns the places and sizes of the pool's own objects. The groups before the run have written
    /// them.
    pub(crate) fn objects_at_rest(&mut self) -> Vec<(Dva, u64)> {
        if self.settings.scan.scan_records != ScanRecords::All {
            return Vec::new();
        }
        let psize = 1 << self.settings.ashift;
        let freed = FREED_BETWEEN * self.settings.vdevs[0].0.data_drives();
        let mut places = Vec::with_capacity((OBJECTS * COPIES) as usize);
        for _ in 0..GROUPS {
            for copy in (0..OBJECTS / GROUPS).flat_map(|_| 0..COPIES) {
                let place = self.metadata_place(psize, copy);
                places.extend(place.map(|place| (place, psize)));
            }
            // Each metaslab for metadata gets a gap.
            for copy in (0..FOR_METADATA as u32).map(|turn| turn % COPIES) {
                if let Some(place) = self.metadata_place(freed, copy) {
                    self.free_place(place, freed, false);
                }
            }
        }
        places.sort_unstable();
        places
    }
}
