//! Stacks with names.

use crate::{LabError, Vary};
use fullstroke_stack::{Overrides, Stack};
use std::path::{Path, PathBuf};

/// A stack that takes part in a comparison.
pub struct Candidate {
    /// The name in results: the stack's, and the values that were varied.
    pub name: String,
    /// What is run.
    pub stack: Stack,
}

/// Every stack file at every combination of the varied keys, in this order.
/// Where two files have one name, the files' paths tell them apart.
///
/// # Errors
/// That of the first stack that cannot be used.
pub fn candidates(
    files: &[PathBuf],
    overrides: &Overrides,
    varied: &[Vary],
) -> Result<Vec<Candidate>, LabError> {
    let combinations = Vary::combinations(varied);
    let mut candidates = Vec::with_capacity(files.len() * combinations.len());
    for file in files {
        let alike = files.iter().filter(|other| other.file_stem() == file.file_stem()).count();
        for combination in &combinations {
            candidates.push(candidate(file, overrides, combination, alike > 1)?);
        }
    }
    Ok(candidates)
}

fn candidate(
    file: &Path,
    overrides: &Overrides,
    combination: &[String],
    by_path: bool,
) -> Result<Candidate, LabError> {
    let mut overrides = overrides.clone();
    overrides.set.extend_from_slice(combination);
    let stack = Stack::load(file, &overrides)?;
    let name = if by_path { file.display().to_string() } else { stack.name().to_owned() };
    let name = combination.iter().fold(name, |name, assignment| format!("{name} {assignment}"));
    Ok(Candidate { name, stack })
}
