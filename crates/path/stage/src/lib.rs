//! The shared stage of several hosts above one array: a storage target, a server of virtual
//! machines (Dom0 of Xen), a switch with a queue.
//!
//! | file | contents |
//! |---|---|
//! | `config.rs` | the keys of `[shared]` |
//! | `stage.rs` | the node: owner, cost and issue time of a request |
//! | `regions.rs` | owners of the array's addresses |
//! | `fairness/` | choice of the next host, one file per rule, and the registry |
//! | `cost/` | processor time of a request, one file per model, and the registry |
//! | `cooperation.rs` | answers to another host's reads |
//! | `server.rs`, `server/` | a file server in place of the stage: NFS, SMB, the network |
//! | `statistics.rs` | counters by host |

mod config;
mod cooperation;
pub mod cost;
pub mod fairness;
mod regions;
mod server;
mod stage;
mod statistics;
mod turns;

#[cfg(test)]
mod cooperation_tests;
#[cfg(test)]
mod properties;

pub use config::{HostAddresses, StageConfig};
pub use cooperation::CooperationKeys;
pub use cost::{BuildCost, CostKeys, RequestCost};
pub use fairness::{BuildFairness, Fairness};
pub use regions::{HostRegion, HostRegions, RegionRequest};
pub use server::{FileServer, ServerKeys, ServerProtocol};
pub use stage::{HostShare, Stage};
