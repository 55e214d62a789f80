//! The units of a sequential resilver: runs of used space (`module/zfs/vdev_rebuild.c`,
//! `vdev_draid_rebuild_asize`, `vdev_mirror_rebuild_asize`, OpenZFS 2.2).
//!
//! A unit has 1 MiB of each data drive, and at most 16 MiB of data. A unit of a dRAID ends with its
//! group, so that the last unit of a group may be shorter.

use crate::config::PoolSettings;
use crate::draid::ROW_HEIGHT;
use crate::keys::ResilverKind;
use crate::place::Dva;
use crate::vdev::Vdev;

/// Bytes of a data drive in a unit: `zfs_rebuild_max_segment`.
const SEGMENT: u64 = 1 << 20;

/// Largest unit: `SPA_MAXBLOCKSIZE`.
const UNIT_MAX: u64 = 16 << 20;

/// The units of a sequential resilver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    /// Number of units.
    pub(crate) count: u64,
    /// Bytes of data in a whole unit.
    pub(crate) size: u64,
    /// Bytes of the vdev in a whole unit.
    asize: u64,
    /// Number of units of a group, bytes of a group, and bytes of data in the last unit of a group.
    group: Option<(u64, u64, u64)>,
}

impl Segments {
    /// Returns the units of a vdev; `None` for a healing resilver.
    pub(crate) fn of(settings: &PoolSettings) -> Option<Segments> {
        if settings.resilver == ResilverKind::Healing {
            return None;
        }
        let (vdev, _) = settings.vdevs.first()?;
        let records = (settings.volsize / settings.record).div_ceil(settings.vdevs.len() as u64);
        let used = records * vdev.asize(settings.psize);
        let Vdev::Draid(draid) = vdev else {
            return Some(Segments {
                count: used.div_ceil(SEGMENT),
                size: SEGMENT,
                asize: vdev.asize(SEGMENT),
                group: None,
            });
        };
        let row = draid.data() << settings.ashift;
        let size = (SEGMENT * draid.data()).min(UNIT_MAX) / row * row;
        let in_group = ROW_HEIGHT * draid.data();
        let per_group = in_group.div_ceil(size);
        let last = in_group - (per_group - 1) * size;
        let groups = used / draid.group_size();
        let rest = (used % draid.group_size()).div_ceil(draid.asize(size));
        Some(Segments {
            count: groups * per_group + rest,
            size,
            asize: draid.asize(size),
            group: Some((per_group, draid.group_size(), last)),
        })
    }

    /// Returns the place of a unit on the vdev with number `vdev`, and its bytes of data.
    pub(crate) fn place(&self, vdev: u32, unit: u64) -> (Dva, u64) {
        let (offset, size) = match self.group {
            None => (unit * self.asize, self.size),
            Some((per_group, group_size, last)) => {
                let within = unit % per_group;
                let size = if within + 1 == per_group {
                    last
                } else {
                    self.size
                };
                (unit / per_group * group_size + within * self.asize, size)
            }
        };
        (Dva { vdev, offset }, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Kind;
    use fullstroke_units::Sectors;
    use serde_json::json;

    #[test]
    fn units_follow_each_other_and_end_with_their_group() {
        for data in [1, 3, 8, 17, 20] {
            let drives = vec![Sectors(2_000_000_000); 24];
            let keys = json!({ "data": data, "spares": 1, "resilver": "spare", "volsize": "1TB" });
            let keys = keys.as_object().unwrap();
            let settings = PoolSettings::read(Kind::Draid(2), keys, &drives).unwrap();
            let segments = Segments::of(&settings).unwrap();
            let vdev = &settings.vdevs[0].0;
            let Vdev::Draid(draid) = vdev else { panic!() };
            let mut end = 0;
            for unit in 0..200 {
                let (place, size) = segments.place(0, unit);
                assert_eq!(place.offset, end, "{data}: {unit}");
                assert!(size <= UNIT_MAX && size > 0);
                end += vdev.asize(size);
                let (first, last) = (place.offset, end - 1);
                assert_eq!(first / draid.group_size(), last / draid.group_size());
            }
            let (last, size) = segments.place(0, segments.count - 1);
            let used = settings.volsize / settings.record * vdev.asize(settings.psize);
            assert!(last.offset < used && used <= last.offset + vdev.asize(size));
        }
    }
}
