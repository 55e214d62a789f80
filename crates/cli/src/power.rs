//! What drives draw whose files do not say it.

use crate::output::Failure;
use fullstroke_drive::{DriveConfig, PowerConfig};
use fullstroke_stack::{Overrides, Stack};
use std::path::Path;

/// Has all drives of `stacks` say what they draw: with `assume`, those that do not get what their class does,
/// and it is said where that is from.
///
/// # Errors
/// The stack's; the keys that are missing, and what could be put there; drives of several classes.
pub(crate) fn require(
    stacks: &[&Path],
    overrides: &mut Overrides,
    assume: bool,
) -> Result<Option<&'static str>, Failure> {
    let stacks = stacks.iter().map(|file| Stack::load(file, overrides)).collect::<Result<Vec<_>, _>>();
    let stacks = stacks.map_err(Failure::input)?;
    let drives = stacks.iter().flat_map(Stack::drives);
    let configs: Vec<&DriveConfig> = drives.map(|model| model.config()).collect();
    match (silent(&configs), assume) {
        (None, _) => Ok(None),
        (Some(config), true) => assumed(config, &configs, overrides).map(Some),
        (Some(config), false) => Err(Failure::Input(lacks(config))),
    }
}

/// A drive whose file does not say what it draws.
fn silent<'a>(configs: &[&'a DriveConfig]) -> Option<&'a DriveConfig> {
    configs.iter().copied().find(|config| !config.power.is_some_and(|power| power.counts_energy()))
}

/// What is missing, and what could be put there.
fn lacks(config: &DriveConfig) -> String {
    let (class, source) = PowerConfig::assumed_for(config);
    let missing = config.power.unwrap_or_default().missing().join(", ");
    let table =
        serde_json::to_value(class).ok().and_then(|value| value.as_object().cloned()).unwrap_or_default();
    let lines: String = table.iter().map(|(key, value)| format!("  {key} = {value}\n")).collect();
    format!(
        "the file of drive `{}` does not say what it draws: `[power]` lacks {missing}. Give it these from its \
         manual, or run with --assume-power, which takes those of its class:\n\n  [power]\n{lines}\n  [sources]\n  \
         power = \"{source}\"",
        config.title
    )
}

/// Gives all drives what the class of `config` is assumed to draw.
fn assumed(
    config: &DriveConfig,
    all: &[&DriveConfig],
    overrides: &mut Overrides,
) -> Result<&'static str, Failure> {
    let (class, source) = PowerConfig::assumed_for(config);
    if let Some(other) = all.iter().find(|other| PowerConfig::assumed_for(other).0 != class) {
        let message = format!(
            "`{}` and `{}` are drives of different classes; give [power] to their files",
            config.title, other.title
        );
        return Err(Failure::Input(message));
    }
    let table = serde_json::to_value(class).map_err(Failure::input)?;
    for (key, value) in table.as_object().into_iter().flatten() {
        overrides.set.push(format!("volume.drive_settings.power.{key}={value}"));
    }
    Ok(source)
}
