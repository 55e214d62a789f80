//! The names and the display of a drive's counters, in one table ([`Counter::ALL`]).
//!
//! The contract declares the counters of a drive (`MemberStatistics`). This crate gives each
//! counter a key in reports, a family and help text for Prometheus, a column in tables, and a
//! meaning as a metric. Reports, `measure`, the live server, `ctl` and `top` derive from the table.
//! The table is not part of the contract, because a changed word would rebuild all layers on the
//! contract. No layer depends on this crate.

use fullstroke_contract::MemberStatistics;
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors};
use serde::{Serialize, Serializer};

/// A counter of a drive with all its names: in the report and metrics of a run, and in the status,
/// the Prometheus metrics and the tables of a server.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Names in servers, for the total since the start; `None` = not in servers.
    pub served: Option<CounterTotal>,
    /// Names in reports, for the whole run; `None` = not in reports.
    pub reported: Option<Reported>,
}

/// A total since the start.
#[derive(Clone, Copy, Debug)]
pub struct CounterTotal {
    /// Key in the status, with the unit: `busy_s`.
    pub key: &'static str,
    /// Name of the Prometheus family, with the base unit, between `fullstroke_drive_` and `_total`:
    /// `busy_seconds`.
    pub family: &'static str,
    /// Help text: the meaning of the total.
    pub help: &'static str,
    /// Column in tables. Tables show bytes in units of 10^6 bytes.
    pub column: &'static str,
    /// Reads the total from the statistics.
    pub total: fn(&MemberStatistics) -> Total,
}

/// A total, in the unit of the counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Total {
    /// A count.
    Count(u64),
    /// Number of bytes.
    Bytes(u64),
    /// Time in seconds.
    Seconds(f64),
    /// Energy in joules; `None` if the drive's power is unknown.
    Joules(Option<f64>),
}

/// A number about the whole run.
#[derive(Clone, Copy, Debug)]
pub struct Reported {
    /// Key in the report, with the unit: `seek_ms`.
    pub key: &'static str,
    /// Computes the number from the totals and the length of the run in seconds.
    pub number: fn(&MemberStatistics, f64) -> ReportNumber,
    /// Use as a metric for comparisons of runs; `None` = no metric.
    pub metric: Option<ComparedBy>,
}

/// The properties of a metric.
#[derive(Clone, Copy, Debug)]
pub struct ComparedBy {
    /// True if more is better.
    pub more_is_better: bool,
    /// Meaning of the metric.
    pub meaning: &'static str,
}

/// A number in a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReportNumber {
    /// A count.
    Whole(u64),
    /// Any other number.
    Real(f64),
}

impl Total {
    /// Returns the value without the unit; NaN if it is unknown.
    pub const fn value(self) -> f64 {
        match self {
            Total::Count(count) | Total::Bytes(count) => count as f64,
            Total::Seconds(seconds) => seconds,
            Total::Joules(Some(joules)) => joules,
            Total::Joules(None) => f64::NAN,
        }
    }
}

impl ReportNumber {
    /// Returns the value; a count is converted.
    pub const fn value(self) -> f64 {
        match self {
            ReportNumber::Whole(count) => count as f64,
            ReportNumber::Real(number) => number,
        }
    }
}

impl Counter {
    /// All counters of a drive, in the order of display.
    pub const ALL: [Counter; 16] = [
        Counter::BUSY,
        Counter::REQUESTS,
        Counter::READS,
        Counter::WRITES,
        Counter::QUEUE_LENGTH,
        Counter::QUEUE,
        Counter::OVERHEAD,
        Counter::SEEK,
        Counter::SEEK_CYLINDERS,
        Counter::ROTATION,
        Counter::TRANSFER,
        Counter::ZERO_SEEKS,
        Counter::BYTES,
        Counter::BUFFER_HITS,
        Counter::ENERGY,
        Counter::POWER,
    ];

    /// Time in which the arm was busy.
    pub const BUSY: Counter = Counter {
        served: Some(CounterTotal {
            key: "busy_s",
            family: "busy_seconds",
            help: "Simulated time in which the drive's arm was taken.",
            column: "busy s",
            total: |drive| Total::Seconds(drive.busy.as_secs_f64()),
        }),
        reported: Some(Reported {
            key: "utilisation",
            number: |drive, seconds| {
                ReportNumber::Real(per_second(drive.busy.as_secs_f64(), seconds))
            },
            metric: less(
                "share of the time in which the arm was taken, by requests, read-ahead or destaging",
            ),
        }),
    };

    /// I/Os served.
    pub const REQUESTS: Counter = Counter {
        served: Some(CounterTotal {
            key: "ios",
            family: "ios",
            help: "I/O that the drive has served.",
            column: "I/O",
            total: |drive| Total::Count(drive.requests()),
        }),
        reported: Some(Reported {
            key: "requests",
            number: |drive, _| ReportNumber::Whole(drive.requests()),
            metric: None,
        }),
    };

    /// Reads served.
    pub const READS: Counter = Counter {
        served: Some(CounterTotal {
            key: "reads",
            family: "reads",
            help: "Reads that the drive has served.",
            column: "reads",
            total: |drive| Total::Count(drive.reads),
        }),
        reported: Some(Reported {
            key: "reads",
            number: |drive, _| ReportNumber::Whole(drive.reads),
            metric: None,
        }),
    };

    /// Writes served.
    pub const WRITES: Counter = Counter {
        served: None,
        reported: Some(Reported {
            key: "writes",
            number: |drive, _| ReportNumber::Whole(drive.writes),
            metric: None,
        }),
    };

    /// Bytes read and written.
    pub const BYTES: Counter = Counter {
        served: Some(CounterTotal {
            key: "bytes",
            family: "bytes",
            help: "Bytes read and written.",
            column: "MB",
            // The sum saturates, because `top` may show the numbers of an unknown server.
            total: |drive| {
                let sectors = drive.sectors_read.0.saturating_add(drive.sectors_written.0);
                Total::Bytes(Sectors(sectors).saturating_bytes().0)
            },
        }),
        reported: Some(Reported {
            key: "mb_per_s",
            number: |drive, seconds| {
                let sectors = (drive.sectors_read + drive.sectors_written).0;
                ReportNumber::Real(per_second(
                    // Decimal megabytes, as data sheets give transfer rates.
                    sectors as f64 * SECTOR_BYTES as f64 / 1e6,
                    seconds,
                ))
            },
            metric: more("read and written"),
        }),
    };

    /// Requests answered by the buffer: reads of held data, and writes that the buffer accepted.
    pub const BUFFER_HITS: Counter = Counter {
        served: Some(CounterTotal {
            key: "buffer_hits",
            family: "buffer_hits",
            help: "Requests answered from the drive's buffer.",
            column: "buffer hits",
            total: |drive| Total::Count(drive.buffer_hits),
        }),
        reported: Some(Reported {
            key: "buffer_hit_share",
            number: |drive, _| {
                // A drive without requests has a share of 0, not NaN.
                ReportNumber::Real(drive.buffer_hits as f64 / drive.requests().max(1) as f64)
            },
            metric: more("requests that the drive's buffer answered, of all, 0 to 1"),
        }),
    };

    /// Energy of the drive.
    pub const ENERGY: Counter = Counter {
        served: Some(CounterTotal {
            key: "energy_j",
            family: "energy_joules",
            help: "Energy that the drive has taken in simulated time.",
            column: "J",
            total: |drive| Total::Joules(drive.power.map(|power| power.energy().0)),
        }),
        reported: Some(Reported {
            key: "energy_j",
            number: |drive, _| ReportNumber::Real(drive.energy_j()),
            metric: less("energy that the drive took, over the whole run"),
        }),
    };

    /// Mean power of the drive.
    pub const POWER: Counter = reported(Reported {
        key: "mean_w",
        number: |drive, _| {
            // JSON shows NaN as null: a drive without watts has no known power, which is not 0 W.
            ReportNumber::Real(drive.power.map_or(f64::NAN, |power| power.mean_power().0))
        },
        metric: less("mean power of the drive, in watts"),
    });

    /// Requests in the drive.
    pub const QUEUE_LENGTH: Counter = reported(Reported {
        key: "queue_depth",
        number: |drive, seconds| {
            // The integral of the queue length over time, divided by the time, is the mean length.
            ReportNumber::Real(per_second(drive.queue_length_ns as f64 / 1e9, seconds))
        },
        metric: less("I/Os in the drive, waiting or in service, on average over time"),
    });

    /// Time in the queue.
    pub const QUEUE: Counter = reported(Reported {
        key: "queue_ms",
        number: |drive, _| mean_ms(drive, drive.queue),
        metric: less("mean time in the drive's queue"),
    });

    /// Command overhead.
    pub const OVERHEAD: Counter = reported(Reported {
        key: "overhead_ms",
        number: |drive, _| mean_ms(drive, drive.overhead),
        metric: None,
    });

    /// Seek time.
    pub const SEEK: Counter = reported(Reported {
        key: "seek_ms",
        number: |drive, _| mean_ms(drive, drive.seek),
        metric: less("seek time per I/O, including read-ahead and destaging"),
    });

    /// Cylinders crossed to the first track.
    pub const SEEK_CYLINDERS: Counter = reported(Reported {
        key: "seek_cylinders",
        number: |drive, _| mean(drive, drive.seek_cylinders as f64),
        metric: less("mean distance of the first seek, zeros included"),
    });

    /// Rotational latency.
    pub const ROTATION: Counter = reported(Reported {
        key: "rotation_ms",
        number: |drive, _| mean_ms(drive, drive.rotation),
        metric: less("mean rotational latency"),
    });

    /// Transfer time.
    pub const TRANSFER: Counter = reported(Reported {
        key: "transfer_ms",
        number: |drive, _| mean_ms(drive, drive.transfer),
        metric: less("mean transfer time"),
    });

    /// I/Os that started on the track under the arm.
    pub const ZERO_SEEKS: Counter = reported(Reported {
        key: "zero_seek_share",
        number: |drive, _| mean(drive, drive.zero_seeks as f64),
        metric: more("share of I/Os whose first track lay under the arm already"),
    });

    /// Returns the counters in servers.
    pub fn all_served() -> impl Iterator<Item = CounterTotal> {
        Counter::ALL
            .into_iter()
            .filter_map(|counter| counter.served)
    }

    /// Returns the counters in reports.
    pub fn all_reported() -> impl Iterator<Item = Reported> {
        Counter::ALL
            .into_iter()
            .filter_map(|counter| counter.reported)
    }
}

impl Serialize for ReportNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ReportNumber::Whole(count) => serializer.serialize_u64(*count),
            ReportNumber::Real(number) => serializer.serialize_f64(*number),
        }
    }
}

impl Serialize for Total {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Total::Count(count) | Total::Bytes(count) => serializer.serialize_u64(*count),
            Total::Seconds(seconds) => serializer.serialize_f64(*seconds),
            Total::Joules(joules) => joules.serialize(serializer),
        }
    }
}

/// Creates a counter that no server shows.
const fn reported(reported: Reported) -> Counter {
    Counter {
        served: None,
        reported: Some(reported),
    }
}

const fn less(meaning: &'static str) -> Option<ComparedBy> {
    Some(ComparedBy {
        more_is_better: false,
        meaning,
    })
}

const fn more(meaning: &'static str) -> Option<ComparedBy> {
    Some(ComparedBy {
        more_is_better: true,
        meaning,
    })
}

/// Returns a sum over the requests of a drive, divided by their number. Zero without requests.
fn mean(drive: &MemberStatistics, sum: f64) -> ReportNumber {
    let requests = drive.requests();
    ReportNumber::Real(if requests == 0 {
        0.0
    } else {
        sum / requests as f64
    })
}

/// Like [`mean`], for a time, in milliseconds.
fn mean_ms(drive: &MemberStatistics, sum: Duration) -> ReportNumber {
    mean(drive, sum.as_millis_f64())
}

/// Returns an amount per second, over a run of `seconds`.
fn per_second(amount: f64, seconds: f64) -> f64 {
    // A run of length 0 has no rate. NaN would spoil each mean over runs.
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::PowerStatistics;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_counters_have_one_name() {
        let served: Vec<&str> = Counter::all_served().map(|served| served.key).collect();
        let reported: Vec<&str> = Counter::all_reported()
            .map(|reported| reported.key)
            .collect();
        for keys in [served, reported] {
            assert_eq!(
                keys.iter().collect::<BTreeSet<_>>().len(),
                keys.len(),
                "{keys:?}"
            );
        }
    }

    #[test]
    fn totals_are_named_after_their_units() {
        for CounterTotal {
            key, family, total, ..
        } in Counter::all_served()
        {
            match total(&MemberStatistics::default()) {
                Total::Joules(_) => {
                    assert!(key.ends_with("_j") && family.ends_with("_joules"), "{key}")
                }
                Total::Seconds(_) => {
                    assert!(key.ends_with("_s") && family.ends_with("_seconds"), "{key}")
                }
                Total::Count(_) | Total::Bytes(_) => assert_eq!(key, family),
            }
        }
    }

    #[test]
    fn a_drive_that_served_nothing_has_means_of_zero() {
        for Reported { key, number, .. } in Counter::all_reported() {
            let nothing = MemberStatistics {
                power: Some(PowerStatistics::default()),
                ..Default::default()
            };
            assert_eq!(number(&nothing, 0.0).value(), 0.0, "{key}");
        }
    }
}
