//! The files that readers read: files of the file system, or files in memory.
//!
//! Readers of stacks, wishes and traces take a [`FileSource`]. Programs without a file system, such
//! as a page in a browser, give [`MemoryFiles`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Smallest age of a file with a [`FileVersion`]. Times of change are as coarse as 10 ms, so a
/// younger file could change again without a new time.
const AGE_MIN: Duration = Duration::from_secs(2);

/// The kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// No file has this path.
    Missing,
    /// A plain file.
    Plain,
    /// A folder.
    Folder,
    /// A pipe, a device, or another file that can perhaps be read only once.
    Other,
}

/// A version of a file's contents: length in bytes, and a number of the latest change.
pub type FileVersion = (u64, u128);

/// Files by path.
pub trait Files: fmt::Debug + Send + Sync {
    /// Opens a file for reading from its beginning.
    ///
    /// # Errors
    /// The file cannot be read.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    /// Returns the names in a folder, in any order.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>>;

    /// Returns the kind of a path.
    fn kind(&self, path: &Path) -> FileKind;

    /// Returns the path as seen from any folder.
    ///
    /// # Errors
    /// The path is empty, or the current folder is unknown.
    fn absolute(&self, path: &Path) -> io::Result<PathBuf>;

    /// Returns the version of a plain file; `None` if the contents may change without a new
    /// version.
    fn version(&self, path: &Path) -> Option<FileVersion>;

    /// Returns the variables for `${NAME}` in job files.
    fn variables(&self) -> BTreeMap<String, String>;

    /// Returns true if a path of these files is a path of the file system.
    fn are_on_disk(&self) -> bool;
}

/// Shared [`Files`]. The default is the file system. Two sources are equal if they are the same.
#[derive(Clone)]
pub struct FileSource(Arc<dyn Files>);

static DISK: LazyLock<Arc<DiskFiles>> = LazyLock::new(|| Arc::new(DiskFiles));

impl Default for FileSource {
    fn default() -> FileSource {
        FileSource(DISK.clone())
    }
}

impl FileSource {
    /// Shares `files`.
    pub fn new(files: Arc<dyn Files>) -> FileSource {
        FileSource(files)
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a whole file of text.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    pub fn read_text(&self, path: &Path) -> io::Result<String> {
        let mut text = String::new();
        self.open(path)?.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Deref for FileSource {
    type Target = dyn Files;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for FileSource {
    fn eq(&self, other: &FileSource) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for FileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The files of the file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFiles;

impl Files for DiskFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(std::fs::File::open(path)?))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let entries = std::fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn kind(&self, path: &Path) -> FileKind {
        match path.metadata() {
            Err(_) => FileKind::Missing,
            Ok(metadata) if metadata.is_dir() => FileKind::Folder,
            Ok(metadata) if metadata.is_file() => FileKind::Plain,
            Ok(_) => FileKind::Other,
        }
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        std::path::absolute(path)
    }

    fn version(&self, path: &Path) -> Option<FileVersion> {
        let metadata = path.metadata().ok()?;
        let changed = metadata.modified().ok()?;
        let age = SystemTime::now().duration_since(changed).ok()?;
        let since = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        (metadata.is_file() && age >= AGE_MIN).then_some((metadata.len(), since.as_nanos()))
    }

    fn variables(&self) -> BTreeMap<String, String> {
        // Variables that are not UTF-8 cannot occur in a job file, and are left out.
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    fn are_on_disk(&self) -> bool {
        true
    }
}

/// Files in memory. The folder of a relative path is the root.
#[derive(Default)]
pub struct MemoryFiles {
    files: Mutex<BTreeMap<PathBuf, MemoryFile>>,
    /// Number of files put so far.
    puts: AtomicU64,
}

#[derive(Clone)]
struct MemoryFile {
    bytes: Arc<[u8]>,
    /// Number of files put before this one.
    serial: u128,
}

impl MemoryFiles {
    /// Puts a file at `path`, in place of an earlier one.
    pub fn put(&self, path: &Path, bytes: impl Into<Arc<[u8]>>) {
        // Relaxed: the number only has to be new.
        let serial = self.puts.fetch_add(1, Ordering::Relaxed).into();
        let bytes = bytes.into();
        self.locked()
            .insert(from_root(path), MemoryFile { bytes, serial });
    }

    /// Removes a file, if there is one.
    pub fn remove(&self, path: &Path) {
        self.locked().remove(&from_root(path));
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<PathBuf, MemoryFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, path: &Path) -> io::Result<MemoryFile> {
        let found = self.locked().get(&from_root(path)).cloned();
        found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl fmt::Debug for MemoryFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.locked().keys()).finish()
    }
}

/// Returns the path from the root, without `.` and `..`.
fn from_root(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}

impl Files for MemoryFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(self.file(path)?.bytes)))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let folder = from_root(folder);
        let files = self.locked();
        let below = files
            .keys()
            .filter_map(|path| path.strip_prefix(&folder).ok());
        let mut names: Vec<OsString> = below
            .filter_map(|path| path.components().next())
            .map(|name| name.as_os_str().to_owned())
            .collect();
        // The paths are sorted, so equal names stand together.
        names.dedup();
        if names.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(names)
    }

    fn kind(&self, path: &Path) -> FileKind {
        if self.file(path).is_ok() {
            FileKind::Plain
        } else if self.list(path).is_ok() {
            FileKind::Folder
        } else {
            FileKind::Missing
        }
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        match path.as_os_str().is_empty() {
            true => Err(io::ErrorKind::InvalidInput.into()),
            false => Ok(from_root(path)),
        }
    }

    fn version(&self, path: &Path) -> Option<FileVersion> {
        let file = self.file(path).ok()?;
        Some((file.bytes.len() as u64, file.serial))
    }

    fn variables(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn are_on_disk(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_memory_is_found_in_each_spelling() {
        let files = MemoryFiles::default();
        files.put(Path::new("a/b.toml"), *b"one");
        for path in ["a/b.toml", "/a/b.toml", "./a/./b.toml", "a/c/../b.toml"] {
            assert_eq!(files.kind(Path::new(path)), FileKind::Plain, "{path}");
        }
        assert_eq!(files.kind(Path::new("a")), FileKind::Folder);
        assert_eq!(files.kind(Path::new("b.toml")), FileKind::Missing);
        assert_eq!(files.list(Path::new("")).unwrap(), ["a"]);
        assert!(files.list(Path::new("c")).is_err());
        let absolute = files.absolute(Path::new("a/b.toml")).unwrap();
        assert_eq!(absolute, Path::new("/a/b.toml"));
    }

    #[test]
    fn another_file_at_the_same_path_has_another_version() {
        let files = MemoryFiles::default();
        let path = Path::new("a");
        files.put(path, *b"one");
        let first = files.version(path);
        files.put(path, *b"two");
        assert!(first.is_some() && files.version(path) != first);
        let source = FileSource::new(Arc::new(files));
        assert_eq!(source.read_text(path).unwrap(), "two");
        assert_ne!(source, FileSource::default());
        assert_eq!(FileSource::default(), FileSource::default());
    }
}
