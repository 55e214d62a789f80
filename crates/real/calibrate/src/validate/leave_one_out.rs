//! Rules that stand in no parameter file, chosen on measured disks and held
//! against disks that they were not chosen on.
//!
//! A parameter file of DiskSim is read by rules ([`Reading::RULES`]). Chosen on
//! a set of disks they fit that set; whether they say something about disks is
//! seen on a disk that was not in it. So each disk is left out once: the rules
//! are chosen on the others, and the model that they give is held against it.
//!
//! The choice is a descent along one rule after the other, from the file as it is
//! written; a rule is adopted if the root of the mean squared shares falls by
//! [`GAIN_MIN`], so that what helps none of the disks stays off. One that helps by
//! itself and moves nothing beside those that were adopted, because they hide it
//! on these disks, is adopted too: that does not speak against it on the next.

use crate::validate::find::parameters_beside;
use crate::validate::paced::{Paced, simulate};
use crate::validate::parallel::in_parallel;
use crate::validate::replay::{closed, read};
use crate::validate::{FoundDrive, Sample, TraceFile, ValidateError};
use fullstroke_disksim::{Options, Reading, Rule, import};
use fullstroke_drive::Model;
use serde::Serialize;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Part of the objective by which a value must better it.
pub const GAIN_MIN: f64 = 0.002;
/// Passes over all rules at most.
const PASSES_MAX: usize = 6;

/// A measured disk whose parameter file can be read by other rules.
#[derive(Clone, Debug)]
pub struct MeasuredDisk {
    name: String,
    parameters: PathBuf,
    requests: Arc<[Paced]>,
    measured: Sample,
}

/// How far a model is from a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distance {
    /// Root-mean-square distance of the two distributions.
    pub rms_ms: f64,
    /// The same as a share of the measured mean.
    pub rms_share: f64,
}

/// One disk with rules that were chosen with it and without it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// The trace's name.
    pub drive: String,
    /// Mean service time of the real disk.
    pub measured_mean_ms: f64,
    /// The file as it is written, without any rule.
    pub as_written: Distance,
    /// By the rules that imports use unless told otherwise.
    pub by_default: Distance,
    /// By the rules chosen on all disks.
    pub all_fitted: Distance,
    /// By the rules chosen on all other disks.
    pub left_out: Distance,
    /// Those rules, where they are not as written: `name=value`.
    pub rules: Vec<String>,
}

/// All disks, each left out once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeaveOneOut {
    /// The disks.
    pub disks: Vec<LeftOut>,
    /// The rules chosen on all of them, where they are not as written.
    pub rules: Vec<String>,
    /// Replays that were needed.
    pub replays: usize,
}

impl MeasuredDisk {
    /// The disk of a trace. `None` if no parameter file of DiskSim stands beside
    /// it.
    ///
    /// # Errors
    /// A parameter file or trace that cannot be used.
    pub fn read(trace: &TraceFile) -> Result<Option<MeasuredDisk>, ValidateError> {
        let Some(parameters) = parameters_beside(&trace.path) else {
            return Ok(None);
        };
        let mut disk = MeasuredDisk {
            name: trace.name.clone(),
            parameters,
            requests: Arc::default(),
            measured: Sample::new(Vec::new()),
        };
        let model = disk.model(&Reading::default())?;
        let name = disk.parameters.display().to_string();
        let rows = read(&trace.path, model.config().capacity_sectors)
            .map_err(|error| ValidateError::from_trace(error, &name))?;
        disk.requests = closed(&rows);
        disk.measured = Sample::new(rows.iter().map(|row| row.service.as_millis_f64()).collect());
        // So that a think time beyond all clocks is told here and not below.
        disk.distance(&Reading::default())?;
        Ok(Some(disk))
    }

    fn model(&self, reading: &Reading) -> Result<Model, ValidateError> {
        let drive = self.parameters.display().to_string();
        let options = Options {
            reading: *reading,
            ..Options::default()
        };
        let mut disks = import(&self.parameters, &options)
            .map_err(Box::new)
            .map_err(ValidateError::Import)?;
        let config = disks.swap_remove(0).config;
        Model::new(config).map_err(|source| ValidateError::Model { drive, source })
    }

    /// How far the disk's model by `reading` is from its measurement.
    ///
    /// # Errors
    /// A model that cannot be built, or a trace that does not fit the clock.
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
        let rms_ms = self.measured.demerit(&Sample::new(times));
        Ok(Distance {
            rms_ms,
            rms_share: rms_ms / self.measured.mean(),
        })
    }
}

/// Chooses rules on all disks, and for each disk on the others.
///
/// # Errors
/// A model that cannot be built.
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
        left_out.push(LeftOut {
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

/// A disk's number and the bits of a reading.
type Key = (usize, Vec<u64>);

/// A descent that remembers what it has seen.
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
    /// The distances of some disks, those that are new in parallel.
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

    /// What is made small: the root of the mean squared shares.
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

    /// A reading with the rules that help by themselves and move nothing beside
    /// it. A drive that holds whole tracks does not tell, as long as it is known
    /// that it does, how far read-ahead goes.
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

    /// The best of a rule's values, the others as they are.
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
            // Off again costs nothing: a rule must earn its place.
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
