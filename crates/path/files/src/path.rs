//! Paths: names from the root on, with or without a leading `/`.

use crate::{Caller, FileError, FileSystem, MetaAccesses};
use fullstroke_contract::Object;

/// Returns the object at `path`.
///
/// # Errors
/// Fails if a name does not exist, or if the parent of a name is no directory.
pub fn find(
    system: &mut dyn FileSystem,
    caller: Caller,
    path: &str,
    touches: &mut MetaAccesses,
) -> Result<Object, FileError> {
    let mut at = system.root();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at = system.look_up(caller, at, name, touches)?;
    }
    Ok(at)
}

/// Splits a path into the directory part and the last name.
pub fn split(path: &str) -> (&str, &str) {
    let path = path.trim_matches('/');
    path.rsplit_once('/').unwrap_or(("", path))
}
