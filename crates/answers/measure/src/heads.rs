//! How far apart the heads of an array are (Qian & Wang, section 6.3 and figure
//! 6.3.3: "disk head location deviation").
//!
//! The head of a drive is where it was sent last: at the first address of the
//! latest request that it was given. How far apart they are is the standard
//! deviation over the drives, in 10^6 bytes of address; before all drives have been
//! sent somewhere nothing is counted.

use fullstroke_units::{Duration, Lbn, SECTOR_BYTES, Time};
use serde::Serialize;

/// So many windows are kept at most; then they are made twice as long.
const WINDOWS: usize = 256;
/// The document's moving average is over ten seconds.
const FIRST_WINDOW: Duration = Duration::from_secs(10);

/// Follows the heads. Costs a few additions and a root for each request to a drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heads {
    /// By drive, in 10^6 bytes.
    at: Vec<Option<f64>>,
    missing: usize,
    sum: f64,
    squares: f64,
    since: Time,
    /// Since all were known.
    counted: Duration,
    weighted: f64,
    windows: Windows,
}

/// Means over equal spans of time.
#[derive(Clone, Debug)]
struct Windows {
    length: Duration,
    begins: Time,
    weighted: f64,
    means: Vec<f64>,
}

/// How far apart the drives' heads were.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeadsReport {
    /// The standard deviation of their addresses over the drives, in 10^6 bytes: its
    /// mean over time; not a number of a single drive, or where one was never used.
    pub apart_mb: f64,
    /// The length of the windows of `windows_apart_mb`.
    pub window_s: f64,
    /// The mean in each window of the run, from the time on at which every drive had
    /// been sent somewhere.
    pub windows_apart_mb: Vec<f64>,
}

impl Default for Windows {
    fn default() -> Windows {
        Windows {
            length: FIRST_WINDOW,
            begins: Time::ZERO,
            weighted: 0.0,
            means: Vec::new(),
        }
    }
}

impl Heads {
    /// Of so many drives; that of a single one is apart from none, and not followed.
    pub(crate) fn new(drives: usize) -> Heads {
        let drives = if drives > 1 { drives } else { 0 };
        Heads {
            at: vec![None; drives],
            missing: drives,
            ..Heads::default()
        }
    }

    /// A drive is sent to `lbn`.
    #[inline]
    pub(crate) fn sent(&mut self, now: Time, drive: usize, lbn: Lbn) {
        let Some(at) = self.at.get_mut(drive) else {
            return;
        };
        let place = lbn.0 as f64 * (SECTOR_BYTES as f64 / 1e6);
        let before = at.replace(place);
        self.pass(now);
        match before {
            Some(before) => {
                self.sum += place - before;
                self.squares += place * place - before * before;
            }
            None => {
                self.sum += place;
                self.squares += place * place;
                self.missing -= 1;
                self.windows.begins = now;
            }
        }
    }

    /// Time goes on to `now` with the heads where they are.
    fn pass(&mut self, now: Time) {
        let since = std::mem::replace(&mut self.since, now);
        if self.missing > 0 {
            return;
        }
        let span = now.saturating_since(since);
        let apart = self.apart();
        self.counted += span;
        self.weighted += apart * span.as_secs_f64();
        self.windows.pass(since, now, apart);
    }

    fn apart(&self) -> f64 {
        let drives = self.at.len() as f64;
        let mean = self.sum / drives;
        (self.squares / drives - mean * mean).max(0.0).sqrt()
    }

    /// Until `end`.
    pub(crate) fn report(mut self, end: Time) -> HeadsReport {
        self.pass(end);
        let several = !self.at.is_empty() && self.missing == 0;
        HeadsReport {
            apart_mb: if several {
                self.weighted / self.counted.as_secs_f64()
            } else {
                f64::NAN
            },
            window_s: self.windows.length.as_secs_f64(),
            windows_apart_mb: if several {
                self.windows.means
            } else {
                Vec::new()
            },
        }
    }
}

impl Windows {
    fn pass(&mut self, mut from: Time, to: Time, value: f64) {
        loop {
            let end = self.begins + self.length;
            if to < end {
                self.weighted += value * to.saturating_since(from).as_secs_f64();
                return;
            }
            self.weighted += value * end.saturating_since(from).as_secs_f64();
            self.means.push(self.weighted / self.length.as_secs_f64());
            (self.begins, self.weighted) = (end, 0.0);
            from = end;
            if self.means.len() == WINDOWS {
                self.length = self.length * 2;
                self.means = self
                    .means
                    .chunks(2)
                    .map(|pair| (pair[0] + pair[1]) / 2.0)
                    .collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    /// Addresses so many 10^6 bytes into a drive.
    fn mb(megabytes: u64) -> Lbn {
        Lbn(megabytes * 15_625 / 8)
    }

    #[test]
    fn it_is_the_deviation_over_time_since_all_are_known() {
        let mut heads = Heads::new(2);
        heads.sent(s(0), 0, mb(0));
        heads.sent(s(5), 1, mb(8));
        // For 10 s at 4 MB, then for 30 at 16.
        heads.sent(s(15), 1, mb(32));
        let report = heads.report(s(45));
        assert_eq!(report.apart_mb, 13.0);
        assert_eq!(report.windows_apart_mb, [4.0, 16.0, 16.0, 16.0]);
        assert_eq!(report.window_s, 10.0);
    }

    #[test]
    fn there_is_none_of_one_drive_or_where_one_is_never_sent_anywhere() {
        let mut one = Heads::new(1);
        one.sent(s(0), 0, mb(0));
        assert!(one.report(s(9)).apart_mb.is_nan());
        let mut two = Heads::new(2);
        two.sent(s(0), 0, mb(0));
        let report = two.report(s(9));
        assert!(report.apart_mb.is_nan() && report.windows_apart_mb.is_empty());
    }

    #[test]
    fn a_long_run_has_few_and_long_windows() {
        let mut heads = Heads::new(2);
        heads.sent(s(0), 0, mb(0));
        heads.sent(s(0), 1, mb(8));
        let report = heads.report(s(100_000));
        assert!(
            report.windows_apart_mb.len() < WINDOWS && report.window_s == 640.0,
            "{}",
            report.window_s
        );
        assert!(report.windows_apart_mb.iter().all(|&apart| apart == 4.0));
    }
}
