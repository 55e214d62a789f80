//! Sequential runs: a stretch of neighbouring requests, then a stretch elsewhere.

use super::{AddressPattern, AddressedRegion};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Lbn, Random, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str = "runs of neighbouring requests; each run starts at a random place or at the end of the run before";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Length of a run; at most the size of the region.
    #[serde(default = "eight_mib")]
    length: Bytes,
    /// Place of the next run.
    #[serde(default)]
    order: RunOrder,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RunOrder {
    /// A random aligned place of the region.
    #[default]
    Random,
    /// The end of the previous run; after the region's end, the region's start.
    Consecutive,
}

fn eight_mib() -> Bytes {
    Bytes(8 << 20)
}

struct RunAddresses {
    region: AddressedRegion,
    length: u64,
    order: RunOrder,
    /// Distance of the next request from the start of the region.
    offset: u64,
    /// End of the present run, as a distance from the start of the region.
    end: u64,
}

pub(super) fn build(
    keys: &Keys,
    region: &AddressedRegion,
) -> Result<Box<dyn AddressPattern>, ConfigError> {
    let Config { length, order } = read(keys)?;
    let Some(sectors) = length
        .sectors()
        .filter(|&sectors| sectors >= region.largest)
    else {
        let message = format!(
            "found {length}; expected a multiple of 512B, at least a request of {}",
            region.largest
        );
        return Err(ConfigError::new("length", message));
    };
    let sectors = sectors.min(region.length);
    Ok(Box::new(RunAddresses {
        region: *region,
        length: sectors.0,
        order,
        offset: 0,
        end: 0,
    }))
}

impl RunAddresses {
    /// Begins a run. The whole run lies inside the region.
    fn begin(&mut self, random: &mut Random) {
        let places = self.region.places(Sectors(self.length));
        let place = match self.order {
            RunOrder::Random => random.below(places),
            // The end of a run need not be aligned, and the next run must not overlap the last.
            RunOrder::Consecutive => self.end.div_ceil(self.region.alignment.0),
        };
        let place = if place < places { place } else { 0 };
        self.offset = place * self.region.alignment.0;
        self.end = self.offset + self.length;
    }
}

impl AddressPattern for RunAddresses {
    fn next(&mut self, sectors: Sectors, random: &mut Random) -> Lbn {
        if self.offset + sectors.0 > self.end {
            self.begin(random);
        }
        let start = self.offset;
        self.offset = (start + sectors.0).next_multiple_of(self.region.alignment.0);
        Lbn(self.region.start.0 + start)
    }

    fn streams(&self) -> u32 {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Seed;
    use serde_json::json;

    const REGION: AddressedRegion = AddressedRegion {
        start: Sectors(1000),
        length: Sectors(512),
        alignment: Sectors(8),
        largest: Sectors(8),
    };

    fn starts(keys: &serde_json::Value, count: usize) -> Vec<u64> {
        let mut runs = build(keys.as_object().unwrap(), &REGION).unwrap();
        let mut random = Seed(3).stream("runs");
        (0..count)
            .map(|_| runs.next(Sectors(8), &mut random).0)
            .collect()
    }

    #[test]
    fn a_run_is_sequential_and_the_next_begins_elsewhere() {
        let starts = starts(&json!({ "length": "32KiB" }), 24);
        let runs: Vec<&[u64]> = starts.chunks(8).collect();
        for run in &runs {
            assert!(run.windows(2).all(|pair| pair[1] == pair[0] + 8), "{run:?}");
        }
        assert!(
            runs.windows(2).all(|pair| pair[1][0] != pair[0][7] + 8),
            "{starts:?}"
        );
    }

    #[test]
    fn consecutive_runs_go_through_the_region_and_begin_again() {
        let starts = starts(&json!({ "length": "32KiB", "order": "consecutive" }), 65);
        assert!(
            starts[..64].windows(2).all(|pair| pair[1] == pair[0] + 8),
            "{starts:?}"
        );
        assert_eq!((starts[63], starts[64]), (1000 + 504, 1000));
    }

    #[test]
    fn a_run_shorter_than_a_request_is_refused() {
        let keys = json!({ "length": "2KiB" });
        assert_eq!(
            build(keys.as_object().unwrap(), &REGION).err().unwrap().key,
            "length"
        );
    }
}
