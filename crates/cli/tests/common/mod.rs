//! Calls of the program for all tests.

#![allow(dead_code)] // Not every test binary uses each.

pub mod browser;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the root of the project.
pub fn project() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

pub fn fullstroke(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fullstroke"))
        .args(arguments)
        // A slow machine would print progress, which tests of messages do not expect.
        .env("FULLSTROKE_PROGRESS", "none")
        .output()
        .unwrap()
}

/// Returns standard output of a call that succeeds and prints nothing on standard error.
pub fn success(arguments: &[&str]) -> String {
    let output = fullstroke(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), error.as_ref()),
        (Some(0), ""),
        "{arguments:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the error message of a call that is refused with status 2.
pub fn refused(arguments: &[&str]) -> String {
    let output = fullstroke(arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(
        output.stdout.is_empty(),
        "{arguments:?} printed something before it failed"
    );
    assert!(!error.contains("panicked"), "{error}");
    error
}

/// Temporary folder of a test.
pub struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    /// Returns the path of a file in the folder as text.
    pub fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
    /// Writes a file and returns its path as text.
    pub fn put(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.name(name)
    }
    pub fn files(&self) -> usize {
        std::fs::read_dir(self.0.path()).unwrap().count()
    }
}
