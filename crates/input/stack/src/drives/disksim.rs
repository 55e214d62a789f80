//! Drives in the parameter files of DiskSim.

use crate::StackError;
use crate::drive_names::disksim_name;
use crate::folder::Folder;
use fullstroke_disksim::{FileSystem, ImportOptions, ReadFiles, import_from};
use fullstroke_drive::DriveConfig;
use fullstroke_trace::FileSource;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Reads the disk `name` from a parameter file of DiskSim. Returns `None` if the file is not of
/// this kind.
///
/// # Errors
/// As for [`load`](super::load).
pub(super) fn imported(name: &str, folder: &Folder) -> Option<Result<DriveConfig, StackError>> {
    let (file, block) = disksim_name(name)?;
    let options = ImportOptions {
        name: block.map(str::to_owned),
        ..ImportOptions::default()
    };
    let disks = import_from(&DiskSimFiles(folder.files()), &folder.join(file), &options);
    Some(
        disks
            .map_err(|error| StackError::whole("", error.to_string()))
            .and_then(|mut disks| {
                let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
                if disks.len() > 1 {
                    let message = format!(
                        "describes several disks; choose one, as in {file}#{}; found {}",
                        names[0],
                        names.join(", ")
                    );
                    return Err(StackError::whole(file, message));
                }
                let disk = disks.pop().map(|disk| disk.config);
                disk.ok_or_else(|| StackError::whole(file, "describes no disk"))
            }),
    )
}

/// The files of a stack for the reader of DiskSim's files.
struct DiskSimFiles<'a>(&'a FileSource);

impl ReadFiles for DiskSimFiles<'_> {
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let file = self.0.open(path)?;
        // One byte more than the limit tells a file of exactly the limit from a longer one.
        file.take(limit as u64 + 1).read_to_end(&mut text)?;
        match text.len() > limit {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(text),
        }
    }

    fn identity(&self, path: &Path) -> PathBuf {
        match self.0.are_on_disk() {
            true => FileSystem.identity(path),
            false => self.0.absolute(path).unwrap_or_else(|_| path.to_owned()),
        }
    }
}
