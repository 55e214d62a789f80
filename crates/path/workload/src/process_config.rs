//! What a stack file says about processes.

use crate::sizes::SizeConfig;
use crate::synthetic::{AddressesConfig, all_reads, four_kib};
use fullstroke_contract::{ConfigError, PriorityClass};
use fullstroke_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Processes that one load may have.
const PROCESSES_MAX: u64 = 1 << 20;

/// Requests that one process may have outstanding.
const DEPTH_MAX: u32 = 1 << 16;

/// The keys of a load of processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessesConfig {
    /// How many requests all processes issue together; or give `duration`.
    pub requests: Option<u64>,
    /// How long requests are issued; or give `requests`. With both, what comes
    /// first ends the load.
    pub duration: Option<Duration>,
    /// The processes, kind by kind: `[[workload.processes]]`.
    pub processes: Vec<ProcessConfig>,
}

/// Some processes of one kind. Each is a closed loop: a request is followed by
/// another, a think time after its completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessConfig {
    /// By which results are grouped, and by which randomness is drawn; several
    /// entries may share one.
    #[serde(default = "process")]
    pub name: String,
    /// How many such processes.
    #[serde(default = "one")]
    pub count: u32,
    /// Where their requests go; each process goes its own way.
    #[serde(default)]
    pub addresses: AddressesConfig,
    /// Size of the requests: one, or a list of `{ size, weight }`.
    #[serde(default = "four_kib")]
    pub size: SizeConfig,
    /// Requests start at multiples of this; the smallest size unless said.
    pub alignment: Option<Bytes>,
    /// Share of reads, 0 to 1: a reader has 1, a writer 0.
    #[serde(default = "all_reads")]
    pub read_share: f64,
    /// Where the part of the volume begins that the first of them addresses.
    #[serde(default)]
    pub region_start: Bytes,
    /// How much each addresses; everything behind its start unless said.
    pub region_size: Option<Bytes>,
    /// How far behind the start of one process the start of the next lies.
    #[serde(default)]
    pub region_increment: Bytes,
    /// From the completion of a request to the one that follows it.
    #[serde(default)]
    pub think_time: Duration,
    /// Draw think times from an exponential distribution with that mean.
    #[serde(default)]
    pub exponential: bool,
    /// Requests that each has outstanding.
    #[serde(default = "one")]
    pub depth: u32,
    /// Whether each waits for its writes, as the host's elevator is told; true
    /// for a depth of 1 unless said. Reads are always waited for.
    pub synchronous: Option<bool>,
    /// The class of their I/O priority.
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
    4
}

impl ProcessesConfig {
    /// How many processes there are.
    pub fn count(&self) -> u64 {
        self.processes
            .iter()
            .map(|kind| u64::from(kind.count))
            .sum()
    }

    /// The names of the processes by their number, which is one more than the
    /// index here.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.processes
            .iter()
            .flat_map(|kind| (0..kind.count).map(|_| kind.name.as_str()))
    }

    /// # Errors
    /// Names the key that cannot be.
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
    /// Whether their writes are waited for.
    pub(crate) fn waits_for_writes(&self) -> bool {
        self.synchronous.unwrap_or(self.depth == 1)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        if self.name.is_empty() {
            return refuse(
                "name",
                "found an empty name; expected one, or leave it out".into(),
            );
        }
        if self.count == 0 {
            return refuse(
                "count",
                "found 0; expected at least 1, or leave the entry out".into(),
            );
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
        if self.level > 7 {
            return refuse(
                "level",
                format!("found {}; expected 0 (first) to 7", self.level),
            );
        }
        Ok(())
    }
}
