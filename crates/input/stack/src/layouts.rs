//! The layouts of stack files: layouts that plan member I/O, the xor layout with co-operating disks,
//! and pools like ZFS.

use fullstroke_contract::registry::PolicyEntry;
use fullstroke_pool::POOLS;
use fullstroke_smart::LAYOUT as XOR;
use fullstroke_volume::{BuildLayout, REGISTRY};

const COUNT: usize = REGISTRY.len() + 1 + POOLS.len();

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
    layouts
};
