//! Files that a command line writes: none of them may be one that it reads, or another of them, or somebody's who
//! uses it, and what stands there already must be of the kind that replaces it. All of that is found before a run,
//! and so is a place where nothing can be written.

use crate::output::Failure;
use fullstroke_device::gate;
use fullstroke_lab::Vary;
use fullstroke_stack::{Overrides, files};
#[cfg(feature = "real")]
use fullstroke_store::{Access, FileDevice, bytes, examine};
use fullstroke_table::AtomicFile;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// So much of a file tells what it is.
const BEGINNING_BYTES: u64 = 64;
/// Characters of it that a message shows.
const SHOWN: usize = 30;

/// What a file is that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Page,
    Figure,
    Perfetto,
    /// Of requests: Parquet or CSV.
    Log,
    /// Of a server's requests: Parquet.
    Record,
    /// Of requests, in one of the formats that are written.
    Trace,
    /// A file of a stack or of a drive.
    Toml,
    /// A socket that is listened at; who opens it looks after what stands there.
    Socket,
    /// Anything, which its beginning does not tell.
    Other,
}

/// A file that is written, and what on the command line says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    option: &'static str,
    path: &'a Path,
    kind: Kind,
}

/// A file, whatever it is called.
#[derive(PartialEq, Eq)]
enum Identity {
    Known(gate::Identity),
    New(PathBuf),
}

/// Refuses what would replace a file that is `read`, one that another option writes, one that somebody uses, a member
/// of an array or store, or a file of another kind; and what cannot be written. Of a folder that is read all files
/// are, and of a trace of several files each.
///
/// # Errors
/// Names option and file, what was found there and what was expected.
pub(crate) fn check<'a>(
    targets: impl IntoIterator<Item = Option<Target<'a>>>,
    read: &[PathBuf],
) -> Result<(), Failure> {
    let taken = |file: &PathBuf| {
        Some((
            Identity::of(file)?,
            "a file that this command line reads".to_owned(),
        ))
    };
    let read: Vec<PathBuf> = read.iter().flat_map(|path| files_below(path)).collect();
    let mut taken: Vec<(Identity, String)> = read.iter().filter_map(taken).collect();
    taken.extend(own_streams());
    for target in targets.into_iter().flatten() {
        target.check_folder()?;
        target.check_thing()?;
        let Some(identity) = Identity::of(target.path) else {
            continue;
        };
        // While it is written the file stands under this name.
        let partial =
            AtomicFile::partial_path(&fs::canonicalize(target.path).unwrap_or(target.path.into()));
        for identity in [Some(&identity), Identity::of(&partial).as_ref()]
            .into_iter()
            .flatten()
        {
            if let Some((_, what)) = taken.iter().find(|(other, _)| other == identity) {
                return Err(target.refused(what, "a file of its own"));
            }
        }
        target.check_kind()?;
        target.check_owner()?;
        target.check_writable()?;
        taken.push((identity, format!("what {} writes", target.option)));
        taken.extend(
            Identity::of(&partial)
                .map(|identity| (identity, format!("what {} writes at first", target.option))),
        );
    }
    Ok(())
}

/// True if bytes of a volume are kept in `folder`.
#[cfg(feature = "real")]
fn is_store(folder: &Path) -> bool {
    bytes::is_store(folder)
}

/// True if the file at `path` says that it is a member of an array.
#[cfg(feature = "real")]
fn is_member(path: &Path) -> bool {
    let device = FileDevice::open(path, Access::Look);
    device
        .and_then(|device| examine(&device))
        .is_ok_and(|copies| copies.is_some())
}

/// A build without real devices knows neither stores nor arrays.
#[cfg(not(feature = "real"))]
fn is_store(_: &Path) -> bool {
    false
}

/// See [`is_store`].
#[cfg(not(feature = "real"))]
fn is_member(_: &Path) -> bool {
    false
}

/// What is read where a command line names `path`.
fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    match fs::read_dir(path) {
        Ok(entries) => files.extend(entries.filter_map(|entry| Some(entry.ok()?.path()))),
        Err(_) => files.extend(fullstroke_trace::files_of(path).unwrap_or_default()),
    }
    files
}

/// Files that this process prints to: replaced, they would lose what is printed.
fn own_streams() -> Vec<(Identity, String)> {
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
        let identity = Identity::Known(gate::Identity::from(&metadata));
        metadata
            .is_file()
            .then(|| (identity, format!("the file that {name} goes to")))
    });
    known.collect()
}

/// What is read for stacks whose keys are changed and varied.
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
    /// What `option` writes, if it was given.
    pub(crate) fn of(
        option: &'static str,
        path: &'a Option<PathBuf>,
        kind: Kind,
    ) -> Option<Target<'a>> {
        path.as_deref().map(|path| Target::to(option, path, kind))
    }

    /// What is written in any case.
    pub(crate) fn to(option: &'static str, path: &'a Path, kind: Kind) -> Target<'a> {
        Target { option, path, kind }
    }

    /// What is written must have a folder to stand in.
    fn check_folder(&self) -> Result<(), Failure> {
        let folder = folder_of(self.path);
        match folder.is_dir() {
            true => Ok(()),
            false => Err(self.refused(
                &format!("no folder `{}`", folder.display()),
                "one that exists",
            )),
        }
    }

    /// A folder, a device or a socket is not replaced. What is no file otherwise (`/dev/null`, a pipe) is written to
    /// as it is.
    fn check_thing(&self) -> Result<(), Failure> {
        if self.kind == Kind::Socket {
            return Ok(());
        }
        if self.path.file_name().is_none() {
            return Err(self.refused("no name of a file", "one"));
        }
        let kind = match fs::metadata(self.path) {
            Ok(metadata) => metadata.file_type(),
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

    /// What stands there already must be nobody else's: not in use, and no part of an array or a store.
    fn check_owner(&self) -> Result<(), Failure> {
        if self.kind == Kind::Socket {
            return Ok(());
        }
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
        if let Some(user) = gate::user_of(self.path) {
            return Err(self.refused(&format!("that {user}"), "a file that nobody uses"));
        }
        if is_member(self.path) {
            return Err(self.refused("a member of an array", "another file"));
        }
        Ok(())
    }

    /// Begins the file and gives it up: whatever keeps it from being written is said before the run.
    fn check_writable(&self) -> Result<(), Failure> {
        if self.kind == Kind::Socket {
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
        AtomicFile::create(self.path).map(drop).map_err(|error| {
            Failure::Input(format!(
                "{} {}: cannot be written: {error}",
                self.option,
                self.path.display()
            ))
        })
    }

    /// What stands there already must be of the same kind.
    fn check_kind(&self) -> Result<(), Failure> {
        // Opening a pipe would wait for its other end.
        if !fs::metadata(self.path).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(());
        }
        let mut beginning = Vec::new();
        let Ok(file) = File::open(self.path) else {
            return Ok(());
        };
        // What cannot be read is not known to be of another kind.
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

    fn refused(&self, found: &str, expected: &str) -> Failure {
        Failure::Input(format!(
            "{} {}: found {found}; expected {expected}",
            self.option,
            self.path.display()
        ))
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Page => "an HTML page",
            Kind::Figure => "an SVG figure",
            Kind::Perfetto => "a trace for Perfetto",
            Kind::Log => "a log of requests (Parquet or CSV)",
            Kind::Record => "a record (Parquet)",
            Kind::Trace => "a trace",
            Kind::Toml => "a file in TOML",
            Kind::Socket => "a socket",
            Kind::Other => "a file",
        }
    }

    fn fits(self, beginning: &[u8]) -> bool {
        let begins = |words: &[&str]| {
            let text = String::from_utf8_lossy(beginning).to_lowercase();
            words.iter().any(|word| text.trim_start().starts_with(word))
        };
        match self {
            Kind::Page => begins(&["<!doctype html", "<html"]),
            Kind::Figure => begins(&["<svg", "<?xml"]),
            // The first field of its only message: a packet.
            Kind::Perfetto => beginning[0] == 0x0a,
            Kind::Log => begins(&["par1", "request,"]) || beginning.starts_with(&[0x1f, 0x8b]),
            Kind::Record => begins(&["par1"]),
            Kind::Trace => {
                let packed = [&[0x1f, 0x8b][..], b"\x28\xb5\x2f\xfd", b"\xfd7zXZ"];
                let number = |byte: &u8| byte.is_ascii_digit() || b"-.".contains(byte);
                begins(&["par1", "request,", "fio version"])
                    || packed.iter().any(|magic| beginning.starts_with(magic))
                    || beginning
                        .iter()
                        .find(|byte| !byte.is_ascii_whitespace())
                        .is_some_and(number)
            }
            Kind::Toml => {
                let text = String::from_utf8_lossy(beginning);
                let first = text.lines().map(str::trim).find(|line| !line.is_empty());
                first.is_some_and(|line| line.starts_with(['#', '[']) || line.contains('='))
            }
            Kind::Socket | Kind::Other => true,
        }
    }
}

impl Identity {
    /// `None` for what takes anything, such as `/dev/null`, and for what stands in no folder.
    fn of(path: &Path) -> Option<Identity> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.file_type().is_char_device() => None,
            Ok(metadata) => Some(Identity::Known(gate::Identity::from(&metadata))),
            Err(_) => {
                let folder = fs::canonicalize(folder_of(path)).ok()?;
                Some(Identity::New(folder.join(path.file_name()?)))
            }
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
