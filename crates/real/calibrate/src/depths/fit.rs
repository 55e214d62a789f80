//! Seek curve, queue and write cache, fitted to response times by depth.

mod queue;
mod seeks;
mod write_cache;

use super::closed::{ClosedTimes, random};
use super::grid::{USUAL_BYTES, grid, usable};
use super::sheet::described;
use super::{DepthRow, DepthsError, Sheet, SmartReport};
use fullstroke_drive::{DriveConfig, DriveModel, ValidatedConfig};
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of simulated requests at one depth. The mean repeats to 2 %, the 99th percentile to 6 %.
const REQUESTS: usize = 3000;
/// Number of simulated requests at one depth beside the measured rows of the answer.
const COMPARED_REQUESTS: usize = 9000;

/// Largest relative error of a mean that a fit leaves. Disks with queues that the model does not
/// have (SSTF, C-LOOK) are met to a tenth.
const FOLLOWED_MAX: f64 = 0.4;

/// A row beside the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRow {
    /// Kind of request: `randread` or `randwrite`.
    pub rw: String,
    /// Number of outstanding requests.
    pub depth: u32,
    /// Measured and simulated mean response time in ms.
    pub mean_ms: (f64, f64),
    /// Measured and simulated 99th percentile in ms.
    pub p99_ms: (Option<f64>, f64),
    /// Measured and simulated requests a second.
    pub per_s: (f64, f64),
}

/// A key of the drive file and how the value was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedKey {
    /// Key in the drive file.
    pub key: String,
    /// True if the measurements determine the value.
    pub told: bool,
    /// Source, as in the drive file.
    pub source: String,
}

/// A drive file from measurements.
#[derive(Clone, Debug, Serialize)]
pub struct DepthFit {
    /// All measured rows that the model can be held against.
    pub compared: Vec<ComparedRow>,
    /// Largest relative error of a mean; `None` without rows.
    pub worst_mean: Option<f64>,
    /// Keys and their sources.
    pub told: Vec<FittedKey>,
    /// The drive.
    #[serde(skip)]
    pub config: DriveConfig,
}

/// Fits a drive to what is given.
///
/// # Errors
/// Names the row or figure that is missing, or the two figures that contradict each other.
pub fn fit_by_depth(
    sheet: &Sheet,
    smart: Option<&SmartReport>,
    rows: &[DepthRow],
) -> Result<DepthFit, DepthsError> {
    let config = described(sheet, smart, rows)?;
    usable(rows)?;
    let disk = config.capacity_sectors.bytes();
    let reads = grid(rows, "randread", disk)?;
    let writes = grid(rows, "randwrite", disk)?;
    let mut fit = Fit::new(config, reads, writes)?;
    fit.spin_up(smart);
    fit.seeks()?;
    fit.queue()?;
    fit.write_cache()?;
    fit.finish()
}

/// Returns random reads and writes beside the model of a drive.
///
/// # Errors
/// Fails if the model refuses the drive.
pub fn compared(config: &DriveConfig, rows: &[DepthRow]) -> Result<Vec<ComparedRow>, DepthsError> {
    let model = DriveModel::new(config.clone()).map_err(DepthsError::Model)?;
    let row = |row: &DepthRow| {
        let write = row.rw == "randwrite";
        let found = random(&model, write, row.bytes, row.depth, COMPARED_REQUESTS);
        ComparedRow {
            rw: row.rw.clone(),
            depth: row.depth,
            mean_ms: (row.mean_ms, found.mean_ms),
            p99_ms: (row.p99_ms, found.p99_ms),
            per_s: (row.per_s, found.per_s),
        }
    };
    // Reads and writes of a mixed job wait for each other, and the model runs one kind.
    let alike = |row: &&DepthRow| ["randread", "randwrite"].contains(&&*row.rw);
    Ok(rows.iter().filter(alike).map(row).collect())
}

/// Refuses random reads that no queue of the model comes near. Such rows come from
/// flash, or from several disks.
fn is_followed(row: &DepthRow, compared: &ComparedRow) -> Result<(), DepthsError> {
    let (measured, found) = compared.mean_ms;
    if row.rw != "randread" || (found / measured - 1.0).abs() <= FOLLOWED_MAX {
        return Ok(());
    }
    Err(DepthsError::Grid(format!(
        "{}: found a mean of {measured:.2} ms for randread at depth {}, and the nearest model has {found:.2} ms; \
         expected rows of one rotating disk without a cache in front",
        row.source, row.depth
    )))
}

struct Fit {
    config: DriveConfig,
    reads: BTreeMap<u32, DepthRow>,
    writes: BTreeMap<u32, DepthRow>,
    told: Vec<FittedKey>,
}

impl Fit {
    fn new(
        config: DriveConfig,
        reads: BTreeMap<u32, DepthRow>,
        writes: BTreeMap<u32, DepthRow>,
    ) -> Result<Fit, DepthsError> {
        DriveModel::new(config.clone()).map_err(DepthsError::Model)?;
        Ok(Fit {
            config,
            reads,
            writes,
            told: Vec::new(),
        })
    }

    /// Notes the source of a key, in the drive file and in the answer.
    fn note(&mut self, key: &str, told: bool, source: String) {
        self.config.sources.insert(key.to_owned(), source.clone());
        self.told.push(FittedKey {
            key: key.to_owned(),
            told,
            source,
        });
    }

    fn model(&self, config: &DriveConfig) -> Result<DriveModel, DepthsError> {
        DriveModel::new(config.clone()).map_err(DepthsError::Model)
    }

    fn first(&self) -> Option<&DepthRow> {
        self.reads.get(&1)
    }

    /// Takes the time to spin up from the report.
    fn spin_up(&mut self, smart: Option<&SmartReport>) {
        let Some((smart, ms)) = smart.and_then(|smart| Some((smart, smart.spin_up_ms?))) else {
            return;
        };
        let (mut power, source) = fullstroke_drive::PowerConfig::assumed_for(&self.config);
        if let Some(joules) = power.spin_up_j {
            power.spin_up_j = Some(joules * ms / power.spin_up_ms);
        }
        power.spin_up_ms = ms;
        self.config.power = Some(power);
        let source = format!("spin_up_ms: {ms}, attribute 3 of {}. {source}", smart.file);
        self.note("power", false, source);
    }

    fn times(
        &self,
        config: &DriveConfig,
        write: bool,
        depth: u32,
    ) -> Result<ClosedTimes, DepthsError> {
        let rows = if write { &self.writes } else { &self.reads };
        let bytes = rows.values().next().map_or(USUAL_BYTES, |row| row.bytes);
        Ok(random(&self.model(config)?, write, bytes, depth, REQUESTS))
    }

    /// Records sizes and depths of the rows in the drive file.
    fn states_its_range(&mut self) {
        let rows = || self.reads.values().chain(self.writes.values());
        let (Some(bytes), Some(least), Some(most)) = (
            rows().map(|row| row.bytes).max(),
            rows().map(|row| row.depth).min(),
            rows().map(|row| row.depth).max(),
        ) else {
            return;
        };
        let sectors = (bytes / 512).max(1) as u32;
        self.config.validated = Some(ValidatedConfig {
            sectors: (sectors, sectors),
            depths: (least, most),
        });
        let source = format!("the measured rows of this fit: random requests of {bytes} bytes");
        self.config.sources.insert("validated".to_owned(), source);
    }

    fn finish(mut self) -> Result<DepthFit, DepthsError> {
        let rows: Vec<DepthRow> = (self.reads.values().chain(self.writes.values()))
            .cloned()
            .collect();
        let compared = compared(&self.config, &rows)?;
        for (row, compared) in rows.iter().zip(&compared) {
            is_followed(row, compared)?;
        }
        let error = |row: &ComparedRow| (row.mean_ms.1 / row.mean_ms.0 - 1.0).abs();
        let worst_mean = compared.iter().map(error).reduce(f64::max);
        self.states_its_range();
        let mut told = self.told;
        for key in ["rpm", "capacity_sectors", "zones", "order", "electronics"] {
            if let Some(source) = self.config.sources.get(key) {
                told.push(FittedKey {
                    key: key.to_owned(),
                    told: false,
                    source: source.clone(),
                });
            }
        }
        Ok(DepthFit {
            compared,
            worst_mean,
            told,
            config: self.config,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        Sheet {
            capacity: Some("2T".into()),
            rpm: Some(7200.0),
            outer: Some(210.0),
            ..Sheet::default()
        }
    }

    #[test]
    fn means_by_depth_are_met() {
        // ST2000DM006, lumir-sliva/ublk-disksim, docs/VALIDATION.md.
        let reads = [
            (1, 17.36),
            (2, 31.0),
            (4, 56.2),
            (8, 101.8),
            (16, 185.4),
            (32, 341.9),
        ];
        let mut rows = reads
            .map(|(depth, mean)| DepthRow::random("randread", depth, mean))
            .to_vec();
        rows.push(DepthRow::random("randwrite", 1, 8.06));
        let fit = fit_by_depth(&sheet(), None, &rows).unwrap();
        for compared in &fit.compared {
            let (measured, found) = compared.mean_ms;
            assert!((found / measured - 1.0).abs() < 0.1, "{compared:?}");
        }
        let validated = fit.config.validated.unwrap();
        assert_eq!((validated.sectors, validated.depths), ((8, 8), (1, 32)));
        assert!(fit.config.sources["queue"].starts_with("fitted"));
        assert!(!fit.config.sources["order"].starts_with("fitted"));
        DriveModel::new(fit.config).unwrap();
    }

    #[test]
    fn a_grid_of_one_depth_is_refused() {
        let error = fit_by_depth(&sheet(), None, &[DepthRow::random("randread", 4, 50.0)])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("found depth 4") && error.contains("line 4"),
            "{error}"
        );
    }

    #[test]
    fn deep_reads_that_no_disk_can_serve_are_refused() {
        let rows = [
            DepthRow::random("randread", 1, 14.3),
            DepthRow::random("randread", 32, 4.6),
        ];
        let error = fit_by_depth(&sheet(), None, &rows).unwrap_err().to_string();
        assert!(
            error.contains("line 32") && error.contains("rotating disk"),
            "{error}"
        );
    }

    #[test]
    fn times_of_a_cache_are_refused() {
        let rows = [
            DepthRow::random("randread", 1, 0.2),
            DepthRow::random("randread", 4, 0.8),
        ];
        let error = fit_by_depth(&sheet(), None, &rows).unwrap_err().to_string();
        assert!(error.contains("half a revolution"), "{error}");
    }
}
