//! Stack files of tests, and the counters of their runs.

use fullstroke_contract::Counters;
use fullstroke_stack::{Overrides, Stack};
use std::fs;

/// Loads a stack file with this text and with values in place of the file's own.
pub(crate) fn load(text: &str, set: &[&str]) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    fs::write(&path, text).unwrap();
    let set = set.iter().map(|&set| set.to_owned()).collect();
    let overrides = Overrides {
        set,
        ..Overrides::default()
    };
    Stack::load(&path, &overrides).map_err(|error| error.to_string())
}

/// Returns the sum of a reading over all layers.
pub(crate) fn reading(counters: &Counters, name: &str) -> f64 {
    let layers = counters.layers.iter().flat_map(|layer| &layer.readings);
    layers
        .filter(|reading| reading.name == name)
        .map(|reading| reading.value)
        .sum()
}
