//! The sources of the files' text.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Reads files by path, from the file system or from memory.
pub trait ReadFiles {
    /// Returns the contents of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// If the file cannot be read or is longer.
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>>;

    /// Returns a path that is the same for all spellings of one file.
    fn identity(&self, path: &Path) -> PathBuf;
}

/// The files of the file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

impl ReadFiles for FileSystem {
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let file = std::fs::OpenOptions::new().read(true).open(path)?;
        // One byte more than the limit tells a longer file from a file of exactly the limit.
        file.take(limit as u64 + 1).read_to_end(&mut text)?;
        bounded(text, limit)
    }

    fn identity(&self, path: &Path) -> PathBuf {
        // A missing file has no canonical path. The read reports the file with its own error.
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    }
}

/// Files in memory, by path.
impl ReadFiles for BTreeMap<PathBuf, Vec<u8>> {
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let text = self
            .get(path)
            .ok_or_else(|| io::Error::from(ErrorKind::NotFound))?;
        bounded(text.clone(), limit)
    }

    fn identity(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

fn bounded(text: Vec<u8>, limit: usize) -> io::Result<Vec<u8>> {
    if text.len() > limit {
        Err(io::Error::from(ErrorKind::FileTooLarge))
    } else {
        Ok(text)
    }
}
