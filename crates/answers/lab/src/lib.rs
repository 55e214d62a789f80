//! Runs candidates side by side and ranks the results.
//!
//! A [`ComparedStack`] is a checked stack with a name. [`run`] runs one candidate. [`run_all`] runs
//! many on all cores, each on one thread. The results equal those of a single thread because a run
//! depends only on its stack and its seed. [`Ranking`] orders the results by one metric. The
//! ranking states the lead of the best candidate and its confidence. [`most_streams`] finds the
//! number of media streams that a stack plays, [`most_load`] the largest load that a stack carries.
//!
//! | file | contents |
//! |---|---|
//! | `candidate.rs` | stacks with names |
//! | `vary.rs`, `varied.rs` | one stack at several values of a key; labels of its candidates |
//! | `arrivals.rs` | requests of a workload, without the layers below the workload |
//! | `experiment.rs`, `stopwatch.rs` | one run, or many; the wall-clock time of a run |
//! | `ranking.rs` | the order of candidates and its confidence |
//! | `reasons.rs` | why one candidate answers sooner than another |
//! | `find.rs` | the largest number of streams that play without an underrun |
//! | `load.rs`, `hurried.rs` | the largest load that is carried, and arrivals at a higher rate |
//! | `length.rs` | loads of another length, and whether an answer is settled |
//! | `rebuild.rs`, `scrub.rs`, `windows.rs` | hours of a rebuild or scrub from windows all over a drive or pool |
//! | `search_goal.rs` | candidates ranked by streams or load |
//! | `render.rs` | the ranking as text |
//! | `race.rs` | many candidates; worse candidates drop out early |
//! | `space.rs`, `tune.rs` | combinations of values, and the search among them |
//! | `batches.rs` | parts of a workload, the same for all candidates |
//! | `whole_load.rs` | the best results of a search, on the whole load |
//! | `energy.rs`, `power.rs` | whether stopping platters pays; power figures for drives without figures |
//! | `align.rs` | cost and gain of moving files onto tracks |
//! | `error.rs` | errors |

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
mod length;
mod load;
mod long_work;
pub mod lzvs;
mod media;
mod power;
mod race;
mod ranked;
mod ranking;
mod reasons;
mod rebuild;
mod rebuild_plan;
mod render;
mod scrub;
mod search_goal;
mod space;
mod stopwatch;
mod tune;
mod varied;
mod vary;
mod whole_load;
mod windows;

pub use align::{AlignError, AlignmentInput, Gain, GainReads, MoveCost};
pub use arrivals::arrivals;
pub use batches::Batches;
pub use candidate::{ComparedStack, Condition, Recipe, SLOW_FACTOR, candidates, recipes};
pub use energy::{
    EnergyAnswer, EnergyPrice, EnergyQuestion, EnergyRuns, RefusedPolicy, StopPolicy, kwh_a_year,
    mean_watts_half_width,
};
pub use error::LabError;
pub use experiment::{CandidateProgress, RunResult, VolumeReport, run, run_all};
pub use find::{LoadSearch, LoadSearchResult, TriedStreams, most_streams};
pub use length::{DEFAULT_BUDGET, Settled, Settling, next_factor};
pub use load::{FoundLoad, PRECISION, TriedLoad, most_load};
pub use long_work::{sample_long_work, sample_long_work_of_each};
pub use power::{PowerError, lacking_power, require_power};
pub use race::{CandidateResult, Race, RaceRules};
pub use ranked::Ranked;
pub use ranking::Ranking;
pub use reasons::Reason;
pub use rebuild::{RebuildEffort, sample_rebuild};
pub use render::capacity;
pub use search_goal::{LargestLoad, MostRanking, SearchGoal};
pub use space::{Combinations, Point};
pub use tune::{
    ImpossibleCombination, KeptRuns, SearchEnd, TuneSearch, Tuned, TunedCandidate, Tuner,
};
pub use varied::{Varied, VariedValues};
pub use vary::Vary;
pub use whole_load::WholeLoad;
