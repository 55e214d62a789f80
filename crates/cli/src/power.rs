//! What drives draw whose files do not say it.

use crate::output::{Failure, complain};
use clap::Args;
use fullstroke_lab::require_power;
use fullstroke_measure::Metric;
use fullstroke_stack::Overrides;
use std::path::Path;

/// What stands in for watts that nobody has given.
#[derive(Debug, Args)]
pub(crate) struct Assuming {
    /// Let drives whose files do not say what they draw draw what their class is assumed to.
    #[arg(long)]
    assume_power: bool,
}

impl Assuming {
    /// Whether what is not said may be assumed.
    pub(crate) fn assumes(&self) -> bool {
        self.assume_power
    }

    /// [`require_power`], where watts are `wanted` or asked for.
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
            require_power(stacks, overrides, self.assume_power).map_err(Failure::input)
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
        complain(&format!("what the drives draw is {source}"));
    }
}
