//! A trace with latencies, as requests for a replay.

use super::rotation::Rotation;
use super::span::ServiceSpan;
use crate::validate::paced::Paced;
use crate::validate::{EmpiricalTimes, FoundDrive, ValidateError};
use fullstroke_contract::Operation;
use fullstroke_contract::{Reason, reason};
use fullstroke_trace::{TraceOptions, TraceReader, TraceRecord};
use fullstroke_units::{Duration, Lbn, Sectors, Time, greatest_common_divisor};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Least number of requests of a log. The log is cut in half, and a quantile of 0.9 of each half
/// rests on ten requests.
pub const LOGGED_MIN: usize = 200;

/// Least number of requests of the choosing half that the arm must have served.
const SERVED_BY_THE_ARM_MIN: usize = 50;

/// Longest time in ms that a cache alone may take. A buffer needs tenths of this time; half a
/// revolution at 15,000 rpm is 2 ms.
const FROM_A_CACHE_MS_MAX: f64 = 1.0;

/// Largest fraction of requests without a known completion.
const UNKNOWN_SHARE_MAX: f64 = 0.1;

/// Start of the times in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeOrigin {
    /// From the issue to the device: only the device's time.
    Issue,
    /// From the arrival at the traced layer: the host's queue is included.
    Arrival,
}

/// A request of the log: its kind, the way of the arm, and its time.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    pub(crate) operation: Operation,
    pub(crate) sectors: u64,
    /// Number of outstanding requests at the issue, including this request.
    pub(crate) outstanding: usize,
    /// Distance in sectors from the end of the request before to the start of this request.
    pub(crate) distance: u64,
    /// Measured time; `None` for a request without data, which is replayed but not compared.
    pub(crate) measured_ms: Option<f64>,
}

/// A log of one disk.
#[derive(Clone, Debug, Serialize)]
pub struct OwnLog {
    /// Path of the file.
    pub file: String,
    /// Format of the file.
    pub format: &'static str,
    /// Number of reads and writes.
    pub requests: usize,
    /// Start of the times.
    pub times: TimeOrigin,
    /// Number of requests left out because their completion is unknown.
    pub without_completion: usize,
    /// Number of requests left out because they are discards or start or stop the platters.
    pub other_operations: usize,
    /// True if the file has more requests than were read.
    pub cut: bool,
    /// End of the highest address, in sectors.
    pub span_sectors: u64,
    /// Resolution of the times in ms; `None` if finer than 0.05 ms.
    pub resolution_ms: Option<f64>,
    /// Speed of rotation that the choosing half tells; `None` if it tells none.
    pub rotation: Option<Rotation>,
    #[serde(skip)]
    pub(crate) paced: Arc<[Paced]>,
    #[serde(skip)]
    pub(crate) logged: Vec<Logged>,
}

impl OwnLog {
    /// Reads the first `requests_max` requests of the trace at `path`. Of `options` the format and
    /// the device are used.
    ///
    /// # Errors
    /// If the trace cannot be read, or cannot tell the properties of its disk: a trace of several
    /// devices, without latencies, too short, or answered by caches.
    pub fn read(
        path: &Path,
        options: &TraceOptions,
        requests_max: usize,
    ) -> Result<OwnLog, ValidateError> {
        let mut reader = TraceReader::open(path, options).map_err(ValidateError::Trace)?;
        let mut records = Vec::new();
        while records.len() < requests_max
            && let Some(record) = reader.next().map_err(ValidateError::Trace)?
        {
            records.push(record);
        }
        let cut =
            records.len() == requests_max && reader.next().map_err(ValidateError::Trace)?.is_some();
        let file = path.display().to_string();
        let mut log = OwnLog::new(file, reader.format().name, &records)?;
        log.cut = cut;
        Ok(log)
    }

    /// Creates the log of these requests.
    ///
    /// # Errors
    /// As [`read`](Self::read), for a log that cannot tell the properties of its disk.
    pub fn new(
        file: String,
        format: &'static str,
        records: &[TraceRecord],
    ) -> Result<OwnLog, ValidateError> {
        let refuse = |reason: Reason| ValidateError::CannotTell {
            file: file.clone(),
            reason: reason.into(),
        };
        one_device(records).map_err(refuse)?;
        let transfers =
            |record: &&TraceRecord| matches!(record.operation, Operation::Read | Operation::Write);
        let replayed =
            |record: &&TraceRecord| transfers(record) || record.operation == Operation::Flush;
        let other_operations = records.iter().filter(|record| !replayed(record)).count();
        let (times, spans, without_completion) = spans(records.iter().filter(replayed));
        let unknown = without_completion as f64 / (records.len() - other_operations).max(1) as f64;
        if spans.is_empty() || unknown > UNKNOWN_SHARE_MAX {
            return Err(refuse(reason!(
                "it has no latency of {} of {} requests; expected one of at least nine in ten: a blktrace or \
                 blkparse with completions (C), a fio log of latencies with log_offset=1, or what `fullstroke \
                 record` writes",
                without_completion,
                records.len() - other_operations
            )));
        }
        let (paced, logged) = paced(&spans);
        let measured: Vec<f64> = logged
            .iter()
            .filter_map(|request| request.measured_ms)
            .collect();
        if measured.len() < LOGGED_MIN {
            return Err(refuse(reason!(
                "found {} reads and writes with latencies; expected {LOGGED_MIN} or more, of which one half \
                 chooses the model and the other judges it",
                measured.len()
            )));
        }
        let log = OwnLog {
            requests: measured.len(),
            times,
            without_completion,
            other_operations,
            cut: false,
            span_sectors: spans
                .iter()
                .map(|span| span.extent.end().0)
                .max()
                .unwrap_or(0),
            resolution_ms: resolution_ms(&spans),
            // Of the choosing half alone: the other half must judge a model that has not seen it.
            rotation: Rotation::of(&spans[..spans.len() / 2]),
            paced: paced.into(),
            logged,
            file: file.clone(),
            format,
        };
        log.seen_by_the_arm().map_err(refuse)?;
        Ok(log)
    }

    /// Refuses a log whose first half was answered by caches.
    fn seen_by_the_arm(&self) -> Result<(), Reason> {
        let first = self.logged[..self.half()]
            .iter()
            .filter_map(|request| request.measured_ms);
        let (all, slow) = first.fold((0, 0), |(all, slow), ms| {
            (all + 1, slow + usize::from(ms > FROM_A_CACHE_MS_MAX))
        });
        if slow >= SERVED_BY_THE_ARM_MIN {
            return Ok(());
        }
        Err(reason!(
            "of the {all} requests of its first half {slow} took longer than {FROM_A_CACHE_MS_MAX} ms: caches \
             answered, or the disk does not turn; expected {SERVED_BY_THE_ARM_MIN} or more that the arm served, \
             as of random reads past all caches (fio --direct=1 --rw=randread)"
        ))
    }

    /// Returns the index of the first request of the judging half.
    pub(crate) fn half(&self) -> usize {
        self.paced.len() / 2
    }

    /// Returns the measured times of the `chosen` requests among `requests`, and their times in
    /// `times`.
    pub(crate) fn compared(
        &self,
        requests: Range<usize>,
        times: &[f64],
        chosen: impl Fn(&Logged) -> bool,
    ) -> (EmpiricalTimes, EmpiricalTimes) {
        let both = self.logged[requests.clone()].iter().zip(&times[requests]);
        let (measured, simulated) = both
            .filter(|(request, _)| chosen(request))
            .filter_map(|(request, time)| Some((request.measured_ms?, *time)))
            .unzip();
        (
            EmpiricalTimes::new(measured),
            EmpiricalTimes::new(simulated),
        )
    }

    /// Returns an error if the log reaches beyond `drive`.
    pub(crate) fn fits_on(&self, drive: &FoundDrive) -> Result<(), ValidateError> {
        let capacity = drive.model.config().capacity_sectors.0;
        if self.span_sectors <= capacity {
            return Ok(());
        }
        Err(self.cannot_tell(format!(
            "it reaches to sector {}, and the drive `{}` has {capacity}; name a larger one with --drive",
            self.span_sectors, drive.name
        )))
    }

    pub(crate) fn cannot_tell(&self, reason: String) -> ValidateError {
        ValidateError::CannotTell {
            file: self.file.clone(),
            reason,
        }
    }
}

fn one_device(records: &[TraceRecord]) -> Result<(), Reason> {
    let devices: BTreeSet<u32> = records.iter().map(|record| record.device).collect();
    if devices.len() < 2 {
        return Ok(());
    }
    let names: Vec<String> = devices.iter().map(u32::to_string).collect();
    Err(reason!(
        "it has several devices; say which is the disk with --device {}",
        names.join(" or --device ")
    ))
}

/// Returns the requests with known completions by their start at the device, and the number of
/// requests without completion. Requests that the host had merged count as one. If all issue times
/// are known, these are the starts.
fn spans<'a>(
    records: impl Iterator<Item = &'a TraceRecord>,
) -> (TimeOrigin, Vec<ServiceSpan>, usize) {
    let (mut known, mut unknown) = (Vec::new(), 0);
    for record in records {
        match record.completed {
            Some(end) => known.push((record, end)),
            None => unknown += 1,
        }
    }
    let issued = known.iter().all(|(record, _)| record.issued.is_some());
    let span = |(record, end): (&TraceRecord, Time)| ServiceSpan {
        operation: record.operation,
        extent: record.extent,
        start: record.issued.filter(|_| issued).unwrap_or(record.arrival),
        end,
    };
    let mut spans: Vec<ServiceSpan> = known.into_iter().map(span).collect();
    // By address at equal times, so that the parts of a merged request stand side by side.
    spans.sort_by_key(|span| (span.start, span.extent.start));
    let mut joined: Vec<ServiceSpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if issued && goes_on(last, &span) => {
                last.extent.sectors.0 += span.extent.sectors.0
            }
            _ => joined.push(span),
        }
    }
    (
        if issued {
            TimeOrigin::Issue
        } else {
            TimeOrigin::Arrival
        },
        joined,
        unknown,
    )
}

/// Returns true if both were parts of one request to the device.
fn goes_on(last: &ServiceSpan, next: &ServiceSpan) -> bool {
    (last.operation, last.start, last.end) == (next.operation, next.start, next.end)
        && last.extent.end() == next.extent.start
        && next.extent.sectors > Sectors::ZERO
}

/// Returns the requests in the order of their start, each with the number of completions it awaits.
fn paced(spans: &[ServiceSpan]) -> (Vec<Paced>, Vec<Logged>) {
    let mut ends: Vec<Time> = spans.iter().map(|span| span.end).collect();
    ends.sort_unstable();
    let beginning = spans.first().map_or(Time::ZERO, |first| first.start);
    let mut last_end = Lbn(0);
    let request = |(number, span): (usize, &ServiceSpan)| {
        // A request can have waited for earlier requests only, even if later ones ended first.
        let awaited = ends.partition_point(|end| *end <= span.start).min(number);
        let since = awaited.checked_sub(1).map_or(beginning, |last| ends[last]);
        let transfers = span.operation != Operation::Flush;
        let logged = Logged {
            operation: span.operation,
            sectors: span.extent.sectors.0,
            outstanding: number + 1 - awaited,
            distance: span.extent.start.0.abs_diff(last_end.0),
            measured_ms: transfers.then(|| span.end.since(span.start).as_millis_f64()),
        };
        if transfers {
            last_end = span.extent.end();
        }
        let gap = span.start.since(since);
        (
            Paced {
                operation: span.operation,
                extent: span.extent,
                awaited,
                gap,
            },
            logged,
        )
    };
    spans.iter().enumerate().map(request).unzip()
}

/// Returns the greatest unit of which all times are multiples; `None` below 0.05 ms.
fn resolution_ms(spans: &[ServiceSpan]) -> Option<f64> {
    let times = spans
        .iter()
        .map(|span| span.end.since(span.start).as_nanos());
    let unit = Duration::from_nanos(times.fold(0, greatest_common_divisor)).as_millis_f64();
    (unit >= 0.05).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Extent;
    use proptest::prelude::*;

    fn record(arrival_us: u64, response_us: u64, start: u64) -> TraceRecord {
        let arrival = Time::from_nanos(arrival_us * 1000);
        TraceRecord {
            arrival,
            operation: Operation::Read,
            extent: Extent::new(start, 8),
            device: 0,
            process: 0,
            issued: None,
            completed: Some(arrival + Duration::from_micros(response_us)),
        }
    }

    fn refusal(records: &[TraceRecord]) -> String {
        OwnLog::new("sda.log".to_owned(), "native", records)
            .unwrap_err()
            .to_string()
    }

    fn reads(count: u64, response_us: u64) -> Vec<TraceRecord> {
        (0..count)
            .map(|i| record(i * 20_000, response_us + i, (i * 7919) % 100_000))
            .collect()
    }

    #[test]
    fn what_cannot_tell_is_refused() {
        let silent: Vec<TraceRecord> = reads(300, 9000)
            .into_iter()
            .map(|record| TraceRecord {
                completed: None,
                ..record
            })
            .collect();
        assert!(
            refusal(&silent).contains("no latency of 300 of 300"),
            "{}",
            refusal(&silent)
        );
        assert!(refusal(&reads(199, 9000)).contains("found 199"));
        assert!(refusal(&reads(300, 100)).contains("caches answered"));
        let mut two = reads(300, 9000);
        two[7].device = 3;
        assert!(
            refusal(&two).contains("--device 0 or --device 3"),
            "{}",
            refusal(&two)
        );
        assert!(OwnLog::new("sda.log".to_owned(), "native", &reads(300, 9000)).is_ok());
    }

    #[test]
    fn what_the_host_joined_is_one_request() {
        let mut records = reads(300, 9000);
        for record in &mut records {
            record.issued = Some(record.arrival);
        }
        let first = records[0];
        let tail = TraceRecord {
            extent: Extent::new(first.extent.end().0, 16),
            ..first
        };
        records.insert(1, tail);
        let log = OwnLog::new("sda.log".to_owned(), "blktrace", &records).unwrap();
        assert_eq!(
            (log.requests, log.times, log.logged[0].sectors),
            (300, TimeOrigin::Issue, 24)
        );
    }

    #[test]
    fn whole_milliseconds_are_noticed() {
        let log = |unit: u64| {
            let records: Vec<TraceRecord> = (0..300)
                .map(|i| record(i * 20_000, (2 + i % 9) * unit, i * 8000 % 65_536))
                .collect();
            OwnLog::new("sda.log".to_owned(), "native", &records)
                .unwrap()
                .resolution_ms
        };
        assert_eq!((log(1000), log(1001)), (Some(1.0), Some(1.001)));
        assert_eq!(
            OwnLog::new("sda.log".to_owned(), "native", &reads(300, 9000))
                .unwrap()
                .resolution_ms,
            None
        );
    }

    proptest! {
        /// A replay of a log with its own times reproduces the log.
        #[test]
        fn what_is_awaited_gives_the_starts_back(
            times in prop::collection::vec((0u64..2000, 0u64..5000), 1..80),
        ) {
            let mut spans: Vec<ServiceSpan> = times.iter().map(|&(start, length)| ServiceSpan {
                operation: Operation::Read,
                extent: Extent::new(start, 8),
                start: Time::from_nanos(start),
                end: Time::from_nanos(start + length),
            }).collect();
            spans.sort_by_key(|span| span.start);
            let (paced, logged) = paced(&spans);
            let mut ends: Vec<Time> = spans.iter().map(|span| span.end).collect();
            ends.sort_unstable();
            let mut awaited = 0;
            for (number, (request, span)) in paced.iter().zip(&spans).enumerate() {
                prop_assert!(request.awaited <= number && request.awaited >= awaited);
                prop_assert_eq!(logged[number].outstanding, number + 1 - request.awaited);
                awaited = request.awaited;
                let since = awaited.checked_sub(1).map_or(spans[0].start, |last| ends[last]);
                prop_assert_eq!(since + request.gap, span.start);
            }
        }
    }
}
