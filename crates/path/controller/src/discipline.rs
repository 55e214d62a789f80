//! Disciplines for the choice of the next I/O to the array. A discipline is one file and one line
//! in [`REGISTRY`].

mod clook;
mod fcfs;
mod sorted;
mod sstf;

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};
use fullstroke_units::Lbn;
use schemars::JsonSchema;
use serde::Deserialize;

/// A rule of choice, together with the I/Os waiting under the rule.
///
/// - **In**: [`insert`](ControllerDiscipline::insert).
/// - **Out**: [`take`](ControllerDiscipline::take), exactly once for each inserted I/O.
/// - **Getter**: [`len`](ControllerDiscipline::len).
pub trait ControllerDiscipline: Send {
    /// Adds the I/O in `slot` with the first sector `start`.
    fn insert(&mut self, slot: u32, start: Lbn);
    /// Removes the next I/O and returns the slot. The previous I/O ended at `position`. `None` if
    /// no I/O waits.
    fn take(&mut self, position: Lbn) -> Option<u32>;
    /// Number of waiting I/Os.
    fn len(&self) -> usize;
    /// True if no I/O waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Function to build a discipline from its keys.
pub type BuildControllerDiscipline =
    fn(&Keys) -> Result<Box<dyn ControllerDiscipline>, ConfigError>;

/// Every discipline.
#[rustfmt::skip]
pub const REGISTRY: &[PolicyEntry<BuildControllerDiscipline>] = &[
    PolicyEntry { name: "fcfs", summary: fcfs::SUMMARY, schema: schema_of::<NoDisciplineKeys>, build: fcfs::build },
    PolicyEntry { name: "sstf", summary: sstf::SUMMARY, schema: schema_of::<NoDisciplineKeys>, build: sstf::build },
    PolicyEntry { name: "c-look", summary: clook::SUMMARY, schema: schema_of::<NoDisciplineKeys>, build: clook::build },
];

/// Keys of a discipline without keys.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NoKeys")]
struct NoDisciplineKeys {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(name: &str, starts: &[u64]) -> Vec<u64> {
        let entry = REGISTRY.iter().find(|entry| entry.name == name).unwrap();
        let mut discipline = (entry.build)(&Keys::new()).unwrap();
        for (slot, &start) in starts.iter().enumerate() {
            discipline.insert(slot as u32, Lbn(start));
        }
        let mut position = Lbn(50);
        let mut order = Vec::new();
        while let Some(slot) = discipline.take(position) {
            position = Lbn(starts[slot as usize]);
            order.push(position.0);
        }
        order
    }

    #[test]
    fn each_discipline_has_its_order() {
        let starts = [90, 40, 70, 10, 52];
        assert_eq!(order("fcfs", &starts), starts);
        assert_eq!(order("sstf", &starts), [52, 40, 10, 70, 90]);
        assert_eq!(order("c-look", &starts), [52, 70, 90, 10, 40]);
    }

    proptest! {
        #[test]
        fn every_discipline_gives_each_io_once(
            discipline in 0..REGISTRY.len(), starts in prop::collection::vec(0u64..100, 0..60),
        ) {
            let mut order = order(REGISTRY[discipline].name, &starts);
            let mut expected = starts.clone();
            order.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(order, expected);
        }

        #[test]
        fn ios_to_one_place_keep_their_order(discipline in 0..REGISTRY.len(), count in 1u32..20) {
            let mut discipline = (REGISTRY[discipline].build)(&Keys::new()).unwrap();
            (0..count).for_each(|slot| discipline.insert(slot, Lbn(7)));
            let order: Vec<u32> = std::iter::from_fn(|| discipline.take(Lbn(3))).collect();
            prop_assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
    }
}
