//! A drive model fitted to the log of the user's own disk, with a measure of its accuracy.
//!
//! The first half of the log chooses the nearest drive and fits its free parameters. The second
//! half judges the fit. Both halves are replayed with the number of outstanding requests and the
//! think times of the log.
//!
//! | file | contents |
//! |---|---|
//! | `log.rs` | a trace with latencies, as requests for a replay; unsuitable logs are refused |
//! | `classes.rs` | requests of one kind, compared only with each other |
//! | `parameters.rs` | free parameters of a drive |
//! | `span.rs` | a request of a log |
//! | `rotation.rs` | the speed of rotation, from periods in the log |
//! | `fit.rs` | the descent along the parameters, and the confidence range of each |
//! | `times.rs` | simulated times of a log's requests |
//! | `trust.rs` | the verdict, in words |

mod classes;
mod fit;
mod log;
mod parameters;
mod rotation;
mod span;
#[cfg(test)]
mod tests;
mod times;
mod trust;

pub use fit::FittedParameter;
pub use log::{LOGGED_MIN, OwnLog, TimeOrigin};
pub use rotation::{Rotation, RotationEvidence};
pub use trust::{ModelVerdict, Trust};

use crate::validate::parallel::in_parallel;
use crate::validate::validation::RESAMPLES;
use crate::validate::{EmpiricalTimes, FoundDrive, ValidateError};
use fit::Fit;
use fullstroke_drive::{DriveConfig, DriveModel, Published};
use fullstroke_stack::drives;
use fullstroke_units::Seed;
use serde::Serialize;
use times::times_of;

/// Number of fitted drives of the library: the nearest before any fit.
const CANDIDATES: usize = 3;

/// A part of the log, measured and simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogPart {
    /// Number of compared requests.
    pub n: usize,
    /// Mean response time of the disk, in ms.
    pub measured_mean_ms: f64,
    /// Mean response time of the model, in ms.
    pub simulated_mean_ms: f64,
    /// Quantiles of the disk in ms: 0.5, 0.9, 0.99.
    pub measured_quantiles_ms: [f64; 3],
    /// Quantiles of the model in ms: 0.5, 0.9, 0.99.
    pub simulated_quantiles_ms: [f64; 3],
    /// Root-mean-square distance of the two distributions, in ms.
    pub rms_ms: f64,
    /// Root-mean-square distance as a share of the measured mean.
    pub rms_share: f64,
}

impl LogPart {
    fn new(measured: &EmpiricalTimes, simulated: &EmpiricalTimes) -> LogPart {
        let rms_ms = measured.demerit(simulated);
        let quantiles = |sample: &EmpiricalTimes| [0.5, 0.9, 0.99].map(|p| sample.quantile(p));
        LogPart {
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

/// Requests of one kind in the judging half.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedRequests {
    /// Property that separates the kinds: `operation`, `size` or `outstanding`.
    pub by: &'static str,
    /// Class of the kind: `read`, `to 8 KiB`, `2 to 4`.
    pub class: &'static str,
    /// Times of these requests.
    #[serde(flatten)]
    pub part: LogPart,
}

/// A fitted drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedDrive {
    /// Name of the drive in the library, or the file with its description.
    pub drive: String,
    /// Distance from the choosing half before the fit: root mean square over the classes of
    /// requests, in ms.
    pub as_it_is_ms: f64,
    /// Distance from the choosing half after the fit, in ms.
    pub fitted_ms: f64,
}

/// The user's own disk, and the nearest model.
#[derive(Clone, Debug, Serialize)]
pub struct OwnDisk {
    /// The log.
    pub log: OwnLog,
    /// Fitted drive: its name in the library, or its file.
    pub drive: String,
    /// Title of the drive.
    pub title: String,
    /// Fitted drives, the nearest first.
    pub candidates: Vec<FittedDrive>,
    /// Free parameters of the drive, with the fitted values.
    pub parameters: Vec<FittedParameter>,
    /// Results on the choosing half.
    pub fitted_on: LogPart,
    /// Results on the judging half.
    pub held_out: LogPart,
    /// Results on the judging half with the drive as it is in the library.
    pub held_out_unfitted: LogPart,
    /// Sampling noise of the judging half, in ms (see [`EmpiricalTimes::bootstrap_noise`]).
    pub noise_ms: f64,
    /// Distance between the two measured halves, in ms. No model fitted to the first half can
    /// foresee this difference.
    pub halves_apart_ms: f64,
    /// Results on the judging half by operation, size and number of outstanding requests.
    pub kinds: Vec<JudgedRequests>,
    /// Verdict on the model.
    pub trust: Trust,
    /// True if the fit started from figures of the user, not from a drive of the library.
    #[serde(skip)]
    given: bool,
    /// The fitted drive.
    #[serde(skip)]
    pub config: DriveConfig,
    /// Measured response times of the judging half.
    #[serde(skip)]
    pub measured: EmpiricalTimes,
    /// Simulated response times of the judging half.
    #[serde(skip)]
    pub simulated: EmpiricalTimes,
}

impl OwnDisk {
    /// Returns the source of a key that keeps the value of the start.
    fn kept(&self, key: &str) -> String {
        // The figures of the user have their own sources, and a key below has that of its table.
        let of_key = [key, key.split('.').next().unwrap_or(key)];
        let given = of_key.iter().find_map(|key| self.config.sources.get(*key));
        let value = match given.filter(|_| self.given) {
            Some(source) => source.clone(),
            None => format!("as in {}", self.drive),
        };
        format!("{value}; {} does not tell another value", self.log.file)
    }

    /// Returns the fitted drive as a file of the user's own. The vendor's published values of the
    /// library's drive are left out. The file marks the fitted values.
    pub fn drive_file(&self) -> DriveConfig {
        let mut config = DriveConfig {
            published: Published::default(),
            validated: None,
            ..self.config.clone()
        };
        config.title = format!("{}, fitted to {}", self.title, self.log.file);
        for parameter in self
            .parameters
            .iter()
            .filter(|parameter| !parameter.changed)
        {
            for key in parameters::keys(parameter.key) {
                let kept = self.kept(key);
                config.sources.insert((*key).to_owned(), kept);
            }
        }
        let rpm = match &self.log.rotation {
            Some(rotation) if config.rpm == rotation.rpm => {
                format!("found in {}: {rotation}", self.log.file)
            }
            Some(rotation) => format!("as in {}; {}: {rotation}", self.drive, self.log.file),
            None => format!(
                "as in {}; {} does not tell the speed",
                self.drive, self.log.file
            ),
        };
        config.sources.insert("rpm".to_owned(), rpm);
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

/// Fits the nearest drive of the library, or the drive `said` by the user, to `log`. `seed` is the
/// seed of the bootstrap resamples.
///
/// # Errors
/// If the drive is unknown or too small, or the log's times end beyond the clock.
pub fn fit_own_disk(log: OwnLog, said: Option<&str>, seed: Seed) -> Result<OwnDisk, ValidateError> {
    let starts = nearest(&Fit::new(&log, seed), said)?;
    fit_from(log, starts, seed)
}

/// Fits a drive of the user's own figures to `log`.
///
/// # Errors
/// If the drive is too small, the log tells another speed, or its times end beyond the clock.
pub fn fit_given_disk(
    log: OwnLog,
    drive: FoundDrive,
    seed: Seed,
) -> Result<OwnDisk, ValidateError> {
    // Before the fit, whose runs would end with an address beyond the drive.
    log.fits_on(&drive)?;
    let rpm = drive.model.config().rpm;
    if let Some(rotation) = log.rotation.filter(|rotation| rotation.differs(rpm)) {
        return Err(log.cannot_tell(format!(
            "`{}` has {rpm} revolutions a minute, and in the log {rotation}; expected figures of the disk that was \
             logged",
            drive.name
        )));
    }
    let start = FitStart::new(&Fit::new(&log, seed), drive)?;
    let mut disk = fit_from(log, vec![start], seed)?;
    // The sources of the user's figures then stand in the drive file.
    disk.given = true;
    Ok(disk)
}

fn fit_from(log: OwnLog, starts: Vec<FitStart>, seed: Seed) -> Result<OwnDisk, ValidateError> {
    let fit = Fit::new(&log, seed);
    let mut fitted = in_parallel(&starts, |start| {
        Ok((start.clone(), fit.descend(&start.turned)?))
    })?;
    fitted.sort_by(|a, b| a.1.distance_ms.total_cmp(&b.1.distance_ms));
    let candidates = fitted
        .iter()
        .map(|(start, descent)| FittedDrive {
            drive: start.drive.name.clone(),
            as_it_is_ms: start.as_it_is_ms,
            fitted_ms: descent.distance_ms,
        })
        .collect();
    let (start, descent) = fitted.swap_remove(0);
    // Only for the nearest drive: the intervals of the parameters take many runs.
    let (descent, mut parameters) = fit.told(&start.turned, descent)?;
    let config = descent.config(&start.turned);
    let drive = start.drive;
    if let Some(rotation) = &log.rotation {
        let library = drive.model.config().rpm;
        // First, because the other parameters were fitted at this speed.
        parameters.insert(0, speed_row(rotation, library, config.rpm));
    }
    let times = all_times(&log, &config, &drive.name)?;
    // The drive at its own speed: the answer shows what the whole fit gains.
    let unfitted = all_times(&log, drive.model.config(), &drive.name)?;
    let (half, all) = (log.half(), log.paced.len());
    let (first, first_simulated) = log.compared(0..half, &times, |_| true);
    let (measured, simulated) = log.compared(half..all, &times, |_| true);
    let (_, as_it_is) = log.compared(half..all, &unfitted, |_| true);
    let fitted_on = LogPart::new(&first, &first_simulated);
    let held_out = LogPart::new(&measured, &simulated);
    let held_out_unfitted = LogPart::new(&measured, &as_it_is);
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
        given: false,
        config,
        measured,
    })
}

/// Returns the row of the speed in the answer.
fn speed_row(rotation: &Rotation, library: f64, found: f64) -> FittedParameter {
    let shown = |rpm: f64| {
        let text = format!("{rpm:.1}");
        text.trim_end_matches(".0").to_owned()
    };
    FittedParameter {
        key: "rpm",
        library: shown(library),
        fitted: shown(found),
        changed: library != found,
        at_end: false,
        least: Some(shown(rotation.least)),
        most: Some(shown(rotation.most)),
    }
}

/// A drive of the library from which a fit starts.
#[derive(Clone)]
struct FitStart {
    drive: FoundDrive,
    /// Distance of the drive from the choosing half, in ms.
    as_it_is_ms: f64,
    /// The drive at the speed that the log tells.
    turned: DriveModel,
}

impl FitStart {
    fn new(fit: &Fit<'_>, drive: FoundDrive) -> Result<FitStart, ValidateError> {
        Ok(FitStart {
            as_it_is_ms: fit.distance(&drive.model)?,
            turned: turned(fit.log(), &drive.model),
            drive,
        })
    }
}

/// Returns the drive at the speed that the log tells. The drive keeps its own speed if the log does
/// not tell it from another.
fn turned(log: &OwnLog, model: &DriveModel) -> DriveModel {
    let own = model.config().rpm;
    let wanted = log.rotation.filter(|rotation| {
        rotation.by == RotationEvidence::Phase && rotation.rpm != own || rotation.differs(own)
    });
    let other = wanted.and_then(|rotation| {
        // A drive that cannot turn at this speed, as with skews shorter than a change of head, is a
        // bad start but no error.
        DriveModel::new(DriveConfig {
            rpm: rotation.rpm,
            ..model.config().clone()
        })
        .ok()
    });
    other.unwrap_or_else(|| model.clone())
}

/// Returns the drives from which fits start.
fn nearest(fit: &Fit<'_>, said: Option<&str>) -> Result<Vec<FitStart>, ValidateError> {
    let load = |name: &str| -> Result<FoundDrive, ValidateError> {
        Ok(FoundDrive {
            name: name.to_owned(),
            model: drives::load(name)?,
        })
    };
    if let Some(name) = said {
        let drive = load(name)?;
        fit.log().fits_on(&drive)?;
        return Ok(vec![FitStart::new(fit, drive)?]);
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
        let distance = fit.distance(&turned(fit.log(), &drive.model))?;
        Ok((drive.clone(), distance))
    })?;
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    // A fit takes many runs, so that only the nearest drives are fitted.
    found.truncate(CANDIDATES);
    found
        .into_iter()
        .map(|(drive, _)| FitStart::new(fit, drive))
        .collect()
}

/// Returns the times of all requests of the log on a drive with `config`.
fn all_times(log: &OwnLog, config: &DriveConfig, drive: &str) -> Result<Vec<f64>, ValidateError> {
    let model = DriveModel::new(config.clone()).map_err(|source| ValidateError::Model {
        drive: drive.to_owned(),
        source,
    })?;
    times_of(log, &model, &log.paced)
}

/// Splits the judging half into kinds, by each property.
fn kinds(log: &OwnLog, times: &[f64]) -> Vec<JudgedRequests> {
    let mut kinds = Vec::new();
    for (by, names, class) in classes::SHOWN {
        for (number, name) in names.iter().enumerate() {
            let (measured, simulated) =
                log.compared(log.half()..log.paced.len(), times, |request| {
                    class(request) == number
                });
            if !measured.is_empty() {
                kinds.push(JudgedRequests {
                    by,
                    class: name,
                    part: LogPart::new(&measured, &simulated),
                });
            }
        }
    }
    kinds
}
