//! Errors in what users describe.

use std::fmt;
use thiserror::Error;

/// A value in a stack or drive description that cannot be used. Whoever knows
/// the file adds its name and the line of `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Dotted path of the key, such as `volume.chunk`; empty for the whole.
    pub key: String,
    /// What was found, what was expected, and how to mend it.
    pub message: String,
}

impl ConfigError {
    /// An error at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError {
            key: key.into(),
            message: message.into(),
        }
    }

    /// The same error seen from one level up: its key lies below `parent`.
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

/// What was found and what was expected, in a part of a text. Whoever reads the whole text adds the
/// file, the line and the key; nobody decides by it. [`reason!`](crate::reason) writes one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Reason(String);

impl Reason {
    /// A reason in words.
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

/// A [`Reason`], formatted like `format!`.
#[macro_export]
macro_rules! reason {
    ($($words:tt)*) => { $crate::Reason::new(format!($($words)*)) };
}
