//! Mostly near the last request.

use super::{AddressPattern, AddressedRegion};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration, Lbn, Random, Sectors};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "near the last request with a given probability, else uniform";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Probability of a request near the last one.
    #[serde(default = "mostly")]
    locality: f64,
    /// Mean distance of a near request, on either side, exponentially distributed.
    #[serde(default = "eight_mib")]
    distance: Bytes,
}

fn mostly() -> f64 {
    0.9
}

fn eight_mib() -> Bytes {
    Bytes(8 << 20)
}

struct Local {
    region: AddressedRegion,
    locality: f64,
    /// Mean distance in places, stored as a duration for the exponential draw.
    distance: Duration,
    last: u64,
}

pub(super) fn build(
    keys: &Keys,
    region: &AddressedRegion,
) -> Result<Box<dyn AddressPattern>, ConfigError> {
    let Config { locality, distance } = read(keys)?;
    if !(0.0..=1.0).contains(&locality) {
        return Err(ConfigError::new(
            "locality",
            format!("found {locality}; expected 0 to 1"),
        ));
    }
    let places = (distance.0 / region.alignment.bytes().0).max(1);
    Ok(Box::new(Local {
        region: *region,
        locality,
        distance: Duration::from_nanos(places),
        last: 0,
    }))
}

impl AddressPattern for Local {
    fn next(&mut self, sectors: Sectors, random: &mut Random) -> Lbn {
        let places = self.region.places(sectors);
        self.last = if random.chance(self.locality) {
            // An exponential draw has no upper bound, so a long step wraps around the region.
            let step = random.exponential(self.distance).as_nanos() % places;
            let forward = random.chance(0.5);
            // Larger requests have fewer places, so the last place may lie beyond them. `places -
            // step` is a step back without a negative number.
            (self.last % places + if forward { step } else { places - step }) % places
        } else {
            random.below(places)
        };
        self.region.place(self.last)
    }
}
