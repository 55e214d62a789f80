//! The pattern in which a layout deals its addresses to its members: chunk size, members in a row,
//! parity.

use fullstroke_contract::Extent;
use fullstroke_units::Sectors;

/// Pattern in which the addresses of a volume change members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// Each member is passed once: the members follow each other, or one member holds the first
    /// copy of all data.
    Contiguous,
    /// Units of equal size.
    Striped(Stripe),
    /// Units whose size depends on the address.
    Varying,
}

/// Units of equal size, from the volume's first address to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// The chunk: consecutive addresses on one member before the next member has its turn.
    pub unit: Sectors,
    /// Data of a row: one unit on each data member. The volume consists of whole rows. `None` if
    /// the number of members is not a multiple of the number of copies.
    pub row: Option<Sectors>,
    /// Number of parity units in each row.
    pub parities: u32,
}

impl Geometry {
    /// Returns the units of equal size, if the layout has such units.
    pub fn stripe(self) -> Option<Stripe> {
        match self {
            Geometry::Striped(stripe) => Some(stripe),
            Geometry::Contiguous | Geometry::Varying => None,
        }
    }

    /// Returns the rows over which parity is computed, if the layout has parity.
    pub fn parity_rows(self) -> Option<ParityRows> {
        let stripe = self.stripe().filter(|stripe| stripe.parities > 0)?;
        stripe.row.map(|data| ParityRows { data })
    }
}

/// The rows of a layout with parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityRows {
    /// Number of data sectors in each row.
    pub data: Sectors,
}

impl ParityRows {
    /// Returns the whole rows within `extent`; may be empty.
    pub fn within(self, extent: Extent) -> Extent {
        let row = self.data.0;
        let first = extent.start.0.div_ceil(row) * row;
        let end = extent.end().0 / row * row;
        // An extent inside one row has no whole row, and its `end` here lies before `first`.
        Extent::new(first, end.saturating_sub(first))
    }

    /// Returns the whole rows around `extent`.
    pub fn around(self, extent: Extent) -> Extent {
        let row = self.data.0;
        let first = extent.start.0 / row * row;
        let end = extent.end().0.div_ceil(row) * row;
        Extent::new(first, end - first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::build;
    use crate::proofs::cases;
    use crate::{Layout, Role};
    use fullstroke_units::Lbn;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    /// Returns the lengths of the runs on one member, in the order of the volume's addresses.
    fn runs(layout: &dyn Layout) -> Vec<u64> {
        let mut runs = vec![1];
        for lbn in 1..layout.capacity().0 {
            let (before, here) = (layout.locate(Lbn(lbn - 1)), layout.locate(Lbn(lbn)));
            if here.member == before.member && here.lbn.0 == before.lbn.0 + 1 {
                *runs.last_mut().unwrap() += 1;
            } else {
                runs.push(1);
            }
        }
        runs
    }

    /// Returns the number of parity units in the row of the sector `lbn` of a member.
    fn parities_beside(layout: &dyn Layout, lbn: Lbn) -> u32 {
        let is_parity = |role| matches!(role, Role::Parity { .. } | Role::SecondParity { .. });
        (0..layout.members())
            .filter(|&member| is_parity(layout.role_of(member, lbn)))
            .count() as u32
    }

    fn check_stripe(layout: &dyn Layout, stripe: Stripe) {
        let unit = stripe.unit.0;
        let capacity = layout.capacity().0;
        assert_eq!(capacity % unit, 0);
        for lbn in 0..capacity {
            let (first, here) = (
                layout.locate(Lbn(lbn / unit * unit)),
                layout.locate(Lbn(lbn)),
            );
            assert_eq!(
                (here.member, here.lbn.0),
                (first.member, first.lbn.0 + lbn % unit),
                "{lbn}"
            );
            assert_eq!(
                first.lbn.0 % unit,
                0,
                "units lie beside one another on members too"
            );
            assert_eq!(parities_beside(layout, here.lbn), stripe.parities);
        }
        let longest = runs(layout).into_iter().max().unwrap();
        assert!(
            longest <= 2 * unit,
            "only the last unit of a row may go on in the next"
        );
        if let Some(row) = stripe.row {
            assert_eq!(capacity % row.0, 0);
            for first in (0..capacity).step_by(row.0 as usize) {
                let units = (first..first + row.0).step_by(unit as usize);
                let members: BTreeSet<usize> =
                    units.map(|lbn| layout.locate(Lbn(lbn)).member).collect();
                assert_eq!(members.len() as u64, row.0 / unit, "a unit on each");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn the_geometry_is_that_of_the_map(case in cases()) {
            let layout = case.layout(&[]).unwrap();
            let runs = runs(&*layout);
            match layout.geometry() {
                Geometry::Contiguous => prop_assert!(runs.len() <= layout.members()),
                Geometry::Striped(stripe) => check_stripe(&*layout, stripe),
                Geometry::Varying => prop_assert!(runs.iter().any(|&run| run != runs[0])),
            }
        }
    }

    #[test]
    fn only_units_of_one_size_are_stripes() {
        let geometry = |name, keys, members: usize| {
            build(name, &keys, &vec![6000; members]).unwrap().geometry()
        };
        let stripe = |unit, row, parities| {
            Geometry::Striped(Stripe {
                unit: Sectors(unit),
                row: Some(Sectors(row)),
                parities,
            })
        };
        let chunk = json!({ "chunk": 4096 });
        for (name, members, expected) in [
            ("raid0", 4, stripe(8, 32, 0)),
            ("raid10", 4, stripe(8, 16, 0)),
            ("raid5", 5, stripe(8, 32, 1)),
            ("raid6", 6, stripe(8, 32, 2)),
            ("raid0", 1, Geometry::Contiguous),
            ("raid10", 2, Geometry::Contiguous),
        ] {
            assert_eq!(
                geometry(name, chunk.clone(), members),
                expected,
                "{name} of {members}"
            );
        }
        let odd = Geometry::Striped(Stripe {
            unit: Sectors(8),
            row: None,
            parities: 0,
        });
        assert_eq!(geometry("raid10", chunk, 5), odd);
        assert_eq!(geometry("raid1", json!({}), 2), Geometry::Contiguous);
        assert_eq!(geometry("jbod", json!({}), 3), Geometry::Contiguous);
        assert_eq!(
            geometry("lzvs", json!({ "blocking": 4096 }), 2),
            Geometry::Varying
        );
        assert_eq!(
            geometry("lzvs-naive", json!({ "blocking": 4096 }), 4),
            stripe(8, 32, 0)
        );
    }

    #[test]
    fn rows_within_and_around_an_extent_are_whole() {
        let rows = ParityRows { data: Sectors(10) };
        assert_eq!(rows.within(Extent::new(5, 30)), Extent::new(10, 20));
        assert_eq!(rows.around(Extent::new(5, 30)), Extent::new(0, 40));
        assert_eq!(rows.within(Extent::new(11, 8)).sectors, Sectors::ZERO);
    }
}
