//! Freed ranges that wait for TRIM: `ms_trim` of `module/zfs/metaslab.c` (OpenZFS 2.1).

use std::collections::BTreeMap;

/// Smallest range: `zfs_trim_extent_bytes_min`.
pub(crate) const RANGE_MIN: u64 = 32 << 10;

/// Transaction groups in which each metaslab has one turn: `zfs_trim_txg_batch`.
pub(crate) const BATCH: u64 = 32;

/// Adds a range, and joins neighbours in the same metaslab of `2^shift` bytes.
pub(crate) fn add(ranges: &mut BTreeMap<u64, u64>, start: u64, size: u64, shift: u32) {
    let (mut start, mut size) = (start, size);
    let metaslab = |at: u64| at >> shift;
    if let Some((&before, &length)) = ranges.range(..start).next_back()
        && before + length == start
        && metaslab(before) == metaslab(start)
    {
        ranges.remove(&before);
        (start, size) = (before, length + size);
    }
    if metaslab(start + size) == metaslab(start)
        && let Some(length) = ranges.remove(&(start + size))
    {
        size += length;
    }
    ranges.insert(start, size);
}

/// Removes the parts of all ranges that lie in a range.
pub(crate) fn remove(ranges: &mut BTreeMap<u64, u64>, start: u64, size: u64) {
    let end = start + size;
    while let Some((&first, &length)) = ranges.range(..end).next_back()
        && first + length > start
    {
        ranges.remove(&first);
        if first + length > end {
            ranges.insert(end, first + length - end);
        }
        if first < start {
            ranges.insert(first, start - first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_within_a_metaslab_and_give_way_to_new_blocks() {
        let mut ranges = BTreeMap::new();
        for (start, size) in [(0, 4), (8, 4), (4, 4), (12, 4), (16, 4)] {
            add(&mut ranges, start, size, 4);
        }
        assert_eq!(ranges, BTreeMap::from([(0, 16), (16, 4)]));
        remove(&mut ranges, 6, 4);
        assert_eq!(ranges, BTreeMap::from([(0, 6), (10, 6), (16, 4)]));
        remove(&mut ranges, 0, 18);
        assert_eq!(ranges, BTreeMap::from([(18, 2)]));
        remove(&mut ranges, 0, 18);
        assert_eq!(ranges, BTreeMap::from([(18, 2)]));
    }
}
