//! The hours of a rebuild, from sampled windows.
//!
//! A rebuild of a large drive beside a load takes days of simulated time, and a run sees its first
//! minutes, at the outer edge. Windows begin the rebuild at places all over the drive
//! (`rebuild_from`). Each window gives the **slowness** at its place: the time of the filled part,
//! as a multiple of the time at the full speed of the zones. The slowness hardly depends on the
//! place, because the zones are divided out. The hours are the time of the whole drive at full
//! speed, times the mean slowness; each window counts with the part of the drive that is nearest to
//! it.
//!
//! A window has a load of its own: a part of a trace, or a seed. A trace that is short enough is the
//! load of each window. Parts of a longer trace differ: a rebuild does more of its work in the quiet
//! parts, so that the mean of the speeds counts (`windows.rs`).

use crate::rebuild_plan::plan;
use crate::space::shuffle;
use crate::windows::{
    Differences, ScanPart, WINDOWS_FIRST, WINDOWS_FIRST_OF_MANY, Window, WindowMean, scan_parts,
    search, search_parts,
};
use crate::{ComparedStack, LabError, Recipe, RunResult, run_all};
use fullstroke_measure::{RebuildPlan, RebuildReport, Report, Stop};
use fullstroke_units::Duration;
use fullstroke_volume::REBUILD_WINDOW;
use std::cell::Cell;

/// Largest number of windows: 12 + 24 + 48 + 96.
const WINDOWS_MAX: usize = 180;

/// Relative half width of the interval that ends the search for each of several parts. A window
/// with scattered records differs more from its neighbours, and costs more events.
const PRECISION_OF_PARTS: f64 = 0.03;

/// Length of a window in simulated seconds, and least length.
const WINDOW_S: f64 = 60.0;
const WINDOW_MIN_S: f64 = 5.0;

/// Largest work of a window that is no whole trace, so that a busy load does not take minutes.
const WINDOW_WORK_MAX: f64 = 100_000.0;

/// Longest trace that is the load of each window as a whole.
const WHOLE_TRACE_S: f64 = 600.0;

/// Bytes of requests, and rebuilt bytes, that take as long to simulate as a request. RAID 5 like md
/// handles requests of megabytes page by page, and the rebuild of a quiet array passes 128 KiB after
/// 128 KiB.
const REQUEST_BYTES: f64 = 65_536.0;
const REBUILT_BYTES: f64 = 262_144.0;

/// Processor time of a run, as the number of small requests that take as long: about 4 µs each. Seconds
/// of a clock would make the result depend on the computer.
fn work(report: &Report) -> f64 {
    let seconds = report.rates.simulated_s;
    let rebuild = report.array.rebuild.as_ref();
    let rebuilt_mb_per_s = rebuild.map_or(0.0, |rebuild| rebuild.mb_per_s);
    let bytes = |mb_per_s: f64| 1e6 * mb_per_s * seconds;
    report.arrived.requests as f64
        + bytes(report.rates.mb_per_s) / REQUEST_BYTES
        + bytes(rebuilt_mb_per_s) / REBUILT_BYTES
}

/// Work that an answer is worth.
#[derive(Clone, Copy, Debug)]
pub struct RebuildEffort {
    /// Number of windows at first.
    windows_first: usize,
    /// Relative half width of the interval that ends the search.
    precision: f64,
    /// Largest work of all windows.
    work_max: f64,
}

impl RebuildEffort {
    /// A single answer: about 20 s of processor time.
    pub const SINGLE: RebuildEffort = RebuildEffort {
        windows_first: WINDOWS_FIRST,
        precision: 0.01,
        work_max: 5e6,
    };

    /// One of many answers, such as the layouts of an advice. Three percent of the hours hardly
    /// change a chance of data loss.
    pub const OF_MANY: RebuildEffort = RebuildEffort {
        windows_first: WINDOWS_FIRST_OF_MANY,
        precision: 0.03,
        work_max: 2.5e6,
    };
}

/// Share of a window, and largest time, before the speed counts.
const SETTLING_SHARE: f64 = 0.25;
const SETTLING_MAX_S: f64 = 15.0;

/// Replaces the hours of a rebuild in `ran` by hours from windows all over the drive, with an
/// interval. A rebuild that ended in the run stays as measured. Returns the number of simulated
/// requests. The result depends on the seed of the stack alone.
///
/// # Errors
/// Errors of the stack or of a run.
pub fn sample_rebuild(
    recipe: &Recipe,
    ran: &mut RunResult,
    jobs: usize,
    effort: RebuildEffort,
    stop: &Stop,
) -> Result<u64, LabError> {
    let report = &ran.measured.report;
    let seconds = report.rates.simulated_s;
    let sampled = report
        .array
        .rebuild
        .as_ref()
        .is_some_and(|one| one.estimated);
    // An overloaded run has no steady speed, and a rebuild beside it no end.
    if !sampled || seconds <= 0.0 || report.grows() {
        return Ok(0);
    }
    let sampling = Sampling::new(recipe, report, effort)?;
    let precision = match sampling.parts.len() {
        1 => effort.precision,
        _ => PRECISION_OF_PARTS,
    };
    let requests = Cell::new(0);
    let windows_first = sampling.differences().windows_first(effort.windows_first);
    let mean = search_parts(&sampling.parts, |number, part| {
        let spent = Cell::new(0.0);
        let run = |places: &[f64], before: usize| {
            let index = number * WINDOWS_MAX + before;
            let simulated = sampling.windows(part, places, index, jobs, stop)?;
            spent.set(spent.get() + simulated.work);
            requests.set(requests.get() + simulated.requests);
            Ok(simulated.windows)
        };
        let has_room = |windows: usize, next: usize| {
            let next_work = spent.get() / windows as f64 * next as f64;
            // The windows of a small drive do not take longer than its rebuild, which seldom goes
            // faster than at half the full speed.
            let all_s = (windows + next) as f64 * sampling.window_s;
            windows + next <= WINDOWS_MAX
                && spent.get() + next_work <= effort.work_max / sampling.parts.len() as f64
                && all_s <= 2.0 * sampling.ideal_s
        };
        let differences = sampling.differences();
        search(windows_first, precision, differences, run, has_room)
    })?;
    if let Some(mean) = mean {
        sampling.note(ran, &mean);
    }
    Ok(requests.get())
}

/// Windows that were run, the work of their runs, and the number of requests.
struct RanWindows {
    /// `None` if a window has no rebuild.
    windows: Option<Vec<Window>>,
    work: f64,
    requests: u64,
}

/// The rebuild of a stack, and the length of its windows.
pub(crate) struct Sampling<'a> {
    recipe: &'a Recipe,
    plans: Vec<RebuildPlan>,
    table: String,
    /// Seconds of the whole rebuild at the full speed of the zones, over all members.
    ideal_s: f64,
    /// Parts of the rebuild with windows of their own.
    parts: Vec<ScanPart>,
    /// Simulated seconds of a window.
    window_s: f64,
    /// Parts of a trace, in a random order; empty for other loads.
    trace_parts: Vec<[Duration; 2]>,
    /// Load of a window, as a multiple of the load of the stack.
    factor: f64,
    settling: Duration,
    /// Simulated seconds for a second of the trace; `None` without a trace, and if requests wait for
    /// completions, so that a run does not keep the times of the trace.
    time_scale: Option<f64>,
    first_seed: u64,
}

impl<'a> Sampling<'a> {
    /// Returns the windows for the load of a run with this report.
    fn new(
        recipe: &'a Recipe,
        report: &Report,
        effort: RebuildEffort,
    ) -> Result<Sampling<'a>, LabError> {
        let candidate = recipe.candidate()?;
        let stack = &candidate.stack;
        let is_trace = stack.has_only_traces();
        let members = stack.rebuilt_members()?;
        let table = members
            .first()
            .map_or_else(String::new, |member| member.table.clone());
        let scattered = members.first().and_then(|member| member.scattered);
        let plans: Vec<RebuildPlan> = members.into_iter().map(plan).collect();
        let (seconds, whole) = (report.rates.simulated_s, work(report));
        let ideal_s: f64 = plans
            .iter()
            .map(|one| one.ideal_s(one.from.0, one.used.0))
            .sum();
        // The first windows take at most half of the time of a whole rebuild. Otherwise the windows
        // of a small drive would cost more than the rebuild.
        let of_rebuild_s = ideal_s / (2 * WINDOWS_FIRST) as f64;
        // Parts of a trace differ more than its whole at several places, so a whole trace may cost
        // more.
        let may_be_whole = is_trace
            && seconds <= of_rebuild_s.min(WHOLE_TRACE_S)
            && whole * effort.windows_first as f64 <= effort.work_max;
        let of_parts = Differences::Load.windows_first(effort.windows_first);
        let work_max = WINDOW_WORK_MAX.min(effort.work_max / of_parts as f64);
        let longest_s = of_rebuild_s.min(seconds * work_max / whole);
        let wanted_s = match may_be_whole {
            true => seconds,
            false => WINDOW_S.min(longest_s).max(WINDOW_MIN_S),
        };
        let loads = Sampling::loads(recipe, seconds, wanted_s)?;
        // Asking builds the stack, and only parts of a trace need the answer.
        let is_open = !loads.trace_parts.is_empty() && candidate.can_be_hurried()?;
        Ok(Sampling {
            plans,
            table,
            ideal_s,
            parts: scan_parts(scattered),
            window_s: wanted_s,
            time_scale: is_open.then(|| stack.trace_time_scale()),
            ..loads
        })
    }

    /// Returns the loads of windows of `wanted_s` seconds, without a rebuild. The load of the stack
    /// takes `seconds`.
    pub(crate) fn loads(
        recipe: &'a Recipe,
        seconds: f64,
        wanted_s: f64,
    ) -> Result<Sampling<'a>, LabError> {
        let stack = recipe.candidate()?.stack;
        // Each part of a trace is about as long as a window; a short trace is one part.
        let count = (seconds / wanted_s).floor().clamp(1.0, WINDOWS_MAX as f64) as usize;
        let mut parts = stack.trace_parts(count)?.unwrap_or_default();
        let mut random = stack.seed().stream("rebuild windows");
        shuffle(&mut parts, &mut random);
        let window_s = if parts.is_empty() {
            wanted_s
        } else {
            seconds / count as f64
        };
        let settling_s = (SETTLING_SHARE * window_s).min(SETTLING_MAX_S);
        Ok(Sampling {
            recipe,
            ideal_s: 0.0,
            parts: Vec::new(),
            window_s,
            plans: Vec::new(),
            table: String::new(),
            trace_parts: parts,
            factor: wanted_s / seconds,
            settling: Duration::from_millis((1000.0 * settling_s) as u64),
            time_scale: None,
            first_seed: stack.seed().0,
        })
    }

    /// Returns the cause of the differences between windows.
    pub(crate) fn differences(&self) -> Differences {
        match self.trace_parts.len() {
            0 | 1 => Differences::Place,
            _ => Differences::Load,
        }
    }

    /// Runs windows of a part at these places. `before` is the number of windows before them, so that
    /// each has a load of its own.
    fn windows(
        &self,
        part: ScanPart,
        places: &[f64],
        before: usize,
        jobs: usize,
        stop: &Stop,
    ) -> Result<RanWindows, LabError> {
        let candidates = places
            .iter()
            .enumerate()
            .map(|(index, &place)| {
                let mut candidate = self.candidate(part, place, before + index)?;
                candidate.stop = stop.clone();
                Ok(candidate)
            })
            .collect::<Result<Vec<_>, LabError>>()?;
        let ran = run_all(&candidates, jobs, &|_| {})?;
        let reports = || ran.iter().map(|one| &one.measured.report);
        let window = |(&place, ran): (&f64, &RunResult)| {
            let rebuild = ran.measured.report.array.rebuild.as_ref()?;
            let pace = rebuild.pace;
            let slowness = match self.differences() {
                Differences::Place => rebuild.slowness,
                Differences::Load => pace.slowness(),
            };
            Some(Window {
                place,
                slowness,
                seconds: pace.seconds,
                filled_share: rebuild.share,
            })
        };
        Ok(RanWindows {
            windows: places.iter().zip(&ran).map(window).collect(),
            work: reports().map(work).sum(),
            requests: reports().map(|report| report.arrived.requests).sum(),
        })
    }

    /// Returns the part of the trace for window number `index`; `None` for other loads.
    fn trace_part(&self, index: usize) -> Option<[Duration; 2]> {
        let part = index % self.trace_parts.len().max(1);
        self.trace_parts.get(part).copied()
    }

    /// Returns the stack with the load of window number `index`, or with the first part of this
    /// load.
    pub(crate) fn load(&self, index: usize, first_part: f64) -> Result<Recipe, LabError> {
        let mut recipe = self.recipe.clone();
        match self.trace_part(index) {
            Some([from, to]) => {
                let length = to.as_secs_f64() - from.as_secs_f64();
                let to = match first_part < 1.0 {
                    true => from + Duration::from_millis((1000.0 * first_part * length) as u64),
                    false => to,
                };
                recipe.limit_trace([from, to]);
            }
            None => {
                if let Some(scaled) = recipe.scaled(self.factor * first_part)? {
                    recipe = scaled;
                }
                let seed = self.first_seed.wrapping_add(1 + index as u64);
                recipe.overrides.set.push(format!("seed={seed}"));
            }
        }
        Ok(recipe)
    }

    /// Returns the load of window number `index`, and the simulated time before the speed counts.
    ///
    /// Parts of a trace follow each other without a gap, so that all windows together count the
    /// trace once: a window counts from the first request of its part to the first request of the
    /// next part. Before, the window replays the end of the part before.
    fn load_and_settling(&self, index: usize) -> Result<(Recipe, Duration), LabError> {
        let (Some([from, to]), Some(scale)) = (self.trace_part(index), self.time_scale) else {
            return Ok((self.load(index, 1.0)?, self.settling));
        };
        let settling = Duration::from_secs_f64(self.settling.as_secs_f64() / scale);
        let first = self.trace_parts.iter().map(|[from, _]| *from).min();
        let before = from - first.unwrap_or(from);
        let (begin, counted) = match before < settling {
            // Nothing, or too little, lies before the part.
            true => {
                let share_s = SETTLING_SHARE * (to - from).as_secs_f64();
                (from, from + settling.min(Duration::from_secs_f64(share_s)))
            }
            false => (from - settling, from),
        };
        let mut recipe = self.recipe.clone();
        recipe.limit_trace([begin, to + Duration::from_nanos(1)]);
        let settling_s = (counted - begin).as_secs_f64() * scale;
        Ok((recipe, Duration::from_secs_f64(settling_s)))
    }

    /// Builds the run of window number `index` at `place` of a part.
    fn candidate(
        &self,
        part: ScanPart,
        place: f64,
        index: usize,
    ) -> Result<ComparedStack, LabError> {
        let (mut recipe, settling) = self.load_and_settling(index)?;
        let bytes = self.begin_bytes(place);
        let (table, set) = (&self.table, &mut recipe.overrides.set);
        set.push(format!("{table}.rebuild_from={bytes}"));
        set.extend(part.assignment(table));
        let mut candidate = recipe.candidate()?;
        candidate.rebuild_settling = settling;
        Ok(candidate)
    }

    /// Returns the filled bytes of each member at a place: the sectors that take this share of the
    /// time at full speed.
    fn begin_bytes(&self, place: f64) -> u64 {
        let Some(plan) = self.plans.first() else {
            return 0;
        };
        let all_s = plan.ideal_s(plan.from.0, plan.used.0);
        // Bisection, because the time rises with the sectors.
        let (mut low, mut high) = (plan.from.0, plan.used.0);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if plan.ideal_s(plan.from.0, middle) < place * all_s {
                low = middle
            } else {
                high = middle
            }
        }
        // A rebuild from the begin of the drives is at a multiple of md's window, too. The speed depends
        // on the borders between the windows and the drive's tracks.
        low / REBUILD_WINDOW.0 * REBUILD_WINDOW.bytes().0
    }

    /// Writes the hours into the report.
    fn note(&self, ran: &mut RunResult, mean: &WindowMean) {
        let Some(rebuild) = &mut ran.measured.report.array.rebuild else {
            return;
        };
        *rebuild = RebuildReport {
            hours: mean.slowness * self.ideal_s / 3600.0,
            hours_ci95_half_width: Some(mean.half_width * self.ideal_s / 3600.0),
            windows: mean.windows,
            simulated_share: (rebuild.share + mean.filled_share).min(1.0),
            ..rebuild.clone()
        };
    }
}
