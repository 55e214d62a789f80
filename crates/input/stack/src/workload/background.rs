//! Background reads, which no user waits for.

use super::{Workload, WorkloadError, WorkloadKind, WorkloadReader};
use fullstroke_contract::Source;
use fullstroke_contract::registry::{PolicyEntry, read, schema_of};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{Background, BackgroundConfig};

pub(super) const ENTRY: PolicyEntry<WorkloadKind> = PolicyEntry {
    name: "background",
    summary: "rounds of background reads: a scrub, or a monitor of the medium",
    schema: schema_of::<BackgroundConfig>,
    build: WorkloadKind {
        read: WorkloadReader::Itself(|keys, _| Ok(Box::new(read::<BackgroundConfig>(keys)?))),
        tables: &[],
        alone: false,
        example: "every = \"10min\"\nduration = \"1h\"\nsize = \"4KiB\"\namount = \"1MiB\"\norder = \"random\"",
    },
};

impl Workload for BackgroundConfig {
    fn source(&self, capacity: Sectors, seed: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(Background::new(self, capacity, seed)?))
    }
}
