//! The store of results: Parquet files in one folder for each build.
//!
//! `<results>/<version>/` holds the results of one build. Results of other builds stand beside it
//! and are left alone. Each finished point becomes a file of its own at once. The file appears
//! completely or not at all. If there are many files, and at the end of a run, they are merged into
//! one. A row is one number of one run:
//!
//! | column | contents |
//! |---|---|
//! | `digest` | digest of stack, drives and trace; title and seed do not count |
//! | `seed` | seed of the run |
//! | `settings` | the stack file and the keys that were set, for readers |
//! | `metric`, `value`, `half_width` | a number and half the width of its 95 % interval within the run |
//! | `check` | a check sum of the row; a mismatch is an error |
//!
//! A study is no part of the key, so studies share the results of common points.

use crate::StudyError;
use crate::metrics::RunNumber;
use crate::task::{RunKey, Task};
use crate::version::VERSION;
use fullstroke_table::{ColumnType, Schema, TableError, TableReader, TableWriter};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of single-point files at which they are merged into one.
const FILES_MAX: usize = 256;

/// Number of rows read at a time.
const BATCH: usize = 8192;

/// Number of times that a reader starts again because another process merged the files during the
/// read.
const ATTEMPTS: usize = 10;

/// The numbers of many runs.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Metrics with their numbers.
    names: HashMap<String, usize>,
    runs: HashMap<RunKey, BTreeMap<usize, (f64, Option<f64>)>>,
}

/// The results of this build.
#[derive(Clone, Debug)]
pub struct Store {
    results: PathBuf,
    folder: PathBuf,
}

/// The only writer of results; a lock excludes others.
#[derive(Debug)]
pub struct StoreWriter {
    folder: PathBuf,
    /// Start time, which makes the names of this run's files unique.
    began: u128,
    count: usize,
    single: Vec<PathBuf>,
    _lock: File,
}

impl Results {
    /// Returns a number of a run, and half the width of its interval within the run.
    pub fn get(&self, key: &RunKey, metric: &str) -> Option<(f64, Option<f64>)> {
        self.runs.get(key)?.get(self.names.get(metric)?).copied()
    }

    /// Returns true if a run has all these metrics.
    pub fn has(&self, key: &RunKey, metrics: &[String]) -> bool {
        self.runs.contains_key(key) && metrics.iter().all(|metric| self.get(key, metric).is_some())
    }

    fn add(&mut self, key: RunKey, metric: &str, value: f64, half_width: Option<f64>) {
        let known = self.names.get(metric).copied();
        let name = known.unwrap_or_else(|| {
            let new = self.names.len();
            self.names.insert(metric.to_owned(), new);
            new
        });
        self.runs
            .entry(key)
            .or_default()
            .insert(name, (value, half_width));
    }
}

impl Store {
    /// Opens the results of this build below the folder `results`. The folder need not exist.
    pub fn new(results: &Path) -> Store {
        Store {
            results: results.to_owned(),
            folder: results.join(VERSION),
        }
    }

    /// Returns true if this build has no results here.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn is_empty(&self) -> Result<bool, StudyError> {
        Ok(files(&self.folder)?.is_empty())
    }

    /// Reads the existing results of these runs.
    ///
    /// # Errors
    /// An unreadable file.
    pub fn read(&self, wanted: &BTreeSet<RunKey>) -> Result<Results, StudyError> {
        let mut attempt = 1;
        loop {
            match self.read_files(wanted) {
                // Another process has merged the files since they were listed, so the read starts
                // again.
                Err(StudyError::Table(TableError::Read { source, .. }))
                    if source.kind() == ErrorKind::NotFound && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    fn read_files(&self, wanted: &BTreeSet<RunKey>) -> Result<Results, StudyError> {
        let mut results = Results::default();
        for file in files(&self.folder)? {
            read_rows(&file, |row| {
                let key = (row.digest.to_owned(), row.seed);
                if wanted.contains(&key) {
                    results.add(key, row.metric, row.value, row.half_width);
                }
                Ok(())
            })?;
        }
        Ok(results)
    }

    /// Returns the number of other builds with results here.
    pub fn other_builds(&self) -> usize {
        let entries = fs::read_dir(&self.results).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.path().is_dir() && entry.file_name() != VERSION)
            .count()
    }

    /// Becomes the writer of results until the writer is dropped or the process ends. Unfinished
    /// files of an interrupted run are removed.
    ///
    /// # Errors
    /// If another process is the writer, or if the folder cannot be made.
    pub fn writer(&self) -> Result<StoreWriter, StudyError> {
        let host = |what, path: &Path| {
            let path = path.to_owned();
            move |error| StudyError::host(what, &path, error)
        };
        fs::create_dir_all(&self.folder).map_err(host("make the folder", &self.folder))?;
        let path = self.folder.join("lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let lock = lock.map_err(host("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StudyError::InUse {
                    folder: self.folder.clone(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(StudyError::host("lock", &path, error)),
        }
        // Only after the lock was taken: before, a partial file might belong to a running writer.
        for file in entries(&self.folder)?
            .iter()
            .filter(|file| ends(file, "partial"))
        {
            fs::remove_file(file).map_err(host("remove", file))?;
        }
        let single = files(&self.folder)?
            .into_iter()
            .filter(|file| is_single(file))
            .collect();
        let began = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        Ok(StoreWriter {
            folder: self.folder.clone(),
            began,
            count: 0,
            single,
            _lock: lock,
        })
    }
}

impl StoreWriter {
    /// Stores the numbers of one run. When the function returns, the numbers are on the medium.
    ///
    /// # Errors
    /// If the numbers cannot be written.
    pub fn add(&mut self, task: &Task, kept: &[RunNumber]) -> Result<(), StudyError> {
        let settings = format!("{} {}", task.stack.display(), task.set.join(" "));
        let file = self.name("point");
        let mut table = TableWriter::create(&file, &schema())?;
        for number in kept {
            let row = StoredNumber {
                digest: &task.key.0,
                seed: task.key.1,
                settings: &settings,
                metric: &number.metric,
                value: number.value,
                half_width: number.half_width,
            };
            row.write(&mut table)?;
        }
        self.finish(table)?;
        self.single.push(file);
        if self.single.len() >= FILES_MAX {
            self.merge()
        } else {
            Ok(())
        }
    }

    /// Merges the files of single points into one.
    ///
    /// # Errors
    /// If a file cannot be read, or if the merged file cannot be written. Then no result is lost.
    pub fn merge(&mut self) -> Result<(), StudyError> {
        if self.single.len() < 2 {
            return Ok(());
        }
        let mut table = TableWriter::create(&self.name("points"), &schema())?;
        for file in &self.single {
            read_rows(file, |row| Ok(row.write(&mut table)?))?;
        }
        self.finish(table)?;
        // The single files are removed after the merged file is complete. In between, each result
        // exists twice with the same numbers, which is harmless; the other order could lose
        // results.
        for file in std::mem::take(&mut self.single) {
            fs::remove_file(&file).map_err(|error| StudyError::host("remove", &file, error))?;
        }
        Ok(())
    }

    /// Finishes a table and makes its file and its name durable.
    fn finish(&self, table: TableWriter) -> Result<(), StudyError> {
        table.finish()?;
        // The sync of a file does not make its directory entry durable (fsync(2)).
        let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        folder.map_err(|error| StudyError::host("write", &self.folder, error))
    }

    fn name(&mut self, kind: &str) -> PathBuf {
        self.count += 1;
        self.folder
            .join(format!("{kind}-{}-{:06}.parquet", self.began, self.count))
    }
}

/// One number of one run.
struct StoredNumber<'a> {
    digest: &'a str,
    seed: u64,
    settings: &'a str,
    metric: &'a str,
    value: f64,
    half_width: Option<f64>,
}

impl StoredNumber<'_> {
    /// Returns the first eight bytes of the SHA-256 of all other columns.
    fn check(&self) -> u64 {
        let mut hash = Sha256::new();
        for text in [self.digest, self.settings, self.metric] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        hash.update(self.seed.to_le_bytes());
        hash.update(self.value.to_bits().to_le_bytes());
        hash.update([u8::from(self.half_width.is_some())]);
        hash.update(self.half_width.unwrap_or_default().to_bits().to_le_bytes());
        hash.finalize()
            .iter()
            .take(8)
            .fold(0, |check, &byte| check << 8 | u64::from(byte))
    }

    fn write(&self, table: &mut TableWriter) -> Result<(), TableError> {
        table.text(0, self.digest);
        table.u64(1, self.seed);
        table.text(2, self.settings);
        table.text(3, self.metric);
        table.f64(4, self.value);
        table.optional_f64(5, self.half_width);
        table.u64(6, self.check());
        table.end_row()
    }
}

fn schema() -> Schema {
    Schema::new()
        .column("digest", ColumnType::Text)
        .column("seed", ColumnType::U64)
        .column("settings", ColumnType::Text)
        .column("metric", ColumnType::Text)
        .column("value", ColumnType::F64)
        .optional("half_width", ColumnType::F64)
        .column("check", ColumnType::U64)
        .metadata("version", VERSION)
}

fn read_rows(
    file: &Path,
    mut each: impl FnMut(&StoredNumber<'_>) -> Result<(), StudyError>,
) -> Result<(), StudyError> {
    let damaged = |error| match error {
        // Another process may have merged and removed the file.
        TableError::Read { ref source, .. } if source.kind() == ErrorKind::NotFound => {
            StudyError::Table(error)
        }
        error => StudyError::Damaged {
            file: file.to_owned(),
            problem: error.to_string(),
        },
    };
    let mut reader = TableReader::open(file, &schema()).map_err(damaged)?;
    while let Some(batch) = reader.next_batch(BATCH).map_err(damaged)? {
        for row in 0..batch.rows() {
            let numbers = StoredNumber {
                digest: batch.text(0, row),
                seed: batch.u64(1, row),
                settings: batch.text(2, row),
                metric: batch.text(3, row),
                value: batch.f64(4, row),
                half_width: batch.optional_f64(5, row),
            };
            if numbers.check() != batch.u64(6, row) {
                return Err(StudyError::Damaged {
                    file: file.to_owned(),
                    problem: "a row does not match its check sum".into(),
                });
            }
            each(&numbers)?;
        }
    }
    Ok(())
}

/// Returns the results files of a folder, in the order of their names; empty if there is no folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, StudyError> {
    Ok(entries(folder)?
        .into_iter()
        .filter(|file| ends(file, "parquet"))
        .collect())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, StudyError> {
    let failed = |error| StudyError::host("list the folder", folder, error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(failed))
        .collect::<Result<Vec<_>, _>>()?;
    // The order of a folder depends on the file system, and reads must not.
    paths.sort();
    Ok(paths)
}

fn ends(file: &Path, ending: &str) -> bool {
    file.extension()
        .is_some_and(|extension| extension == ending)
}

fn is_single(file: &Path) -> bool {
    file.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("point-"))
}
