//! Sequential streams, served in turn.

use super::{AddressPattern, AddressedRegion};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Lbn, Random, Sectors};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "sequential streams, one request of each in turn, each within its own part of the region";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Number of streams.
    #[serde(default = "one")]
    streams: u32,
}

fn one() -> u32 {
    1
}

struct Sequential {
    region: AddressedRegion,
    /// Sectors of the region per stream.
    part: u64,
    /// Distance of each stream's next request from the start of the stream's part.
    offsets: Vec<u64>,
    /// The next stream.
    turn: usize,
    /// The stream of the latest request.
    latest: usize,
}

pub(super) fn build(
    keys: &Keys,
    region: &AddressedRegion,
) -> Result<Box<dyn AddressPattern>, ConfigError> {
    let Config { streams } = read(keys)?;
    // Parts are whole multiples of the alignment, so the first request of each stream is aligned.
    let part =
        region.length.0 / u64::from(streams.max(1)) / region.alignment.0 * region.alignment.0;
    if streams == 0 || part < region.largest.0 {
        return Err(ConfigError::new(
            "streams",
            format!(
                "found {streams}; expected at least 1, and room for a request of {} in each part",
                region.largest
            ),
        ));
    }
    Ok(Box::new(Sequential {
        region: *region,
        part,
        offsets: vec![0; streams as usize],
        turn: 0,
        latest: 0,
    }))
}

impl AddressPattern for Sequential {
    fn next(&mut self, sectors: Sectors, _: &mut Random) -> Lbn {
        let stream = self.turn;
        self.turn = (self.turn + 1) % self.offsets.len();
        self.latest = stream;
        let offset = &mut self.offsets[stream];
        if *offset + sectors.0 > self.part {
            *offset = 0;
        }
        let start = *offset;
        *offset = (start + sectors.0).next_multiple_of(self.region.alignment.0);
        Lbn(self.region.start.0 + stream as u64 * self.part + start)
    }
    fn streams(&self) -> u32 {
        self.offsets.len() as u32
    }

    fn stream(&self) -> u32 {
        self.latest as u32
    }
}
