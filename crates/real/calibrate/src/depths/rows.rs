//! Response times by queue depth: fio's report as JSON, or a CSV file with a header.

use super::DepthsError;
use serde::Serialize;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Nanoseconds of a millisecond, for fio 3.
const NANOSECOND_MS: f64 = 1e-6;
/// Microseconds of a millisecond, for fio 2.
const MICROSECOND_MS: f64 = 1e-3;
/// Columns that a CSV file must have.
const COLUMNS: [&str; 4] = ["rw", "bs", "iodepth", "iops"];

/// Response times of one kind of request at one depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DepthRow {
    /// File and job or line.
    pub source: String,
    /// `randread`, `randwrite`, `read` or `write`.
    pub rw: String,
    /// Size of a request in bytes.
    pub bytes: u64,
    /// Number of outstanding requests: fio's iodepth times numjobs.
    pub depth: u32,
    /// Number of jobs.
    pub jobs: u32,
    /// Requests a second of all jobs.
    pub per_s: f64,
    /// Mean response time in ms.
    pub mean_ms: f64,
    /// Standard deviation in ms.
    pub deviation_ms: Option<f64>,
    /// 10th and 90th percentile in ms.
    pub middle_ms: Option<(f64, f64)>,
    /// 99th percentile in ms.
    pub p99_ms: Option<f64>,
    /// Longest response time in ms.
    pub longest_ms: Option<f64>,
}

/// Reads all rows of the given files. A folder stands for its files that end in `.json` or `.csv`.
///
/// # Errors
/// Names the file, the row and what the row lacks.
pub fn read_rows(paths: &[PathBuf]) -> Result<Vec<DepthRow>, DepthsError> {
    let mut rows = Vec::new();
    for path in files(paths)? {
        let file = path.display().to_string();
        let text = fs::read_to_string(&path).map_err(|source| DepthsError::Io {
            file: file.clone(),
            source,
        })?;
        if path.extension().is_some_and(|extension| extension == "csv") {
            rows.extend(of_csv(&file, &text)?);
        } else {
            rows.extend(of_json(&file, &text)?);
        }
    }
    Ok(rows)
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, DepthsError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let found = within(path).map_err(|source| DepthsError::Io {
            file: path.display().to_string(),
            source,
        })?;
        if found.is_empty() {
            let file = path.display().to_string();
            return Err(DepthsError::row(
                &file,
                "the folder",
                "no file that ends in .json or .csv",
                "reports of fio (--output-format=json)",
            ));
        }
        files.extend(found);
    }
    Ok(files)
}

fn within(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let wanted = ["json", "csv"].map(|end| path.extension().is_some_and(|own| own == end));
        if wanted.contains(&true) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the jobs of a report of fio.
fn of_json(file: &str, text: &str) -> Result<Vec<DepthRow>, DepthsError> {
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
    let mut rows = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let name = job["jobname"].as_str().unwrap_or_default();
        let place = format!("job {} `{name}`", number + 1);
        rows.extend(of_job(file, &place, job, global)?);
    }
    Ok(rows)
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
        let random = rw.starts_with("rand");
        let (latency, unit) = latency(part).ok_or_else(|| {
            DepthsError::row(file, place, "no mean latency", "`lat_ns` or `clat_ns`")
        })?;
        let ms = |key: &str| latency[key].as_f64().map(|value| value * unit);
        let percentile = |name: &str| {
            ["lat_ns", "clat_ns"].into_iter().find_map(|key| {
                part[key]["percentile"][name]
                    .as_f64()
                    .map(|value| value * NANOSECOND_MS)
            })
        };
        rows.push(DepthRow {
            source: format!("{file}, {place}"),
            rw: format!("{}{name}", if random { "rand" } else { "" }),
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
    let keys = [
        ("lat_ns", NANOSECOND_MS),
        ("clat_ns", NANOSECOND_MS),
        ("lat", MICROSECOND_MS),
        ("clat", MICROSECOND_MS),
    ];
    let has_mean = |key: &str| part[key]["mean"].as_f64().is_some_and(|mean| mean > 0.0);
    let (key, unit) = keys.into_iter().find(|(key, _)| has_mean(key))?;
    Some((&part[key], unit))
}

/// Reads a size as fio writes it: a number with k, m or g, in powers of 1024.
fn size(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let factor = match &lower[digits.len()..] {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    Some(number * factor)
}

/// Reads a CSV file with a header, as fio-plot writes it.
fn of_csv(file: &str, text: &str) -> Result<Vec<DepthRow>, DepthsError> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| header.iter().position(|own| own.trim() == name);
    if let Some(missing) = COLUMNS.iter().find(|name| column(name).is_none()) {
        return Err(DepthsError::row(
            file,
            "line 1",
            format!("no column `{missing}`"),
            format!("a header with {}", COLUMNS.join(", ")),
        ));
    }
    let mut rows = Vec::new();
    for (number, line) in lines
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let place = format!("line {}", number + 2);
        let fields: Vec<&str> = line.split(',').collect();
        let text = |name: &str| {
            column(name)
                .and_then(|at| fields.get(at))
                .map(|text| text.trim())
        };
        let number = |name: &str| {
            let found = text(name).unwrap_or_default();
            found.parse::<f64>().map_err(|_| {
                DepthsError::row(file, &*place, format!("{name} `{found}`"), "a number")
            })
        };
        let optional = |name: &str| number(name).ok();
        let depth = number("iodepth")?;
        let jobs = optional("numjobs").unwrap_or(1.0);
        let per_s = number("iops")?;
        let bs = text("bs").unwrap_or_default();
        let bytes = size(bs).ok_or_else(|| {
            DepthsError::row(file, &*place, format!("bs `{bs}`"), "a size as in 4k")
        })?;
        if !(depth >= 1.0 && jobs >= 1.0 && per_s > 0.0) {
            let found = format!("iodepth {depth}, numjobs {jobs}, iops {per_s}");
            return Err(DepthsError::row(file, &*place, found, "numbers above 0"));
        }
        rows.push(DepthRow {
            source: format!("{file}, {place}"),
            rw: text("rw").unwrap_or_default().to_owned(),
            bytes,
            depth: (depth * jobs) as u32,
            jobs: jobs as u32,
            per_s,
            mean_ms: optional("clat_mean_ms").unwrap_or(1000.0 * depth * jobs / per_s),
            deviation_ms: optional("clat_stddev_ms"),
            middle_ms: optional("p10").zip(optional("p90")),
            p99_ms: optional("p99"),
            longest_ms: optional("clat_max_ms"),
        });
    }
    Ok(rows)
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

    #[test]
    fn a_line_of_a_table_that_is_no_number_is_named() {
        let text = "rw,bs,iodepth,iops\nrandread,4k,1,72\nrandread,4k,deep,80\n";
        let error = of_csv("t.csv", text).unwrap_err().to_string();
        assert!(
            error.contains("line 3") && error.contains("deep"),
            "{error}"
        );
        let error = of_csv("t.csv", "rw,bs,iops\n").unwrap_err().to_string();
        assert!(error.contains("no column `iodepth`"), "{error}");
    }
}
