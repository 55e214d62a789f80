//! Classes of drives, with the queue and the write cache that measurements of the class support.
//!
//! A class has few parameters. VALIDATION.md, "Drives by queue depth", states the measured disks
//! of each class, and the error on a disk that the class was not fitted on.

use crate::config::{BufferConfig, FlushCommand, QueueConfig};
use fullstroke_contract::registry::Keys;
use fullstroke_units::Duration;
use serde_json::json;
use std::fmt;
use std::str::FromStr;

/// A class of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveClass {
    /// SATA drives of 3.5 inches for desktops and small file servers.
    Desktop,
    /// SATA drives of 2.5 inches.
    Laptop,
    /// SATA drives of 3.5 inches for data centres.
    Nearline,
    /// SAS drives of 10,000 revolutions a minute and more.
    Sas,
}

/// The parameters of a class.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    discipline: &'static str,
    look_ahead: u32,
    margin_ms: f64,
    margin_far_ms: f64,
    age_limit: Duration,
    /// Number of segments with written data; `None` keeps half of the segments.
    write_segments: Option<u32>,
    /// Share of the average seek that a short seek beyond the neighbouring tracks costs; `None`
    /// for the curve of a data sheet.
    floor: Option<f64>,
    source: &'static str,
}

impl Parameters {
    /// Returns the keys of the margins. The margin that grows with the distance is left out where
    /// it is 0.
    fn margins(&self) -> Keys {
        let mut keys = Keys::new();
        keys.insert("margin_ms".into(), json!(self.margin_ms));
        if self.margin_far_ms > 0.0 {
            keys.insert("margin_far_ms".into(), json!(self.margin_far_ms));
        }
        keys
    }
}

/// Classes by name.
const CLASSES: [(&str, DriveClass); 4] = [
    ("desktop", DriveClass::Desktop),
    ("laptop", DriveClass::Laptop),
    ("nearline", DriveClass::Nearline),
    ("sas", DriveClass::Sas),
];

impl FromStr for DriveClass {
    type Err = String;
    fn from_str(name: &str) -> Result<DriveClass, String> {
        let found = CLASSES.iter().find(|(known, _)| *known == name);
        found
            .map(|&(_, class)| class)
            .ok_or_else(|| format!("found `{name}`; expected desktop, laptop, nearline or sas"))
    }
}

impl fmt::Display for DriveClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = CLASSES.iter().find(|(_, class)| class == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl DriveClass {
    /// Returns the class of a drive of which only speed and capacity are known: `sas` from 9,000
    /// revolutions a minute, `nearline` from 10 TB, otherwise `desktop`.
    pub fn of(rpm: f64, bytes: u64) -> DriveClass {
        match rpm {
            rpm if rpm >= 9_000.0 => DriveClass::Sas,
            _ if bytes >= 10_000_000_000_000 => DriveClass::Nearline,
            _ => DriveClass::Desktop,
        }
    }

    fn parameters(self) -> Parameters {
        let seconds = Duration::from_secs;
        match self {
            // A Samsung F1 (margin_far_ms 5, 48 segments), a 500 GB disk (11, 48) and a Barracuda
            // ST2000DM006 (13, 144). Requests of one host to one disk do not tell look_ahead 0 from
            // 1. An array of eight disks of 2 TB does: 7.97 times the reads at 16 outstanding
            // requests; a model without look-ahead 7.8, with one command 7.2.
            DriveClass::Desktop => Parameters {
                discipline: "firmware",
                look_ahead: 0,
                margin_ms: 0.0,
                margin_far_ms: 11.0,
                age_limit: seconds(2),
                write_segments: Some(64),
                floor: Some(0.2),
                source: "fitted on a Samsung F1, a 500 GB disk and a Barracuda ST2000DM006",
            },
            // A Travelstar 7K100.
            DriveClass::Laptop => Parameters {
                discipline: "firmware",
                look_ahead: 2,
                margin_ms: 5.0,
                margin_far_ms: 0.0,
                age_limit: seconds(3),
                write_segments: Some(1),
                floor: Some(0.22),
                source: "fitted on one Travelstar 7K100",
            },
            // Random reads at depth 16 and 32 that makers and a tester state for nine drives: 168 to
            // 170 and 198 to 214 a second. Each drive left out, the others tell a margin of 0.3 or
            // 0.35 ms, and the error is at most 7 % (VALIDATION.md, "Drives that people own"). The
            // gain of desktop disks would leave 120 at depth 16.
            DriveClass::Nearline => Parameters {
                discipline: "firmware",
                look_ahead: 1,
                margin_ms: 0.35,
                margin_far_ms: 0.0,
                age_limit: seconds(2),
                write_segments: None,
                floor: None,
                source: "fitted on random reads of nine drives that makers and a tester state",
            },
            DriveClass::Sas => Parameters {
                discipline: "satf",
                look_ahead: 0,
                margin_ms: 0.0,
                margin_far_ms: 0.0,
                age_limit: seconds(2),
                write_segments: None,
                floor: None,
                source: "assumed: shortest access time first",
            },
        }
    }

    /// Returns the source of the parameters, for `[sources]`.
    pub fn source(self) -> String {
        format!("preset `{self}`, {}", self.parameters().source)
    }

    /// Returns the queue of the class.
    pub fn queue(self) -> QueueConfig {
        let parameters = self.parameters();
        let mut keys = Keys::new();
        if parameters.discipline == "firmware" {
            keys = parameters.margins();
            keys.insert("look_ahead".into(), json!(parameters.look_ahead));
        }
        QueueConfig {
            depth: if self == DriveClass::Sas { 128 } else { 32 },
            discipline: parameters.discipline.into(),
            age_limit: Some(parameters.age_limit),
            flush: if self == DriveClass::Sas {
                FlushCommand::Queued
            } else {
                FlushCommand::Alone
            },
            keys,
            ..QueueConfig::default()
        }
    }

    /// Gives `buffer` the write cache of the class.
    pub(crate) fn caches(self, buffer: &mut BufferConfig) {
        let parameters = self.parameters();
        if let Some(segments) = parameters.write_segments {
            buffer.write_segments = segments.min(buffer.segments);
            buffer.destage_discipline = Some(parameters.discipline.into());
            buffer.destage = parameters.margins();
        }
        buffer.write_back = self != DriveClass::Sas;
    }

    /// Returns the share of the average seek that a short seek beyond the neighbouring tracks
    /// costs; `None` for the curve of a data sheet.
    pub(crate) fn floor(self) -> Option<f64> {
        self.parameters().floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_a_name_and_a_queue_that_can_be_built() {
        for (name, class) in CLASSES {
            assert_eq!(name.parse::<DriveClass>(), Ok(class));
            assert_eq!(class.to_string(), name);
            class.queue().build().unwrap();
            assert!(class.queue().age_limit.is_some(), "{name} may starve");
        }
        assert!(
            "desk"
                .parse::<DriveClass>()
                .unwrap_err()
                .contains("nearline")
        );
    }
}
