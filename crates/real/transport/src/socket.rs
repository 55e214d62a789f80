//! Sockets of servers, and the protocols on top.
//!
//! A simulated device under the real clock (`fullstroke-live`) has one thread and one epoll. A
//! server that does real work (`fullstroke-store`, `fullstroke-live`) has threads. This module
//! holds their common code.
//!
//! | file | contents |
//! |---|---|
//! | `sockets.rs` | unix sockets, TCP, inherited sockets; a stale socket file is replaced |
//! | `nbd.rs` | NBD clients over threads: requests out, answers in; a slow client delays no other |
//! | `admission.rs`, `allow.rs` | admission of network clients, and permitted host names |
//! | `tls.rs`, `channel.rs` | certificates, and a socket under TLS |
//! | `peers.rs` | a bounded number of further peers, with a thread and deadlines for each |
//! | `http.rs`, `exposition.rs` | pages over HTTP; metrics in the format of Prometheus |
//! | `lines.rs` | lines of bounded length |
//! | `questions.rs` | questions and answers as lines of JSON |
//! | `waker.rs` | wakes a thread that waits for descriptors |

mod admission;
mod allow;
mod channel;
pub mod exposition;
mod http;
mod lines;
mod nbd;
mod peers;
mod questions;
mod sockets;
mod tls;
mod waker;

pub use admission::{Admission, AdmissionOptions};
pub use allow::Network;
pub use channel::Channel;
pub use http::{HttpPages, HttpServer, Response};
pub use nbd::{NbdClient, NbdServer, Serves};
pub use peers::{AcceptLoop, PEERS_MAX, Peer, PeerService};
pub use questions::{ControlError, QuestionServer, Questions, ask};
pub use sockets::{ClientSocket, Listen, Listener, OWNER, listen_unix};
pub use tls::{TlsConfig, TlsError, TlsOptions};
pub use waker::Waker;
