//! Free parameters of a drive.

use super::log::{Logged, OwnLog};
use fullstroke_contract::Operation;
use fullstroke_drive::{DriveConfig, ReadAhead, SeekConfig};

/// A fitted key of a drive file.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    /// Key, or name of the multiplied value.
    pub(super) key: &'static str,
    /// Keys of the drive file set by this parameter.
    pub(super) keys: &'static [&'static str],
    /// Returns true if a log has information on this parameter.
    pub(super) told_by: fn(&OwnLog, &DriveConfig) -> bool,
    /// Returns the value in a drive of the library.
    pub(super) of: fn(&DriveConfig) -> f64,
    /// Sets the value in the first drive. The second drive is the original.
    pub(super) set: fn(&mut DriveConfig, &DriveConfig, f64),
    pub(super) values: PermittedValues,
}

/// Permitted values of a parameter.
#[derive(Clone, Copy)]
pub(super) enum PermittedValues {
    /// A list of values, each with a name if the value is no number.
    Each(&'static [(f64, &'static str)]),
    /// Any value from `least` to `most`. The search uses steps from `first` to `last`.
    Sums {
        least: f64,
        most: f64,
        first: f64,
        last: f64,
    },
    /// Any value from `least` to `most`. The steps are factors.
    Factors {
        least: f64,
        most: f64,
        first: f64,
        last: f64,
    },
}

/// The parameters, in the order of their effect, the strongest first. The speed of rotation is no
/// parameter: with other seeks, response times fit a wrong speed as well (VALIDATION.md, "A disk
/// from its log, with a wrong start"). `rotation.rs` finds the speed before the fit.
pub(super) const PARAMETERS: [Parameter; 8] = [
    Parameter {
        key: "buffer.write_back",
        keys: &["buffer.write_back"],
        told_by: |log, drive| drive.buffer.is_some() && has(log, Operation::Write),
        of: |drive| {
            drive
                .buffer
                .as_ref()
                .map_or(0.0, |buffer| f64::from(u8::from(buffer.write_back)))
        },
        set: |drive, _, value| {
            if let Some(buffer) = &mut drive.buffer {
                buffer.write_back = value > 0.0;
            }
        },
        values: PermittedValues::Each(&[(0.0, "false"), (1.0, "true")]),
    },
    Parameter {
        key: "buffer.read_ahead",
        keys: &["buffer.read_ahead"],
        told_by: |log, drive| {
            let reads_ahead = drive
                .buffer
                .as_ref()
                .is_some_and(|buffer| buffer.read_ahead != ReadAhead::None);
            reads_ahead && has(log, Operation::Read)
        },
        of: |_| 1.0,
        set: |drive, before, value| {
            if let (Some(buffer), Some(before)) = (&mut drive.buffer, &before.buffer) {
                buffer.read_ahead = if value > 0.0 {
                    before.read_ahead
                } else {
                    ReadAhead::None
                };
            }
        },
        values: PermittedValues::Each(&[(0.0, "none"), (1.0, "the drive's")]),
    },
    Parameter {
        key: "queue.discipline",
        keys: &["queue.discipline"],
        told_by: |log, _| log.logged.iter().any(|request| request.outstanding > 1),
        of: |drive| {
            DISCIPLINES
                .iter()
                .position(|name| drive.queue.discipline == *name)
                .unwrap_or(0) as f64
        },
        set: |drive, before, value| {
            drive.queue = before.queue.clone();
            if value > 0.0 {
                drive.queue.discipline = DISCIPLINES[value as usize].to_owned();
                // The keys belong to the drive's own discipline.
                drive.queue.keys.clear();
            }
        },
        values: PermittedValues::Each(&[
            (0.0, "the drive's"),
            (1.0, "fcfs"),
            (2.0, "c-look"),
            (3.0, "satf"),
        ]),
    },
    Parameter {
        key: "seek (factor)",
        keys: &["seek"],
        told_by: |log, _| log.logged.iter().any(|request| request.distance > 0),
        of: |_| 1.0,
        set: |drive, before, value| drive.seek = scaled(&before.seek, value),
        values: PermittedValues::Factors {
            least: 0.3,
            most: 3.0,
            first: 1.2,
            last: 1.01,
        },
    },
    Parameter {
        key: "command_overhead_ms",
        keys: &["command_overhead_ms"],
        told_by: |_, _| true,
        of: |drive| drive.command_overhead_ms,
        set: |drive, _, value| drive.command_overhead_ms = value,
        values: PermittedValues::Sums {
            least: 0.0,
            most: 5.0,
            first: 0.32,
            last: 0.01,
        },
    },
    Parameter {
        key: "electronics.hit_overhead_ms",
        keys: &["electronics.hit_overhead_ms"],
        told_by: |_, drive| drive.buffer.is_some(),
        of: |drive| {
            drive
                .electronics
                .hit_overhead_ms
                .unwrap_or(drive.command_overhead_ms)
        },
        set: |drive, _, value| drive.electronics.hit_overhead_ms = Some(value),
        values: PermittedValues::Sums {
            least: 0.0,
            most: 5.0,
            first: 0.16,
            last: 0.01,
        },
    },
    Parameter {
        key: "write_settle_ms",
        keys: &["write_settle_ms"],
        told_by: |log, _| has(log, Operation::Write),
        of: |drive| drive.write_settle_ms,
        set: |drive, _, value| drive.write_settle_ms = value,
        values: PermittedValues::Sums {
            least: -2.0,
            most: 3.0,
            first: 0.32,
            last: 0.02,
        },
    },
    Parameter {
        // From 2 GB/s down to 2.5 MB/s.
        key: "electronics.bus_ms_per_sector",
        keys: &[
            "electronics.bus_read_ms_per_sector",
            "electronics.bus_write_ms_per_sector",
        ],
        told_by: |_, _| true,
        of: |drive| {
            drive
                .electronics
                .bus_read_ms_per_sector
                .max(BUS_MS_PER_SECTOR_MIN)
        },
        set: |drive, _, value| {
            drive.electronics.bus_read_ms_per_sector = value;
            drive.electronics.bus_write_ms_per_sector = value;
        },
        values: PermittedValues::Factors {
            least: BUS_MS_PER_SECTOR_MIN,
            most: 0.2,
            first: 2.0,
            last: 1.05,
        },
    },
];

/// Returns the keys of a drive file set by a parameter.
pub(super) fn keys(parameter: &'static str) -> &'static [&'static str] {
    PARAMETERS
        .iter()
        .find(|each| each.key == parameter)
        .map_or(&[], |each| each.keys)
}

const BUS_MS_PER_SECTOR_MIN: f64 = 0.000_25;

/// Disciplines to try. The first stands for the drive's own.
const DISCIPLINES: [&str; 4] = ["", "fcfs", "c-look", "satf"];

fn has(log: &OwnLog, operation: Operation) -> bool {
    let compared = |request: &Logged| request.operation == operation;
    log.logged.iter().any(compared)
}

/// Returns a curve with times multiplied by `factor`.
fn scaled(seek: &SeekConfig, factor: f64) -> SeekConfig {
    match seek {
        SeekConfig::Points {
            points,
            falls_allowed,
        } => SeekConfig::Points {
            points: points
                .iter()
                .map(|&(cylinders, ms)| (cylinders, ms * factor))
                .collect(),
            falls_allowed: *falls_allowed,
        },
        &SeekConfig::Datasheet {
            track_to_track_ms,
            average_ms,
            full_stroke_ms,
        } => SeekConfig::Datasheet {
            track_to_track_ms: track_to_track_ms * factor,
            average_ms: average_ms * factor,
            full_stroke_ms: full_stroke_ms * factor,
        },
        &SeekConfig::TwoPiece {
            a_ms,
            b_ms,
            c_ms,
            e_ms,
            crossover,
        } => SeekConfig::TwoPiece {
            a_ms: a_ms * factor,
            b_ms: b_ms * factor,
            c_ms: c_ms * factor,
            e_ms: e_ms * factor,
            crossover,
        },
    }
}

impl PermittedValues {
    /// Returns the size of a step after `halvings`; `None` if it would be below the last.
    pub(super) fn step(self, halvings: u32) -> Option<f64> {
        match self {
            PermittedValues::Each(_) => None,
            PermittedValues::Sums { first, last, .. } => {
                let step = first / 2f64.powi(halvings as i32);
                // The factor covers the rounding of the halved step.
                (step >= last * 0.999).then_some(step)
            }
            PermittedValues::Factors { first, last, .. } => {
                let step = first.powf(0.5f64.powi(halvings as i32));
                (step >= last * 0.999).then_some(step)
            }
        }
    }

    /// Returns `value` after `steps` steps; `None` beyond the range.
    pub(super) fn moved(self, value: f64, step: f64, steps: f64) -> Option<f64> {
        let (least, most, moved) = match self {
            PermittedValues::Each(_) => return None,
            PermittedValues::Sums { least, most, .. } => (least, most, value + step * steps),
            PermittedValues::Factors { least, most, .. } => (least, most, value * step.powf(steps)),
        };
        let moved = moved.clamp(least, most);
        (moved != value).then_some(moved)
    }

    /// Returns true if `value` is an end of the range.
    pub(super) fn ends_at(self, value: f64) -> bool {
        match self {
            PermittedValues::Each(_) => false,
            PermittedValues::Sums { least, most, .. }
            | PermittedValues::Factors { least, most, .. } => value == least || value == most,
        }
    }

    /// Returns the value as written in drive files.
    pub(super) fn shown(self, value: f64) -> String {
        let named = match self {
            PermittedValues::Each(values) => values
                .iter()
                .find(|(each, name)| *each == value && !name.is_empty()),
            _ => None,
        };
        match named {
            Some((_, name)) => (*name).to_owned(),
            None if value == 0.0 || value.abs() >= 0.1 => {
                let text = format!("{value:.3}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            None => format!("{value:.5}"),
        }
    }
}
