//! Results of a load of media streams.

use fullstroke_units::{BitRate, Duration, Time};

/// The playback of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTally {
    /// Mean bit rate.
    pub bit_rate: BitRate,
    /// Start time; `None` if the stream was never started.
    pub started: Option<Time>,
    /// Start of playback, if any.
    pub plays_from: Option<Time>,
    /// Reads that arrived, in order.
    pub reads: u64,
    /// Reads with a deadline: they arrived after the start of playback and before the end of the
    /// load.
    pub deadlines: u64,
    /// Missed deadlines. The client waited for the byte, and played on at its arrival.
    pub underruns: u64,
    /// Needed time of the first missing byte.
    pub first_underrun: Option<Time>,
    /// Total waiting time, without the start.
    pub stalled: Duration,
    /// Longest waiting time.
    pub longest_stall: Duration,
}

/// Counters of [`Streams`](crate::Streams).
pub struct StreamsResults {
    tallies: Vec<StreamTally>,
    recordings: Vec<StreamTally>,
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

    /// Time from start to playback, if playback started.
    pub fn start_up_latency(&self) -> Option<Duration> {
        Some(self.plays_from?.since(self.started?))
    }
}

impl StreamsResults {
    /// The results of clients in start order.
    pub fn new(
        tallies: Vec<StreamTally>,
        start_up_latency_max: Option<Duration>,
    ) -> StreamsResults {
        StreamsResults {
            tallies,
            recordings: Vec::new(),
            start_up_latency_max,
        }
    }

    /// Returns the results with these recordings. In the tally of a recording, reads count the writes,
    /// and underruns count the times at which the recording's buffer was full.
    #[must_use]
    pub fn with_recordings(mut self, recordings: Vec<StreamTally>) -> StreamsResults {
        self.recordings = recordings;
        self
    }

    /// The results of each recording so far.
    pub fn recordings(&self) -> &[StreamTally] {
        &self.recordings
    }

    /// Number of times that the buffer of a recording was full.
    pub fn overruns(&self) -> u64 {
        self.recordings.iter().map(|tally| tally.underruns).sum()
    }

    /// Total time whose data recordings lost.
    pub fn lost(&self) -> Duration {
        let times = self.recordings.iter().map(|tally| tally.stalled);
        times.fold(Duration::ZERO, |sum, time| sum + time)
    }

    /// The results of each client so far, in start order.
    pub fn tallies(&self) -> &[StreamTally] {
        &self.tallies
    }

    /// Started clients.
    pub fn started(&self) -> impl Iterator<Item = &StreamTally> + Clone {
        self.tallies.iter().filter(|tally| tally.started.is_some())
    }

    /// Clients that played: the largest number at the same time.
    pub fn playing(&self) -> impl Iterator<Item = &StreamTally> + Clone {
        self.started().filter(|tally| tally.plays_from.is_some())
    }

    /// Streams started before the first stream that exceeded `until_start_up_latency`; `None`
    /// without this limit.
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

    /// Streams served at the same time without an underrun and within the start-up latency (if
    /// limited): the streams started before the stream after which the first byte was missed or
    /// waited for too long.
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
        // The last stream before the underrun is not counted: with this stream the array fell
        // behind.
        let without_underrun = first.map_or(all, |at| before(at).saturating_sub(1));
        self.within_latency().unwrap_or(all).min(without_underrun)
    }

    /// Number of waits for a byte.
    pub fn underruns(&self) -> u64 {
        self.started().map(|tally| tally.underruns).sum()
    }

    /// Clients with at least one underrun.
    pub fn with_underruns(&self) -> usize {
        self.started().filter(|tally| tally.underruns > 0).count()
    }

    /// Share of reads that arrived after their deadline; not a number without reads.
    pub fn deadlines_missed_share(&self) -> f64 {
        self.underruns() as f64 / self.started().map(|tally| tally.deadlines).sum::<u64>() as f64
    }

    /// Longest wait for a byte; 0 without a wait.
    pub fn longest_stall(&self) -> Duration {
        self.started()
            .map(|tally| tally.longest_stall)
            .max()
            .unwrap_or(Duration::ZERO)
    }

    /// Sum of the bit rates of playing clients, in 10^6 bits a second.
    pub fn nominal_mbit_per_s(&self) -> f64 {
        self.playing()
            .map(|tally| tally.bit_rate.0 as f64 / 1e6)
            .sum()
    }
}
