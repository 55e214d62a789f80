//! Media streams: a server with its clients.

use super::{Workload, WorkloadError, WorkloadKind, WorkloadReader};
use fullstroke_contract::Source;
use fullstroke_contract::registry::{PolicyEntry, read, schema_of};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{Streams, StreamsConfig, VariationConfig, WeightedBitRate};

pub(super) const ENTRY: PolicyEntry<WorkloadKind> = PolicyEntry {
    name: "streams",
    summary: "a media server and its clients. A client starts playback once its start-up buffer is full, and plays at its bit rate; a byte that is missing when it is due is an underrun",
    schema: schema_of::<StreamsConfig>,
    build: WorkloadKind {
        read: WorkloadReader::Itself(|keys, _| Ok(Box::new(read::<StreamsConfig>(keys)?))),
        tables: &[
            ("variation", schema_of::<VariationConfig>),
            ("bit_rates", schema_of::<WeightedBitRate>),
        ],
        alone: true,
        example: "streams = 20\nbit_rate = \"2Mbit/s\"\nduration = \"10s\"",
    },
};

impl Workload for StreamsConfig {
    fn source(&self, capacity: Sectors, seed: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(Streams::new(self, capacity, seed)?))
    }

    fn streams(&self) -> Option<u32> {
        Some(self.streams)
    }
}
