//! Windows at places all over a drive or a pool, until their mean is precise.
//!
//! The interval comes from the differences between neighbouring windows (J. von Neumann, Annals of
//! Mathematical Statistics 12(4), 1941), which a smooth change along the drive hardly enters.

use crate::LabError;
use fullstroke_measure::half_width_of_mean;
use fullstroke_units::order_by;

/// Number of windows at first, for a single answer. Each further step has twice as many.
pub(crate) const WINDOWS_FIRST: usize = 12;

/// The same for one of many answers. Half the width of an interval from three windows is 2.5 times
/// the standard deviation of a window.
pub(crate) const WINDOWS_FIRST_OF_MANY: usize = 3;

const CONFIDENCE: f64 = 0.95;

/// Number of groups of neighbouring windows with the mean of their speeds, if the load differs
/// from window to window. 12 windows and the windows of all further steps are multiples of it.
const GROUPS: usize = 6;

/// A window: its place as a share of the whole work, and its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) place: f64,
    /// Time of the work at this place, as a multiple of a reference time; infinite if the window
    /// made no progress.
    pub(crate) slowness: f64,
    /// Length of the window in seconds.
    pub(crate) seconds: f64,
    pub(crate) filled_share: f64,
}

/// Cause of the differences between windows, which decides how windows are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Differences {
    /// The places differ, and the load is alike in all windows. The work passes every place, so the
    /// times of the places add up: the mean of the slowness counts.
    Place,
    /// The load differs: each window has another part of a trace. The work meets every part for as
    /// long as the part lasts, and does more of the work in a quiet part. So the mean of the speed
    /// counts among neighbouring windows. The mean of the slowness would count a burst for all of
    /// the work that the burst holds up.
    Load,
}

impl Differences {
    /// Returns the number of windows at first, if windows that differ by their places alone need
    /// `of_places`.
    pub(crate) fn windows_first(self, of_places: usize) -> usize {
        match self {
            Differences::Place => of_places,
            // At least two windows for each group of neighbours.
            Differences::Load => of_places.max(2 * GROUPS),
        }
    }
}

/// Mean over all windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowMean {
    pub(crate) slowness: f64,
    /// Half the width of the interval.
    pub(crate) half_width: f64,
    /// Number of windows, and the share of the work in them.
    pub(crate) windows: usize,
    pub(crate) filled_share: f64,
}

/// A part of a work with windows of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanPart {
    /// Value of the key `scan_records` of a pool; `None` for the whole work.
    records: Option<&'static str>,
    /// Share of the work.
    share: f64,
}

impl ScanPart {
    /// The whole work.
    pub(crate) const WHOLE: ScanPart = ScanPart {
        records: None,
        share: 1.0,
    };

    /// Returns the assignment that limits the scan of the pool in `table` to this part.
    pub(crate) fn assignment(self, table: &str) -> Option<String> {
        let records = self.records?;
        Some(format!("{table}.scan_records={records}"))
    }
}

/// Returns the parts of a work. Scattered records take up to a hundred times as long as ordered
/// records, and a scan reads hours of the one kind before the other kind. Windows at places of the
/// whole scan would meet the scattered records by chance. `scattered` is the share of scattered
/// records beside ordered ones.
pub(crate) fn scan_parts(scattered: Option<f64>) -> Vec<ScanPart> {
    let part = |records, share| ScanPart {
        records: Some(records),
        share,
    };
    match scattered {
        None => vec![ScanPart::WHOLE],
        Some(share) => vec![part("ordered", 1.0 - share), part("scattered", share)],
    }
}

/// Searches in each part with `search_one`, which gets the number of the part. Returns the sum over
/// the parts; `None` if a part has no mean.
pub(crate) fn search_parts(
    parts: &[ScanPart],
    mut search_one: impl FnMut(usize, ScanPart) -> Result<Option<WindowMean>, LabError>,
) -> Result<Option<WindowMean>, LabError> {
    let mut means = Vec::new();
    for (number, &part) in parts.iter().enumerate() {
        let Some(mean) = search_one(number, part)? else {
            return Ok(None);
        };
        means.push((part, mean));
    }
    Ok(Some(WindowMean::of_parts(&means)))
}

impl WindowMean {
    /// Returns the sum over all parts of a work. The slowness of a part holds for the whole part.
    fn of_parts(parts: &[(ScanPart, WindowMean)]) -> WindowMean {
        // The windows of the parts have loads of their own, so the errors are independent.
        let squares = parts.iter().map(|(_, mean)| mean.half_width.powi(2));
        WindowMean {
            slowness: parts.iter().map(|(_, mean)| mean.slowness).sum(),
            half_width: squares.sum::<f64>().sqrt(),
            windows: parts.iter().map(|(_, mean)| mean.windows).sum(),
            filled_share: parts
                .iter()
                .map(|(part, mean)| part.share * mean.filled_share)
                .sum(),
        }
    }
}

/// Runs windows, `first` at first, until half the width of the interval is at most the share
/// `precision` of the mean.
/// `run` gets places and the number of windows before them. `has_room` gets the number of windows so
/// far and that of the next step, and ends the search. `None` with too few windows, and if a window
/// has no result. `None` also without progress at a place, or in a group of neighbouring windows with
/// different loads: a mean of the others would leave out the slowest place.
pub(crate) fn search(
    first: usize,
    precision: f64,
    differences: Differences,
    mut run: impl FnMut(&[f64], usize) -> Result<Option<Vec<Window>>, LabError>,
    has_room: impl Fn(usize, usize) -> bool,
) -> Result<Option<WindowMean>, LabError> {
    let (mut windows, mut count) = (Vec::new(), first);
    loop {
        let places = (0..count).map(|index| (index as f64 + 0.5) / count as f64);
        let Some(more) = run(&places.collect::<Vec<_>>(), windows.len())? else {
            return Ok(None);
        };
        windows.extend(more);
        order_by(&mut windows, |one: &Window, other| {
            one.place.total_cmp(&other.place)
        });
        let mean = match differences {
            Differences::Place => mean_slowness(&windows),
            Differences::Load => mean_of_groups(&windows),
        };
        let Some((slowness, half_width)) = mean else {
            return Ok(None);
        };
        // The new places lie between the old ones: (i + 0.5) / 2n is never (j + 0.5) / n.
        count *= 2;
        if half_width <= precision * slowness || !has_room(windows.len(), count) {
            return Ok(Some(WindowMean {
                slowness,
                half_width,
                windows: windows.len(),
                filled_share: windows.iter().map(|window| window.filled_share).sum(),
            }));
        }
    }
}

/// Returns the mean slowness over the drive and half the width of its interval. `windows` are in
/// the order of their places. `None` with fewer than two windows, or without progress in a window.
fn mean_slowness(windows: &[Window]) -> Option<(f64, f64)> {
    if windows.len() < 2 || windows.iter().any(|window| !window.slowness.is_finite()) {
        return None;
    }
    let weights = weights(windows);
    let mean = windows
        .iter()
        .zip(&weights)
        .map(|(window, weight)| window.slowness * weight)
        .sum();
    // Half the mean square of successive differences is the variance of a window.
    let squares: f64 = windows
        .windows(2)
        .map(|pair| (pair[1].slowness - pair[0].slowness).powi(2))
        .sum();
    let freedom = (windows.len() - 1) as f64;
    let variance = squares / (2.0 * freedom);
    let weights: f64 = weights.iter().map(|weight| weight * weight).sum();
    let half_width = half_width_of_mean(variance * weights, freedom, CONFIDENCE);
    Some((mean, half_width))
}

/// Does the same for windows with different loads: the mean over groups of neighbouring windows,
/// each with the work of its windows in their whole time. `None` with fewer than two windows a group,
/// or without progress in a group.
fn mean_of_groups(windows: &[Window]) -> Option<(f64, f64)> {
    if windows.len() < 2 * GROUPS {
        return None;
    }
    let size = windows.len().div_ceil(GROUPS);
    let weights = weights(windows);
    let speed = |window: &Window| 1.0 / window.slowness;
    let mean_s = windows.iter().map(|window| window.seconds).sum::<f64>() / windows.len() as f64;
    let (mut groups, mut squares) = (Vec::new(), 0.0);
    for (windows, weights) in windows.chunks(size).zip(weights.chunks(size)) {
        let seconds: f64 = windows.iter().map(|window| window.seconds).sum();
        let work: f64 = windows
            .iter()
            .map(|window| window.seconds * speed(window))
            .sum();
        if work <= 0.0 || seconds <= 0.0 {
            return None;
        }
        let mean_speed = work / seconds;
        let relative = |window: &Window| {
            let share_of_time = window.seconds / mean_s;
            share_of_time * (speed(window) / mean_speed - 1.0)
        };
        squares += windows
            .iter()
            .map(|window| relative(window).powi(2))
            .sum::<f64>();
        groups.push((weights.iter().sum::<f64>(), 1.0 / mean_speed));
    }
    let freedom = (windows.len() - groups.len()) as f64;
    // Variance of a group's speed, relative to the speed.
    let variance = squares / freedom / size as f64;
    // A mean of few speeds varies, and the mean of its reciprocals is too large by this factor, to
    // the second order.
    let excess = 1.0 + variance;
    let mean = groups
        .iter()
        .map(|(weight, slowness)| weight * slowness / excess)
        .sum();
    let squares: f64 = groups
        .iter()
        .map(|(weight, slowness)| (weight * slowness).powi(2))
        .sum();
    let half_width = half_width_of_mean(squares * variance, freedom, CONFIDENCE);
    Some((mean, half_width))
}

/// Returns the weight of each window: the part of the drive that is nearest to the window.
fn weights(windows: &[Window]) -> Vec<f64> {
    debug_assert!(
        windows.is_sorted_by_key(|window| window.place),
        "a window weighs as much as the way to its neighbours"
    );
    let border = |index: usize| match index {
        0 => 0.0,
        index if index == windows.len() => 1.0,
        index => (windows[index - 1].place + windows[index].place) / 2.0,
    };
    (0..windows.len())
        .map(|index| border(index + 1) - border(index))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(places: &[f64], slowness: impl Fn(f64) -> f64) -> Vec<Window> {
        let window = |&place: &f64| Window {
            place,
            slowness: slowness(place),
            seconds: 60.0,
            filled_share: 0.001,
        };
        places.iter().map(window).collect()
    }

    #[test]
    fn a_smooth_change_is_precise_at_once_and_noise_asks_for_more_windows() {
        let smooth = search(
            WINDOWS_FIRST,
            0.02,
            Differences::Place,
            |places, before| {
                assert_eq!((places.len(), before), (WINDOWS_FIRST, 0));
                Ok(Some(windows(places, |place| 2.0 + 0.1 * place)))
            },
            |_, _| true,
        );
        let smooth = smooth.unwrap().unwrap();
        assert!((smooth.slowness - 2.05).abs() < 1e-9, "{smooth:?}");
        let mut steps = Vec::new();
        let noisy = search(
            WINDOWS_FIRST,
            0.001,
            Differences::Place,
            |places, before| {
                steps.push((places.len(), before));
                let tenth = |place: f64| (place * 1e4) as u64 % 7;
                Ok(Some(windows(places, |place| {
                    2.0 + 0.1 * tenth(place) as f64
                })))
            },
            |windows, next| windows + next <= 84,
        );
        assert_eq!(noisy.unwrap().unwrap().windows, 84);
        assert_eq!(steps, [(12, 0), (24, 12), (48, 36)]);
        let none = search(
            WINDOWS_FIRST,
            0.1,
            Differences::Place,
            |_, _| Ok(Some(Vec::new())),
            |_, _| true,
        );
        assert!(none.unwrap().is_none());
        let stuck = search(
            WINDOWS_FIRST,
            0.1,
            Differences::Place,
            |_, _| Ok(None),
            |_, _| true,
        );
        assert!(stuck.unwrap().is_none());
    }

    #[test]
    fn work_under_a_load_that_comes_and_goes_takes_the_mean_of_the_speeds() {
        // Half of the time the work goes at full speed, the other half at a tenth or not at all.
        for (slow, expected) in [(10.0, 1.0 / 0.55), (f64::INFINITY, 2.0)] {
            let alternating = search(
                WINDOWS_FIRST,
                0.01,
                Differences::Load,
                |places, before| {
                    let mut every_other = windows(places, |_| 1.0);
                    for window in every_other.iter_mut().skip(before % 2).step_by(2) {
                        window.slowness = slow;
                    }
                    Ok(Some(every_other))
                },
                |windows, next| windows + next <= 180,
            );
            let mean = alternating.unwrap().unwrap();
            assert!(mean.half_width > 0.02 * mean.slowness, "{mean:?}");
            let apart = (mean.slowness - expected).abs();
            assert!(apart < mean.half_width, "{expected}: {mean:?}");
        }
        // The times of places still add up.
        let places: Vec<f64> = (0..36)
            .map(|place| (f64::from(place) + 0.5) / 36.0)
            .collect();
        let smooth = windows(&places, |place| 1.0 + 2.0 * place);
        let (mean, _) = mean_slowness(&smooth).unwrap();
        let (grouped, _) = mean_of_groups(&smooth).unwrap();
        assert!(
            (mean - 2.0).abs() < 1e-9 && (grouped / mean - 1.0).abs() < 0.01,
            "{grouped}"
        );
        // A long window counts more than a short one.
        let mut uneven = windows(&places, |_| 1.0);
        for (index, window) in uneven.iter_mut().enumerate() {
            (window.slowness, window.seconds) = match index % 2 {
                0 => (1.0, 90.0),
                _ => (10.0, 10.0),
            };
        }
        let (mean, half_width) = mean_of_groups(&uneven).unwrap();
        assert!(
            (mean - 1.0 / 0.91).abs() < half_width.min(0.02),
            "{mean} ± {half_width}"
        );
        let stuck = windows(&places, |_| f64::INFINITY);
        assert!(mean_slowness(&stuck).is_none() && mean_of_groups(&stuck).is_none());
    }
}
