//! Track pushing (*Pro-active storage systems*, section 3.2).
//!
//! A drive keeps recently read tracks in a buffer. A sequential stream sweeps the buffer before a
//! host reads a track again. Therefore tracks in use are offered to the hosts, whose memory is
//! larger, while the tracks are still in the buffer.
//!
//! The content of the buffer is followed from the requests. The buffer has whole tracks, and the
//! least recently used track goes first. For each track, the model counts the reads that found the
//! track, and the reads that continued the previous read. The tracks that go next are in the
//! *transfer window*. A track that enters the window is offered under three conditions. The track
//! was found by enough reads, was not read sequentially, and the buffer as a whole has had enough
//! hits lately. A fetch by a host does not count as a use of the track. After the fetch, the track
//! is given up.

mod buffer;
mod fetches;
mod recent;

use self::buffer::{BufferedTrack, TrackBuffer};
use self::fetches::Fetches;
use self::recent::RecentReads;
use crate::quiet::some;
use crate::{Opportunity, OpportunitySite, OpportunityView};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Extent, Operation, Request, RequestStatus, Signal};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

#[cfg(test)]
mod tests;

pub(crate) const SUMMARY: &str =
    "offers hosts the tracks that they use, before the tracks leave the drive's buffer";

/// Keys of `track-push`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Number of tracks in the drive's buffer. Default 32. The real number depends on the drive
    /// (`segments` of the buffer). A track offered too late is read from the medium.
    tracks: u32,
    /// Number of tracks in the transfer window: the tracks that leave the buffer next. Default 8.
    transfer_window: u32,
    /// Smallest share of reads that found the track in the buffer during the last `span`. Tracks
    /// are offered only from this share on. Above 0, up to 1. Default 0.5.
    hit_ratio: f64,
    /// Time span of the hit share, in whole seconds. Default 10s.
    span: Duration,
    /// Smallest number of reads that found a track in the buffer. A track with fewer such reads is
    /// not offered. Default 1.
    hits: u32,
    /// Time of the offer. Default "window".
    when: PushTrigger,
    /// Longest wait of a request for a fetch, with `when = "blocking"`. Default 100ms.
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
            when: PushTrigger::Window,
            block: Duration::from_millis(100),
        }
    }
}

/// Time of the offer of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum PushTrigger {
    /// When the track enters the transfer window.
    Window,
    /// When another track replaces the track. The fetch then comes from the medium.
    Eviction,
    /// When another track is about to replace the track. The replacing request waits for the fetch.
    Blocking,
}

pub(crate) fn build(
    keys: &Keys,
    site: &OpportunitySite,
) -> Result<Box<dyn Opportunity>, ConfigError> {
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
            "found {}; expected at most {longest}, the sectors of the longest track",
            config.hits
        );
        return Err(ConfigError::new("hits", message));
    }
    Ok(Box::new(TrackPush {
        boundaries,
        buffer: TrackBuffer::new(tracks as usize, transfer_window as usize),
        recent: RecentReads::new(span.as_nanos() / seconds.as_nanos()),
        fetches: Fetches::new(tracks as usize),
        offers: Vec::new(),
        blocked: None,
        most: Maxima::default(),
        config,
    }))
}

struct TrackPush {
    config: Config,
    boundaries: Arc<Boundaries>,
    buffer: TrackBuffer,
    recent: RecentReads,
    fetches: Fetches,
    /// Offers to send at the next look.
    offers: Vec<Extent>,
    /// Time until which requests wait for the fetch of a track.
    blocked: Option<Time>,
    most: Maxima,
}

/// Largest values seen, for comparison with the thresholds.
#[derive(Clone, Copy, Debug, Default)]
struct Maxima {
    hit_ratio: f64,
    hits: u32,
}

impl TrackPush {
    /// Records a read by a host that fetches no offered track.
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
        // A read over several tracks is a hit if all tracks were in the buffer.
        self.recent.read(found);
        if self.config.when == PushTrigger::Window {
            while let Some(track) = self.buffer.enter_window() {
                self.consider(track);
            }
        }
    }

    fn evicted(&mut self, now: Time, track: BufferedTrack) {
        match self.config.when {
            PushTrigger::Window => self.fetches.forget(track.extent),
            PushTrigger::Eviction => _ = self.consider(track),
            PushTrigger::Blocking => {
                if self.consider(track) {
                    self.blocked = Some(now + self.config.block);
                }
            }
        }
    }

    /// Offers a track if the track seems to be in use. Returns true after an offer.
    fn consider(&mut self, track: BufferedTrack) -> bool {
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
    fn arrived(&mut self, seen: OpportunityView, request: &Request) -> bool {
        self.recent.at(seen.now);
        match request.operation {
            Operation::Read if self.fetches.takes(request.extent) => {
                // Fetched tracks leave the buffer of the model, because the host now has the track
                // and the drive's copy is not needed.
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

    fn left(&mut self, _: OpportunityView, _: &Request, _: RequestStatus) {}

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

    fn look(&mut self, seen: OpportunityView, say: &mut dyn FnMut(Signal)) {
        self.offers
            .drain(..)
            .for_each(|track| say(Signal::Push(track)));
        if self.blocked.is_some_and(|until| until <= seen.now) {
            // No host has fetched the track, and perhaps no host wants the track.
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
