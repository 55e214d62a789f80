//! What the clients of media streams saw.

use crate::report::Distribution;
use crate::spread::Spread;
use fullstroke_units::Duration;
use fullstroke_workload::{StreamTally, StreamsResults};
use serde::Serialize;

/// All streams of a run, its warm-up included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamsReport {
    /// Streams that were started.
    pub started: usize,
    /// Streams that played at a time, at most: those that had begun to by the
    /// end.
    pub playing: usize,
    /// The bit rates that those have been given, together, in 10^6 bits a second,
    /// whether or not they kept up.
    pub nominal_mbit_per_s: f64,
    /// Streams that were started before the first that did not play within
    /// `until_start_up_latency`; `null` where the workload has no such limit.
    pub within_latency: Option<usize>,
    /// Streams that were served at a time without an underrun, and within that limit if
    /// there is one.
    pub sustained: usize,
    /// How often a client waited for a byte that it needed.
    pub underruns: u64,
    /// Clients that did.
    pub with_underruns: usize,
    /// The share of reads that came after their first byte was needed; those
    /// before the stream played left out. Not a number if there are no others.
    pub deadlines_missed_share: f64,
    /// The longest time that a client waited for a byte; 0 if none did.
    pub longest_stall_ms: f64,
    /// From the start of a stream until it played, over those that did.
    pub start_up_ms: Distribution,
    /// The streams that were started, in this order.
    pub each: Vec<StreamReport>,
}

/// One stream. Its number is that of its requests' hints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamReport {
    /// From 1.
    pub stream: usize,
    /// Its mean bit rate, in 10^6 bits a second.
    pub nominal_mbit_per_s: f64,
    /// When it was started, from the beginning of the run.
    pub started_s: f64,
    /// From its start until it played; `null` if it never did.
    pub start_up_ms: Option<f64>,
    /// Reads that came.
    pub reads: u64,
    /// How often its client waited for a byte that it needed.
    pub underruns: u64,
    /// How long it waited in all.
    pub stalled_ms: f64,
    /// The longest of these times.
    pub longest_stall_ms: f64,
}

impl StreamsReport {
    /// The report of a load of streams that is over.
    pub fn new(results: &StreamsResults) -> StreamsReport {
        let mut start_up = Spread::new();
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
            each: results
                .started()
                .enumerate()
                .map(|(index, tally)| StreamReport::new(index, tally))
                .collect(),
        }
    }

    /// Whether every one of `streams` was started and played without an
    /// underrun.
    pub fn all_played(&self, streams: u32) -> bool {
        self.underruns == 0 && self.playing == streams as usize
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
