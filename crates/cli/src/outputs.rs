//! Checks of the files that a command writes.
//!
//! An output must not be a file that the command reads, the target of another option, or a file in
//! use by another program. An existing file must be of the kind that replaces it. The place must be
//! writable. All checks precede the run, because a run may take hours.

use crate::output::CommandFailure;
use fullstroke_device::gate;
use fullstroke_lab::Vary;
use fullstroke_stack::{Overrides, files};
#[cfg(feature = "real")]
use fullstroke_store::{FileDevice, OpenPurpose, bytes, examine};
use fullstroke_table::AtomicFile;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Bytes of a file that show its kind.
const BEGINNING_BYTES: u64 = 64;
/// Characters of the file's beginning that a message shows.
const SHOWN: usize = 30;

/// Kind of a file to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputKind {
    Page,
    Figure,
    Perfetto,
    /// Log of requests, as Parquet or CSV.
    Log,
    /// Record of a server's requests, as Parquet.
    Record,
    /// Trace in one of the formats that fullstroke writes.
    Trace,
    /// Stack file or drive file.
    Toml,
    /// Socket to listen on. The server checks an existing file itself.
    Socket,
    /// Any other file. The beginning of the file does not show the kind.
    Other,
}

/// A file to write, with the option that names the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    option: &'static str,
    path: &'a Path,
    kind: OutputKind,
}

/// Identity of a file, independent of the name.
#[derive(PartialEq, Eq)]
enum FileIdentity {
    Known(gate::DeviceIdentity),
    New(PathBuf),
}

/// Checks all targets before a run.
///
/// Refuses a target that
///
/// - is in `read`, or is the target of another option,
/// - is in use, or belongs to an array or a store,
/// - is an existing file of another kind,
/// - cannot be written.
///
/// A folder in `read` stands for all files inside. A trace of several files stands for each file.
///
/// # Errors
/// The message names the option, the file, the value found and the value expected.
pub(crate) fn check<'a>(
    targets: impl IntoIterator<Item = Option<Target<'a>>>,
    read: &[PathBuf],
) -> Result<(), CommandFailure> {
    let taken = |file: &PathBuf| {
        Some((
            FileIdentity::of(file)?,
            "a file that this command line reads".to_owned(),
        ))
    };
    let read: Vec<PathBuf> = read.iter().flat_map(|path| files_below(path)).collect();
    let mut taken: Vec<(FileIdentity, String)> = read.iter().filter_map(taken).collect();
    // `fullstroke run ... --report page.html > page.html` would lose one of both.
    taken.extend(own_streams());
    for target in targets.into_iter().flatten() {
        // The cheap and harmless checks come first, because the last one creates a temporary file.
        target.check_folder()?;
        target.check_file_type()?;
        let Some(identity) = FileIdentity::of(target.path) else {
            continue;
        };
        // `AtomicFile` writes to this name before the final rename.
        // A symbolic link stays, and the file behind it is replaced. So its path counts.
        let partial =
            AtomicFile::partial_path(&fs::canonicalize(target.path).unwrap_or(target.path.into()));
        for identity in [Some(&identity), FileIdentity::of(&partial).as_ref()]
            .into_iter()
            .flatten()
        {
            if let Some((_, what)) = taken.iter().find(|(other, _)| other == identity) {
                return Err(target.refused(what, "a file of its own"));
            }
        }
        target.check_kind()?;
        target.check_owner()?;
        target.check_ending()?;
        target.check_writable()?;
        taken.push((identity, format!("what {} writes", target.option)));
        taken.extend(
            FileIdentity::of(&partial)
                .map(|identity| (identity, format!("what {} writes at first", target.option))),
        );
    }
    Ok(())
}

/// True if `folder` holds the bytes of a volume.
#[cfg(feature = "real")]
fn is_store(folder: &Path) -> bool {
    bytes::is_store(folder)
}

/// True if the file at `path` has the superblock of an array member.
#[cfg(feature = "real")]
fn is_member(path: &Path) -> bool {
    let device = FileDevice::open(path, OpenPurpose::Look);
    device
        .and_then(|device| examine(&device))
        .is_ok_and(|copies| copies.is_some())
}

/// Returns false, because a build without real devices has neither stores nor arrays.
#[cfg(not(feature = "real"))]
fn is_store(_: &Path) -> bool {
    false
}

/// Returns false; see [`is_store`].
#[cfg(not(feature = "real"))]
fn is_member(_: &Path) -> bool {
    false
}

/// Returns the files that a command reads if the command line names `path`.
fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    match fs::read_dir(path) {
        Ok(entries) => files.extend(entries.filter_map(|entry| Some(entry.ok()?.path()))),
        // A blktrace is named by its device and has one file per processor.
        Err(_) => files.extend(fullstroke_trace::files_of(path).unwrap_or_default()),
    }
    files
}

/// Returns the files behind standard output and standard error. Replacing such a file would lose
/// the printed text.
fn own_streams() -> Vec<(FileIdentity, String)> {
    let named = [
        (
            std::io::stdout().as_fd().try_clone_to_owned(),
            "standard output",
        ),
        (
            std::io::stderr().as_fd().try_clone_to_owned(),
            "standard error",
        ),
    ];
    let known = named.into_iter().filter_map(|(descriptor, name)| {
        let metadata = File::from(descriptor.ok()?).metadata().ok()?;
        let identity = FileIdentity::Known(gate::DeviceIdentity::from(&metadata));
        // A terminal or a pipe is no file that a rename could replace.
        metadata
            .is_file()
            .then(|| (identity, format!("the file that {name} goes to")))
    });
    known.collect()
}

/// Returns the files that the stacks read under all overrides and all varied values.
pub(crate) fn read_for(stacks: &[PathBuf], overrides: &Overrides, varied: &[Vary]) -> Vec<PathBuf> {
    let mut changes = vec![overrides.clone()];
    for vary in varied {
        changes.extend(vary.values().iter().map(|value| {
            let mut changed = overrides.clone();
            changed.set.push(format!("{}={value}", vary.key()));
            changed
        }));
    }
    stacks
        .iter()
        .flat_map(|stack| changes.iter().flat_map(|changes| files(stack, changes)))
        .collect()
}

impl<'a> Target<'a> {
    /// Returns the target of `option`, or `None` if the option was not given.
    pub(crate) fn of(
        option: &'static str,
        path: &'a Option<PathBuf>,
        kind: OutputKind,
    ) -> Option<Target<'a>> {
        path.as_deref().map(|path| Target::to(option, path, kind))
    }

    /// Returns the target of an option that is always present.
    pub(crate) fn to(option: &'static str, path: &'a Path, kind: OutputKind) -> Target<'a> {
        Target { option, path, kind }
    }

    /// Refuses a name whose ending promises another format, such as a figure called `plot.png`.
    fn check_ending(&self) -> Result<(), CommandFailure> {
        let (expected, known): (&str, &[&str]) = match self.kind {
            OutputKind::Figure => (
                "a name that ends in .svg; `rsvg-convert` and browsers make a PNG of an SVG",
                &["svg"],
            ),
            OutputKind::Page => (
                "a name that ends in .html; browsers print a page as PDF",
                &["html", "htm"],
            ),
            _ => return Ok(()),
        };
        let ending = self
            .path
            .extension()
            .map(|ending| ending.to_string_lossy().to_lowercase());
        match ending {
            // A name without an ending promises nothing, as in /dev/null.
            Some(ending) if !known.contains(&ending.as_str()) => {
                Err(self.refused(&format!("a name that ends in .{ending}"), expected))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the folder of the target exists.
    fn check_folder(&self) -> Result<(), CommandFailure> {
        let folder = folder_of(self.path);
        match folder.is_dir() {
            true => Ok(()),
            false => Err(self.refused(
                &format!("no folder `{}`", folder.display()),
                "one that exists",
            )),
        }
    }

    /// Refuses a folder, a block device or a socket. Other special files (`/dev/null`, a pipe) are
    /// written in place.
    fn check_file_type(&self) -> Result<(), CommandFailure> {
        if self.kind == OutputKind::Socket {
            return Ok(());
        }
        if self.path.file_name().is_none() {
            return Err(self.refused("no name of a file", "one"));
        }
        let kind = match fs::metadata(self.path) {
            Ok(metadata) => metadata.file_type(),
            // A new name is the usual case.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(self.refused(&error.to_string(), "a place for a file")),
        };
        let found = match () {
            () if kind.is_dir() => "a folder",
            () if kind.is_block_device() => "a block device",
            () if kind.is_socket() => "a socket",
            () => return Ok(()),
        };
        Err(self.refused(found, "a file, or none"))
    }

    /// Checks that no other program uses the existing file, and that the file is no part of an
    /// array or a store.
    fn check_owner(&self) -> Result<(), CommandFailure> {
        if self.kind == OutputKind::Socket {
            return Ok(());
        }
        // The file behind a symbolic link is the one that is replaced, so its folder counts.
        let folder = fs::canonicalize(self.path)
            .ok()
            .and_then(|path| Some(path.parent()?.to_owned()));
        let folder = folder.as_deref().unwrap_or(folder_of(self.path));
        if is_store(folder) {
            return Err(self.refused("the folder of a store of bytes", "another folder"));
        }
        if !fs::metadata(self.path).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(());
        }
        // An image may back a loop device or a running server; a rename would leave them on the old
        // inode.
        if let Some(user) = gate::user_of(self.path) {
            return Err(self.refused(&format!("that {user}"), "a file that nobody uses"));
        }
        if is_member(self.path) {
            return Err(self.refused("a member of an array", "another file"));
        }
        Ok(())
    }

    /// Creates the temporary file and drops it. So a missing permission is an error before the run.
    fn check_writable(&self) -> Result<(), CommandFailure> {
        if self.kind == OutputKind::Socket {
            return Ok(());
        }
        if fs::metadata(self.path).is_ok_and(|metadata| !metadata.is_file()) {
            return Ok(());
        }
        if gate::is_fixed(self.path) {
            return Err(self.refused(
                "a file that the host lets nobody replace (chattr +i or +a)",
                "another file",
            ));
        }
        // The temporary file lies in the same folder, so this finds a read-only file system as
        // well.
        AtomicFile::create(self.path).map(drop).map_err(|error| {
            CommandFailure::Input(format!(
                "{} {}: cannot be written: {error}",
                self.option,
                self.path.display()
            ))
        })
    }

    /// Checks that the existing file has the kind of the target.
    fn check_kind(&self) -> Result<(), CommandFailure> {
        // Opening a pipe would wait for the other end.
        if !fs::metadata(self.path).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(());
        }
        let mut beginning = Vec::new();
        let Ok(file) = File::open(self.path) else {
            return Ok(());
        };
        // An unreadable file counts as empty: the kind is unknown, so replacement is allowed.
        let _ = file.take(BEGINNING_BYTES).read_to_end(&mut beginning);
        if beginning.is_empty() || self.kind.fits(&beginning) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&beginning);
        let line = text.lines().next().unwrap_or_default();
        let line: String = line
            .chars()
            .filter(|letter| !letter.is_control())
            .take(SHOWN)
            .collect();
        let found = format!("a file that begins with `{line}`");
        Err(self.refused(
            &found,
            &format!("no file, or {} to replace", self.kind.name()),
        ))
    }

    fn refused(&self, found: &str, expected: &str) -> CommandFailure {
        CommandFailure::Input(format!(
            "{} {}: found {found}; expected {expected}",
            self.option,
            self.path.display()
        ))
    }
}

impl OutputKind {
    fn name(self) -> &'static str {
        match self {
            OutputKind::Page => "an HTML page",
            OutputKind::Figure => "an SVG figure",
            OutputKind::Perfetto => "a trace for Perfetto",
            OutputKind::Log => "a log of requests (Parquet or CSV)",
            OutputKind::Record => "a record (Parquet)",
            OutputKind::Trace => "a trace",
            OutputKind::Toml => "a file in TOML",
            OutputKind::Socket => "a socket",
            OutputKind::Other => "a file",
        }
    }

    fn fits(self, beginning: &[u8]) -> bool {
        let begins = |words: &[&str]| {
            let text = String::from_utf8_lossy(beginning).to_lowercase();
            words.iter().any(|word| text.trim_start().starts_with(word))
        };
        match self {
            OutputKind::Page => begins(&["<!doctype html", "<html"]),
            OutputKind::Figure => begins(&["<svg", "<?xml"]),
            // The message `Trace` of Perfetto has the single field 1 (`packet`), so its tag 0x0a is
            // the first byte.
            OutputKind::Perfetto => beginning[0] == 0x0a,
            OutputKind::Log => {
                begins(&["par1", "request,"]) || beginning.starts_with(&[0x1f, 0x8b])
            }
            OutputKind::Record => begins(&["par1"]),
            OutputKind::Trace => {
                // Magic numbers of gzip (RFC 1952), Zstandard (RFC 8878) and xz.
                let packed = [&[0x1f, 0x8b][..], b"\x28\xb5\x2f\xfd", b"\xfd7zXZ"];
                let number = |byte: &u8| byte.is_ascii_digit() || b"-.".contains(byte);
                begins(&["par1", "request,", "fio version"])
                    || packed.iter().any(|magic| beginning.starts_with(magic))
                    || beginning
                        .iter()
                        .find(|byte| !byte.is_ascii_whitespace())
                        .is_some_and(number)
            }
            OutputKind::Toml => {
                let text = String::from_utf8_lossy(beginning);
                let first = text.lines().map(str::trim).find(|line| !line.is_empty());
                first.is_some_and(|line| line.starts_with(['#', '[']) || line.contains('='))
            }
            OutputKind::Socket | OutputKind::Other => true,
        }
    }
}

impl FileIdentity {
    /// Returns the identity of `path`. Returns `None` for a character device such as `/dev/null`,
    /// and for a new file in a missing folder.
    fn of(path: &Path) -> Option<FileIdentity> {
        match fs::metadata(path) {
            // Several options may name `/dev/null`.
            Ok(metadata) if metadata.file_type().is_char_device() => None,
            Ok(metadata) => Some(FileIdentity::Known(gate::DeviceIdentity::from(&metadata))),
            Err(_) => {
                // A new file has no inode yet. Its folder has, whatever name leads there.
                let folder = fs::canonicalize(folder_of(path)).ok()?;
                Some(FileIdentity::New(folder.join(path.file_name()?)))
            }
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        // `parent` of a bare file name is an empty path, which the kernel would not find.
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
