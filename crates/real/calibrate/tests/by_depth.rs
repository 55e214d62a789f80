//! `fullstroke fit` on measured disks: at the depths that were fitted, at depths that were left out
//! of the fit, and with the queue and the write cache of other disks (VALIDATION.md, "Drives by
//! queue depth").

use fullstroke_calibrate::depths::{ComparedRow, DepthRow, Sheet, compared, fit_by_depth};
use fullstroke_drive::DriveConfig;
use fullstroke_drive::presets::DriveClass;
use serde_json::json;

/// A measured disk.
struct MeasuredDisk {
    name: &'static str,
    /// Capacity, and rate in MB/s at the outer edge.
    sheet: (&'static str, f64),
    class: &'static str,
    /// Depth, and mean, 10th, 90th and 99th percentile and longest response time in ms of random
    /// reads of 4 KiB; 0 where not published.
    reads: [(u32, [f64; 5]); 6],
    /// Random writes of 4 KiB a second.
    writes: f64,
}

/// louwrentius/fio-plot, benchmark_data (libaio, direct, one job, 60 s a row); the ST2000DM006:
/// lumir-sliva/ublk-disksim, docs/VALIDATION.md, whose means are depth over requests a second.
const DISKS: [MeasuredDisk; 4] = [
    MeasuredDisk {
        name: "Samsung F1",
        sheet: ("1T", 118.0),
        class: "desktop",
        reads: [
            (1, [13.79, 8.585, 19.01, 22.41, 24.71]),
            (2, [27.45, 19.79, 34.87, 40.63, 45.78]),
            (4, [52.98, 43.25, 62.65, 69.73, 75.41]),
            (8, [92.4, 81.26, 102.2, 111.7, 127.9]),
            (16, [144.1, 90.7, 212.9, 400.6, 868.1]),
            (32, [244.2, 80.22, 484.4, 876.6, 1114.0]),
        ],
        writes: 150.0,
    },
    MeasuredDisk {
        name: "500 GB disk",
        sheet: ("500G", 110.0),
        class: "desktop",
        reads: [
            (1, [14.3, 9.11, 19.53, 23.72, 59.66]),
            (2, [28.44, 21.1, 35.91, 42.73, 53.63]),
            (4, [48.72, 21.1, 88.6, 168.8, 305.6]),
            (8, [85.22, 22.15, 173.0, 325.1, 726.8]),
            (16, [152.6, 27.92, 320.9, 608.2, 1487.0]),
            (32, [281.5, 45.88, 599.8, 1070.0, 1988.0]),
        ],
        writes: 123.8,
    },
    MeasuredDisk {
        name: "Travelstar 7K100",
        sheet: ("100G", 54.0),
        class: "laptop",
        reads: [
            (1, [16.98, 11.21, 22.94, 29.75, 353.7]),
            (2, [33.33, 25.03, 42.73, 51.12, 61.2]),
            (4, [61.69, 39.06, 90.7, 141.6, 255.5]),
            (8, [110.7, 41.68, 206.6, 375.4, 689.6]),
            (16, [206.6, 50.07, 417.3, 775.9, 1399.0]),
            (32, [389.0, 76.02, 801.1, 1451.0, 2934.0]),
        ],
        writes: 43.9,
    },
    MeasuredDisk {
        name: "ST2000DM006",
        sheet: ("2T", 210.0),
        class: "desktop",
        reads: [
            (1, [17.36, 10.42, 23.2, 28.44, 0.0]),
            (2, [31.0, 0.0, 0.0, 0.0, 0.0]),
            (4, [56.2, 0.0, 0.0, 0.0, 0.0]),
            (8, [101.8, 0.0, 0.0, 0.0, 0.0]),
            (16, [185.4, 0.0, 0.0, 0.0, 0.0]),
            (32, [341.9, 0.0, 0.0, 0.0, 0.0]),
        ],
        writes: 124.0,
    },
];

impl MeasuredDisk {
    fn rows(&self) -> Vec<DepthRow> {
        let known = |ms: f64| (ms > 0.0).then_some(ms);
        let row = |rw: &str, depth, [mean_ms, p10, p90, p99, longest]: [f64; 5]| DepthRow {
            source: format!("{} at depth {depth}", self.name),
            rw: rw.to_owned(),
            covers: None,
            bytes: 4096,
            depth,
            jobs: 1,
            per_s: f64::from(depth) * 1000.0 / mean_ms,
            mean_ms,
            deviation_ms: None,
            middle_ms: known(p10).zip(known(p90)),
            p99_ms: known(p99),
            longest_ms: known(longest),
        };
        let reads = self
            .reads
            .iter()
            .map(|&(depth, ms)| row("randread", depth, ms));
        let write = row("randwrite", 1, [1000.0 / self.writes, 0.0, 0.0, 0.0, 0.0]);
        reads.chain([write]).collect()
    }

    /// Returns the drive that is fitted to the reads at `depths` and to the writes.
    fn fitted(&self, depths: &[u32]) -> DriveConfig {
        let mut rows = self.rows();
        rows.retain(|row| row.rw == "randwrite" || depths.contains(&row.depth));
        let sheet = Sheet {
            capacity: Some(self.sheet.0.into()),
            rpm: Some(7200.0),
            outer: Some(self.sheet.1),
            class: Some(self.class.into()),
            ..Sheet::default()
        };
        fit_by_depth(&sheet, None, &rows).unwrap().config
    }

    /// Prints all rows beside the model of a drive, and returns the largest errors of a mean, of a
    /// 99th percentile and of the writes a second.
    fn errors(&self, title: &str, config: &DriveConfig) -> [f64; 3] {
        let rows = compared(config, &self.rows()).unwrap();
        println!("{}, {title}", self.name);
        let mut worst = [0.0f64; 3];
        for row in &rows {
            let [mean, p99, rate] = errors(row);
            println!(
                "  {} {:>2}: mean {:.1} of {:.1} ms ({:+.1} %), p99 {:.1} of {:.1} ms ({:+.1} %), {:.1} of {:.1} a second",
                row.rw,
                row.depth,
                row.mean_ms.1,
                row.mean_ms.0,
                100.0 * mean,
                row.p99_ms.1,
                row.p99_ms.0.unwrap_or_default(),
                100.0 * p99,
                row.per_s.1,
                row.per_s.0
            );
            let found = match &*row.rw {
                "randwrite" => [0.0, 0.0, rate],
                _ => [mean, p99, 0.0],
            };
            for (worst, found) in worst.iter_mut().zip(found) {
                *worst = worst.max(found.abs());
            }
        }
        worst
    }
}

fn errors(row: &ComparedRow) -> [f64; 3] {
    let p99 = row
        .p99_ms
        .0
        .map_or(0.0, |measured| row.p99_ms.1 / measured - 1.0);
    [
        row.mean_ms.1 / row.mean_ms.0 - 1.0,
        p99,
        row.per_s.1 / row.per_s.0 - 1.0,
    ]
}

const ALL: [u32; 6] = [1, 2, 4, 8, 16, 32];

#[test]
fn a_disk_is_met_at_every_fitted_depth() {
    for disk in &DISKS {
        let [mean, p99, writes] = disk.errors("fitted to all depths", &disk.fitted(&ALL));
        assert!(mean < 0.06, "{}: mean {mean}", disk.name);
        // A twentieth of the Travelstar's reads takes one more revolution at depth 1, and the model
        // misses none. The percentile of 9,000 reads at depth 32 repeats to 7 %.
        assert!(p99 < 0.15, "{}: p99 {p99}", disk.name);
        assert!(writes < 0.04, "{}: writes {writes}", disk.name);
    }
}

#[test]
fn depths_that_were_left_out_of_the_fit_are_predicted() {
    for disk in &DISKS {
        let fitted = disk.fitted(&[1, 4, 16]);
        let [mean, p99, _] = disk.errors("fitted to depths 1, 4 and 16", &fitted);
        assert!(mean < 0.1, "{}: mean {mean}", disk.name);
        assert!(p99 < 0.2, "{}: p99 {p99}", disk.name);
    }
}

#[test]
fn a_desktop_disk_is_predicted_from_the_others_and_its_own_depth_1() {
    let desktop: Vec<&MeasuredDisk> = DISKS
        .iter()
        .filter(|disk| disk.class == "desktop")
        .collect();
    let fitted: Vec<DriveConfig> = desktop.iter().map(|disk| disk.fitted(&ALL)).collect();
    let far = |config: &DriveConfig| config.queue.keys["margin_far_ms"].as_f64().unwrap();
    let segments = |config: &DriveConfig| config.buffer.as_ref().unwrap().write_segments;
    let together = |config: &DriveConfig| config.queue.answer_together > 1;
    for (at, disk) in desktop.iter().enumerate() {
        // A margin beside answers in batches belongs to another kind of queue.
        let others = || {
            let alike = |&(other, config): &(usize, &DriveConfig)| other != at && !together(config);
            fitted.iter().enumerate().filter(alike)
        };
        let count = others().count() as f64;
        let margin = others().map(|(_, other)| far(other)).sum::<f64>() / count;
        let cached = others()
            .map(|(_, other)| f64::from(segments(other)))
            .sum::<f64>()
            / count;
        // The seek curve comes from depth 1 alone.
        let mut config = fitted[at].clone();
        config.queue = DriveClass::Desktop.queue();
        config
            .queue
            .keys
            .insert("margin_far_ms".into(), json!(margin));
        let buffer = config.buffer.as_mut().unwrap();
        buffer.write_segments = cached as u32;
        buffer.destage.insert("margin_far_ms".into(), json!(margin));
        let title = format!("left out: far margin {margin:.1} ms, {cached:.0} write segments");
        let [mean, p99, writes] = disk.errors(&title, &config);
        // No other disk answers commands together, as the F1 does.
        if together(&fitted[at]) {
            assert!(mean < 0.2 && writes < 0.25, "{mean}, {writes}");
        } else {
            assert!(
                mean < 0.12 && p99 < 0.2 && writes < 0.25,
                "{}: {mean}, {p99}, {writes}",
                disk.name
            );
        }
    }
}
