//! Numbers kept of a run: every metric, and numbers by their path in the report.

use crate::predicted::{Equations, NoEquations, PredictedReport};
use fullstroke_contract::registry::nearest;
use fullstroke_contract::{Counters, MemberStatistics};
use fullstroke_engine::{Graph, RunOutcome};
use fullstroke_lab::RunResult;
use fullstroke_measure::{
    AbsentMetric, Measurement, Metric, Report, RunIdentity, WarmUp, WindowsReport,
};
use fullstroke_stack::{Stack, StackError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// The confidence of the intervals within a run.
const CONFIDENCE: f64 = 0.95;

/// One number of a run; NaN if nothing was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunNumber {
    /// Name of the metric, or path in the report.
    pub metric: String,
    /// Value of the number.
    #[serde(with = "bits")]
    pub value: f64,
    /// Half the width of the 95 % interval of `value` within the run, if there is one.
    #[serde(with = "bits::optional")]
    pub half_width: Option<f64>,
}

/// Serializes a number as its bits, so that all digits and NaN survive.
mod bits {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }

    pub(super) mod optional {
        use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

        pub(crate) fn serialize<S: Serializer>(
            value: &Option<f64>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            value.map(f64::to_bits).serialize(to)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<f64>, D::Error> {
            Ok(Option::<u64>::deserialize(from)?.map(f64::from_bits))
        }
    }
}

/// A path without a number of a run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The table has no such key.
    #[error("`{path}`: there is no `{key}`{near}; known there: {known}")]
    NoKey {
        /// The path.
        path: String,
        /// The key.
        key: String,
        /// The nearest key as a question, or nothing.
        near: String,
        /// All keys.
        known: String,
    },
    /// The list has no such item.
    #[error("`{path}`: there is no `{item}`{near} among {items} items")]
    NoItem {
        /// The path.
        path: String,
        /// Number or name of the item.
        item: String,
        /// The nearest name as a question, or nothing.
        near: String,
        /// Number of items.
        items: usize,
    },
    /// A part that needs a table or a list follows something else.
    #[error("`{path}`: `{part}` follows {found}")]
    Behind {
        /// The path.
        path: String,
        /// The part.
        part: String,
        /// Kind of the value before the part.
        found: &'static str,
    },
    /// A bracket is not closed.
    #[error("`{path}`: a bracket is not closed")]
    Open {
        /// The path.
        path: String,
    },
    /// The path leads to a value of another type.
    #[error("`{path}` is {found}; expected a number")]
    NoNumber {
        /// The path.
        path: String,
        /// Kind of the value.
        found: &'static str,
    },
    /// No run has this metric.
    #[error(transparent)]
    Absent(#[from] AbsentMetric),
    /// The array has no equations.
    #[error("`{PREDICTED}...`: {0}")]
    NoEquations(#[from] NoEquations),
}

/// Returns the names of all metrics without a path.
pub(crate) fn standard() -> Vec<String> {
    Metric::all().iter().map(Metric::name).collect()
}

/// Returns all numbers kept of a run.
///
/// # Errors
/// A path without a value.
pub fn keep(ran: &RunResult, paths: &[String]) -> Result<Vec<RunNumber>, PathError> {
    keep_beside(ran, None, paths)
}

/// Returns all numbers kept of a run, including predictions for the run's load.
pub(crate) fn keep_beside(
    ran: &RunResult,
    predicted: Option<&PredictedReport>,
    paths: &[String],
) -> Result<Vec<RunNumber>, PathError> {
    let report = &ran.measured.report;
    let mut kept: Vec<RunNumber> = Metric::all()
        .into_iter()
        .map(|metric| RunNumber {
            metric: metric.name(),
            value: metric.value(report),
            half_width: ran.measured.half_width(metric, CONFIDENCE),
        })
        .collect();
    if !paths.is_empty() {
        let tree = json(report, predicted);
        for path in paths {
            let value = match named(path) {
                Some(metric) => metric.value(report),
                None => find(&tree, path)?.as_f64().unwrap_or(f64::NAN),
            };
            kept.push(RunNumber {
                metric: path.clone(),
                value,
                half_width: None,
            });
        }
    }
    Ok(kept)
}

/// Checks that each path leads to a number in the reports on `stack`, without a run.
pub(crate) fn check(stack: &Stack, paths: &[String]) -> Result<Result<(), PathError>, StackError> {
    if paths.is_empty() {
        return Ok(Ok(()));
    }
    let graph = Graph::new(stack.build()?.layers);
    let drives: Vec<String> = graph.drive_names().map(str::to_owned).collect();
    let counters = Counters {
        drives: vec![MemberStatistics::default(); drives.len()],
        ..Counters::default()
    };
    let nothing = RunOutcome {
        counters,
        ..RunOutcome::default()
    };
    let measurement = Measurement::new(WarmUp::default())
        .with_processes(stack.process_names())
        .with_workloads(stack.workload_names());
    let mut empty = measurement
        .finish(&nothing, &drives, RunIdentity::default())
        .report;
    // Numbers of hosts and their programs are known only from runs, so only paths of workloads are
    // checked by name.
    let of_workloads = paths
        .iter()
        .filter(|path| path.starts_with(WORKLOADS))
        .filter_map(|path| named(path));
    if let Err(absent) = of_workloads
        .into_iter()
        .try_for_each(|metric| metric.check(&[&empty]))
    {
        return Ok(Err(absent.into()));
    }
    let predicted = paths.iter().any(|path| of_equations(path));
    if let Some(Err(why)) = predicted.then(|| Equations::of(stack)).transpose()? {
        return Ok(Err(why.into()));
    }
    empty.over_time.windows = Some(WindowsReport::default());
    let report = json(&empty, Some(&PredictedReport::none()));
    let unnamed = paths.iter().filter(|path| named(path).is_none());
    Ok(unnamed
        .map(String::as_str)
        .try_for_each(|path| match find(&report, path)? {
            Value::Number(_) | Value::Null => Ok(()),
            other => Err(PathError::NoNumber {
                path: path.to_owned(),
                found: kind(other),
            }),
        }))
}

/// Prefix of the numbers of one of several workloads.
const WORKLOADS: &str = "workloads.";

/// Prefix of the numbers of equations, which are not part of the report.
const PREDICTED: &str = "predicted";

/// Returns true if a path leads to a number of the equations.
pub(crate) fn of_equations(path: &str) -> bool {
    path.strip_prefix(PREDICTED)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// Returns true if a path leads to a number of the windows of a run's arrivals.
pub(crate) fn of_windows(path: &str) -> bool {
    path.starts_with("windows.")
}

/// Returns the metric of `compare --by` for numbers of hosts, programs and workloads.
fn named(path: &str) -> Option<Metric> {
    let of_workload = || {
        path.starts_with(WORKLOADS)
            .then(|| Metric::parse(path).ok())
            .flatten()
    };
    Metric::of_programs(path)
        .or_else(of_workload)
        .filter(|metric| metric.name() == path)
}

fn json(report: &Report, predicted: Option<&PredictedReport>) -> Value {
    // Serializing cannot fail, because a report contains only JSON types. NaN becomes null.
    let mut tree = serde_json::to_value(report).unwrap_or(Value::Null);
    if let (Some(table), Some(predicted)) = (tree.as_object_mut(), predicted) {
        table.insert(
            PREDICTED.to_owned(),
            serde_json::to_value(predicted).unwrap_or(Value::Null),
        );
    }
    tree
}

/// Returns the value at `path`. A path consists of names with dots in between. After a list follows
/// a number from 0 or a name in `[ ]`.
fn find<'a>(report: &'a Value, path: &str) -> Result<&'a Value, PathError> {
    let behind = |part: String, other: &Value| PathError::Behind {
        path: path.to_owned(),
        part,
        found: kind(other),
    };
    let mut at = report;
    for part in parts(path)? {
        at = match (part, at) {
            // Nothing of this kind was measured, so the path ends here.
            (_, Value::Null) => return Ok(at),
            (PathPart::Key(key), Value::Object(table)) => table.get(key).ok_or_else(|| {
                let names: Vec<&str> = table.keys().map(String::as_str).collect();
                PathError::NoKey {
                    path: path.to_owned(),
                    key: key.to_owned(),
                    near: nearest(key, &names),
                    known: names.join(", "),
                }
            })?,
            (PathPart::Item(item), Value::Array(items)) => {
                let named =
                    |value: &&Value| value.get("name").and_then(Value::as_str) == Some(item);
                let by_number = item.parse().ok().and_then(|index: usize| items.get(index));
                by_number
                    .or_else(|| items.iter().find(named))
                    .ok_or_else(|| {
                        let names: Vec<&str> = items
                            .iter()
                            .filter_map(|value| value.get("name").and_then(Value::as_str))
                            .collect();
                        PathError::NoItem {
                            path: path.to_owned(),
                            item: item.to_owned(),
                            near: nearest(item, &names),
                            items: items.len(),
                        }
                    })?
            }
            (PathPart::Key(key), other) => return Err(behind(key.to_owned(), other)),
            (PathPart::Item(item), other) => return Err(behind(format!("[{item}]"), other)),
        };
    }
    Ok(at)
}

enum PathPart<'a> {
    Key(&'a str),
    Item(&'a str),
}

fn parts(path: &str) -> Result<Vec<PathPart<'_>>, PathError> {
    let mut parts = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(choice) = rest.strip_prefix('[') {
            let (item, after) = choice.split_once(']').ok_or_else(|| PathError::Open {
                path: path.to_owned(),
            })?;
            parts.push(PathPart::Item(item));
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            parts.push(PathPart::Key(&rest[..end]));
            rest = &rest[end..];
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
    }
    Ok(parts)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "a table",
        Value::Array(_) => "a list",
        Value::String(_) => "a text",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_of_programs_have_their_names() {
        assert!(named("programs.postmark.figures.transactions_per_s").is_some());
        assert!(named("hosts.vm2.operations.create.device_writes_each").is_some());
        assert!(named("workloads.reader.response_ms.p99").is_some());
        assert!(named("workloads.reader.response_ms.p98").is_none());
        assert!(named("groups[reader].mb_per_s").is_none());
        assert!(named("members[0].utilisation").is_none());
    }

    #[test]
    fn a_path_leads_through_tables_and_lists() {
        let report = json!({ "groups": [{ "name": "random reader", "response_ms": { "max": 7.5 } }], "reads": null });
        for path in [
            "groups[random reader].response_ms.max",
            "groups[0].response_ms.max",
        ] {
            assert_eq!(find(&report, path), Ok(&json!(7.5)), "{path}");
        }
        assert_eq!(find(&report, "reads.iops"), Ok(&Value::Null));
        for (path, words) in [
            (
                "groups[random writer].mb_per_s",
                "did you mean `random reader`?",
            ),
            ("groups[0].response_ms.maxx", "did you mean `max`?"),
            ("groups.response_ms", "follows a list"),
            ("groups[0", "not closed"),
        ] {
            let error = find(&report, path).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
