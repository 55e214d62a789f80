//! Background reads, which no user waits for.

use super::{Kind, Read, Workload, WorkloadError};
use fullstroke_contract::Source;
use fullstroke_contract::registry::{Entry, read, schema_of};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{Background, BackgroundConfig};

pub(super) const ENTRY: Entry<Kind> = Entry {
    name: "background",
    summary: "rounds of reads that no user asked for: a scrub, a monitor that has the medium read",
    schema: schema_of::<BackgroundConfig>,
    build: Kind {
        read: Read::Itself(|keys, _| Ok(Box::new(read::<BackgroundConfig>(keys)?))),
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
