//! Reads the whole volume once from beginning to end, one request at a time.

use super::{Workload, WorkloadError, WorkloadKind, WorkloadReader};
use fullstroke_contract::registry::{PolicyEntry, read, schema_of};
use fullstroke_contract::{
    Completion, ConfigError, Extent, Node, NodeContext, Port, Request, RequestId, Source, Wake,
};
use fullstroke_units::{Bytes, Sectors, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const ENTRY: PolicyEntry<WorkloadKind> = PolicyEntry {
    name: "whole",
    summary: "reads the whole volume once",
    schema: schema_of::<WholeConfig>,
    build: WorkloadKind {
        read: WorkloadReader::Itself(|keys, _| Ok(Box::new(read::<WholeConfig>(keys)?))),
        tables: &[],
        alone: false,
        example: "size = \"1MiB\"",
    },
};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WholeConfig {
    /// Size of the requests.
    size: Bytes,
}

impl Workload for WholeConfig {
    fn source(&self, capacity: Sectors, _: Seed) -> Result<Box<dyn Source>, WorkloadError> {
        match self.size.sectors() {
            Some(size) if size > Sectors::ZERO => Ok(Box::new(Whole {
                at: 0,
                end: capacity.0,
                size: size.0,
            })),
            _ => Err(ConfigError::new(
                "size",
                format!("found {}; expected whole sectors", self.size),
            )
            .into()),
        }
    }
}

struct Whole {
    at: u64,
    end: u64,
    size: u64,
}

impl Node for Whole {
    fn wake(&mut self, _: Time, cx: &mut NodeContext<'_>) {
        if self.at == 0 {
            self.issue(cx);
        }
    }

    fn completed(&mut self, _: Time, _: Port, _: Completion, cx: &mut NodeContext<'_>) {
        self.issue(cx);
    }

    fn next_wake(&self) -> Wake {
        if self.at == 0 {
            Time::ZERO.into()
        } else {
            Wake::NEVER
        }
    }
}

impl Whole {
    fn issue(&mut self, cx: &mut NodeContext<'_>) {
        let sectors = self.size.min(self.end - self.at);
        if sectors > 0 {
            let extent = Extent::new(self.at, sectors);
            self.at += sectors;
            cx.out.issue(
                0,
                Request {
                    id: RequestId(self.at),
                    extent,
                    ..Request::default()
                },
            );
        }
    }
}

impl Source for Whole {}
