//! The speed of rotation, from the times of a log.
//!
//! Two properties of a log tell the speed, whatever the seek curve of the disk is:
//!
//! - **Phase.** Two requests for nearly the same sectors end a whole number of revolutions apart.
//!   The period at which all such pairs agree is the revolution, to a thousandth and better.
//! - **Spread.** The rotational latency of a read alone in the drive is uniform over one revolution.
//!   Response times without a smooth function of distance and place are as wide as the revolution,
//!   to a few percent.
//!
//! The spread says near which period the phases are sought, because the half of a period fits the
//! pairs as well.

mod phase;
mod spread;

use super::span::ServiceSpan;
use serde::Serialize;
use std::fmt;

/// Speeds in revolutions a minute that are sold.
const USUAL_RPM: [f64; 8] = [
    3600.0, 4200.0, 5400.0, 5900.0, 7200.0, 10_000.0, 10_500.0, 15_000.0,
];
/// Revolutions in ms that are sought: 15,800 to 3,400 a minute.
const REVOLUTION_MS: std::ops::RangeInclusive<f64> = 3.8..=17.6;
/// Relative error of the spread beside its statistical error. On eight measured disks the spread
/// was up to 3.0 % off: the arm settles longer on some tracks than the smooth function says.
const SPREAD_ERROR: f64 = 0.03;
/// Largest relative distance of a speed that is sold from the speed that the log tells.
const USUAL_APART: f64 = 0.035;

/// Property of the log that tells the speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RotationEvidence {
    /// Ends of requests for nearly the same sectors.
    Phase,
    /// Spread of the response times of reads that are alone in the drive.
    Spread,
}

/// A speed of rotation that a log tells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rotation {
    /// Revolutions a minute.
    pub rpm: f64,
    /// Lower end of the speeds that the log does not tell from `rpm`.
    pub least: f64,
    /// Upper end of these speeds.
    pub most: f64,
    /// Property that tells the speed.
    pub by: RotationEvidence,
    /// Number of pairs or reads.
    pub samples: usize,
    /// True if `rpm` is a speed that is sold, between `least` and `most`.
    pub usual: bool,
}

impl Rotation {
    /// Returns the speed of the disk that served `spans`; `None` if the log does not tell it.
    pub(super) fn of(spans: &[ServiceSpan]) -> Option<Rotation> {
        let spread = spread::width(spans);
        let about = spread.map(|spread| (spread.least_ms, spread.most_ms));
        let phase = phase::period(spans, about);
        let found = match (phase, spread) {
            (Some(phase), _) => Rotation::between(phase, 0.0, RotationEvidence::Phase),
            (None, Some(spread)) => {
                Rotation::between(spread, SPREAD_ERROR, RotationEvidence::Spread)
            }
            (None, None) => return None,
        };
        Some(found.rounded())
    }

    fn between(found: Revolution, error: f64, by: RotationEvidence) -> Rotation {
        let rpm = |ms: f64| 60_000.0 / ms;
        Rotation {
            rpm: rpm(found.ms),
            least: rpm(found.most_ms) * (1.0 - error),
            most: rpm(found.least_ms) * (1.0 + error),
            by,
            samples: found.samples,
            usual: false,
        }
    }

    /// Returns the nearest speed that is sold, if it is near and within the ends.
    fn rounded(self) -> Rotation {
        let apart = |rpm: &f64| (rpm / self.rpm).ln().abs();
        let inside = USUAL_RPM
            .into_iter()
            .filter(|rpm| !self.differs(*rpm) && apart(rpm) < USUAL_APART);
        match inside.min_by(|a, b| apart(a).total_cmp(&apart(b))) {
            Some(rpm) => Rotation {
                rpm,
                usual: true,
                ..self
            },
            None => Rotation {
                rpm: (self.rpm * 10.0).round() / 10.0,
                ..self
            },
        }
    }

    /// True if the log tells another speed than `rpm`.
    pub(super) fn differs(&self, rpm: f64) -> bool {
        !(self.least..=self.most).contains(&rpm)
    }
}

impl fmt::Display for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most, samples) = (self.least, self.most, self.samples);
        match self.by {
            RotationEvidence::Phase => write!(
                f,
                "{samples} pairs of requests for nearly the same sectors ended a whole number of revolutions apart, \
                 at {least:.1} to {most:.1} a minute"
            )?,
            RotationEvidence::Spread => write!(
                f,
                "{samples} response times spread over one revolution of {least:.0} to {most:.0} a minute"
            )?,
        }
        match self.usual {
            true => f.write_str("; the nearest speed that is sold"),
            false => Ok(()),
        }
    }
}

/// A revolution in ms, with the ends of its range.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Revolution {
    ms: f64,
    least_ms: f64,
    most_ms: f64,
    samples: usize,
}

#[cfg(test)]
mod tests;
