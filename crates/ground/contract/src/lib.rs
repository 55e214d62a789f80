//! The types that cross between the layers.
//!
//! A machine is a graph of [`Node`]s with [`Port`]s. Requests go down from a workload through host
//! and volume to the drives; completions go up. A [`Completion`] carries a [`Breakdown`]: the parts
//! of the response time. Beside requests and completions, layers see each other only through three
//! **windows**, each with a type of its own:
//!
//! - [`Hints`] go down with a request, such as the process and the priority,
//! - [`Gauge`]s are readings of the nodes directly below ([`LayersBelow`]), such as the queue
//!   length,
//! - [`Notice`]s go up without a request, such as the news of a finished rebuild.
//!
//! A layer that ignores a window works unchanged.
//!
//! Two more types come from outside the graph: an operator's [`LayerOrder`] (a member has failed,
//! or is replaced), and the [`Counters`] that a report collects from all nodes at the end of a run.

mod alarms;
mod branch;
mod breakdown;
mod counters;
mod dataset;
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
pub use branch::{Branch, NodeKind};
pub use breakdown::Breakdown;
pub use counters::{Counters, SHIFTS_KEPT};
pub use dataset::{DatasetObject, DatasetStart};
pub use error::{ConfigError, Reason};
pub use gauge::{Gauge, LayersBelow, Stripes, TrackExtent, TrackTable, ZoneRate};
pub use gear::Gear;
pub use hints::{Hints, PriorityClass};
pub use node::{Effect, Effects, Node, NodeContext, Port, QueueOrder, Wake};
pub use operations::{
    EventTimes, HostReadings, LatencyDistribution, OperationReadings, ProgramReadings,
};
pub use order::{LayerOrder, MemberState, RebuildSpeed, Refusal};
pub use power::{Draw, PowerState, PowerStatistics, Residency, Transition};
pub use reading::{CounterReading, LayerReadings, READINGS, ReadingName};
pub use request::{Completion, Extent, Object, Operation, Request, RequestId, RequestStatus};
pub use sector_set::SectorSet;
pub use signal::{NodeId, Notice, Signal};
pub use slots::Slots;
pub use source::Source;
pub use source_error::SourceError;
pub use statistics::MemberStatistics;
pub use trial::TrialPolicy;
