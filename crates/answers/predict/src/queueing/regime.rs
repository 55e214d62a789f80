//! Bounds of agreement (10 %) between model and simulations: results of `tools/predict-regime.py`
//! (the table is in docs/prediction.md).

use super::load::Load;
use super::volume::VolumeResult;
use std::fmt;

/// A bound of the regime.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Name of the measure.
    pub name: &'static str,
    /// Smallest value, if there is a lower bound.
    pub least: Option<f64>,
    /// Largest value.
    pub most: f64,
    of: fn(&Load, &VolumeResult) -> f64,
}

/// All bounds.
pub const REGIME: [Bound; 7] = [
    Bound {
        name: "utilisation",
        least: None,
        most: 0.5,
        of: |_, queues| queues.utilisation,
    },
    Bound {
        name: "requests outstanding a drive",
        least: None,
        most: 1.0,
        of: |_, queues| queues.outstanding_each,
    },
    Bound {
        name: "busiest drive over the mean one",
        least: None,
        most: 1.5,
        of: |_, queues| queues.uneven,
    },
    Bound {
        name: "mean size in KiB",
        least: None,
        most: 64.0,
        of: |load, _| load.sectors / 2.0,
    },
    Bound {
        name: "variance of arrivals over Poisson's",
        least: Some(0.8),
        most: 1.25,
        of: |load, _| load.dispersion,
    },
    Bound {
        name: "share that is sequential",
        least: None,
        most: 0.02,
        of: |load, _| load.sequential,
    },
    Bound {
        name: "distance between requests over independent ones'",
        least: Some(0.9),
        most: 1.1,
        of: |load, _| load.locality,
    },
];

impl Bound {
    /// Returns the measure of a load and of the model's result.
    pub fn found(&self, load: &Load, queues: &VolumeResult) -> f64 {
        (self.of)(load, queues)
    }

    /// Returns true if a value is within the bound.
    pub fn holds(&self, found: f64) -> bool {
        self.least.is_none_or(|least| found >= least) && found <= self.most
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.least {
            Some(least) => write!(f, "{} {least} to {}", self.name, self.most),
            None => write!(f, "{} up to {}", self.name, self.most),
        }
    }
}
