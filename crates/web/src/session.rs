//! The state behind the commands.

use crate::commands::{self, Command};
use fullstroke_advise::GradualAdvice;
use fullstroke_stack::{FileSource, MemoryFiles};
use serde_json::{Value, json};
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

    /// Carries out a command in JSON. Returns `{"answer": ...}`, or `{"error": "a sentence"}`.
    /// `progress` is called during runs with the number of finished requests and, if known, the
    /// total number.
    pub fn call(&mut self, command: &str, progress: &dyn Fn(u64, Option<u64>)) -> String {
        let answer =
            Command::read(command).and_then(|command| commands::carry_out(self, command, progress));
        let whole: Value = match answer {
            Ok(answer) => json!({ "answer": answer }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        whole.to_string()
    }
}
