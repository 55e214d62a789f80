//! One process: its requests and its think times.

use crate::addresses::{self, AddressPattern};
use crate::process_config::ProcessConfig;
use crate::region::{RegionKeys, region, sectors};
use crate::sizes::SizeDraws;
use fullstroke_contract::registry::find;
use fullstroke_contract::{ConfigError, Extent, Hints, Operation, Request, RequestId};
use fullstroke_units::{Bytes, Duration, Random, Sectors, Seed};

/// A closed loop.
pub(crate) struct LoopProcess {
    addresses: Box<dyn AddressPattern>,
    sizes: SizeDraws,
    read_share: f64,
    waits_for_writes: bool,
    think_time: Duration,
    exponential: bool,
    /// Hints of every request; single requests change some of them.
    hints: Hints,
    /// Number of the process's first stream; 0 without streams.
    first_stream: u32,
    issued: u32,
    pause: Random,
    place: Random,
    mix: Random,
}

/// Numbers that identify a process.
pub(crate) struct ProcessIdentity {
    /// From 1.
    pub(crate) number: u32,
    /// Index among the processes of its entry, from 0.
    pub(crate) within_entry: u32,
    /// Number among the processes of its name, from 1.
    pub(crate) within_name: u32,
    /// Number of its first stream.
    pub(crate) first_stream: u32,
}

impl LoopProcess {
    /// # Errors
    /// Names the impossible key.
    pub(crate) fn new(
        config: &ProcessConfig,
        identity: &ProcessIdentity,
        capacity: Sectors,
        seed: Seed,
    ) -> Result<LoopProcess, ConfigError> {
        let sizes = SizeDraws::new(&config.size)?;
        let start = start_of(config, identity.within_entry, capacity)?;
        let keys = RegionKeys {
            start,
            size: config.region_size,
            alignment: config.alignment,
        };
        let region = region(keys, &sizes, capacity)?;
        let addresses = find(
            "address pattern",
            addresses::REGISTRY,
            "pattern",
            &config.addresses.pattern,
        )
        .and_then(|entry| (entry.build)(&config.addresses.keys, &region))
        .map_err(|error| error.below("addresses"))?;
        // One random stream a purpose: other think times leave the addresses and the mix as before.
        let stream = |of: &str| {
            seed.stream(&format!(
                "process {} {} {of}",
                config.name, identity.within_name
            ))
        };
        Ok(LoopProcess {
            first_stream: if addresses.streams() == 0 {
                0
            } else {
                identity.first_stream
            },
            addresses,
            sizes,
            read_share: config.read_share,
            waits_for_writes: config.waits_for_writes(),
            think_time: config.think_time,
            exponential: config.exponential,
            hints: Hints {
                process: identity.number,
                class: config.class,
                level: config.level,
                ..Hints::default()
            },
            issued: 0,
            pause: stream("think time"),
            place: stream("addresses"),
            mix: stream("mix"),
        })
    }

    /// Number of sequential streams.
    pub(crate) fn streams(&self) -> u32 {
        self.addresses.streams()
    }

    /// The next request.
    pub(crate) fn next(&mut self) -> Request {
        let sectors = self.sizes.draw(&mut self.mix);
        let start = self.addresses.next(sectors, &mut self.place);
        let read = self.read_share >= 1.0 || self.mix.chance(self.read_share);
        // Only ids in flight must differ, and a process has at most 2^16 in flight.
        self.issued = self.issued.wrapping_add(1);
        let stream = if self.first_stream == 0 {
            0
        } else {
            self.first_stream + self.addresses.stream()
        };
        Request {
            id: RequestId(u64::from(self.hints.process) << 32 | u64::from(self.issued)),
            operation: if read {
                Operation::Read
            } else {
                Operation::Write
            },
            extent: Extent { start, sectors },
            hints: Hints {
                stream,
                synchronous: read || self.waits_for_writes,
                ..self.hints
            },
            ..Request::default()
        }
    }

    /// Think time before the next request.
    pub(crate) fn think(&mut self) -> Duration {
        if self.exponential {
            self.pause.exponential(self.think_time)
        } else {
            self.think_time
        }
    }
}

/// The process of a request, from 1.
pub(crate) fn number_of(id: RequestId) -> u32 {
    (id.0 >> 32) as u32
}

/// Start of the region of process `index` of an entry.
fn start_of(config: &ProcessConfig, index: u32, capacity: Sectors) -> Result<Bytes, ConfigError> {
    // Checked for the first process also, whose start does not use the increment: a bad key must
    // not depend on `count`.
    sectors("region_increment", config.region_increment)?;
    let start = config
        .region_increment
        .0
        .checked_mul(u64::from(index))
        .and_then(|distance| distance.checked_add(config.region_start.0))
        .filter(|&start| start < capacity.bytes().0);
    start.map(Bytes).ok_or_else(|| {
        let key = if index == 0 {
            "region_start"
        } else {
            "region_increment"
        };
        let message = format!(
            "process {} would begin behind the volume of {capacity}",
            index + 1
        );
        ConfigError::new(key, message)
    })
}
