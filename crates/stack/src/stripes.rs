//! What a host may know of a striped volume: found by asking its layout where
//! addresses lie.

use fullstroke_contract::Stripes;
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::{Layout, Location, run_length};

/// A layout whose addresses change the member every `unit` sectors.
pub(crate) struct Striped {
    layout: Box<dyn Layout>,
    unit: Sectors,
}

impl Striped {
    /// The stripes of a layout, if it has any: runs of equal length, each on
    /// another member than the one before.
    pub(crate) fn of(layout: Box<dyn Layout>) -> Option<Striped> {
        let unit = run_from(&*layout, 0)?;
        (run_from(&*layout, unit)? == unit).then_some(Striped { layout, unit: Sectors(unit) })
    }
}

impl Stripes for Striped {
    fn unit(&self) -> Sectors {
        self.unit
    }

    fn member_of(&self, lbn: Lbn) -> u32 {
        let last = self.layout.capacity().0 - 1;
        self.layout.locate(Lbn(lbn.0.min(last))).member as u32
    }
}

/// How many sectors from `first` on lie together, if another member follows
/// them.
fn run_from(layout: &dyn Layout, first: u64) -> Option<u64> {
    let capacity = layout.capacity().0;
    if first >= capacity {
        return None;
    }
    let Location { member, lbn } = layout.locate(Lbn(first));
    let together =
        |offset: u64| layout.locate(Lbn(first + offset)) == Location { member, lbn: lbn + Sectors(offset) };
    // Behind the end of a run its member is met again only after others have
    // had their turn, and so further on than if it had gone on alone.
    let length = run_length(0, capacity - first, together);
    let next = first + length;
    (next < capacity && layout.locate(Lbn(next)).member != member).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::registry::{Keys, find};
    use serde_json::{Value, json};

    fn striped(layout: &str, keys: Value, members: usize) -> Option<Striped> {
        let entry = find("layout", fullstroke_volume::REGISTRY, "", layout).unwrap();
        let keys: Keys = serde_json::from_value(keys).unwrap();
        let layout = (entry.build)(&keys, &vec![Sectors(100_000); members]).unwrap();
        Striped::of(layout)
    }

    #[test]
    fn stripe_units_are_found_where_there_are_any() {
        for (layout, members) in [("raid0", 4), ("raid5", 5), ("raid6", 6), ("raid10", 4)] {
            let striped = striped(layout, json!({ "chunk": "32KiB" }), members).unwrap();
            assert_eq!(striped.unit(), Sectors(64), "{layout}");
        }
        assert!(striped("raid1", json!({}), 2).is_none());
        assert!(striped("jbod", json!({}), 1).is_none());
    }

    #[test]
    fn the_member_of_an_address_is_the_layouts() {
        let striped = striped("raid5", json!({ "chunk": "32KiB" }), 5).unwrap();
        let entry = find("layout", fullstroke_volume::REGISTRY, "", "raid5").unwrap();
        let keys: Keys = serde_json::from_value(json!({ "chunk": "32KiB" })).unwrap();
        let layout = (entry.build)(&keys, &[Sectors(100_000); 5]).unwrap();
        for lbn in (0..5000).step_by(32) {
            assert_eq!(striped.member_of(Lbn(lbn)), layout.locate(Lbn(lbn)).member as u32);
        }
        assert!(striped.member_of(Lbn(u64::MAX)) < 5);
    }
}
