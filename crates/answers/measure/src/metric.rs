//! The numbers of a report by their dotted names.

use crate::batches::{BatchSums, ClassSums, REQUESTS_FOR_INTERVAL};
use crate::distribution::{Distribution, requests_beyond};
use crate::hosts::{HostReport, OfHost, longest, unknown};
use crate::layers::over_layers;
use crate::names::kept;
use crate::report::{Quantity, Report};
use crate::sample::OperationClass;
use crate::{EnergyReport, MemberReport, OperationReport, RebuildReport, StreamsReport, TimeParts};
use fullstroke_contract::registry::nearest;
use fullstroke_contract::{Operation, READINGS};
use fullstroke_counters::{ComparedBy, Counter, Reported};
use fullstroke_units::SECTOR_BYTES;
use thiserror::Error;

/// Confidence of the intervals in a report.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// One number of a [`Report`] for the comparison of runs. The name is the path in the report's
/// JSON: `response_ms.p99`, `iops`, `reads.response_ms.mean`, `members.utilisation` (the mean over
/// all members), `layers.link_utilisation`. A reading of layers is the mean over the layers with
/// this reading, or the sum for amounts (`_mb`). `link_utilisation` means the same as
/// `layers.link_utilisation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric(MetricKind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricKind {
    Time(Quantity, Statistic),
    ClassTime(OperationClass, Statistic),
    Part(usize),
    Rate(Option<OperationClass>, Unit),
    OperationTime(Operation, Statistic),
    Operation(Operation, usize),
    ReadWriteRatio,
    Process(usize),
    Stream(usize),
    Workload(&'static str, OfWorkload),
    Host(OfHost),
    Elapsed,
    Rebuild(usize),
    ScrubHours,
    Energy(usize),
    Member(usize),
    Layer(usize),
}

/// A number of one of several workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OfWorkload {
    Response(Statistic),
    Rate(Unit),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Requests,
    Megabytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statistic {
    Mean,
    Deviation,
    P50,
    P90,
    P95,
    P99,
    P999,
    Max,
}

/// A name that is no metric.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "there is no metric `{name}`{nearest}; `fullstroke compare --list-metrics` lists the names, and docs/metrics.md explains them"
)]
pub struct UnknownMetric {
    name: String,
    nearest: String,
}

/// Returns the metric that a wrong name probably means. `p99` alone is the name of a percentile in
/// `--fail-unless`, and means the response time.
fn suggestion(name: &str, known: &[&str]) -> String {
    let response = format!("response_ms.{name}");
    match known.contains(&response.as_str()) {
        true => format!(" (did you mean `{response}`?)"),
        false => nearest(name, known),
    }
}

/// A metric that no run has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no metric `{name}`: {why}")]
pub struct AbsentMetric {
    name: String,
    why: String,
}

/// View of a metric in a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum View {
    /// A sum over requests, divided by the number of requests or another sum.
    Mean,
    /// An amount divided by the seconds of the batch.
    Rate,
    /// A percentile of the response time.
    Quantile(f64),
}

/// Meaning of each statistic, in the order of [`STATISTICS`].
const STATISTIC_MEANINGS: [&str; 8] = [
    "mean",
    "standard deviation of the sample",
    "median",
    "90th percentile",
    "95th percentile",
    "99th percentile",
    "99.9th percentile",
    "the largest",
];

const STATISTICS: [(&str, Statistic); 8] = [
    ("mean", Statistic::Mean),
    ("stddev", Statistic::Deviation),
    ("p50", Statistic::P50),
    ("p90", Statistic::P90),
    ("p95", Statistic::P95),
    ("p99", Statistic::P99),
    ("p999", Statistic::P999),
    ("max", Statistic::Max),
];

const QUANTITIES: [(&str, Quantity); 3] = [
    ("response_ms", Quantity::Response),
    ("service_ms", Quantity::Service),
    ("queue_ms", Quantity::Queue),
];

const CLASSES: [(&str, OperationClass); 2] = [
    ("reads", OperationClass::Read),
    ("writes", OperationClass::Write),
];

/// A number of one operation: name and getter.
type OperationMetric = (&'static str, fn(&OperationReport) -> f64);

const OPERATION: [OperationMetric; 3] = [
    ("requests", |operation| operation.requests as f64),
    ("iops", |operation| operation.iops),
    ("mb_per_s", |operation| operation.mb_per_s),
];

const PARTS: [&str; 6] = [
    "queue", "parity", "overhead", "seek", "rotation", "transfer",
];

/// Meaning of each part, in the order of [`PARTS`].
const PART_MEANINGS: [&str; 6] = [
    "waiting for a busy resource",
    "waiting for old data and parity to be read, or for the stripe",
    "command overhead and bus",
    "arm movement, head switches and settling",
    "rotational latency",
    "sectors passing under the head",
];

/// Endings of a metric's name, and the unit of each. The first ending that fits counts.
const UNITS: [(&str, &str); 17] = [
    ("hours", "h"),
    ("elapsed_s", "s"),
    ("_mbit_per_s", "10^6 bit/s"),
    ("mb_per_s", "10^6 B/s"),
    ("per_s", "1/s"),
    ("_ms", "ms"),
    ("_w", "W"),
    ("j_per_io", "J"),
    ("_j", "J"),
    ("iops", "1/s"),
    ("_mb", "10^6 B"),
    ("_kib", "KiB"),
    ("_share", "0 to 1"),
    ("utilisation", "0 to 1"),
    ("fairness", "0 to 1"),
    ("ratio", "1"),
    ("cylinders", "cylinders"),
];

/// Returns the numbers of a drive that runs can be compared by, with their meaning.
fn member_metrics() -> impl Iterator<Item = (Reported, ComparedBy)> {
    Counter::all_reported().filter_map(|reported| Some((reported, reported.metric?)))
}

fn member_metric(index: usize) -> (Reported, ComparedBy) {
    member_metrics()
        .nth(index)
        // The index comes from this list, so the entry exists.
        .expect("they are numbered by their list")
}

/// A number about processes or heads: name, getter, true if more is better, and meaning.
type ProcessMetric = (&'static str, fn(&Report) -> f64, bool, &'static str);

const PROCESSES: [ProcessMetric; 7] = [
    (
        "fairness",
        |report| report.shares.fairness,
        true,
        "Jain's index of the processes' bandwidths",
    ),
    (
        "process_mb_per_s.mean",
        |report| report.shares.process_mb_per_s.mean,
        true,
        "read and written by each process, mean",
    ),
    (
        "process_mb_per_s.stddev",
        |report| report.shares.process_mb_per_s.stddev,
        false,
        "the same, standard deviation over processes",
    ),
    (
        "process_mb_per_s.min",
        |report| report.shares.process_mb_per_s.min,
        true,
        "that of the process that got least",
    ),
    (
        "heads.apart_mb",
        |report| report.heads.apart_mb,
        false,
        "distance between the drives' heads: standard deviation of their addresses over the drives, mean over time",
    ),
    (
        "drive_io_kib",
        |report| report.drive_io.drive_io_kib,
        true,
        "mean size of the reads and writes that reach drives, after merges and splits",
    ),
    (
        "process_mb_per_s.max",
        |report| report.shares.process_mb_per_s.max,
        true,
        "that of the process that got most",
    ),
];

/// A number about media streams: name, getter, true if more is better, and meaning.
type StreamMetric = (&'static str, fn(&StreamsReport) -> f64, bool, &'static str);

const STREAMS: [StreamMetric; 14] = [
    (
        "playing",
        |streams| streams.playing as f64,
        true,
        "streams that played at a time, at most",
    ),
    (
        "nominal_mbit_per_s",
        |streams| streams.nominal_mbit_per_s,
        true,
        "sum of the bit rates of the streams, also of those that did not keep up",
    ),
    (
        "within_latency",
        |streams| {
            streams
                .within_latency
                .map_or(f64::NAN, |streams| streams as f64)
        },
        true,
        "streams started before the first that did not play in time",
    ),
    (
        "sustained",
        |streams| streams.sustained as f64,
        true,
        "streams served at a time without an underrun, and in time if there is a limit",
    ),
    (
        "underruns",
        |streams| streams.underruns as f64,
        false,
        "number of times that a client waited for a byte",
    ),
    (
        "with_underruns",
        |streams| streams.with_underruns as f64,
        false,
        "clients that did",
    ),
    (
        "overruns",
        |streams| streams.overruns as f64,
        false,
        "number of times that the buffer of a recording was full, so that data were lost",
    ),
    (
        "with_overruns",
        |streams| streams.with_overruns as f64,
        false,
        "recordings that did",
    ),
    (
        "lost_ms",
        |streams| streams.lost_ms,
        false,
        "total time whose data recordings lost",
    ),
    (
        "deadlines_missed_share",
        |streams| streams.deadlines_missed_share,
        false,
        "reads that completed after their first byte was due",
    ),
    (
        "longest_stall_ms",
        |streams| streams.longest_stall_ms,
        false,
        "the longest time that a client waited for a byte",
    ),
    (
        "start_up_ms.mean",
        |streams| streams.start_up_ms.mean,
        false,
        "mean time from the start of a stream until playback",
    ),
    (
        "start_up_ms.p99",
        |streams| streams.start_up_ms.p99,
        false,
        "the same, 99th percentile",
    ),
    (
        "start_up_ms.max",
        |streams| streams.start_up_ms.max,
        false,
        "the same, the largest",
    ),
];

/// A number about a rebuild: name, getter, and true if more is better.
type RebuildMetric = (&'static str, fn(&RebuildReport) -> f64, bool);

const REBUILDS: [RebuildMetric; 2] = [
    ("hours", |rebuild| rebuild.hours, false),
    ("mb_per_s", |rebuild| rebuild.mb_per_s, true),
];

/// A number about energy: name, getter, and meaning. Less is better.
type EnergyMetric = (&'static str, fn(&EnergyReport) -> f64, &'static str);

const ENERGY: [EnergyMetric; 6] = [
    (
        "total_j",
        |energy| energy.total_j,
        "energy that the drives took, over the whole run",
    ),
    (
        "mean_w",
        |energy| energy.mean_w,
        "the same for each second, all drives together",
    ),
    (
        "j_per_io",
        |energy| energy.j_per_io,
        "the same for each read and write",
    ),
    (
        "spin_downs",
        |energy| energy.spin_downs as f64,
        "how often platters began to stop, over all drives",
    ),
    (
        "spin_ups",
        |energy| energy.spin_ups as f64,
        "number of spin-ups",
    ),
    (
        "wakes",
        |energy| energy.wakes as f64,
        "how often heads that were unloaded were needed",
    ),
];

impl Metric {
    /// Returns every metric, in the order of the report.
    pub fn all() -> Vec<Metric> {
        let times = QUANTITIES.iter().flat_map(|&(_, quantity)| {
            STATISTICS.map(|(_, statistic)| MetricKind::Time(quantity, statistic))
        });
        let parts = (0..PARTS.len()).map(MetricKind::Part);
        let units = [Unit::Requests, Unit::Megabytes];
        let rates = units.map(|unit| MetricKind::Rate(None, unit));
        let classes = CLASSES.iter().flat_map(|&(_, class)| {
            let times = STATISTICS.map(|(_, statistic)| MetricKind::ClassTime(class, statistic));
            times
                .into_iter()
                .chain(units.map(|unit| MetricKind::Rate(Some(class), unit)))
        });
        let operations = Operation::DATA.into_iter().flat_map(|operation| {
            let times =
                STATISTICS.map(|(_, statistic)| MetricKind::OperationTime(operation, statistic));
            let numbers =
                (0..OPERATION.len()).map(move |number| MetricKind::Operation(operation, number));
            times.into_iter().chain(numbers)
        });
        let processes = (0..PROCESSES.len()).map(MetricKind::Process);
        let members = (0..member_metrics().count()).map(MetricKind::Member);
        let layers = (0..READINGS.len()).map(MetricKind::Layer);
        let streams = (0..STREAMS.len()).map(MetricKind::Stream);
        let rebuilds = (0..REBUILDS.len()).map(MetricKind::Rebuild);
        let shares = [MetricKind::ReadWriteRatio, MetricKind::Elapsed]
            .into_iter()
            .chain(processes)
            .chain(streams)
            .chain(rebuilds)
            .chain([MetricKind::ScrubHours]);
        let energy = (0..ENERGY.len()).map(MetricKind::Energy);
        let requests = times
            .chain(parts)
            .chain(rates)
            .chain(classes)
            .chain(operations);
        requests
            .chain(shares)
            .chain(energy)
            .chain(members)
            .chain(layers)
            .map(Metric)
            .collect()
    }

    /// The mean response time.
    pub const RESPONSE_MEAN: Metric = Metric::mean_of(Quantity::Response);

    /// The 99th percentile of the response time.
    pub const RESPONSE_P99: Metric = Metric(MetricKind::Time(Quantity::Response, Statistic::P99));

    /// The throughput of reads and writes together.
    pub const MB_PER_S: Metric = Metric(MetricKind::Rate(None, Unit::Megabytes));

    /// Duration of the longest program.
    pub const PROGRAMS_ELAPSED: Metric = Metric(MetricKind::Elapsed);

    pub(crate) const fn mean_of(quantity: Quantity) -> Metric {
        Metric(MetricKind::Time(quantity, Statistic::Mean))
    }

    pub(crate) const fn mean_of_class(class: OperationClass) -> Metric {
        Metric(MetricKind::ClassTime(class, Statistic::Mean))
    }

    /// Parses a name. `workloads.NAME.response_ms.p99` belongs to the workload called `NAME` in a
    /// stack with several workloads; `hosts.NAME.operations.fsync.latency_ms.p99` belongs to a
    /// host's calls. A time alone (`response_ms`) means its mean. A reading alone is looked up
    /// among the layers.
    ///
    /// # Errors
    /// Names the nearest metric.
    pub fn parse(name: &str) -> Result<Metric, UnknownMetric> {
        let all = Metric::all();
        // First, because the name of a workload may itself be the name of a metric.
        if let Some(metric) = of_workload(name) {
            return Ok(metric);
        }
        let short = [
            name.to_owned(),
            format!("{name}.mean"),
            format!("layers.{name}"),
        ];
        let found = all
            .iter()
            .find(|metric| short.contains(&metric.name()))
            .copied();
        found.or_else(|| Metric::of_programs(name)).ok_or_else(|| {
            let names: Vec<String> = all.iter().map(Metric::name).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            UnknownMetric {
                name: name.to_owned(),
                nearest: suggestion(name, &names),
            }
        })
    }

    /// Returns the metric called `name` if it belongs to programs or their hosts.
    pub fn of_programs(name: &str) -> Option<Metric> {
        let longest = Metric::PROGRAMS_ELAPSED;
        let of_host = || OfHost::parse(name).map(|of| Metric(MetricKind::Host(of)));
        if name == longest.name() {
            Some(longest)
        } else {
            of_host()
        }
    }

    /// Returns the dotted name.
    pub fn name(&self) -> String {
        match self.0 {
            MetricKind::Time(quantity, statistic) => {
                format!(
                    "{}.{}",
                    label(&QUANTITIES, quantity),
                    label(&STATISTICS, statistic)
                )
            }
            MetricKind::ClassTime(class, statistic) => {
                format!(
                    "{}.response_ms.{}",
                    label(&CLASSES, class),
                    label(&STATISTICS, statistic)
                )
            }
            MetricKind::Part(part) => format!("time_ms.{}", PARTS[part]),
            MetricKind::Rate(None, unit) => unit.name().to_owned(),
            MetricKind::Rate(Some(class), unit) => {
                format!("{}.{}", label(&CLASSES, class), unit.name())
            }
            MetricKind::OperationTime(operation, statistic) => {
                format!(
                    "operations.{}.response_ms.{}",
                    operation.name(),
                    label(&STATISTICS, statistic)
                )
            }
            MetricKind::Operation(operation, number) => {
                format!("operations.{}.{}", operation.name(), OPERATION[number].0)
            }
            MetricKind::ReadWriteRatio => "read_write_ratio".to_owned(),
            MetricKind::Process(process) => PROCESSES[process].0.to_owned(),
            MetricKind::Stream(stream) => format!("streams.{}", STREAMS[stream].0),
            MetricKind::Workload(workload, OfWorkload::Response(statistic)) => {
                format!(
                    "workloads.{workload}.response_ms.{}",
                    label(&STATISTICS, statistic)
                )
            }
            MetricKind::Workload(workload, OfWorkload::Rate(unit)) => {
                format!("workloads.{workload}.{}", unit.name())
            }
            MetricKind::Host(of) => of.name(),
            MetricKind::Elapsed => "programs.elapsed_s".to_owned(),
            MetricKind::Rebuild(rebuild) => format!("rebuild.{}", REBUILDS[rebuild].0),
            MetricKind::ScrubHours => "scrub.hours".to_owned(),
            MetricKind::Energy(number) => format!("energy.{}", ENERGY[number].0),
            MetricKind::Member(member) => format!("members.{}", member_metric(member).0.key),
            MetricKind::Layer(reading) => format!("layers.{}", READINGS[reading].name),
        }
    }

    /// Returns the unit; `1` for a plain number.
    pub fn unit(&self) -> &'static str {
        let name = self.name();
        // The name of a statistic follows the name of the quantity, which has the unit.
        let named = STATISTICS
            .iter()
            .find_map(|(statistic, _)| name.strip_suffix(&format!(".{statistic}")));
        let named = named.unwrap_or(&name);
        // The parts are called `time_ms.queue`: their unit stands in front of the dot.
        let part = matches!(self.0, MetricKind::Part(_));
        // `..._ms_max` and `..._share_max` have the unit in front of the ending of the statistic.
        let ends = |end: &str| named.ends_with(end) || named.contains(&format!("{end}_m"));
        if part {
            "ms"
        } else {
            UNITS
                .iter()
                .find(|(end, _)| ends(end))
                .map_or("1", |(_, unit)| unit)
        }
    }

    /// Returns the meaning in a few words.
    pub fn meaning(&self) -> String {
        let of = |statistic| {
            let place = STATISTICS.iter().position(|(_, known)| *known == statistic);
            place.map_or("", |place| STATISTIC_MEANINGS[place])
        };
        let class = |class| {
            if class == OperationClass::Read {
                "reads"
            } else {
                "writes"
            }
        };
        match self.0 {
            MetricKind::Time(quantity, statistic) => {
                format!("{}: {}", quantity_meaning(quantity), of(statistic))
            }
            MetricKind::ClassTime(which, statistic) => {
                format!(
                    "from arrival to completion, over {}: {}",
                    class(which),
                    of(statistic)
                )
            }
            MetricKind::Part(part) => {
                format!("part of the mean response time: {}", PART_MEANINGS[part])
            }
            MetricKind::Rate(which, unit) => {
                let which = which.map_or("reads and writes", class);
                let verb = if unit == Unit::Requests {
                    "completed"
                } else {
                    "moved"
                };
                format!("{which} {verb} a second")
            }
            MetricKind::OperationTime(operation, statistic) => {
                format!(
                    "operations of kind {}, from arrival to completion: {}",
                    operation.name(),
                    of(statistic)
                )
            }
            MetricKind::Operation(operation, number) => {
                let what = ["how many were done", "completed a second", "bytes a second"][number];
                format!("operations of kind {}: {what}", operation.name())
            }
            MetricKind::Workload(workload, OfWorkload::Response(statistic)) => {
                format!(
                    "workload {workload}, from arrival to completion: {}",
                    of(statistic)
                )
            }
            MetricKind::Workload(workload, OfWorkload::Rate(_)) => {
                format!("rate of the workload {workload}")
            }
            MetricKind::Host(of) => of.meaning(),
            MetricKind::Elapsed => "how long the program ran that ran longest".to_owned(),
            MetricKind::ReadWriteRatio => "bytes read for each byte written".to_owned(),
            MetricKind::Process(process) => PROCESSES[process].3.to_owned(),
            MetricKind::Stream(stream) => STREAMS[stream].3.to_owned(),
            MetricKind::Rebuild(rebuild) => {
                ["until the rebuilt members are whole", "filled a second"][rebuild].to_owned()
            }
            MetricKind::ScrubHours => "until a pool has read all its records".to_owned(),
            MetricKind::Energy(number) => ENERGY[number].2.to_owned(),
            MetricKind::Member(member) => {
                format!("{}, mean over drives", member_metric(member).1.meaning)
            }
            MetricKind::Layer(reading) => READINGS[reading].meaning.to_owned(),
        }
    }

    /// Returns true if a larger value is better: for rates, not for times. The ratio of reads to
    /// writes counts as a rate.
    pub fn more_is_better(&self) -> bool {
        match self.0 {
            MetricKind::Rate(..) | MetricKind::Operation(..) | MetricKind::ReadWriteRatio => true,
            MetricKind::Workload(_, OfWorkload::Rate(_)) => true,
            MetricKind::Process(process) => PROCESSES[process].2,
            MetricKind::Stream(stream) => STREAMS[stream].2,
            MetricKind::Host(of) => of.more_is_better(),
            MetricKind::Rebuild(rebuild) => REBUILDS[rebuild].2,
            MetricKind::Member(member) => member_metric(member).1.more_is_better,
            MetricKind::Layer(reading) => READINGS[reading].more_is_better,
            MetricKind::Time(..)
            | MetricKind::ClassTime(..)
            | MetricKind::OperationTime(..)
            | MetricKind::Part(_) => false,
            MetricKind::Workload(_, OfWorkload::Response(_))
            | MetricKind::Elapsed
            | MetricKind::ScrubHours
            | MetricKind::Energy(_) => false,
        }
    }

    /// Checks that some of these runs have this number. Names of hosts, programs and workloads, and
    /// figures of programs, are known only from runs.
    ///
    /// # Errors
    /// No run has the number. The error names the known ones.
    pub fn check(&self, reports: &[&Report]) -> Result<(), AbsentMetric> {
        let absent = match self.0 {
            MetricKind::Host(of) => {
                let hosts: Vec<&[HostReport]> = reports
                    .iter()
                    .map(|report| &report.sources.hosts[..])
                    .collect();
                of.absent(&hosts)
            }
            MetricKind::Workload(asked, _) => {
                let known = reports.iter().flat_map(|report| &report.sources.workloads);
                let known: Vec<&str> = known.map(|workload| workload.name.as_str()).collect();
                (!known.contains(&asked)).then(|| unknown("workload among several", asked, known))
            }
            _ => None,
        };
        absent.map_or(Ok(()), |why| {
            Err(AbsentMetric {
                name: self.name(),
                why,
            })
        })
    }

    /// Returns the value; NaN if nothing was measured.
    pub fn value(&self, report: &Report) -> f64 {
        match self.0 {
            MetricKind::Time(quantity, statistic) => statistic.of(match quantity {
                Quantity::Response => &report.times.response_ms,
                Quantity::Service => &report.times.service_ms,
                Quantity::Queue => &report.times.queue_ms,
            }),
            MetricKind::ClassTime(class, statistic) => operation(report, class)
                .map_or(f64::NAN, |operation| statistic.of(&operation.response_ms)),
            MetricKind::Part(part) => TimeParts::named(&report.times.time_ms)[part].1,
            MetricKind::Rate(None, Unit::Requests) => report.rates.iops,
            MetricKind::Rate(None, Unit::Megabytes) => report.rates.mb_per_s,
            MetricKind::Rate(Some(class), unit) => {
                // A run without operations of this class has the rate 0, and no response time.
                operation(report, class).map_or(0.0, |operation| match unit {
                    Unit::Requests => operation.iops,
                    Unit::Megabytes => operation.mb_per_s,
                })
            }
            MetricKind::OperationTime(operation, statistic) => {
                let report = report.kinds.operations.of(operation);
                report.map_or(f64::NAN, |operation| statistic.of(&operation.response_ms))
            }
            MetricKind::Operation(operation, number) => report
                .kinds
                .operations
                .of(operation)
                // As for classes: no operation of the kind is a rate of 0, not an unknown rate.
                .map_or(0.0, OPERATION[number].1),
            MetricKind::ReadWriteRatio => report.shares.read_write_ratio,
            MetricKind::Process(process) => PROCESSES[process].1(report),
            MetricKind::Stream(stream) => {
                report.streams.as_ref().map_or(f64::NAN, STREAMS[stream].1)
            }
            MetricKind::Workload(name, of) => {
                let workload = report
                    .sources
                    .workloads
                    .iter()
                    .find(|workload| workload.name == name);
                workload.map_or(f64::NAN, |workload| match of {
                    OfWorkload::Response(statistic) => statistic.of(&workload.response_ms),
                    OfWorkload::Rate(Unit::Requests) => workload.iops,
                    OfWorkload::Rate(Unit::Megabytes) => workload.mb_per_s,
                })
            }
            MetricKind::Host(of) => of.value(&report.sources.hosts),
            MetricKind::Elapsed => longest(&report.sources.hosts),
            MetricKind::Rebuild(rebuild) => report
                .array
                .rebuild
                .as_ref()
                .map_or(f64::NAN, REBUILDS[rebuild].1),
            MetricKind::ScrubHours => {
                let scrub = report.array.scrub.as_ref();
                scrub.map_or(f64::NAN, |scrub| scrub.hours)
            }
            MetricKind::Energy(number) => report
                .array
                .energy
                .as_ref()
                .map_or(f64::NAN, ENERGY[number].1),
            MetricKind::Member(member) => {
                let (Reported { number, .. }, _) = member_metric(member);
                let of = |member: &MemberReport| number(&member.statistics, member.seconds).value();
                report.array.members.iter().map(of).sum::<f64>() / report.array.members.len() as f64
            }
            MetricKind::Layer(reading) => {
                over_layers(&report.array.layers, READINGS[reading].name).unwrap_or(f64::NAN)
            }
        }
    }

    /// Returns the share of requests below the value if the metric is a percentile, as in 0.99.
    pub fn quantile(&self) -> Option<f64> {
        match self.0 {
            MetricKind::Time(_, statistic)
            | MetricKind::ClassTime(_, statistic)
            | MetricKind::OperationTime(_, statistic)
            | MetricKind::Workload(_, OfWorkload::Response(statistic)) => statistic.quantile(),
            _ => None,
        }
    }

    /// Returns the share of the slowest requests that decide a time over reads and writes together:
    /// 0.01 for the 99th percentile, 0 for the maximum. `None` for means, for percentiles below the
    /// 90th, which concern most requests, and for other metrics.
    pub fn tail_share(&self) -> Option<f64> {
        match self.0 {
            MetricKind::Time(Quantity::Response, Statistic::Max) => Some(0.0),
            MetricKind::Time(Quantity::Response, statistic) => {
                let quantile = statistic.quantile()?;
                (quantile >= 0.9).then_some(1.0 - quantile)
            }
            _ => None,
        }
    }

    /// Returns the number of requests behind the value of a time; `None` for other metrics.
    fn requests(&self, report: &Report) -> Option<u64> {
        let of = |operation: Option<&OperationReport>| operation.map_or(0, |one| one.requests);
        match self.0 {
            MetricKind::Time(..) => Some(report.times.response_ms.count),
            MetricKind::ClassTime(class, _) => Some(of(operation(report, class))),
            MetricKind::OperationTime(operation, _) => {
                Some(of(report.kinds.operations.of(operation)))
            }
            MetricKind::Workload(name, OfWorkload::Response(_)) => {
                let mut workloads = report.sources.workloads.iter();
                Some(workloads.find(|one| one.name == name)?.requests)
            }
            _ => None,
        }
    }

    /// Returns true for the hours of a scrub, which only windows all over a pool tell.
    pub fn is_of_scrub(&self) -> bool {
        self.0 == MetricKind::ScrubHours
    }

    /// Returns half the width of the 95 % confidence interval that the report itself has for this
    /// metric: the hours of a rebuild or scrub. `None` for metrics whose interval comes from
    /// batches.
    pub fn own_half_width(&self, report: &Report) -> Option<f64> {
        match self.0 {
            MetricKind::Rebuild(0) => report.array.rebuild.as_ref()?.hours_ci95_half_width,
            MetricKind::ScrubHours => {
                let scrub = report.array.scrub.as_ref()?;
                Some(scrub.hours_ci95_half_width)
            }
            _ => None,
        }
    }

    /// Returns the number of requests beyond the value if the metric is a percentile of response
    /// times. A value with fewer than [`BEYOND_MIN`](crate::BEYOND_MIN) requests beyond is chance.
    pub fn beyond(&self, report: &Report) -> Option<u64> {
        Some(requests_beyond(self.requests(report)?, self.quantile()?))
    }

    /// Returns the factor by which a run must be longer for an interval of this metric: enough
    /// requests beyond a percentile in enough batches. At least 1; `None` for a metric whose
    /// interval does not come from requests.
    pub fn longer_for_interval(&self, report: &Report) -> Option<f64> {
        let requests = self.requests(report)?.max(1) as f64;
        let needed = match self.quantile() {
            Some(quantile) => REQUESTS_FOR_INTERVAL / (1.0 - quantile),
            // A mean needs as many requests as a median, which has half of them beyond.
            None => REQUESTS_FOR_INTERVAL * 2.0,
        };
        Some((needed / requests).max(1.0))
    }

    /// Returns the view of the metric in batches. `None` if batches do not contain the metric, so
    /// that there is no interval.
    pub(crate) fn view(&self) -> Option<View> {
        match self.0 {
            MetricKind::Time(_, Statistic::Mean)
            | MetricKind::ClassTime(_, Statistic::Mean)
            | MetricKind::Part(_)
            | MetricKind::ReadWriteRatio => Some(View::Mean),
            MetricKind::Time(Quantity::Response, statistic) => {
                statistic.quantile().map(View::Quantile)
            }
            MetricKind::Rate(..) => Some(View::Rate),
            MetricKind::OperationTime(operation, Statistic::Mean) => {
                class_of(operation).map(|_| View::Mean)
            }
            MetricKind::Time(..)
            | MetricKind::ClassTime(..)
            | MetricKind::OperationTime(..)
            | MetricKind::Operation(..)
            | MetricKind::Process(_)
            | MetricKind::Stream(_)
            | MetricKind::Workload(..)
            | MetricKind::Host(_)
            | MetricKind::Elapsed
            | MetricKind::Rebuild(_)
            | MetricKind::ScrubHours
            | MetricKind::Energy(_)
            | MetricKind::Member(_)
            | MetricKind::Layer(_) => None,
        }
    }

    /// Returns the numerator and, for means, the denominator of a batch, in the metric's unit.
    pub(crate) fn sums(&self, batch: &BatchSums) -> (f64, f64) {
        let of = |class: Option<OperationClass>| {
            class.map_or_else(|| batch.both(), |class| batch.classes[class as usize])
        };
        let requests = batch.both().requests as f64;
        let parts =
            // Integers until here: the sum of nanoseconds does not depend on the order of the
            // requests.
            |range: std::ops::Range<usize>| batch.parts[range].iter().sum::<u128>() as f64 / 1e6;
        match self.0 {
            MetricKind::Time(Quantity::Response, _) => {
                (batch.both().response as f64 / 1e6, requests)
            }
            // A drive works on a request in the last four parts: overhead, seek, rotation and
            // transfer.
            MetricKind::Time(Quantity::Service, _) => (parts(2..6), requests),
            MetricKind::Time(Quantity::Queue, _) => (parts(0..1), requests),
            MetricKind::ClassTime(class, _) => time_sums(&of(Some(class))),
            MetricKind::OperationTime(operation, _) => time_sums(&of(class_of(operation))),
            MetricKind::Part(part) => (parts(part..part + 1), requests),
            // The denominator of a rate is the duration of the batch, which the caller knows.
            MetricKind::Rate(class, Unit::Requests) => (of(class).requests as f64, 0.0),
            MetricKind::Rate(class, Unit::Megabytes) => {
                (of(class).sectors as f64 * SECTOR_BYTES as f64 / 1e6, 0.0)
            }
            MetricKind::ReadWriteRatio => {
                let [reads, writes] = batch.classes;
                (reads.sectors as f64, writes.sectors as f64)
            }
            MetricKind::Operation(..)
            | MetricKind::Process(_)
            | MetricKind::Stream(_)
            | MetricKind::Workload(..)
            | MetricKind::Host(_)
            | MetricKind::Elapsed
            | MetricKind::Rebuild(_)
            | MetricKind::ScrubHours
            | MetricKind::Energy(_)
            | MetricKind::Member(_)
            | MetricKind::Layer(_) => (0.0, 0.0),
        }
    }
}

/// Returns the response times and the number of requests of one class in a batch.
fn time_sums(sums: &ClassSums) -> (f64, f64) {
    (sums.response as f64 / 1e6, sums.requests as f64)
}

/// Returns the class of an operation in batches; `None` if batches do not contain the operation.
fn class_of(operation: Operation) -> Option<OperationClass> {
    match operation {
        Operation::Read => Some(OperationClass::Read),
        Operation::Write => Some(OperationClass::Write),
        _ => None,
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Requests => "iops",
            Unit::Megabytes => "mb_per_s",
        }
    }
}

impl Statistic {
    fn of(self, distribution: &Distribution) -> f64 {
        match self {
            Statistic::Mean => distribution.mean,
            Statistic::Deviation => distribution.stddev,
            Statistic::P50 => distribution.p50,
            Statistic::P90 => distribution.p90,
            Statistic::P95 => distribution.p95,
            Statistic::P99 => distribution.p99,
            Statistic::P999 => distribution.p999,
            Statistic::Max => distribution.max,
        }
    }

    fn quantile(self) -> Option<f64> {
        match self {
            Statistic::P50 => Some(0.5),
            Statistic::P90 => Some(0.9),
            Statistic::P95 => Some(0.95),
            Statistic::P99 => Some(0.99),
            Statistic::P999 => Some(0.999),
            Statistic::Mean | Statistic::Deviation | Statistic::Max => None,
        }
    }
}

/// Returns the metric of one of several workloads called `name`; `None` if `name` is none.
fn of_workload(name: &str) -> Option<Metric> {
    let (workload, number) = name.strip_prefix("workloads.")?.split_once('.')?;
    let statistic = |short: &str| {
        STATISTICS
            .iter()
            .find(|(known, _)| *known == short)
            .map(|(_, statistic)| *statistic)
    };
    let of = match number {
        "response_ms" => OfWorkload::Response(Statistic::Mean),
        "iops" => OfWorkload::Rate(Unit::Requests),
        "mb_per_s" => OfWorkload::Rate(Unit::Megabytes),
        time => OfWorkload::Response(statistic(time.strip_prefix("response_ms.")?)?),
    };
    // Metrics are copied everywhere, so the name is kept for the life of the process.
    Some(Metric(MetricKind::Workload(kept(workload), of)))
}

fn label<T: PartialEq>(names: &[(&'static str, T)], wanted: T) -> &'static str {
    names
        .iter()
        .find(|(_, value)| *value == wanted)
        .map_or("", |(name, _)| name)
}

fn operation(report: &Report, class: OperationClass) -> Option<&crate::OperationReport> {
    match class {
        OperationClass::Read => report.kinds.reads.as_ref(),
        OperationClass::Write => report.kinds.writes.as_ref(),
    }
}

/// Returns the meaning of a quantity.
fn quantity_meaning(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Response => "from arrival to completion, over reads and writes",
        Quantity::Service => "part of the response time in which a drive worked on the request",
        Quantity::Queue => {
            "part of the response time in which the request waited for a busy resource"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_found_by_its_name() {
        let all = Metric::all();
        for metric in &all {
            assert_eq!(Metric::parse(&metric.name()).as_ref(), Ok(metric));
        }
        assert_eq!(Metric::parse("response_ms"), Ok(Metric::RESPONSE_MEAN));
    }

    #[test]
    fn a_number_of_one_of_several_workloads_is_found_by_its_name() {
        for name in [
            "workloads.backup.mb_per_s",
            "workloads.a-b.response_ms.p99",
            "workloads.x.iops",
        ] {
            assert_eq!(Metric::parse(name).unwrap().name(), name);
        }
        assert_eq!(
            Metric::parse("workloads.x.response_ms").unwrap().name(),
            "workloads.x.response_ms.mean"
        );
        assert!(
            Metric::parse("workloads.x.mb_per_s")
                .unwrap()
                .more_is_better()
        );
        assert!(
            !Metric::parse("workloads.x.response_ms")
                .unwrap()
                .more_is_better()
        );
        assert!(Metric::parse("workloads.x.response_ms.p98").is_err());
    }

    #[test]
    fn every_metric_says_its_unit_and_what_it_means() {
        for metric in Metric::all() {
            assert!(!metric.meaning().is_empty(), "{}", metric.name());
        }
        for (name, unit) in [
            ("response_ms.p99", "ms"),
            ("time_ms.parity", "ms"),
            ("iops", "1/s"),
            ("reads.mb_per_s", "10^6 B/s"),
            ("process_mb_per_s.stddev", "10^6 B/s"),
            ("streams.nominal_mbit_per_s", "10^6 bit/s"),
            ("members.utilisation", "0 to 1"),
            ("members.queue_depth", "1"),
            ("layers.link_wait_ms_max", "ms"),
            ("layers.link_payload_mb", "10^6 B"),
            ("layers.xor_forced_idle_share_mean", "0 to 1"),
            ("layers.controller_reads", "1"),
        ] {
            assert_eq!(Metric::parse(name).unwrap().unit(), unit, "{name}");
        }
    }

    #[test]
    fn a_misspelt_metric_names_the_nearest() {
        let error = Metric::parse("reponse_ms.p99").unwrap_err().to_string();
        assert!(error.contains("did you mean `response_ms.p99`"), "{error}");
        // Hundreds of names would hide the suggestion.
        assert!(
            error.len() < 200 && error.contains("--list-metrics"),
            "{error}"
        );
    }

    #[test]
    fn rates_are_better_when_larger_and_times_when_smaller() {
        assert!(Metric::parse("iops").unwrap().more_is_better());
        assert!(Metric::parse("reads.mb_per_s").unwrap().more_is_better());
        assert!(!Metric::parse("response_ms.p99").unwrap().more_is_better());
        assert!(
            !Metric::parse("members.utilisation")
                .unwrap()
                .more_is_better()
        );
        assert!(Metric::parse("fairness").unwrap().more_is_better());
        assert!(
            !Metric::parse("process_mb_per_s.stddev")
                .unwrap()
                .more_is_better()
        );
        assert!(!Metric::parse("link_utilisation").unwrap().more_is_better());
        assert!(
            Metric::parse("layers.controller_read_hits")
                .unwrap()
                .more_is_better()
        );
    }
}
