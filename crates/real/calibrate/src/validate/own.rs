//! A drive model fitted to the log of one's own disk, and how far it may be
//! trusted.
//!
//! The first half of the log chooses the nearest drive and its free parameters,
//! the second half judges. Both are replayed with as many requests outstanding,
//! and with the think times, that the log has.
//!
//! | file | what |
//! |---|---|
//! | `log.rs` | a trace with latencies, as requests that can be replayed; what cannot tell is refused |
//! | `classes.rs` | requests of one kind, compared with each other alone |
//! | `parameters.rs` | what is free in a drive |
//! | `fit.rs` | the descent along the parameters, and how surely each is told |
//! | `trust.rs` | the verdict, in words |

mod classes;
mod fit;
mod log;
mod parameters;
#[cfg(test)]
mod tests;
mod trust;

pub use fit::FittedParameter;
pub use log::{LOGGED_MIN, OwnLog, Times};
pub use trust::{Trust, Verdict};

use crate::validate::paced::{Paced, simulate};
use crate::validate::parallel::in_parallel;
use crate::validate::validation::RESAMPLES;
use crate::validate::{FoundDrive, Sample, ValidateError};
use fit::Fit;
use fullstroke_drive::{DriveConfig, Model, Published};
use fullstroke_stack::drives;
use fullstroke_units::Seed;
use serde::Serialize;
use std::sync::Arc;

/// Drives of the library that are fitted: those that are nearest as they stand.
const CANDIDATES: usize = 3;

/// A part of the log, measured and simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Requests compared.
    pub n: usize,
    /// Mean response time of the disk.
    pub measured_mean_ms: f64,
    /// Mean response time of the model.
    pub simulated_mean_ms: f64,
    /// Quantiles of the disk: 0.5, 0.9, 0.99.
    pub measured_quantiles_ms: [f64; 3],
    /// Quantiles of the model: 0.5, 0.9, 0.99.
    pub simulated_quantiles_ms: [f64; 3],
    /// Root-mean-square distance of the two distributions.
    pub rms_ms: f64,
    /// The same as a share of the measured mean.
    pub rms_share: f64,
}

impl Part {
    fn new(measured: &Sample, simulated: &Sample) -> Part {
        let rms_ms = measured.demerit(simulated);
        let quantiles = |sample: &Sample| [0.5, 0.9, 0.99].map(|p| sample.quantile(p));
        Part {
            n: measured.len(),
            measured_mean_ms: measured.mean(),
            simulated_mean_ms: simulated.mean(),
            measured_quantiles_ms: quantiles(measured),
            simulated_quantiles_ms: quantiles(simulated),
            rms_ms,
            rms_share: rms_ms / measured.mean(),
        }
    }
}

/// Requests of one kind in the half that judges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kind {
    /// What tells them from the others: `operation`, `size` or `outstanding`.
    pub by: &'static str,
    /// Which of these: `read`, `to 8 KiB`, `2 to 4`.
    pub class: &'static str,
    /// Their times.
    #[serde(flatten)]
    pub part: Part,
}

/// A drive that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Its name in the library, or the file that describes it.
    pub drive: String,
    /// How far it is from the half that chooses, before anything is fitted:
    /// over the classes of requests, root-mean-square, ms.
    pub as_it_is_ms: f64,
    /// And fitted.
    pub fitted_ms: f64,
}

/// One's own disk, and the model that comes nearest to it.
#[derive(Clone, Debug, Serialize)]
pub struct OwnDisk {
    /// The log.
    pub log: OwnLog,
    /// The drive that was fitted: its name in the library, or its file.
    pub drive: String,
    /// Its title.
    pub title: String,
    /// The drives that were fitted, nearest first.
    pub candidates: Vec<Candidate>,
    /// What is free in it, and what was found.
    pub parameters: Vec<FittedParameter>,
    /// The half that chose.
    pub fitted_on: Part,
    /// The half that judges.
    pub held_out: Part,
    /// The same half by the drive as it stands in the library.
    pub held_out_unfitted: Part,
    /// Sampling noise of the half that judges (see [`Sample::bootstrap_noise`]).
    pub noise_ms: f64,
    /// How far the two measured halves lie apart: what no model can foresee that
    /// is fitted to the first.
    pub halves_apart_ms: f64,
    /// The half that judges by operation, size and requests outstanding.
    pub kinds: Vec<Kind>,
    /// How far the model may be trusted.
    pub trust: Trust,
    /// The fitted drive.
    #[serde(skip)]
    pub config: DriveConfig,
    /// Response times of the half that judges, measured.
    #[serde(skip)]
    pub measured: Sample,
    /// And simulated.
    #[serde(skip)]
    pub simulated: Sample,
}

impl OwnDisk {
    /// The fitted drive as a file of one's own: what a vendor publishes of the
    /// library's is left out, and what was fitted says so.
    pub fn drive_file(&self) -> DriveConfig {
        let mut config = DriveConfig {
            published: Published::default(),
            ..self.config.clone()
        };
        config.title = format!("{}, fitted to {}", self.title, self.log.file);
        for parameter in self.parameters.iter().filter(|parameter| parameter.changed) {
            let said = format!(
                "fitted: to {}, from {} of {}",
                self.log.file, parameter.library, self.drive
            );
            for key in parameters::keys(parameter.key) {
                config.sources.insert((*key).to_owned(), said.clone());
            }
        }
        config
    }
}

/// Fits the nearest drive of the library, or the one that is `said`, to `log`.
/// `seed` is that of the bootstrap resamples.
///
/// # Errors
/// A drive that is not known or too small; a log whose times end beyond the clock.
pub fn fit_own_disk(log: OwnLog, said: Option<&str>, seed: Seed) -> Result<OwnDisk, ValidateError> {
    let fit = Fit::new(&log, seed);
    let mut fitted = in_parallel(&nearest(&fit, said)?, |(drive, as_it_is)| {
        let descent = fit.descend(&drive.model)?;
        Ok((drive.clone(), *as_it_is, descent))
    })?;
    fitted.sort_by(|a, b| a.2.distance_ms.total_cmp(&b.2.distance_ms));
    let candidates = fitted
        .iter()
        .map(|(drive, as_it_is_ms, descent)| Candidate {
            drive: drive.name.clone(),
            as_it_is_ms: *as_it_is_ms,
            fitted_ms: descent.distance_ms,
        })
        .collect();
    let (drive, _, descent) = fitted.swap_remove(0);
    let parameters = fit.surely(&drive.model, &descent)?;
    let config = descent.config(&drive.model);
    let times = all_times(&log, &config, &drive.name)?;
    let unfitted = all_times(&log, drive.model.config(), &drive.name)?;
    let (half, all) = (log.half(), log.paced.len());
    let (first, first_simulated) = log.compared(0..half, &times, |_| true);
    let (measured, simulated) = log.compared(half..all, &times, |_| true);
    let (_, as_it_is) = log.compared(half..all, &unfitted, |_| true);
    let fitted_on = Part::new(&first, &first_simulated);
    let held_out = Part::new(&measured, &simulated);
    let held_out_unfitted = Part::new(&measured, &as_it_is);
    let noise_ms = measured.bootstrap_noise(seed, RESAMPLES);
    let halves_apart_ms = first.demerit(&measured);
    let kinds = kinds(&log, &times);
    let trust = Trust::new(
        &log,
        &fitted_on,
        &held_out,
        noise_ms,
        halves_apart_ms,
        &kinds,
        &parameters,
    );
    Ok(OwnDisk {
        held_out_unfitted,
        drive: drive.name,
        title: drive.model.config().title.clone(),
        simulated,
        log,
        candidates,
        parameters,
        fitted_on,
        held_out,
        noise_ms,
        halves_apart_ms,
        kinds,
        trust,
        config,
        measured,
    })
}

/// The drives that are fitted, each with its distance as it stands.
fn nearest(fit: &Fit<'_>, said: Option<&str>) -> Result<Vec<(FoundDrive, f64)>, ValidateError> {
    let load = |name: &str| -> Result<FoundDrive, ValidateError> {
        Ok(FoundDrive {
            name: name.to_owned(),
            model: drives::load(name)?,
        })
    };
    if let Some(name) = said {
        let drive = load(name)?;
        fit.log().fits_on(&drive)?;
        let distance = fit.distance(&drive.model)?;
        return Ok(vec![(drive, distance)]);
    }
    let mut large_enough = Vec::new();
    let mut largest = 0;
    for name in drives::names() {
        let drive = load(name)?;
        let sectors = drive.model.config().capacity_sectors.0;
        largest = largest.max(sectors);
        if sectors >= fit.log().span_sectors {
            large_enough.push(drive);
        }
    }
    if large_enough.is_empty() {
        let reason = format!(
            "it reaches to sector {}, and the largest drive of the library has {largest}; describe the drive \
             with `fullstroke drive new` and name its file with --drive",
            fit.log().span_sectors
        );
        return Err(fit.log().cannot_tell(reason));
    }
    let mut found = in_parallel(&large_enough, |drive| {
        Ok((drive.clone(), fit.distance(&drive.model)?))
    })?;
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    found.truncate(CANDIDATES);
    Ok(found)
}

/// The times of all requests of the log on a drive like `config`.
fn all_times(log: &OwnLog, config: &DriveConfig, drive: &str) -> Result<Vec<f64>, ValidateError> {
    let model = Model::new(config.clone()).map_err(|source| ValidateError::Model {
        drive: drive.to_owned(),
        source,
    })?;
    times_of(log, &model, &log.paced)
}

/// The times of `requests` of the log on `model`.
fn times_of(
    log: &OwnLog,
    model: &Model,
    requests: &Arc<[Paced]>,
) -> Result<Vec<f64>, ValidateError> {
    let (completed, times) = simulate(model, requests).map_err(|source| ValidateError::Model {
        drive: model.config().title.clone(),
        source,
    })?;
    if completed < requests.len() as u64 {
        let file = log.file.clone();
        return Err(ValidateError::ClockEnded {
            file,
            completed,
            requests: requests.len(),
        });
    }
    Ok(times)
}

/// The half that judges, by each way to tell its requests apart.
fn kinds(log: &OwnLog, times: &[f64]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (by, names, class) in classes::SHOWN {
        for (number, name) in names.iter().enumerate() {
            let (measured, simulated) =
                log.compared(log.half()..log.paced.len(), times, |request| {
                    class(request) == number
                });
            if !measured.is_empty() {
                kinds.push(Kind {
                    by,
                    class: name,
                    part: Part::new(&measured, &simulated),
                });
            }
        }
    }
    kinds
}
