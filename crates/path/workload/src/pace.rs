//! Pacing of a trace: the time at which the next request may be issued.
//!
//! A [`Dispatcher`] receives the next request of the trace, and every issue and completion. The
//! dispatcher answers when the next request may be issued. It has no clock and issues nothing, so
//! the simulator and a replay on a real device use the same code.
//!
//! | file | contents |
//! |---|---|
//! | `profile.rs` | requests outstanding in the trace at an arrival |
//! | `recent.rs` | mean response time of the last second |
//! | `conformity.rs` | outstanding requests, in the trace and in the replay |

mod conformity;
mod profile;
mod recent;
#[cfg(test)]
mod tests;

pub use conformity::{Conformity, Outstanding};

use fullstroke_units::{Duration, Time};
use profile::OutstandingProfile;
use recent::RecentResponses;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The property of a trace that a replay keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Pace")]
pub enum ReplayPace {
    /// The times: each request is issued at its arrival time, regardless of earlier requests.
    #[default]
    Timing,
    /// The load: as many requests are outstanding as in the trace (*Pro-active storage systems*,
    /// 2012, section 6.6).
    Load,
    /// The order of dependencies: a request is issued when all requests are complete that were
    /// complete in the trace at its arrival.
    AsFast,
    /// The order of issue, with a fixed number of outstanding requests.
    Closed,
}

impl ReplayPace {
    /// Every pace.
    pub const ALL: [ReplayPace; 4] = [
        ReplayPace::Timing,
        ReplayPace::Load,
        ReplayPace::AsFast,
        ReplayPace::Closed,
    ];

    /// The name in stack files and commands.
    pub fn name(self) -> &'static str {
        match self {
            ReplayPace::Timing => "timing",
            ReplayPace::Load => "load",
            ReplayPace::AsFast => "as-fast",
            ReplayPace::Closed => "closed",
        }
    }

    /// True if the arrival times of the trace matter, so that scaling has an effect.
    pub fn follows_times(self) -> bool {
        self == ReplayPace::Timing
    }
}

/// The rules of pacing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The property to keep.
    pub pace: ReplayPace,
    /// Factor of arrival times, above 0; used by [`ReplayPace::Timing`].
    pub scale: f64,
    /// Most outstanding requests; used by [`ReplayPace::AsFast`] and [`ReplayPace::Closed`].
    pub outstanding: Option<u32>,
    /// A request that follows the previous one within this time is issued together with the
    /// previous one (section 6.5: a system that cannot issue requests separately issues them at
    /// once). 0: each request is issued alone.
    pub batch: Duration,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            pace: ReplayPace::Timing,
            scale: 1.0,
            outstanding: None,
            batch: Duration::ZERO,
        }
    }
}

impl Rules {
    /// The scaled arrival time.
    pub fn scaled(&self, arrival: Time) -> Time {
        if self.scale == 1.0 {
            return arrival;
        }
        // A request that lies behind every run still is one: not `Time::NEVER`.
        Time::from_nanos((arrival.as_nanos() as f64 * self.scale).round() as u64).capped()
    }
}

/// The part of a trace's request that pacing needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Arrival time; never before the arrival of the previous request.
    pub arrival: Time,
    /// Completion time, if known.
    pub completed: Option<Time>,
}

/// The issue time of the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueTurn {
    /// No request is offered.
    Nothing,
    /// From this instant on, which may be in the past.
    At(Time),
    /// After completions of other requests.
    Waits,
}

/// A request lacks the completion that its pace needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCompletion {
    /// Number of the request in the trace, from 1.
    pub number: u64,
    /// The pace.
    pub pace: ReplayPace,
}

impl fmt::Display for NoCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoCompletion { number, pace } = self;
        let pace = pace.name();
        write!(
            f,
            "request {number} has no known completion, but the pace `{pace}` needs all completions to count the outstanding requests; expected a trace with all completions (`fullstroke trace info` counts them), or \
             another pace"
        )
    }
}

impl std::error::Error for NoCompletion {}

/// Paces the requests of one trace.
///
/// - In: [`offer`](Self::offer) the next request of the trace, [`issued`](Self::issued) at its
///   issue, [`completed`](Self::completed).
///
/// - Out: [`turn`](Self::turn), to ask again after each input.
/// - Getters: [`outstanding`](Self::outstanding), [`conformity`](Self::conformity).
///
/// One request is offered at a time, and the next request right after the issue:
/// [`ReplayPace::Load`] decides by the number of outstanding requests at this moment.
///
/// Times are those of the replay. The first arrival of the trace is time 0.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    rules: Rules,
    profile: OutstandingProfile,
    recent: RecentResponses,
    /// Issued and incomplete requests by number; kept by [`ReplayPace::AsFast`] only.
    numbers: BTreeSet<u64>,
    /// Incomplete requests that delay the next request.
    awaited: BTreeSet<u64>,
    outstanding: u64,
    issued: u64,
    next: Option<OfferedRequest>,
    turn: IssueTurn,
    previous: Option<Previous>,
    conformity: Option<Conformity>,
}

/// The offered request.
#[derive(Clone, Copy, Debug)]
struct OfferedRequest {
    traced: Traced,
    /// Outstanding requests in the trace at the arrival.
    required: u64,
}

/// The last issued request: its arrival in the trace, and its intended issue time.
#[derive(Clone, Copy, Debug)]
struct Previous {
    arrival: Time,
    due: Time,
}

impl Dispatcher {
    /// A dispatcher before the first request.
    ///
    /// # Panics
    /// If the rules are impossible: a closed pace without a number of outstanding requests, or with
    /// 0.
    pub fn new(rules: Rules) -> Dispatcher {
        assert!(
            rules.pace != ReplayPace::Closed || rules.outstanding.is_some(),
            "a closed pace has its number"
        );
        assert!(rules.scale > 0.0, "times are scaled by what is above 0");
        assert!(
            rules.outstanding != Some(0),
            "with none outstanding nothing is ever issued"
        );
        Dispatcher {
            rules,
            profile: OutstandingProfile::default(),
            recent: RecentResponses::default(),
            numbers: BTreeSet::new(),
            awaited: BTreeSet::new(),
            outstanding: 0,
            issued: 0,
            next: None,
            turn: IssueTurn::Nothing,
            previous: None,
            conformity: None,
        }
    }

    /// The same dispatcher, with counting of the difference between the trace's and the replay's
    /// outstanding requests ([`conformity`](Self::conformity)).
    #[must_use]
    pub fn counting(self) -> Dispatcher {
        Dispatcher {
            conformity: Some(Conformity::default()),
            ..self
        }
    }

    /// Offers the next request of the trace.
    ///
    /// # Errors
    /// The pace needs a completion, and the completion is unknown.
    ///
    /// # Panics
    /// If the previous request was not issued.
    pub fn offer(&mut self, now: Time, traced: Traced) -> Result<(), NoCompletion> {
        assert!(self.next.is_none(), "one request is offered at a time");
        let Rules { pace, .. } = self.rules;
        if pace == ReplayPace::Load && traced.completed.is_none() {
            return Err(NoCompletion {
                number: self.issued + 1,
                pace,
            });
        }
        let required = if self.follows_profile() {
            self.advance(traced)
        } else {
            0
        };
        self.next = Some(OfferedRequest { traced, required });
        self.turn = self.first_turn(now);
        Ok(())
    }

    /// The issue time of the next request.
    #[inline]
    pub fn turn(&self) -> IssueTurn {
        self.turn
    }

    /// Notes the issue of the offered request, and returns the number of the request, from 1.
    ///
    /// # Panics
    /// If the request was never due.
    pub fn issued(&mut self) -> u64 {
        let (Some(next), IssueTurn::At(due)) = (self.next.take(), self.turn) else {
            panic!("a request goes when it was offered and its turn has come")
        };
        if let Some(conformity) = &mut self.conformity {
            let required = next.traced.completed.is_some().then_some(next.required);
            conformity.add(required, self.outstanding, next.traced.arrival, due);
        }
        self.turn = IssueTurn::Nothing;
        self.previous = Some(Previous {
            arrival: next.traced.arrival,
            due,
        });
        assert!(
            self.outstanding <= self.issued,
            "{} are outstanding, of {} issued",
            self.outstanding,
            self.issued
        );
        self.outstanding += 1;
        self.issued += 1;
        if self.follows_profile()
            && let Some(completed) = next.traced.completed
        {
            self.profile.issued(completed, self.issued);
        }
        // Only this pace asks for single requests. The other paces would fill the set for nothing.
        if self.rules.pace == ReplayPace::AsFast {
            self.numbers.insert(self.issued);
        }
        self.issued
    }

    /// Notes the completion of request `number` after the response time `response`.
    ///
    /// # Panics
    /// If more requests complete than were issued.
    pub fn completed(&mut self, now: Time, number: u64, response: Duration) {
        assert!(
            self.outstanding > 0,
            "request {number} completes, and none is outstanding"
        );
        self.outstanding -= 1;
        match self.rules.pace {
            ReplayPace::Load => self.recent.add(now, response),
            ReplayPace::AsFast => {
                self.numbers.remove(&number);
                self.awaited.remove(&number);
            }
            ReplayPace::Timing | ReplayPace::Closed => {}
        }
        // A turn with a known time stays: the completion of another request must not bring the
        // request forward.
        if self.turn == IssueTurn::Waits && !self.must_wait() {
            self.turn = IssueTurn::At(now);
        }
    }

    /// Issued and incomplete requests.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// The difference between trace and replay, if counted.
    pub fn conformity(&self) -> Option<&Conformity> {
        self.conformity.as_ref()
    }

    /// True if the rule needs the trace's outstanding requests.
    fn follows_profile(&self) -> bool {
        matches!(self.rules.pace, ReplayPace::Load | ReplayPace::AsFast)
            || self.conformity.is_some()
    }

    /// Advances the trace to the arrival of the next request, and returns the outstanding requests
    /// of the trace at this arrival.
    fn advance(&mut self, traced: Traced) -> u64 {
        let (numbers, awaited) = (&self.numbers, &mut self.awaited);
        self.profile.advance(traced.arrival, |complete| {
            // A request that is complete here already delays nothing.
            if numbers.contains(&complete) {
                awaited.insert(complete);
            }
        })
    }

    /// The turn of a new next request.
    fn first_turn(&mut self, now: Time) -> IssueTurn {
        let Some(OfferedRequest { traced, required }) = self.next else {
            return IssueTurn::Nothing;
        };
        if self.must_wait() {
            return IssueTurn::Waits;
        }
        match self.rules.pace {
            ReplayPace::Timing => IssueTurn::At(
                self.batched(traced)
                    .unwrap_or(self.rules.scaled(traced.arrival)),
            ),
            ReplayPace::Load if self.outstanding == required => {
                IssueTurn::At(self.balanced(now, traced))
            }
            // The document calls fewer outstanding requests than in the trace rare (section 6.6.2)
            // and gives no rule: the request is late already and is issued at once.
            ReplayPace::Load | ReplayPace::AsFast | ReplayPace::Closed => IssueTurn::At(now),
        }
    }

    /// True if the next request must wait for completions.
    fn must_wait(&self) -> bool {
        let Some(next) = self.next else { return false };
        let is_full = || {
            self.rules
                .outstanding
                .is_some_and(|most| self.outstanding >= u64::from(most))
        };
        match self.rules.pace {
            ReplayPace::Timing => false,
            ReplayPace::Load => self.outstanding > next.required,
            ReplayPace::AsFast => !self.awaited.is_empty() || is_full(),
            ReplayPace::Closed => is_full(),
        }
    }

    /// Issue time of a request with as many outstanding requests as in the trace (section 6.6.2).
    /// The request is issued at once if the mean response time here is shorter than the trace's gap
    /// before the request, otherwise after this gap. Without a completion within the last second
    /// the mean is unknown, so the request keeps the gap.
    fn balanced(&mut self, now: Time, traced: Traced) -> Time {
        let Some(previous) = self.previous else {
            return now.max(traced.arrival);
        };
        if let Some(due) = self.batched(traced) {
            return due;
        }
        let gap = traced.arrival.since(previous.arrival);
        match self.recent.mean(now) {
            Some(response) if response < gap => now,
            // The gap starts at the intended issue time of the previous request, so lateness of a
            // real clock does not accumulate.
            _ => previous.due + gap,
        }
    }

    /// Issue time of a request that is issued together with the previous one.
    fn batched(&self, traced: Traced) -> Option<Time> {
        let previous = self.previous?;
        (traced.arrival.since(previous.arrival) < self.rules.batch).then_some(previous.due)
    }
}
