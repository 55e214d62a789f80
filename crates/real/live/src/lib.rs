//! A stack under the real clock: a block device that real programs use.
//!
//! [`serve`] exports stacks over NBD. The layers are those of the simulation,
//! driven by the same [`Machine`](fullstroke_engine::Machine); only who tells
//! the time is another. A request is submitted when it arrives, and answered
//! when the model says that it has finished: never earlier, and as little later
//! as the host manages ([`LatenessSummary`]).
//!
//! **Time and bytes.** The layers see no bytes. When a request finishes, the
//! same layout plans it once more for its bytes and the plan is carried out on
//! them, whole, before anything else happens (`fullstroke-store`). So parity is
//! right at every moment between two requests, whatever fails in between, and a
//! client that got its answer finds its data.
//!
//! **Record and replay.** With a record, every input of a run is kept with a
//! digest of the decisions it led to; [`replay_decisions`] feeds it to the
//! virtual clock and compares.
//!
//! | file | what |
//! |---|---|
//! | `serve.rs` | from stack files and options to a server, and its end |
//! | `server.rs`, `connections.rs` | the loop: clients above, worlds below, one thread |
//! | `answers.rs`, `control_queue.rs`, `status.rs`, `totals.rs` | questions and orders to a running server |
//! | `control.rs`, `metrics.rs` | the same over a socket, and for Prometheus |
//! | `signals.rs` | what opportunities say to clients |
//! | `budget.rs`, `limits.rs` | memory and descriptors, over all clients |
//! | `client.rs`, `socket.rs`, `poll.rs` | one client, its socket, waiting for many |
//! | `world.rs`, `watch.rs` | one served stack: layers and bytes |
//! | `members.rs` | its members, and who knows their states |
//! | `ticket.rs` | a request of a client on its way |
//! | `parts.rs`, `scrub.rs` | what takes long, a bit at a time |
//! | `durability.rs` | waiting for the host's disks |
//! | `clock.rs`, `lateness.rs` | real time |
//! | `decisions.rs`, `record.rs`, `replay.rs` | what was decided, kept and compared |

#[cfg(test)]
mod answering;
mod answers;
mod budget;
pub mod cache;
mod client;
mod clock;
mod connections;
pub mod control;
mod control_queue;
mod decisions;
mod durability;
mod lateness;
mod limits;
mod members;
mod metrics;
mod parts;
mod poll;
mod record;
mod replay;
mod scrub;
mod serve;
mod server;
mod signals;
mod status;
mod ticket;
mod totals;
mod watch;
mod world;

pub use clock::Pace;
pub use control::{ControlSocket, ask};
pub use control_queue::{ControlRequest, ControlResponse, ServerHandle};
pub use decisions::Decisions;
pub use fullstroke_store::Repair;
pub use fullstroke_transport::socket::{
    Admission, AdmissionOptions, ControlError, Listen, Network, TlsError, TlsOptions,
};
pub use lateness::LatenessSummary;
pub use metrics::MetricsServer;
pub use record::RecordError;
pub use replay::{Difference, ReplayError, Verdict, replay_decisions};
pub use serve::{ServeError, ServeOptions, Serving, Summary, serve};
pub use signals::Said;
pub use status::{
    ComparingStatus, DriveState, DriveStatus, ExportStatus, GearStatus, Health, OperationStatus,
    Operations, RESPONSE_BUCKETS_S, RebuildStatus, Status, VolumeState,
};
pub use totals::DriveTotals;
