//! What came out of a load of media streams.

use fullstroke_units::{BitRate, Duration, Time};

/// What one client saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTally {
    /// The mean rate at which it plays.
    pub bit_rate: BitRate,
    /// When it asked for the stream; `None` if it was never started.
    pub started: Option<Time>,
    /// When it began to play, if it did.
    pub plays_from: Option<Time>,
    /// Reads that came, in order.
    pub reads: u64,
    /// Those among them that were needed by then or later: they came after the
    /// stream had begun to play, and before the load ended.
    pub deadlines: u64,
    /// Deadlines that were missed. The client waited for the byte that it
    /// needed, and played on as soon as that was there.
    pub underruns: u64,
    /// How long it waited for bytes in all, the start left out.
    pub stalled: Duration,
    /// The longest of these times.
    pub longest_stall: Duration,
}

/// What [`Streams`](crate::Streams) have counted.
pub struct StreamsResults {
    tallies: Vec<StreamTally>,
    start_up_latency_max: Option<Duration>,
}

impl StreamTally {
    pub(crate) fn new(bit_rate: BitRate) -> StreamTally {
        StreamTally {
            bit_rate,
            started: None,
            plays_from: None,
            reads: 0,
            deadlines: 0,
            underruns: 0,
            stalled: Duration::ZERO,
            longest_stall: Duration::ZERO,
        }
    }

    /// From its start until it played, if it ever did.
    pub fn start_up_latency(&self) -> Option<Duration> {
        Some(self.plays_from?.since(self.started?))
    }
}

impl StreamsResults {
    pub(crate) fn new(tallies: Vec<StreamTally>, start_up_latency_max: Option<Duration>) -> StreamsResults {
        StreamsResults { tallies, start_up_latency_max }
    }

    /// What each client has seen so far, in the order in which they start.
    pub fn tallies(&self) -> &[StreamTally] {
        &self.tallies
    }

    /// The start-up latency beyond which no further stream is started, if there
    /// is one.
    pub fn start_up_latency_max(&self) -> Option<Duration> {
        self.start_up_latency_max
    }
}
