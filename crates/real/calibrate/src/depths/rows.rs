//! Response times by queue depth: fio's report as JSON, or a CSV file with a header.

mod report;
mod table;

use super::DepthsError;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Response times of one kind of request at one depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DepthRow {
    /// File and job or line.
    pub source: String,
    /// `randread`, `randwrite`, `read` or `write`. Reads and writes of one mixed job have the
    /// job's own `rw`, as in `randrw`.
    pub rw: String,
    /// Part of the disk that the requests cover, as fio's `size` states the part: `100G`, `50%`.
    /// `None` without a `size`.
    pub covers: Option<String>,
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

#[cfg(test)]
impl DepthRow {
    /// Returns a row of random requests of 4 KiB all over the disk, which kept their depth.
    pub(crate) fn random(rw: &str, depth: u32, mean_ms: f64) -> DepthRow {
        DepthRow {
            source: format!("t.csv, line {depth}"),
            rw: rw.to_owned(),
            covers: None,
            bytes: 4096,
            depth,
            jobs: 1,
            per_s: f64::from(depth) * 1000.0 / mean_ms,
            mean_ms,
            deviation_ms: None,
            middle_ms: None,
            p99_ms: None,
            longest_ms: None,
        }
    }
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
            rows.extend(table::of_csv(&file, &text)?);
        } else {
            rows.extend(report::of_json(&file, &text)?);
        }
    }
    if rows.is_empty() && !paths.is_empty() {
        let file = paths[0].display().to_string();
        return Err(DepthsError::row(
            &file,
            "the rows",
            "none with a request",
            "random reads at depth 1 and at least one more depth",
        ));
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
    // A folder lists its files in any order, and the first of equal rows counts.
    found.sort();
    Ok(found)
}

/// Reads a size as fio writes it: a number with k, m, g or t, in powers of 1024.
pub(super) fn size(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let factor = match &lower[digits.len()..] {
        "" | "b" => 1,
        // "kb"|fio's suffixes are powers of 1024 (`kb_base=1024`).
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(factor)
}
