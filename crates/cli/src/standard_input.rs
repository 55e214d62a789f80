//! `-` as a file: standard input.
//!
//! A trace or a job file is copied into a file in memory, because traces are read more than once.
//! The file has no name; the path leads to its descriptor. A stack file or a wish file is read by
//! the loader itself (`fullstroke_stack::read_text`), so that paths inside the file begin at the
//! working directory.

use fullstroke_contract::{Reason, reason};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The copy of standard input. The file stays open until the program ends.
static COPY: OnceLock<Result<File, String>> = OnceLock::new();

/// Reads the argument of an option that takes a file. `-` becomes the path of a copy of standard
/// input.
pub(crate) fn file(text: &str) -> Result<PathBuf, Reason> {
    if !names(Path::new(text)) {
        return Ok(PathBuf::from(text));
    }
    match COPY.get_or_init(|| copy().map_err(|error| error.to_string())) {
        Ok(file) => Ok(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))),
        Err(error) => Err(reason!("standard input cannot be read: {error}")),
    }
}

/// True if a path names standard input.
pub(crate) fn names(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns standard input as a text. Text that is not UTF-8 and errors give an empty text.
pub(crate) fn text() -> String {
    file("-")
        .ok()
        .and_then(|copy| std::fs::read_to_string(copy).ok())
        .unwrap_or_default()
}

fn copy() -> io::Result<File> {
    let mut file = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.rewind()?;
    Ok(file)
}
