//! Ways to run a study: unchanged, with one change, or with other seeds and choices.

use crate::axes::{Matrix, Pattern, assignments, label};
use crate::config::{ChoicesConfig, FreeConfig, FreeValueConfig, SettingConfig};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::read;
use fullstroke_stack::{Document, StackError};
use serde_json::Value;
use std::path::Path;

/// Assignments, each with the points to which they apply.
pub(crate) type Settings = Vec<(Pattern, Vec<String>)>;

/// One way of running a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variation {
    /// Unchanged.
    Base,
    /// With one change: a variant, by its index.
    Variant(usize),
    /// With another value of a free choice, by the indices of both.
    Free(usize, usize),
    /// With other seeds than the study's. 1 is the first set of as many seeds, 2 the second.
    Seeds(u32),
}

/// Further settings with which claims are tested. The verdicts should not depend on these settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Number of further sets of seeds, each as large as the study's.
    pub seeds: u32,
    /// True if every other value of every free choice is tested.
    pub vary_free: bool,
    /// Number of seeds of each point. Default: the study's number.
    pub replications: Option<u32>,
}

/// A choice that the source leaves open.
#[derive(Clone, Debug)]
pub struct StudyChoice {
    /// The choice as written.
    pub config: FreeConfig,
    /// Alternatives to the study's value.
    pub values: Vec<ChoiceValue>,
}

/// Another value of a free choice.
#[derive(Clone, Debug)]
pub struct ChoiceValue {
    /// Name of the value.
    pub name: String,
    /// Assignments for every point.
    pub(crate) set: Vec<String>,
    pub(crate) settings: Settings,
}

impl StudyChoice {
    /// Returns the choices of a study file, and of the file that it shares with other studies.
    pub(crate) fn read(
        own: &[FreeConfig],
        shared: Option<&Path>,
        matrix: &Matrix,
    ) -> Result<Result<Vec<StudyChoice>, ConfigError>, StackError> {
        let of = |configs: &[FreeConfig]| -> Result<Vec<StudyChoice>, ConfigError> {
            let each = configs.iter().enumerate();
            each.map(|(index, config)| {
                StudyChoice::new(config, matrix)
                    .map_err(|error| error.below(&format!("free[{index}]")))
            })
            .collect()
        };
        let mut choices = match of(own) {
            Ok(choices) => choices,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(file) = shared {
            let document = Document::read(file)?;
            let config: ChoicesConfig =
                read(document.values()).map_err(|error| document.error(error))?;
            choices.extend(of(&config.free).map_err(|error| document.error(error))?);
        }
        for (index, choice) in choices.iter().enumerate() {
            let name = &choice.config.name;
            if choices[..index]
                .iter()
                .any(|other| other.config.name == *name)
            {
                return Ok(Err(ConfigError::new(
                    "free",
                    format!("there are two choices `{name}`"),
                )));
            }
        }
        Ok(Ok(choices))
    }

    fn new(config: &FreeConfig, matrix: &Matrix) -> Result<StudyChoice, ConfigError> {
        let mut values = Vec::with_capacity(config.values.len());
        for (index, value) in config.values.iter().enumerate() {
            let below = |error: ConfigError| error.below(&format!("values[{index}]"));
            values.push(ChoiceValue::new(config, value, matrix).map_err(below)?);
        }
        Ok(StudyChoice {
            config: config.clone(),
            values,
        })
    }
}

impl ChoiceValue {
    fn new(
        config: &FreeConfig,
        value: &Value,
        matrix: &Matrix,
    ) -> Result<ChoiceValue, ConfigError> {
        let Value::Object(keys) = value else {
            let set = assignments(
                config.key.as_ref(),
                &config.keys,
                config.unit.as_deref(),
                value,
            )?;
            let unit = config
                .unit
                .as_deref()
                .map(|unit| format!(" {unit}"))
                .unwrap_or_default();
            return Ok(ChoiceValue {
                name: label(value) + &unit,
                set,
                settings: Vec::new(),
            });
        };
        let FreeValueConfig {
            name,
            set,
            settings,
        } = read(keys)?;
        Ok(ChoiceValue {
            name,
            set,
            settings: settings_of(&settings, matrix)?,
        })
    }
}

/// Parses keys for some points only.
pub(crate) fn settings_of(of: &[SettingConfig], matrix: &Matrix) -> Result<Settings, ConfigError> {
    let read = |(index, setting): (usize, &SettingConfig)| {
        let points = matrix.pattern(&setting.at);
        let points =
            points.map_err(|error| error.below("at").below(&format!("settings[{index}]")))?;
        Ok((points, setting.set.clone()))
    };
    of.iter().enumerate().map(read).collect()
}

/// Returns the assignments of `settings` at a point.
pub(crate) fn set_at<'a>(
    settings: &'a Settings,
    point: &'a [usize],
) -> impl Iterator<Item = String> + 'a {
    let here = settings.iter().filter(|(points, _)| points.matches(point));
    here.flat_map(|(_, set)| set.iter().cloned())
}
