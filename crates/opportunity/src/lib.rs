//! What storage notices about its load, and asks hosts for: PULL and PUSH of
//! pro-active storage (*Pro-active storage systems*, 2012, chapters 2, 3 and 5).
//!
//! A [`Watch`] stands above an array, sees what comes and goes, and lets its
//! opportunities look. An [`Opportunity`] is one file: a type, its keys, its tests,
//! and one line in [`REGISTRY`]. The layers do not know which there are, and a host
//! that heeds no signal works as ever.

mod idle_flush;
mod idle_flush_on;
mod quiet;
mod watch;

pub use watch::Watch;

use fullstroke_contract::registry::{Entry, Keys, find, schema_of};
use fullstroke_contract::{ConfigError, Request, Signal};
use fullstroke_units::Time;

/// What an opportunity may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The present.
    pub now: Time,
    /// Requests in the array: waiting and in service.
    pub inside: u32,
}

/// What storage notices and uses.
///
/// - **Events in**: [`arrived`](Opportunity::arrived), [`left`](Opportunity::left),
///   [`look`](Opportunity::look).
/// - **Out**: signals; [`next_look`](Opportunity::next_look).
///
/// Looking early is harmless; looking late moves what is said, and nothing else.
pub trait Opportunity: Send {
    /// A request has come; it is counted as inside.
    fn arrived(&mut self, seen: Seen, request: &Request);
    /// A request has been answered; it is counted as inside no more.
    fn left(&mut self, seen: Seen);
    /// When it wants to look; never, if only a request changes anything.
    fn next_look(&self) -> Time;
    /// It looks, and says what there is to say.
    fn look(&mut self, seen: Seen, say: &mut dyn FnMut(Signal));
}

/// Builds an opportunity from its keys.
pub type BuildOpportunity = fn(&Keys) -> Result<Box<dyn Opportunity>, ConfigError>;

/// Every opportunity.
#[rustfmt::skip]
pub const REGISTRY: &[Entry<BuildOpportunity>] = &[
    Entry { name: "idle-flush", summary: idle_flush::SUMMARY, schema: schema_of::<idle_flush::Config>, build: idle_flush::build },
    Entry { name: "idle-flush-on", summary: idle_flush_on::SUMMARY, schema: schema_of::<idle_flush_on::Config>, build: idle_flush_on::build },
];

/// The opportunity that a table describes: its `kind`, and that kind's keys.
///
/// # Errors
/// No kind, an unknown one, a key that it does not have or that cannot be.
pub fn build(table: &Keys) -> Result<Box<dyn Opportunity>, ConfigError> {
    let names = || REGISTRY.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    let mut keys = table.clone();
    let kind = match keys.remove("kind") {
        Some(kind) => kind,
        None => return Err(ConfigError::new("kind", format!("found none; expected one of {}", names()))),
    };
    let Some(name) = kind.as_str() else {
        return Err(ConfigError::new("kind", format!("found {kind}; expected one of {}", names())));
    };
    (find("opportunity", REGISTRY, "kind", name)?.build)(&keys)
}

#[cfg(test)]
mod conformance {
    use super::*;
    use fullstroke_contract::{Extent, Operation};
    use fullstroke_units::Duration;
    use proptest::prelude::*;

    /// What each says when nobody writes: with a bound on how often.
    fn said(name: &str, gaps: &[(u64, bool)]) -> (u64, u64) {
        let keys = Keys::from_iter([("kind".to_owned(), name.into())]);
        let mut opportunity = build(&keys).unwrap();
        let (mut now, mut pulls, mut looks) = (Time::ZERO, 0, 0);
        for &(gap, write) in gaps {
            let until = now + Duration::from_nanos(gap);
            while opportunity.next_look() <= until {
                let at = opportunity.next_look().max(now);
                opportunity.look(Seen { now: at, inside: 0 }, &mut |_| pulls += 1);
                looks += 1;
                assert!(opportunity.next_look() > at, "{name} looks again at once");
                now = at;
            }
            now = until;
            let operation = if write { Operation::Write } else { Operation::Read };
            let request = Request { operation, extent: Extent::new(0, 8), ..Request::default() };
            opportunity.arrived(Seen { now, inside: 1 }, &request);
            opportunity.left(Seen { now, inside: 0 });
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
    fn a_table_without_a_known_kind_is_refused() {
        let error = |keys: serde_json::Value| {
            let keys = keys.as_object().unwrap().clone();
            build(&keys).err().map(|error| error.to_string()).unwrap()
        };
        assert!(error(serde_json::json!({})).contains("idle-flush, idle-flush-on"));
        assert!(error(serde_json::json!({ "kind": "idle-flsh" })).contains("did you mean `idle-flush`?"));
        assert!(error(serde_json::json!({ "kind": 3 })).contains("found 3"));
        assert!(error(serde_json::json!({ "kind": "idle-flush", "flush": "0KiB" })).contains("flush"));
        assert!(error(serde_json::json!({ "kind": "idle-flush", "every": "0s" })).contains("every"));
    }
}
