//! Errors in what users describe.

use std::fmt;

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
