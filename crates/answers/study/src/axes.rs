//! The axes of a study and the points of their combinations.

use crate::config::{AxisConfig, StudyConfig, ValueConfig};
use crate::unknown::UnknownName;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Largest number of points. A larger number is probably a mistake.
const POINTS_MAX: usize = 100_000;

/// A quantity that varies in a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name in expressions.
    pub name: String,
    /// Values of the axis.
    pub values: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// Name in expressions.
    pub name: String,
    /// Number of the value in arithmetic.
    pub number: Option<f64>,
    /// Stack that replaces the base stack.
    pub stack: Option<PathBuf>,
    /// Keys of the stack file, as by `--set`.
    pub set: Vec<String>,
}

/// A name for some values of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSet {
    /// Name in expressions.
    pub name: String,
    /// Index of the axis.
    pub axis: usize,
    /// Indices of the values.
    pub values: Vec<usize>,
}

/// Axes, named sets of values, and points of a study. A point is the index of its value on every
/// axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The axes.
    pub axes: Vec<Axis>,
    /// Names for some values of an axis.
    pub sets: Vec<NamedSet>,
    points: Vec<Vec<usize>>,
    index: BTreeMap<Vec<usize>, usize>,
}

/// A set of points: the permitted values of each axis, or `None` for all values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Option<Vec<usize>>>);

impl Pattern {
    pub(crate) fn matches(&self, point: &[usize]) -> bool {
        assert_eq!(
            self.0.len(),
            point.len(),
            "a pattern and a point have each axis"
        );
        self.0
            .iter()
            .zip(point)
            .all(|(meant, value)| meant.as_ref().is_none_or(|meant| meant.contains(value)))
    }
}

impl Matrix {
    /// Builds the points of a study file.
    pub(crate) fn new(config: &StudyConfig) -> Result<Matrix, ConfigError> {
        let mut matrix = Matrix::default();
        for (index, axis) in config.axes.iter().enumerate() {
            let below = |error: ConfigError| error.below(&format!("axes[{index}]"));
            if matrix.axes.iter().any(|other| other.name == axis.name) {
                return Err(below(twice("axis", &axis.name)));
            }
            matrix.axes.push(Axis::new(axis).map_err(below)?);
        }
        for (index, set) in config.sets.iter().enumerate() {
            let below = |error: ConfigError| error.below(&format!("sets[{index}]"));
            let known = matrix.axes.iter().any(|axis| axis.name == set.name)
                || matrix.sets.iter().any(|other| other.name == set.name);
            if known {
                return Err(below(twice("axis or set", &set.name)));
            }
            let axis = matrix
                .axis(&set.axis)
                .map_err(|message| below(ConfigError::new("axis", message)))?;
            let values = matrix.axes[axis].indices(&Value::Array(set.values.clone()));
            let values = values.map_err(|message| below(ConfigError::new("values", message)))?;
            matrix.sets.push(NamedSet {
                name: set.name.clone(),
                axis,
                values,
            });
        }
        matrix.fill(config)?;
        Ok(matrix)
    }

    fn fill(&mut self, config: &StudyConfig) -> Result<(), ConfigError> {
        if config.stack.is_none() {
            return match config.axes.is_empty() {
                true => Ok(()),
                false => Err(ConfigError::new("stack", "a study with axes needs a stack")),
            };
        }
        let wanted = self.patterns("points", &config.points)?;
        let unwanted = self.patterns("exclude", &config.exclude)?;
        let count = self
            .axes
            .iter()
            .map(|axis| axis.values.len())
            // The product of user values may exceed the range, and then also exceeds the bound.
            .try_fold(1usize, usize::checked_mul);
        if count.is_none_or(|count| count > POINTS_MAX) {
            let message = format!("the axes span more than {POINTS_MAX} points; divide the study");
            return Err(ConfigError::new("axes", message));
        }
        let mut point = vec![0; self.axes.len()];
        loop {
            // Without `points`, all combinations are points.
            let listed = wanted.is_empty() || wanted.iter().any(|pattern| pattern.matches(&point));
            if listed && !unwanted.iter().any(|pattern| pattern.matches(&point)) {
                self.index.insert(point.clone(), self.points.len());
                self.points.push(point.clone());
            }
            // Next combination; the last axis varies fastest.
            let Some(turning) = (0..point.len())
                .rev()
                .find(|&axis| point[axis] + 1 < self.axes[axis].values.len())
            else {
                return Ok(());
            };
            point[turning] += 1;
            point[turning + 1..].fill(0);
        }
    }

    fn patterns(&self, key: &str, patterns: &[Keys]) -> Result<Vec<Pattern>, ConfigError> {
        let read = |(index, pattern): (usize, &Keys)| {
            self.pattern(pattern)
                .map_err(|error| error.below(&format!("{key}[{index}]")))
        };
        patterns.iter().enumerate().map(read).collect()
    }

    /// Returns the points of a table of axis = value, list of values or name of a set.
    pub(crate) fn pattern(&self, keys: &Keys) -> Result<Pattern, ConfigError> {
        let mut meant = vec![None; self.axes.len()];
        for (name, value) in keys {
            let fail = |message| ConfigError::new(name, message);
            let axis = self.axis(name).map_err(fail)?;
            let set = self
                .sets
                .iter()
                // The set of another axis may have the name of a value of this axis.
                .find(|set| set.axis == axis && Some(set.name.as_str()) == value.as_str());
            meant[axis] = Some(match set {
                Some(set) => set.values.clone(),
                None => self.axes[axis].indices(value).map_err(fail)?,
            });
        }
        Ok(Pattern(meant))
    }

    /// Returns the points, each as the index of its value on every axis.
    pub fn points(&self) -> &[Vec<usize>] {
        &self.points
    }

    /// Returns the number of the point with these values; `None` if there is no such point.
    pub fn point(&self, values: &[usize]) -> Option<usize> {
        self.index.get(values).copied()
    }

    /// Returns true if a point has these values. Each element is an axis and a value.
    pub(crate) fn holds_any(&self, chosen: &[(usize, usize)]) -> bool {
        // Cannot overflow: `fill` has bounded the product.
        let all: usize = self.axes.iter().map(|axis| axis.values.len()).product();
        let fits = |point: &Vec<usize>| chosen.iter().all(|&(axis, value)| point[axis] == value);
        // If no combination is left out, each choice of values has a point.
        self.points.len() == all || self.points.iter().any(fits)
    }

    /// Returns the index of the axis called `name`.
    pub(crate) fn axis(&self, name: &str) -> Result<usize, UnknownName> {
        self.axes
            .iter()
            .position(|axis| axis.name == name)
            .ok_or_else(|| {
                let names: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
                UnknownName::of("axis", name, &names)
            })
    }

    /// Returns the axis and the values of the axis or set called `name`.
    pub(crate) fn domain(&self, name: &str) -> Result<(usize, Vec<usize>), UnknownName> {
        if let Some(set) = self.sets.iter().find(|set| set.name == name) {
            return Ok((set.axis, set.values.clone()));
        }
        if let Some(axis) = self.axes.iter().position(|axis| axis.name == name) {
            return Ok((axis, (0..self.axes[axis].values.len()).collect()));
        }
        let axes = self.axes.iter().map(|axis| axis.name.as_str());
        let names: Vec<&str> = axes
            .chain(self.sets.iter().map(|set| set.name.as_str()))
            .collect();
        Err(UnknownName::of("axis or set", name, &names))
    }

    /// Returns a point's values as text: `policy=greedy segments=8`.
    pub fn describe(&self, values: &[usize]) -> String {
        let each = self.axes.iter().zip(values);
        let each = each.map(|(axis, &value)| format!("{}={}", axis.name, axis.values[value].name));
        each.collect::<Vec<_>>().join(" ")
    }
}

impl Axis {
    fn new(config: &AxisConfig) -> Result<Axis, ConfigError> {
        let mut values: Vec<AxisValue> = Vec::new();
        for (index, value) in config.values.iter().enumerate() {
            let key = format!("values[{index}]");
            let value = AxisValue::new(config, value).map_err(|error| error.below(&key))?;
            if values.iter().any(|other| other.name == value.name) {
                return Err(twice("value", &value.name).below(&key));
            }
            values.push(value);
        }
        if values.is_empty() {
            return Err(ConfigError::new(
                "values",
                "found none; expected at least one",
            ));
        }
        Ok(Axis {
            name: config.name.clone(),
            values,
        })
    }

    /// Returns the index of the value called `name`.
    pub(crate) fn index(&self, name: &str) -> Result<usize, UnknownName> {
        self.values
            .iter()
            .position(|value| value.name == name)
            .ok_or_else(|| {
                let names: Vec<&str> = self
                    .values
                    .iter()
                    .map(|value| value.name.as_str())
                    .collect();
                UnknownName::value(&self.name, name, &names)
            })
    }

    /// Returns the indices of a value, or of a list of values, of a study file.
    fn indices(&self, value: &Value) -> Result<Vec<usize>, UnknownName> {
        match value {
            Value::Array(values) => values
                .iter()
                .map(|value| self.index(&label(value)))
                .collect(),
            value => Ok(vec![self.index(&label(value))?]),
        }
    }
}

impl AxisValue {
    fn new(axis: &AxisConfig, value: &Value) -> Result<AxisValue, ConfigError> {
        match value {
            Value::Object(keys) => {
                let ValueConfig {
                    name,
                    number,
                    stack,
                    set,
                } = read(keys)?;
                Ok(AxisValue {
                    name,
                    number,
                    stack,
                    set,
                })
            }
            Value::Number(_) | Value::String(_) | Value::Bool(_) => {
                let set = assignments(axis.key.as_ref(), &axis.keys, axis.unit.as_deref(), value)?;
                Ok(AxisValue {
                    name: label(value),
                    number: value.as_f64(),
                    stack: None,
                    set,
                })
            }
            other => Err(ConfigError::new(
                "",
                format!("found {other}; expected a number, text or table"),
            )),
        }
    }
}

/// Returns the assignments for keys that take a plain value.
pub(crate) fn assignments(
    key: Option<&String>,
    further: &[String],
    unit: Option<&str>,
    value: &Value,
) -> Result<Vec<String>, ConfigError> {
    let Some(first) = key else {
        let message = format!(
            "found {value}; give a `key` that takes it, or write {{ name = ..., set = [...] }}"
        );
        return Err(ConfigError::new("", message));
    };
    let text = match unit {
        Some(unit) => format!("\"{}{unit}\"", label(value)),
        None => value.to_string(),
    };
    Ok([first]
        .into_iter()
        .chain(further)
        .map(|key| format!("{key}={text}"))
        .collect())
}

/// Returns the name of a value in expressions.
pub(crate) fn label(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn twice(what: &str, name: &str) -> ConfigError {
    ConfigError::new(
        "name",
        format!("there are two of the name `{name}`; expected one {what} of each name"),
    )
}
