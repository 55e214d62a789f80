//! The hours of a scrub, from sampled windows.
//!
//! A scrub of a large pool beside a load takes days of simulated time, and a run sees its first minutes,
//! at the outer edge. Windows begin the scrub at places all over the records (`scrub_from`). Each
//! window runs twice with the same load: a short run ends inside the long run, and the difference of
//! both leaves out the begin of the scrub, where queues and caches are empty. The hours are the mean
//! over the places. The interval comes from the differences between neighbouring windows, as for a
//! rebuild (`rebuild.rs`).

use crate::rebuild::Sampling;
use crate::windows::{ScanPart, WINDOWS_FIRST, Window, scan_parts, search, search_parts};
use crate::{LabError, Recipe, RunResult, run_all};
use fullstroke_measure::{Report, ScrubReport, Stop};

/// Reading of a pool that a scrub makes.
const HOURS: &str = "pool_scrub_hours";
const SHARE: &str = "pool_scrub_share";

/// Largest number of windows of a single answer: 12 + 24.
pub(crate) const SCRUB_WINDOWS: usize = 36;

/// The same for one of many answers.
pub(crate) const SCRUB_WINDOWS_OF_MANY: usize = WINDOWS_FIRST;

/// Largest number of requests in a window, so that a busy load does not take minutes.
const REQUESTS_MAX: f64 = 40_000.0;

/// Length of a window in simulated seconds: four transaction groups, which a scrub prolongs to 5 s.
const WINDOW_S: f64 = 20.0;

/// Relative half width of the interval that ends the search.
const PRECISION: f64 = 0.02;

/// Part of a window that is left out at its begin.
const BEGIN_SHARE: f64 = 0.25;

/// Share of the records from which on a scrub counts as whole.
const WHOLE: f64 = 0.9999;

/// State of a scrub at the last record that it read.
#[derive(Clone, Copy, Debug)]
struct Progress {
    share: f64,
    hours: f64,
}

impl Progress {
    /// Returns the progress of the only pool that is scrubbed.
    fn of(report: &Report) -> Option<Progress> {
        let layers = report.array.layers.iter();
        let mut scrubbed = layers.filter_map(|layer| {
            Some(Progress {
                share: layer.value(SHARE)?,
                // The reading is the time of all records at the pace so far.
                hours: layer.value(HOURS)? * layer.value(SHARE)?,
            })
        });
        let first = scrubbed.next()?;
        scrubbed.next().is_none().then_some(first)
    }

    /// Returns the progress since `begin`; all of it if nothing was read since.
    fn since(self, begin: Option<Progress>) -> Option<Progress> {
        let since = match begin.filter(|begin| begin.share < self.share) {
            Some(begin) => Progress {
                share: self.share - begin.share,
                hours: self.hours - begin.hours,
            },
            None => self,
        };
        (since.share > 0.0 && since.hours > 0.0).then_some(since)
    }
}

/// Sets the hours of a scrub in `ran` from windows all over the records, with an interval. The
/// readings of the pool keep the pace of the run. Several scrubs at once get no hours. At most
/// `windows_max` windows are simulated. The result depends on the seed of the stack alone.
///
/// # Errors
/// Errors of the stack or of a run.
pub(crate) fn sample_scrub(
    recipe: &Recipe,
    ran: &mut RunResult,
    jobs: usize,
    windows_max: usize,
    stop: &Stop,
) -> Result<(), LabError> {
    let report = &ran.measured.report;
    let Some(seen) = Progress::of(report) else {
        return Ok(());
    };
    if seen.share >= WHOLE {
        ran.measured.report.array.scrub = Some(ScrubReport {
            hours: seen.hours,
            hours_ci95_half_width: 0.0,
            windows: 0,
            simulated_share: 1.0,
        });
        return Ok(());
    }
    let seconds = report.rates.simulated_s;
    // An overloaded run has no steady pace. A pool below another volume has no key of this name.
    if seconds <= 0.0 || report.grows() {
        return Ok(());
    }
    let Ok(half) = at(recipe, ScanPart::WHOLE, 0.5).candidate() else {
        return Ok(());
    };
    let rate = report.arrived.requests as f64 / seconds;
    // A short run asks for a quick answer.
    let window_s = WINDOW_S.min(seconds).min(REQUESTS_MAX / rate);
    let loads = Sampling::loads(recipe, seconds, window_s)?;
    let parts = scan_parts(half.stack.scrubbed_scattered()?);
    let has_room = |windows: usize, next: usize| windows + next <= windows_max;
    let mean = search_parts(&parts, |number, part| {
        let run = |places: &[f64], before: usize| {
            let index = number * windows_max + before;
            paces(&loads, part, places, index, jobs, stop)
        };
        search(WINDOWS_FIRST, PRECISION, loads.differences(), run, has_room)
    })?;
    let Some(mean) = mean else {
        return Ok(());
    };
    ran.measured.report.array.scrub = Some(ScrubReport {
        hours: mean.slowness,
        hours_ci95_half_width: mean.half_width,
        windows: mean.windows,
        simulated_share: (seen.share + mean.filled_share).min(1.0),
    });
    Ok(())
}

/// Runs windows at places all over the records of a part. The slowness of a window is the hours of all
/// records of the part at its pace. `before` is the number of windows before them, so that each has a
/// load of its own. `None` if the scrub read nothing in a window.
fn paces(
    loads: &Sampling<'_>,
    chosen: ScanPart,
    places: &[f64],
    before: usize,
    jobs: usize,
    stop: &Stop,
) -> Result<Option<Vec<Window>>, LabError> {
    let mut candidates = Vec::new();
    for (index, &place) in places.iter().enumerate() {
        for part in [1.0, BEGIN_SHARE] {
            let load = loads.load(before + index, part)?;
            let mut candidate = at(&load, chosen, place).candidate()?;
            candidate.stop = stop.clone();
            candidates.push(candidate);
        }
    }
    let ran = run_all(&candidates, jobs, &|_| {})?;
    let window = |(&place, both): (&f64, &[RunResult])| {
        let [whole, begin] = [0, 1].map(|index| Progress::of(&both[index].measured.report));
        let since = whole?.since(begin)?;
        Some(Window {
            place,
            slowness: since.hours / since.share,
            seconds: 3600.0 * since.hours,
            filled_share: whole?.share,
        })
    };
    let pairs = places.iter().zip(ran.chunks_exact(2));
    Ok(pairs.map(window).collect())
}

/// Returns the recipe with a scrub that begins at a share of the records, or of the records of a part.
fn at(recipe: &Recipe, part: ScanPart, place: f64) -> Recipe {
    let mut recipe = recipe.clone();
    let set = &mut recipe.overrides.set;
    set.push(format!("volume.scrub_from={place}"));
    set.extend(part.assignment("volume"));
    // A warm-up may be longer than a window, and the readings of a pool count from the start.
    set.push("measurement.warm_up=0s".to_owned());
    recipe
}
