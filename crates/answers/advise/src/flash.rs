//! Flash devices beside the disks: their price, their wear and their power.
//!
//! The devices are the cache in front of the array, and the special vdev and the logs of a pool. Their
//! places in the tree tell them from disks, because the disks may be flash devices, too.

use fullstroke_lab::RunResult;
use fullstroke_measure::{LayerReport, Report};
use serde::Serialize;

/// Seconds of a day, and days of a year.
const DAY_S: f64 = 86_400.0;
const YEAR_DAYS: f64 = 365.25;

/// Flash devices beside the disks, with all drives: means over the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlashOutcome {
    /// Number of devices.
    pub devices: u32,
    /// Price of the devices, a part of the finalist's price; `None` if they are left out of this
    /// price.
    pub price: Option<f64>,
    /// Data that all devices receive in a day under this load, in 10^9 bytes.
    pub written_gb_a_day: f64,
    /// Share of the rated endurance that a year of this load uses, of the device that wears most;
    /// `None` without `endurance_tb` in the drive file.
    pub wear_share_a_year: Option<f64>,
    /// Mean power of all devices, in watts, a part of the power of the drives; `None` without power
    /// figures.
    pub mean_w: Option<f64>,
    /// Largest amount over the runs of data that only the cache has at the end of a run, in 10^6
    /// bytes: the data that the array does not have if the device is gone. `None` without a cache.
    pub dirty_mb: Option<f64>,
}

impl FlashOutcome {
    /// Returns the places in the tree of all flash devices of an array with several devices.
    pub fn places(report: &Report) -> Vec<String> {
        let names = report.array.members.iter().map(|member| &member.name);
        let is_flash = |place: &&String| readings(report, &[(*place).clone()], "flash_written_mb");
        names
            .filter(|place| is_flash(place).is_some())
            .cloned()
            .collect()
    }

    /// Creates the outcome of the flash devices at these places of some runs; `None` if there are none.
    pub fn new(places: &[String], price: Option<f64>, ran: &[RunResult]) -> Option<FlashOutcome> {
        let reports = || ran.iter().map(|ran| &ran.measured.report);
        if places.is_empty() || ran.is_empty() {
            return None;
        }
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let all = |of: &dyn Fn(&Report) -> Option<f64>| {
            let known: Option<Vec<f64>> = reports().map(of).collect();
            known.map(mean)
        };
        Some(FlashOutcome {
            devices: places.len() as u32,
            price,
            written_gb_a_day: all(&|report| written_gb_a_day(report, places)).unwrap_or(f64::NAN),
            wear_share_a_year: all(&|report| wear_share_a_year(report, places)),
            mean_w: all(&|report| mean_w(report, places)),
            dirty_mb: reports()
                .filter_map(|report| report.reading("ssd_dirty_mb"))
                .reduce(f64::max),
        })
    }
}

/// Returns a reading of each device; `None` if a device does not have it.
fn readings(report: &Report, places: &[String], name: &str) -> Option<Vec<f64>> {
    let of = |place: &String| {
        let suffix = format!(", member {place}");
        let mut layers = report.array.layers.iter();
        let of_device = |layer: &&LayerReport| {
            layer.layer.ends_with(&suffix) && layer.value("flash_written_mb").is_some()
        };
        layers.find(of_device).and_then(|layer| layer.value(name))
    };
    places.iter().map(of).collect()
}

/// Returns the length of the whole run in seconds. All drives have the same length.
fn seconds(report: &Report) -> f64 {
    report
        .array
        .members
        .last()
        .map_or(f64::NAN, |member| member.seconds)
}

fn written_gb_a_day(report: &Report, places: &[String]) -> Option<f64> {
    let written: f64 = readings(report, places, "flash_written_mb")?.iter().sum();
    Some(written / 1e3 / seconds(report) * DAY_S)
}

fn wear_share_a_year(report: &Report, places: &[String]) -> Option<f64> {
    let worn = readings(report, places, "flash_wear_share")?;
    let most = worn.into_iter().reduce(f64::max)?;
    Some(most / seconds(report) * DAY_S * YEAR_DAYS)
}

fn mean_w(report: &Report, places: &[String]) -> Option<f64> {
    let watts = |place: &String| {
        let mut members = report.array.members.iter();
        let member = members.find(|member| member.name == *place)?;
        Some(member.statistics.power?.mean_power().0)
    };
    let known: Option<Vec<f64>> = places.iter().map(watts).collect();
    known.map(|watts| watts.iter().sum())
}
