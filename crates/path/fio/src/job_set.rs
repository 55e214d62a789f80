//! The jobs of one file.

use crate::FioError;
use crate::job::FioJob;

/// The jobs of one file. All checks that need no volume are done.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSet {
    pub(crate) file: String,
    pub(crate) jobs: Vec<FioJob>,
    /// Settings of all `[global]` sections, for reports.
    pub(crate) global: Vec<(String, String)>,
    pub(crate) ignored: Vec<IgnoredOption>,
    /// Sentences about values that fio reads otherwise than they look.
    pub(crate) notes: Vec<String>,
    pub(crate) described: String,
    /// First error that prevents a run on a volume, and first error that prevents a run on files.
    pub(crate) off_volume: Option<FioError>,
    pub(crate) off_files: Option<FioError>,
}

/// An option of the job file that does not change the I/O here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredOption {
    /// Name of the option, as written.
    pub name: &'static str,
    /// Reason why the option has no effect.
    pub why: &'static str,
}
