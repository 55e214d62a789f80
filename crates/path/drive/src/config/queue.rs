//! Keys of the queue inside the drive.

use super::is_default;
use fullstroke_contract::registry::Keys;
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queue inside the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueConfig {
    /// Largest number of commands inside the drive, including the command in service.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// Name of the queue discipline.
    #[serde(default = "default_discipline")]
    pub discipline: String,
    /// Longest wait before a request goes before all others, the oldest first. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_limit: Option<Duration>,
    /// Time in ms after the end of a command in which the drive does not choose the next command. A
    /// command that the host sends at once still takes part in the choice. Default 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub decide_ms: f64,
    /// Number of commands on the medium that the drive answers together. The answers go out after
    /// so many commands, or when no further command waits. 0 and 1 mean that each command is
    /// answered alone (default 0). A Samsung SpinPoint F1 answers 11 together (VALIDATION.md).
    #[serde(default, skip_serializing_if = "is_default")]
    pub answer_together: u32,
    /// True if a continuation of the last request, in the same direction of transfer, is served
    /// next.
    #[serde(default)]
    pub concatenate: bool,
    /// Handling of background requests, for which no caller waits (put-off writes and the layers'
    /// own work). The drive serves a background request in the rotational latency of another
    /// request, or after an idle time. By default the drive serves them as all other requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundConfig>,
    /// Treatment of a flush of the write cache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flush: FlushCommand,
    /// The discipline's own keys.
    #[serde(flatten)]
    pub keys: Keys,
}

/// Background requests, for which no caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BackgroundConfig {
    /// Largest number of waiting background requests. Beyond the limit, the oldest is served as a
    /// normal request. Default 16.
    pub most: u32,
    /// Largest age of a background request. An older one is served as a normal request. Default
    /// 30s.
    pub age: Duration,
    /// Idle time before background requests are served as normal requests, one by one. Default
    /// 10ms.
    pub idle: Duration,
    /// Smallest time in ms between the end of a background request and the next need of the arm.
    /// Default 0.
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

/// Treatment of a flush of the write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlushCommand {
    /// As a queued command that is served next: SCSI's SYNCHRONIZE CACHE, simple task (SBC-3,
    /// 5.18).
    #[default]
    Queued,
    /// Alone. ATA's FLUSH CACHE EXT cannot be queued. The host waits for the end of all queued
    /// commands and sends no command meanwhile (ACS-3; `ata_std_qc_defer` of Linux).
    Alone,
}

// NCQ has 32 command tags (SATA 2.5).
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
            decide_ms: 0.0,
            answer_together: 0,
            concatenate: false,
            background: None,
            flush: FlushCommand::default(),
            keys: Keys::new(),
        }
    }
}
