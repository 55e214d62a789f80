//! Processes: concurrent closed loops, each with results of its own.

use super::{Workload, WorkloadError, WorkloadKind, WorkloadReader};
use fullstroke_contract::Source;
use fullstroke_contract::registry::{PolicyEntry, read, schema_of};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{ProcessConfig, ProcessSource, ProcessesConfig};

pub(super) const ENTRY: PolicyEntry<WorkloadKind> = PolicyEntry {
    name: "processes",
    summary: "closed loops side by side, each with separate results",
    schema: schema_of::<ProcessesConfig>,
    build: WorkloadKind {
        read: WorkloadReader::Itself(|keys, _| Ok(Box::new(read::<ProcessesConfig>(keys)?))),
        tables: &[("processes", schema_of::<ProcessConfig>)],
        alone: false,
        example: "duration = \"10s\"\nprocesses = [{ name = \"reader\", count = 4 }, { name = \"writer\", read_share = 0 }]",
    },
};

impl Workload for ProcessesConfig {
    fn source(&self, capacity: Sectors, seed: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(ProcessSource::new(self, capacity, seed)?))
    }

    fn process_names(&self) -> Vec<String> {
        self.names().map(str::to_owned).collect()
    }
}
