//! Readings of the array.

use crate::statistics::DiskStatistics;
use fullstroke_contract::LayerReadings;
use fullstroke_units::{Duration, Time};

/// Returns sums and means over the disks of the array until `now`.
pub(crate) fn of(disks: &[DiskStatistics], now: Time) -> LayerReadings {
    // At time 0 the sums are 0, and the shares become 0 rather than NaN.
    let elapsed = (now.as_nanos() as f64).max(1.0);
    let sum = |of: &dyn Fn(&DiskStatistics) -> f64| disks.iter().map(of).sum::<f64>();
    let mean = |of: &dyn Fn(&DiskStatistics) -> f64| sum(of) / disks.len() as f64;
    let share = |of: fn(&DiskStatistics) -> Duration| {
        move |disk: &DiskStatistics| of(disk).as_nanos() as f64 / elapsed
    };
    let most = |of: &dyn Fn(&DiskStatistics) -> f64| disks.iter().map(of).fold(0.0, f64::max);
    let (xdws, xpws) = (sum(&|disk| disk.xdws as f64), sum(&|disk| disk.xpws as f64));
    let access_ms = |of: fn(&DiskStatistics) -> Duration, commands: f64| {
        sum(&|disk| of(disk).as_millis_f64()) / commands.max(1.0)
    };
    let readings = [
        ("xor_reads", sum(&|disk| disk.reads as f64)),
        ("xor_writes", sum(&|disk| disk.writes as f64)),
        ("xor_xdws", xdws),
        ("xor_xpws", xpws),
        (
            "xor_xdw_access_ms_mean",
            access_ms(|disk| disk.xdw_access, xdws),
        ),
        (
            "xor_xpw_access_ms_mean",
            access_ms(|disk| disk.xpw_access, xpws),
        ),
        ("xor_utilisation_mean", mean(&share(|disk| disk.drive.busy))),
        ("xor_utilisation_max", most(&share(|disk| disk.drive.busy))),
        (
            "xor_forced_idle_share_mean",
            mean(&share(|disk| disk.forced_idle)),
        ),
        (
            "xor_forced_idle_share_max",
            most(&share(|disk| disk.forced_idle)),
        ),
        (
            "xor_without_choice",
            sum(&|disk| disk.without_choice as f64),
        ),
        (
            "xor_segments_in_use_mean",
            mean(&|disk| disk.segments_ns as f64 / elapsed),
        ),
        (
            "xor_results_mean",
            mean(&|disk| disk.results_ns as f64 / elapsed),
        ),
        (
            "xor_xpw_queue_mean",
            mean(&|disk| disk.xpw_queue_ns as f64 / elapsed),
        ),
    ];
    LayerReadings::new("xor", &readings)
}
