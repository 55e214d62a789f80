//! Files that a command line writes: none of them may be one that it reads, or another of them, and what stands
//! there already must be of the kind that replaces it.

use crate::output::Failure;
use fullstroke_lab::Vary;
use fullstroke_stack::{Overrides, files};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
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
    Node { device: u64, inode: u64 },
    New(PathBuf),
}

/// Refuses what would replace a file that is `read`, one that another option writes, or one of another kind, or has
/// no folder to stand in.
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
    let mut taken: Vec<(Identity, String)> = read.iter().filter_map(taken).collect();
    for target in targets.into_iter().flatten() {
        target.check_folder()?;
        let Some(identity) = Identity::of(target.path) else {
            continue;
        };
        if let Some((_, what)) = taken.iter().find(|(other, _)| *other == identity) {
            return Err(target.refused(what, "a file of its own"));
        }
        target.check_kind()?;
        taken.push((identity, format!("what {} writes", target.option)));
    }
    Ok(())
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

    /// What stands there already must be of the same kind.
    fn check_kind(&self) -> Result<(), Failure> {
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
            Kind::Other => true,
        }
    }
}

impl Identity {
    /// `None` for what is written to as it is, such as `/dev/null`, and for what stands in no folder.
    fn of(path: &Path) -> Option<Identity> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Some(Identity::Node {
                device: metadata.dev(),
                inode: metadata.ino(),
            }),
            Ok(_) => None,
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
