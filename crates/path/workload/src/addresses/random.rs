//! Uniform over the region.

use super::{AddressPattern, AddressedRegion};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Lbn, Random, Sectors};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "uniform over the region";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {}

struct Uniform {
    region: AddressedRegion,
}

pub(super) fn build(
    keys: &Keys,
    region: &AddressedRegion,
) -> Result<Box<dyn AddressPattern>, ConfigError> {
    let Config {} = read(keys)?;
    Ok(Box::new(Uniform { region: *region }))
}

impl AddressPattern for Uniform {
    #[inline]
    fn next(&mut self, sectors: Sectors, random: &mut Random) -> Lbn {
        self.region.place(random.below(self.region.places(sectors)))
    }
}
