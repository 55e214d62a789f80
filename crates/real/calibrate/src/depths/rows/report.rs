//! A report of fio as JSON.

use super::{DepthRow, size};
use crate::depths::DepthsError;
use serde_json::Value;

/// Nanoseconds of a millisecond, for fio 3.
const NANOSECOND_MS: f64 = 1e-6;
/// Microseconds of a millisecond, for fio 2.
const MICROSECOND_MS: f64 = 1e-3;
/// Keys of latencies and the factors from their units to ms.
const LATENCIES: [(&str, f64); 4] = [
    ("lat_ns", NANOSECOND_MS),
    ("clat_ns", NANOSECOND_MS),
    ("lat", MICROSECOND_MS),
    ("clat", MICROSECOND_MS),
];

/// Reads the jobs of a report of fio.
pub(super) fn of_json(file: &str, text: &str) -> Result<Vec<DepthRow>, DepthsError> {
    let fail = |found: String| {
        DepthsError::row(
            file,
            "the report",
            found,
            "what fio writes with --output-format=json",
        )
    };
    // Notices of fio may stand before and behind the JSON text.
    let begin = text.find('{').ok_or_else(|| fail("no `{`".into()))?;
    let report: Value = serde_json::Deserializer::from_str(&text[begin..])
        .into_iter()
        .next()
        .ok_or_else(|| fail("nothing".into()))?
        .map_err(|error| fail(format!("JSON that cannot be read: {error}")))?;
    let jobs = report
        .get("jobs")
        .and_then(Value::as_array)
        .ok_or_else(|| fail("no list `jobs`".into()))?;
    let global = &report["global options"];
    let mut rows: Vec<DepthRow> = Vec::new();
    // Jobs of one group run at the same time.
    let mut groups: Vec<JobGroup> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let name = job["jobname"].as_str().unwrap_or_default();
        let place = format!("job {} `{name}`", number + 1);
        let found = of_job(file, &place, job, global)?;
        let Some(id) = job["groupid"].as_u64().filter(|_| !found.is_empty()) else {
            rows.extend(found);
            continue;
        };
        let options = &job["job options"];
        match groups.iter_mut().find(|group| group.id == id) {
            None => {
                groups.push(JobGroup {
                    id,
                    place,
                    name,
                    options,
                    first: rows.len(),
                    parts: 1.0,
                });
                rows.extend(found);
            }
            // Without `group_reporting`, each of the `numjobs` processes is a job of the report.
            Some(group) if group.name == name && group.options == options => {
                group.parts += 1.0;
                for (row, part) in rows[group.first..].iter_mut().zip(&found) {
                    row.join(part, group.parts);
                }
            }
            Some(group) => {
                return Err(DepthsError::row(
                    file,
                    place,
                    format!("a job that ran at the same time as {}", group.place),
                    "jobs one after the other, by `stonewall` in each job",
                ));
            }
        }
    }
    Ok(rows)
}

/// The jobs of a report that ran at the same time.
struct JobGroup<'a> {
    id: u64,
    place: String,
    name: &'a str,
    options: &'a Value,
    /// Index of the first row of the group.
    first: usize,
    /// Number of processes so far.
    parts: f64,
}

impl DepthRow {
    /// Adds process number `parts` of the same job.
    fn join(&mut self, part: &DepthRow, parts: f64) {
        let mean = |one: f64, other: f64| one + (other - one) / parts;
        let both = |one: Option<f64>, other: Option<f64>| Some(mean(one?, other?));
        self.per_s += part.per_s;
        self.mean_ms = mean(self.mean_ms, part.mean_ms);
        self.deviation_ms = both(self.deviation_ms, part.deviation_ms);
        self.p99_ms = both(self.p99_ms, part.p99_ms);
        let longest = [self.longest_ms, part.longest_ms].into_iter().flatten();
        self.longest_ms = longest.reduce(f64::max);
    }
}

fn of_job(
    file: &str,
    place: &str,
    job: &Value,
    global: &Value,
) -> Result<Vec<DepthRow>, DepthsError> {
    let option = |key: &str| {
        let given = [&job["job options"], global].map(|options| options[key].as_str());
        given.into_iter().flatten().next()
    };
    let missing = |key: &str| {
        DepthsError::row(
            file,
            place,
            format!("no `{key}` in `job options` or `global options`"),
            "a report with the options of its jobs, as fio 2.99 and later write it",
        )
    };
    let depth = option("iodepth").ok_or_else(|| missing("iodepth"))?;
    let depth: u32 = depth
        .parse()
        .map_err(|_| DepthsError::row(file, place, format!("iodepth `{depth}`"), "a number"))?;
    let jobs: u32 = option("numjobs").map_or(Ok(1), |jobs| {
        jobs.parse()
            .map_err(|_| DepthsError::row(file, place, format!("numjobs `{jobs}`"), "a number"))
    })?;
    let rw = option("rw")
        .or(option("readwrite"))
        .ok_or_else(|| missing("rw"))?;
    let bs = option("bs").or(option("blocksize")).unwrap_or("4k");
    let bytes = size(bs)
        .ok_or_else(|| DepthsError::row(file, place, format!("bs `{bs}`"), "a size as in 4k"))?;
    let mut rows = Vec::new();
    for (direction, name) in [("read", "read"), ("write", "write")] {
        let part = &job[direction];
        if part["total_ios"].as_u64().is_none_or(|ios| ios == 0) {
            continue;
        }
        let (latency, unit) = latency(part).ok_or_else(|| {
            DepthsError::row(file, place, "no mean latency", "`lat_ns` or `clat_ns`")
        })?;
        let ms = |key: &str| latency[key].as_f64().map(|value| value * unit);
        let percentile = |name: &str| {
            LATENCIES.into_iter().find_map(|(key, unit)| {
                part[key]["percentile"][name]
                    .as_f64()
                    .map(|value| value * unit)
            })
        };
        rows.push(DepthRow {
            source: format!("{file}, {place}"),
            rw: kind(rw, name),
            covers: option("size").map(str::to_owned),
            bytes,
            depth: depth.max(1) * jobs.max(1),
            jobs,
            per_s: part["iops"].as_f64().unwrap_or(0.0),
            mean_ms: ms("mean").unwrap_or(0.0),
            deviation_ms: ms("stddev"),
            middle_ms: percentile("10.000000").zip(percentile("90.000000")),
            p99_ms: percentile("99.000000"),
            longest_ms: ms("max"),
        });
    }
    Ok(rows)
}

/// Returns the latency of a direction and the factor from its unit to ms.
fn latency(part: &Value) -> Option<(&Value, f64)> {
    let has_mean = |key: &str| part[key]["mean"].as_f64().is_some_and(|mean| mean > 0.0);
    let (key, unit) = LATENCIES.into_iter().find(|(key, _)| has_mean(key))?;
    Some((&part[key], unit))
}

/// Returns the kind of a row: `randread` for the random reads of a job that only reads. A mixed job
/// keeps its own `rw`, because its reads wait for its writes.
fn kind(rw: &str, direction: &str) -> String {
    // `randread:8` means eight requests for each random address.
    let kind = rw.split(':').next().unwrap_or(rw);
    match kind {
        "randread" | "randwrite" | "read" | "write" => kind.to_owned(),
        "rw" | "readwrite" | "randrw" => kind.to_owned(),
        _ => format!("{kind} {direction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = r#"{"fio version": "fio-3.36", "global options": {"bs": "4k", "rw": "randread"}, "jobs": [
        {"jobname": "d8", "job options": {"iodepth": "8"},
         "read": {"total_ios": 100, "iops": 86.5, "clat_ns": {"mean": 92400000.0, "stddev": 8300000.0, "max": 127000000, "percentile": {"99.000000": 111700000}}},
         "write": {"total_ios": 0}}]}"#;

    #[test]
    fn a_job_of_fio_is_a_row_with_its_depth() {
        let rows = of_json("r.json", JOB).unwrap();
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!(
            (row.rw.as_str(), row.depth, row.bytes),
            ("randread", 8, 4096)
        );
        let p99 = row.p99_ms.unwrap();
        assert!((row.mean_ms - 92.4).abs() < 1e-9 && (p99 - 111.7).abs() < 1e-9);
    }

    #[test]
    fn a_job_without_a_depth_is_named() {
        let text = JOB.replace(r#""iodepth": "8""#, r#""ioengine": "sync""#);
        let error = of_json("r.json", &text).unwrap_err().to_string();
        assert!(
            error.contains("job 1 `d8`") && error.contains("iodepth"),
            "{error}"
        );
    }

    /// A report of two jobs of one group, with the options of the second.
    fn two(name: &str, options: &str) -> String {
        let job = |name: &str, options: &str| {
            format!(
                r#"{{"jobname": "{name}", "groupid": 0, "job options": {options},
                "read": {{"total_ios": 100, "iops": 40, "clat_ns": {{"mean": 100000000.0}}}}, "write": {{"total_ios": 0}}}}"#
            )
        };
        format!(
            r#"{{"global options": {{"bs": "4k", "rw": "randread"}}, "jobs": [{}, {}]}}"#,
            job("d8", r#"{"iodepth": "4", "numjobs": "2"}"#),
            job(name, options)
        )
    }

    #[test]
    fn processes_of_one_job_are_one_row() {
        let rows = of_json("r.json", &two("d8", r#"{"iodepth": "4", "numjobs": "2"}"#)).unwrap();
        assert_eq!(rows.len(), 1);
        let (per_s, mean_ms) = (rows[0].per_s, rows[0].mean_ms);
        assert_eq!((rows[0].depth, per_s, mean_ms.round()), (8, 80.0, 100.0));
    }

    #[test]
    fn jobs_that_ran_side_by_side_are_refused() {
        let error = of_json("r.json", &two("w", r#"{"iodepth": "1"}"#))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("job 2 `w`")
                && error.contains("job 1 `d8`")
                && error.contains("stonewall"),
            "{error}"
        );
    }

    #[test]
    fn reads_of_a_mixed_job_are_no_random_reads() {
        let text = JOB.replace(r#""rw": "randread""#, r#""rw": "randrw""#);
        assert_eq!(of_json("r.json", &text).unwrap()[0].rw, "randrw");
    }
}
