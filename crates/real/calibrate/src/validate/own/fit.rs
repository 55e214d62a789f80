//! The descent along the parameters, and the confidence range of each.

use super::classes::Classes;
use super::log::OwnLog;
use super::parameters::{PARAMETERS, Parameter, PermittedValues};
use super::times::times_of;
use crate::validate::ValidateError;
use crate::validate::leave_one_out::GAIN_MIN;
use crate::validate::paced::Paced;
use fullstroke_drive::{DriveConfig, DriveModel};
use fullstroke_units::Seed;
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;

/// Largest number of halvings of a step. After these, each step is as small as its last value.
const HALVINGS: u32 = 6;
/// Largest number of passes over all parameters with steps of one size.
const PASSES_MAX: usize = 3;
/// Halvings of the steps with which numbers adapt to another choice from a list.
const COARSE: Range<u32> = 0..4;
/// Number of bootstrap resamples. The mean of 100 resamples repeats to 4 %.
const RESAMPLES: u32 = 100;

/// A parameter with its confidence range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedParameter {
    /// Key of the parameter in the drive file. `(factor)` means that the times of the curve are
    /// multiplied by the value.
    pub key: &'static str,
    /// Value in the library.
    pub library: String,
    /// Fitted value.
    pub fitted: String,
    /// True if the fit changed the value.
    pub changed: bool,
    /// True if the fitted value is an end of the permitted range.
    pub at_end: bool,
    /// Lower end of the range that the choosing half cannot tell from the fitted value. `None` if
    /// no lower value differs, or if the values form no range.
    pub least: Option<String>,
    /// Upper end of this range.
    pub most: Option<String>,
}

/// Parameter values by number, at one point of a descent.
#[derive(Clone, Debug)]
pub(super) struct Descent {
    values: Vec<Option<f64>>,
    pub(super) distance_ms: f64,
}

impl Descent {
    /// Returns the drive of this model with these parameters.
    pub(super) fn config(&self, model: &DriveModel) -> DriveConfig {
        let mut config = model.config().clone();
        for (parameter, value) in PARAMETERS.iter().zip(&self.values) {
            if let Some(value) = value {
                (parameter.set)(&mut config, model.config(), *value);
            }
        }
        config
    }

    fn value(&self, number: usize, model: &DriveModel) -> f64 {
        self.values[number].unwrap_or_else(|| (PARAMETERS[number].of)(model.config()))
    }

    fn with(&self, number: usize, value: f64) -> Descent {
        let mut values = self.values.clone();
        values[number] = Some(value);
        Descent {
            values,
            distance_ms: f64::INFINITY,
        }
    }
}

/// Returns true if the gain is at least [`GAIN_MIN`], because replays with other phases differ by
/// chance.
fn betters(tried: &Descent, best: &Descent) -> bool {
    tried.distance_ms < best.distance_ms * (1.0 - GAIN_MIN)
}

/// Compares drives with the choosing half of a log.
pub(super) struct Fit<'a> {
    log: &'a OwnLog,
    requests: Arc<[Paced]>,
    classes: Classes,
    noise_ms: f64,
}

impl<'a> Fit<'a> {
    pub(super) fn new(log: &'a OwnLog, seed: Seed) -> Fit<'a> {
        let classes = Classes::new(log, 0..log.half());
        let noise_ms = classes.noise_ms(seed, RESAMPLES);
        Fit {
            log,
            requests: log.paced[..log.half()].into(),
            classes,
            noise_ms,
        }
    }

    pub(super) fn log(&self) -> &'a OwnLog {
        self.log
    }

    /// Returns the distance of `model` from the measurement.
    pub(super) fn distance(&self, model: &DriveModel) -> Result<f64, ValidateError> {
        Ok(self
            .classes
            .distance_ms(&times_of(self.log, model, &self.requests)?))
    }

    /// Measures the distance of a changed drive; infinity if there can be no such drive.
    fn tried(&self, model: &DriveModel, mut descent: Descent) -> Result<Descent, ValidateError> {
        // Steps may leave the range of a drive (a negative seek time). Such a step has an infinite
        // distance and is never taken.
        if let Ok(changed) = DriveModel::new(descent.config(model)) {
            descent.distance_ms = self.distance(&changed)?;
        }
        Ok(descent)
    }

    /// Returns the parameters covered by the log.
    fn free(&self, model: &DriveModel) -> impl Iterator<Item = (usize, &'static Parameter)> {
        let config = model.config();
        let told =
            |(_, parameter): &(usize, &'static Parameter)| (parameter.told_by)(self.log, config);
        PARAMETERS.iter().enumerate().filter(told)
    }

    /// Descends from the given drive along the numbers. Then tries each other value of the
    /// parameters with a list of values, after the numbers have adapted to that value. A wrong
    /// speed of rotation may fit better as long as the seeks are wrong.
    pub(super) fn descend(&self, model: &DriveModel) -> Result<Descent, ValidateError> {
        let as_it_is = Descent {
            values: vec![None; PARAMETERS.len()],
            distance_ms: f64::INFINITY,
        };
        let mut best = self.downhill(model, self.tried(model, as_it_is)?, 0..HALVINGS)?;
        for (number, parameter) in self.free(model) {
            let PermittedValues::Each(values) = parameter.values else {
                continue;
            };
            let now = best.value(number, model);
            for (value, _) in values.iter().filter(|(value, _)| *value != now) {
                let other = self.tried(model, best.with(number, *value))?;
                // The numbers adapt in coarse steps only, because most other values turn out worse
                // at once.
                let adapted = self.downhill(model, other, COARSE)?;
                if betters(&adapted, &best) {
                    best = self.downhill(model, adapted, COARSE.end..HALVINGS)?;
                }
            }
        }
        Ok(best)
    }

    /// Descends along one number after the other, in steps of decreasing size.
    fn downhill(
        &self,
        model: &DriveModel,
        mut best: Descent,
        halvings: Range<u32>,
    ) -> Result<Descent, ValidateError> {
        for halvings in halvings {
            for _ in 0..PASSES_MAX {
                let before = best.distance_ms;
                for (number, parameter) in self.free(model) {
                    if let Some(step) = parameter.values.step(halvings) {
                        best = self.along(model, number, step, best)?;
                    }
                }
                // A pass without a gain ends this size of steps. Parameters depend on each other,
                // so a gain makes another pass worth its time.
                if best.distance_ms > before * (1.0 - GAIN_MIN) {
                    break;
                }
            }
        }
        Ok(best)
    }

    /// Moves up while the distance falls. If it never helps, moves down.
    fn along(
        &self,
        model: &DriveModel,
        number: usize,
        step: f64,
        mut best: Descent,
    ) -> Result<Descent, ValidateError> {
        let values = PARAMETERS[number].values;
        for direction in [1.0, -1.0] {
            let from = best.distance_ms;
            while let Some(value) = values.moved(best.value(number, model), step, direction) {
                let tried = self.tried(model, best.with(number, value))?;
                if !betters(&tried, &best) {
                    break;
                }
                best = tried;
            }
            // Along a number the distance is taken to have one minimum, so the other direction leads away.
            if best.distance_ms < from {
                break;
            }
        }
        Ok(best)
    }

    /// Returns each parameter with its confidence range. Within the range, the distance grows by
    /// less than the noise of the measurement, while the other parameters stay.
    pub(super) fn confidence_ranges(
        &self,
        model: &DriveModel,
        best: &Descent,
    ) -> Result<Vec<FittedParameter>, ValidateError> {
        let mut found = Vec::new();
        for (number, parameter) in self.free(model) {
            let (library, fitted) = ((parameter.of)(model.config()), best.value(number, model));
            found.push(FittedParameter {
                key: parameter.key,
                library: parameter.values.shown(library),
                fitted: parameter.values.shown(fitted),
                changed: library != fitted,
                at_end: library != fitted && parameter.values.ends_at(fitted),
                least: self.first_distinct(model, best, number, -1.0)?,
                most: self.first_distinct(model, best, number, 1.0)?,
            });
        }
        Ok(found)
    }

    /// Returns the descent and its parameters without the changes that the log does not tell: a
    /// number without a bound on either side keeps the value of the library.
    pub(super) fn told(
        &self,
        model: &DriveModel,
        mut best: Descent,
    ) -> Result<(Descent, Vec<FittedParameter>), ValidateError> {
        let mut parameters = self.confidence_ranges(model, &best)?;
        for parameter in &mut parameters {
            let Some(number) = PARAMETERS.iter().position(|each| each.key == parameter.key) else {
                continue;
            };
            let list = matches!(PARAMETERS[number].values, PermittedValues::Each(_));
            let bounded = parameter.least.is_some() || parameter.most.is_some();
            if parameter.changed && !list && !bounded {
                best.values[number] = None;
                parameter.changed = false;
                parameter.at_end = false;
                parameter.fitted.clone_from(&parameter.library);
            }
        }
        Ok((best, parameters))
    }

    /// Returns the first value in a direction at which the drive can be told from the best. The
    /// steps double.
    fn first_distinct(
        &self,
        model: &DriveModel,
        best: &Descent,
        number: usize,
        direction: f64,
    ) -> Result<Option<String>, ValidateError> {
        let values = PARAMETERS[number].values;
        let fitted = best.value(number, model);
        // Model error and noise of the measurement are independent, so their squares add up.
        let least_ms = best.distance_ms.hypot(self.noise_ms);
        let step = match values {
            PermittedValues::Each(_) => return Ok(None),
            PermittedValues::Sums { last, .. } | PermittedValues::Factors { last, .. } => last,
        };
        let mut last = fitted;
        for doublings in 0..10 {
            let Some(value) = values.moved(fitted, step, direction * 2f64.powi(doublings)) else {
                break;
            };
            if value == last {
                break;
            }
            if self.tried(model, best.with(number, value))?.distance_ms > least_ms {
                return Ok(Some(values.shown(value)));
            }
            last = value;
        }
        Ok(None)
    }
}
