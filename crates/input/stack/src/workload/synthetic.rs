//! A synthetic load: an arrival process, an address pattern, sizes and a mix.

use super::{Kind, Read, Workload, WorkloadError};
use fullstroke_contract::Source;
use fullstroke_contract::registry::{Entry, read, schema_of};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{Synthetic, SyntheticConfig};

pub(super) const ENTRY: Entry<Kind> = Entry {
    name: "synthetic",
    summary: "a load made of an arrival process, an address pattern, sizes and a share of reads",
    schema: schema_of::<SyntheticConfig>,
    build: Kind {
        read: Read::Itself(|keys, _| Ok(Box::new(read::<SyntheticConfig>(keys)?))),
        tables: &[],
        alone: false,
        example: "requests = 10000\narrivals = { process = \"poisson\", rate_per_s = 100 }",
    },
};

impl Workload for SyntheticConfig {
    fn source(&self, capacity: Sectors, seed: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(Synthetic::new(self, capacity, seed)?))
    }
}
