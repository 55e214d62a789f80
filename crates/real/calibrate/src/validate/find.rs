//! Traces under a path, and the drive of each trace.

use crate::validate::ValidateError;
use fullstroke_drive::DriveModel;
use fullstroke_stack::{StackError, drives};
use fullstroke_trace::{TraceOptions, TraceReader};
use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The format of validation traces.
const FORMAT: &str = "disksim-validate";

/// Endings of the names of traces, packed or not.
const SUFFIXES: [&str; 4] = [".trace", ".trace.gz", ".trace.zst", ".trace.xz"];

/// Extensions of descriptions that may stand beside `X.trace`, as `X.<extension>`, in the order of
/// preference. The project's own format comes first, then DiskSim's. A `.parv` names the disk that
/// was replayed; a `.diskspecs` may hold several disks.
const BESIDE: [&str; 3] = ["toml", "parv", "diskspecs"];

/// A trace, and the name of its drive according to the trace's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Name of the file without `.trace` and the rest.
    pub name: String,
}

/// A trace of a folder, left out of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedTrace {
    /// Path of the file.
    pub path: PathBuf,
    /// Reason.
    pub reason: String,
}

/// A trace of a folder that cannot be replayed, because the trace or its drive's description is
/// damaged. The other traces of the folder are not affected.
#[derive(Debug)]
pub struct FailedTrace {
    /// Trace.
    pub trace: TraceFile,
    /// Reason.
    pub error: ValidateError,
}

/// The traces under a path.
#[derive(Debug, Default)]
pub struct Traces {
    /// Traces to replay, each with its drive, by name.
    pub found: Vec<(TraceFile, FoundDrive)>,
    /// Traces of a folder that are in another format or whose drive is unknown.
    pub skipped: Vec<SkippedTrace>,
    /// Unusable traces of a folder.
    pub failed: Vec<FailedTrace>,
}

/// A drive, and the place of its description.
#[derive(Clone, Debug)]
pub struct FoundDrive {
    /// Name of the drive in the library, or the file with its description.
    pub name: String,
    /// The drive.
    pub model: DriveModel,
}

impl TraceFile {
    /// Creates the trace at `path`.
    pub fn new(path: &Path) -> TraceFile {
        let file = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let name = SUFFIXES.iter().find_map(|suffix| file.strip_suffix(suffix));
        TraceFile {
            path: path.to_owned(),
            name: name.unwrap_or(&file).to_owned(),
        }
    }
}

/// Returns the traces at `path`, each with its drive.
///
/// A file is a single trace. In a folder, a trace is a file that meets three conditions. The name
/// ends in `.trace` (plain or packed), the format is that of validation traces, and the drive is
/// known. `drive` is the name or file of the drive, if the user gave one.
///
/// # Errors
/// If the path cannot be read. For a file, if its drive is unknown or unusable. For a folder, if
/// there is nothing to replay.
pub fn find_traces(path: &Path, drive: Option<&str>) -> Result<Traces, ValidateError> {
    let unreadable = |source| ValidateError::Read {
        path: path.to_owned(),
        source,
    };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        let trace = TraceFile::new(path);
        let drive = find_drive(&trace, drive)?;
        return Ok(Traces {
            found: vec![(trace, drive)],
            ..Traces::default()
        });
    }
    let mut traces = Traces::default();
    for trace in traces_in(path)? {
        match drive_in_folder(&trace, drive) {
            Ok(Ok(drive)) => traces.found.push((trace, drive)),
            Ok(Err(reason)) => traces.skipped.push(SkippedTrace {
                path: trace.path,
                reason: reason.to_string(),
            }),
            Err(error) => traces.failed.push(FailedTrace { trace, error }),
        }
    }
    if traces.found.is_empty() && traces.failed.is_empty() {
        let note =
            |skipped: &SkippedTrace| format!("\n  {}: {}", skipped.path.display(), skipped.reason);
        let notes = traces.skipped.iter().map(note).collect();
        return Err(ValidateError::NoTraces {
            folder: path.to_owned(),
            notes,
        });
    }
    Ok(traces)
}

/// Returns the traces of a folder by name. Of several forms of one trace, the first of `SUFFIXES`
/// counts.
fn traces_in(folder: &Path) -> Result<Vec<TraceFile>, ValidateError> {
    let unreadable = |source| ValidateError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut traces = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let file = path.to_string_lossy();
        if let Some(form) = SUFFIXES.iter().position(|suffix| file.ends_with(suffix)) {
            traces.push((TraceFile::new(&path), form));
        }
    }
    // Of two forms of one trace the sort puts the preferred form first, and `dedup_by` keeps the
    // first.
    traces.sort_by(|a, b| (&a.0.name, a.1).cmp(&(&b.0.name, b.1)));
    traces.dedup_by(|later, earlier| later.0.name == earlier.0.name);
    Ok(traces.into_iter().map(|(trace, _)| trace).collect())
}

/// Reason why a trace of a folder is left out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum TraceExclusion {
    #[error("it is in the format {format}, not a validation trace ({FORMAT})")]
    Format { format: &'static str },
    #[error(
        "no drive is known for it: no {beside}, and none of the library has `{name}` in its name"
    )]
    NoDrive { beside: String, name: String },
    #[error("it could belong to more than one drive of the library; say --drive {candidates}")]
    Ambiguous { candidates: String },
}

/// Returns the drive of a trace in a folder, or the reason why the trace is left out.
fn drive_in_folder(
    trace: &TraceFile,
    drive: Option<&str>,
) -> Result<Result<FoundDrive, TraceExclusion>, ValidateError> {
    let reader =
        TraceReader::open(&trace.path, &TraceOptions::default()).map_err(ValidateError::Trace)?;
    let format = reader.format().name;
    if format != FORMAT {
        return Ok(Err(TraceExclusion::Format { format }));
    }
    match find_drive(trace, drive) {
        Err(ValidateError::NoDrive { beside, name, .. }) => {
            Ok(Err(TraceExclusion::NoDrive { beside, name }))
        }
        Err(ValidateError::AmbiguousDrive { candidates, .. }) => {
            Ok(Err(TraceExclusion::Ambiguous { candidates }))
        }
        found => found.map(Ok),
    }
}

/// Returns the drive on which `trace` was measured. The rules are tried in this order:
///
/// 1. The drive that the user `said`: a name of the library, or a file.
/// 2. The drive described beside the trace (see [`model_beside`]).
/// 3. The only drive of the library whose name or title has the parts of the trace's name, in
///    order: `ibm18es` means `ibm-ultrastar-18es`.
///
/// If a drive is also described as measured (`<drive>-measured`), that description is taken. Of
/// several drives, the drive whose name ends like the trace's is taken.
///
/// # Errors
/// If the description is unusable, or there is none, or more than one.
pub fn find_drive(trace: &TraceFile, said: Option<&str>) -> Result<FoundDrive, ValidateError> {
    if let Some(name) = said {
        return load(name);
    }
    if let Some(found) = model_beside(&trace.path)? {
        return Ok(found);
    }
    match named_like(&trace.name, &library()?).as_slice() {
        [only] => load(only),
        [] => {
            let beside = BESIDE.map(|extension| format!("`{}.{extension}`", trace.name));
            Err(ValidateError::NoDrive {
                trace: trace.path.display().to_string(),
                beside: format!("{} beside it", beside.join(" or ")),
                name: trace.name.clone(),
            })
        }
        several => Err(ValidateError::AmbiguousDrive {
            trace: trace.path.display().to_string(),
            candidates: several.join(" or --drive "),
        }),
    }
}

/// Returns the drive described beside the trace at `path`. For `X.trace` this is `X.toml`, `X.parv`
/// or `X.diskspecs`. Returns `None` if there is no such file.
///
/// # Errors
/// If the description is unusable.
pub fn model_beside(path: &Path) -> Result<Option<FoundDrive>, ValidateError> {
    let trace = TraceFile::new(path);
    let description = |extension| path.with_file_name(format!("{}.{extension}", trace.name));
    match BESIDE
        .into_iter()
        .map(description)
        .find(|description| description.is_file())
    {
        Some(description) => load(utf8(&description)?).map(Some),
        None => Ok(None),
    }
}

/// Returns the parameter file of DiskSim beside the trace at `path`.
pub(crate) fn parameters_beside(path: &Path) -> Option<PathBuf> {
    let trace = TraceFile::new(path);
    let description = |extension| path.with_file_name(format!("{}.{extension}", trace.name));
    ["parv", "diskspecs"]
        .into_iter()
        .map(description)
        .find(|description| description.is_file())
}

fn load(name: &str) -> Result<FoundDrive, ValidateError> {
    Ok(FoundDrive {
        name: name.to_owned(),
        model: drives::load(name)?,
    })
}

fn utf8(path: &Path) -> Result<&str, StackError> {
    path.to_str().ok_or_else(|| {
        StackError::whole(
            path.display().to_string(),
            "the file's name is not UTF-8; rename it, or name the drive with --drive",
        )
    })
}

/// Returns the names and titles of the library's drives.
fn library() -> Result<Vec<(&'static str, String)>, ValidateError> {
    // Without the checks of a drive, because only the title is needed.
    let titled = |name| Ok((name, drives::load_unchecked(name)?.config().title.clone()));
    drives::names().into_iter().map(titled).collect()
}

/// Ending of the name of a drive description with measured values.
const MEASURED: &str = "-measured";

/// Least number of letters of a name. A shorter name leaves too many drives.
const NAME_LETTERS_MIN: usize = 4;

/// Returns the drives to which a trace called `name` could belong, by the best rule that separates
/// the drives.
fn named_like<'a>(name: &str, library: &[(&'a str, String)]) -> Vec<&'a str> {
    let wanted = parts(name);
    if wanted.iter().map(String::len).sum::<usize>() < NAME_LETTERS_MIN {
        return Vec::new();
    }
    let like = |text: &str| holds_in_order(&parts(text), &wanted);
    let named = library
        .iter()
        .filter(|(drive, title)| like(drive) || like(title));
    let mut named: Vec<&str> = named.map(|(drive, _)| *drive).collect();
    let all = named.clone();
    let is_measured = |drive: &str| {
        all.iter()
            .any(|other| other.strip_suffix(MEASURED) == Some(drive))
    };
    named.retain(|drive| !is_measured(drive));
    let same_end =
        |drive: &str| parts(drive.strip_suffix(MEASURED).unwrap_or(drive)).ends_with(&wanted);
    only(&named, same_end).map_or(named, |drive| vec![drive])
}

/// Returns the name of `names` that is `chosen`, if there is exactly one.
fn only<'a>(names: &[&'a str], chosen: impl Fn(&str) -> bool) -> Option<&'a str> {
    let mut chosen = names.iter().filter(|name| chosen(name));
    chosen.next().filter(|_| chosen.next().is_none()).copied()
}

/// Splits `text` into runs of letters and of digits, in lower case: `Cheetah9LP` is cheetah, 9, lp.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() {
            let goes_on = before.is_ascii_alphanumeric()
                && before.is_ascii_digit() == letter.is_ascii_digit();
            match parts.last_mut().filter(|_| goes_on) {
                Some(part) => part.push(letter.to_ascii_lowercase()),
                None => parts.push(letter.to_ascii_lowercase().to_string()),
            }
        }
        before = letter;
    }
    parts
}

/// Returns true if all of `wanted` are in `parts`, in this order.
fn holds_in_order(parts: &[String], wanted: &[String]) -> bool {
    let mut parts = parts.iter();
    wanted.iter().all(|wanted| parts.any(|part| part == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "R Miss 0 8 9000.0 100.0\nW Hit 800 8 500.0 100.0\n";

    fn drive_of(name: &str) -> Result<FoundDrive, ValidateError> {
        find_drive(&TraceFile::new(Path::new(name)), None)
    }

    #[test]
    fn a_trace_is_named_without_its_suffixes() {
        let name = |path: &str| TraceFile::new(Path::new(path)).name;
        assert_eq!(name("valid/cheetah9LP.trace.gz"), "cheetah9LP");
        assert_eq!(name("a.b.trace"), "a.b");
        assert_eq!(name("other.txt"), "other.txt");
    }

    fn named(name: &str) -> Vec<&'static str> {
        let library = [
            ("ibm-ultrastar-18es", "IBM DNES-309170W"),
            ("maxtor-atlas-10k-v", "Maxtor Atlas 10K V"),
            ("quantum-atlas-10k", "Quantum Atlas 10K 9.1 GB"),
            ("seagate-barracuda-4lp", "Seagate ST32171W"),
            ("seagate-cheetah-9lp", "Seagate Cheetah 9LP ST39102LW"),
            (
                "seagate-cheetah-9lp-measured",
                "Seagate Cheetah 9LP ST39102LW, as measured",
            ),
        ];
        named_like(name, &library.map(|(name, title)| (name, title.to_owned())))
    }

    #[test]
    fn the_library_is_searched_by_the_parts_of_name_and_title() {
        assert_eq!(named("ibm18es"), ["ibm-ultrastar-18es"]);
        assert_eq!(named("Barracuda"), ["seagate-barracuda-4lp"]);
        assert_eq!(named("st32171w"), ["seagate-barracuda-4lp"]);
        assert!(named("ultrastar").len() == 1 && named("ultrastar36").is_empty());
        assert!(
            named("9lp").is_empty() && named("...").is_empty(),
            "too short to mean one drive"
        );
    }

    #[test]
    fn of_several_drives_the_measured_or_the_equally_ending_one_is_taken() {
        assert_eq!(named("cheetah9LP"), ["seagate-cheetah-9lp-measured"]);
        assert_eq!(named("atlas10k"), ["quantum-atlas-10k"]);
        assert_eq!(
            named("seagate"),
            ["seagate-barracuda-4lp", "seagate-cheetah-9lp-measured"]
        );
        assert_eq!(named("atlas"), ["maxtor-atlas-10k-v", "quantum-atlas-10k"]);
    }

    #[test]
    fn a_drive_that_is_not_known_is_an_error_that_says_where_it_was_sought() {
        let error = drive_of("quantum_fireball.trace").unwrap_err().to_string();
        assert!(
            error.contains("`quantum_fireball.toml` or `quantum_fireball.parv`"),
            "{error}"
        );
        assert!(error.contains("--drive"), "{error}");
        assert!(matches!(
            drive_of("...trace").unwrap_err(),
            ValidateError::NoDrive { .. }
        ));
    }

    #[test]
    fn more_than_one_drive_is_an_error_that_names_them() {
        let error = drive_of("seagate.trace")
            .map(|found| found.name)
            .unwrap_err()
            .to_string();
        assert!(error.contains("--drive seagate-cheetah-9lp"), "{error}");
    }

    #[test]
    fn a_description_beside_the_trace_goes_before_the_library() {
        let folder = tempfile::tempdir().unwrap();
        let library = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../drives/ibm-ultrastar-xp-4.51gb.toml"
        );
        let beside = folder.path().join("cheetah9LP.toml");
        fs::copy(library, &beside).unwrap();
        let path = folder.path().join("cheetah9LP.trace.xz");
        let found = find_drive(&TraceFile::new(&path), None).unwrap();
        assert_eq!(found.name, beside.display().to_string());
        assert!(found.model.config().title.contains("Ultrastar"));
        let said = find_drive(&TraceFile::new(&path), Some("seagate-cheetah-9lp")).unwrap();
        assert_eq!(said.name, "seagate-cheetah-9lp");
    }

    #[test]
    fn a_folder_gives_its_validation_traces_and_says_what_it_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("cheetah9LP.trace", ROWS),
            ("unknown.trace", ROWS),
            ("other.trace", "0.5 0 100 8 1\n0.7 0 300 8 0\n"),
            ("readme.txt", "no trace"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let traces = find_traces(folder.path(), None).unwrap();
        let names: Vec<&str> = traces
            .found
            .iter()
            .map(|(trace, _)| trace.name.as_str())
            .collect();
        assert_eq!(names, ["cheetah9LP"]);
        let [other, unknown] = traces.skipped.as_slice() else {
            panic!("{:?}", traces.skipped)
        };
        assert!(
            other.reason.contains("not a validation trace"),
            "{}",
            other.reason
        );
        assert!(
            unknown.reason.contains("no drive is known"),
            "{}",
            unknown.reason
        );
    }

    #[test]
    fn one_bad_disk_does_not_void_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("cheetah9LP.trace", ROWS),
            ("bad.trace", ROWS),
            ("bad.parv", "disksim_disk D {"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let traces = find_traces(folder.path(), None).unwrap();
        let names: Vec<&str> = traces
            .found
            .iter()
            .map(|(trace, _)| trace.name.as_str())
            .collect();
        assert_eq!(names, ["cheetah9LP"]);
        let [failed] = traces.failed.as_slice() else {
            panic!("{:?}", traces.failed)
        };
        assert_eq!(failed.trace.name, "bad");
        assert!(
            failed.error.to_string().contains("bad.parv"),
            "{}",
            failed.error
        );
    }

    #[test]
    fn of_a_trace_that_is_there_plain_and_packed_one_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cheetah9LP.trace.gz", "cheetah9LP.trace"] {
            fs::write(folder.path().join(name), ROWS).unwrap();
        }
        let traces = find_traces(folder.path(), None).unwrap();
        assert_eq!(traces.found.len(), 1);
        assert_eq!(
            traces.found[0].0.path,
            folder.path().join("cheetah9LP.trace")
        );
    }

    #[test]
    fn a_folder_without_traces_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            find_traces(folder.path(), None),
            Err(ValidateError::NoTraces { .. })
        ));
        assert!(matches!(
            find_traces(&folder.path().join("gone"), None),
            Err(ValidateError::Read { .. })
        ));
    }
}
