//! What drives draw whose files do not say it.

use crate::output::Failure;
use clap::Args;
use fullstroke_drive::{DriveConfig, PowerConfig};
use fullstroke_measure::Metric;
use fullstroke_stack::{Overrides, Stack};
use std::io::Write as _;
use std::path::Path;

/// What stands in for watts that nobody has given.
#[derive(Debug, Args)]
pub(crate) struct Assuming {
    /// Let drives whose files do not say what they draw draw what their class is assumed to.
    #[arg(long)]
    assume_power: bool,
}

impl Assuming {
    /// [`require`], where watts are `wanted` or asked for.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn require_if(
        &self,
        wanted: bool,
        stacks: &[&Path],
        overrides: &mut Overrides,
    ) -> Result<Option<&'static str>, Failure> {
        if wanted || self.assume_power {
            require(stacks, overrides, self.assume_power)
        } else {
            Ok(None)
        }
    }
}

/// Whether a metric is one of energy.
pub(crate) fn is_energy(metric: &Metric) -> bool {
    let name = metric.name();
    name.starts_with("energy.") || ["members.energy_j", "members.mean_w"].contains(&name.as_str())
}

/// Says on standard error what is assumed.
pub(crate) fn say_assumed(source: Option<&str>) {
    if let Some(source) = source {
        // If nobody reads it, nothing is lost.
        let _ = writeln!(
            std::io::stderr(),
            "fullstroke: what the drives draw is {source}"
        );
    }
}

/// What an answer without watts lacks, and what could be put there; `None` where all drives have them.
pub(crate) fn lacking(stack: &Stack) -> Option<String> {
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

/// Has all drives of `stacks` say what they draw: with `assume`, those that do not get what their class does,
/// and it is said where that is from.
///
/// # Errors
/// The stack's; the keys that are missing, and what could be put there; drives of several classes.
fn require(
    stacks: &[&Path],
    overrides: &mut Overrides,
    assume: bool,
) -> Result<Option<&'static str>, Failure> {
    let stacks = stacks
        .iter()
        .map(|file| Stack::load(file, overrides))
        .collect::<Result<Vec<_>, _>>();
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
    configs
        .iter()
        .copied()
        .find(|config| !config.power.is_some_and(|power| power.counts_energy()))
}

/// What is missing, and what could be put there.
fn lacks(config: &DriveConfig) -> String {
    let (class, source) = PowerConfig::assumed_for(config);
    let missing = config.power.unwrap_or_default().missing().join(", ");
    let table = serde_json::to_value(class)
        .ok()
        .and_then(|value| value.as_object().cloned())
        .unwrap_or_default();
    let lines: String = table
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

/// Gives all drives what the class of `config` is assumed to draw.
fn assumed(
    config: &DriveConfig,
    all: &[&DriveConfig],
    overrides: &mut Overrides,
) -> Result<&'static str, Failure> {
    let (class, source) = PowerConfig::assumed_for(config);
    // What is assumed is laid over all drives alike.
    let says = |other: &&&DriveConfig| other.power.is_some_and(|power| power.counts_energy());
    if let Some(other) = all.iter().find(says) {
        let message = format!(
            "`{}` says what it draws, which must not be assumed over; give [power] to the file of `{}`",
            other.title, config.title
        );
        return Err(Failure::Input(message));
    }
    if let Some(other) = all
        .iter()
        .find(|other| PowerConfig::assumed_for(other).0 != class)
    {
        let message = format!(
            "`{}` and `{}` are drives of different classes; give [power] to their files",
            config.title, other.title
        );
        return Err(Failure::Input(message));
    }
    let table = serde_json::to_value(class).map_err(Failure::input)?;
    for (key, value) in table.as_object().into_iter().flatten() {
        overrides
            .set
            .push(format!("volume.drive_settings.power.{key}={value}"));
    }
    Ok(source)
}
