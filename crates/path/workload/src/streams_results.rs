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
    /// When the first byte was needed that was not there.
    pub first_underrun: Option<Time>,
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
            first_underrun: None,
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
    /// What clients have seen, in the order in which they start.
    pub fn new(
        tallies: Vec<StreamTally>,
        start_up_latency_max: Option<Duration>,
    ) -> StreamsResults {
        StreamsResults {
            tallies,
            start_up_latency_max,
        }
    }

    /// What each client has seen so far, in the order in which they start.
    pub fn tallies(&self) -> &[StreamTally] {
        &self.tallies
    }

    /// Those that were started.
    pub fn started(&self) -> impl Iterator<Item = &StreamTally> + Clone {
        self.tallies.iter().filter(|tally| tally.started.is_some())
    }

    /// Those of them that played: so many at a time, at most.
    pub fn playing(&self) -> impl Iterator<Item = &StreamTally> + Clone {
        self.started().filter(|tally| tally.plays_from.is_some())
    }

    /// Streams that were started before the first that did not play within
    /// `until_start_up_latency`; `None` where there is no such limit.
    pub fn within_latency(&self) -> Option<usize> {
        let most = self.start_up_latency_max?;
        let too_late = |tally: &StreamTally| {
            tally
                .start_up_latency()
                .is_none_or(|latency| latency > most)
        };
        Some(
            self.started()
                .position(too_late)
                .unwrap_or(self.started().count()),
        )
    }

    /// Streams that were served at a time without an underrun, and within the start-up
    /// latency if it has a limit: those that were started before the one behind which the
    /// first byte was missed or waited for too long.
    pub fn sustained(&self) -> usize {
        let all = self.started().count();
        let first = self
            .started()
            .filter_map(|tally| tally.first_underrun)
            .min();
        let before = |at: Time| {
            self.started()
                .filter(|tally| tally.started.is_some_and(|then| then < at))
                .count()
        };
        let without_underrun = first.map_or(all, |at| before(at).saturating_sub(1));
        self.within_latency().unwrap_or(all).min(without_underrun)
    }

    /// How often a client waited for a byte that it needed.
    pub fn underruns(&self) -> u64 {
        self.started().map(|tally| tally.underruns).sum()
    }

    /// Clients that did.
    pub fn with_underruns(&self) -> usize {
        self.started().filter(|tally| tally.underruns > 0).count()
    }

    /// The share of reads that came after their first byte was needed; not a number
    /// without any.
    pub fn deadlines_missed_share(&self) -> f64 {
        self.underruns() as f64 / self.started().map(|tally| tally.deadlines).sum::<u64>() as f64
    }

    /// The longest time that a client waited for a byte; 0 if none did.
    pub fn longest_stall(&self) -> Duration {
        self.started()
            .map(|tally| tally.longest_stall)
            .max()
            .unwrap_or(Duration::ZERO)
    }

    /// The bit rates of those that played, together, in 10^6 bits a second.
    pub fn nominal_mbit_per_s(&self) -> f64 {
        self.playing()
            .map(|tally| tally.bit_rate.0 as f64 / 1e6)
            .sum()
    }
}
