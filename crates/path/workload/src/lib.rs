//! Synthetic loads: where requests come from.
//!
//! A [`Synthetic`] source joins an arrival process (`arrivals/`), an address pattern
//! (`addresses/`), sizes and a read share. Each process and each pattern is one file and one line
//! in its registry. [`ProcessSource`] are closed loops side by side, each with its own pattern,
//! priority and randomness. [`Streams`] are a media server and its clients, each of which plays at
//! its bit rate. [`SideBySide`] runs several workloads at once.
//!
//! | file | contents |
//! |---|---|
//! | `synthetic.rs` | one load of an arrival process and a pattern |
//! | `process_config.rs` | keys of processes |
//! | `process.rs` | one process: its requests and think times |
//! | `processes.rs` | many processes as one source |
//! | `streams_config.rs` | keys of media streams |
//! | `media_files.rs` | places of the media files |
//! | `playout.rs` | playing time of each byte of a stream |
//! | `starts.rs` | start times of streams, and the limit of starts |
//! | `stream.rs` | one stream: reads of the server, playback of the client |
//! | `streams.rs` | many streams as one source |
//! | `streams_results.rs` | results of each client |
//! | `side_by_side.rs` | several workloads at once |
//! | `background.rs` | rounds of reads without a user |
//! | `jobs.rs` | jobs with known requests |
//! | `pace.rs` | pacing of a trace |
//! | `arrivals/` | arrival processes |
//! | `addresses/` | address patterns |
//! | `sizes.rs` | request sizes |
//! | `region.rs` | the addressed part of the volume |

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
mod recording;
mod region;
mod side_by_side;
mod sizes;
mod starts;
mod stream;
mod streams;
mod streams_config;
mod streams_results;
mod synthetic;

pub use background::{Background, BackgroundConfig, BackgroundOrder};
pub use jobs::{Job, Jobs};
pub use media_files::MediaFiles;
pub use process_config::{ProcessConfig, ProcessesConfig};
pub use processes::ProcessSource;
pub use side_by_side::{MemberWorkload, SideBySide};
pub use sizes::{SizeConfig, WeightedSize};
pub use starts::{Limit, StartTimes, Starts, dealt_out};
pub use stream::{PlayedStream, Rules};
pub use streams::Streams;
pub use streams_config::{
    AtEnd, Placement, StartPosition, StreamsConfig, VariationConfig, WeightedBitRate,
};
pub use streams_results::{StreamTally, StreamsResults};
pub use synthetic::{AddressesConfig, ArrivalsConfig, Synthetic, SyntheticConfig};
