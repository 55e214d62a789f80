//! Distance between the heads of an array (Qian & Wang, section 6.3 and figure 6.3.3: "disk head
//! location deviation").
//!
//! The position of a head is the first address of the latest request to the drive. The distance is
//! the standard deviation of the positions over the drives, in 10^6 bytes of address. Counting
//! begins when every drive has received a request.

use fullstroke_units::{Duration, Lbn, SECTOR_BYTES, Time};
use serde::Serialize;

/// Largest number of windows. If there are more, neighbours are merged, which doubles the window
/// length.
const WINDOWS: usize = 256;
/// The moving average of the paper covers ten seconds.
const FIRST_WINDOW: Duration = Duration::from_secs(10);

/// Follows the heads. The cost is a few additions and a square root for each request to a drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeadMovement {
    /// Position of each drive's head, in 10^6 bytes.
    at: Vec<Option<f64>>,
    missing: usize,
    sum: f64,
    squares: f64,
    since: Time,
    /// Time since all positions were known.
    counted: Duration,
    weighted: f64,
    windows: WindowMeans,
}

/// Means over equal windows of time.
#[derive(Clone, Debug)]
struct WindowMeans {
    length: Duration,
    begins: Time,
    weighted: f64,
    means: Vec<f64>,
}

/// Distance between the drives' heads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeadsReport {
    /// Standard deviation of the head positions over the drives, in 10^6 bytes: the mean over time.
    /// NaN for a single drive, or if a drive received no request.
    pub apart_mb: f64,
    /// Length of the windows of `windows_apart_mb`, in seconds.
    pub window_s: f64,
    /// Mean in each window of the run, beginning when every drive had received a request.
    pub windows_apart_mb: Vec<f64>,
}

impl Default for WindowMeans {
    fn default() -> WindowMeans {
        WindowMeans {
            length: FIRST_WINDOW,
            begins: Time::ZERO,
            weighted: 0.0,
            means: Vec::new(),
        }
    }
}

impl HeadMovement {
    /// Creates the observer of `drives` drives. A single drive has no distance and is not followed.
    pub(crate) fn new(drives: usize) -> HeadMovement {
        let drives = if drives > 1 { drives } else { 0 };
        HeadMovement {
            at: vec![None; drives],
            missing: drives,
            ..HeadMovement::default()
        }
    }

    /// Records that a request at `lbn` is sent to a drive.
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

    /// Advances the time to `now` with unchanged positions.
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
        // Rounding may make the difference slightly negative.
        (self.squares / drives - mean * mean).max(0.0).sqrt()
    }

    /// Returns the report at `end`.
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

impl WindowMeans {
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
            // Merged in pairs, so that memory does not grow with the run.
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

    /// Returns the address at `megabytes` 10^6 bytes.
    fn mb(megabytes: u64) -> Lbn {
        Lbn(megabytes * 15_625 / 8)
    }

    #[test]
    fn it_is_the_deviation_over_time_since_all_are_known() {
        let mut heads = HeadMovement::new(2);
        heads.sent(s(0), 0, mb(0));
        heads.sent(s(5), 1, mb(8));
        // The distance is 4 MB for 10 s, then 16 MB for 30 s.
        heads.sent(s(15), 1, mb(32));
        let report = heads.report(s(45));
        assert_eq!(report.apart_mb, 13.0);
        assert_eq!(report.windows_apart_mb, [4.0, 16.0, 16.0, 16.0]);
        assert_eq!(report.window_s, 10.0);
    }

    #[test]
    fn there_is_none_of_one_drive_or_where_one_is_never_sent_anywhere() {
        let mut one = HeadMovement::new(1);
        one.sent(s(0), 0, mb(0));
        assert!(one.report(s(9)).apart_mb.is_nan());
        let mut two = HeadMovement::new(2);
        two.sent(s(0), 0, mb(0));
        let report = two.report(s(9));
        assert!(report.apart_mb.is_nan() && report.windows_apart_mb.is_empty());
    }

    #[test]
    fn a_long_run_has_few_and_long_windows() {
        let mut heads = HeadMovement::new(2);
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
