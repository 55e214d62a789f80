//! The store's folder: one process at a time.

use crate::bytes::StoreError;
use fullstroke_device::{Claim, OpenError};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

/// The file's name in a store's folder.
pub(crate) const NAME: &str = "lock";

/// Mode of files: only the owner may read and write, because the files hold the drives' data.
pub(crate) const OWNER: u32 = 0o600;

/// Lock of a folder against other processes. The host releases the lock when the process dies.
///
/// The lock is on the inode of the folder. The inode stays when a file in the folder is deleted or
/// the folder is renamed. Members' files are claimed one by one at their opening, so a second
/// folder with hard links to the files cannot bypass the lock. The file `lock` is for older
/// versions of the program, without knowledge of other locks.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: Option<File>,
    _folder: File,
    _claim: Claim,
}

impl Lock {
    /// Keeps writers out, and allows other readers. A copy of a folder may lack the lock file; the
    /// folder is claimed in any case.
    pub(crate) fn share(folder: &Path) -> Result<Lock, StoreError> {
        let path = folder.join(NAME);
        let (opened, claim) = claimed(folder, Claim::share)?;
        let file = match File::open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(StoreError::host("open", &path, error)),
        };
        if let Some(file) = &file {
            locked(file.try_lock_shared(), folder)?;
        }
        Ok(Lock {
            _file: file,
            _folder: opened,
            _claim: claim,
        })
    }

    /// Takes the folder for writing. A missing folder is made.
    pub(crate) fn take(folder: &Path) -> Result<Lock, StoreError> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
        made.map_err(|error| StoreError::host("make the folder", folder, error))?;
        let (opened, claim) = claimed(folder, Claim::take)?;
        refuse_others(&opened, folder)?;
        let path = folder.join(NAME);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER)
            // Others who could write to the folder may have put a symbolic link here.
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path);
        let file = file.map_err(|error| StoreError::host("open", &path, error))?;
        locked(file.try_lock(), folder)?;
        Ok(Lock {
            _file: Some(file),
            _folder: opened,
            _claim: claim,
        })
    }
}

/// Permissions of group and others to write.
const OTHERS_WRITE: u32 = 0o022;

/// Removes all permissions of group and others from an existing folder that they may write to.
/// Otherwise others could replace members' files with own files, or with links to other places.
fn refuse_others(opened: &File, folder: &Path) -> Result<(), StoreError> {
    let failed =
        |error| StoreError::host("take others' right to write from the folder", folder, error);
    let mode = opened.metadata().map_err(failed)?.mode();
    if mode & OTHERS_WRITE == 0 {
        return Ok(());
    }
    opened
        .set_permissions(Permissions::from_mode(mode & 0o7700))
        .map_err(failed)
}

type HowToClaim = fn(&File, &Path) -> Result<Claim, OpenError>;

/// Claims the folder itself.
fn claimed(folder: &Path, claim: HowToClaim) -> Result<(File, Claim), StoreError> {
    let opened = File::open(folder).map_err(|error| StoreError::host("open", folder, error))?;
    match claim(&opened, folder) {
        Ok(claim) => Ok((opened, claim)),
        Err(OpenError::Host(error)) => Err(StoreError::host("lock", folder, error)),
        Err(_) => Err(StoreError::InUse {
            folder: folder.to_owned(),
        }),
    }
}

fn locked(result: Result<(), TryLockError>, folder: &Path) -> Result<(), StoreError> {
    match result {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse {
            folder: folder.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(StoreError::host("lock", &folder.join(NAME), error)),
    }
}

/// True if `folder` holds the bytes of a volume, or an opening began to make a store.
pub fn is_store(folder: &Path) -> bool {
    folder.join(crate::bytes::error::NAME).exists()
}

/// Returns the name of an entry of the folder, other than the lock and the `known` names; `None` if
/// there is none.
pub(crate) fn found_in(folder: &Path, known: &[&str]) -> Result<Option<String>, StoreError> {
    let failed = |error| StoreError::host("list", folder, error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != NAME && !known.iter().any(|known| name == *known) {
            return Ok(Some(name.display().to_string()));
        }
    }
    Ok(None)
}
