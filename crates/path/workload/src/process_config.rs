//! The keys of processes in a stack file.

use crate::sizes::SizeConfig;
use crate::synthetic::{AddressesConfig, all_reads, four_kib};
use fullstroke_contract::{ConfigError, PriorityClass};
use fullstroke_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most processes of one load.
const PROCESSES_MAX: u64 = 1 << 20;

/// Most outstanding requests of one process.
const DEPTH_MAX: u32 = 1 << 16;

/// The keys of a load of processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessesConfig {
    /// Number of requests of all processes together; or give `duration`.
    pub requests: Option<u64>,
    /// Time during which requests are issued; or give `requests`. With both, the first to be
    /// reached ends the load.
    pub duration: Option<Duration>,
    /// The processes, kind by kind: `[[workload.processes]]`.
    pub processes: Vec<ProcessConfig>,
}

/// Processes of one kind. Each is a closed loop: a completion triggers the next request after the
/// think time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessConfig {
    /// Name for grouped results and for the random streams; several entries may share a name.
    #[serde(default = "process")]
    pub name: String,
    /// Number of processes.
    #[serde(default = "one")]
    pub count: u32,
    /// Address pattern; each process has its own.
    #[serde(default)]
    pub addresses: AddressesConfig,
    /// Size of the requests: one, or a list of `{ size, weight }`.
    #[serde(default = "four_kib")]
    pub size: SizeConfig,
    /// Requests start at multiples of this size. Default: the smallest request size.
    pub alignment: Option<Bytes>,
    /// Share of reads, 0 to 1: 1 is a reader, 0 is a writer.
    #[serde(default = "all_reads")]
    pub read_share: f64,
    /// Start of the first process's part of the volume.
    #[serde(default)]
    pub region_start: Bytes,
    /// Size of each process's part. Default: everything after the start.
    pub region_size: Option<Bytes>,
    /// Distance between the starts of two processes' parts.
    #[serde(default)]
    pub region_increment: Bytes,
    /// Time from a completion to the next request.
    #[serde(default)]
    pub think_time: Duration,
    /// Draw think times from an exponential distribution with the mean `think_time`.
    #[serde(default)]
    pub exponential: bool,
    /// Outstanding requests of each process.
    #[serde(default = "one")]
    pub depth: u32,
    /// True if a process waits for its writes, as the elevator is told. Default: true for a depth
    /// of 1. Processes always wait for reads.
    pub synchronous: Option<bool>,
    /// I/O priority class.
    #[serde(default)]
    pub class: PriorityClass,
    /// The level within the class, 0 (first) to 7.
    #[serde(default = "middle")]
    pub level: u8,
}

fn process() -> String {
    "process".into()
}

fn one() -> u32 {
    1
}

fn middle() -> u8 {
    // IOPRIO_BE_NORM of Linux (include/uapi/linux/ioprio.h): the level of a process that sets none.
    4
}

impl ProcessesConfig {
    /// Number of processes.
    pub fn count(&self) -> u64 {
        self.processes
            .iter()
            .map(|kind| u64::from(kind.count))
            .sum()
    }

    /// Names of the processes by index; the number of a process is its index plus one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.processes
            .iter()
            .flat_map(|kind| (0..kind.count).map(|_| kind.name.as_str()))
    }

    /// # Errors
    /// Names the impossible key.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.requests.is_none() && self.duration.is_none() {
            return Err(ConfigError::new(
                "requests",
                "the load has no end; give `requests` or `duration`",
            ));
        }
        if self.processes.is_empty() {
            return Err(ConfigError::new(
                "processes",
                "there are none; give [[workload.processes]]",
            ));
        }
        for (index, kind) in self.processes.iter().enumerate() {
            kind.check()
                .map_err(|error| error.below(&format!("processes[{index}]")))?;
        }
        if self.count() > PROCESSES_MAX {
            let message = format!(
                "found {} processes in all; expected {PROCESSES_MAX} at most",
                self.count()
            );
            return Err(ConfigError::new("processes", message));
        }
        Ok(())
    }
}

impl ProcessConfig {
    /// True if the processes wait for their writes.
    pub(crate) fn waits_for_writes(&self) -> bool {
        self.synchronous.unwrap_or(self.depth == 1)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        if self.name.is_empty() {
            return refuse(
                "name",
                "found an empty name; expected a name, or no key".into(),
            );
        }
        if self.count == 0 {
            return refuse("count", "found 0; expected at least 1, or no entry".into());
        }
        if !(0.0..=1.0).contains(&self.read_share) {
            return refuse(
                "read_share",
                format!("found {}; expected 0 to 1", self.read_share),
            );
        }
        if !(1..=DEPTH_MAX).contains(&self.depth) {
            return refuse(
                "depth",
                format!("found {}; expected 1 to {DEPTH_MAX}", self.depth),
            );
        }
        if self.synchronous == Some(true) && self.depth > 1 {
            let message = format!(
                "found true with depth = {}; a process that waits has one request outstanding",
                self.depth
            );
            return refuse("synchronous", message);
        }
        // IOPRIO_NR_LEVELS of Linux is 8 (include/uapi/linux/ioprio.h).
        if self.level > 7 {
            return refuse(
                "level",
                format!("found {}; expected 0 (first) to 7", self.level),
            );
        }
        Ok(())
    }
}
