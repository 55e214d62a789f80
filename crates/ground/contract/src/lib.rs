//! The types that cross between the layers.
//!
//! A machine is a graph of [`Node`]s with [`Port`]s. Requests go down from a workload through host
//! and volume to the drives; completions go up. Beside requests and completions, only three typed
//! windows cross layers:
//!
//! - [`Hints`] go down with a request,
//! - [`Gauge`]s are read from the nodes directly below ([`Below`]),
//! - [`Notice`]s go up without a request.
//!
//! A layer that ignores a window works unchanged.

mod alarms;
mod branch;
mod breakdown;
mod counters;
mod error;
mod gauge;
mod gear;
mod hints;
mod node;
mod operations;
mod order;
mod power;
mod reading;
pub mod registry;
mod request;
mod sector_set;
mod signal;
mod slots;
mod source;
mod source_error;
mod statistics;
mod trial;

pub use alarms::Alarms;
pub use branch::{Branch, Kind};
pub use breakdown::Breakdown;
pub use counters::{Counters, SHIFTS_KEPT};
pub use error::{ConfigError, Reason};
pub use gauge::{Below, Gauge, Stripes, Track, TrackTable, ZoneRate};
pub use gear::Gear;
pub use hints::{Hints, PriorityClass};
pub use node::{Cx, Effect, Node, Out, Port, Wake};
pub use operations::{HostReadings, Latency, OperationReadings, ProgramReadings, Times};
pub use order::{MemberState, Order, RebuildSpeed, Refusal};
pub use power::{Draw, PowerState, PowerStatistics, Residency, Transition};
pub use reading::{LayerReadings, READINGS, Reading, ReadingName};
pub use request::{Completion, Extent, Object, Operation, Request, RequestId, Status};
pub use sector_set::SectorSet;
pub use signal::{NodeId, Notice, Signal};
pub use slots::Slots;
pub use source::Source;
pub use source_error::SourceError;
pub use statistics::MemberStatistics;
pub use trial::Trial;
