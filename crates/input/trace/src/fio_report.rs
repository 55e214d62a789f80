//! fio's report of a run as JSON (`--output-format=json` or `json+`): totals and percentiles of
//! jobs, without requests.

use crate::input::BUFFER_BYTES;
use crate::{TraceError, source};
use comfy_table::{CellAlignment, Table, presets};
use fullstroke_contract::{Reason, reason};
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::io::Read as _;
use std::path::Path;

/// Largest size of a report in bytes. `json+` with all buckets has a few MB for each job.
const BYTES_MAX: u64 = 256 << 20;
/// First key of a report.
const MARK: &[u8] = b"\"fio version\"";
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
const NANOSECOND_MS: f64 = 1e-6;
const MICROSECOND_MS: f64 = 1e-3;

/// A report of fio.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FioReport {
    /// File of the report.
    pub file: String,
    /// Version string of fio.
    pub fio_version: String,
    /// Jobs, in the order of the report.
    pub jobs: Vec<FioJob>,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FioJob {
    /// Name of the job.
    pub name: String,
    /// Directions with I/O.
    pub directions: Vec<FioDirection>,
}

/// Results of one job in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FioDirection {
    /// read, write or trim.
    pub operation: &'static str,
    /// Number of requests.
    pub requests: u64,
    /// Run time in seconds.
    pub duration_s: f64,
    /// Requests per second.
    pub iops: f64,
    /// Megabytes (10^6) per second.
    pub mb_per_s: f64,
    /// Mean response time, from submission to completion.
    pub response_ms_mean: Option<f64>,
    /// Shortest response time.
    pub response_ms_min: Option<f64>,
    /// Longest response time.
    pub response_ms_max: Option<f64>,
    /// Latency of the percentiles: `lat` (from submission) or `clat` (from issue), depending on the
    /// data in the report.
    pub percentiles_of: Option<&'static str>,
    /// Median latency.
    pub p50_ms: Option<f64>,
    /// 90th percentile of the latency.
    pub p90_ms: Option<f64>,
    /// 99th percentile of the latency.
    pub p99_ms: Option<f64>,
}

impl FioReport {
    /// Returns true if a file with this beginning is a report.
    pub(crate) fn recognise(head: &[u8]) -> bool {
        memchr::memmem::find(head, MARK).is_some() && head.contains(&b'{')
    }

    /// Reads the report at `path`, packed or not.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not such a report.
    pub fn read(path: &Path) -> Result<FioReport, TraceError> {
        let file = path.display().to_string();
        let mut text = Vec::new();
        source::open(path, BUFFER_BYTES)?
            .take(BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|source| TraceError::from_io(file.clone(), source))?;
        FioReport::of(&file, &text).map_err(|what| {
            TraceError::Option(format!(
                "`{file}`: {what}; expected a report that fio wrote with --output-format=json"
            ))
        })
    }

    fn of(file: &str, text: &[u8]) -> Result<FioReport, Reason> {
        // Notices of fio may stand before and behind the JSON text.
        let begin = memchr::memchr(b'{', text).ok_or("found no `{`")?;
        let value = serde_json::Deserializer::from_slice(&text[begin..])
            .into_iter::<Value>()
            .next()
            .ok_or("found nothing")?
            .map_err(|error| reason!("found JSON that cannot be read: {error}"))?;
        let version = value
            .get("fio version")
            .and_then(Value::as_str)
            .ok_or("found no key `fio version`")?;
        let jobs = value
            .get("jobs")
            .or(value.get("client_stats"))
            .and_then(Value::as_array);
        Ok(FioReport {
            file: file.to_owned(),
            fio_version: version.to_owned(),
            jobs: jobs
                .ok_or("found no list `jobs`")?
                .iter()
                .map(job)
                .collect(),
        })
    }
}

fn job(value: &Value) -> FioJob {
    let name = value
        .get("jobname")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let directions = DIRECTIONS
        .into_iter()
        .filter_map(|operation| direction(operation, value.get(operation)?));
    FioJob {
        name,
        directions: directions.collect(),
    }
}

fn direction(operation: &'static str, value: &Value) -> Option<FioDirection> {
    let number = |key: &str| value.get(key).and_then(Value::as_f64);
    let requests = value
        .get("total_ios")
        .and_then(Value::as_u64)
        .filter(|&requests| requests > 0)?;
    let (total, unit) = latency(value, "lat");
    let response = |key: &str| Some(total?.get(key)?.as_f64()? * unit);
    let percentiles = ["lat", "clat"].into_iter().find_map(|name| {
        let (latency, unit) = latency(value, name);
        Some((name, latency?.get("percentile")?.as_object()?, unit))
    });
    let percentile = |key: &str| {
        let (_, values, unit) = percentiles?;
        Some(values.get(key)?.as_f64()? * unit)
    };
    // Old versions of fio report `bw` in KiB only.
    let kib_per_s = || number("bw").map(|rate| rate * 1024.0);
    Some(FioDirection {
        operation,
        requests,
        // `runtime` is in milliseconds.
        duration_s: number("runtime").unwrap_or(0.0) / 1e3,
        iops: number("iops").unwrap_or(0.0),
        mb_per_s: number("bw_bytes").or_else(kib_per_s).unwrap_or(0.0) / 1e6,
        response_ms_mean: response("mean"),
        response_ms_min: response("min"),
        response_ms_max: response("max"),
        percentiles_of: percentiles.map(|(name, _, _)| name),
        p50_ms: percentile("50.000000"),
        p90_ms: percentile("90.000000"),
        p99_ms: percentile("99.000000"),
    })
}

/// Returns a latency, and the factor from its unit to ms: fio 3 uses ns, fio 2 us.
fn latency<'v>(value: &'v Value, name: &str) -> (Option<&'v Value>, f64) {
    match value.get(format!("{name}_ns")) {
        Some(latency) => (Some(latency), NANOSECOND_MS),
        None => (value.get(name), MICROSECOND_MS),
    }
}

impl fmt::Display for FioReport {
    /// Prints the report as text. Programs use serde instead.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: a report of {}, which has no requests to simulate",
            self.file, self.fio_version
        )?;
        writeln!(f)?;
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "job",
            "",
            "requests",
            "requests/s",
            "MB/s",
            "mean ms",
            "p50",
            "p90",
            "p99",
            "max",
        ]);
        for (job, of) in self
            .jobs
            .iter()
            .flat_map(|job| job.directions.iter().map(move |of| (job, of)))
        {
            let figure =
                |value: Option<f64>| value.map(|value| format!("{value:.3}")).unwrap_or_default();
            table.add_row([
                job.name.clone(),
                of.operation.to_owned(),
                of.requests.to_string(),
                format!("{:.1}", of.iops),
                format!("{:.3}", of.mb_per_s),
                figure(of.response_ms_mean),
                figure(of.p50_ms),
                figure(of.p90_ms),
                figure(of.p99_ms),
                figure(of.response_ms_max),
            ]);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        write!(f, "{}", table.trim_fmt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{ "fio version" : "fio-3.33", "jobs" : [ { "jobname" : "oltp",
  "read" : { "bw_bytes" : 22528000, "bw" : 22000, "iops" : 5500.0, "runtime" : 18, "total_ios" : 99,
    "clat_ns" : { "percentile" : { "50.000000" : 60672, "90.000000" : 98816, "99.000000" : 4227072 } },
    "lat_ns" : { "min" : 29817, "max" : 5519586, "mean" : 229027.5 } },
  "write" : { "total_ios" : 0 }, "sync" : { "total_ios" : 0 } } ] }
"#;

    #[test]
    fn a_report_has_rates_and_percentiles_of_the_directions_that_were_used() {
        assert!(FioReport::recognise(REPORT.as_bytes()));
        let report = FioReport::of("job.json", REPORT.as_bytes()).unwrap();
        let [read] = report.jobs[0].directions.as_slice() else {
            panic!("{report:?}")
        };
        assert_eq!(
            (read.operation, read.requests, read.iops, read.mb_per_s),
            ("read", 99, 5500.0, 22.528)
        );
        assert!(
            (read.response_ms_max.unwrap() - 5.519_586).abs() < 1e-9,
            "{read:?}"
        );
        assert!((read.p50_ms.unwrap() - 0.060_672).abs() < 1e-9, "{read:?}");
        assert_eq!(
            (read.percentiles_of, read.duration_s),
            (Some("clat"), 0.018)
        );
        assert!(report.to_string().contains("oltp"), "{report}");
    }

    #[test]
    fn what_is_no_report_is_said() {
        for text in [
            "",
            "{",
            "{}",
            r#"{"fio version": "fio-3.33"}"#,
            r#"{"fio version": 3, "jobs": []}"#,
        ] {
            assert!(
                FioReport::of("job.json", text.as_bytes()).is_err(),
                "{text}"
            );
        }
    }
}
