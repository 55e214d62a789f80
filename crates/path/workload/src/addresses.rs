//! Address patterns: where requests go. A pattern is one file and one line in [`REGISTRY`].

mod local;
mod random;
mod runs;
mod sequential;
mod zipf;

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};
use fullstroke_units::{Lbn, Random, Sectors};

/// The addressed part of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressedRegion {
    /// The first sector of the region.
    pub start: Sectors,
    /// Length of the region, at least `largest`.
    pub length: Sectors,
    /// Requests start at multiples of this distance from `start`; at least 1.
    pub alignment: Sectors,
    /// The largest request.
    pub largest: Sectors,
}

impl AddressedRegion {
    /// Number of aligned places for a request of `sectors`.
    #[inline]
    pub fn places(&self, sectors: Sectors) -> u64 {
        (self.length.0 - sectors.0) / self.alignment.0 + 1
    }

    /// The address of place `number`.
    #[inline]
    pub fn place(&self, number: u64) -> Lbn {
        Lbn(self.start.0 + number * self.alignment.0)
    }
}

/// An address pattern.
pub trait AddressPattern: Send {
    /// First sector of the next request, which has `sectors`.
    fn next(&mut self, sectors: Sectors, random: &mut Random) -> Lbn;

    /// Number of sequential streams in the pattern; 0 if consecutive requests are unrelated.
    fn streams(&self) -> u32 {
        0
    }

    /// Stream of the latest request, from 0.
    fn stream(&self) -> u32 {
        0
    }
}

/// Builds a pattern from its keys.
pub type BuildAddresses =
    fn(&Keys, &AddressedRegion) -> Result<Box<dyn AddressPattern>, ConfigError>;

/// Every address pattern.
pub const REGISTRY: &[PolicyEntry<BuildAddresses>] = &[
    PolicyEntry {
        name: "random",
        summary: random::SUMMARY,
        schema: schema_of::<random::Config>,
        build: random::build,
    },
    PolicyEntry {
        name: "sequential",
        summary: sequential::SUMMARY,
        schema: schema_of::<sequential::Config>,
        build: sequential::build,
    },
    PolicyEntry {
        name: "sequential-runs",
        summary: runs::SUMMARY,
        schema: schema_of::<runs::Config>,
        build: runs::build,
    },
    PolicyEntry {
        name: "zipf",
        summary: zipf::SUMMARY,
        schema: schema_of::<zipf::Config>,
        build: zipf::build,
    },
    PolicyEntry {
        name: "local",
        summary: local::SUMMARY,
        schema: schema_of::<local::Config>,
        build: local::build,
    },
];
