//! The state behind the commands.

use fullstroke_advise::GradualAdvice;
use fullstroke_stack::{FileSource, MemoryFiles};
use std::path::Path;
use std::sync::Arc;

/// The files of a page, and the question in progress.
pub struct Session {
    memory: Arc<MemoryFiles>,
    files: FileSource,
    /// The question of the last `ask`.
    pub(crate) asked: Option<GradualAdvice>,
}

impl Default for Session {
    fn default() -> Session {
        let memory = Arc::new(MemoryFiles::default());
        Session {
            files: FileSource::new(memory.clone()),
            memory,
            asked: None,
        }
    }
}

impl Session {
    /// Puts a file at `path`, in place of an earlier one.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        self.memory.put(Path::new(path), bytes);
    }

    /// Removes a file, if there is one.
    pub(crate) fn remove(&self, path: &Path) {
        self.memory.remove(path);
    }

    /// Returns the files.
    pub(crate) fn files(&self) -> &FileSource {
        &self.files
    }
}
