//! Measures of hosts with programs: calls on files, and transactions.

use crate::names::kept;
use fullstroke_contract::registry::nearest;
use fullstroke_contract::{
    EventTimes, HostReadings, LatencyDistribution, OperationReadings, ProgramReadings,
};
use fullstroke_units::{Duration, map_of, order_by};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// Name of a host without a name, if the stack has only one host.
pub(crate) const ONLY: &str = "host";

/// A host with programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostReport {
    /// Name in the stack file; `host` for the only host.
    pub name: String,
    /// Calls of the programs, by kind.
    #[serde(serialize_with = "by_kind")]
    pub operations: Vec<CallReport>,
    /// Programs of the host.
    pub programs: Vec<ProgramReport>,
    /// Dirty pages in memory over the run, in at most 256 samples: seconds since the begin of the
    /// run, and 10^6 bytes.
    pub dirty_mb: Vec<(f64, f64)>,
}

/// Calls of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallReport {
    /// Kind of the call.
    #[serde(skip)]
    pub kind: &'static str,
    /// Number and duration of the calls.
    #[serde(flatten)]
    pub times: EventTimes,
    /// Calls per second.
    pub per_s: f64,
    /// Number of failed calls.
    pub failed: u64,
    /// Throughput of reads and writes between program and host, in 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Mean number of read requests to the device for a call of this kind, including the warm-up. A
    /// request for several calls is divided among the calls.
    pub device_reads_each: f64,
    /// Mean number of write requests to the device for a call of this kind, including later
    /// write-back.
    pub device_writes_each: f64,
}

/// One program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramReport {
    /// Name in the stack file, or the kind of the program if it is the only workload.
    pub name: String,
    /// Seconds from the begin of the program, or from the end of the warm-up, to the end of the
    /// program.
    pub elapsed_s: f64,
    /// Transactions as the program defines them, by kind.
    pub transactions: BTreeMap<&'static str, TransactionReport>,
    /// Figures that the program reports.
    pub figures: BTreeMap<&'static str, f64>,
    /// Output of the program in the format of the real program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Limits of the simulation of this program, one sentence each.
    pub notes: Vec<String>,
}

/// Transactions of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TransactionReport {
    /// Number and duration of the transactions.
    #[serde(flatten)]
    pub times: EventTimes,
    /// Transactions per second.
    pub per_s: f64,
}

fn by_kind<S: Serializer>(operations: &[CallReport], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        operations
            .iter()
            .map(|operation| (operation.kind, operation)),
    )
}

pub(crate) fn host_reports(hosts: &[HostReadings]) -> Vec<HostReport> {
    hosts.iter().map(host).collect()
}

fn host(host: &HostReadings) -> HostReport {
    let name = if host.name.is_empty() {
        ONLY.to_owned()
    } else {
        host.name.clone()
    };
    HostReport {
        name,
        operations: host
            .operations
            .iter()
            .map(|operation| call(operation, host.elapsed))
            .collect(),
        programs: host.programs.iter().map(program).collect(),
        dirty_mb: host.dirty_mb.clone(),
    }
}

fn call(operation: &OperationReadings, elapsed: Duration) -> CallReport {
    let each = |requests: f64| requests / operation.calls.max(1) as f64;
    CallReport {
        kind: operation.kind,
        times: operation.times,
        per_s: a_second(operation.times.count as f64, elapsed),
        failed: operation.failed,
        mb_per_s: a_second(operation.bytes as f64 / 1e6, elapsed),
        device_reads_each: each(operation.device_reads),
        device_writes_each: each(operation.device_writes),
    }
}

fn program(program: &ProgramReadings) -> ProgramReport {
    let transactions = program.transactions.iter().map(|(kind, of)| {
        let per_s = a_second(of.count as f64, program.elapsed);
        (*kind, TransactionReport { times: *of, per_s })
    });
    ProgramReport {
        name: program.name.clone(),
        elapsed_s: program.elapsed.as_secs_f64(),
        transactions: map_of(transactions),
        figures: map_of(program.figures.iter().copied()),
        text: program.text.clone(),
        notes: program.notes.clone(),
    }
}

fn a_second(amount: f64, elapsed: Duration) -> f64 {
    if elapsed == Duration::ZERO {
        0.0
    } else {
        amount / elapsed.as_secs_f64()
    }
}

/// Returns the duration of the longest program in seconds; NaN without programs.
pub(crate) fn longest(hosts: &[HostReport]) -> f64 {
    let programs = hosts.iter().flat_map(|host| &host.programs);
    programs
        .map(|program| program.elapsed_s)
        // `f64::max` prefers a number to NaN.
        .fold(f64::NAN, f64::max)
}

impl HostReport {
    /// Returns the number of calls of all kinds.
    pub fn calls(&self) -> u64 {
        self.operations.iter().map(|call| call.times.count).sum()
    }

    /// Returns a sentence with the requests to the device for each kind of call; `None` if no kind
    /// needs more than a few.
    pub(crate) fn cost_in_words(&self) -> Option<String> {
        let each = |call: &CallReport| call.device_reads_each + call.device_writes_each;
        let mut dear: Vec<&CallReport> = self
            .operations
            .iter()
            .filter(|call| each(call) >= WORTH_WORDS)
            .collect();
        // A stable sort keeps the order of the kinds among equal costs.
        order_by(&mut dear, |one, other| each(other).total_cmp(&each(one)));
        let words: Vec<String> = dear
            .iter()
            .take(MOST_WORDS)
            .map(|call| call.cost())
            .collect();
        let (last, others) = words.split_last()?;
        let list = if others.is_empty() {
            last.clone()
        } else {
            format!("{} and {last}", others.join(", "))
        };
        Some(format!("On average {list}."))
    }
}

/// Least number of requests for a call that the sentence mentions.
const WORTH_WORDS: f64 = 0.1;
/// Largest number of kinds of calls that the sentence mentions.
const MOST_WORDS: usize = 4;

impl CallReport {
    fn cost(&self) -> String {
        let parts = [
            (self.device_reads_each, "reads"),
            (self.device_writes_each, "writes"),
        ];
        // Half of the mark: a call just worth words may have two kinds of requests just below the
        // mark.
        let parts = parts.iter().filter(|(each, _)| *each >= WORTH_WORDS / 2.0);
        let parts: Vec<String> = parts
            .map(|(each, what)| format!("{each:.1} {what}"))
            .collect();
        format!("one {} costs {}", self.kind, parts.join(" and "))
    }
}

/// A measure of a host. The name is the path below `hosts.NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfHost {
    /// Name of the host; `None` means the only host, or the first.
    pub host: Option<&'static str>,
    kind: &'static str,
    what: HostMeasure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostMeasure {
    /// Measure of calls of `kind`.
    Call(NumberUnit),
    /// Measure of transactions of the program `kind`.
    Transaction(&'static str, NumberUnit),
    Elapsed,
    /// Figure that the program `kind` reports.
    Figure(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberUnit {
    Count,
    PerSecond,
    MegabytesPerSecond,
    ReadsEach,
    WritesEach,
    Mean,
    P50,
    P95,
    P99,
    Max,
}

const NUMBERS: [(&str, NumberUnit); 10] = [
    ("count", NumberUnit::Count),
    ("per_s", NumberUnit::PerSecond),
    ("mb_per_s", NumberUnit::MegabytesPerSecond),
    ("device_reads_each", NumberUnit::ReadsEach),
    ("device_writes_each", NumberUnit::WritesEach),
    ("latency_ms.mean", NumberUnit::Mean),
    ("latency_ms.p50", NumberUnit::P50),
    ("latency_ms.p95", NumberUnit::P95),
    ("latency_ms.p99", NumberUnit::P99),
    ("latency_ms.max", NumberUnit::Max),
];

/// Figures that count served streams; more is better.
const STREAMS: [&str; 3] = ["sustained", "playing", "within_latency"];

fn number(name: &str) -> Option<NumberUnit> {
    let name = if name == "latency_ms" {
        "latency_ms.mean"
    } else {
        name
    };
    NUMBERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, number)| *number)
}

impl NumberUnit {
    fn name(self) -> &'static str {
        NUMBERS
            // Each number stands in the table.
            .iter()
            .find(|(_, number)| *number == self)
            .map_or("", |(name, _)| name)
    }

    fn of_times(self, times: &EventTimes) -> f64 {
        let LatencyDistribution {
            mean,
            p50,
            p95,
            p99,
            max,
        } = times.latency_ms;
        match self {
            NumberUnit::Count => times.count as f64,
            NumberUnit::Mean => mean,
            NumberUnit::P50 => p50,
            NumberUnit::P95 => p95,
            NumberUnit::P99 => p99,
            NumberUnit::Max => max,
            _ => f64::NAN,
        }
    }

    fn more_is_better(self) -> bool {
        matches!(
            self,
            NumberUnit::Count | NumberUnit::PerSecond | NumberUnit::MegabytesPerSecond
        )
    }
}

impl OfHost {
    /// Parses `name`: `hosts.NAME.operations.KIND...`, `hosts.NAME.programs.NAME...`, or, for the
    /// only host, the same without the first two parts.
    pub(crate) fn parse(name: &str) -> Option<OfHost> {
        let (host, rest) = match name.strip_prefix("hosts.") {
            Some(rest) => rest
                .split_once('.')
                .map(|(host, rest)| (Some(host), rest))?,
            None => (None, name),
        };
        let (section, rest) = rest.split_once('.')?;
        let (kind, rest) = rest.split_once('.')?;
        let what = match section {
            "operations" => HostMeasure::Call(number(rest)?),
            "programs" if rest == "elapsed_s" => HostMeasure::Elapsed,
            "programs" => match rest
                .strip_prefix("transactions.")
                .and_then(|rest| rest.split_once('.'))
            {
                Some((transaction, rest)) => {
                    HostMeasure::Transaction(kept(transaction), number(rest)?)
                }
                None => HostMeasure::Figure(kept(rest.strip_prefix("figures.").unwrap_or(rest))),
            },
            _ => return None,
        };
        Some(OfHost {
            host: host.map(kept),
            kind: kept(kind),
            what,
        })
    }

    pub(crate) fn name(&self) -> String {
        let host = self
            .host
            .map_or(String::new(), |host| format!("hosts.{host}."));
        let kind = self.kind;
        match self.what {
            HostMeasure::Call(number) => format!("{host}operations.{kind}.{}", number.name()),
            HostMeasure::Transaction(of, number) => {
                format!("{host}programs.{kind}.transactions.{of}.{}", number.name())
            }
            HostMeasure::Elapsed => format!("{host}programs.{kind}.elapsed_s"),
            HostMeasure::Figure(figure) => format!("{host}programs.{kind}.figures.{figure}"),
        }
    }

    pub(crate) fn meaning(&self) -> String {
        let kind = self.kind;
        match self.what {
            HostMeasure::Call(number) => format!("calls of kind {kind}: {}", number.name()),
            HostMeasure::Transaction(of, number) => {
                format!("transactions {of} of {kind}: {}", number.name())
            }
            HostMeasure::Elapsed => format!("how long {kind} ran"),
            HostMeasure::Figure(figure) => format!("figure of program {kind}: {figure}"),
        }
    }

    /// Returns true if a larger value is better. Short times are better. For figures of programs,
    /// high rates and high numbers of streams are better.
    pub(crate) fn more_is_better(&self) -> bool {
        match self.what {
            HostMeasure::Call(number) | HostMeasure::Transaction(_, number) => {
                number.more_is_better()
            }
            HostMeasure::Elapsed => false,
            HostMeasure::Figure(figure) => figure.ends_with("_per_s") || STREAMS.contains(&figure),
        }
    }

    pub(crate) fn value(&self, hosts: &[HostReport]) -> f64 {
        let host = match self.host {
            None => hosts.first(),
            Some(name) => hosts.iter().find(|host| host.name == name),
        };
        host.and_then(|host| self.of(host)).unwrap_or(f64::NAN)
    }

    /// Returns a message if no run has this measure. The message names the missing part and the
    /// known names. `runs` are the hosts of each run.
    pub(crate) fn absent(&self, runs: &[&[HostReport]]) -> Option<String> {
        let hosts: Vec<&HostReport> = match self.host {
            None => runs.iter().filter_map(|hosts| hosts.first()).collect(),
            Some(_) => runs.iter().flat_map(|hosts| hosts.iter()).collect(),
        };
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        let named = |host: &&&HostReport| self.host.is_none_or(|name| host.name == name);
        let hosts: Vec<&&HostReport> = hosts.iter().filter(named).collect();
        if hosts.is_empty() {
            return Some(unknown(
                "host with programs",
                self.host.unwrap_or(ONLY),
                names,
            ));
        }
        if let HostMeasure::Call(_) = self.what {
            let known: Vec<&str> = hosts
                .iter()
                .flat_map(|host| &host.operations)
                .map(|operation| operation.kind)
                .collect();
            return (!known.contains(&self.kind))
                .then(|| unknown("kind of call", self.kind, known));
        }
        let programs: Vec<&ProgramReport> = hosts.iter().flat_map(|host| &host.programs).collect();
        let names = programs
            .iter()
            .map(|program| program.name.as_str())
            .collect();
        let programs = || programs.iter().filter(|program| program.name == self.kind);
        if programs().next().is_none() {
            return Some(unknown("program", self.kind, names));
        }
        let (what, asked, known): (_, _, Vec<&str>) = match self.what {
            HostMeasure::Transaction(of, _) => {
                let known = programs().flat_map(|program| program.transactions.keys().copied());
                ("transaction", of, known.collect())
            }
            HostMeasure::Figure(figure) => {
                let known = programs().flat_map(|program| program.figures.keys().copied());
                ("figure", figure, known.collect())
            }
            HostMeasure::Elapsed | HostMeasure::Call(_) => return None,
        };
        (!known.contains(&asked))
            .then(|| unknown(&format!("{what} of {}", self.kind), asked, known))
    }

    fn of(&self, host: &HostReport) -> Option<f64> {
        if let HostMeasure::Call(number) = self.what {
            let call = host.operations.iter().find(|call| call.kind == self.kind)?;
            return Some(match number {
                NumberUnit::PerSecond => call.per_s,
                NumberUnit::MegabytesPerSecond => call.mb_per_s,
                NumberUnit::ReadsEach => call.device_reads_each,
                NumberUnit::WritesEach => call.device_writes_each,
                other => other.of_times(&call.times),
            });
        }
        let program = host
            .programs
            .iter()
            .find(|program| program.name == self.kind)?;
        match self.what {
            HostMeasure::Transaction(of, number) => {
                let transactions = program.transactions.get(of)?;
                Some(match number {
                    NumberUnit::PerSecond => transactions.per_s,
                    other => other.of_times(&transactions.times),
                })
            }
            HostMeasure::Elapsed => Some(program.elapsed_s),
            HostMeasure::Figure(figure) => program.figures.get(figure).copied(),
            // Handled above.
            HostMeasure::Call(_) => None,
        }
    }
}

/// Returns a sentence with the known names.
pub(crate) fn unknown(what: &str, asked: &str, known: Vec<&str>) -> String {
    // Several hosts and runs have the same names. The set keeps each once, in alphabetical order.
    let known: BTreeSet<&str> = known.into_iter().collect();
    let known: Vec<&str> = known.into_iter().collect();
    let near = nearest(asked, &known);
    let list = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    format!("no run has a {what} `{asked}`{near}; there are: {list}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings() -> Vec<HostReadings> {
        let latency_ms = LatencyDistribution {
            mean: 2.0,
            p50: 1.0,
            p95: 4.0,
            p99: 5.0,
            max: 6.0,
        };
        let times = EventTimes {
            count: 4,
            latency_ms,
        };
        vec![HostReadings {
            name: "vm2".into(),
            elapsed: Duration::from_secs(2),
            operations: vec![OperationReadings {
                kind: "fsync",
                times,
                device_writes: 10.0,
                calls: 5,
                ..OperationReadings::default()
            }],
            programs: vec![ProgramReadings {
                name: "mail".into(),
                elapsed: Duration::from_secs(4),
                transactions: vec![("create", times)],
                figures: vec![("read_mb_per_s", 7.0)],
                ..ProgramReadings::default()
            }],
            dirty_mb: Vec::new(),
        }]
    }

    #[test]
    fn each_number_is_found_by_its_path_with_and_without_the_host() {
        let hosts = host_reports(&readings());
        for (name, value, more) in [
            ("hosts.vm2.operations.fsync.latency_ms.p99", 5.0, false),
            ("hosts.vm2.operations.fsync.per_s", 2.0, true),
            ("operations.fsync.device_writes_each", 2.0, false),
            ("programs.mail.elapsed_s", 4.0, false),
            (
                "hosts.vm2.programs.mail.transactions.create.per_s",
                1.0,
                true,
            ),
            ("programs.mail.figures.read_mb_per_s", 7.0, true),
        ] {
            let metric = OfHost::parse(name).unwrap();
            assert_eq!(
                (metric.name().as_str(), metric.value(&hosts)),
                (name, value)
            );
            assert_eq!(metric.more_is_better(), more, "{name}");
        }
        assert!(
            OfHost::parse("hosts.vm1.operations.fsync.per_s")
                .unwrap()
                .value(&hosts)
                .is_nan()
        );
        for wrong in [
            "hosts.vm2.operations.fsync.p98",
            "hosts.vm2",
            "operations.fsync",
            "hosts.vm2.speed.x.y",
        ] {
            assert_eq!(OfHost::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_no_run_has_is_named_with_what_there_is() {
        let hosts = host_reports(&readings());
        let other = host_reports(&[HostReadings {
            name: "vm2".into(),
            ..HostReadings::default()
        }]);
        for (name, parts) in [
            (
                "hosts.vm3.operations.fsync.per_s",
                ["host with programs `vm3`", "vm2"],
            ),
            (
                "hosts.vm2.operations.fsyncs.per_s",
                ["kind of call `fsyncs`", "did you mean `fsync`"],
            ),
            (
                "hosts.vm2.programs.nosuch.transactions_per_s",
                ["program `nosuch`", "there are: mail"],
            ),
            (
                "programs.mail.transactions.creates.per_s",
                ["transaction of mail `creates`", "create"],
            ),
            (
                "programs.mail.read_mb",
                ["figure of mail `read_mb`", "read_mb_per_s"],
            ),
        ] {
            let absent = OfHost::parse(name).unwrap().absent(&[&hosts, &other]);
            let message = absent.unwrap_or_else(|| panic!("{name}"));
            assert!(
                parts.iter().all(|part| message.contains(part)),
                "{name}: {message}"
            );
        }
        // A measure counts as known if one of the runs has the measure.
        for name in [
            "programs.mail.read_mb_per_s",
            "hosts.vm2.programs.mail.elapsed_s",
            "operations.fsync.per_s",
        ] {
            assert_eq!(
                OfHost::parse(name).unwrap().absent(&[&other, &hosts]),
                None,
                "{name}"
            );
        }
        let none = OfHost::parse("programs.mail.elapsed_s")
            .unwrap()
            .absent(&[&[]])
            .unwrap();
        assert!(none.ends_with("there are: none"), "{none}");
    }

    #[test]
    fn the_only_host_is_called_host() {
        let only = HostReadings {
            name: String::new(),
            ..readings().remove(0)
        };
        let hosts = host_reports(&[only]);
        assert_eq!(
            OfHost::parse("hosts.host.operations.fsync.count")
                .unwrap()
                .value(&hosts),
            4.0
        );
    }
}
