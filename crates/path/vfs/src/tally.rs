//! Number and duration of calls.

use fullstroke_programs::CallKind;
use fullstroke_units::Duration;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Durations of one kind, to three digits.
#[derive(Clone, Debug)]
pub(crate) struct DurationTally {
    pub count: u64,
    pub failed: u64,
    pub bytes: u64,
    total: Duration,
    most: Duration,
    nanoseconds: Histogram<u32>,
}

impl Default for DurationTally {
    fn default() -> DurationTally {
        let nanoseconds = Histogram::new(3).expect("three digits are allowed");
        DurationTally {
            count: 0,
            failed: 0,
            bytes: 0,
            total: Duration::ZERO,
            most: Duration::ZERO,
            nanoseconds,
        }
    }
}

impl DurationTally {
    pub fn add(&mut self, took: Duration) {
        self.count += 1;
        // Many calls run at the same time, so that the sum may overflow.
        self.total = self.total.saturating_add(took);
        self.most = self.most.max(took);
        self.nanoseconds
            .record(took.as_nanos().max(1))
            .expect("it grows with what is recorded");
    }

    pub fn mean_ms(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.total.as_millis_f64() / self.count as f64
        }
    }

    pub fn max_ms(&self) -> f64 {
        self.most.as_millis_f64()
    }

    pub fn quantile_ms(&self, part: f64) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.nanoseconds.value_at_quantile(part) as f64 / 1e6
        }
    }
}

/// Calls by kind, and transactions by the program's names.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTally {
    calls: BTreeMap<CallKind, DurationTally>,
    transactions: BTreeMap<&'static str, DurationTally>,
}

impl CallTally {
    pub fn call(&mut self, kind: CallKind, took: Duration, bytes: Option<u64>) {
        let times = self.calls.entry(kind).or_default();
        times.add(took);
        match bytes {
            Some(bytes) => times.bytes += bytes,
            None => times.failed += 1,
        }
    }

    pub fn transaction(&mut self, kind: &'static str, took: Duration) {
        self.transactions.entry(kind).or_default().add(took);
    }

    /// Returns the durations of a kind, if there were such calls.
    pub fn of(&self, kind: CallKind) -> Option<&DurationTally> {
        self.calls.get(&kind)
    }

    pub fn transactions(&self) -> impl Iterator<Item = (&'static str, &DurationTally)> {
        self.transactions.iter().map(|(&kind, times)| (kind, times))
    }
}
