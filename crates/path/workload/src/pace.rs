//! When the next request of a trace may go.
//!
//! A [`Dispatcher`] is told what the trace has next, what was issued and what has
//! completed; it says when the next may go. It owns no clock and issues nothing, so
//! that the simulator and a replay on a real device are paced by the same code.
//!
//! | file | what |
//! |---|---|
//! | `profile.rs` | what of the trace was outstanding when a request came |
//! | `recent.rs` | mean response time of the last second |
//! | `conformity.rs` | how many were outstanding, in the trace and here |

mod conformity;
mod profile;
mod recent;
#[cfg(test)]
mod tests;

pub use conformity::{Conformity, Outstanding};

use fullstroke_units::{Duration, Time};
use profile::Profile;
use recent::Recent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// What of a trace a replay keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Its times: each request at its arrival, whatever became of earlier ones.
    #[default]
    Timing,
    /// Its load: with as many outstanding as it had (*Pro-active storage systems*, 2012, section 6.6).
    Load,
    /// Its order alone: as soon as all that it had complete when a request came are complete
    /// here.
    AsFast,
    /// The order in which it issued: with a fixed number outstanding.
    Closed,
}

impl Pace {
    /// Every pace.
    pub const ALL: [Pace; 4] = [Pace::Timing, Pace::Load, Pace::AsFast, Pace::Closed];

    /// As stack files and commands name it.
    pub fn name(self) -> &'static str {
        match self {
            Pace::Timing => "timing",
            Pace::Load => "load",
            Pace::AsFast => "as-fast",
            Pace::Closed => "closed",
        }
    }

    /// Whether the trace's times have a part in it, so that scaling them changes something.
    pub fn heeds_times(self) -> bool {
        self == Pace::Timing
    }
}

/// How a trace is paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// What is kept of it.
    pub pace: Pace,
    /// Arrivals are multiplied by this, above 0; heeded by [`Pace::Timing`].
    pub scale: f64,
    /// No more than these are outstanding; heeded by [`Pace::AsFast`] and [`Pace::Closed`].
    pub outstanding: Option<u32>,
    /// A request that follows the one before it in less than this goes together with it
    /// (section 6.5: what a system cannot issue apart is issued at once). 0: each goes alone.
    pub batch: Duration,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            pace: Pace::Timing,
            scale: 1.0,
            outstanding: None,
            batch: Duration::ZERO,
        }
    }
}

impl Rules {
    /// An arrival of the trace, scaled.
    pub fn scaled(&self, arrival: Time) -> Time {
        if self.scale == 1.0 {
            return arrival;
        }
        Time::from_nanos((arrival.as_nanos() as f64 * self.scale).round() as u64)
    }
}

/// A request of a trace, as far as its pace is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// When it came; never before the one that came before it.
    pub arrival: Time,
    /// When it was complete, if that is known.
    pub completed: Option<Time>,
}

/// When the next request may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// None was offered.
    Nothing,
    /// From this instant on, which may have passed.
    At(Time),
    /// When others have completed.
    Waits,
}

/// A request has no known completion, and the pace needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCompletion {
    /// Its number in the trace, from 1.
    pub number: u64,
    /// The pace.
    pub pace: Pace,
}

impl fmt::Display for NoCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoCompletion { number, pace } = self;
        let pace = pace.name();
        write!(
            f,
            "request {number} has no known completion, which the pace `{pace}` needs of each to know how many \
             were outstanding; expected a trace with all completions (`fullstroke trace info` counts them), or \
             another pace"
        )
    }
}

impl std::error::Error for NoCompletion {}

/// Paces the requests of one trace.
///
/// - In: [`offer`](Self::offer) what the trace has next, [`issued`](Self::issued) when that went,
///   [`completed`](Self::completed).
/// - Out: [`turn`](Self::turn), to be asked anew after each of these.
/// - Getters: [`outstanding`](Self::outstanding), [`conformity`](Self::conformity).
///
/// One request is offered at a time, and the next one right after it was issued: what
/// [`Pace::Load`] decides rests on how many are outstanding at that moment.
///
/// Times are the replay's, and the first arrival of the trace is its beginning, 0.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    rules: Rules,
    profile: Profile,
    recent: Recent,
    /// Issued and not complete, by number; kept by [`Pace::AsFast`] alone.
    numbers: BTreeSet<u64>,
    /// Those among them that the next request waits for.
    awaited: BTreeSet<u64>,
    outstanding: u64,
    issued: u64,
    next: Option<Next>,
    turn: Turn,
    previous: Option<Previous>,
    conformity: Option<Conformity>,
}

/// The request that was offered.
#[derive(Clone, Copy, Debug)]
struct Next {
    traced: Traced,
    /// How many the trace had outstanding when it came.
    required: u64,
}

/// The request that was issued last: when it came in the trace, and when it was to go here.
#[derive(Clone, Copy, Debug)]
struct Previous {
    arrival: Time,
    due: Time,
}

impl Dispatcher {
    /// A dispatcher before the first request.
    ///
    /// # Panics
    /// If the rules cannot be followed: a closed pace without a number outstanding, or 0 of them.
    pub fn new(rules: Rules) -> Dispatcher {
        assert!(
            rules.pace != Pace::Closed || rules.outstanding.is_some(),
            "a closed pace has its number"
        );
        assert!(rules.scale > 0.0, "times are scaled by what is above 0");
        assert!(
            rules.outstanding != Some(0),
            "with none outstanding nothing is ever issued"
        );
        Dispatcher {
            rules,
            profile: Profile::default(),
            recent: Recent::default(),
            numbers: BTreeSet::new(),
            awaited: BTreeSet::new(),
            outstanding: 0,
            issued: 0,
            next: None,
            turn: Turn::Nothing,
            previous: None,
            conformity: None,
        }
    }

    /// The same, that also counts how far what is outstanding here is from the trace
    /// ([`conformity`](Self::conformity)).
    #[must_use]
    pub fn counting(self) -> Dispatcher {
        Dispatcher {
            conformity: Some(Conformity::default()),
            ..self
        }
    }

    /// The trace's next request.
    ///
    /// # Errors
    /// Its completion is unknown, and the pace needs it.
    ///
    /// # Panics
    /// If the one before it was not issued.
    pub fn offer(&mut self, now: Time, traced: Traced) -> Result<(), NoCompletion> {
        assert!(self.next.is_none(), "one request is offered at a time");
        let Rules { pace, .. } = self.rules;
        if pace == Pace::Load && traced.completed.is_none() {
            return Err(NoCompletion {
                number: self.issued + 1,
                pace,
            });
        }
        let required = if self.heeds_profile() {
            self.advance(traced)
        } else {
            0
        };
        self.next = Some(Next { traced, required });
        self.turn = self.first_turn(now);
        Ok(())
    }

    /// When the next request may go.
    #[inline]
    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// The request that was offered was issued; its number, from 1.
    ///
    /// # Panics
    /// If it was not its turn at any time.
    pub fn issued(&mut self) -> u64 {
        let (Some(next), Turn::At(due)) = (self.next.take(), self.turn) else {
            panic!("a request goes when it was offered and its turn has come")
        };
        if let Some(conformity) = &mut self.conformity {
            let required = next.traced.completed.is_some().then_some(next.required);
            conformity.add(required, self.outstanding, next.traced.arrival, due);
        }
        self.turn = Turn::Nothing;
        self.previous = Some(Previous {
            arrival: next.traced.arrival,
            due,
        });
        self.outstanding += 1;
        self.issued += 1;
        if self.heeds_profile()
            && let Some(completed) = next.traced.completed
        {
            self.profile.issued(completed, self.issued);
        }
        if self.rules.pace == Pace::AsFast {
            self.numbers.insert(self.issued);
        }
        self.issued
    }

    /// Request `number` has completed; it took `response`.
    ///
    /// # Panics
    /// If more complete than were issued.
    pub fn completed(&mut self, now: Time, number: u64, response: Duration) {
        assert!(
            self.outstanding > 0,
            "request {number} completes, and none is outstanding"
        );
        self.outstanding -= 1;
        match self.rules.pace {
            Pace::Load => self.recent.add(now, response),
            Pace::AsFast => {
                self.numbers.remove(&number);
                self.awaited.remove(&number);
            }
            Pace::Timing | Pace::Closed => {}
        }
        if self.turn == Turn::Waits && !self.must_wait() {
            self.turn = Turn::At(now);
        }
    }

    /// Requests that were issued and are not complete.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// How many were outstanding, if that is counted.
    pub fn conformity(&self) -> Option<&Conformity> {
        self.conformity.as_ref()
    }

    /// Whether it has to be known what the trace had outstanding.
    fn heeds_profile(&self) -> bool {
        matches!(self.rules.pace, Pace::Load | Pace::AsFast) || self.conformity.is_some()
    }

    /// Goes on in the trace to the arrival of the next request; how many were outstanding there
    /// then.
    fn advance(&mut self, traced: Traced) -> u64 {
        let (numbers, awaited) = (&self.numbers, &mut self.awaited);
        self.profile.advance(traced.arrival, |complete| {
            if numbers.contains(&complete) {
                awaited.insert(complete);
            }
        })
    }

    /// The turn of a request that has just become the next.
    fn first_turn(&mut self, now: Time) -> Turn {
        let Some(Next { traced, required }) = self.next else {
            return Turn::Nothing;
        };
        if self.must_wait() {
            return Turn::Waits;
        }
        match self.rules.pace {
            Pace::Timing => Turn::At(
                self.batched(traced)
                    .unwrap_or(self.rules.scaled(traced.arrival)),
            ),
            Pace::Load if self.outstanding == required => Turn::At(self.balanced(now, traced)),
            // That fewer are outstanding than in the trace is said to be rare (section 6.6.2),
            // and no rule is given: what is late already goes at once.
            Pace::Load | Pace::AsFast | Pace::Closed => Turn::At(now),
        }
    }

    /// Whether the next request cannot go before others have completed.
    fn must_wait(&self) -> bool {
        let Some(next) = self.next else { return false };
        let is_full = || {
            self.rules
                .outstanding
                .is_some_and(|most| self.outstanding >= u64::from(most))
        };
        match self.rules.pace {
            Pace::Timing => false,
            Pace::Load => self.outstanding > next.required,
            Pace::AsFast => !self.awaited.is_empty() || is_full(),
            Pace::Closed => is_full(),
        }
    }

    /// When a request goes for which as many are outstanding as in the trace (section 6.6.2): at
    /// once if requests take less time here than lies between it and the one before it in the
    /// trace, else so long after that one as in the trace. Before any has completed within the
    /// last second, nothing is known that would speak for haste.
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
            // From when that one was to go, so that what a real clock is late by does not add up.
            _ => previous.due + gap,
        }
    }

    /// When a request goes that is issued together with the one before it.
    fn batched(&self, traced: Traced) -> Option<Time> {
        let previous = self.previous?;
        (traced.arrival.since(previous.arrival) < self.rules.batch).then_some(previous.due)
    }
}
