//! Track pushing (*Pro-active storage systems*, section 3.2).
//!
//! A drive keeps the tracks that it has read in a buffer, which a sequential stream
//! sweeps before anybody comes back to a track. So those that are in use are offered to
//! the hosts, whose memory is larger, while they are still there.
//!
//! Which tracks the buffer holds is followed from the requests: whole tracks, the least
//! recently used goes first. Of each is noted how many requests have found it and whether
//! they went on where the last one ended. The tracks that are next to go stand in the
//! *transfer window*; one that comes to stand there is offered if it was found, if it was
//! not read in order, and if the buffer as a whole has had hits of late. What a host
//! fetches of it is no use of the track, which is given up once it was fetched.

mod buffer;
mod fetches;
mod recent;

use self::buffer::{Buffer, Track};
use self::fetches::Fetches;
use self::recent::Recent;
use crate::quiet::some;
use crate::{Opportunity, Seen, Site};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Extent, Operation, Request, Signal, Status};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[cfg(test)]
mod tests;

pub(crate) const SUMMARY: &str =
    "offers tracks that are in use before they leave the drive's buffer";

/// Its keys.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Tracks that the drive's buffer holds: 32 unless said. What it holds in truth is for
    /// the drive to say (`segments` of its buffer); what is offered too late is read from
    /// the medium.
    tracks: u32,
    /// Those of them that are next to go and stand in the transfer window: 8 unless said.
    transfer_window: u32,
    /// The share of reads that found their track in the buffer during the last `span`
    /// from which on tracks are offered, above 0 to 1: 0.5 unless said.
    hit_ratio: f64,
    /// Over how long that share is taken, in whole seconds: 10s unless said.
    span: Duration,
    /// How many reads must have found a track, after the one that brought it: 1 unless said.
    hits: u32,
    /// When a track is offered.
    when: When,
    /// How long a request waits at most, with `when = "blocking"`: 100ms unless said.
    block: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tracks: 32,
            transfer_window: 8,
            hit_ratio: 0.5,
            span: Duration::from_secs(10),
            hits: 1,
            when: When::Window,
            block: Duration::from_millis(100),
        }
    }
}

/// When a track is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum When {
    /// As it comes to stand in the transfer window.
    Window,
    /// As another takes its place: what is fetched then comes from the medium.
    Eviction,
    /// As another is about to take its place, which waits until it was fetched.
    Blocking,
}

pub(crate) fn build(keys: &Keys, site: &Site) -> Result<Box<dyn Opportunity>, ConfigError> {
    let config: Config = read(keys)?;
    let Config {
        tracks,
        transfer_window,
        hit_ratio,
        span,
        ..
    } = config;
    if tracks == 0 {
        return Err(ConfigError::new("tracks", "found 0; expected at least 1"));
    }
    if !(1..=tracks).contains(&transfer_window) {
        let message =
            format!("found {transfer_window}; expected 1 to {tracks}, the tracks of the buffer");
        return Err(ConfigError::new("transfer_window", message));
    }
    if !(hit_ratio > 0.0 && hit_ratio <= 1.0) {
        let message = format!("found {hit_ratio}; expected above 0, to 1: a share of reads");
        return Err(ConfigError::new("hit_ratio", message));
    }
    let seconds = Duration::from_secs(1);
    if span < seconds || span.as_nanos() % seconds.as_nanos() != 0 {
        return Err(ConfigError::new(
            "span",
            format!("found {span}; expected whole seconds, at least 1s"),
        ));
    }
    some("block", config.block)?;
    let boundaries = site.tracks.clone();
    let boundaries = boundaries
        .map_err(|why| ConfigError::new("kind", format!("there are no tracks to offer: {why}")))?;
    let longest = boundaries.longest().0;
    if u64::from(config.hits) > longest {
        let message = format!(
            "found {}; the longest track has {longest} sectors, and hosts keep what they have read. Expected no more",
            config.hits
        );
        return Err(ConfigError::new("hits", message));
    }
    Ok(Box::new(TrackPush {
        boundaries,
        buffer: Buffer::new(tracks as usize, transfer_window as usize),
        recent: Recent::new(span.as_nanos() / seconds.as_nanos()),
        fetches: Fetches::new(tracks as usize),
        offers: Vec::new(),
        blocked: None,
        most: Most::default(),
        config,
    }))
}

struct TrackPush {
    config: Config,
    boundaries: Arc<Boundaries>,
    buffer: Buffer,
    recent: Recent,
    fetches: Fetches,
    /// What there is to say.
    offers: Vec<Extent>,
    /// Until when requests wait that a track is fetched.
    blocked: Option<Time>,
    most: Most,
}

/// What came nearest to the thresholds.
#[derive(Clone, Copy, Debug, Default)]
struct Most {
    hit_ratio: f64,
    hits: u32,
}

impl TrackPush {
    /// A read of somebody's, not one that fetches what was offered.
    fn used(&mut self, now: Time, extent: Extent) {
        let (mut found, mut at) = (true, extent.start);
        while let Some(track) = self.boundaries.track_at(at).filter(|_| at < extent.end()) {
            let end = track.end().min(extent.end());
            let gone = self.buffer.read(track, at.0, end.0, &mut found);
            if let Some(gone) = gone {
                self.evicted(now, gone);
            }
            at = end;
        }
        self.recent.read(found);
        if self.config.when == When::Window {
            while let Some(track) = self.buffer.enter_window() {
                self.consider(track);
            }
        }
    }

    fn evicted(&mut self, now: Time, track: Track) {
        match self.config.when {
            When::Window => self.fetches.forget(track.extent),
            When::Eviction => _ = self.consider(track),
            When::Blocking => {
                if self.consider(track) {
                    self.blocked = Some(now + self.config.block);
                }
            }
        }
    }

    /// Offers a track that seems to be in use; answers whether.
    fn consider(&mut self, track: Track) -> bool {
        let hit_ratio = self.recent.hit_ratio();
        self.most.hit_ratio = self.most.hit_ratio.max(hit_ratio);
        self.most.hits = self.most.hits.max(track.hits);
        let in_use = hit_ratio >= self.config.hit_ratio;
        let offers = in_use && track.hits >= self.config.hits && !track.is_sequential();
        if offers {
            self.offers.push(track.extent);
            self.fetches.offered(track.extent);
        }
        offers
    }
}

impl Opportunity for TrackPush {
    fn arrived(&mut self, seen: Seen, request: &Request) -> bool {
        self.recent.at(seen.now);
        match request.operation {
            Operation::Read if self.fetches.takes(request.extent) => {
                while let Some(track) = self.fetches.fetched() {
                    self.buffer.give_up(track.start.0);
                }
                if self.fetches.is_empty() {
                    self.blocked = None;
                }
                return false;
            }
            Operation::Read => self.used(seen.now, request.extent),
            Operation::Write | Operation::Discard => self.buffer.overwritten(request.extent),
            _ => {}
        }
        self.blocked.is_some()
    }

    fn left(&mut self, _: Seen, _: &Request, _: Status) {}

    fn holding(&self) -> bool {
        self.blocked.is_some()
    }

    fn next_look(&self) -> Time {
        let due = if self.offers.is_empty() {
            Time::NEVER
        } else {
            Time::ZERO
        };
        due.min(self.blocked.unwrap_or(Time::NEVER))
    }

    fn look(&mut self, seen: Seen, say: &mut dyn FnMut(Signal)) {
        self.offers
            .drain(..)
            .for_each(|track| say(Signal::Push(track)));
        if self.blocked.is_some_and(|until| until <= seen.now) {
            // Nobody has fetched it; nobody may be there who would.
            self.blocked = None;
            self.fetches.clear();
        }
    }

    fn readings(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("track_hit_share_max", self.most.hit_ratio),
            ("track_hits_max", f64::from(self.most.hits)),
        ]
    }
}
