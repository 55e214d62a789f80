//! Files that appear complete or not at all.

use crate::TableError;
use std::ffi::OsString;
use std::fs::{self, File};
#[cfg(not(target_family = "wasm"))]
use std::fs::{OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
#[cfg(feature = "parquet")]
use std::io::{Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The partial files of this process. A signal ends a process without any `drop`, so a signal
/// handler must call [`remove_partial_files`].
static PARTIAL_FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes all unfinished files of this process. Call this before a signal ends the process.
pub fn remove_partial_files() {
    for partial in with_partial_files(std::mem::take) {
        // The process ends, so an error cannot be reported. The name marks the file as partial.
        let _ = fs::remove_file(partial);
    }
}

fn with_partial_files<T>(change: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    // A panic of another thread cannot leave a list of paths in a bad state, so the poison is
    // ignored.
    change(
        &mut PARTIAL_FILES
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner),
    )
}

#[cfg(not(target_family = "wasm"))]
const BUFFER_BYTES: usize = 128 * 1024;

/// A file under construction. The data go to `<name>.partial` beside the target.
/// [`commit`](AtomicFile::commit) renames the partial file to the target. A drop before the commit
/// removes the partial file and leaves an older target untouched.
///
/// The partial file is always new: a link, or a file of an earlier process, under the partial name
/// is removed and never written through. The partial file is locked during construction, so a
/// second process that writes the same target gets an error.
///
/// A target that exists and is not a regular file (a pipe, a terminal, `/dev/null`) is written
/// directly.
#[derive(Debug)]
pub struct AtomicFile {
    writer: Option<BufWriter<File>>,
    target: PathBuf,
    partial: Option<PathBuf>,
    /// WebAssembly has no file system, so an `AtomicFile` never exists there. This field says so to
    /// the compiler, and the compiler leaves code behind the creation of a file out of the module for
    /// browsers.
    #[cfg(target_family = "wasm")]
    _never: std::convert::Infallible,
}

impl AtomicFile {
    /// Starts the file with the target `path`.
    ///
    /// # Errors
    /// WebAssembly has no file system.
    #[cfg(target_family = "wasm")]
    pub fn create(path: &Path) -> Result<AtomicFile, TableError> {
        Err(TableError::Create {
            path: path.to_owned(),
            source: io::ErrorKind::Unsupported.into(),
        })
    }

    /// Starts the file with the target `path`.
    ///
    /// # Errors
    /// If the folder is missing or not writable.
    #[cfg(not(target_family = "wasm"))]
    pub fn create(path: &Path) -> Result<AtomicFile, TableError> {
        // The file that a link points to is replaced, not the link.
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
        // The path is noted before the file is created. Otherwise a signal between the two steps
        // would leave the file behind.
        with_partial_files(|files| files.push(partial.clone()));
        let file = new_and_locked(&partial)
            .inspect_err(|_| forget(&partial))
            .map_err(failed)?;
        Ok(AtomicFile::over(file, target, Some(partial)))
    }

    #[cfg(not(target_family = "wasm"))]
    fn over(file: File, target: PathBuf, partial: Option<PathBuf>) -> AtomicFile {
        AtomicFile {
            writer: Some(BufWriter::with_capacity(BUFFER_BYTES, file)),
            target,
            partial,
        }
    }

    /// Returns the path of the partial file for `target`.
    pub fn partial_path(target: &Path) -> PathBuf {
        let mut name = target
            .file_name()
            .map_or_else(OsString::new, OsString::from);
        name.push(".partial");
        target.with_file_name(name)
    }

    /// Returns the path of the finished file.
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// Writes the file to the medium, beyond the cache, and renames it to the target.
    ///
    /// # Errors
    /// If the buffered data cannot be written. No file is left behind in this case.
    pub fn commit(mut self) -> Result<(), TableError> {
        self.settle().map_err(|source| TableError::Write {
            path: self.target.clone(),
            source,
        })
    }

    /// Cuts the file to its first `length` bytes and adds `footer`. The result stays under the
    /// partial name, and this name is returned. A target that is written directly cannot be cut.
    #[cfg(feature = "parquet")]
    pub(crate) fn cut(&mut self, length: u64, footer: &[u8]) -> io::Result<PathBuf> {
        let whole = || io::Error::other("the file cannot be cut");
        let writer = self.writer.take().ok_or_else(whole)?;
        // The buffer holds only bytes beyond the cut, or bytes that could not be written.
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
            // The rename comes after the sync: otherwise a crash could leave an incomplete file
            // under the target name.
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
        // The buffered bytes belong to an abandoned file. A drop of the `BufWriter` would write
        // them.
        if let Some(writer) = self.writer.take() {
            // `into_parts` returns the buffer unwritten.
            drop(writer.into_parts());
        }
        if let Some(partial) = self.partial.take() {
            // A drop cannot report an error. The name marks the file as partial.
            let _ = fs::remove_file(&partial);
            forget(&partial);
        }
    }
}

/// Creates a new file at `partial`, without other names, and locks it.
#[cfg(not(target_family = "wasm"))]
fn new_and_locked(partial: &Path) -> io::Result<File> {
    // The lock on an abandoned file is kept until the new file exists. Otherwise two processes
    // could find the same abandoned file, and the slower one would remove the new file of the
    // faster one.
    let mut abandoned = None;
    loop {
        let found = match fs::symlink_metadata(partial) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        };
        // Only regular files are opened, because opening a pipe would block.
        if found.is_file() {
            match OpenOptions::new().write(true).open(partial) {
                Ok(file) => {
                    // A lock shows that another process writes the file.
                    if let Err(TryLockError::WouldBlock) = file.try_lock() {
                        let message = format!("another process is writing `{}`", partial.display());
                        return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
                    }
                    if !is_at(&file, partial)? {
                        continue;
                    }
                    abandoned = Some(file);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // The folder decides about the removal of a file that may not be written.
                Err(_) => {}
            }
        }
        // Removes a link itself, not the file that the link points to.
        fs::remove_file(partial)?;
        break;
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(partial)?;
    // Between creation and lock another process may have taken the new file for an abandoned one,
    // and may have removed it. On a file system without locks a second process is not kept out.
    let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !is_at(&file, partial)?;
    drop(abandoned);
    if taken {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    Ok(file)
}

/// Returns true if `path` still names the opened `file`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let own = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(other) => Ok((own.dev(), own.ino()) == (other.dev(), other.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns true, because other systems do not remove an open file.
#[cfg(not(any(unix, target_family = "wasm")))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Removes the path from the list of unfinished files.
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
    fn an_abandoned_file_is_taken_over_by_one_writer_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let partial = folder.path().join("log.csv.partial");
        for _ in 0..200 {
            fs::write(&partial, "abandoned").unwrap();
            let barrier = std::sync::Barrier::new(3);
            let create = || {
                barrier.wait();
                new_and_locked(&partial)
            };
            let made: Vec<File> = std::thread::scope(|scope| {
                let writers: Vec<_> = (0..3).map(|_| scope.spawn(create)).collect();
                let outcomes = writers.into_iter().map(|one| one.join().unwrap());
                outcomes.filter_map(Result::ok).collect()
            });
            assert!(made.len() <= 1, "{}", made.len());
            assert!(made.iter().all(|file| is_at(file, &partial).unwrap()));
        }
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
        // The leftover of a killed process does not block a new file.
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
