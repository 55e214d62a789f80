//! Errors in the user's descriptions.

use std::fmt;
use thiserror::Error;

/// An unusable value in a stack or drive description. The reader of the file adds the file name and
/// the line of `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Dotted path of the key, such as `volume.chunk`; empty for an error of the whole file.
    pub key: String,
    /// Text with the value found, the value expected, and a remedy.
    pub message: String,
}

impl ConfigError {
    /// Creates an error at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError {
            key: key.into(),
            message: message.into(),
        }
    }

    /// Puts `parent` in front of the key, for the same error seen from one level up.
    #[must_use]
    pub fn below(mut self, parent: &str) -> ConfigError {
        self.key = match (parent.is_empty(), self.key.is_empty()) {
            (true, _) => self.key,
            (_, true) => parent.to_owned(),
            (false, false) => format!("{parent}.{}", self.key),
        };
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}`: {}", self.key, self.message)
        }
    }
}

impl std::error::Error for ConfigError {}

/// An error in a part of a text: the value found and the value expected. The reader of the whole
/// text adds the file, the line and the key. A `Reason` is for people only; no code decides by its
/// content. [`reason!`](crate::reason) creates one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Reason(String);

impl Reason {
    /// Creates a reason from text.
    pub fn new(words: impl Into<String>) -> Reason {
        Reason(words.into())
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Reason {
        Reason::new(words)
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> String {
        reason.0
    }
}

/// Creates a [`Reason`] from arguments like those of `format!`.
#[macro_export]
macro_rules! reason {
    ($($words:tt)*) => { $crate::Reason::new(format!($($words)*)) };
}
