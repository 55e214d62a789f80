//! A synthetic load: an arrival process, an address pattern, sizes and a mix.

use super::{Workload, WorkloadError, WorkloadKind, WorkloadReader};
use fullstroke_contract::Source;
use fullstroke_contract::registry::{PolicyEntry, read, schema_of};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{Synthetic, SyntheticConfig};

pub(super) const ENTRY: PolicyEntry<WorkloadKind> = PolicyEntry {
    name: "synthetic",
    summary: "a load made of an arrival process, an address pattern, sizes and a share of reads",
    schema: schema_of::<SyntheticConfig>,
    build: WorkloadKind {
        read: WorkloadReader::Itself(|keys, _| Ok(Box::new(read::<SyntheticConfig>(keys)?))),
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
