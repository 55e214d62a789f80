//! A job file of fio as a workload.

use super::{StartedAs, Workload, WorkloadError, WorkloadKind, WorkloadReader};
use crate::StackError;
use crate::folder::Folder;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_contract::{ConfigError, Source};
use fullstroke_fio::{FioError, FioProgram, FioSource, IncludedFile, JobSet, JobSurroundings};
use fullstroke_trace::{FileKind, FileSource};
use fullstroke_units::{Sectors, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) const ENTRY: PolicyEntry<WorkloadKind> = PolicyEntry {
    name: "fio",
    summary: "a job file of fio's. Its options: [fio.md](fio.md)",
    schema: schema_of::<FioConfig>,
    build: WorkloadKind {
        read: WorkloadReader::Itself(read_job_file),
        tables: &[],
        alone: true,
        example: "path = \"samples/jobs/mix-70-30.fio\"",
    },
};

/// A job file of fio as a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FioConfig {
    /// Path of the job file, relative to the stack file. The file may hold a command line of fio.
    path: Option<PathBuf>,
    /// Text of a job file, or a command line of fio such as `fio --name=a --rw=randread`, in place
    /// of `path`.
    text: Option<String>,
    /// Number of requests after which the workload ends.
    requests: Option<u64>,
}

/// The contents of a job file.
struct JobFile {
    jobs: JobSet,
    requests: Option<u64>,
    file: String,
}

/// Reads the keys and the job file. `${NAME}` in the file refers to the variables of the
/// source of files: the environment of this process. `$ncpus` and `$mb_memory` refer to this machine.
fn read_job_file(keys: &Keys, folder: &Folder) -> Result<Box<dyn Workload>, WorkloadError> {
    let config: FioConfig = read(keys)?;
    let (file, text) = match (config.path, config.text) {
        (Some(path), None) => {
            let path = folder.join(&path);
            let file = path.display().to_string();
            let text = folder
                .files()
                .read_text(&path)
                .map_err(|error| StackError::whole(&file, format!("cannot be read: {error}")))?;
            (file, text)
        }
        (None, Some(text)) if text.trim().is_empty() => {
            let message = "found an empty text; give a job file, or arguments of fio behind --, as in --fio -- --name=a --rw=randread --bs=4k --size=1g";
            return Err(ConfigError::new("text", message).into());
        }
        (None, Some(text)) => ("fio".to_owned(), text),
        (path, _) => {
            let found = if path.is_some() { "both" } else { "neither" };
            let message = format!(
                "found {found} of `path` and `text`; give the path of a job file, or the text of one"
            );
            return Err(ConfigError::new("path", message).into());
        }
    };
    let environment = folder.files().variables();
    let around = JobSurroundings {
        include: &|from, name| included(folder.files(), from, name),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        memory_mb: memory_mb(),
        ..JobSurroundings::new(&environment)
    };
    let jobs = JobSet::parse_in(&file, &text, &around).map_err(at_its_line)?;
    Ok(Box::new(JobFile {
        jobs,
        requests: config.requests,
        file,
    }))
}

/// Reads an included file. As in fio, the name is relative to the current folder, or else to the
/// folder of the including file (`__parse_jobs_ini` in fio's `init.c`).
fn included(files: &FileSource, from: &str, name: &str) -> Result<IncludedFile, String> {
    let beside = Path::new(from)
        .parent()
        .map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
    let path = Some(PathBuf::from(name))
        .filter(|path| files.kind(path) != FileKind::Missing)
        .unwrap_or(beside);
    let name = path.display().to_string();
    match files.read_text(&path) {
        Ok(text) => Ok(IncludedFile { name, text }),
        Err(error) => Err(format!("{name} cannot be read: {error}")),
    }
}

/// Returns the memory of this machine in MiB, the value of `$mb_memory`. Without `/proc/meminfo`:
/// 1024.
fn memory_mb() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| {
        rest.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    kib.map_or(1024, |kib| kib / 1024)
}

fn at_its_line(error: FioError) -> StackError {
    StackError {
        file: error.file,
        line: error.line,
        key: error.option,
        message: error.message,
    }
}

impl Workload for JobFile {
    fn source(&self, capacity: Sectors, seed: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        let source =
            FioSource::new(&self.jobs, capacity, seed, self.requests).map_err(at_its_line)?;
        Ok(Box::new(source))
    }

    /// Returns a program if the jobs work on files.
    fn program(&self, seed: Seed) -> Result<Option<StartedAs>, ConfigError> {
        if !self.jobs.is_of_files() {
            return Ok(None);
        }
        let program = FioProgram::new(&self.jobs, seed, self.requests);
        let program = program.map_err(|error| ConfigError::new("workload", error.to_string()))?;
        Ok(Some(StartedAs {
            kind: ENTRY.name,
            file: Some(self.file.clone()),
            program: Box::new(program),
        }))
    }

    /// The jobs count, not their path or the form of their text.
    fn identify(&self, keys: &mut Value) {
        keys["path"] = json!(self.jobs.description());
        if let Some(keys) = keys.as_object_mut() {
            keys.remove("text");
        }
    }

    fn is_job_file(&self) -> bool {
        true
    }
}
