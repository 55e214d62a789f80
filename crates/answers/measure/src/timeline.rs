//! Events over time, for pictures: response times with their causes, and each drive's queue and
//! position, over a bounded number of columns of equal length.
//!
//! The timeline is kept only on request. Memory is fixed: if a run is longer than the columns, the
//! length of each column doubles.

use crate::spread::TimeDistribution;
use fullstroke_contract::{Breakdown, Request};
use fullstroke_engine::Finished;
use fullstroke_units::{Duration, SECTOR_BYTES, Time};
use serde::{Serialize, Serializer};

/// Largest number of columns.
// Even, because columns are joined in pairs.
const COLUMNS: usize = 96;
/// Length of the first columns.
const FIRST_COLUMN: Duration = Duration::from_millis(1);
/// Rows of the heat map: six per decade, from 10 us to 100 s.
const ROWS_PER_DECADE: i32 = 6;
const ROWS: usize = 42;
/// Lower bound of row 1; row 0 holds all shorter times.
const LOWEST_NS: f64 = 1e4;
/// Shares of requests at which the percentile curve is drawn.
const SHARES: [f64; 17] = [
    0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999,
];

/// Cause of a part of a request's response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Waiting for a busy resource.
    Queue,
    /// Waiting for old data and parity, or for the stripe.
    Parity,
    /// Command overhead and bus of requests that reached a platter.
    Overhead,
    /// Movement of the arm to another cylinder.
    Seek,
    /// Head switches and settling of requests that began on the arm's current cylinder.
    Switch,
    /// Rotational latency.
    Rotation,
    /// Sectors passing under the head.
    Transfer,
    /// Overhead of requests that needed no platter because a buffer answered.
    Cache,
}

/// Observer of a run.
#[derive(Clone, Debug)]
pub struct Timeline {
    column: Duration,
    /// Sums by column, then by row.
    cells: Vec<Sums>,
    /// Visits by drive, then by column.
    drives: Vec<Vec<Visits>>,
    /// Lower bounds of row 1 and all following rows.
    bounds_ns: Vec<u64>,
    responses: TimeDistribution,
}

/// Number of requests of a cell of the heat map, and nanoseconds of each cause.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: u64,
    causes_ns: [u64; Cause::ALL.len()],
}

/// Requests to one drive in one column.
#[derive(Clone, Copy, Debug)]
struct Visits {
    requests: u64,
    ahead: u64,
    ahead_max: u32,
    /// Sum of the first addresses, in 10^9 bytes.
    offset: f64,
    offset_min: f64,
    offset_max: f64,
}

/// Events over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineReport {
    /// Length of a column in seconds; the first column begins with the run.
    pub column_s: f64,
    /// Lower bounds of the rows, in ms.
    pub rows_ms: Vec<f64>,
    /// Cells with requests, by column of arrival and row of response time.
    pub cells: Vec<CellReport>,
    /// Parts of the mean response time by cause.
    pub causes_ms: Vec<CauseReport>,
    /// Points of the percentile curve of the response time.
    pub percentiles: Vec<PercentileReport>,
    /// Drives that received requests.
    pub drives: Vec<DriveTimeline>,
}

/// One cell of the heat map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CellReport {
    /// Column, from 0.
    pub column: usize,
    /// Row, from 0.
    pub row: usize,
    /// Number of requests that arrived in this column with this response time.
    pub requests: u64,
    /// Cause with the largest part of the response times.
    pub cause: Cause,
}

/// Part of the mean response time from one cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CauseReport {
    /// The cause.
    pub cause: Cause,
    /// Part of the mean response time, in ms.
    pub mean_ms: f64,
}

/// One point of the percentile curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PercentileReport {
    /// Share of all reads and writes.
    pub share: f64,
    /// Response time that this share does not exceed, in ms.
    pub response_ms: f64,
}

/// One drive, column by column. A column without requests holds NaN.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveTimeline {
    /// Name of the drive.
    pub name: String,
    /// Number of requests to the drive.
    pub requests: Vec<u64>,
    /// Mean number of requests in the drive when another request arrived.
    pub ahead_mean: Vec<f64>,
    /// Largest number of requests in the drive when another request arrived.
    pub ahead_max: Vec<f64>,
    /// Mean first address of the requests, in 10^9 bytes.
    pub offset_gb_mean: Vec<f64>,
    /// Smallest first address, in 10^9 bytes.
    pub offset_gb_min: Vec<f64>,
    /// Largest first address, in 10^9 bytes.
    pub offset_gb_max: Vec<f64>,
}

impl Cause {
    /// All causes, in the order of a request's life.
    pub const ALL: [Cause; 8] = [
        Cause::Queue,
        Cause::Parity,
        Cause::Overhead,
        Cause::Cache,
        Cause::Seek,
        Cause::Switch,
        Cause::Rotation,
        Cause::Transfer,
    ];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Queue => "queue",
            Cause::Parity => "parity",
            Cause::Overhead => "overhead",
            Cause::Cache => "cache",
            Cause::Seek => "seek",
            Cause::Switch => "switch",
            Cause::Rotation => "rotation",
            Cause::Transfer => "transfer",
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Default for Visits {
    fn default() -> Visits {
        // The neutral values of `min` and `max`, for `add`.
        let (offset_min, offset_max) = (f64::INFINITY, f64::NEG_INFINITY);
        Visits {
            requests: 0,
            ahead: 0,
            ahead_max: 0,
            offset: 0.0,
            offset_min,
            offset_max,
        }
    }
}

impl Timeline {
    /// Creates the timeline of a run on `drives` drives.
    pub fn new(drives: usize) -> Timeline {
        let bound = |row: i32| LOWEST_NS * 10f64.powf(f64::from(row) / f64::from(ROWS_PER_DECADE));
        Timeline {
            column: FIRST_COLUMN,
            cells: vec![Sums::default(); COLUMNS * ROWS],
            drives: vec![vec![Visits::default(); COLUMNS]; drives],
            bounds_ns: (0..ROWS as i32 - 1)
                .map(|row| bound(row).round() as u64)
                .collect(),
            responses: TimeDistribution::new(),
        }
    }

    /// Records a successful read or write.
    pub fn finished(&mut self, finished: &Finished) {
        let response = finished
            .completion
            .finished
            .since(finished.arrived)
            .as_nanos();
        let column = self.column_of(finished.arrived);
        // A response on a bound belongs to the row above it.
        let row = self.bounds_ns.partition_point(|&bound| bound <= response);
        self.cells[column * ROWS + row].record(&finished.completion.breakdown);
        self.responses.record(response);
    }

    /// Records that a drive receives `request` while it holds `ahead` requests.
    pub fn drive_io(&mut self, now: Time, drive: usize, request: &Request, ahead: u32) {
        let column = self.column_of(now);
        if let Some(columns) = self.drives.get_mut(drive) {
            columns[column].record(request, ahead);
        }
    }

    fn column_of(&mut self, at: Time) -> usize {
        loop {
            let column = at.as_nanos() / self.column.as_nanos();
            if column < COLUMNS as u64 {
                return column as usize;
            }
            self.column = self.column * 2;
            halve(&mut self.cells, ROWS, Sums::add);
            self.drives
                .iter_mut()
                .for_each(|columns| halve(columns, 1, Visits::add));
        }
    }

    /// Returns the report; `names` are the names of the drives.
    pub fn report(self, names: &[String]) -> TimelineReport {
        let total = self.cells.iter().fold(Sums::default(), |mut total, cell| {
            total.add(cell);
            total
        });
        let mean_ms = |ns: u64| ns as f64 / 1e6 / total.requests as f64;
        let used = self
            .cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| cell.requests > 0);
        let drives = names
            .iter()
            .zip(&self.drives)
            .filter(|(_, columns)| !idle(columns));
        TimelineReport {
            column_s: self.column.as_secs_f64(),
            rows_ms: std::iter::once(0.0)
                .chain(self.bounds_ns.iter().map(|&ns| ns as f64 / 1e6))
                .collect(),
            cells: used
                .map(|(index, cell)| cell.report(index / ROWS, index % ROWS))
                .collect(),
            causes_ms: Cause::ALL
                .map(|cause| CauseReport {
                    cause,
                    mean_ms: mean_ms(total.causes_ns[cause as usize]),
                })
                .to_vec(),
            percentiles: SHARES
                .map(|share| PercentileReport {
                    share,
                    response_ms: self.responses.quantile(share) / 1e6,
                })
                .to_vec(),
            drives: drives
                .map(|(name, columns)| drive_timeline(name, columns))
                .collect(),
        }
    }
}

/// Joins neighbouring columns of `rows` values each. The second half is empty afterwards.
fn halve<T: Copy + Default>(columns: &mut [T], rows: usize, add: impl Fn(&mut T, &T)) {
    for column in 0..COLUMNS {
        for row in 0..rows {
            let mut joined = T::default();
            if 2 * column < COLUMNS {
                joined = columns[2 * column * rows + row];
                add(&mut joined, &columns[(2 * column + 1) * rows + row]);
            }
            columns[column * rows + row] = joined;
        }
    }
}

impl Sums {
    fn record(&mut self, parts: &Breakdown) {
        let platter = parts.seek + parts.rotation + parts.transfer;
        let overhead = if platter == Duration::ZERO {
            Cause::Cache
        } else {
            Cause::Overhead
        };
        let seek = if parts.seek_cylinders == 0 {
            Cause::Switch
        } else {
            Cause::Seek
        };
        self.requests += 1;
        for (cause, part) in [
            (Cause::Queue, parts.queue),
            (Cause::Parity, parts.parity),
            (overhead, parts.overhead),
            (seek, parts.seek),
            (Cause::Rotation, parts.rotation),
            (Cause::Transfer, parts.transfer),
        ] {
            self.causes_ns[cause as usize] += part.as_nanos();
        }
    }

    fn add(&mut self, other: &Sums) {
        self.requests += other.requests;
        self.causes_ns
            .iter_mut()
            .zip(other.causes_ns)
            .for_each(|(sum, more)| *sum += more);
    }

    fn report(&self, column: usize, row: usize) -> CellReport {
        // `max_by_key` returns the last maximum, so the reversed order prefers the earlier cause.
        let most = Cause::ALL
            .into_iter()
            .rev()
            .max_by_key(|&cause| self.causes_ns[cause as usize]);
        CellReport {
            column,
            row,
            requests: self.requests,
            cause: most.unwrap_or(Cause::Queue),
        }
    }
}

impl Visits {
    fn record(&mut self, request: &Request, ahead: u32) {
        let offset = request.extent.start.0 as f64 * SECTOR_BYTES as f64 / 1e9;
        let one = Visits {
            requests: 1,
            ahead: u64::from(ahead),
            ahead_max: ahead,
            offset,
            offset_min: offset,
            offset_max: offset,
        };
        self.add(&one);
    }

    fn add(&mut self, other: &Visits) {
        self.requests += other.requests;
        self.ahead += other.ahead;
        self.ahead_max = self.ahead_max.max(other.ahead_max);
        self.offset += other.offset;
        self.offset_min = self.offset_min.min(other.offset_min);
        self.offset_max = self.offset_max.max(other.offset_max);
    }
}

fn idle(columns: &[Visits]) -> bool {
    columns.iter().all(|visits| visits.requests == 0)
}

fn drive_timeline(name: &str, columns: &[Visits]) -> DriveTimeline {
    let last = columns
        .iter()
        .rposition(|visits| visits.requests > 0)
        .map_or(0, |last| last + 1);
    let each = |value: &dyn Fn(&Visits) -> f64| {
        let shown = |visits: &Visits| {
            if visits.requests == 0 {
                f64::NAN
            } else {
                value(visits)
            }
        };
        columns[..last].iter().map(shown).collect()
    };
    DriveTimeline {
        name: name.to_owned(),
        requests: columns[..last]
            .iter()
            .map(|visits| visits.requests)
            .collect(),
        ahead_mean: each(&|visits| visits.ahead as f64 / visits.requests as f64),
        ahead_max: each(&|visits| f64::from(visits.ahead_max)),
        offset_gb_mean: each(&|visits| visits.offset / visits.requests as f64),
        offset_gb_min: each(&|visits| visits.offset_min),
        offset_gb_max: each(&|visits| visits.offset_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Completion, Extent};
    use proptest::prelude::*;

    fn finished(arrived_us: u64, parts: Breakdown) -> Finished {
        let arrived = Time::from_nanos(arrived_us * 1000);
        let completion = Completion {
            finished: arrived + parts.response(),
            breakdown: parts,
            ..Completion::default()
        };
        Finished {
            origin: 0,
            operation: fullstroke_contract::Operation::Read,
            extent: Extent::new(0, 8),
            process: 0,
            workload: 0,
            arrived,
            completion,
        }
    }

    #[test]
    fn a_cell_has_the_cause_of_most_of_its_time() {
        let ms = Duration::from_millis;
        let mut timeline = Timeline::new(0);
        for (arrived_us, parts) in [
            (
                0,
                Breakdown {
                    queue: ms(3),
                    rotation: ms(2),
                    ..Breakdown::default()
                },
            ),
            (
                2_000,
                Breakdown {
                    seek: ms(3),
                    seek_cylinders: 9,
                    rotation: ms(2),
                    ..Breakdown::default()
                },
            ),
            (
                4_000,
                Breakdown {
                    seek: ms(3),
                    rotation: ms(2),
                    ..Breakdown::default()
                },
            ),
            (
                6_000,
                Breakdown {
                    overhead: ms(1),
                    ..Breakdown::default()
                },
            ),
            (
                8_000,
                Breakdown {
                    overhead: ms(2),
                    transfer: ms(1),
                    ..Breakdown::default()
                },
            ),
        ] {
            timeline.finished(&finished(arrived_us, parts));
        }
        let report = timeline.report(&[]);
        let causes: Vec<&str> = report.cells.iter().map(|cell| cell.cause.name()).collect();
        assert_eq!(causes, ["queue", "seek", "switch", "cache", "overhead"]);
        // A time of 5 ms lies in the row from 4.6 ms on: six rows a decade above 10 us.
        assert_eq!(
            report.cells[0].row,
            report
                .rows_ms
                .iter()
                .rposition(|&from| from <= 5.0)
                .unwrap()
        );
    }

    #[test]
    fn drives_show_what_was_ahead_and_where_requests_began() {
        let mut timeline = Timeline::new(2);
        for (at_ms, ahead, sector) in [(0, 0, 0), (0, 3, 1_953_125), (2, 1, 3_906_250)] {
            let request = Request {
                extent: Extent::new(sector, 8),
                ..Request::default()
            };
            timeline.drive_io(
                Time::ZERO + Duration::from_millis(at_ms),
                1,
                &request,
                ahead,
            );
        }
        let report = timeline.report(&["0".to_owned(), "1".to_owned()]);
        let [drive] = &report.drives[..] else {
            panic!("drive 0 was given nothing")
        };
        assert_eq!(
            (drive.name.as_str(), &drive.requests[..]),
            ("1", &[2, 0, 1][..])
        );
        assert_eq!((drive.ahead_mean[0], drive.ahead_max[0]), (1.5, 3.0));
        assert_eq!(
            (
                drive.offset_gb_min[0],
                drive.offset_gb_max[0],
                drive.offset_gb_mean[2]
            ),
            (0.0, 1.0, 2.0)
        );
        assert!(drive.ahead_mean[1].is_nan());
    }

    proptest! {
        #[test]
        fn no_request_and_no_time_is_lost_however_long_the_run(
            arrivals in prop::collection::vec((0u64..1 << 40, 0u64..1 << 33, 0u64..1 << 33), 1..60),
        ) {
            let mut timeline = Timeline::new(1);
            let mut sum_ms = 0.0;
            for &(arrived_us, queue, rotation) in &arrivals {
                let parts = Breakdown {
                    queue: Duration::from_nanos(queue),
                    rotation: Duration::from_nanos(rotation),
                    ..Breakdown::default()
                };
                sum_ms += (queue + rotation) as f64 / 1e6;
                timeline.finished(&finished(arrived_us, parts));
                timeline.drive_io(Time::from_nanos(arrived_us * 1000), 0, &Request::default(), 0);
            }
            let report = timeline.report(&["0".to_owned()]);
            prop_assert_eq!(report.cells.iter().map(|cell| cell.requests).sum::<u64>(), arrivals.len() as u64);
            prop_assert_eq!(report.drives[0].requests.iter().sum::<u64>(), arrivals.len() as u64);
            let mean: f64 = report.causes_ms.iter().map(|cause| cause.mean_ms).sum();
            prop_assert!((mean - sum_ms / arrivals.len() as f64).abs() <= 1e-6 * mean);
            prop_assert!(report.cells.iter().all(|cell| cell.column < COLUMNS && cell.row < ROWS));
        }
    }
}
