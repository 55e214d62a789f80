//! Races and runs.

use crate::changes::{AtLoad, would_change};
use crate::layouts::{Arrangement, arrangements, has_chunks, has_parity, is_pool, on_drives};
use crate::loss::{FORMULA, with_numbers};
use crate::order::{misses, order};
use crate::outcome::Condition as State;
use crate::words;
use crate::{
    AdviceRequest, AdviseError, ArrayOutcome, Assumptions, Costs, ExcludedLayout, Finalist,
    FlashOutcome, Wishes, loss,
};
use fullstroke_lab::{
    ComparedStack, Condition, DEFAULT_BUDGET, Ranking, RebuildEffort, Recipe, RunResult, Settled,
    Settling, Varied, kwh_a_year, mean_watts_half_width, next_factor, run_all, sample_rebuild,
};
use fullstroke_measure::{Difference, Metric, RebuildReport, Stop, factor_in_words};
use fullstroke_stack::Stack;
use serde::Serialize;

/// Factor of longer runs from which on two candidates count as nearly equal.
const NEARLY_EQUAL: f64 = 100.0;
/// Number of runs, each with a seed, if streams are wished.
const STREAM_SEEDS: usize = 5;

/// The advice.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Advice {
    /// Recommendation, one sentence each: the layout and the reasons, the second choice, and the
    /// changes that would alter the answer.
    pub recommendation: Vec<String>,
    /// Layout and number of drives that are recommended, or that come nearest to the wishes.
    pub recommended: String,
    /// Changes that would alter the answer.
    pub would_change: Vec<String>,
    /// Answer at multiples of the load.
    pub at_loads: Vec<AtLoad>,
    /// Assumptions behind the chance of data loss.
    pub assumptions: Assumptions,
    /// The formula of the mean time to data loss.
    pub mttdl_formula: &'static str,
    /// The assumptions in words.
    pub assumed: String,
    /// Requirements of the array.
    pub wishes: Wishes,
    /// The best of each layout, the recommended one first.
    pub finalists: Vec<Finalist>,
    /// Layouts excluded before any run.
    pub left_out: Vec<ExcludedLayout>,
    /// Number of runs on parts of the load and on the whole load.
    pub runs: usize,
    /// Whether longer runs may change the answer, and why the runs are no longer.
    pub settled: Settled,
    /// Prices.
    pub costs: Costs,
    /// Ranking of the finalists with all drives, by the wished speed.
    #[serde(flatten)]
    pub ranking: Ranking,
}

/// A layout with its best settings.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) arrangement: Arrangement,
    pub(crate) settings: Vec<String>,
    pub(crate) recipe: Recipe,
    pub(crate) settings_alike: usize,
    /// Runs of `recipe` with all drives, one for each seed, if the choice of the settings made
    /// them.
    pub(crate) healthy: Option<Vec<RunResult>>,
}

/// Answers a request. `progress` is called with a description of each step.
///
/// # Errors
/// Wishes that nothing can meet, a stack that cannot be used, or a run that fails.
pub fn advise(request: &AdviceRequest, progress: &dyn Fn(&str)) -> Result<Advice, AdviseError> {
    check(request)?;
    let (arrangements, left_out) = arrangements(request)?;
    let by = request.metric();
    let (mut chosen, mut runs) = (Vec::new(), 0);
    for (index, arrangement) in arrangements.iter().enumerate() {
        progress(&format!(
            "{} ({} of {}): chunks, elevators, caches",
            arrangement.name(),
            index + 1,
            arrangements.len()
        ));
        let (found, made) = request.choose(arrangement, by)?;
        runs += made;
        chosen.push(found);
    }
    progress("the best of each on all of the load: healthy, degraded, rebuilding");
    let mut finals = request.settled_finals(&chosen, by, &mut runs, progress)?;
    progress("the same with a slow drive");
    request.add_slow(&mut finals, &mut runs)?;
    progress("the same at more than this load");
    let at_loads = request.at_loads(&chosen, &finals.finalists, &mut runs)?;
    Ok(request.concluded(finals, left_out, at_loads, runs))
}

/// The finalists in order, and whether longer runs may change the order.
pub(crate) struct Finals {
    pub(crate) finalists: Vec<Finalist>,
    pub(crate) ranking: Ranking,
    pub(crate) settled: Settled,
    /// The candidates of the finalists, with the load of the last runs.
    pub(crate) chosen: Vec<Chosen>,
}

/// Refuses wishes that do not apply to the load or the drive.
pub(crate) fn check(request: &AdviceRequest) -> Result<(), AdviseError> {
    sound(request)?;
    // The stack's own drives may be too small for the load, so the check uses the largest permitted
    // number of drives.
    let most = request.counts.iter().copied().max().unwrap_or(1);
    let stack = Stack::load(&request.stack, &on_drives(request, "raid0", most))?;
    let load = ComparedStack::new(String::new(), Varied::default(), stack);
    if request.wishes.streams.is_some() && load.stack.streams().is_none() {
        let why = "--streams: the load has no streams; give a stack whose [workload] has kind = \"streams\"";
        return Err(AdviseError::Impossible(why.to_owned()));
    }
    if let Some(wished) = request.wishes.mb_per_s
        && load.can_be_hurried()?
    {
        let why = format!(
            "mb_per_s: found {wished}; arrivals are open, so every array that keeps up has the same throughput. Use p99, or a closed load (--pace closed)"
        );
        return Err(AdviseError::Impossible(why));
    }
    if request.wishes.watts.is_some() {
        let model = fullstroke_stack::drives::load_in(&request.overrides.files, &request.drive)?;
        if model
            .config()
            .power
            .is_none_or(|power| !power.counts_energy())
        {
            let why = format!(
                "--watts: the file of drive {} has no power figures; add [power], or make the file with `fullstroke drive new ... --idle-w --active-w --standby-w`",
                request.drive
            );
            return Err(AdviseError::Impossible(why));
        }
    }
    if request.wishes.price.is_some() && request.drive_price.is_none() {
        let why = "--price needs the price of a drive; give --drive-price, or price under [drives]";
        return Err(AdviseError::Impossible(why.to_owned()));
    }
    let buys = request
        .choices
        .controllers
        .iter()
        .any(|controller| controller.0.is_some());
    if request.wishes.price.is_some() && buys && request.controller_price.is_none() {
        let why = "--price needs the price of a controller; give controller_price under [drives]";
        return Err(AdviseError::Impossible(why.to_owned()));
    }
    Ok(())
}

/// Checks the numbers and names of a request.
fn sound(request: &AdviceRequest) -> Result<(), AdviseError> {
    let AdviceRequest {
        wishes,
        assumptions,
        choices,
        ..
    } = request;
    let above = |key: &str, number: Option<f64>, least: f64| match number {
        Some(number) if !(number > least && number.is_finite()) => Err(AdviseError::Impossible(
            format!("{key}: found {number}; expected a number above {least}"),
        )),
        _ => Ok(()),
    };
    above("p99", wishes.p99.map(|p99| p99.as_millis_f64()), 0.0)?;
    above("usable", wishes.usable.map(|usable| usable.0 as f64), 0.0)?;
    above("streams", wishes.streams.map(f64::from), 0.0)?;
    if let Some(share) = wishes
        .paused_share
        .filter(|share| !(0.0..=1.0).contains(share))
    {
        let why = format!("paused_share: found {share}; expected a share from 0 to 1");
        return Err(AdviseError::Impossible(why));
    }
    above("mb_per_s", wishes.mb_per_s, 0.0)?;
    above("watts", wishes.watts, 0.0)?;
    above("price", wishes.price, 0.0)?;
    above("[drives] price, or --drive-price", request.drive_price, 0.0)?;
    above("[drives] controller_price", request.controller_price, 0.0)?;
    above(
        "[drives] flash_price, or --flash-price",
        request.flash_price,
        0.0,
    )?;
    above("energy_per_kwh", request.costs.energy_per_kwh, 0.0)?;
    above("mttf_hours", Some(assumptions.mttf_hours), 0.0)?;
    above("unreadable_bits", Some(assumptions.unreadable_bits), 1.0)?;
    above("replace_hours", Some(assumptions.replace_hours), 0.0)?;
    above("slow_factor", Some(assumptions.slow_factor), 1.0)?;
    once("layouts", &choices.layouts)?;
    once("controllers", &choices.controllers)?;
    once("caches", &choices.caches)?;
    if choices.caches.is_empty() {
        let why = "[choices] caches: found an empty list; expected none, or a cache such as 4GiB";
        return Err(AdviseError::Impossible(why.to_owned()));
    }
    // Keys that `advise` chooses, or that belong under [drives] and [choices].
    let own = [
        "layout", "drive", "drives", "failed", "rebuild", "members", "count",
    ];
    for assignment in &request.overrides.set {
        let key = assignment.split('=').next().unwrap_or_default().trim();
        let of_volume = key
            .strip_prefix("volume.")
            .and_then(|key| key.split(['.', '[']).next());
        let is_own = of_volume.is_some_and(|key| own.contains(&key));
        if key == "volume" || is_own {
            let why = format!(
                "--set {assignment}: advise itself sets layouts, drives and failed members; use [choices] layouts, --drive and --drives"
            );
            return Err(AdviseError::Impossible(why));
        }
    }
    Ok(())
}

/// Checks that no value occurs twice in a list of choices.
fn once<T: PartialEq + std::fmt::Display>(key: &str, values: &[T]) -> Result<(), AdviseError> {
    let twice = values
        .iter()
        .enumerate()
        .find(|(place, value)| values[..*place].contains(value));
    twice.map_or(Ok(()), |(_, value)| {
        let why = format!("[choices] {key}: {value} is given twice");
        Err(AdviseError::Impossible(why))
    })
}

impl AdviceRequest {
    /// Returns the advice from the finalists and the runs at more than the load.
    pub(crate) fn concluded(
        &self,
        finals: Finals,
        left_out: Vec<ExcludedLayout>,
        at_loads: Vec<AtLoad>,
        runs: usize,
    ) -> Advice {
        let Finals {
            finalists,
            mut ranking,
            settled,
            ..
        } = finals;
        let recommendation =
            words::recommendation(&finalists, &ranking, &words::Asked::of(self), &settled);
        let would_change = would_change(&finalists, &left_out, &self.wishes, &ranking, &at_loads);
        // The first candidate by one number may differ from the recommended one. The page states
        // both.
        ranking.reasons = words::reasons(&finalists, &ranking);
        ranking.verdict = words::beside(&finalists, &ranking, &self.wishes).or(ranking.verdict);
        Advice {
            recommendation,
            recommended: finalists
                .first()
                .map_or_else(String::new, |first| first.name.clone()),
            would_change,
            at_loads,
            assumptions: self.assumptions,
            mttdl_formula: FORMULA,
            assumed: words::assumed(&self.assumptions),
            wishes: self.wishes,
            finalists,
            left_out,
            runs,
            settled,
            costs: self.costs.clone(),
            ranking,
        }
    }

    /// Returns the metric of the ranking, which follows from the wished speed.
    pub(crate) fn metric(&self) -> Metric {
        let name = match self.wishes {
            Wishes { p99: Some(_), .. }
            | Wishes {
                streams: Some(_), ..
            } => "response_ms.p99",
            Wishes {
                mb_per_s: Some(_), ..
            } => "mb_per_s",
            _ => return Metric::RESPONSE_MEAN,
        };
        Metric::parse(name).unwrap_or(Metric::RESPONSE_MEAN)
    }

    pub(crate) fn seeds(&self) -> usize {
        if self.wishes.streams.is_some() {
            STREAM_SEEDS
        } else {
            1
        }
    }

    /// Returns the values of each key to try for a layout; empty if the layout has no such key.
    pub(crate) fn values(&self, layout: &str) -> [(&'static str, Vec<String>); 5] {
        let choices = &self.choices;
        let chunks = has_chunks(layout).then(|| choices.chunks.clone());
        let caches = choices.write_caches.iter().map(bool::to_string);
        let stripes = choices.stripe_caches.iter().map(u32::to_string);
        let stripes = has_parity(layout).then(|| stripes.collect());
        let records = is_pool(layout).then(|| choices.recordsizes.clone());
        [
            ("volume.chunk", chunks.unwrap_or_default()),
            ("host.elevator", choices.elevators.clone()),
            ("volume.write_cache", caches.collect()),
            ("volume.stripe_cache", stripes.unwrap_or_default()),
            ("volume.recordsize", records.unwrap_or_default()),
        ]
    }

    /// Runs the finals, and again with longer loads until the answer is settled, the budget is
    /// spent or the load ends.
    fn settled_finals(
        &self,
        chosen: &[Chosen],
        by: Metric,
        runs: &mut usize,
        progress: &dyn Fn(&str),
    ) -> Result<Finals, AdviseError> {
        let (mut chosen, mut spent, mut before) = (chosen.to_vec(), 0, 0);
        let mut rebuilds = Vec::new();
        loop {
            let (mut finalists, healthy, simulated) =
                self.finals(&mut chosen, runs, &mut rebuilds)?;
            let ranking = Ranking::of_seeds(&healthy, self.seeds(), by);
            order(&mut finalists, &self.wishes, &ranking);
            spent += simulated;
            let requests = healthy
                .iter()
                .map(|ran| ran.measured.report.arrived.requests)
                .max()
                .unwrap_or(0);
            let too_short_by = too_short_by(&finalists, &ranking, &self.wishes);
            let factor = next_factor(too_short_by);
            let settling = match self.budget {
                _ if too_short_by <= 1.0 => Some(Settling::Settled),
                None => Some(Settling::LengthChosen),
                // A longer load with no more requests is a load that has ended, such as a trace.
                _ if requests == before => Some(Settling::LoadEnds),
                // The next round costs this round times the factor.
                Some(budget) if spent as f64 + simulated as f64 * factor > budget as f64 => {
                    Some(Settling::BudgetSpent)
                }
                Some(_) => None,
            };
            before = requests;
            let longer = chosen.iter().map(|one| one.recipe.scaled(factor));
            let longer: Option<Vec<Recipe>> = match settling {
                Some(_) => None,
                None => longer.collect::<Result<_, _>>()?,
            };
            let Some(longer) = longer else {
                let settled = Settled {
                    settling: settling.unwrap_or(Settling::LoadEnds),
                    requests,
                    spent,
                    budget: self.budget.unwrap_or(DEFAULT_BUDGET),
                    too_short_by,
                };
                return Ok(Finals {
                    finalists,
                    ranking,
                    settled,
                    chosen,
                });
            };
            progress(&format!(
                "the runs are too short by a factor of about {}; the same with longer loads",
                factor_in_words(too_short_by)
            ));
            for (one, recipe) in chosen.iter_mut().zip(longer) {
                one.recipe = recipe;
            }
        }
    }

    /// Runs each candidate in all conditions. Also returns the runs with all drives, seed by seed,
    /// and the number of simulated requests. `rebuilds` keeps the rebuild of each run for the next
    /// round. Runs that a candidate brings along are taken instead of made.
    pub(crate) fn finals(
        &self,
        chosen: &mut [Chosen],
        runs: &mut usize,
        rebuilds: &mut Vec<Option<RebuildReport>>,
    ) -> Result<(Vec<Finalist>, Vec<RunResult>, u64), AdviseError> {
        let seeds = self.seeds();
        let (mut recipes, mut owners) = (Vec::new(), Vec::new());
        let mut known: Vec<Option<RunResult>> = Vec::new();
        for (index, one) in chosen.iter_mut().enumerate() {
            let conditions = [Condition::Degraded, Condition::Rebuilding];
            let others = conditions.map(|condition| one.recipe.in_condition(condition));
            let [degraded, rebuilding] = others;
            let forms = [Some(one.recipe.clone()), degraded?, rebuilding?];
            for (form, recipe) in forms.into_iter().enumerate() {
                if let Some(recipe) = recipe {
                    recipes.extend(recipe.with_seeds(seeds)?);
                    owners.push((index, form));
                    // The choice of the settings has run the candidate with all drives (form 0)
                    // only.
                    let made = (form == 0).then(|| one.healthy.take()).flatten();
                    known.extend(made.into_iter().flatten().map(Some));
                    known.resize_with(recipes.len(), || None);
                }
            }
        }
        let (mut ran, made) = self.runs_of(&recipes, known)?;
        *runs += made;
        let mut simulated: u64 = ran
            .iter()
            .map(|ran| ran.measured.report.arrived.requests)
            .sum();
        // The hours of a rebuild do not depend on the length of the load, so that the windows of
        // the first round serve all rounds. The windows have seeds of their own, so that the
        // windows of one seed serve all seeds.
        let mut sampled = None;
        for (place, (recipe, ran)) in recipes.iter().zip(&mut ran).enumerate() {
            if let Some(known) = rebuilds.get(place) {
                ran.measured.report.array.rebuild.clone_from(known);
                continue;
            }
            // The recipes of a candidate in one condition stand seed by seed: a multiple of `seeds`
            // begins with another candidate or condition.
            sampled = sampled.filter(|_| place % seeds != 0);
            let grows = ran.measured.report.grows();
            if let Some(rebuild) = &mut ran.measured.report.array.rebuild
                && let Some(hours) = sampled.clone()
                && rebuild.estimated
                && !grows
            {
                *rebuild = hours;
                rebuilds.push(Some(rebuild.clone()));
                continue;
            }
            simulated += sample_rebuild(
                recipe,
                ran,
                self.jobs,
                RebuildEffort::OF_MANY,
                &Stop::default(),
            )?;
            let rebuild = ran.measured.report.array.rebuild.clone();
            sampled = rebuild.clone().filter(|rebuild| rebuild.windows > 0);
            rebuilds.push(rebuild);
        }
        let of = |index: usize, form: usize| {
            let place = owners.iter().position(|owner| *owner == (index, form))?;
            Some(&ran[place * seeds..(place + 1) * seeds])
        };
        let mut healthy = Vec::new();
        let mut finalists = Vec::new();
        for (index, one) in chosen.iter().enumerate() {
            let whole = of(index, 0).unwrap_or_default();
            whole[0].check_measured()?;
            healthy.extend_from_slice(whole);
            let condition = |form| of(index, form).map(ArrayOutcome::new);
            finalists.push(self.finalist(one, whole, condition(1), condition(2)));
        }
        // The page of an advice draws no power.
        for run in &mut healthy {
            run.measured.report.over_time.watts = None;
        }
        Ok((finalists, healthy, simulated))
    }

    /// Returns the runs of the recipes in their order, and the number of runs made. A known run is
    /// taken, under the name of its recipe, instead of made.
    pub(crate) fn runs_of(
        &self,
        recipes: &[Recipe],
        known: Vec<Option<RunResult>>,
    ) -> Result<(Vec<RunResult>, usize), AdviseError> {
        let mut candidates = Vec::new();
        for (recipe, _) in recipes.iter().zip(&known).filter(|(_, run)| run.is_none()) {
            let timeline = self.timeline;
            candidates.push(ComparedStack {
                timeline,
                watts: true,
                ..recipe.candidate()?
            });
        }
        let made = run_all(&candidates, self.jobs, &|_| {})?;
        let count = made.len();
        let mut made = made.into_iter();
        let mut ran: Vec<RunResult> = known
            .into_iter()
            .filter_map(|run| run.or_else(|| made.next()))
            .collect();
        assert_eq!(ran.len(), recipes.len(), "each recipe has a run");
        for (run, recipe) in ran.iter_mut().zip(recipes) {
            run.varied = recipe.varied.clone();
            run.measured.report.name.clone_from(&recipe.name);
        }
        Ok((ran, count))
    }

    /// Returns the sound power of a number of drives while they idle and while they seek, in bels.
    fn noise(&self, drives: u32) -> [Option<f64>; 2] {
        // A drive that cannot be loaded has ended the advice before.
        let model = fullstroke_stack::drives::load_in(&self.overrides.files, &self.drive).ok();
        model.map_or([None; 2], |model| {
            let noise = model.config().published.noise(drives as usize);
            [noise.idle_bels, noise.seek_bels]
        })
    }

    pub(crate) fn finalist(
        &self,
        chosen: &Chosen,
        whole: &[RunResult],
        degraded: Option<ArrayOutcome>,
        rebuilding: Option<ArrayOutcome>,
    ) -> Finalist {
        let healthy = ArrayOutcome::new(whole);
        let arrangement = &chosen.arrangement;
        let hours = rebuilding.and_then(|outcome| outcome.rebuild_hours);
        let redundancy = arrangement.redundancy();
        let loss = loss(redundancy, self.assumptions, hours.unwrap_or(0.0));
        let (misses, misses_without_a_drive) = misses(
            &self.wishes,
            &healthy,
            [degraded.as_ref(), rebuilding.as_ref()],
            redundancy.survived,
        );
        let outcomes = [
            (Some(&healthy), State::Healthy),
            (degraded.as_ref(), State::Degraded),
            (rebuilding.as_ref(), State::Rebuilding),
        ];
        let doubts = outcomes.into_iter().flat_map(|(outcome, state)| {
            outcome.map_or(Vec::new(), |outcome| outcome.doubts(&self.wishes, state))
        });
        let doubts = doubts.collect();
        let price = arrangement.price(self);
        let usable_tb = whole[0].volume.usable_bytes as f64 / 1e12;
        let kwh_a_year = healthy.mean_w.map(kwh_a_year);
        let [idle_bels, seek_bels] = self.noise(arrangement.drives);
        Finalist {
            place: 0,
            name: arrangement.name(),
            layout: arrangement.layout.clone(),
            settings: chosen.settings.clone(),
            settings_alike: chosen.settings_alike,
            volume: whole[0].volume.clone(),
            controller: arrangement.controller,
            cache: arrangement.cache.clone(),
            flash: FlashOutcome::new(&arrangement.flash, arrangement.flash_price(self), whole),
            price,
            price_per_tb: price.map(|price| price / usable_tb),
            kwh_a_year,
            kwh_a_year_ci95_half_width: mean_watts_half_width(&whole[0].measured.report)
                .map(fullstroke_lab::kwh_a_year),
            energy_cost_a_year: kwh_a_year
                .zip(self.costs.energy_per_kwh)
                .map(|(kwh, price)| kwh * price),
            idle_bels,
            seek_bels,
            healthy,
            degraded,
            rebuilding,
            slow: None,
            misses,
            misses_without_a_drive,
            misses_with_a_slow_drive: Vec::new(),
            doubts,
            media_notes: whole[0].measured.report.array.media_notes.clone(),
            redundancy,
            loss,
            mttdl_hours: with_numbers(redundancy, self.assumptions, loss),
        }
    }
}

/// Returns the factor by which the runs are too short for the answer; at most 1 if the answer is
/// settled. The wishes of the first two finalists count, because they decide the recommendation. If
/// no speed is wished, the order by the mean decides, and the two must be apart.
fn too_short_by(finalists: &[Finalist], ranking: &Ranking, wishes: &Wishes) -> f64 {
    let doubts = finalists.iter().take(2).flat_map(|one| &one.doubts);
    let wished = doubts.map(|doubt| doubt.too_short_by).fold(1.0, f64::max);
    if wishes.of_speed() {
        return wished;
    }
    let next = ranking
        .candidates
        .iter()
        .filter(|one| !one.equal_to_best)
        .nth(1);
    let apart = next
        .and_then(|next| next.difference_to_best.as_ref())
        .and_then(Difference::longer_to_tell)
        // No affordable run tells candidates apart that are nearly equal.
        .filter(|factor| *factor <= NEARLY_EQUAL);
    wished.max(apart.unwrap_or(1.0))
}
