//! Checks of a job that works on files.

use crate::ini::{JobSection, Setting};
use crate::job::{FioJob, IoDirection};
use crate::option::is_off;
use crate::table::OPTIONS;
use crate::units::Amount;
use crate::{FioError, JobSet};

/// Checks that a job can work on files.
pub(crate) fn check(set: &JobSet, job: &FioJob, section: &JobSection) -> Result<(), FioError> {
    let given = SectionSettings { set, section };
    given.check_options()?;
    given.check_work(job)?;
    given.check_sizes(job)
}

/// Settings of a job's section, with their lines.
#[derive(Clone, Copy)]
struct SectionSettings<'a> {
    set: &'a JobSet,
    section: &'a JobSection,
}

impl SectionSettings<'_> {
    /// Returns the effective setting of these names. The last setting wins, and a job's own
    /// settings win over `[global]`.
    fn find(&self, names: &[&str]) -> Option<&Setting> {
        let own = self.section.own.iter().rev();
        let mut all = own.chain(self.section.inherited.iter().rev());
        all.find(|setting| names.contains(&setting.option.as_str()))
    }

    /// Returns an error at the setting of these names. Without such a setting, the error is at the
    /// section and names the first of `names`.
    fn error(&self, names: &[&str], message: impl Into<String>) -> FioError {
        match self.find(names) {
            Some(setting) => self.set.error_at(setting, message),
            None => self.set.error(Some(self.section.line), names[0], message),
        }
    }

    /// Checks the options that are not simulated on files: only values without effect are accepted.
    fn check_options(&self) -> Result<(), FioError> {
        for entry in OPTIONS {
            let Some(files) = entry.files else { continue };
            for name in entry.names {
                let Some(found) = self.find(&[name]) else {
                    continue;
                };
                let value = found.value.as_deref().unwrap_or("1");
                if !is_off(files.taken, Some(value)) {
                    let expected = files.expected();
                    let message = format!("found `{value}`; in jobs on files {expected}");
                    return Err(self.error(&[name], message));
                }
            }
        }
        Ok(())
    }

    fn check_work(&self, job: &FioJob) -> Result<(), FioError> {
        if job.work.goes(IoDirection::Trim) {
            let message = "files are not trimmed; expected reads and writes";
            return Err(self.error(&["rw", "readwrite"], message));
        }
        if job.files.create_on_open && job.work.goes(IoDirection::Read) {
            let message =
                "the files would have no data to read; expected 0, or a job that only writes";
            return Err(self.error(&["create_on_open"], message));
        }
        let mut names = job.files.names.iter();
        if let Some(device) = names.find(|name| name.starts_with("/dev/")) {
            let message = format!("found `{device}`; expected a file");
            return Err(self.error(&["filename"], message));
        }
        Ok(())
    }

    /// Checks that `size` or `filesize` gives the size of the files, as in fio. A percentage is an
    /// error, because it refers to a device.
    fn check_sizes(&self, job: &FioJob) -> Result<(), FioError> {
        match (job.size, job.file_size) {
            (Some(Amount::Percent(_)), _) => {
                Err(self.error(&["size"], "found a percentage; on files expected bytes"))
            }
            (None, None) => {
                let message = format!(
                    "job [{}] has no file size; set size= or filesize=",
                    job.name
                );
                Err(self.set.error(Some(self.section.line), "size", message))
            }
            _ => Ok(()),
        }
    }
}
