//! Some places are popular (Zipf's law).

use super::{AddressPattern, AddressedRegion};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Lbn, Random, Sectors, greatest_common_divisor};
use rand_distr::{Distribution as _, Zipf};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "Zipf: the k-th most popular place with probability proportional to k^-exponent, popular places scattered";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Exponent of the distribution; 0 is uniform.
    #[serde(default = "usual")]
    exponent: f64,
}

fn usual() -> f64 {
    // ZIPFIAN_CONSTANT of YCSB's ZipfianGenerator (Cooper et al. 2010).
    0.99
}

struct Popular {
    region: AddressedRegion,
    ranks: Zipf<f64>,
    places: u64,
    /// A number coprime to `places`: rank times stride scatters the popular places.
    stride: u64,
}

pub(super) fn build(
    keys: &Keys,
    region: &AddressedRegion,
) -> Result<Box<dyn AddressPattern>, ConfigError> {
    let Config { exponent } = read(keys)?;
    // A place holds the largest request, so every size fits.
    let places = region.places(region.largest);
    let ranks = Zipf::new(places as f64, exponent)
        .map_err(|error| ConfigError::new("exponent", format!("found {exponent}; {error}")))?;
    Ok(Box::new(Popular {
        region: *region,
        ranks,
        places,
        stride: scattering_stride(places),
    }))
}

/// A number coprime to `places`, near its golden section.
fn scattering_stride(places: u64) -> u64 {
    // Multiples of the golden section spread evenly (Knuth, volume 3, section 6.4), so popular
    // places lie apart.
    let golden = (places as f64 * 0.618_033_988_749_895) as u64;
    (golden.max(1)..)
        .find(|&stride| greatest_common_divisor(stride, places) == 1)
        .unwrap_or(1)
}

impl AddressPattern for Popular {
    fn next(&mut self, _: Sectors, random: &mut Random) -> Lbn {
        // The rank is a float, and a float beyond 2^53 places may round to a neighbour outside the
        // range.
        let rank = (self.ranks.sample(random.generator()) as u64).clamp(1, self.places);
        // The product of two numbers of places may exceed 64 bits on a large volume.
        let place = u128::from(rank) * u128::from(self.stride) % u128::from(self.places);
        self.region.place(place as u64)
    }
}
