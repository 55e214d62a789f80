//! A CSV file with a header, as fio-plot writes such a file.

use super::{DepthRow, size};
use crate::depths::DepthsError;

/// Columns that a CSV file must have.
const COLUMNS: [&str; 4] = ["rw", "bs", "iodepth", "iops"];

/// Reads a CSV file with a header, as fio-plot writes it.
pub(super) fn of_csv(file: &str, text: &str) -> Result<Vec<DepthRow>, DepthsError> {
    // Spreadsheets begin a file with a byte order mark.
    let mut lines = text.trim_start_matches('\u{feff}').lines();
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
            covers: text("size")
                .filter(|size| !size.is_empty())
                .map(str::to_owned),
            bytes,
            depth: (depth * jobs) as u32,
            jobs: jobs as u32,
            per_s,
            // Little's law gives the mean if the table has no column of latencies.
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
