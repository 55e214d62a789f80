//! The jobs of one file.

use crate::FioError;
use crate::job::Job;

/// The jobs of one file, checked as far as that goes without a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSet {
    pub(crate) file: String,
    pub(crate) jobs: Vec<Job>,
    /// The settings of all `[global]` sections, for reports.
    pub(crate) global: Vec<(String, String)>,
    pub(crate) ignored: Vec<IgnoredOption>,
    pub(crate) described: String,
    /// What keeps the jobs from a volume, and from files.
    pub(crate) off_volume: Option<FioError>,
    pub(crate) off_files: Option<FioError>,
}

/// An option that was met and does not change the I/O here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredOption {
    /// Its name, as written.
    pub name: &'static str,
    /// Why it changes nothing.
    pub why: &'static str,
}
