//! RAIDZ's map against a reference that is written from the definition, sector by sector.

use super::*;
use fullstroke_units::Seed;
use std::collections::BTreeSet;

/// The places of a block, sector by sector.
#[derive(Default, PartialEq, Eq, Debug)]
struct Places {
    /// Child and sector of each parity sector, row by row.
    parity: Vec<(u64, u64)>,
    /// Child and sector of each data sector, in the order of the block's bytes.
    data: Vec<(u64, u64)>,
    skips: BTreeSet<(u64, u64)>,
}

/// The definition: the block's sectors lie on the vdev one after the other. They form rows of
/// `width`; the first `p` of a row are parity. The block's bytes run down the columns. With one
/// parity and an odd MiB, the first two columns change places.
fn reference(vdev: &Raidz, offset: u64, psize: u64) -> Places {
    let (n, width, p) = (vdev.children, vdev.width, vdev.parities);
    let first = offset >> vdev.ashift;
    let data = psize.div_ceil(1 << vdev.ashift);
    let rows = data.div_ceil(width - p);
    let total = data + p * rows;
    let swaps = p == 1 && (offset >> 20) % 2 == 1;
    let place = |index: u64| {
        let (row, column) = (index / width, index % width);
        let column = match column {
            0 if swaps => 1,
            1 if swaps => 0,
            other => other,
        };
        let sector = first + row * width + column;
        (sector % n, sector / n)
    };
    let mut places = Places::default();
    for column in 0..width.min(total) {
        for row in 0..rows {
            let index = row * width + column;
            if index < total && column < p {
                places.parity.push(place(index));
            } else if index < total {
                places.data.push(place(index));
            }
        }
    }
    let end = total.next_multiple_of(p + 1);
    // Padding is the rest of the block's sectors, wherever the swap has put them.
    let all = (first..first + end).map(|sector| (sector % n, sector / n));
    let used: BTreeSet<_> = places.parity.iter().chain(&places.data).copied().collect();
    places.skips = all.filter(|place| !used.contains(place)).collect();
    places
}

fn sectors(column: &Column, ashift: u32) -> impl Iterator<Item = (u64, u64)> {
    let first = column.offset >> ashift;
    let child = u64::from(column.child);
    (first..first + (column.size >> ashift)).map(move |sector| (child, sector))
}

fn mapped(vdev: &Raidz, offset: u64, psize: u64, map: &mut BlockMap) -> Places {
    vdev.map(offset, psize, map);
    let mut places = Places::default();
    let of = |columns: &[Column]| -> Vec<(u64, u64)> {
        let all = columns.iter();
        all.flat_map(|column| sectors(column, vdev.ashift))
            .collect()
    };
    let width = map.rows().iter().map(|row| row.all().len()).max().unwrap();
    // Rows of an expanded block have a sector a column; the order of the bytes is down the columns.
    for column in 0..width {
        for row in map.rows() {
            let Some(index) = row.all().nth(column) else {
                continue;
            };
            let sectors = of(&map.columns()[index..=index]);
            if column < row.parities as usize {
                places.parity.extend(sectors);
            } else {
                places.data.extend(sectors);
            }
        }
    }
    places.skips = of(map.skips()).into_iter().collect();
    places
}

#[test]
fn a_million_random_blocks_lie_where_the_definition_puts_them() {
    let mut random = Seed(42).stream("blocks");
    let mut map = BlockMap::default();
    let mut expanded = 0;
    for number in 0..1_000_000u64 {
        let parities = 1 + random.below(3);
        let children = parities + 1 + random.below(24);
        let ashift = [9, 12, 12, 13][random.below(4) as usize];
        let mut vdev = Raidz::new(children, parities, ashift).unwrap();
        if number % 4 == 0 && children > parities + 1 {
            let width = parities + 1 + random.below(children - parities);
            vdev = vdev.before_expansion(width).unwrap();
            expanded += u64::from(width < children);
        }
        let offset = random.below(1 << 28) << ashift;
        let psize = 1 + random.below(24 << ashift);
        let found = mapped(&vdev, offset, psize, &mut map);
        assert_eq!(
            found,
            reference(&vdev, offset, psize),
            "{vdev:?}: {psize} bytes at {offset}"
        );
        let sectors = found.parity.len() + found.data.len() + found.skips.len();
        assert_eq!((sectors as u64) << ashift, vdev.asize(psize), "{vdev:?}");
    }
    assert!(expanded > 100_000, "{expanded} blocks of an older width");
}

#[test]
fn padding_is_the_table_of_the_makers() {
    // 8 KiB on RAIDZ1 of 4 with sectors of 4 KiB: two data, one parity, one of padding.
    let vdev = Raidz::new(4, 1, 12).unwrap();
    assert_eq!(vdev.asize(8 << 10), 16 << 10);
    // 128 KiB on RAIDZ2 of 11: 32 data, 8 parity, 2 of padding.
    let vdev = Raidz::new(11, 2, 12).unwrap();
    assert_eq!(vdev.asize(128 << 10), 42 << 12);
    // One sector on RAIDZ3 is a copy on four children, without padding.
    let vdev = Raidz::new(11, 3, 12).unwrap();
    assert_eq!(vdev.asize(512), 4 << 12);
}

#[test]
fn too_few_devices_are_refused_with_the_rule_of_zpool() {
    let error = Raidz::new(3, 3, 12).unwrap_err();
    assert_eq!(error.key, "members");
    assert!(
        error.message.contains("raidz3 requires at least 4"),
        "{error}"
    );
    assert!(Raidz::new(4, 3, 12).is_ok());
    assert!(Raidz::new(256, 1, 12).is_err());
    let vdev = Raidz::new(6, 2, 12).unwrap();
    for width in [2, 7] {
        let error = vdev.before_expansion(width).unwrap_err();
        assert_eq!(error.key, "expanded_from");
    }
}
