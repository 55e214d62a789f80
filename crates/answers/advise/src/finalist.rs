//! The best candidate of one layout.

use crate::{
    ArrayOutcome, Controller, DataLossChance, DoubtfulWish, FlashOutcome, FrontCache, MissedWish,
    Redundancy,
};
use fullstroke_lab::VolumeReport;
use serde::Serialize;

/// The best candidate of one layout.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Finalist {
    /// Rank, from 1.
    pub place: usize,
    /// Name: `raid6 of 6`.
    pub name: String,
    /// Layout: `raid6`.
    pub layout: String,
    /// Best chunk, elevator and caches, each as `key=value`.
    pub settings: Vec<String>,
    /// Number of other settings equally good on parts of the load. `settings` is the best on the
    /// whole load among the first of them.
    pub settings_alike: usize,
    /// Memory of the controller, if there is one.
    pub controller: Controller,
    /// Cache in front of the array, if there is one.
    pub cache: FrontCache,
    /// Flash devices beside the disks with all drives; `None` without such a device.
    pub flash: Option<FlashOutcome>,
    /// Size and redundancy of the volume.
    pub volume: VolumeReport,
    /// Price of the drives, the controller and the flash devices. Flash devices without a price are
    /// left out.
    pub price: Option<f64>,
    /// `price` for each usable terabyte (10^12 bytes).
    pub price_per_tb: Option<f64>,
    /// Energy of a year under this load, in kilowatt-hours; `None` without power figures.
    pub kwh_a_year: Option<f64>,
    /// Half the width of the 95 % confidence interval of `kwh_a_year`; `None` if the runs are too
    /// short for an interval.
    pub kwh_a_year_ci95_half_width: Option<f64>,
    /// Price of this energy.
    pub energy_cost_a_year: Option<f64>,
    /// Sound power of all drives while they idle, in bels; `None` if the drive's file does not have it.
    pub idle_bels: Option<f64>,
    /// Sound power of all drives while they seek, in bels.
    pub seek_bels: Option<f64>,
    /// Outcome with all drives.
    pub healthy: ArrayOutcome,
    /// Outcome with one failed drive; `None` without redundancy.
    pub degraded: Option<ArrayOutcome>,
    /// Outcome during a rebuild; `None` without redundancy.
    pub rebuilding: Option<ArrayOutcome>,
    /// Outcome with one slow drive; `None` without redundancy, or if the layout cannot have a slow
    /// drive.
    pub slow: Option<ArrayOutcome>,
    /// Wishes missed with all drives.
    pub misses: Vec<MissedWish>,
    /// Wishes met with all drives, but not with a failed drive or during a rebuild.
    pub misses_without_a_drive: Vec<MissedWish>,
    /// Wishes met with all drives, but not with a slow drive. These misses do not change the order.
    pub misses_with_a_slow_drive: Vec<MissedWish>,
    /// Wishes whose result may be chance, because the runs are too short.
    pub doubts: Vec<DoubtfulWish>,
    /// Sentences about data with all drives that no medium moved: in buffers of the drives, or in
    /// memory.
    pub media_notes: Vec<String>,
    /// Parameters of the chance of data loss.
    pub redundancy: Redundancy,
    /// Chance of data loss.
    pub loss: DataLossChance,
    /// Formula of the mean time to data loss in hours, with the numbers of this array.
    pub mttdl_hours: String,
}
