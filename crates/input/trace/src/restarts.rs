//! A count of restarts: places where the times of a trace begin anew.

use crate::TracePlace;

/// Times above this count from an epoch, and never begin anew: 10 years. No system runs for so long.
pub(crate) const EPOCH_NS: u64 = 10 * 365 * 86_400 * 1_000_000_000;
/// Number of restarts whose places are kept.
const PLACES_MAX: usize = 4;

/// Number of restarts, and the places of the first ones.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    count: u64,
    places: Vec<u64>,
}

impl Restarts {
    /// Counts a restart at `place`; `None` if the place is unknown.
    pub(crate) fn add(&mut self, place: Option<u64>) {
        self.count += 1;
        if self.places.len() < PLACES_MAX {
            self.places.extend(place);
        }
    }

    /// Returns the number of restarts.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns a sentence about the restarts, if there are any. `place` names a place; `items` are
    /// the things that a user can sort by time.
    pub(crate) fn note(&self, place: impl Fn(u64) -> TracePlace, items: &str) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        let places: Vec<String> = self
            .places
            .iter()
            .map(|&at| place(at).to_string())
            .collect();
        let more = if self.count as usize > places.len() {
            ", ..."
        } else {
            ""
        };
        let times = match self.count {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        Some(format!(
            "the times begin anew {times} ({}{more}); each part follows the part before. If the parts ran at the same \
             time, sort the {items} by time",
            places.join(", ")
        ))
    }
}
