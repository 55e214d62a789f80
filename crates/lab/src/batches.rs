//! A workload in parts that all candidates see.

use crate::{LabError, Recipe};
use fullstroke_stack::Stack;
use fullstroke_units::Duration;
use serde_json::json;

/// The parts of a workload. A trace is cut where as many requests each have arrived, and the parts stand in an
/// order by chance, so that a few of them are a sample of the whole; anything else is run with
/// one seed after the other. Each part begins with drives at rest and caches empty.
#[derive(Clone, Debug)]
pub struct Batches {
    windows: Vec<[Duration; 2]>,
    first_seed: u64,
    count: usize,
}

impl Batches {
    /// Of the workload of `recipe`, about so many.
    ///
    /// # Errors
    /// The stack's, or the trace's.
    pub fn new(recipe: &Recipe, count: usize) -> Result<Batches, LabError> {
        let stack = Stack::load(&recipe.file, &recipe.overrides)?;
        let mut random = stack.seed().stream("batches");
        let mut windows = stack.trace_parts(count)?.unwrap_or_default();
        for place in (1..windows.len()).rev() {
            windows.swap(place, random.below(place as u64 + 1) as usize);
        }
        let count = if windows.is_empty() { count } else { windows.len() };
        Ok(Batches { windows, first_seed: stack.seed().0, count })
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether they are parts of a trace, and not runs with seeds.
    pub fn are_windows(&self) -> bool {
        !self.windows.is_empty()
    }

    /// What `recipe` is in one of them.
    pub fn recipe(&self, recipe: &Recipe, batch: usize) -> Recipe {
        let mut recipe = recipe.clone();
        match self.windows.get(batch) {
            Some([from, to]) => {
                let keys = &mut recipe.overrides.trace_keys;
                keys.insert("from".to_owned(), json!(from));
                keys.insert("to".to_owned(), json!(to));
            }
            None => {
                let seed = self.first_seed.wrapping_add(batch as u64);
                recipe.overrides.set.push(format!("seed={seed}"));
            }
        }
        recipe
    }
}
