//! Where requests come from: synthetic loads.
//!
//! A [`Synthetic`] source joins an arrival process (`arrivals/`, when), an
//! address pattern (`addresses/`, where), sizes and a read share (what). Each
//! process and each pattern is one file and one line in its registry.
//! [`Processes`] are closed loops side by side, each with a pattern, a priority
//! and randomness of its own.
//! [`Streams`] are a media server and its clients, each of which plays at its
//! bit rate. [`SideBySide`] runs several workloads at once.
//!
//! | file | what |
//! |---|---|
//! | `synthetic.rs` | one load from an arrival process and a pattern |
//! | `process_config.rs` | what a stack file says about processes |
//! | `process.rs` | one process: its requests and its pauses |
//! | `processes.rs` | many processes as one source |
//! | `streams_config.rs` | what a stack file says about media streams |
//! | `media_files.rs` | where their files lie |
//! | `playout.rs` | when each byte of a stream is played |
//! | `starts.rs` | when streams start, and when no further one does |
//! | `stream.rs` | one stream: what the server has read, what the client has played |
//! | `streams.rs` | many streams as one source |
//! | `streams_results.rs` | what each client saw |
//! | `side_by_side.rs` | several workloads at once |
//! | `background.rs` | rounds of reads that nobody waits for |
//! | `jobs.rs` | rows of requests that are known beforehand |
//! | `pace.rs` | when the requests of a trace go |
//! | `arrivals/` | when requests arrive |
//! | `addresses/` | where they go |
//! | `sizes.rs` | how large they are |
//! | `region.rs` | the part of the volume that is addressed |

pub mod addresses;
pub mod arrivals;
mod background;
mod jobs;
mod media_files;
pub mod pace;
mod playout;
mod process;
mod process_config;
mod processes;
mod region;
mod side_by_side;
mod sizes;
mod starts;
mod stream;
mod streams;
mod streams_config;
mod streams_results;
mod synthetic;

pub use background::{Background, BackgroundConfig, Order};
pub use jobs::{Job, Jobs};
pub use media_files::MediaFiles;
pub use process_config::{ProcessConfig, ProcessesConfig};
pub use processes::Processes;
pub use side_by_side::{Part, SideBySide};
pub use sizes::{SizeConfig, WeightedSize};
pub use starts::{Limit, StartTimes, dealt_out};
pub use stream::{Rules, Stream};
pub use streams::Streams;
pub use streams_config::{
    AtEnd, Placement, StartPosition, StreamsConfig, VariationConfig, WeightedBitRate,
};
pub use streams_results::{StreamTally, StreamsResults};
pub use synthetic::{AddressesConfig, ArrivalsConfig, Synthetic, SyntheticConfig};
