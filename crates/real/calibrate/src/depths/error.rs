//! Errors of a fit to response times by depth.

use fullstroke_contract::ConfigError;
use std::io;

/// Why no drive file can be made of the measurements.
#[derive(Debug, thiserror::Error)]
pub enum DepthsError {
    /// A file cannot be read.
    #[error("`{file}`: {source}")]
    Io {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// A file, or a row of a file, lacks something.
    #[error("`{file}`: {place}: found {found}; expected {expected}")]
    Row {
        /// The file.
        file: String,
        /// Row, job or key.
        place: String,
        /// What the row has.
        found: String,
        /// What the row needs.
        expected: String,
    },
    /// The measurements together do not suffice.
    #[error("{0}")]
    Grid(String),
    /// Two sources contradict each other.
    #[error("{key}: {one}, but {other}; expected figures of the same drive")]
    Contradiction {
        /// The figure.
        key: &'static str,
        /// One source and its figure.
        one: String,
        /// The other source and its figure.
        other: String,
    },
    /// No drive can have these figures.
    #[error("sheet: {0}")]
    Sheet(ConfigError),
    /// The model refuses a fitted drive.
    #[error("the model: {0}")]
    Model(ConfigError),
}

impl DepthsError {
    pub(super) fn row(
        file: &str,
        place: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> DepthsError {
        DepthsError::Row {
            file: file.to_owned(),
            place: place.into(),
            found: found.into(),
            expected: expected.into(),
        }
    }
}
