//! dRAID's permutations against ZFS's own checksums, and its map against the picture in
//! `vdev_draid.c`.

use super::*;
use fullstroke_units::Seed;
use std::collections::BTreeSet;

/// First word of Fletcher-4 over the bytes, as words of the machine (`fletcher_4_native`). The words
/// of x86 are little-endian, and the table was made there.
fn fletcher4(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(4);
    words.fold(0, |sum: u64, word| {
        sum.wrapping_add(u64::from(u32::from_le_bytes(word.try_into().unwrap())))
    })
}

#[test]
fn all_254_permutation_maps_have_the_checksums_of_zfs() {
    for (index, (_, checksum)) in SEEDS.iter().enumerate() {
        let children = index as u64 + 2;
        let all = permutations(children);
        assert_eq!(fletcher4(&all), *checksum, "{children} children");
        for order in all.chunks_exact(children as usize) {
            let different: BTreeSet<u8> = order.iter().copied().collect();
            assert_eq!(different.len() as u64, children, "each child once");
        }
    }
}

fn shape(children: u64, data: u64, parities: u64, spares: u64) -> DraidShape {
    DraidShape {
        children,
        data: Some(data),
        parities,
        spares,
    }
}

/// The example of `vdev_draid.c`: 14 children, 8 data and 1 parity, 2 spares: 4 groups in 3 rows.
#[test]
fn groups_fill_the_rows_of_a_slice_as_in_the_picture() {
    // 12 disks and groups of 9: groups begin at positions 0, 9, 6 and 3, in rows 0, 0, 1 and 2.
    let vdev = Draid::new(shape(14, 8, 1, 2), 12).unwrap();
    assert_eq!(vdev.groups, 4);
    let group = vdev.group_size();
    for (number, start, row) in [(0, 0, 0), (1, 9, 0), (2, 6, 1), (3, 3, 2), (4, 0, 3)] {
        let (found, permutation, physical) = vdev.place(number * group);
        assert_eq!(
            (found, physical),
            (start, row * ROW_HEIGHT),
            "group {number}"
        );
        assert_eq!(permutation, number / 4);
    }
    // Group 1 has three columns in row 0 and six in row 1.
    let mut map = BlockMap::default();
    vdev.map(group, 8 << 12, &mut map);
    let rows: Vec<u64> = map
        .columns()
        .iter()
        .map(|c| c.offset / ROW_HEIGHT)
        .collect();
    assert_eq!(rows, [0, 0, 0, 1, 1, 1, 1, 1, 1]);
}

/// Every sector of a child belongs to at most one block: the map is one-to-one. In each row as many
/// children as there are spares hold nothing.
#[test]
fn blocks_share_no_sector_and_spares_stay_empty() {
    for (children, data, parities, spares) in
        [(5, 2, 1, 1), (11, 4, 2, 1), (14, 8, 1, 2), (7, 1, 3, 3)]
    {
        let vdev = Draid::new(shape(children, data, parities, spares), 20).unwrap();
        // With sectors of 1 MiB, a row has 16 sectors. Three slices are filled with blocks.
        let rows_of_slice = vdev.width() * vdev.groups / vdev.disks();
        let end = 3 * vdev.groups * vdev.group_size();
        let mut random = Seed(7).stream("sizes");
        let mut map = BlockMap::default();
        let mut used = BTreeSet::new();
        let mut offset = 0;
        loop {
            let psize = (1 + random.below(40)) << 20;
            if offset + vdev.asize(psize) > end {
                break;
            }
            vdev.map(offset, psize, &mut map);
            let size: u64 = map
                .columns()
                .iter()
                .chain(map.skips())
                .map(|c| c.size)
                .sum();
            assert_eq!(size, vdev.asize(psize));
            for column in map.columns().iter().chain(map.skips()) {
                for sector in 0..column.size >> 20 {
                    let place = (column.child, (column.offset >> 20) + sector);
                    assert!(used.insert(place), "{place:?} is used twice");
                    assert!(place.1 < 3 * rows_of_slice * 16);
                }
            }
            offset += vdev.asize(psize);
        }
        for row in 0..2 * rows_of_slice {
            let busy: BTreeSet<u32> = used
                .iter()
                .filter(|(_, sector)| sector / 16 == row)
                .map(|(child, _)| *child)
                .collect();
            assert_eq!(busy.len() as u64, vdev.disks(), "row {row} of {children}");
        }
    }
}

/// The distributed spare lies on the child that holds nothing, in every row, and on every child in
/// turn.
#[test]
fn the_spare_is_the_child_without_data() {
    let vdev = Draid::new(shape(9, 3, 1, 1), 12).unwrap();
    let rows_of_slice = vdev.width() * vdev.groups / vdev.disks();
    let mut map = BlockMap::default();
    let mut spares = BTreeSet::new();
    for slice in 0..40 {
        let mut busy = BTreeSet::new();
        for group in slice * vdev.groups..(slice + 1) * vdev.groups {
            vdev.map(group * vdev.group_size(), 3 << 12, &mut map);
            busy.extend(
                map.columns()
                    .iter()
                    .map(|c| (c.offset / ROW_HEIGHT, u64::from(c.child))),
            );
        }
        for row in slice * rows_of_slice..(slice + 1) * rows_of_slice {
            let spare = vdev.spare_child(row * ROW_HEIGHT + 4096);
            assert!(!busy.contains(&(row, spare)), "row {row}");
            spares.insert(spare);
        }
    }
    assert_eq!(spares.len(), 9);
}

#[test]
fn shapes_that_zfs_refuses_name_their_key() {
    for (shape, key, says) in [
        (shape(8, 8, 1, 0), "data", "8 need 9 devices"),
        (shape(11, 12, 2, 1), "data", "at most 8 data"),
        (shape(10, 8, 1, 2), "data", "at most 7 data"),
        (shape(10, 1, 1, 9), "spares", "at most 8"),
        (shape(200, 8, 1, 101), "spares", "at most 100"),
        (shape(2, 1, 2, 0), "members", "at least 3"),
        (shape(300, 8, 1, 0), "members", "at most 255"),
        (shape(8, 0, 1, 0), "data", "at least 1"),
    ] {
        let error = Draid::new(shape, 12).unwrap_err();
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    let usual = DraidShape {
        data: None,
        ..shape(24, 0, 2, 1)
    };
    assert_eq!(Draid::new(usual, 12).unwrap().data, 8);
    let few = DraidShape {
        data: None,
        ..shape(6, 0, 2, 1)
    };
    assert_eq!(Draid::new(few, 12).unwrap().data, 3);
}
