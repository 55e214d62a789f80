//! Chooses rules on measured disks and tests the rules on disks that had no part in the choice.
//!
//! A parameter file of DiskSim is read by rules ([`Reading::RULES`]), which are in no parameter
//! file. Rules chosen on a set of disks fit that set. Only a disk outside the set shows if the
//! rules hold in general. So each disk is left out once. The rules are chosen on the other disks,
//! and the resulting model is compared with the disk that was left out.
//!
//! The choice is a descent along one rule after the other. It starts from the file as written. A
//! rule is adopted if the root of the mean squared shares falls by [`GAIN_MIN`], so a rule that
//! helps no disk stays off. Some rules help alone but change nothing beside the adopted rules,
//! because the adopted rules hide them on these disks. Such a rule is adopted as well, because the
//! lack of an effect here does not speak against the rule on the next disk.

use crate::validate::find::parameters_beside;
use crate::validate::paced::{Paced, simulate};
use crate::validate::parallel::in_parallel;
use crate::validate::replay::{closed, read};
use crate::validate::{EmpiricalTimes, FoundDrive, TraceFile, ValidateError};
use fullstroke_disksim::{ImportOptions, Reading, Rule, import};
use fullstroke_drive::DriveModel;
use serde::Serialize;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Least relative gain of the objective at which a value is adopted.
pub const GAIN_MIN: f64 = 0.002;
/// Largest number of passes over all rules.
const PASSES_MAX: usize = 6;

/// A measured disk with a parameter file that can be read by other rules.
#[derive(Clone, Debug)]
pub struct MeasuredDisk {
    name: String,
    parameters: PathBuf,
    requests: Arc<[Paced]>,
    measured: EmpiricalTimes,
}

/// Distance of a model from a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distance {
    /// Root-mean-square distance of the two distributions, in ms.
    pub rms_ms: f64,
    /// Root-mean-square distance as a share of the measured mean.
    pub rms_share: f64,
}

/// Results for one disk, with rules chosen with the disk and without the disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOutDisk {
    /// Name of the trace.
    pub drive: String,
    /// Mean service time of the real disk, in ms.
    pub measured_mean_ms: f64,
    /// Distance with the file as written, without any rule.
    pub as_written: Distance,
    /// Distance with the default rules of imports.
    pub by_default: Distance,
    /// Distance with the rules chosen on all disks.
    pub all_fitted: Distance,
    /// Distance with the rules chosen on all other disks.
    pub left_out: Distance,
    /// Rules chosen on all other disks that differ from the file as written: `name=value`.
    pub rules: Vec<String>,
}

/// Results for all disks, each left out once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeaveOneOut {
    /// Results by disk.
    pub disks: Vec<HeldOutDisk>,
    /// Rules chosen on all disks that differ from the file as written.
    pub rules: Vec<String>,
    /// Number of replays.
    pub replays: usize,
}

impl MeasuredDisk {
    /// Reads the disk of a trace. Returns `None` if no parameter file of DiskSim stands beside the
    /// trace.
    ///
    /// # Errors
    /// If a parameter file or trace is unusable.
    pub fn read(trace: &TraceFile) -> Result<Option<MeasuredDisk>, ValidateError> {
        let Some(parameters) = parameters_beside(&trace.path) else {
            return Ok(None);
        };
        let mut disk = MeasuredDisk {
            name: trace.name.clone(),
            parameters,
            requests: Arc::default(),
            measured: EmpiricalTimes::new(Vec::new()),
        };
        let model = disk.model(&Reading::default())?;
        let name = disk.parameters.display().to_string();
        let rows = read(&trace.path, model.config().capacity_sectors)
            .map_err(|error| ValidateError::from_trace(error, &name))?;
        disk.requests = closed(&rows);
        disk.measured =
            EmpiricalTimes::new(rows.iter().map(|row| row.service.as_millis_f64()).collect());
        // This run reports a think time beyond the clock here, and not during the fit.
        disk.distance(&Reading::default())?;
        Ok(Some(disk))
    }

    fn model(&self, reading: &Reading) -> Result<DriveModel, ValidateError> {
        let drive = self.parameters.display().to_string();
        let options = ImportOptions {
            reading: *reading,
            ..ImportOptions::default()
        };
        let mut disks = import(&self.parameters, &options)
            .map_err(Box::new)
            .map_err(ValidateError::Import)?;
        let config = disks.swap_remove(0).config;
        DriveModel::new(config).map_err(|source| ValidateError::Model { drive, source })
    }

    /// Returns the distance between the disk's model by `reading` and its measurement.
    ///
    /// # Errors
    /// If the model cannot be built, or the trace does not fit the clock.
    pub fn distance(&self, reading: &Reading) -> Result<Distance, ValidateError> {
        let drive = FoundDrive {
            name: self.parameters.display().to_string(),
            model: self.model(reading)?,
        };
        let (completed, times) =
            simulate(&drive.model, &self.requests).map_err(|source| ValidateError::Model {
                drive: drive.name.clone(),
                source,
            })?;
        if completed < self.requests.len() as u64 {
            let requests = self.requests.len();
            return Err(ValidateError::ClockEnded {
                file: self.name.clone(),
                completed,
                requests,
            });
        }
        let rms_ms = self.measured.demerit(&EmpiricalTimes::new(times));
        Ok(Distance {
            rms_ms,
            rms_share: rms_ms / self.measured.mean(),
        })
    }
}

/// Chooses rules on all disks, and for each disk on all other disks.
///
/// # Errors
/// If a model cannot be built.
pub fn leave_one_out(disks: &[MeasuredDisk]) -> Result<LeaveOneOut, ValidateError> {
    let mut fit = Fit {
        disks,
        known: HashMap::new(),
    };
    let everyone: Vec<usize> = (0..disks.len()).collect();
    let all = fit.choose(&everyone)?;
    let mut left_out = Vec::with_capacity(disks.len());
    for (number, disk) in disks.iter().enumerate() {
        let others: Vec<usize> = everyone
            .iter()
            .copied()
            .filter(|&other| other != number)
            .collect();
        let chosen = fit.choose(&others)?;
        left_out.push(HeldOutDisk {
            drive: disk.name.clone(),
            measured_mean_ms: disk.measured.mean(),
            as_written: fit.distances(&[number], &Reading::AS_WRITTEN)?[0],
            by_default: fit.distances(&[number], &Reading::default())?[0],
            all_fitted: fit.distances(&[number], &all)?[0],
            left_out: fit.distances(&[number], &chosen)?[0],
            rules: chosen.differences(&Reading::AS_WRITTEN),
        });
    }
    let rules = all.differences(&Reading::AS_WRITTEN);
    Ok(LeaveOneOut {
        disks: left_out,
        rules,
        replays: fit.known.len(),
    })
}

/// Number of a disk, and the bits of a reading.
type Key = (usize, Vec<u64>);

/// A descent with a memory of the computed distances.
struct Fit<'a> {
    disks: &'a [MeasuredDisk],
    known: HashMap<Key, Distance>,
}

fn key(disk: usize, reading: &Reading) -> Key {
    (
        disk,
        Reading::RULES
            .iter()
            .map(|rule| (rule.get)(reading).to_bits())
            .collect(),
    )
}

impl Fit<'_> {
    /// Returns the distances of some disks. New distances are computed in parallel.
    fn distances(
        &mut self,
        disks: &[usize],
        reading: &Reading,
    ) -> Result<Vec<Distance>, ValidateError> {
        let new: Vec<usize> = disks
            .iter()
            .copied()
            .filter(|&disk| !self.known.contains_key(&key(disk, reading)))
            .collect();
        let found = in_parallel(&new, |&disk| self.disks[disk].distance(reading))?;
        self.known
            .extend(new.iter().map(|&disk| key(disk, reading)).zip(found));
        Ok(disks
            .iter()
            .map(|&disk| self.known[&key(disk, reading)])
            .collect())
    }

    /// Returns the value to minimise: the root of the mean squared shares.
    fn objective(&mut self, disks: &[usize], reading: &Reading) -> Result<f64, ValidateError> {
        let distances = self.distances(disks, reading)?;
        let squares: f64 = distances
            .iter()
            .map(|distance| distance.rms_share.powi(2))
            .sum();
        Ok((squares / disks.len().max(1) as f64).sqrt())
    }

    fn choose(&mut self, disks: &[usize]) -> Result<Reading, ValidateError> {
        let mut reading = Reading::AS_WRITTEN;
        let mut best = self.objective(disks, &reading)?;
        for _ in 0..PASSES_MAX {
            let before = reading;
            for rule in Reading::RULES {
                (reading, best) = self.along(disks, rule, reading, best)?;
            }
            if reading == before {
                break;
            }
        }
        self.with_hidden(disks, reading, best)
    }

    /// Adds the rules that help alone and change nothing beside `reading`. Example: a drive that is
    /// known to hold whole tracks does not show the reach of its read-ahead.
    fn with_hidden(
        &mut self,
        disks: &[usize],
        mut reading: Reading,
        best: f64,
    ) -> Result<Reading, ValidateError> {
        let as_written = self.objective(disks, &Reading::AS_WRITTEN)?;
        for rule in Reading::RULES {
            if (rule.get)(&reading) != rule.off {
                continue;
            }
            let (alone, found) = self.along(disks, rule, Reading::AS_WRITTEN, as_written)?;
            let mut beside = reading;
            (rule.set)(&mut beside, (rule.get)(&alone));
            if found < as_written && self.objective(disks, &beside)? == best {
                reading = beside;
            }
        }
        Ok(reading)
    }

    /// Chooses the best value of one rule while the other rules stay.
    fn along(
        &mut self,
        disks: &[usize],
        rule: &Rule,
        mut reading: Reading,
        mut best: f64,
    ) -> Result<(Reading, f64), ValidateError> {
        for &value in rule.tried {
            let mut tried = reading;
            (rule.set)(&mut tried, value);
            let found = self.objective(disks, &tried)?;
            // A return to off needs no gain, because a rule must earn its place.
            let gain = if value == rule.off {
                -GAIN_MIN
            } else {
                GAIN_MIN
            };
            if tried != reading && found < best * (1.0 - gain) {
                (reading, best) = (tried, found);
            }
        }
        Ok((reading, best))
    }
}
