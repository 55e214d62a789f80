//! Media streams: a server with its clients.

use super::{Kind, Read, Workload, WorkloadError};
use fullstroke_contract::Source;
use fullstroke_contract::registry::{Entry, read, schema_of};
use fullstroke_units::{Sectors, Seed};
use fullstroke_workload::{Streams, StreamsConfig, VariationConfig, WeightedBitRate};

pub(super) const ENTRY: Entry<Kind> = Entry {
    name: "streams",
    summary: "a media server and its clients. Each client begins to play when it has its start-up buffer, and plays at its bit rate; \
              a byte that is not there when it is needed is an underrun",
    schema: schema_of::<StreamsConfig>,
    build: Kind {
        read: Read::Itself(|keys, _| Ok(Box::new(read::<StreamsConfig>(keys)?))),
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
