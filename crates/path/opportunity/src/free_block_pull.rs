//! PULL at the position of the arm, as proposed in *Pro-active storage systems* (section 2.4.1):
//! free-block scheduling with the hosts' dirty data as background work. The memory of the hosts
//! bounds the work, not the memory of the drive.
//!
//! When a request with a waiting caller comes, hosts are asked for dirty data on the same track and
//! on neighbouring tracks, because the arm will be there. The writes of the hosts wait in the drive
//! for free latency (`queue.background` of a drive). No host is asked while too many such writes
//! wait.

use crate::{Opportunity, OpportunitySite, OpportunityView};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Extent, Request, RequestStatus, Signal};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Lbn, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(crate) const SUMMARY: &str =
    "pulls dirty pages on tracks near the next request, for writes in free rotational latency";

/// Keys of `free-block-pull`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Number of tracks to ask for, with the track of the request in the middle. Default 129.
    tracks: u32,
    /// Number of background writes waiting in the array from which on no host is asked. Default 8.
    most_inside: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            // An odd number, so that the track of the request lies in the middle.
            tracks: 129,
            most_inside: 8,
        }
    }
}

/// Upper limit of `tracks`. More tracks are no neighbourhood.
const MOST_TRACKS: u32 = 100_000;

pub(crate) fn build(
    keys: &Keys,
    site: &OpportunitySite,
) -> Result<Box<dyn Opportunity>, ConfigError> {
    let Config {
        tracks,
        most_inside,
    } = read(keys)?;
    if !(1..=MOST_TRACKS).contains(&tracks) {
        return Err(ConfigError::new(
            "tracks",
            format!("found {tracks}; expected 1 to {MOST_TRACKS}"),
        ));
    }
    if most_inside == 0 {
        return Err(ConfigError::new(
            "most_inside",
            "found 0; expected at least 1, or no host is ever asked",
        ));
    }
    let boundaries = site.tracks.clone().map_err(|why| {
        ConfigError::new(
            "kind",
            format!("the next position of the arm is not known here: {why}"),
        )
    })?;
    Ok(Box::new(FreeBlockPull {
        boundaries,
        tracks,
        most_inside,
        wanted: None,
        asked: Extent::default(),
        inside: 0,
        written: Sectors::ZERO,
    }))
}

struct FreeBlockPull {
    boundaries: Arc<Boundaries>,
    tracks: u32,
    most_inside: u32,
    /// Extent for the next question to hosts.
    wanted: Option<Extent>,
    /// Extent of the last question to hosts.
    asked: Extent,
    /// Number of put-off writes inside.
    inside: u32,
    /// Sectors that hosts wrote inside the extent of a question.
    written: Sectors,
}

impl FreeBlockPull {
    /// Returns the tracks around `lbn`.
    fn around(&self, lbn: Lbn) -> Option<Extent> {
        let number = self.boundaries.number_of(lbn)?;
        let first = number.saturating_sub(u64::from(self.tracks / 2));
        let last = (first + u64::from(self.tracks)).min(self.boundaries.len()) - 1;
        let (first, last) = (self.boundaries.nth(first)?, self.boundaries.nth(last)?);
        Some(Extent {
            start: first.start,
            sectors: last.end().since(first.start),
        })
    }
}

impl Opportunity for FreeBlockPull {
    fn arrived(&mut self, _: OpportunityView, request: &Request) -> bool {
        if request.is_put_off() {
            self.inside += 1;
            let within = self.asked.start <= request.extent.start
                && request.extent.end() <= self.asked.end();
            self.written += if within {
                request.extent.sectors
            } else {
                Sectors::ZERO
            };
        } else if request.operation.transfers() && self.inside < self.most_inside {
            self.wanted = self.around(request.extent.start);
        }
        false
    }

    fn left(&mut self, _: OpportunityView, request: &Request, _: RequestStatus) {
        self.inside -= u32::from(request.is_put_off());
    }

    fn next_look(&self) -> Time {
        if self.wanted.is_some() {
            Time::ZERO
        } else {
            Time::NEVER
        }
    }

    fn look(&mut self, _: OpportunityView, say: &mut dyn FnMut(Signal)) {
        if let Some(extent) = self.wanted.take() {
            self.asked = extent;
            say(Signal::Pull {
                extent: Some(extent),
                sectors: extent.sectors,
            });
        }
    }

    fn readings(&self) -> Vec<(&'static str, f64)> {
        vec![("freeblock_pulled_mb", self.written.bytes().0 as f64 / 1e6)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SECTORS_PER_TRACK, site};
    use fullstroke_contract::{Gauge, Hints, Operation};
    use serde_json::json;

    fn built(keys: serde_json::Value) -> Result<Box<dyn Opportunity>, ConfigError> {
        build(keys.as_object().unwrap(), &site())
    }

    fn request(operation: Operation, track: u64, synchronous: bool) -> Request {
        let hints = Hints {
            synchronous,
            ..Hints::default()
        };
        let extent = Extent::new(track * SECTORS_PER_TRACK + 3, 8);
        Request {
            operation,
            extent,
            hints,
            ..Request::default()
        }
    }

    /// Returns the tracks of the question after `request` has come.
    fn asked(pull: &mut dyn Opportunity, request: &Request) -> Option<(u64, u64)> {
        let seen = OpportunityView {
            now: Time::ZERO,
            inside: 1,
            arm: Gauge::default(),
            standing: 0,
            cleaning: 0,
        };
        pull.arrived(seen, request);
        let mut asked = None;
        if pull.next_look() <= seen.now {
            pull.look(seen, &mut |signal| {
                let Signal::Pull {
                    extent: Some(extent),
                    sectors,
                } = signal
                else {
                    panic!("{signal:?}")
                };
                assert_eq!(sectors, extent.sectors);
                asked = Some((
                    extent.start.0 / SECTORS_PER_TRACK,
                    extent.sectors.0 / SECTORS_PER_TRACK,
                ));
            });
        }
        assert_eq!(pull.next_look(), Time::NEVER);
        asked
    }

    #[test]
    fn tracks_around_a_request_are_asked_for() {
        let mut pull = built(json!({ "tracks": 5 })).unwrap();
        let mut read = |track| asked(&mut *pull, &request(Operation::Read, track, true));
        assert_eq!(read(50), Some((48, 5)));
        assert_eq!(read(0), Some((0, 5)));
        assert_eq!(read(99), Some((97, 3)));
    }

    #[test]
    fn nobody_is_asked_while_much_waits() {
        let mut pull = built(json!({ "tracks": 1, "most_inside": 2 })).unwrap();
        let (put_off, read) = (
            request(Operation::Write, 7, false),
            request(Operation::Read, 7, true),
        );
        assert_eq!(asked(&mut *pull, &read), Some((7, 1)));
        assert_eq!(
            asked(&mut *pull, &put_off),
            None,
            "nobody waits for the arm to come there"
        );
        assert_eq!(asked(&mut *pull, &put_off), None);
        assert_eq!(asked(&mut *pull, &read), None);
        let seen = OpportunityView {
            now: Time::ZERO,
            inside: 1,
            arm: Gauge::default(),
            standing: 0,
            cleaning: 0,
        };
        pull.left(seen, &put_off, RequestStatus::Done);
        assert_eq!(asked(&mut *pull, &read), Some((7, 1)));
        assert_eq!(
            pull.readings(),
            [("freeblock_pulled_mb", 2.0 * 8.0 * 512.0 / 1e6)]
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let key = |keys| built(keys).err().unwrap().key;
        assert_eq!(key(json!({ "tracks": 0 })), "tracks");
        assert_eq!(key(json!({ "most_inside": 0 })), "most_inside");
        let unknown = OpportunitySite {
            tracks: Err(fullstroke_tracks::UnknownTracks::BehindController),
            ..site()
        };
        assert!(
            build(&Keys::new(), &unknown)
                .err()
                .unwrap()
                .message
                .contains("a controller hides")
        );
    }
}
