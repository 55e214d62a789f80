//! Addresses in a dataset: a file system above a storage pool, as in ZFS.
//!
//! A pool places records by itself, so a file system above a pool gives no places on a device. The
//! file system names an object and a sector of the object (`dmu_write` and `dmu_read` in
//! `module/zfs/dmu.c`). Both fit into one address of a request:
//!
//! | bits | content |
//! |---|---|
//! | 0 to 34 | sector in the object; an object has at most 16 TiB |
//! | 35 to 58 | number of the object |
//! | 59 | 1 for metadata: directories, and object 0, the table of all objects |

use crate::{Extent, Object};
use fullstroke_units::{Lbn, Sectors};

/// Sectors of an object, as a shift.
const OBJECT_SHIFT: u32 = 35;

/// The bit of metadata.
const METADATA: u64 = 1 << 59;

/// The objects of a dataset at the start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetStart {
    /// Files, each with its bytes.
    pub files: Vec<(Object, u64)>,
    /// Directories, each with its bytes.
    pub directories: Vec<(Object, u64)>,
}

/// An object of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatasetObject {
    /// Number of the object. 0 = the table of all objects.
    pub number: u32,
    /// True for directories, and for the table of all objects.
    pub is_metadata: bool,
}

impl DatasetObject {
    /// Largest number of an object.
    pub const NUMBER_MAX: u32 = (1 << 24) - 1;

    /// Sectors of the address space of an object.
    pub const SECTORS: u64 = 1 << OBJECT_SHIFT;

    /// The table of all objects.
    pub const TABLE: DatasetObject = DatasetObject {
        number: 0,
        is_metadata: true,
    };

    /// Returns the address of the first sector.
    pub fn start(self) -> Lbn {
        let flag = if self.is_metadata { METADATA } else { 0 };
        Lbn(flag | u64::from(self.number) << OBJECT_SHIFT)
    }

    /// Returns the addresses from a sector of the object on.
    pub fn from(self, sector: u64) -> Extent {
        let sector = sector.min(DatasetObject::SECTORS);
        Extent {
            start: Lbn(self.start().0 + sector),
            sectors: Sectors(DatasetObject::SECTORS - sector),
        }
    }

    /// Returns the object of an address, and the sector in the object.
    pub fn at(address: Lbn) -> (DatasetObject, u64) {
        let object = DatasetObject {
            number: ((address.0 & !METADATA) >> OBJECT_SHIFT) as u32,
            is_metadata: address.0 & METADATA != 0,
        };
        (object, address.0 & (DatasetObject::SECTORS - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_object_and_sector() {
        for number in [0, 1, 77, DatasetObject::NUMBER_MAX] {
            for is_metadata in [false, true] {
                let object = DatasetObject {
                    number,
                    is_metadata,
                };
                for sector in [0, 8, DatasetObject::SECTORS - 1] {
                    let extent = object.from(sector);
                    assert_eq!(DatasetObject::at(extent.start), (object, sector));
                    assert_eq!(extent.sectors.0, DatasetObject::SECTORS - sector);
                }
            }
        }
    }
}
