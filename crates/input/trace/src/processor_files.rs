//! Files of a blktrace: one for each processor, `name.blktrace.0` and so on.
//!
//! A trace may be named by any of these files, by `name` or `name.blktrace`, or by the folder that
//! contains it.

use crate::input::BUFFER_BYTES;
use crate::{FileKind, FileSource, TraceError, source};
use fullstroke_units::order_by;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Part of the file names in front of the number.
const ENDING: &str = ".blktrace";

/// Splits `name.blktrace.12.gz` into `name.blktrace` and 12.
pub(crate) fn processor(name: &str) -> Option<(&str, u32)> {
    let plain = [".gz", ".zst", ".xz"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name);
    let (stem, number) = plain.rsplit_once('.')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (digits && stem.ends_with(ENDING)).then_some(())?;
    Some((stem, number.parse().ok()?))
}

/// Returns the processors' files in `folder`, by stem. If a file exists plain and packed, only the
/// plain file is listed.
fn stems(
    files: &FileSource,
    folder: &Path,
) -> io::Result<BTreeMap<String, BTreeMap<u32, PathBuf>>> {
    let mut names = files.list(folder)?;
    // In this order a plain name comes before the same name with an extension.
    order_by(&mut names, Ord::cmp);
    let mut stems: BTreeMap<String, BTreeMap<u32, PathBuf>> = BTreeMap::new();
    for name in &names {
        if let Some((stem, number)) = name.to_str().and_then(processor) {
            let files = stems.entry(stem.to_owned()).or_default();
            files.entry(number).or_insert_with(|| folder.join(name));
        }
    }
    Ok(stems)
}

/// Returns all files of the same trace as the file at `path`, by processor. The map is empty if the
/// name has no processor number.
pub(crate) fn files_of_same_trace(
    files: &FileSource,
    path: &Path,
) -> io::Result<BTreeMap<u32, PathBuf>> {
    let Some((stem, own)) = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(processor)
    else {
        return Ok(BTreeMap::new());
    };
    let mut found = stems(files, folder_of(path))?
        .remove(stem)
        .unwrap_or_default();
    found.insert(own, path.to_owned());
    Ok(found)
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Returns the file to open for the trace at `path`: the file itself, or the first non-empty file
/// of the blktrace named by `path`.
pub(crate) fn locate(files: &FileSource, path: &Path) -> Result<PathBuf, TraceError> {
    let failed = |source| TraceError::Read {
        file: path.display().to_string(),
        source,
    };
    let kind = files.kind(path);
    let found = match kind {
        FileKind::Folder => return in_folder(files, path),
        FileKind::Missing => based_on(files, path),
        _ => files_of_same_trace(files, path).map_err(failed)?,
    };
    if kind != FileKind::Missing && !is_empty(files, path) {
        return Ok(path.to_owned());
    }
    Ok(first_with_events(files, &found).unwrap_or(path).to_owned())
}

/// Returns the blktrace in `folder`, if there is exactly one.
fn in_folder(files: &FileSource, folder: &Path) -> Result<PathBuf, TraceError> {
    let failed = |source| TraceError::Read {
        file: folder.display().to_string(),
        source,
    };
    let stems = stems(files, folder).map_err(failed)?;
    let mut traces = stems.iter();
    match (traces.next(), traces.next()) {
        (Some((_, found)), None) => {
            let first = first_with_events(files, found).map(Path::to_owned);
            first.ok_or_else(|| TraceError::Empty {
                file: folder.display().to_string(),
            })
        }
        (None, _) => {
            let text = "it is a folder; expected a file, or a folder with the files of a blktrace (NAME.blktrace.0, ...)";
            Err(failed(io::Error::other(text)))
        }
        _ => {
            let names = |stem: &String| {
                folder
                    .join(stem.trim_end_matches(ENDING))
                    .display()
                    .to_string()
            };
            let names: Vec<String> = stems.keys().map(names).collect();
            let text = format!(
                "it is a folder with several blktraces; name one: {}",
                names.join(", ")
            );
            Err(failed(io::Error::other(text)))
        }
    }
}

/// Returns the files of the blktrace called `path`, with or without `.blktrace`.
fn based_on(files: &FileSource, path: &Path) -> BTreeMap<u32, PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return BTreeMap::new();
    };
    let mut stems = stems(files, folder_of(path)).unwrap_or_default();
    let long = format!("{name}{ENDING}");
    stems
        .remove(&long)
        .or_else(|| stems.remove(name))
        .unwrap_or_default()
}

fn first_with_events<'a>(
    files: &FileSource,
    found: &'a BTreeMap<u32, PathBuf>,
) -> Option<&'a Path> {
    found
        .values()
        .map(PathBuf::as_path)
        .find(|path| !is_empty(files, path))
        .or(found.values().next().map(PathBuf::as_path))
}

/// Returns true if the file has no content, packed or not. Returns false for an unreadable file, so
/// that the later open reports the reason.
fn is_empty(files: &FileSource, path: &Path) -> bool {
    if files.kind(path) != FileKind::Plain {
        // A pipe can be read only once, so it must not be examined here.
        return false;
    }
    let first = source::open_in(files, path, BUFFER_BYTES)
        .ok()
        .and_then(|mut input| input.peek(1).map(<[u8]>::len).ok());
    first == Some(0)
}

/// Returns all files read for the trace at `path`: one file, or the files of all processors of a
/// blktrace.
///
/// # Errors
/// Fails if `path` is a folder without exactly one blktrace.
pub fn files_of(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    files_in(&FileSource::default(), path)
}

/// Like [`files_of`], for a trace in `files`.
///
/// # Errors
/// As for [`files_of`].
pub fn files_in(files: &FileSource, path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let first = locate(files, path)?;
    let found = files_of_same_trace(files, &first).unwrap_or_default();
    Ok(if found.is_empty() {
        vec![first]
    } else {
        found.into_values().collect()
    })
}
