//! Keys of the queue inside the drive.

use super::is_default;
use fullstroke_contract::registry::Keys;
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queue inside the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueConfig {
    /// Commands that the drive accepts at once, the one in service included.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// The rule of choice.
    #[serde(default = "default_discipline")]
    pub discipline: String,
    /// A request that has waited longer is served before all others, the oldest
    /// first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_limit: Option<Duration>,
    /// A request that goes on where the last one ended, in the same direction
    /// of transfer, is served next.
    #[serde(default)]
    pub concatenate: bool,
    /// Requests for which nobody waits (writes that were put off, layers' own work) are served in
    /// what the arm would wait for its sector, and where nothing else has come for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundConfig>,
    /// How a flush of the write cache is taken.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flush: FlushCommand,
    /// The discipline's own keys.
    #[serde(flatten)]
    pub keys: Keys,
}

/// Requests for which nobody waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BackgroundConfig {
    /// So many wait at most; of more the oldest is served as others are. 16 unless said.
    pub most: u32,
    /// One that has waited longer is served as others are: 30s unless said.
    pub age: Duration,
    /// Where nothing else is there for so long they are served as others are, one by one: 10ms
    /// unless said.
    pub idle: Duration,
    /// How long before it has to the arm is ready again for the request that it was to serve: 0
    /// unless said.
    pub margin_ms: f64,
}

impl Default for BackgroundConfig {
    fn default() -> BackgroundConfig {
        let (age, idle) = (Duration::from_secs(30), Duration::from_millis(10));
        BackgroundConfig {
            most: 16,
            age,
            idle,
            margin_ms: 0.0,
        }
    }
}

/// How a drive takes a flush of its write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlushCommand {
    /// As one of its queued commands, the next to be served: SCSI's SYNCHRONIZE
    /// CACHE, simple task (SBC-3, 5.18).
    #[default]
    Queued,
    /// Alone: ATA's FLUSH CACHE EXT cannot be queued, so that the host lets the
    /// commands that are queued end first, and sends none meanwhile (ACS-3;
    /// `ata_std_qc_defer` of Linux).
    Alone,
}

fn default_depth() -> u32 {
    32
}

fn default_discipline() -> String {
    "satf".into()
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            depth: default_depth(),
            discipline: default_discipline(),
            age_limit: None,
            concatenate: false,
            background: None,
            flush: FlushCommand::default(),
            keys: Keys::new(),
        }
    }
}
