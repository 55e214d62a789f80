//! The grid of rows by depth, and rows that cannot be used.

use super::rows::size;
use super::{DepthRow, DepthsError};
use fullstroke_units::Bytes;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Size in bytes of the requests that are fitted, if the rows have several sizes.
pub(super) const USUAL_BYTES: u64 = 4096;
/// Largest depth of a drive. NCQ has 32 command tags (SATA 2.5).
const DEPTH_MAX: u32 = 32;
/// Outstanding requests over the depth of a row, by Little's law.
const OUTSTANDING: RangeInclusive<f64> = 0.7..=1.4;
/// Least share of the disk that random requests cover.
const COVERED_MIN: f64 = 0.9;

/// Refuses rows of which none is of a kind that the fit uses.
pub(super) fn usable(rows: &[DepthRow]) -> Result<(), DepthsError> {
    let used = |row: &DepthRow| ["randread", "randwrite", "read", "write"].contains(&&*row.rw);
    match rows.first() {
        Some(first) if !rows.iter().any(used) => Err(DepthsError::Grid(format!(
            "{}: found rw `{}`; expected rw=randread at depth 1 and at least one more, and rw=randwrite for the write \
             cache: the reads of a mixed job wait for its writes",
            first.source, first.rw
        ))),
        _ => Ok(()),
    }
}

/// Returns the rows of one kind and size, one for each depth, with the fewest jobs.
pub(super) fn grid(
    rows: &[DepthRow],
    rw: &str,
    disk: Bytes,
) -> Result<BTreeMap<u32, DepthRow>, DepthsError> {
    let of_kind: Vec<&DepthRow> = rows.iter().filter(|row| row.rw == rw).collect();
    let Some(first) = of_kind.first().copied() else {
        return Ok(BTreeMap::new());
    };
    let usual = of_kind.iter().any(|row| row.bytes == USUAL_BYTES);
    let bytes = if usual { USUAL_BYTES } else { first.bytes };
    let mut grid: BTreeMap<u32, DepthRow> = BTreeMap::new();
    for row in of_kind.into_iter().filter(|row| row.bytes == bytes) {
        match grid.get(&row.depth) {
            Some(kept) if kept.jobs <= row.jobs => {}
            _ => _ = grid.insert(row.depth, row.clone()),
        }
    }
    let depths: Vec<String> = grid.keys().map(u32::to_string).collect();
    // Beyond the depth of the drive, requests wait in the host.
    grid.retain(|&depth, _| depth <= DEPTH_MAX);
    let enough = match rw {
        "randread" => grid.len() >= 2 && grid.contains_key(&1),
        _ => !grid.is_empty(),
    };
    if !enough {
        let expected = match rw {
            "randread" => "depth 1 and at least one more up to 32, as in 1, 4, 16, 32",
            _ => "a depth up to 32",
        };
        return Err(DepthsError::Grid(format!(
            "{rw}, {bytes} bytes: found depth {} ({}); expected {expected}",
            depths.join(", "),
            first.source
        )));
    }
    for row in grid.values() {
        row.is_possible()?;
        row.has_percentile_above_mean()?;
        row.covers_disk(disk)?;
    }
    Ok(grid)
}

impl DepthRow {
    /// Refuses a row whose requests a second and response time do not give its depth (Little's
    /// law).
    fn is_possible(&self) -> Result<(), DepthsError> {
        // Little's law: rate times mean time is the number of requests in flight.
        let outstanding = self.per_s * self.mean_ms / 1000.0;
        if OUTSTANDING.contains(&(outstanding / f64::from(self.depth))) {
            return Ok(());
        }
        Err(DepthsError::Grid(format!(
            "{}: found depth {} beside {:.1} requests a second of {:.2} ms, which are {outstanding:.1} outstanding; \
             expected requests without pauses by an engine that keeps the depth (ioengine=libaio or io_uring, direct=1)",
            self.source, self.depth, self.per_s, self.mean_ms
        )))
    }

    /// Refuses random reads whose 99th percentile lies below the mean: another unit, or another
    /// column. Cached writes may have such times, because a few writes wait for the medium.
    fn has_percentile_above_mean(&self) -> Result<(), DepthsError> {
        match self.p99_ms {
            Some(p99_ms) if self.rw == "randread" && p99_ms < self.mean_ms => {
                Err(DepthsError::Grid(format!(
                    "{}: found a 99th percentile of {p99_ms:.2} ms below the mean of {:.2} ms; expected both in ms, of the \
                     same requests",
                    self.source, self.mean_ms
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a row whose requests cover a part of the disk.
    fn covers_disk(&self, disk: Bytes) -> Result<(), DepthsError> {
        let Some(covers) = &self.covers else {
            return Ok(());
        };
        let share = match covers.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().ok().map(|part| part / 100.0),
            None => size(covers).map(|bytes| bytes as f64 / disk.0 as f64),
        };
        if share.is_none_or(|share| share == 0.0 || share >= COVERED_MIN) {
            return Ok(());
        }
        Err(DepthsError::Grid(format!(
            "{}: found size {covers} on a disk of {:.0} GB; expected requests over the whole disk (no `size`), because \
             seeks over a part of the tracks do not tell the seek curve",
            self.source,
            disk.0 as f64 / 1e9
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Bytes = Bytes(2_000_398_934_016);

    fn refused(rows: &[DepthRow]) -> String {
        usable(rows)
            .and_then(|()| grid(rows, "randread", DISK))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn rows_that_do_not_keep_their_depth_are_refused() {
        // The usual fault: a synchronous engine keeps one request outstanding at any iodepth.
        let mut deep = DepthRow::random("randread", 32, 341.9);
        deep.mean_ms = 10.7;
        let error = refused(&[DepthRow::random("randread", 1, 17.36), deep]);
        assert!(
            error.contains("line 32") && error.contains("1.0 outstanding"),
            "{error}"
        );
    }

    #[test]
    fn rows_of_a_part_of_the_disk_are_refused() {
        let mut part = DepthRow::random("randread", 4, 50.0);
        let whole = DepthRow::random("randread", 1, 17.36);
        part.covers = Some("100G".into());
        let error = refused(&[whole.clone(), part.clone()]);
        assert!(
            error.contains("line 4") && error.contains("size 100G"),
            "{error}"
        );
        part.covers = Some("20%".into());
        assert!(refused(&[whole, part.clone()]).contains("size 20%"));
        part.covers = Some("100%".into());
        assert!(part.covers_disk(Bytes(1 << 40)).is_ok());
    }

    #[test]
    fn a_percentile_below_the_mean_is_refused() {
        let mut deep = DepthRow::random("randread", 32, 281.0);
        deep.p99_ms = Some(4.0);
        let error = refused(&[DepthRow::random("randread", 1, 14.3), deep]);
        assert!(
            error.contains("line 32") && error.contains("4.00 ms"),
            "{error}"
        );
    }

    #[test]
    fn mixed_rows_alone_are_refused() {
        let error = refused(&[
            DepthRow::random("randrw", 1, 17.0),
            DepthRow::random("randrw", 4, 50.0),
        ]);
        assert!(
            error.contains("line 1") && error.contains("`randrw`"),
            "{error}"
        );
    }
}
