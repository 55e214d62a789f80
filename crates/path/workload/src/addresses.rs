//! Where requests go. A pattern is one file and one line in [`REGISTRY`].

mod local;
mod random;
mod runs;
mod sequential;
mod zipf;

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Entry, Keys, schema_of};
use fullstroke_units::{Lbn, Random, Sectors};

/// The part of the volume that is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it begins.
    pub start: Sectors,
    /// How long it is; at least `largest`.
    pub length: Sectors,
    /// Requests start at multiples of this from `start` on; at least 1.
    pub alignment: Sectors,
    /// The largest request.
    pub largest: Sectors,
}

impl Region {
    /// How many aligned places hold a request of `sectors`.
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
pub trait Addresses: Send {
    /// Where the next request, of `sectors`, begins.
    fn next(&mut self, sectors: Sectors, random: &mut Random) -> Lbn;

    /// How many sequential streams the pattern consists of; 0 if its requests
    /// do not follow each other.
    fn streams(&self) -> u32 {
        0
    }

    /// The stream to which the latest request belongs, from 0.
    fn stream(&self) -> u32 {
        0
    }
}

/// Builds a pattern from its keys.
pub type BuildAddresses = fn(&Keys, &Region) -> Result<Box<dyn Addresses>, ConfigError>;

/// Every address pattern.
pub const REGISTRY: &[Entry<BuildAddresses>] = &[
    Entry {
        name: "random",
        summary: random::SUMMARY,
        schema: schema_of::<random::Config>,
        build: random::build,
    },
    Entry {
        name: "sequential",
        summary: sequential::SUMMARY,
        schema: schema_of::<sequential::Config>,
        build: sequential::build,
    },
    Entry {
        name: "sequential-runs",
        summary: runs::SUMMARY,
        schema: schema_of::<runs::Config>,
        build: runs::build,
    },
    Entry {
        name: "zipf",
        summary: zipf::SUMMARY,
        schema: schema_of::<zipf::Config>,
        build: zipf::build,
    },
    Entry {
        name: "local",
        summary: local::SUMMARY,
        schema: schema_of::<local::Config>,
        build: local::build,
    },
];
