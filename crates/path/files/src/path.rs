//! Paths: names from the root on, with or without `/` before the first.

use crate::{Caller, FileError, FileSystem, Touches};
use fullstroke_contract::Object;

/// What a path leads to.
///
/// # Errors
/// A name that is not there, or stands in what is no directory.
pub fn find(
    system: &mut dyn FileSystem,
    caller: Caller,
    path: &str,
    touches: &mut Touches,
) -> Result<Object, FileError> {
    let mut at = system.root();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at = system.look_up(caller, at, name, touches)?;
    }
    Ok(at)
}

/// The directories of a path, and its last name.
pub fn split(path: &str) -> (&str, &str) {
    let path = path.trim_matches('/');
    path.rsplit_once('/').unwrap_or(("", path))
}
