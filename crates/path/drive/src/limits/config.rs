//! The keys of the limits of commands.

use fullstroke_contract::{ConfigError, PriorityClass};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Descriptors of each of the pages T2A and T2B (SPC-6).
const DESCRIPTORS_MAX: usize = 7;

/// Shortest recovery limit that a drive may be set to: SCT ERC counts in 100 ms.
const ERC_UNIT: Duration = Duration::from_millis(100);

/// Longest recovery limit: 65,535 units of 100 ms.
const ERC_MAX: Duration = Duration::from_millis(65_535 * 100);

/// Limits of the time of commands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Time after which the drive gives up a read of a bad sector: SCT Error Recovery Control,
    /// which makers also call TLER, ERC or CCTL. Drives for NAS: 7s. The key `erc` of a slow member
    /// has precedence. Default: the drive never gives up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erc: Option<Duration>,
    /// Duration limits of reads, at most 7. The first one with the class of the command holds.
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<DurationLimit>,
    /// Duration limits of writes, at most 7. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<DurationLimit>,
    /// Time before the end of a limit at which the drive serves a waiting command next. Default
    /// 20ms: a seek and a revolution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Duration>,
}

/// A duration limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DurationLimit {
    /// Class of the I/O priority of the commands with this limit. Default: all commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<PriorityClass>,
    /// Longest time in the queue. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactive: Option<Duration>,
    /// Effect of a command that takes longer. Default `complete`.
    pub inactive_policy: LimitPolicy,
    /// Longest time of the work. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<Duration>,
    /// Effect of a command that takes longer. Default `complete`.
    pub active_policy: LimitPolicy,
    /// Longest time in the queue and of the work together. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// Effect of a command that takes longer. Default `complete`.
    pub duration_policy: LimitPolicy,
}

/// What follows when a limit has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitPolicy {
    /// The command goes on, and the drive serves the command as soon as possible (policies 0h and
    /// 2h).
    #[default]
    Complete,
    /// The drive ends the command without its data (policies Dh and Fh).
    Abort,
}

/// The checked limits.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(super) read: Vec<DurationLimit>,
    pub(super) write: Vec<DurationLimit>,
    pub(super) ahead: Duration,
}

impl Limits {
    /// True if the drive may end a read without its data.
    pub(crate) fn loses_reads(&self) -> bool {
        self.read.iter().any(DurationLimit::aborts)
    }
}

impl DurationLimit {
    fn aborts(&self) -> bool {
        [
            self.inactive_policy,
            self.active_policy,
            self.duration_policy,
        ]
        .contains(&LimitPolicy::Abort)
    }

    /// Checks a limit.
    fn check(&self) -> Result<(), ConfigError> {
        let spans = [
            ("inactive", self.inactive, self.inactive_policy),
            ("active", self.active, self.active_policy),
            ("duration", self.duration, self.duration_policy),
        ];
        if spans.iter().all(|(_, span, _)| span.is_none()) {
            let message = "the limit has no time; expected inactive, active or duration, such as duration = \"50ms\"";
            return Err(ConfigError::new("duration", message));
        }
        for (key, span, policy) in spans {
            if span == Some(Duration::ZERO) {
                return Err(ConfigError::new(key, "found 0; expected a time above 0"));
            }
            if span.is_none() && policy != LimitPolicy::Complete {
                let message =
                    format!("found a policy, and no time; give {key}, or remove this key");
                return Err(ConfigError::new(format!("{key}_policy"), message));
            }
        }
        let whole = self.duration.unwrap_or(Duration::from_nanos(u64::MAX));
        for (key, span, _) in &spans[..2] {
            if let Some(span) = span
                && *span >= whole
            {
                let message = format!(
                    "found {span}; the duration of {whole} always passes first. Expected less"
                );
                return Err(ConfigError::new(*key, message));
            }
        }
        Ok(())
    }
}

impl LimitsConfig {
    /// Checks the keys. Returns `None` if no command has a duration limit.
    ///
    /// # Errors
    /// Names the key, the value found and the value expected.
    pub(crate) fn check(&self) -> Result<Option<Limits>, ConfigError> {
        if let Some(limit) = self.erc
            && !(ERC_UNIT..=ERC_MAX).contains(&limit)
        {
            let message = format!(
                "found {limit}; expected {ERC_UNIT} to {ERC_MAX}, as SCT ERC counts in 100ms"
            );
            return Err(ConfigError::new("erc", message));
        }
        for (table, limits) in [("read", &self.read), ("write", &self.write)] {
            if limits.len() > DESCRIPTORS_MAX {
                let message = format!(
                    "found {} limits; a drive has at most {DESCRIPTORS_MAX} for reads and as many for writes",
                    limits.len()
                );
                return Err(ConfigError::new(table, message));
            }
            for (index, limit) in limits.iter().enumerate() {
                let place = format!("{table}[{index}]");
                limit.check().map_err(|error| error.below(&place))?;
                let before = &limits[..index];
                if before
                    .iter()
                    .any(|other| other.class.is_none() || other.class == limit.class)
                {
                    let message = "an earlier limit has these commands already; expected another class, and a limit without a class last";
                    return Err(ConfigError::new(format!("{place}.class"), message));
                }
            }
        }
        if let Some(index) = self.write.iter().position(DurationLimit::aborts) {
            let message = "found \"abort\" for writes; an array takes a member that loses writes out. Expected \"complete\"";
            return Err(ConfigError::new(format!("write[{index}]"), message));
        }
        let has_limits = !self.read.is_empty() || !self.write.is_empty();
        match self.ahead {
            Some(_) if !has_limits => {
                let message =
                    "no command has a duration limit; give [[limits.read]], or remove this key";
                Err(ConfigError::new("ahead", message))
            }
            ahead => Ok(has_limits.then(|| Limits {
                read: self.read.clone(),
                write: self.write.clone(),
                ahead: ahead.unwrap_or(Duration::from_millis(20)),
            })),
        }
    }
}
