//! Finds the best value of an axis for each combination of the others.

use crate::expression::{Estimate, ResultSource};
use crate::study::Study;
use fullstroke_contract::ConfigError;
use fullstroke_measure::Metric;
use serde::Serialize;
use std::collections::BTreeMap;

/// The best value of an axis at one combination of the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    /// Values of the other axes: `policy=greedy segments=8`; empty if there are none.
    pub others: String,
    /// Value with the best metric.
    pub best: String,
    /// Metric of the best value.
    pub value: f64,
    /// Half the width of the interval of `value`, if there is one.
    pub ci_half_width: Option<f64>,
    /// The next best value and its distance.
    pub runner_up: Option<RunnerUp>,
}

/// The next best value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunnerUp {
    /// Name of the value.
    pub name: String,
    /// Metric of this value less the best metric.
    pub difference: f64,
    /// Half the width of the interval of the difference, seed by seed. The interval ignores that
    /// the best value was chosen from the same data.
    pub ci_half_width: Option<f64>,
    /// True if the interval does not contain zero; `None` without an interval.
    pub significant: Option<bool>,
}

/// Returns the best value of the axis `over` by `metric`, for each combination of the other axes
/// for which every point was run. Without a name, the study's only axis with more than one value is
/// used.
///
/// # Errors
/// If there is no such axis.
pub fn best(
    study: &Study,
    data: &dyn ResultSource,
    metric: Metric,
    over: Option<&str>,
) -> Result<Vec<Best>, ConfigError> {
    let matrix = &study.matrix;
    let over = match over {
        Some(name) => matrix
            .axis(name)
            .map_err(|message| ConfigError::new("--over", message))?,
        None => {
            let mut varying =
                (0..matrix.axes.len()).filter(|&axis| matrix.axes[axis].values.len() > 1);
            match (varying.next(), varying.next()) {
                (Some(axis), None) => axis,
                _ => {
                    let names: Vec<&str> =
                        matrix.axes.iter().map(|axis| axis.name.as_str()).collect();
                    let message =
                        format!("say over which axis of {}: {}", study.id, names.join(", "));
                    return Err(ConfigError::new("--over", message));
                }
            }
        }
    };
    let name = metric.name();
    let index = study
        .metrics
        .iter()
        .position(|known| *known == name)
        .ok_or_else(|| {
            let message = format!(
                "found `{name}`, which {} does not keep; list it under `metrics` in the study",
                study.id
            );
            ConfigError::new("--best", message)
        })?;
    let mut groups: BTreeMap<Vec<usize>, Vec<(usize, Option<Estimate>)>> = BTreeMap::new();
    for (point, values) in matrix.points().iter().enumerate() {
        let mut others = values.clone();
        others.remove(over);
        groups
            .entry(others)
            .or_default()
            .push((values[over], data.value(point, index)));
    }
    // With the sign, the best value is the smallest for every metric.
    let sign = if metric.more_is_better() { -1.0 } else { 1.0 };
    let mut all = Vec::new();
    for (others, candidates) in groups {
        let run: Option<Vec<(usize, Estimate)>> = candidates
            .into_iter()
            .map(|(value, found)| found.map(|found| (value, found)))
            .collect();
        let Some(mut run) = run else { continue };
        // NaN means that nothing was measured. total_cmp would put NaN behind all numbers, and with
        // the sign before them.
        run.retain(|(_, estimate)| !estimate.mean().is_nan());
        // A stable sort: of equal means, the value that the study names first comes first.
        run.sort_by(|one, other| (sign * one.1.mean()).total_cmp(&(sign * other.1.mean())));
        let label = |value: usize| matrix.axes[over].values[value].name.clone();
        let Some((value, estimate)) = run.first() else {
            continue;
        };
        all.push(Best {
            others: describe(study, over, &others),
            best: label(*value),
            value: estimate.mean(),
            ci_half_width: estimate.half_width(),
            runner_up: run
                .get(1)
                .map(|(value, next)| RunnerUp::new(label(*value), next, estimate)),
        });
    }
    Ok(all)
}

impl RunnerUp {
    fn new(name: String, next: &Estimate, best: &Estimate) -> RunnerUp {
        let difference = next.subtract(best);
        let half_width = difference.half_width();
        RunnerUp {
            name,
            difference: difference.mean(),
            ci_half_width: half_width,
            significant: half_width.map(|width| difference.mean().abs() > width),
        }
    }
}

fn describe(study: &Study, over: usize, others: &[usize]) -> String {
    let axes = study
        .matrix
        .axes
        .iter()
        .enumerate()
        .filter(|(axis, _)| *axis != over);
    let each = axes
        .zip(others)
        .map(|((_, axis), &value)| format!("{}={}", axis.name, axis.values[value].name));
    each.collect::<Vec<_>>().join(" ")
}
