//! Assumed power figures for drives whose files have none.

use crate::output::{CommandFailure, print_error};
use clap::Args;
use fullstroke_lab::require_power;
use fullstroke_measure::Metric;
use fullstroke_stack::Overrides;
use std::path::Path;

/// Option for assumed power figures.
#[derive(Debug, Args)]
pub(crate) struct PowerAssumption {
    /// Use assumed power figures of the drive class for drives without `[power]`.
    #[arg(long)]
    assume_power: bool,
}

impl PowerAssumption {
    /// True if assumed figures are allowed.
    pub(crate) fn assumes(&self) -> bool {
        self.assume_power
    }

    /// Calls [`require_power`] if the command needs watts (`wanted`) or the user allows assumed
    /// figures.
    ///
    /// # Errors
    /// As [`require_power`].
    pub(crate) fn require_if(
        &self,
        wanted: bool,
        stacks: &[&Path],
        overrides: &mut Overrides,
    ) -> Result<Option<&'static str>, CommandFailure> {
        // With `--assume-power` the report has energies even if the ranking does not need them.
        if wanted || self.assume_power {
            require_power(stacks, overrides, self.assume_power).map_err(CommandFailure::input)
        } else {
            Ok(None)
        }
    }
}

/// True for a metric of energy or power.
pub(crate) fn is_energy(metric: &Metric) -> bool {
    let name = metric.name();
    name.starts_with("energy.") || ["members.energy_j", "members.mean_w"].contains(&name.as_str())
}

/// Prints the source of assumed figures on standard error.
pub(crate) fn say_assumed(source: Option<&str>) {
    if let Some(source) = source {
        print_error(&format!("source of the power figures: {source}"));
    }
}
