//! Candidates run side by side and ranked.
//!
//! A [`Candidate`] is a checked stack with a name. [`run`] runs one; [`run_all`]
//! runs many on all cores, each on one thread, with the results of one thread
//! alone: a run depends on its stack and seed and on nothing else.
//! [`Ranking`] orders what came out by one metric and says by how much the best
//! one wins and how sure that is. [`most_streams`] finds how many media streams
//! a stack plays, [`most_load`] how much of its load it carries.
//!
//! | file | what |
//! |---|---|
//! | `candidate.rs` | stacks with names |
//! | `vary.rs`, `varied.rs` | one stack at several values of a key; what tells its candidates apart |
//! | `arrivals.rs` | what a workload issues, without the layers below it |
//! | `experiment.rs` | one run, or many |
//! | `ranking.rs` | the order, and how sure it is |
//! | `reasons.rs` | why one candidate answers sooner than another |
//! | `find.rs` | the most streams that play without an underrun |
//! | `load.rs`, `hurried.rs` | the largest load that is carried, and arrivals that come faster |
//! | `most.rs` | candidates by what they bear at most |
//! | `render.rs` | the same for people |
//! | `race.rs` | many candidates, of whom those that are worse drop out |
//! | `space.rs`, `tune.rs` | combinations of values, and the search among them |
//! | `batches.rs` | a workload in parts that all candidates see |
//! | `whole_load.rs` | the best of a search, on the whole load |
//! | `energy.rs`, `power.rs` | whether stopping platters pays; what drives draw whose files do not say so |
//! | `align.rs` | what it costs to move files onto tracks, and what that brings |
//! | `error.rs` | what can go wrong |

mod align;
mod arrivals;
mod batches;
mod candidate;
mod energy;
mod error;
mod experiment;
mod find;
#[cfg(test)]
#[path = "../examples/tune_bench/functions.rs"]
mod functions;
mod hurried;
mod load;
pub mod lzvs;
mod most;
mod power;
mod race;
mod ranking;
mod reasons;
mod render;
mod space;
mod tune;
mod varied;
mod vary;
mod whole_load;

pub use align::{AlignError, Alignable, Cost, Gain, Programme};
pub use arrivals::arrivals;
pub use batches::Batches;
pub use candidate::{Candidate, Condition, Recipe, candidates, recipes};
pub use energy::{EnergyAnswer, EnergyQuestion, EnergyRuns, RefusedPolicy, StopPolicy};
pub use error::LabError;
pub use experiment::{Event, Ran, VolumeReport, run, run_all};
pub use find::{Found, Search, Tried, most_streams};
pub use load::{FoundLoad, PRECISION, TriedLoad, most_load};
pub use most::{Borne, Most, MostRanking};
pub use power::{PowerError, lacking_power, require_power};
pub use race::{Race, RaceRules, Standing};
pub use ranking::{Ranked, Ranking};
pub use reasons::Reason;
pub use render::capacity;
pub use space::{Point, Space};
pub use tune::{Impossible, Search as TuneSearch, Tuned, TunedCandidate, Tuner};
pub use varied::{Values, Varied};
pub use vary::Vary;
pub use whole_load::WholeLoad;
