//! Measures of the clients of media streams.

use crate::distribution::Distribution;
use crate::spread::TimeDistribution;
use fullstroke_units::Duration;
use fullstroke_workload::{StreamTally, StreamsResults};
use serde::Serialize;

/// All streams of a run, including the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamsReport {
    /// Number of streams that were started.
    pub started: usize,
    /// Largest number of streams that played at the same time: those that played by the end.
    pub playing: usize,
    /// Sum of the bit rates of the playing streams, in 10^6 bits per second, including streams that
    /// did not keep up.
    pub nominal_mbit_per_s: f64,
    /// Number of streams that were started before the first stream that exceeded
    /// `until_start_up_latency`; `null` if the workload has no such limit.
    pub within_latency: Option<usize>,
    /// Number of streams that were served at the same time without an underrun and, if there is a
    /// limit, within `until_start_up_latency`.
    pub sustained: usize,
    /// Number of times that a client waited for a byte.
    pub underruns: u64,
    /// Number of clients with an underrun.
    pub with_underruns: usize,
    /// Share of reads that came after their first byte was needed. Reads before the stream played
    /// are left out. NaN if there are no others.
    pub deadlines_missed_share: f64,
    /// Longest time that a client waited for a byte, in ms; 0 if no client waited.
    pub longest_stall_ms: f64,
    /// Time from the start of a stream until it played, over the playing streams.
    pub start_up_ms: Distribution,
    /// Number of recordings: streams that are written.
    pub recordings: usize,
    /// Number of times that the buffer of a recording was full, so that data were lost.
    pub overruns: u64,
    /// Number of recordings that lost data.
    pub with_overruns: usize,
    /// Total time whose data recordings lost, in ms.
    pub lost_ms: f64,
    /// Streams in the order of their start.
    pub each: Vec<StreamReport>,
}

/// One stream. The number is that of the hints of its requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamReport {
    /// Number of the stream, from 1.
    pub stream: usize,
    /// Mean bit rate, in 10^6 bits per second.
    pub nominal_mbit_per_s: f64,
    /// Start of the stream, in seconds since the begin of the run.
    pub started_s: f64,
    /// Time from the start of the stream until it played; `null` if it never played.
    pub start_up_ms: Option<f64>,
    /// Number of completed reads.
    pub reads: u64,
    /// Number of times that the client waited for a byte.
    pub underruns: u64,
    /// Total waiting time of the client, in ms.
    pub stalled_ms: f64,
    /// Longest waiting time, in ms.
    pub longest_stall_ms: f64,
}

impl StreamsReport {
    /// Creates the report of a finished load of streams.
    pub fn new(results: &StreamsResults) -> StreamsReport {
        let mut start_up = TimeDistribution::new();
        for latency in results.started().filter_map(StreamTally::start_up_latency) {
            start_up.record(latency.as_nanos());
        }
        StreamsReport {
            started: results.started().count(),
            playing: results.playing().count(),
            nominal_mbit_per_s: results.nominal_mbit_per_s(),
            within_latency: results.within_latency(),
            sustained: results.sustained(),
            underruns: results.underruns(),
            with_underruns: results.with_underruns(),
            deadlines_missed_share: results.deadlines_missed_share(),
            longest_stall_ms: results.longest_stall().as_millis_f64(),
            start_up_ms: start_up.distribution(),
            recordings: results.recordings().len(),
            overruns: results.overruns(),
            with_overruns: results
                .recordings()
                .iter()
                .filter(|tally| tally.underruns > 0)
                .count(),
            lost_ms: results.lost().as_millis_f64(),
            each: results
                .started()
                .enumerate()
                .map(|(index, tally)| StreamReport::new(index, tally))
                .collect(),
        }
    }

    /// Returns true if all of `streams` were started and played without an underrun, and no recording
    /// lost data.
    pub fn all_played(&self, streams: u32) -> bool {
        self.underruns == 0 && self.overruns == 0 && self.playing == streams as usize
    }
}

impl StreamReport {
    fn new(index: usize, tally: &StreamTally) -> StreamReport {
        StreamReport {
            stream: index + 1,
            nominal_mbit_per_s: tally.bit_rate.0 as f64 / 1e6,
            started_s: tally
                .started
                .map_or(f64::NAN, |started| started.as_secs_f64()),
            start_up_ms: tally.start_up_latency().map(Duration::as_millis_f64),
            reads: tally.reads,
            underruns: tally.underruns,
            stalled_ms: tally.stalled.as_millis_f64(),
            longest_stall_ms: tally.longest_stall.as_millis_f64(),
        }
    }
}
