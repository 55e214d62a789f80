//! Arrival processes: when requests arrive. A process is one file and one line in [`REGISTRY`].

mod bursts;
mod closed;
mod constant;
mod poisson;

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Entry, Keys, schema_of};
use fullstroke_units::{Duration, Random};

/// An arrival process.
pub enum Arrivals {
    /// A fixed number of outstanding requests. A completion triggers the next request after
    /// `think_time`.
    Closed {
        /// Outstanding requests.
        outstanding: u32,
        /// Time from a completion to the next request.
        think_time: Duration,
        /// True if `think_time` is the mean of an exponential distribution.
        exponential: bool,
    },
    /// Requests arrive independently of completions.
    Open(Box<dyn OpenProcess>),
}

/// Gaps between open arrivals.
pub trait OpenProcess: Send {
    /// The time from this arrival to the next.
    fn gap(&mut self, random: &mut Random) -> Duration;
}

impl Arrivals {
    pub(crate) fn gap(&mut self, random: &mut Random) -> Duration {
        match self {
            Arrivals::Closed { .. } => Duration::MAX,
            Arrivals::Open(process) => process.gap(random),
        }
    }
}

/// Builds a process from its keys.
pub type BuildArrivals = fn(&Keys) -> Result<Arrivals, ConfigError>;

/// Every arrival process.
pub const REGISTRY: &[Entry<BuildArrivals>] = &[
    Entry {
        name: "closed",
        summary: closed::SUMMARY,
        schema: schema_of::<closed::Config>,
        build: closed::build,
    },
    Entry {
        name: "constant",
        summary: constant::SUMMARY,
        schema: schema_of::<constant::Config>,
        build: constant::build,
    },
    Entry {
        name: "poisson",
        summary: poisson::SUMMARY,
        schema: schema_of::<poisson::Config>,
        build: poisson::build,
    },
    Entry {
        name: "bursts",
        summary: bursts::SUMMARY,
        schema: schema_of::<bursts::Config>,
        build: bursts::build,
    },
];

/// The gap of a rate, or an error at the key `rate_per_s`.
fn gap_of_rate(rate_per_s: f64) -> Result<Duration, ConfigError> {
    if rate_per_s.is_finite() && rate_per_s > 0.0 {
        Ok(Duration::from_secs_f64(1.0 / rate_per_s))
    } else {
        Err(ConfigError::new(
            "rate_per_s",
            format!("found {rate_per_s}; expected requests a second, above 0"),
        ))
    }
}
