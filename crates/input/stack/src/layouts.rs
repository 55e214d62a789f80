//! The layouts of stack files: layouts that plan member I/O, and the xor layout with co-operating
//! disks.

use fullstroke_contract::registry::PolicyEntry;
use fullstroke_smart::LAYOUT as XOR;
use fullstroke_volume::{BuildLayout, REGISTRY};

const COUNT: usize = REGISTRY.len() + 1;

/// Every layout.
pub(crate) const LAYOUTS: &[PolicyEntry<BuildLayout>] = &{
    let mut layouts = [XOR; COUNT];
    let mut index = 0;
    while index < REGISTRY.len() {
        layouts[index] = REGISTRY[index];
        index += 1;
    }
    layouts
};
