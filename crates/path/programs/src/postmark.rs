//! PostMark: many small files, as on a mail server.
//!
//! J. Katcher, "PostMark: A New File System Benchmark", NetApp TR-3022 (1997); version 1.51 of 14
//! August 2001. First, PostMark creates a pool of files. Each transaction reads a file or appends
//! to one, and creates a file or deletes one. At the end, PostMark deletes the remaining files.
//!
//! | file | content |
//! |---|---|
//! | `postmark/settings.rs` | settings of a run |
//! | `postmark/language.rs` | configuration language |
//! | `postmark/instance.rs` | one process |
//! | `postmark/table.rs` | the existing files |
//! | `postmark/report.rs` | the report |

mod instance;
mod language;
mod report;
mod settings;
mod table;

pub use settings::Style;

use crate::program::{
    InitialFile, Program, ProgramAction, ProgramError, ProgramKind, ProgramReport, ProgramTurn,
    Recipe,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_units::{Bytes, Seed};
use instance::{Instance, InstanceSite};
use language::Configuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{
    FILES_MAX, LOCATIONS_MAX, PostmarkSettings, SIZE_MAX, SUBDIRECTORIES_MAX, TRANSACTIONS_MAX,
    bias, location, within,
};
use std::sync::Arc;

const INSTANCES_MAX: u32 = 1000;
const BUFFER_MAX: u64 = 1 << 20;

/// Keys of PostMark 1.51. A key for a setting of PostMark replaces the setting of the file in every
/// run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// File with a configuration in PostMark's own language, one command per line. Default: one run
    /// with PostMark's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Number of processes. If there are several, each has its own top-level directory
    /// (`postmark0`, `postmark1`, …). Default 1.
    #[serde(default = "one")]
    pub instances: u32,
    /// Source of random numbers. With `run` (default), PostMark's seed and the seed of the run
    /// count; instances and repetitions differ. With `file`, only PostMark's seed counts; names,
    /// lengths and order are then the same as in PostMark 1.51, in each instance.
    #[serde(default)]
    pub draws: Draws,
    /// Buffer of a stream of the C library, for `buffering`: `st_blksize` of the file system.
    /// Default 4KiB.
    #[serde(default = "buffer")]
    pub stdio: Bytes,
    /// `set number`: number of files in the initial pool. PostMark's default is 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// `set size`: length of the shortest file. PostMark's default is 500 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_low: Option<Bytes>,
    /// `set size`: length of the longest file. PostMark's default is 10,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_high: Option<Bytes>,
    /// `set transactions`: number of transactions. PostMark's default is 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    /// `set subdirectories`: number of subdirectories in each location. PostMark's default is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subdirectories: Option<u64>,
    /// `set location`: directories, each followed by its weight unless the weight is 1: `["mail 3",
    /// "news"]`. Default: the root, or the instance's own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Vec<String>>,
    /// `set read`: block size of reads. PostMark's default is 512 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Bytes>,
    /// `set write`: block size of writes. PostMark's default is 512 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Bytes>,
    /// `set buffering`: true to use streams of the C library. PostMark's default is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffering: Option<bool>,
    /// `set bias read`: number of reads out of 10 reads and appends; -1 for neither. PostMark's
    /// default is 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_read: Option<i64>,
    /// `set bias create`: number of creations out of 10 creations and deletions; -1 for neither.
    /// PostMark's default is 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_create: Option<i64>,
    /// `set seed`: seed of the random numbers. PostMark's default is 42.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// `set report`: style of the report. PostMark's default is verbose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Style>,
}

/// Source of random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Draws {
    /// The seed of the run, PostMark's seed, and the number of the instance.
    #[default]
    Run,
    /// PostMark's seed only.
    File,
}

fn one() -> u32 {
    1
}

fn buffer() -> Bytes {
    Bytes(4096)
}

pub(crate) const ENTRY: PolicyEntry<ProgramKind> = PolicyEntry {
    name: "postmark",
    summary: "PostMark 1.51: a pool of small files that are created, read, appended to and deleted",
    schema: schema_of::<Config>,
    build: ProgramKind {
        file: Some("file"),
        read: read_recipe,
        example: "number = 200\ntransactions = 500",
    },
};

fn read_recipe(keys: &Keys, text: Option<&str>) -> Result<Box<dyn Recipe>, ProgramError> {
    let config: Config = read(keys)?;
    let mut configuration = match text {
        Some(text) => language::parse(text)?,
        None => Configuration {
            runs: vec![PostmarkSettings::default()],
            notes: Vec::new(),
        },
    };
    for run in &mut configuration.runs {
        // Checked after keys have replaced settings, because a key and the file may contradict each
        // other.
        config.overrule(run)?;
        config.check(run)?;
    }
    Ok(Box::new(PostmarkProgram {
        runs: configuration.runs.into(),
        notes: configuration.notes.into(),
        instances: config.instances,
        draws: config.draws,
        stdio: config.stdio.0,
    }))
}

/// Sets a setting from a key.
fn take(
    key: &str,
    value: Option<u64>,
    low: u64,
    high: u64,
    setting: &mut u32,
) -> Result<(), ConfigError> {
    if let Some(found) = value {
        *setting = within(found, low, high).map_err(|message| ConfigError::new(key, message))?;
    }
    Ok(())
}

impl Config {
    /// Replaces settings of the file by keys.
    fn overrule(&self, run: &mut PostmarkSettings) -> Result<(), ConfigError> {
        let bytes = |size: Option<Bytes>| size.map(|size| size.0);
        take("number", self.number, 1, FILES_MAX, &mut run.number)?;
        take(
            "size_low",
            bytes(self.size_low),
            1,
            SIZE_MAX,
            &mut run.size_low,
        )?;
        take(
            "size_high",
            bytes(self.size_high),
            1,
            SIZE_MAX,
            &mut run.size_high,
        )?;
        take(
            "transactions",
            self.transactions,
            1,
            TRANSACTIONS_MAX,
            &mut run.transactions,
        )?;
        take(
            "subdirectories",
            self.subdirectories,
            0,
            SUBDIRECTORIES_MAX,
            &mut run.subdirectories,
        )?;
        take("read", bytes(self.read), 1, SIZE_MAX, &mut run.read)?;
        take("write", bytes(self.write), 1, SIZE_MAX, &mut run.write)?;
        take("seed", self.seed, 1, i32::MAX as u64, &mut run.seed)?;
        run.buffering = self.buffering.unwrap_or(run.buffering);
        run.style = self.report.unwrap_or(run.style);
        for (key, value, setting) in [
            ("bias_read", self.bias_read, &mut run.bias_read),
            ("bias_create", self.bias_create, &mut run.bias_create),
        ] {
            if let Some(found) = value {
                *setting = bias(found).map_err(|message| ConfigError::new(key, message))?;
            }
        }
        if let Some(places) = &self.location {
            let places = places
                .iter()
                .map(|place| location(&place.split_whitespace().collect::<Vec<_>>()));
            run.locations = places
                .collect::<Result<_, _>>()
                .map_err(|message| ConfigError::new("location", message))?;
        }
        Ok(())
    }

    /// Checks the keys together with the file.
    fn check(&self, run: &PostmarkSettings) -> Result<(), ConfigError> {
        let wrong = |key: &str, message: String| Err(ConfigError::new(key, message));
        let (low, high) = (run.size_low, run.size_high);
        if low > high {
            let key = if self.size_low.is_some() {
                "size_low"
            } else {
                "size_high"
            };
            return wrong(
                key,
                format!("found sizes from {low} to {high} bytes; expected low before high"),
            );
        }
        if self.instances == 0 || self.instances > INSTANCES_MAX {
            return wrong(
                "instances",
                format!("found {}; expected 1 to {INSTANCES_MAX}", self.instances),
            );
        }
        let files = u64::from(run.number) * u64::from(self.instances);
        // The tables of all instances are in memory at the same time.
        if files > FILES_MAX {
            let found = format!("found {} instances of {} files", self.instances, run.number);
            return wrong(
                "instances",
                format!("{found}; expected at most {FILES_MAX} files in all"),
            );
        }
        if run.locations.len() > LOCATIONS_MAX {
            let found = run.locations.len();
            return wrong(
                "location",
                format!("found {found}; expected at most {LOCATIONS_MAX}"),
            );
        }
        if self.stdio.0 == 0 || self.stdio.0 > BUFFER_MAX {
            return wrong(
                "stdio",
                format!("found {} bytes; expected 1B to 1MiB", self.stdio.0),
            );
        }
        Ok(())
    }
}

struct PostmarkProgram {
    runs: Arc<[PostmarkSettings]>,
    notes: Arc<[String]>,
    instances: u32,
    draws: Draws,
    stdio: u64,
}

impl Recipe for PostmarkProgram {
    fn program(&self, seed: Seed) -> Box<dyn Program> {
        let instances = (0..self.instances).map(|number| {
            let top = if self.instances > 1 {
                format!("postmark{number}/")
            } else {
                String::new()
            };
            Instance::new(InstanceSite {
                runs: self.runs.clone(),
                seed: (self.draws == Draws::Run).then(|| seed.of(&format!("postmark {number}"))),
                stdio: self.stdio,
                number,
                top,
            })
        });
        Box::new(Postmark {
            instances: instances.collect(),
            runs: self.runs.clone(),
            notes: self.notes.clone(),
        })
    }
}

struct Postmark {
    instances: Vec<Instance>,
    runs: Arc<[PostmarkSettings]>,
    notes: Arc<[String]>,
}

impl Program for Postmark {
    fn processes(&self) -> u32 {
        self.instances.len() as u32
    }

    fn laid_out(&self) -> Vec<InitialFile> {
        self.instances.iter().flat_map(Instance::laid_out).collect()
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        self.instances[turn.process as usize].next(turn)
    }

    fn report(&self) -> ProgramReport {
        report::of(&self.runs, &self.notes, &self.instances)
    }
}

#[cfg(test)]
mod tests;
