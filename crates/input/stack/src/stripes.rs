//! A host's view of a striped volume.

use fullstroke_contract::Stripes;
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::Layout;

/// A layout whose addresses change the member every `unit` sectors.
pub(crate) struct Striped {
    layout: Box<dyn Layout>,
    unit: Sectors,
}

impl Striped {
    /// Returns the stripes of a layout; `None` for a layout without stripes.
    pub(crate) fn of(layout: Box<dyn Layout>) -> Option<Striped> {
        let unit = layout.geometry().stripe()?.unit;
        assert!(
            unit > Sectors::ZERO && layout.capacity() > Sectors::ZERO,
            "stripes of {unit} on {}",
            layout.capacity()
        );
        Some(Striped { layout, unit })
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
        // Here the last chunk of a row continues in the next row.
        let right = json!({ "chunk": "32KiB", "rotation": "right-symmetric" });
        assert_eq!(striped("raid5", right, 3).unwrap().unit(), Sectors(64));
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
            assert_eq!(
                striped.member_of(Lbn(lbn)),
                layout.locate(Lbn(lbn)).member as u32
            );
        }
        assert!(striped.member_of(Lbn(u64::MAX)) < 5);
    }
}
