//! A job file of fio's as a workload.

use crate::StackError;
use fullstroke_fio::{FioError, FioSource, JobSet};
use fullstroke_units::{Sectors, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A job file of fio's as a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FioConfig {
    /// The job file; relative to the stack file.
    pub path: PathBuf,
    /// End after this many requests.
    pub requests: Option<u64>,
}

impl FioConfig {
    /// The jobs of the file. Its `${NAME}` are those of the process's
    /// environment.
    ///
    /// # Errors
    /// The job file's, at its line.
    pub(crate) fn read(&self, folder: &Path) -> Result<JobSet, StackError> {
        let path = folder.join(&self.path);
        let file = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| StackError::whole(&file, format!("cannot be read: {error}")))?;
        let text_only = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment = std::env::vars_os().filter_map(text_only).collect();
        JobSet::parse(&file, &text, &environment).map_err(named)
    }

    /// The source on a volume of `capacity`.
    ///
    /// # Errors
    /// What does not fit the volume, at the job.
    pub(crate) fn source(
        &self,
        jobs: &JobSet,
        capacity: Sectors,
        seed: Seed,
    ) -> Result<FioSource, StackError> {
        FioSource::new(jobs, capacity, seed, self.requests).map_err(named)
    }
}

fn named(error: FioError) -> StackError {
    StackError { file: error.file, line: error.line, key: error.option, message: error.message }
}
