//! Power figures for drives whose files have none.

use crate::LabError;
use fullstroke_drive::{DriveConfig, PowerConfig};
use fullstroke_stack::{Overrides, Stack, StackError};
use serde_json::{Map, Value};
use std::path::Path;
use thiserror::Error;

/// Reason why a question about energy cannot be answered.
#[derive(Debug, Error)]
pub enum PowerError {
    /// A stack cannot be read.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A run failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The file of a drive has no power figures. The message names the missing keys.
    #[error("{0}")]
    Lacking(String),
    /// The assumed figures are not the same for all drives.
    #[error("{0}")]
    Different(String),
}

/// Returns a message with the missing keys of `[power]` and a remedy; `None` if all drives have
/// power figures.
pub fn lacking_power(stack: &Stack) -> Option<String> {
    let configs: Vec<&DriveConfig> = stack
        .drives()
        .into_iter()
        .map(|model| model.config())
        .collect();
    let config = silent(&configs)?;
    let missing = config.power.unwrap_or_default().missing().join(", ");
    Some(format!(
        "`{}` does not say what it draws: [power] lacks {missing}; --assume-power takes those of its class",
        config.title
    ))
}

/// Checks that the files of all drives of `stacks` have power figures. With `assume`, drives
/// without figures get the figures of their class, as keys in `overrides`. Returns the source of
/// the assumed figures.
///
/// # Errors
/// Errors of the stack; missing keys, with possible values; drives of different classes.
pub fn require_power(
    stacks: &[&Path],
    overrides: &mut Overrides,
    assume: bool,
) -> Result<Option<&'static str>, PowerError> {
    let stacks = stacks
        .iter()
        .map(|file| Stack::load(file, overrides))
        .collect::<Result<Vec<_>, _>>()?;
    let drives = stacks.iter().flat_map(Stack::drives);
    let configs: Vec<&DriveConfig> = drives.map(|model| model.config()).collect();
    match (silent(&configs), assume) {
        (None, _) => Ok(None),
        (Some(config), true) => assumed(config, &configs, overrides).map(Some),
        (Some(config), false) => Err(PowerError::Lacking(lacks(config))),
    }
}

/// Returns the keys and values of `[power]`.
fn power_table(power: PowerConfig) -> Map<String, Value> {
    match serde_json::to_value(power) {
        Ok(Value::Object(keys)) => keys,
        _ => Map::new(),
    }
}

/// Returns the first drive whose file has no power figures.
fn silent<'a>(configs: &[&'a DriveConfig]) -> Option<&'a DriveConfig> {
    configs
        .iter()
        .copied()
        .find(|config| !config.power.is_some_and(|power| power.counts_energy()))
}

/// Returns a message with the missing keys and possible values.
fn lacks(config: &DriveConfig) -> String {
    let (class, source) = PowerConfig::assumed_for(config);
    let missing = config.power.unwrap_or_default().missing().join(", ");
    let lines: String = power_table(class)
        .iter()
        .map(|(key, value)| format!("  {key} = {value}\n"))
        .collect();
    format!(
        "the file of drive `{}` does not say what it draws: `[power]` lacks {missing}. Give it these from its \
         manual, or run with --assume-power, which takes those of its class:\n\n  [power]\n{lines}\n  [sources]\n  \
         power = \"{source}\"",
        config.title
    )
}

/// Gives the assumed figures of the class of `config` to all drives.
fn assumed(
    config: &DriveConfig,
    all: &[&DriveConfig],
    overrides: &mut Overrides,
) -> Result<&'static str, PowerError> {
    let (class, source) = PowerConfig::assumed_for(config);
    // The override applies to all drives, so it must not replace the figures of a drive that has
    // some.
    let says = |other: &&&DriveConfig| other.power.is_some_and(|power| power.counts_energy());
    if let Some(other) = all.iter().find(says) {
        let message = format!(
            "`{}` says what it draws, which must not be assumed over; give [power] to the file of `{}`",
            other.title, config.title
        );
        return Err(PowerError::Different(message));
    }
    if let Some(other) = all
        .iter()
        .find(|other| PowerConfig::assumed_for(other).0 != class)
    {
        let message = format!(
            "`{}` and `{}` are drives of different classes; give [power] to their files",
            config.title, other.title
        );
        return Err(PowerError::Different(message));
    }
    for (key, value) in &power_table(class) {
        overrides
            .set
            .push(format!("volume.drive_settings.power.{key}={value}"));
    }
    Ok(source)
}
