//! Names that live as long as the program.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Returns `name` with static lifetime. Each name is stored once and never freed, because metrics
/// are `Copy` and hold `&'static str`.
pub(crate) fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}
