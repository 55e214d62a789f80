//! TRIM of the parts of a range that lie on drives which take TRIM (`vdev_xlate`, OpenZFS 2.1).

use super::{Cause, PoolIo, Purpose};
use crate::block::BlockMap;
use crate::capacity::FRONT;
use crate::classes::Class;
use crate::place::Dva;
use crate::queue::LeafIo;
use crate::vdev::Vdev;
use fullstroke_contract::Operation;
use fullstroke_units::Time;

impl PoolIo {
    /// Trims a range of a vdev.
    pub(crate) fn trim(&mut self, now: Time, (dva, size): (Dva, u64), purpose: Purpose) {
        let block = self.keep(purpose, Cause::background());
        let vdev = &self.vdevs[dva.vdev as usize];
        let first = self.first(dva.vdev);
        for (child, offset, size) in parts(vdev, self.ashift, dva.offset, size) {
            let member = first + child;
            if size > 0 && self.trims[member] && !self.failed[member] {
                let io = LeafIo {
                    class: Class::Trim,
                    operation: Operation::Discard,
                    offset: FRONT + offset,
                    size,
                    block: Some(block),
                };
                self.push(now, member, io);
            }
        }
        self.end_if_empty(block);
    }
}

/// Returns the parts of a range: the child, the first byte and the number of bytes of each.
fn parts(vdev: &Vdev, ashift: u32, start: u64, size: u64) -> Vec<(usize, u64, u64)> {
    match vdev {
        Vdev::Mirror { children, .. } => (0..*children as usize)
            .map(|child| (child, start, size))
            .collect(),
        // Sector `b` of the vdev lies on child `b mod n`, at sector `b / n`.
        Vdev::Raidz(raidz) => {
            let n = raidz.children();
            let (from, to) = (start >> ashift, (start + size) >> ashift);
            let row = |sector: u64, child: u64| (sector + n - 1 - child) / n;
            (0..n)
                .map(|child| {
                    let (from, to) = (row(from, child), row(to, child));
                    (child as usize, from << ashift, (to - from) << ashift)
                })
                .collect()
        }
        // Each group of a dRAID has an order of children of its own.
        Vdev::Draid(draid) => {
            let mut all = Vec::new();
            let mut map = BlockMap::default();
            let (mut at, end) = (start, start + size);
            while at < end {
                let group_end = (at / draid.group_size() + 1) * draid.group_size();
                let part = end.min(group_end) - at;
                let rows = part / (draid.width() << ashift);
                if rows > 0 {
                    draid.map(at, (rows * draid.data()) << ashift, &mut map);
                    let columns = map.columns().iter();
                    all.extend(
                        columns.map(|column| (column.child as usize, column.offset, column.size)),
                    );
                }
                at += part;
            }
            all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draid, DraidShape, Raidz};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// The parts of a range are the sectors of the blocks that fill the range.
    #[test]
    fn the_parts_of_a_range_are_those_of_its_blocks() {
        let ashift = 12;
        let shape = DraidShape {
            children: 11,
            data: Some(4),
            parities: 2,
            spares: 1,
        };
        let vdevs = [
            Vdev::Mirror {
                children: 3,
                ashift,
            },
            Vdev::Raidz(Raidz::new(6, 2, ashift).unwrap()),
            Vdev::Raidz(Raidz::new(5, 1, ashift).unwrap()),
            Vdev::Draid(Arc::new(Draid::new(shape, ashift).unwrap())),
        ];
        for vdev in vdevs {
            // Blocks of 120 KiB have neither padding nor an incomplete row in any of these vdevs.
            let (psize, unit) = (480 << 10, vdev.asize(480 << 10));
            let start = vdev.alignment(ashift) * 1024;
            let mut expected = BTreeSet::new();
            let mut map = BlockMap::default();
            for block in 0..500 {
                vdev.map(start + block * unit, psize, &mut map);
                for column in map.columns().iter().chain(map.skips()) {
                    for sector in 0..column.size >> ashift {
                        expected
                            .insert((column.child as usize, (column.offset >> ashift) + sector));
                    }
                }
            }
            let mut found = BTreeSet::new();
            for (child, offset, size) in parts(&vdev, ashift, start, 500 * unit) {
                for sector in 0..size >> ashift {
                    assert!(found.insert((child, (offset >> ashift) + sector)));
                }
            }
            assert_eq!(found, expected, "{vdev:?}");
        }
    }
}
