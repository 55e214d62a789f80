//! Arguments from Python: stacks, and whole numbers with their allowed ranges.

use crate::Stack;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Largest number of 512-byte sectors with 64-bit byte addresses.
pub(crate) const SECTORS_MAX: u64 = u64::MAX / 512;
/// Last allowed instant in ns. Later times of the run then still fit the clock.
const LAST_INSTANT: u64 = i64::MAX as u64;

/// A stack argument: a `Stack`, or the path of a file.
pub(crate) enum Given {
    Stack(Stack),
    Path(PathBuf),
}

impl Given {
    pub(crate) fn stack(self) -> PyResult<Stack> {
        match self {
            Given::Stack(stack) => Ok(stack),
            Given::Path(path) => Stack::new(path, Vec::new()),
        }
    }
}

impl FromPyObject<'_, '_> for Given {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Given> {
        if let Ok(stack) = given.extract() {
            return Ok(Given::Stack(stack));
        }
        given.extract().map(Given::Path).map_err(|_| {
            let found = given
                .get_type()
                .name()
                .map_or_else(|_| "something else".into(), |name| name.to_string());
            PyTypeError::new_err(format!("found {found}; expected a Stack or a path"))
        })
    }
}

/// A whole number of any size. The check of its range names the argument.
pub(crate) struct Whole(Result<u64, String>);

impl From<u64> for Whole {
    fn from(number: u64) -> Whole {
        Whole(Ok(number))
    }
}

impl FromPyObject<'_, '_> for Whole {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Whole> {
        match given.extract::<u64>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => {
                Ok(Whole(Err(given.to_string())))
            }
            number => number.map(|number| Whole(Ok(number))),
        }
    }
}

impl Whole {
    pub(crate) fn within(self, key: &str, expected: RangeInclusive<u64>) -> PyResult<u64> {
        let found = match self.0 {
            Ok(number) if expected.contains(&number) => return Ok(number),
            Ok(number) => number.to_string(),
            Err(found) => found,
        };
        let (least, most) = expected.into_inner();
        Err(PyValueError::new_err(format!(
            "{key}: found {found}; expected {least} to {most}"
        )))
    }

    /// Converts the number to a count in the expected range.
    pub(crate) fn count(self, key: &str, expected: RangeInclusive<u64>) -> PyResult<usize> {
        self.within(key, expected).map(|number| number as usize)
    }

    /// Converts the number to an instant in ns, as the result of a policy's method `of`.
    pub(crate) fn instant(self, of: &str) -> PyResult<u64> {
        self.within(of, 0..=LAST_INSTANT)
    }
}
