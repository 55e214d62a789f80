//! Programs as workloads: their keys, and the file that the keys name.

use super::{StartedAs, Workload, WorkloadError, WorkloadKind, WorkloadReader};
use crate::StackError;
use crate::folder::Folder;
use fullstroke_contract::registry::{Keys, PolicyEntry};
use fullstroke_contract::{ConfigError, Source};
use fullstroke_programs::{ProgramError, REGISTRY, Recipe};
use fullstroke_units::{Sectors, Seed};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::path::Path;

/// Returns a kind of workload for each program.
pub(super) fn entries() -> impl Iterator<Item = PolicyEntry<WorkloadKind>> {
    REGISTRY.iter().map(|entry| PolicyEntry {
        name: entry.name,
        summary: entry.summary,
        schema: entry.schema,
        build: WorkloadKind {
            read: WorkloadReader::Program(entry),
            tables: &[],
            alone: false,
            example: entry.build.example,
        },
    })
}

/// A program as described by its keys and its file.
struct Described {
    kind: &'static str,
    recipe: Box<dyn Recipe>,
    file: Option<Named>,
}

/// The file that a program's keys name.
struct Named {
    key: &'static str,
    path: String,
    /// Digest of the contents.
    digest: String,
}

/// Reads the keys and the file that they name.
pub(super) fn read(
    entry: &PolicyEntry<fullstroke_programs::ProgramKind>,
    keys: &Keys,
    folder: &Folder,
) -> Result<Box<dyn Workload>, WorkloadError> {
    let named = entry
        .build
        .file
        .and_then(|key| Some((key, keys.get(key)?.as_str()?)));
    let text = named
        .map(|(_, name)| read_text(folder, &folder.join(name)))
        .transpose()?;
    let recipe = fullstroke_programs::ProgramKind::recipe(entry, keys, text.as_deref());
    let recipe = recipe.map_err(|error| match (error, named) {
        (ProgramError::Key(error), _) => WorkloadError::Key(error),
        (ProgramError::Line(line, message), Some((_, name))) => WorkloadError::File(StackError {
            line: Some(line as usize),
            ..StackError::whole(folder.join(name).display().to_string(), message)
        }),
        (error, None) => WorkloadError::Key(ConfigError::new("", error.to_string())),
    })?;
    let file = named.zip(text).map(|((key, name), text)| Named {
        key,
        path: folder.join(name).display().to_string(),
        digest: short(&text),
    });
    Ok(Box::new(Described {
        kind: entry.name,
        recipe,
        file,
    }))
}

fn read_text(folder: &Folder, path: &Path) -> Result<String, WorkloadError> {
    let bytes = folder.files().read(path);
    let bytes = bytes.map_err(|error| {
        StackError::whole(
            path.display().to_string(),
            format!("cannot be read: {error}"),
        )
    })?;
    // Names in a recording may have any encoding.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Returns sixteen hexadecimal digits: the start of the SHA-256 hash of a text.
fn short(text: &str) -> String {
    Sha256::digest(text)
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl Workload for Described {
    fn source(&self, _: Sectors, _: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        Err(ConfigError::new("kind", "a program works on files: add [host.files]").into())
    }

    fn program(&self, seed: Seed) -> Result<Option<StartedAs>, ConfigError> {
        let file = self.file.as_ref().map(|file| file.path.clone());
        Ok(Some(StartedAs {
            kind: self.kind,
            file,
            program: self.recipe.program(seed),
        }))
    }

    /// The contents of the file count, not its path.
    fn identify(&self, keys: &mut Value) {
        if let Some(file) = &self.file {
            keys[file.key] = json!(file.digest);
        }
    }
}
