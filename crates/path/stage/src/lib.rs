//! What several hosts share above one array: a storage target, a server of
//! virtual machines (Dom0), a switch with a queue.
//!
//! | file | what |
//! |---|---|
//! | `config.rs` | the keys of `[shared]` |
//! | `stage.rs` | the node: whose a request is, what it costs, when it goes down |
//! | `regions.rs` | whose the array's addresses are |
//! | `fairness/` | whose turn it is, one file a rule, and their registry |
//! | `cost/` | for how long its processor works on a request, one file a model, and their registry |
//! | `cooperation.rs` | who answers another host's reads |
//! | `statistics.rs` | what is counted by host |

mod config;
mod cooperation;
pub mod cost;
pub mod fairness;
mod regions;
mod stage;
mod statistics;
mod turns;

#[cfg(test)]
mod cooperation_tests;
#[cfg(test)]
mod properties;

pub use config::{Addresses, StageConfig};
pub use cooperation::CooperationKeys;
pub use cost::{BuildCost, Cost, CostKeys};
pub use fairness::{BuildFairness, Fairness};
pub use regions::{Part, Region, Regions};
pub use stage::{HostShare, Stage};
