//! Sockets of servers, and who talks over them.
//!
//! A simulated device under the real clock (`fullstroke-live`) has one thread and
//! one epoll; what does real work (`fullstroke-store`, `fullstroke-live`) has
//! threads. What they have in common is here.
//!
//! | file | what |
//! |---|---|
//! | `sockets.rs` | unix sockets, TCP, those that were passed on; a stale socket file is taken over |
//! | `nbd.rs` | NBD clients over threads: requests out, answers in, nobody waits for who takes none |
//! | `admission.rs`, `allow.rs` | who may come in over a network, and under which names |
//! | `tls.rs`, `channel.rs` | certificates, and a socket under TLS |
//! | `peers.rs` | a bounded number of peers beside that, a thread and deadlines for each |
//! | `http.rs`, `exposition.rs` | pages over HTTP; numbers as Prometheus reads them |
//! | `lines.rs` | lines of bounded length |
//! | `questions.rs` | questions and answers as lines of JSON |
//! | `waker.rs` | wakes who waits for descriptors |

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
pub use http::{HttpServer, Pages, Response};
pub use nbd::{NbdClient, NbdServer, Serves};
pub use peers::{AcceptLoop, PEERS_MAX, Peer, Service};
pub use questions::{Answers, ControlError, Questions, ask};
pub use sockets::{Listen, Listener, OWNER, Stream, listen_unix};
pub use tls::{TlsConfig, TlsError, TlsOptions};
pub use waker::Waker;
