//! The folder of a stack file.

use fullstroke_trace::FileSource;
use std::path::{Path, PathBuf};

/// The folder of a stack file. Paths in the file are relative to the folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    path: PathBuf,
    files: FileSource,
}

impl Folder {
    /// Returns the folder of `file`.
    pub(crate) fn of(file: &Path, files: &FileSource) -> Folder {
        // Only a root or an empty path has no parent, and neither is a file.
        let path = file.parent().unwrap_or(Path::new(""));
        Folder {
            path: path.to_owned(),
            files: files.clone(),
        }
    }

    /// Returns the path of `name`, seen from the current folder.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the source of the files.
    pub(crate) fn files(&self) -> &FileSource {
        &self.files
    }
}
