//! Seek curve, queue and write cache, fitted to response times by depth.

use super::closed::{ClosedTimes, random};
use super::grid::{USUAL_BYTES, grid, usable};
use super::sheet::described;
use super::{DepthRow, DepthsError, Sheet, SmartReport};
use fullstroke_drive::{
    DriveConfig, DriveModel, SeekConfig, SeekTable, ValidatedConfig, settled_curve,
};
use fullstroke_units::Duration;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

/// Number of simulated requests at one depth. The mean repeats to 2 %, the 99th percentile to 6 %.
const REQUESTS: usize = 3000;
/// Standard deviation of a seek over the factor of the root, for random seeks on a drive with
/// zones: sqrt(1/3 - (8/15)^2) without zones is 0.22.
const ROOT_DEVIATION: f64 = 0.217;
/// Mean of the root of the distance of random seeks.
const ROOT_MEAN: f64 = 8.0 / 15.0;
/// Distance of the 10th from the 90th percentile over the standard deviation, of a seek and a
/// rotational latency together.
const MIDDLE_DEVIATIONS: f64 = 2.6;
/// Least share of the average seek that a short seek costs.
const FLOOR_SHARE_MIN: f64 = 0.05;
/// Share of the 99th percentiles in the distance between two grids of rows.
const P99_WEIGHT: f64 = 0.3;
/// Constant margins in ms of the first round.
const MARGINS_MS: [f64; 5] = [0.5, 1.3, 2.2, 3.5, 5.0];
/// Steps in ms of the second round for a constant margin.
const STEPS_MS: [f64; 3] = [0.5, 0.25, 0.12];
/// Margin in ms of a short seek, where the margin grows with the distance.
const SHORT_MARGIN_MS: f64 = 0.3;
/// Additional margins in ms at a seek over the whole stroke of the first round.
const FAR_MS: [f64; 6] = [1.5, 3.0, 5.0, 7.5, 10.0, 14.0];
/// Steps in ms of the second round for a margin that grows with the distance.
const FAR_STEPS_MS: [f64; 3] = [1.2, 0.6, 0.3];
/// Distance from which a constant margin is tried, too: errors of 4 % at each of five depths.
const NEAR_ENOUGH: f64 = 0.01;
/// Ratio of the distances below which a constant margin is taken. Requests over the whole disk
/// hardly tell the two kinds of margin apart. Requests over a small part of the disk tell that the
/// margin of short seeks is small (VALIDATION.md, "Drives by queue depth").
const CONSTANT_RATIO_MAX: f64 = 0.5;
/// Numbers of commands answered together. Tried only if the 99th percentile at a depth of 4 to 8 is
/// near the mean, as on no drive that answers each command alone.
const TOGETHER: [u32; 4] = [6, 8, 11, 16];
/// Ratio of the 99th percentile to the mean below which answers go out together.
const TOGETHER_RATIO: f64 = 1.45;
/// Numbers of segments with written data.
const WRITE_SEGMENTS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 96, 128, 256, 512];
/// Ratio of the random writes at the deepest to those at depth 1 from which the write cache is off.
const CACHED_RATIO_MAX: f64 = 1.3;

/// A queue that is tried.
#[derive(Clone, Copy, Debug)]
struct QueueChoice {
    look_ahead: u32,
    decides_late: bool,
    margin_ms: f64,
    /// Additional margin in ms at a seek over the whole stroke. 0 means a constant margin.
    far_ms: f64,
    together: u32,
}

impl QueueChoice {
    fn stepped(self, ms: f64) -> QueueChoice {
        if self.far_ms > 0.0 {
            // Not 0, which means a constant margin.
            let far_ms = (self.far_ms + ms).max(0.1);
            QueueChoice { far_ms, ..self }
        } else {
            let margin_ms = (self.margin_ms + ms).max(0.0);
            QueueChoice { margin_ms, ..self }
        }
    }

    fn rounded(self) -> QueueChoice {
        let rounded = |ms: f64| (ms * 100.0).round() / 100.0;
        QueueChoice {
            margin_ms: rounded(self.margin_ms),
            far_ms: rounded(self.far_ms),
            ..self
        }
    }
}

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

    /// Fits the seek curve to mean and spread at depth 1.
    fn seeks(&mut self) -> Result<(), DepthsError> {
        let Some(row) = self.first().cloned() else {
            let source = self.config.sources.get("seek").cloned().unwrap_or_default();
            self.note("seek", false, source);
            return Ok(());
        };
        let turn_ms = 60_000.0 / self.config.rpm;
        // A random read at depth 1 takes overhead, seek and half a revolution in the mean.
        let average = row.mean_ms - turn_ms / 2.0 - self.config.command_overhead_ms;
        if average < 0.5 {
            return Err(DepthsError::Grid(format!(
                "randread at depth 1: a mean of {:.2} ms leaves no time to seek beside half a revolution of {:.2} ms; \
                 expected times of a whole disk without its cache ({})",
                row.mean_ms,
                turn_ms / 2.0,
                row.source
            )));
        }
        let deviation = match (row.middle_ms, row.deviation_ms) {
            (Some((low, high)), _) => Some((high - low) / MIDDLE_DEVIATIONS),
            (None, deviation) => deviation,
        };
        let seek_deviation =
            // The rotational latency is uniform over a revolution, so its variance is a twelfth of
            // the square.
            deviation.map(|ms| (ms * ms - turn_ms * turn_ms / 12.0).max(0.25).sqrt());
        let most = (1.0 - FLOOR_SHARE_MIN) * average / ROOT_MEAN;
        // Without a spread, a short seek costs a fifth of the average, as on measured disks.
        let root = seek_deviation
            .map_or(0.8 * average / ROOT_MEAN, |ms| ms / ROOT_DEVIATION)
            .min(most);
        let mut floor = average - root * ROOT_MEAN;
        for _ in 0..3 {
            self.config.seek = self.curve(floor, root)?;
            let found = self.times(&self.config, false, 1)?;
            floor = (floor + row.mean_ms - found.mean_ms).max(0.0);
        }
        let spread = if seek_deviation.is_some() {
            "mean and spread"
        } else {
            "mean alone; the shape as on measured disks (assumed)"
        };
        let source = format!(
            "fitted: {spread} of random reads at depth 1, {}; {floor:.2} ms + {root:.1} ms x sqrt(share of the tracks). \
             assumed: one track in 0.6 of the skew between neighbours",
            row.source
        );
        self.note("seek", true, source);
        Ok(())
    }

    fn curve(&self, floor: f64, root: f64) -> Result<SeekConfig, DepthsError> {
        let cylinders = self
            .config
            .zones
            .last()
            .map_or(2, |zone| zone.last_cylinder + 1);
        let table = SeekTable::new(&self.config.seek, cylinders).map_err(DepthsError::Model)?;
        let neighbour = table.time(1).as_millis_f64();
        Ok(settled_curve(neighbour, floor, root, cylinders))
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

    /// Returns the squared relative distance of the reads from depth 2 on.
    fn distance(&self, config: &DriveConfig) -> Result<f64, DepthsError> {
        let mut sum = 0.0;
        for row in self.reads.values().filter(|row| row.depth > 1) {
            let found = self.times(config, false, row.depth)?;
            sum += (found.mean_ms / row.mean_ms).ln().powi(2);
            if let Some(p99) = row.p99_ms {
                sum += P99_WEIGHT * (found.p99_ms / p99).ln().powi(2);
            }
        }
        Ok(sum)
    }

    fn with(&self, choice: QueueChoice) -> DriveConfig {
        let mut config = self.config.clone();
        let queue = &mut config.queue;
        queue.discipline = "firmware".into();
        queue.keys.clear();
        let mut set = |key: &str, value| queue.keys.insert(key.into(), value);
        set("look_ahead", json!(choice.look_ahead));
        set("margin_ms", json!(choice.margin_ms));
        if choice.far_ms > 0.0 {
            set("margin_far_ms", json!(choice.far_ms));
        }
        queue.answer_together = choice.together;
        queue.decide_ms = if choice.decides_late { 0.1 } else { 0.0 };
        config
    }

    /// Fits look-ahead, margin, and the number of commands answered together.
    fn queue(&mut self) -> Result<(), DepthsError> {
        if self.reads.len() < 2 {
            let source = format!(
                "{} (no response times by depth were given)",
                self.config.sources["queue"]
            );
            self.note("queue", false, source);
            return Ok(());
        }
        self.age_limit();
        let (mut choice, far_distance) = self.best(&self.choices(true), &FAR_STEPS_MS)?;
        if far_distance > NEAR_ENOUGH {
            let (constant, distance) = self.best(&self.choices(false), &STEPS_MS)?;
            if distance < far_distance * CONSTANT_RATIO_MAX {
                choice = constant;
            }
        }
        self.config = self.with(choice.rounded());
        let depths: Vec<String> = self.reads.keys().map(u32::to_string).collect();
        let source = format!(
            "fitted: look_ahead, margins, decide_ms, answer_together, to random reads at depths {}; age_limit: {}. \
             assumed: depth, flush{}",
            depths.join(", "),
            if self.longest().is_some() {
                "near the longest wait that was measured"
            } else {
                "not told, as drives of the class"
            },
            if choice.far_ms > 0.0 {
                ", margin of short seeks"
            } else {
                ""
            }
        );
        self.note("queue", true, source);
        Ok(())
    }

    /// Returns the choice nearest to the reads, and its distance. The second round changes the
    /// margin in `steps`.
    fn best(
        &self,
        choices: &[QueueChoice],
        steps: &[f64],
    ) -> Result<(QueueChoice, f64), DepthsError> {
        let (mut best, mut least) = (choices[0], f64::INFINITY);
        for &choice in choices {
            let distance = self.distance(&self.with(choice))?;
            if distance < least {
                (best, least) = (choice, distance);
            }
        }
        for step in steps {
            for sign in [1.0, -1.0] {
                let tried = best.stepped(sign * step);
                let distance = self.distance(&self.with(tried))?;
                if distance < least {
                    (best, least) = (tried, distance);
                    break;
                }
            }
        }
        Ok((best, least))
    }

    /// Returns the choices of one kind of margin: growing with the distance, or constant.
    fn choices(&self, far: bool) -> Vec<QueueChoice> {
        let margins: Vec<(f64, f64)> = if far {
            FAR_MS.map(|far_ms| (SHORT_MARGIN_MS, far_ms)).to_vec()
        } else {
            MARGINS_MS.map(|margin_ms| (margin_ms, 0.0)).to_vec()
        };
        let narrow = |row: &DepthRow| {
            (4..=8).contains(&row.depth)
                && row
                    .p99_ms
                    .is_some_and(|p99| p99 < TOGETHER_RATIO * row.mean_ms)
        };
        let together = self.reads.values().any(narrow);
        let mut choices = Vec::new();
        for &(margin_ms, far_ms) in &margins {
            let plain = QueueChoice {
                look_ahead: 0,
                decides_late: false,
                margin_ms,
                far_ms,
                together: 0,
            };
            choices.push(plain);
            // A drive that decides late sees the command that the host sends at once.
            choices.push(QueueChoice {
                decides_late: true,
                ..plain
            });
            choices.push(QueueChoice {
                look_ahead: 2,
                ..plain
            });
            if together {
                choices.extend(TOGETHER.map(|together| QueueChoice { together, ..plain }));
            }
        }
        choices
    }

    /// Longest response time from depth 8 on, in ms.
    fn longest(&self) -> Option<f64> {
        let deep = self.reads.values().filter(|row| row.depth >= 8);
        deep.filter_map(|row| row.longest_ms)
            .reduce(f64::max)
            .filter(|&ms| ms < 30_000.0)
    }

    fn age_limit(&mut self) {
        if let Some(longest) = self.longest() {
            let rounded = (longest / 100.0).ceil() as u64 * 100;
            self.config.queue.age_limit = Some(Duration::from_millis(rounded));
        }
    }

    /// Fits the number of write segments to the random writes a second.
    fn write_cache(&mut self) -> Result<(), DepthsError> {
        let (Some(first), Some(last)) = (
            self.writes.values().next().cloned(),
            self.writes.values().next_back().cloned(),
        ) else {
            let source = format!(
                "{} (no random writes were given)",
                self.config.sources["buffer"]
            );
            self.note("buffer", false, source);
            return Ok(());
        };
        if last.per_s > first.per_s * CACHED_RATIO_MAX {
            if let Some(buffer) = &mut self.config.buffer {
                buffer.write_back = false;
            }
            self.note(
                "buffer",
                true,
                format!(
                    "fitted: the write cache is off, because random writes grow from {:.0} to {:.0} a second with depth",
                    first.per_s, last.per_s
                ),
            );
            return Ok(());
        }
        let wanted =
            self.writes.values().map(|row| row.per_s).sum::<f64>() / self.writes.len() as f64;
        let mut best = (f64::INFINITY, self.config.clone(), 0.0);
        for segments in WRITE_SEGMENTS {
            let config = self.cached(segments);
            let found = self.times(&config, true, 1)?.per_s;
            let distance = (found / wanted).ln().abs();
            if distance < best.0 {
                best = (distance, config, found);
            }
        }
        self.config = best.1;
        let mut source = format!(
            "fitted: write_segments and destage, to {wanted:.0} random writes a second at depths {} to {}. assumed: \
             size and all other rules, as drives of the class",
            first.depth, last.depth
        );
        if best.2 > wanted * 1.1 {
            // Each write costs more than the arm's way: the model has one key for such a time.
            self.config.write_settle_ms += 1000.0 / wanted - 1000.0 / best.2;
            source += "; the rest in write_settle_ms";
            let writes = format!("fitted: {wanted:.0} random writes a second");
            self.note("write_settle_ms", true, writes);
        }
        self.note("buffer", true, source);
        Ok(())
    }

    fn cached(&self, segments: u32) -> DriveConfig {
        let mut config = self.config.clone();
        let queue = &config.queue;
        let margins = ["margin_ms", "margin_far_ms"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), queue.keys.get(key)?.clone())))
            .collect::<Vec<_>>();
        if let Some(buffer) = &mut config.buffer {
            buffer.write_segments = segments.min(buffer.segments);
            buffer.write_back = true;
            if queue.discipline == "firmware" {
                buffer.destage_discipline = Some("firmware".into());
                buffer.destage = margins.into_iter().collect();
            }
        }
        config
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
        let mut compared = Vec::new();
        for (rows, write) in [(&self.reads, false), (&self.writes, true)] {
            for row in rows.values() {
                let found = self.times(&self.config, write, row.depth)?;
                compared.push(ComparedRow {
                    rw: row.rw.clone(),
                    depth: row.depth,
                    mean_ms: (row.mean_ms, found.mean_ms),
                    p99_ms: (row.p99_ms, found.p99_ms),
                    per_s: (row.per_s, found.per_s),
                });
            }
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

    fn row(rw: &str, depth: u32, mean_ms: f64) -> DepthRow {
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
            .map(|(depth, mean)| row("randread", depth, mean))
            .to_vec();
        rows.push(row("randwrite", 1, 8.06));
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
        let error = fit_by_depth(&sheet(), None, &[row("randread", 4, 50.0)])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("found depth 4") && error.contains("line 4"),
            "{error}"
        );
    }

    #[test]
    fn times_of_a_cache_are_refused() {
        let rows = [row("randread", 1, 0.2), row("randread", 4, 0.8)];
        let error = fit_by_depth(&sheet(), None, &rows).unwrap_err().to_string();
        assert!(error.contains("half a revolution"), "{error}");
    }
}
