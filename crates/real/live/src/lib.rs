//! A stack under the real clock: a block device for real programs.
//!
//! [`serve`] exports stacks over NBD. The layers are those of the simulation, driven by the same
//! [`Machine`](fullstroke_engine::Machine) but by another clock. A request is submitted at its
//! arrival, and answered at the completion in the model. The answer is never early, and as little
//! late as the host permits ([`LatenessSummary`]).
//!
//! **Time and data.** The layers hold no data. When a request finishes, the same layout plans the
//! request once more for the data. The plan is carried out on the data as a whole, before any other
//! event (`fullstroke-store`). So parity is correct between any two requests, whatever fails in
//! between. After an answer, the client finds its data.
//!
//! **Record and replay.** A record keeps every input of a run, with a digest of the resulting
//! decisions. [`replay_decisions`] feeds the record to the virtual clock and compares the
//! decisions.
//!
//! | file | contents |
//! |---|---|
//! | `serve.rs` | from stack files and options to a server, and its end |
//! | `server.rs`, `connections.rs` | the loop: clients above, served stacks below, one thread |
//! | `answers.rs`, `control_queue.rs`, `status.rs`, `totals.rs` | questions and orders to a running server |
//! | `control.rs`, `metrics.rs` | the same over a socket, and for Prometheus |
//! | `signals.rs`, `signal_extent.rs` | signals of opportunities to clients |
//! | `budget.rs`, `limits.rs` | memory and descriptors, over all clients |
//! | `client.rs`, `clients.rs`, `poll.rs` | one client and its socket, the table of clients, waiting for many |
//! | `served_stack.rs`, `watch.rs`, `completed.rs` | one served stack: layers and data |
//! | `members.rs`, `member_names.rs` | the members of a stack and their states |
//! | `following.rs`, `told.rs` | what the data have still to do after the layers; what the user was told |
//! | `ticket.rs`, `tickets.rs` | a client's request in flight, and the table of these requests |
//! | `parts.rs`, `deferred.rs`, `scrub.rs`, `scrub_state.rs` | long work, in small steps |
//! | `durability.rs` | waiting for the host's disks |
//! | `clock.rs`, `lateness.rs` | real time |
//! | `decisions.rs`, `record.rs`, `replay.rs` | decisions, recorded and compared |

#[cfg(test)]
mod answering;
mod answers;
mod budget;
pub mod cache;
mod client;
mod clients;
mod clock;
mod completed;
mod connections;
pub mod control;
mod control_queue;
mod decisions;
mod deferred;
mod durability;
mod following;
mod lateness;
mod limits;
mod listening;
mod member_names;
mod members;
mod metrics;
mod parts;
mod poll;
mod record;
mod replay;
mod scrub;
mod scrub_state;
mod serve;
mod served_stack;
mod server;
mod signal_extent;
mod signals;
mod slow_drives;
mod status;
mod ticket;
mod tickets;
mod told;
mod totals;
mod upkeep;
mod watch;

pub use clock::WorldPace;
pub use control::{ControlSocket, ask};
pub use control_queue::{ControlRequest, ControlResponse, ServerHandle};
pub use decisions::Decisions;
pub use fullstroke_store::Repair;
pub use fullstroke_store::bytes::JournalScope;
pub use fullstroke_transport::socket::{
    Admission, AdmissionOptions, ControlError, Listen, Network, TlsError, TlsOptions,
};
pub use lateness::LatenessSummary;
pub use metrics::MetricsServer;
pub use record::RecordError;
pub use replay::{Difference, RecordVerdict, ReplayError, replay_decisions};
pub use serve::{ServeError, ServeOptions, ServerSummary, Serving, serve};
pub use signal_extent::SignalExtent;
pub use status::{
    ComparingStatus, DriveState, DriveStatus, ExportStatus, GearStatus, Health, OperationStatus,
    Operations, RESPONSE_BUCKETS_S, RebuildStatus, ServerStatus, VolumeState,
};
pub use totals::DriveTotals;
