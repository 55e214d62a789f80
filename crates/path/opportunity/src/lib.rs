//! Opportunities that storage notices in the load, and questions to hosts: PULL and PUSH of
//! pro-active storage (*Pro-active storage systems*, 2012, chapters 2, 3 and 5).
//!
//! A [`OpportunityLayer`] stands above an array, sees all requests and completions, and lets its
//! opportunities look. An [`Opportunity`] is one file with a type, keys, tests, and one line in
//! [`REGISTRY`]. The other layers do not know the opportunities. A host that ignores all signals
//! works as before.

mod free_block;
mod free_block_pull;
mod idle_flush;
mod idle_flush_on;
mod idle_scrub;
mod idle_verify;
mod pull_before_cleaning;
mod pull_before_stop;
mod pull_once;
mod quiet;
mod track_push;
mod watch;

pub use watch::OpportunityLayer;

use fullstroke_contract::registry::{Keys, PolicyEntry, find, schema_of};
use fullstroke_contract::{
    ConfigError, Extent, Gauge, Operation, Request, RequestStatus, Signal, TrackTable,
};
use fullstroke_tracks::{Boundaries, UnknownTracks};
use fullstroke_units::{Bytes, Duration, Sectors, Time};
use std::sync::Arc;
use thiserror::Error;

/// State that an opportunity may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpportunityView {
    /// Current time.
    pub now: Time,
    /// Number of requests in the array, waiting and in service.
    pub inside: u32,
    /// Gauge of the array before the last request came.
    pub arm: Gauge,
    /// Number of drives below with standing platters.
    pub standing: u32,
    /// Number of drives below that clean shingled bands.
    pub cleaning: u32,
}

/// A condition that storage notices and uses.
///
/// - **Events in**: [`arrived`](Opportunity::arrived), [`left`](Opportunity::left),
///   [`look`](Opportunity::look).
/// - **Out**: signals; [`next_look`](Opportunity::next_look).
///
/// An early look is harmless. A late look delays the signals and has no other effect.
pub trait Opportunity: Send {
    /// Records that a request has come. The request counts as inside. Returns true if the request
    /// must wait above the array while the opportunity is [`holding`](Opportunity::holding).
    fn arrived(&mut self, seen: OpportunityView, request: &Request) -> bool;
    /// Records that a waiting request goes down. The request waited because
    /// [`arrived`](Opportunity::arrived) returned true.
    fn released(&mut self, _request: &Request) {}
    /// Records that a request has been answered. The request no longer counts as inside.
    fn left(&mut self, seen: OpportunityView, request: &Request, status: RequestStatus);
    /// True if requests must wait for the opportunity. The opportunity must want further looks
    /// while requests wait.
    fn holding(&self) -> bool {
        false
    }
    /// Returns the time of the next look; [`Time::NEVER`] if only a request can change the state.
    fn next_look(&self) -> Time;
    /// Looks at the state and sends the due signals.
    fn look(&mut self, seen: OpportunityView, say: &mut dyn FnMut(Signal));
    /// Returns the next request of the opportunity's own. The watch asks after each look until the
    /// answer is `None`.
    fn next_request(&mut self, _seen: OpportunityView) -> Option<OwnRequest> {
        None
    }
    /// Records that the array has served an own request.
    fn served(&mut self, _seen: OpportunityView, _own: &OwnRequest, _status: RequestStatus) {}
    /// True if the opportunity waits for a time without requests. Reports then show the longest
    /// such time.
    fn waits_for_quiet(&self) -> bool {
        false
    }
    /// Returns the counters, by the names of `READINGS`.
    fn readings(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// A request of an opportunity's own to the array. No layer above sees the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnRequest {
    /// Read, or write of the data last written there.
    pub operation: Operation,
    /// Extent of the request.
    pub extent: Extent,
    /// True if a read is compared with the data last written there.
    pub verify: bool,
    /// True if the extent is in the addresses of the members and all members are read
    /// ([`Hints::members`](fullstroke_contract::Hints::members)).
    pub members: bool,
}

/// Reason why the layers above an array cannot know the position of the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnknownArm {
    /// A controller answers from memory and moves data by itself.
    #[error("a controller with memory of its own stands before it")]
    BehindController,
    /// The array has several arms.
    #[error("the array has several drives or arms")]
    Several,
}

/// Surroundings for which an opportunity is built.
#[derive(Clone)]
pub struct OpportunitySite {
    /// The tracks of the array's addresses, or the reason why the tracks are not known.
    pub tracks: Result<Arc<Boundaries>, UnknownTracks>,
    /// Size of the largest page cache above; 0 if there is none.
    pub page_cache: Bytes,
    /// Number of hosts above.
    pub hosts: usize,
    /// Length of the run, if all workloads have a known length.
    pub lasts: Option<Duration>,
    /// Shortest idle time before a drive stops its platters by itself. `None` if no drive does.
    pub stop: Option<Duration>,
    /// Shortest idle time before a drive cleans shingled bands. `None` if no drive does.
    pub clean: Option<Duration>,
    /// Reason why written data cannot be verified. `None` if verification is possible.
    pub unverifiable: Option<&'static str>,
    /// Number of sectors that the array uses of the longest drive, or the reason why single drives
    /// cannot be read through the array.
    pub members: Result<Sectors, &'static str>,
    /// Layout of the addresses on the only drive of the array, or the reason why the position of
    /// the arm is unknown.
    pub drive: Result<Arc<dyn TrackTable>, UnknownArm>,
}

/// An opportunity outside the registry.
pub type Trial = fullstroke_contract::TrialPolicy<OpportunitySite, dyn Opportunity>;

/// Kind of the signals of an opportunity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// The opportunity asks for dirty data.
    Pull,
    /// The opportunity offers data in storage.
    Push,
    /// The opportunity sends no signals.
    Nothing,
}

/// Function that builds an opportunity from its keys.
pub type BuildOpportunity =
    fn(&Keys, &OpportunitySite) -> Result<Box<dyn Opportunity>, ConfigError>;

/// A kind of opportunity.
#[derive(Clone, Copy, Debug)]
pub struct OpportunityKind {
    /// Builds the opportunity from its keys.
    pub build: BuildOpportunity,
    /// Kind of the signals. A layer above must react to the signals.
    pub word: SignalKind,
}

/// Every opportunity.
#[rustfmt::skip]
pub const REGISTRY: &[PolicyEntry<OpportunityKind>] = &[
    PolicyEntry { name: "free-block", summary: free_block::SUMMARY, schema: schema_of::<free_block::Config>, build: OpportunityKind { build: free_block::build, word: SignalKind::Nothing } },
    PolicyEntry { name: "free-block-pull", summary: free_block_pull::SUMMARY, schema: schema_of::<free_block_pull::Config>, build: OpportunityKind { build: free_block_pull::build, word: SignalKind::Pull } },
    PolicyEntry { name: "idle-flush", summary: idle_flush::SUMMARY, schema: schema_of::<idle_flush::Config>, build: OpportunityKind { build: idle_flush::build, word: SignalKind::Pull } },
    PolicyEntry { name: "idle-flush-on", summary: idle_flush_on::SUMMARY, schema: schema_of::<idle_flush_on::Config>, build: OpportunityKind { build: idle_flush_on::build, word: SignalKind::Pull } },
    PolicyEntry { name: "idle-scrub", summary: idle_scrub::SUMMARY, schema: schema_of::<idle_scrub::Config>, build: OpportunityKind { build: idle_scrub::build, word: SignalKind::Nothing } },
    PolicyEntry { name: "idle-verify", summary: idle_verify::SUMMARY, schema: schema_of::<idle_verify::Config>, build: OpportunityKind { build: idle_verify::build, word: SignalKind::Nothing } },
    PolicyEntry { name: "pull-before-cleaning", summary: pull_before_cleaning::SUMMARY, schema: schema_of::<pull_before_cleaning::Config>, build: OpportunityKind { build: pull_before_cleaning::build, word: SignalKind::Pull } },
    PolicyEntry { name: "pull-before-stop", summary: pull_before_stop::SUMMARY, schema: schema_of::<pull_before_stop::Config>, build: OpportunityKind { build: pull_before_stop::build, word: SignalKind::Pull } },
    PolicyEntry { name: "track-push", summary: track_push::SUMMARY, schema: schema_of::<track_push::Config>, build: OpportunityKind { build: track_push::build, word: SignalKind::Push } },
];

/// Returns the kind named in a table, and the other keys.
///
/// # Errors
/// Fails if the kind is missing or unknown.
pub fn kind_of(table: &Keys) -> Result<(&'static PolicyEntry<OpportunityKind>, Keys), ConfigError> {
    let names = || {
        REGISTRY
            .iter()
            .map(|entry| entry.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut keys = table.clone();
    let kind = match keys.remove("kind") {
        Some(kind) => kind,
        None => {
            return Err(ConfigError::new(
                "kind",
                format!("found none; expected one of {}", names()),
            ));
        }
    };
    let Some(name) = kind.as_str() else {
        return Err(ConfigError::new(
            "kind",
            format!("found {kind}; expected one of {}", names()),
        ));
    };
    Ok((find("opportunity", REGISTRY, "kind", name)?, keys))
}

/// Returns the opportunity of a table with a `kind` and the keys of this kind.
///
/// # Errors
/// Fails as [`kind_of`] does, or names an unknown or invalid key of the kind.
pub fn build(table: &Keys, site: &OpportunitySite) -> Result<Box<dyn Opportunity>, ConfigError> {
    let (entry, keys) = kind_of(table)?;
    (entry.build.build)(&keys, site)
}

#[cfg(test)]
mod testing {
    use super::*;
    use fullstroke_contract::{TrackExtent, ZoneRate};
    use fullstroke_tracks::Builder;
    use fullstroke_units::{Cylinder, Duration, Lbn};

    pub(crate) const SECTORS_PER_TRACK: u64 = 80;
    pub(crate) const REVOLUTION_NS: u64 = 8_000_000;

    /// 100 tracks without skew, and an arm that needs no seek.
    pub(crate) struct Turning;

    impl TrackTable for Turning {
        fn capacity(&self) -> Sectors {
            Sectors(100 * SECTORS_PER_TRACK)
        }

        fn track_at(&self, lbn: Lbn) -> TrackExtent {
            let track = lbn.0 / SECTORS_PER_TRACK;
            let first = Lbn(track * SECTORS_PER_TRACK);
            TrackExtent {
                first,
                sectors: Sectors(SECTORS_PER_TRACK),
                cylinder: Cylinder(track as u32),
                surface: 0,
            }
        }

        fn cylinder_of(&self, lbn: Lbn) -> Cylinder {
            self.track_at(lbn).cylinder
        }

        fn positioning(&self, now: Time, _: &Gauge, lbn: Lbn, _: bool) -> Duration {
            let begins = lbn.0 % SECTORS_PER_TRACK * (REVOLUTION_NS / SECTORS_PER_TRACK);
            Duration::from_nanos(
                (begins + REVOLUTION_NS - now.as_nanos() % REVOLUTION_NS) % REVOLUTION_NS,
            )
        }

        fn zone_rates(&self) -> Vec<ZoneRate> {
            let bytes_per_s = SECTORS_PER_TRACK * 512 * 1_000_000_000 / REVOLUTION_NS;
            vec![ZoneRate {
                first: Lbn(0),
                sectors: self.capacity(),
                bytes_per_s,
            }]
        }
    }

    /// 100 tracks of 80 sectors below a page cache of 1 MiB.
    pub(crate) fn site() -> OpportunitySite {
        let mut tracks = Builder::default();
        tracks.push_run(Sectors(80), 100).unwrap();
        OpportunitySite {
            tracks: Ok(Arc::new(tracks.finish("a test").unwrap())),
            page_cache: Bytes(1 << 20),
            hosts: 1,
            lasts: None,
            stop: Some(Duration::from_secs(60)),
            clean: Some(Duration::from_secs(60)),
            unverifiable: None,
            members: Ok(Sectors(8000)),
            drive: Ok(Arc::new(Turning)),
        }
    }
}

#[cfg(test)]
mod conformance {
    use super::*;
    use proptest::prelude::*;

    /// Returns the number of pulls and looks of an opportunity without writes in answer. The number
    /// of looks is bounded.
    fn said(name: &str, gaps: &[(u64, bool)]) -> (u64, u64) {
        let keys = Keys::from_iter([("kind".to_owned(), name.into())]);
        let mut opportunity = build(&keys, &testing::site()).unwrap();
        let (mut now, mut pulls, mut looks) = (Time::ZERO, 0, 0);
        for &(gap, write) in gaps {
            let until = now + Duration::from_nanos(gap);
            while opportunity.next_look() <= until {
                let at = opportunity.next_look().max(now);
                let seen = OpportunityView {
                    now: at,
                    inside: 0,
                    arm: Gauge::default(),
                    standing: 0,
                    cleaning: 0,
                };
                opportunity.look(seen, &mut |_| pulls += 1);
                while let Some(own) = opportunity.next_request(seen) {
                    opportunity.served(seen, &own, RequestStatus::Done);
                }
                looks += 1;
                assert!(opportunity.next_look() > at, "{name} looks again at once");
                now = at;
            }
            now = until;
            let operation = if write {
                Operation::Write
            } else {
                Operation::Read
            };
            let request = Request {
                operation,
                extent: Extent::new(0, 8),
                ..Request::default()
            };
            opportunity.arrived(
                OpportunityView {
                    now,
                    inside: 1,
                    arm: Gauge::default(),
                    standing: 0,
                    cleaning: 0,
                },
                &request,
            );
            opportunity.left(
                OpportunityView {
                    now,
                    inside: 0,
                    arm: Gauge::default(),
                    standing: 0,
                    cleaning: 0,
                },
                &request,
                RequestStatus::Done,
            );
        }
        (pulls, looks)
    }

    proptest! {
        /// Time goes on, and no opportunity looks without end.
        #[test]
        fn each_goes_on_and_says_no_more_than_it_looks(
            gaps in prop::collection::vec((0u64..3_000_000_000, any::<bool>()), 1..40),
        ) {
            for entry in REGISTRY {
                let (pulls, looks) = said(entry.name, &gaps);
                let most = gaps.iter().map(|gap| gap.0 / 1_000_000 + 2).sum::<u64>();
                prop_assert!(pulls <= looks && looks <= most, "{}: {} of {}", entry.name, pulls, looks);
            }
        }
    }

    #[test]
    fn what_no_run_is_long_enough_for_is_refused() {
        let site = OpportunitySite {
            lasts: Some(Duration::from_secs(60)),
            ..testing::site()
        };
        for (kind, key) in [
            ("idle-flush", "wait"),
            ("idle-flush", "every"),
            ("idle-flush-on", "wait"),
            ("idle-scrub", "wait"),
            ("idle-verify", "wait"),
            ("pull-before-cleaning", "after"),
            ("pull-before-stop", "after"),
        ] {
            let keys = |time: &str| {
                let keys = serde_json::json!({ "kind": kind, key: time });
                build(keys.as_object().unwrap(), &site)
            };
            let error = keys("60s").err().map(|error| error.to_string()).unwrap();
            assert!(
                error.contains(key) && error.contains("less than 60s, the length of the run"),
                "{kind}: {error}"
            );
            assert!(keys("59s").is_ok(), "{kind}");
        }
    }

    #[test]
    fn a_table_without_a_known_kind_is_refused() {
        let error = |keys: serde_json::Value| {
            let keys = keys.as_object().unwrap().clone();
            build(&keys, &testing::site())
                .err()
                .map(|error| error.to_string())
                .unwrap()
        };
        assert!(error(serde_json::json!({})).contains("idle-flush, idle-flush-on"));
        assert!(
            error(serde_json::json!({ "kind": "idle-flsh" }))
                .contains("did you mean `idle-flush`?")
        );
        assert!(error(serde_json::json!({ "kind": 3 })).contains("found 3"));
        assert!(
            error(serde_json::json!({ "kind": "idle-flush", "flush": "0KiB" })).contains("flush")
        );
        assert!(
            error(serde_json::json!({ "kind": "idle-flush", "every": "0s" })).contains("every")
        );
        for kind in ["idle-flush", "idle-flush-on"] {
            let error = error(serde_json::json!({ "kind": kind, "flush": "2MiB" }));
            assert!(
                error.contains("flush") && error.contains("largest page cache"),
                "{error}"
            );
        }
    }
}
