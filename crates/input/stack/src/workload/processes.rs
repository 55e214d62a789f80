//! Processes: concurrent closed loops, each with results of its own.

use super::{Kind, Read, Workload, WorkloadError};
use fullstroke_contract::Source;
use fullstroke_contract::registry::{Entry, read, schema_of};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{ProcessConfig, Processes, ProcessesConfig};

pub(super) const ENTRY: Entry<Kind> = Entry {
    name: "processes",
    summary: "closed loops side by side, each with results of its own",
    schema: schema_of::<ProcessesConfig>,
    build: Kind {
        read: Read::Itself(|keys, _| Ok(Box::new(read::<ProcessesConfig>(keys)?))),
        tables: &[("processes", schema_of::<ProcessConfig>)],
        alone: false,
        example: "duration = \"10s\"\nprocesses = [{ name = \"reader\", count = 4 }, { name = \"writer\", read_share = 0 }]",
    },
};

impl Workload for ProcessesConfig {
    fn source(&self, capacity: Sectors, seed: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(Processes::new(self, capacity, seed)?))
    }

    fn process_names(&self) -> Vec<String> {
        self.names().map(str::to_owned).collect()
    }
}
