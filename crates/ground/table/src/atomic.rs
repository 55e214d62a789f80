//! A file that appears whole, or not at all.

use crate::TableError;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
#[cfg(feature = "parquet")]
use std::io::{Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The partial files of this process. A signal ends a process without running
/// any `drop`; whoever catches it calls [`remove_partial_files`].
static PARTIAL_FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes every file of this process that is still under construction, for a
/// process that is about to end at a signal.
pub fn remove_partial_files() {
    for partial in with_partial_files(std::mem::take) {
        // Nobody is left to tell if this fails; the name says that it is partial.
        let _ = fs::remove_file(partial);
    }
}

fn with_partial_files<T>(change: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    // A list of paths is whole whatever a thread that panicked was doing.
    change(
        &mut PARTIAL_FILES
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner),
    )
}

const BUFFER_BYTES: usize = 128 * 1024;

/// A file under construction. It is written as `<name>.partial` beside its
/// place and takes its name with [`commit`](AtomicFile::commit); dropped before
/// that, it is removed, and what stood under the name before stays untouched.
///
/// The partial file is always a new one: a link, or a file of an earlier process, that stands under the
/// partial name is removed and never written through. While the file is under construction it is locked,
/// so that a second process that is to write the same file is refused.
///
/// A name that already belongs to something other than a regular file (a pipe,
/// a terminal, `/dev/null`) is written to directly.
#[derive(Debug)]
pub struct AtomicFile {
    writer: Option<BufWriter<File>>,
    target: PathBuf,
    partial: Option<PathBuf>,
}

impl AtomicFile {
    /// Begins the file that is to stand at `path`.
    ///
    /// # Errors
    /// If the folder is missing or may not be written to.
    pub fn create(path: &Path) -> Result<AtomicFile, TableError> {
        // A link's target is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let failed = |source| TableError::Create {
            path: path.to_owned(),
            source,
        };
        let special = fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file());
        if special {
            let file = OpenOptions::new()
                .write(true)
                .open(&target)
                .map_err(failed)?;
            return Ok(AtomicFile::over(file, target, None));
        }
        let partial = AtomicFile::partial_path(&target);
        // Noted first: between the two, a signal must not leave the file behind.
        with_partial_files(|files| files.push(partial.clone()));
        let file = new_and_locked(&partial)
            .inspect_err(|_| forget(&partial))
            .map_err(failed)?;
        Ok(AtomicFile::over(file, target, Some(partial)))
    }

    fn over(file: File, target: PathBuf, partial: Option<PathBuf>) -> AtomicFile {
        AtomicFile {
            writer: Some(BufWriter::with_capacity(BUFFER_BYTES, file)),
            target,
            partial,
        }
    }

    /// Where a file is written that is to stand at `target`.
    pub fn partial_path(target: &Path) -> PathBuf {
        let mut name = target
            .file_name()
            .map_or_else(OsString::new, OsString::from);
        name.push(".partial");
        target.with_file_name(name)
    }

    /// Where the file is to stand.
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// Puts the file in its place, on the medium and not only in the cache.
    ///
    /// # Errors
    /// If what is still buffered cannot be written; nothing is left behind then.
    pub fn commit(mut self) -> Result<(), TableError> {
        self.settle().map_err(|source| TableError::Write {
            path: self.target.clone(),
            source,
        })
    }

    /// Gives the file up but for its first bytes, closes it with `footer` and
    /// leaves it under its partial name, which is returned. A file that is
    /// written to directly cannot be cut.
    #[cfg(feature = "parquet")]
    pub(crate) fn cut(&mut self, length: u64, footer: &[u8]) -> io::Result<PathBuf> {
        let whole = || io::Error::other("the file cannot be cut");
        let writer = self.writer.take().ok_or_else(whole)?;
        // What is buffered is beyond the cut, or could not be written.
        let (mut file, _) = writer.into_parts();
        let partial = self.partial.clone().ok_or_else(whole)?;
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        file.write_all(footer)?;
        file.sync_all()?;
        forget(&partial);
        self.partial = None;
        Ok(partial)
    }

    fn settle(&mut self) -> io::Result<()> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(());
        };
        writer.flush()?;
        if let Some(partial) = &self.partial {
            writer.get_ref().sync_all()?;
            fs::rename(partial, &self.target)?;
            forget(partial);
            self.partial = None;
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(io::Error::other("the file is already closed")),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // What is still buffered belongs to a file that is given up.
        if let Some(writer) = self.writer.take() {
            drop(writer.into_parts());
        }
        if let Some(partial) = self.partial.take() {
            // Nobody is left to tell if this fails; the name says that it is partial.
            let _ = fs::remove_file(&partial);
            forget(&partial);
        }
    }
}

/// A new file at `partial`, which stands under no other name.
fn new_and_locked(partial: &Path) -> io::Result<File> {
    let is_file = |metadata: &fs::Metadata| metadata.is_file();
    match fs::symlink_metadata(partial) {
        Ok(found) => {
            // What another process is writing is locked. What is no file is not opened: a pipe would wait.
            if is_file(&found)
                && let Ok(file) = OpenOptions::new().write(true).open(partial)
                && let Err(TryLockError::WouldBlock) = file.try_lock()
            {
                let message = format!("another process is writing `{}`", partial.display());
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
            }
            // Removes a link, and not what the link leads to.
            fs::remove_file(partial)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(partial)?;
    match file.try_lock() {
        // A file system without locks keeps no second process out.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::ResourceBusy.into()),
    }
}

/// The file is no longer under construction.
fn forget(partial: &Path) {
    with_partial_files(|files| files.retain(|file| file != partial));
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests read back the files that they wrote"
)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_file_leaves_nothing_and_keeps_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        fs::write(&path, "before").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half a row").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_committed_file_stands_under_its_name_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"a row").unwrap();
        assert!(!path.exists());
        file.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a row");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_under_the_partial_name_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("log.csv"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        let planted = folder.path().join("log.csv.partial");
        for plant in [0, 1] {
            match plant {
                0 => std::os::unix::fs::symlink(&victim, &planted).unwrap(),
                _ => fs::hard_link(&victim, &planted).unwrap(),
            }
            let mut file = AtomicFile::create(&path).unwrap();
            file.write_all(b"a row").unwrap();
            file.commit().unwrap();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
            assert_eq!(fs::read_to_string(&path).unwrap(), "a row");
            assert!(!planted.exists());
        }
    }

    #[test]
    fn one_file_is_written_once_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let first = AtomicFile::create(&path).unwrap();
        let error = AtomicFile::create(&path).unwrap_err().to_string();
        assert!(error.contains("another process is writing"), "{error}");
        drop(first);
        // What a killed process has left is in nobody's way.
        fs::write(folder.path().join("log.csv.partial"), "half").unwrap();
        AtomicFile::create(&path).unwrap().commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_the_file() {
        let error = AtomicFile::create(Path::new("/no/such/folder/log.csv")).unwrap_err();
        assert!(
            error.to_string().contains("/no/such/folder/log.csv"),
            "{error}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_at_commit() {
        let mut file = AtomicFile::create(Path::new("/dev/full")).unwrap();
        file.write_all(b"a row").unwrap();
        let error = file.commit().unwrap_err();
        assert!(matches!(error, TableError::Write { .. }), "{error}");
    }
}
