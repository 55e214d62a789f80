//! The layouts of stack files: layouts that plan member I/O, the xor layout with co-operating disks,
//! pools like ZFS, and dm-zoned above a drive with zones.

use fullstroke_contract::registry::PolicyEntry;
use fullstroke_pool::POOLS;
use fullstroke_smart::LAYOUT as XOR;
use fullstroke_volume::{BuildLayout, REGISTRY, ZONED_REGISTRY};

const COUNT: usize = REGISTRY.len() + 1 + POOLS.len() + ZONED_REGISTRY.len();

/// Every layout.
pub(crate) const LAYOUTS: &[PolicyEntry<BuildLayout>] = &{
    // Joined by hand, because a constant cannot join two lists otherwise.
    let mut layouts = [XOR; COUNT];
    let mut index = 0;
    while index < REGISTRY.len() {
        layouts[index] = REGISTRY[index];
        index += 1;
    }
    let mut pool = 0;
    while pool < POOLS.len() {
        layouts[REGISTRY.len() + 1 + pool] = POOLS[pool];
        pool += 1;
    }
    let mut zoned = 0;
    while zoned < ZONED_REGISTRY.len() {
        layouts[REGISTRY.len() + 1 + POOLS.len() + zoned] = ZONED_REGISTRY[zoned];
        zoned += 1;
    }
    layouts
};
