//! The refusal of DiskSim's parameter files, in a build without the feature `disksim`.

use crate::StackError;
use crate::drive_names::disksim_name;
use crate::folder::Folder;
use fullstroke_drive::DriveConfig;

/// Refuses a parameter file of DiskSim. Returns `None` if the file is not of this kind.
///
/// # Errors
/// Names the command that converts the file.
pub(super) fn imported(name: &str, _: &Folder) -> Option<Result<DriveConfig, StackError>> {
    let (file, _) = disksim_name(name)?;
    let message = format!(
        "found a parameter file of DiskSim, which this build of fullstroke does not read; expected a drive file (.toml). Convert the file on the command line: fullstroke drive import {file}"
    );
    Some(Err(StackError::whole(file, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_disksim_is_refused_with_the_command_that_converts_the_file() {
        let error = imported("disks/old.parv#one", &Folder::default())
            .unwrap()
            .unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("fullstroke drive import disks/old.parv"),
            "{error}"
        );
        assert!(imported("disks/new.toml", &Folder::default()).is_none());
    }
}
