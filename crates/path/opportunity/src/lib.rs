//! What storage notices about its load, and asks hosts for: PULL and PUSH of
//! pro-active storage (*Pro-active storage systems*, 2012, chapters 2, 3 and 5).
//!
//! A [`Watch`] stands above an array, sees what comes and goes, and lets its
//! opportunities look. An [`Opportunity`] is one file: a type, its keys, its tests,
//! and one line in [`REGISTRY`]. The layers do not know which there are, and a host
//! that heeds no signal works as ever.

mod free_block;
mod free_block_pull;
mod idle_flush;
mod idle_flush_on;
mod idle_scrub;
mod idle_verify;
mod pull_before_stop;
mod quiet;
mod track_push;
mod watch;

pub use watch::Watch;

use fullstroke_contract::registry::{Entry, Keys, find, schema_of};
use fullstroke_contract::{
    ConfigError, Extent, Gauge, Operation, Request, Signal, Status, TrackTable,
};
use fullstroke_tracks::{Boundaries, UnknownTracks};
use fullstroke_units::{Bytes, Duration, Sectors, Time};
use std::sync::Arc;
use thiserror::Error;

/// What an opportunity may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The present.
    pub now: Time,
    /// Requests in the array: waiting and in service.
    pub inside: u32,
    /// The array's gauge before the request that has come last.
    pub arm: Gauge,
    /// Drives below whose platters stand.
    pub standing: u32,
}

/// What storage notices and uses.
///
/// - **Events in**: [`arrived`](Opportunity::arrived), [`left`](Opportunity::left),
///   [`look`](Opportunity::look).
/// - **Out**: signals; [`next_look`](Opportunity::next_look).
///
/// Looking early is harmless; looking late moves what is said, and nothing else.
pub trait Opportunity: Send {
    /// A request has come; it is counted as inside. Answers whether it has to wait above
    /// the array as long as the opportunity is [`holding`](Opportunity::holding).
    fn arrived(&mut self, seen: Seen, request: &Request) -> bool;
    /// A request that waited because of what [`arrived`](Opportunity::arrived) answered goes
    /// down.
    fn released(&mut self, _request: &Request) {}
    /// A request has been answered; it is counted as inside no more.
    fn left(&mut self, seen: Seen, request: &Request, status: Status);
    /// Whether requests wait that it has said have to. It wants to look again as long as
    /// they do.
    fn holding(&self) -> bool {
        false
    }
    /// When it wants to look; never, if only a request changes anything.
    fn next_look(&self) -> Time;
    /// It looks, and says what there is to say.
    fn look(&mut self, seen: Seen, say: &mut dyn FnMut(Signal));
    /// What it has the array do now: asked for after each look until there is nothing.
    fn next_request(&mut self, _seen: Seen) -> Option<Own> {
        None
    }
    /// The array has done it.
    fn served(&mut self, _seen: Seen, _own: &Own, _status: Status) {}
    /// Whether it waits until nothing has come for a time: reports then show for how long
    /// nothing came.
    fn waits_for_quiet(&self) -> bool {
        false
    }
    /// What it has counted, by the names of `READINGS`.
    fn readings(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// What an opportunity has the array do for itself. Nobody above hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// To read, or to write what was written there last.
    pub operation: Operation,
    /// Where.
    pub extent: Extent,
    /// Whether what is read is compared with that.
    pub verify: bool,
    /// Whether the extent is of each member's addresses, and read from all of them
    /// ([`Hints::members`](fullstroke_contract::Hints::members)).
    pub members: bool,
}

/// Why nobody above an array can know where the arm of its drive stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnknownArm {
    /// A controller answers from its memory, and moves data by itself.
    #[error("a controller with memory of its own stands before it")]
    BehindController,
    /// There are several arms.
    #[error("the array has several drives or arms")]
    Several,
}

/// What an opportunity is built for.
#[derive(Clone)]
pub struct Site {
    /// The tracks of the array's addresses, or why they are not known.
    pub tracks: Result<Arc<Boundaries>, UnknownTracks>,
    /// The largest page cache above; nothing, if there is none.
    pub page_cache: Bytes,
    /// Hosts above.
    pub hosts: usize,
    /// How long the run lasts, where all workloads say how long they do.
    pub lasts: Option<Duration>,
    /// The shortest idle time behind which a drive stops its platters by itself; `None` if none does.
    pub stop: Option<Duration>,
    /// Why what was written cannot be verified, if it cannot.
    pub unverifiable: Option<&'static str>,
    /// How much of its longest drive the array uses, or why drives cannot be read one by one
    /// through it.
    pub members: Result<Sectors, &'static str>,
    /// How the array's addresses lie on the one drive that it is, or why it is none.
    pub drive: Result<Arc<dyn TrackTable>, UnknownArm>,
}

/// An opportunity that is in no registry.
pub type Trial = fullstroke_contract::Trial<Site, dyn Opportunity>;

/// What an opportunity says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It asks for what is dirty.
    Pull,
    /// It offers what is in storage.
    Push,
    /// Nothing.
    Nothing,
}

/// Builds an opportunity from its keys.
pub type BuildOpportunity = fn(&Keys, &Site) -> Result<Box<dyn Opportunity>, ConfigError>;

/// A kind of opportunity.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Builds one from its keys.
    pub build: BuildOpportunity,
    /// What it says: somebody above has to heed it.
    pub word: Word,
}

/// Every opportunity.
#[rustfmt::skip]
pub const REGISTRY: &[Entry<Kind>] = &[
    Entry { name: "free-block", summary: free_block::SUMMARY, schema: schema_of::<free_block::Config>, build: Kind { build: free_block::build, word: Word::Nothing } },
    Entry { name: "free-block-pull", summary: free_block_pull::SUMMARY, schema: schema_of::<free_block_pull::Config>, build: Kind { build: free_block_pull::build, word: Word::Pull } },
    Entry { name: "idle-flush", summary: idle_flush::SUMMARY, schema: schema_of::<idle_flush::Config>, build: Kind { build: idle_flush::build, word: Word::Pull } },
    Entry { name: "idle-flush-on", summary: idle_flush_on::SUMMARY, schema: schema_of::<idle_flush_on::Config>, build: Kind { build: idle_flush_on::build, word: Word::Pull } },
    Entry { name: "idle-scrub", summary: idle_scrub::SUMMARY, schema: schema_of::<idle_scrub::Config>, build: Kind { build: idle_scrub::build, word: Word::Nothing } },
    Entry { name: "idle-verify", summary: idle_verify::SUMMARY, schema: schema_of::<idle_verify::Config>, build: Kind { build: idle_verify::build, word: Word::Nothing } },
    Entry { name: "pull-before-stop", summary: pull_before_stop::SUMMARY, schema: schema_of::<pull_before_stop::Config>, build: Kind { build: pull_before_stop::build, word: Word::Pull } },
    Entry { name: "track-push", summary: track_push::SUMMARY, schema: schema_of::<track_push::Config>, build: Kind { build: track_push::build, word: Word::Push } },
];

/// The kind that a table names, and the keys beside.
///
/// # Errors
/// No kind, or an unknown one.
pub fn kind_of(table: &Keys) -> Result<(&'static Entry<Kind>, Keys), ConfigError> {
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

/// The opportunity that a table describes: its `kind`, and that kind's keys.
///
/// # Errors
/// As [`kind_of`]; a key that the kind does not have, or that cannot be.
pub fn build(table: &Keys, site: &Site) -> Result<Box<dyn Opportunity>, ConfigError> {
    let (entry, keys) = kind_of(table)?;
    (entry.build.build)(&keys, site)
}

#[cfg(test)]
mod testing {
    use super::*;
    use fullstroke_contract::{Track, ZoneRate};
    use fullstroke_tracks::Builder;
    use fullstroke_units::{Cylinder, Duration, Lbn};

    pub(crate) const SECTORS_PER_TRACK: u64 = 80;
    pub(crate) const REVOLUTION_NS: u64 = 8_000_000;

    /// 100 tracks without skew, and an arm that is everywhere.
    pub(crate) struct Turning;

    impl TrackTable for Turning {
        fn capacity(&self) -> Sectors {
            Sectors(100 * SECTORS_PER_TRACK)
        }

        fn track_at(&self, lbn: Lbn) -> Track {
            let track = lbn.0 / SECTORS_PER_TRACK;
            let first = Lbn(track * SECTORS_PER_TRACK);
            Track {
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
    pub(crate) fn site() -> Site {
        let mut tracks = Builder::default();
        tracks.push_run(Sectors(80), 100).unwrap();
        Site {
            tracks: Ok(Arc::new(tracks.finish("a test").unwrap())),
            page_cache: Bytes(1 << 20),
            hosts: 1,
            lasts: None,
            stop: Some(Duration::from_secs(60)),
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

    /// What each says when nobody writes: with a bound on how often.
    fn said(name: &str, gaps: &[(u64, bool)]) -> (u64, u64) {
        let keys = Keys::from_iter([("kind".to_owned(), name.into())]);
        let mut opportunity = build(&keys, &testing::site()).unwrap();
        let (mut now, mut pulls, mut looks) = (Time::ZERO, 0, 0);
        for &(gap, write) in gaps {
            let until = now + Duration::from_nanos(gap);
            while opportunity.next_look() <= until {
                let at = opportunity.next_look().max(now);
                let seen = Seen {
                    now: at,
                    inside: 0,
                    arm: Gauge::default(),
                    standing: 0,
                };
                opportunity.look(seen, &mut |_| pulls += 1);
                while let Some(own) = opportunity.next_request(seen) {
                    opportunity.served(seen, &own, Status::Done);
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
                Seen {
                    now,
                    inside: 1,
                    arm: Gauge::default(),
                    standing: 0,
                },
                &request,
            );
            opportunity.left(
                Seen {
                    now,
                    inside: 0,
                    arm: Gauge::default(),
                    standing: 0,
                },
                &request,
                Status::Done,
            );
        }
        (pulls, looks)
    }

    proptest! {
        /// Time goes on, and nobody looks without end.
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
        let site = Site {
            lasts: Some(Duration::from_secs(60)),
            ..testing::site()
        };
        for (kind, key) in [
            ("idle-flush", "wait"),
            ("idle-flush", "every"),
            ("idle-flush-on", "wait"),
            ("idle-scrub", "wait"),
            ("idle-verify", "wait"),
            ("pull-before-stop", "after"),
        ] {
            let keys = |time: &str| {
                let keys = serde_json::json!({ "kind": kind, key: time });
                build(keys.as_object().unwrap(), &site)
            };
            let error = keys("60s").err().map(|error| error.to_string()).unwrap();
            assert!(
                error.contains(key) && error.contains("the run lasts 60s"),
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
