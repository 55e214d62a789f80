//! The recommendation in sentences. Each sentence follows from the runs. A sentence is left out if
//! its premise does not hold.

use crate::order::{FailedDistance, ranked};
use crate::{
    AdviceRequest, ArrayOutcome, Assumptions, CacheShape, Costs, FORMULA, Finalist, MissedWish,
    Wishes,
};
use fullstroke_counters::Counter;
use fullstroke_lab::{Ranking, Reason, Settled, capacity};
use fullstroke_measure::{Metric, Significance, factor_in_words, number, parity_in_words};

mod flash;

/// Number of parts of the response time in a sentence.
const PARTS_NAMED: usize = 2;

/// With random arrivals, the share of queues in the response time equals the utilisation of the
/// drives (M/M/1). From this multiple on, and from the share `BURSTS_SHARE` on, the text says that
/// requests come in bursts. Both values are chosen.
const BURSTS_TIMES: f64 = 2.0;
const BURSTS_SHARE: f64 = 0.5;

/// Returns the assumptions behind the chance of data loss.
pub(crate) fn assumed(assumptions: &Assumptions) -> String {
    format!(
        "The mean time to data loss is {FORMULA} (Chen et al., ACM Computing Surveys 26(2), 1994). MTTF, the mean time to the failure of a drive, is {:.0} hours, B is {:.0e}, and R is {} hours until a failed drive is replaced, plus the hours of the rebuild. The formula assumes independent failures and constant rates. It serves to compare layouts; arrays in the field lose data more often.",
        assumptions.mttf_hours, assumptions.unreadable_bits, assumptions.replace_hours
    )
}

/// The parts of a request that sentences name.
pub(crate) struct Asked<'a> {
    wishes: &'a Wishes,
    drive: &'a str,
    costs: &'a Costs,
    slow_factor: f64,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(request: &'a AdviceRequest) -> Asked<'a> {
        Asked {
            wishes: &request.wishes,
            drive: &request.drive,
            costs: &request.costs,
            slow_factor: request.assumptions.slow_factor,
        }
    }
}

/// Returns the recommended layout with the reasons, and the second choice.
pub(crate) fn recommendation(
    finalists: &[Finalist],
    ranking: &Ranking,
    asked: &Asked<'_>,
    settled: &Settled,
) -> Vec<String> {
    let Asked {
        wishes,
        drive,
        costs,
        slow_factor,
    } = *asked;
    let Some(first) = finalists.first() else {
        return Vec::new();
    };
    let mut sentences = vec![
        take(first, drive, wishes, costs),
        settings_chosen(first),
        wishes_met(first),
        money(first, costs),
        flash::devices(first, costs),
        flash::caches(
            first,
            finalists,
            &|one| reached(&one.healthy, wishes),
            costs,
        ),
        noise(first),
        settled.to_string(),
        speed(first, wishes),
        // The rate of the sentence before is then no rate of the drives.
        first.media_notes.join(" "),
        without_a_drive(first, wishes),
        with_a_slow_drive(first, wishes, slow_factor),
    ];
    sentences.extend(time_went(first, ranking));
    sentences.push(chance(first));
    for (place, rival) in rivals(finalists).into_iter().enumerate() {
        let head = match place {
            0 => format!("Second is {} ({})", rival.name, settings(rival)),
            _ => format!("Why not {}", rival.name),
        };
        sentences.push(why_not(&head, first, rival, ranking, wishes));
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Returns the first sentence: what to buy, for which load, and with which risk.
fn take(first: &Finalist, drive: &str, wishes: &Wishes, costs: &Costs) -> String {
    let head = match (first.misses.is_empty(), first.doubts.is_empty()) {
        (true, true) => "Take",
        (true, false) => "The runs are too short to be sure. The best so far is",
        (false, _) => "No layout meets every wish. The closest is",
    };
    let price = first.price.map_or_else(String::new, |price| {
        format!(", at a price of {price} {}", costs.currency)
    });
    let load = match wishes.streams {
        Some(streams) => format!("{streams} streams"),
        None => format!("a load of {} MB/s", number(first.healthy.mb_per_s)),
    };
    // The name of a finalist with a controller has ` behind SIZE`, with a cache ` under SHAPE`.
    // Both say less than the words below.
    let layout = first.name.split(" under ").next().unwrap_or(&first.name);
    let layout = layout.split(" behind ").next().unwrap_or(layout);
    let behind = controller(first).map_or_else(String::new, |words| format!(" behind {words}"));
    let under = cache(first).map_or_else(String::new, |words| format!(" under {words}"));
    format!(
        "{head} {layout} drives ({drive}){behind}{under} for {load}{price}: {} usable, {}; chance of data loss within a year: {}.",
        capacity(first.volume.usable_bytes),
        may_fail(first.volume.failures_survived),
        share(first.loss.chance_a_year)
    )
}

/// Returns the settings of the array as a second sentence. The first sentence has no settings,
/// because people forward the first sentence.
fn settings_chosen(first: &Finalist) -> String {
    let settings = keys_chosen(first).join(", ");
    if settings.is_empty() {
        return settings;
    }
    let alike = match first.settings_alike {
        0 => String::new(),
        others => format!(
            " The trials could not tell {} settings apart. The one shown was the fastest of them on the whole load.",
            others + 1
        ),
    };
    format!("Settings: {settings}.{alike}")
}

/// Returns the settings, the controller and the cache of an array.
fn settings(finalist: &Finalist) -> String {
    let mut each = keys_chosen(finalist);
    each.extend(controller(finalist));
    each.extend(cache(finalist));
    each.join(", ")
}

fn controller(finalist: &Finalist) -> Option<String> {
    let memory = finalist.controller.0?;
    Some(format!("a controller of {memory} that a battery keeps"))
}

fn cache(finalist: &Finalist) -> Option<String> {
    let CacheShape { kind, mode, size } = finalist.cache.0.as_ref()?;
    let mode = mode
        .as_ref()
        .map_or_else(String::new, |mode| format!(" ({mode})"));
    Some(format!("a {kind}{mode} of {size}"))
}

fn keys_chosen(finalist: &Finalist) -> Vec<String> {
    let each = finalist
        .settings
        .iter()
        .map(|assignment| match assignment.split_once('=') {
            Some(("volume.chunk", chunk)) => format!("chunks of {chunk}"),
            Some(("host.elevator", elevator)) => format!("elevator {elevator}"),
            Some(("volume.write_cache", on)) => {
                format!(
                    "the drives' write caches {}",
                    if on == "true" { "on" } else { "off" }
                )
            }
            Some(("volume.stripe_cache", "0")) => "no stripe cache".to_owned(),
            Some(("volume.stripe_cache", stripes)) => format!("a cache of {stripes} stripes"),
            _ => assignment.clone(),
        });
    each.collect()
}

fn may_fail(count: u32) -> String {
    match count {
        0 => "no drive may fail".to_owned(),
        1 => "any one drive may fail".to_owned(),
        count => format!("any {count} drives may fail"),
    }
}

fn wishes_met(first: &Finalist) -> String {
    let of = |misses: &[MissedWish]| {
        misses
            .iter()
            .map(|miss| miss.why.clone())
            .collect::<Vec<_>>()
            .join("; ")
    };
    if first.misses.is_empty()
        && let Some(doubt) = first.doubts.first()
    {
        return format!(
            "Whether the array meets every wish is not settled: {}; the runs are too short by a factor of about {}.",
            doubt.why,
            factor_in_words(doubt.too_short_by)
        );
    }
    match (
        first.misses.is_empty(),
        first.misses_without_a_drive.is_empty(),
    ) {
        (false, _) => format!("Missed wishes: {}.", of(&first.misses)),
        (true, false) => {
            format!(
                "The array meets every wish with all drives, but not with a failed drive: {}.",
                of(&first.misses_without_a_drive)
            )
        }
        (true, true) if first.degraded.is_some() => {
            "The array meets every wish, also with a failed drive and during the rebuild."
                .to_owned()
        }
        (true, true) => "The array meets every wish as long as no drive fails.".to_owned(),
    }
}

/// Returns the noise of all drives together; empty if the drive's file does not have it.
fn noise(first: &Finalist) -> String {
    let at = |bels: Option<f64>, when: &str| bels.map(|bels| format!("{bels:.1} bels {when}"));
    let levels = [
        at(first.idle_bels, "while they idle"),
        at(first.seek_bels, "while they seek"),
    ];
    let levels: Vec<String> = levels.into_iter().flatten().collect();
    match levels.is_empty() {
        true => String::new(),
        false => format!(
            "The drives together have a sound power of {}.",
            levels.join(", ")
        ),
    }
}

/// Returns the price of a usable terabyte, and the energy of a year.
fn money(first: &Finalist, costs: &Costs) -> String {
    let currency = &costs.currency;
    let per_tb = first
        .price_per_tb
        .map(|price| format!("A usable TB costs {} {currency}", number(price)));
    let energy = first.kwh_a_year.map(|kwh| {
        let half_width = first.kwh_a_year_ci95_half_width;
        let with_interval = |value: f64| {
            let share = half_width.map(|half_width| half_width / kwh);
            share.map_or_else(
                || format!("about {}", number(value)),
                |share| format!("{} ± {}", number(value), number(share * value)),
            )
        };
        let cost = first.energy_cost_a_year.map_or_else(String::new, |cost| {
            format!(" ({} {currency})", with_interval(cost))
        });
        format!(
            "the drives take {} kWh a year{cost} under this load",
            with_interval(kwh)
        )
    });
    let sentence = per_tb
        .into_iter()
        .chain(energy)
        .collect::<Vec<_>>()
        .join("; ");
    let mut letters = sentence.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

/// Returns the speed with all drives.
fn speed(first: &Finalist, wishes: &Wishes) -> String {
    let ArrayOutcome {
        mean_ms,
        p99_ms,
        mb_per_s,
        mean_w,
        underruns,
        p99_beyond,
        p99_ci95_half_width,
        ..
    } = first.healthy;
    let interval = p99_ci95_half_width.map_or_else(String::new, |half_width| {
        format!(" ± {}", number(half_width))
    });
    let beyond = match p99_beyond {
        1 => "1 request lies beyond".to_owned(),
        count => format!("{count} requests lie beyond"),
    };
    let mut words = format!(
        "Under this load the mean response time is {} ms, 99 % of requests end within {}{interval} ms ({beyond}), at {} MB/s",
        number(mean_ms),
        number(p99_ms),
        number(mb_per_s)
    );
    if let (Some(streams), Some(underruns)) = (wishes.streams, underruns) {
        match underruns {
            0 => words.push_str(&format!(", and {streams} streams play without an underrun")),
            _ => words.push_str(&format!(
                ", and {streams} streams have {underruns} underruns"
            )),
        }
    }
    if let Some(watts) = mean_w {
        words.push_str(&format!("; the drives use {} W", number(watts)));
    }
    words + "."
}

/// Returns the values of a run for the wished kinds of speed.
pub(crate) fn reached(outcome: &ArrayOutcome, wishes: &Wishes) -> String {
    match (wishes, outcome.underruns) {
        (
            Wishes {
                streams: Some(_), ..
            },
            Some(underruns),
        ) => format!("{underruns} underruns"),
        (
            Wishes {
                p99: None,
                mb_per_s: Some(_),
                ..
            },
            _,
        ) => format!("{} MB/s", number(outcome.mb_per_s)),
        (Wishes { p99: None, .. }, _) => format!("{} ms on average", number(outcome.mean_ms)),
        _ => format!("99 % within {} ms", number(outcome.p99_ms)),
    }
}

/// Returns how many streams of all runs pause: `3 of 500`.
fn paused(outcome: &ArrayOutcome) -> Option<String> {
    let (paused, started) = outcome.paused_streams.zip(outcome.started_streams)?;
    Some(format!("{paused} of {started}"))
}

fn without_a_drive(first: &Finalist, wishes: &Wishes) -> String {
    let (Some(degraded), Some(rebuilding)) = (&first.degraded, &first.rebuilding) else {
        return String::new();
    };
    let hours = rebuilding.rebuild_hours.map_or_else(String::new, |hours| {
        let simulated = rebuilding
            .rebuild_simulated_share
            .map_or_else(String::new, |share| {
                format!(" ({} % of the rebuild simulated)", number(100.0 * share))
            });
        let hours = match rebuilding.rebuild_hours_ci95_half_width {
            Some(half_width) if half_width > 0.0 => format!(
                "between {} and {} hours",
                number((hours - half_width).max(0.0)),
                number(hours + half_width)
            ),
            Some(_) => format!("{} hours", number(hours)),
            None => format!("about {} hours", number(hours)),
        };
        format!(". The rebuild takes {hours} under this load{simulated}")
    });
    if let (Some(_), Some(gone), Some(filled)) =
        (wishes.streams, paused(degraded), paused(rebuilding))
    {
        return format!(
            "With a failed drive {gone} streams pause, during the rebuild {filled}{hours}."
        );
    }
    format!(
        "With a failed drive 99 % of requests end within {} ms, during the rebuild within {} ms{hours}.",
        number(degraded.p99_ms),
        number(rebuilding.p99_ms)
    )
}

/// Returns the times with a slow drive.
fn with_a_slow_drive(first: &Finalist, wishes: &Wishes, factor: f64) -> String {
    let Some(slow) = &first.slow else {
        return String::new();
    };
    let when = format!("With a drive that takes {factor} times as long");
    let is_whole = slow.complete && slow.carried_share >= 1.0;
    match (wishes.streams, paused(slow)) {
        (Some(_), Some(paused)) => format!("{when}, {paused} streams pause."),
        _ if !is_whole || slow.grows => format!("{when}, the array does not carry the load."),
        _ => format!(
            "{when}, 99 % of requests end within {} ms ({} ms if no drive is slow) and 99.9 % within {} ms ({} ms).",
            number(slow.p99_ms),
            number(first.healthy.p99_ms),
            number(slow.p999_ms),
            number(first.healthy.p999_ms)
        ),
    }
}

/// Returns the largest parts of the mean response time.
fn time_went(first: &Finalist, ranking: &Ranking) -> Option<String> {
    let report = &ranked(ranking, first)?.report;
    let mut parts = report.times.time_ms.named();
    // The largest parts first, because only the first ones are named.
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let whole = report.times.response_ms.mean;
    let named = parts.iter().take(PARTS_NAMED).filter(|(_, ms)| *ms > 0.0);
    let named: Vec<String> = named
        .map(|(part, ms)| format!("{:.0} % {part}", 100.0 * ms / whole))
        .collect();
    let parity = parity_in_words(report).map_or_else(String::new, |words| format!(" {words}"));
    let busy = report
        .array
        .members
        .iter()
        .map(|member| member.value(Counter::BUSY))
        .sum::<f64>()
        / report.array.members.len().max(1) as f64;
    let bursts = match report.times.time_ms.queue > whole * BURSTS_SHARE.max(BURSTS_TIMES * busy) {
        true => format!(
            " The drives are busy only {:.0} % of the time, but requests come in bursts.",
            100.0 * busy
        ),
        false => String::new(),
    };
    (!named.is_empty()).then(|| {
        format!(
            "Parts of the mean response time: {}.{bursts}{parity}",
            named.join(", ")
        )
    })
}

fn chance(first: &Finalist) -> String {
    let loss = &first.loss;
    let mut words = format!(
        "The chance of data loss follows from a mean time to data loss of {} years (in hours: {})",
        years(loss.mttdl_years),
        first.mttdl_hours
    );
    if !loss.unreadable_chance.is_nan() {
        words.push_str(&format!(
            "; once no redundancy is left, the chance of an unreadable sector is {}",
            share(loss.unreadable_chance)
        ));
    }
    words + "."
}

pub(crate) fn share(chance: f64) -> String {
    if chance >= 0.1 {
        return format!("{:.0} %", 100.0 * chance);
    }
    if chance < 1e-9 {
        // The formula assumes independent failures, and field data do not support odds as small as
        // this.
        return "less than 1 in 10^9".to_owned();
    }
    // Two significant digits of the odds; a larger precision would pretend to know the rates.
    let odds = 1.0 / chance;
    let unit = 10f64.powf(odds.log10().floor() - 1.0);
    let odds = grouped((odds / unit).round() * unit);
    let percent = 100.0 * chance;
    let digits = (1.0 - percent.log10().floor()).max(0.0) as usize;
    format!("{percent:.digits$} % (about 1 in {odds})")
}

/// Returns a number of years with three significant digits.
fn years(years: f64) -> String {
    if years < 1000.0 || !years.is_finite() {
        return number(years);
    }
    let unit = 10f64.powf(years.log10().floor() - 2.0);
    grouped((years / unit).round() * unit)
}

/// Returns a whole number with a comma after each group of three digits.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the device that another array has and the first lacks.
fn needed_device(first: &Finalist, other: &Finalist) -> Option<&'static str> {
    let lacks = |of: fn(&Finalist) -> bool| !of(first) && of(other);
    if lacks(|one| one.controller.0.is_some()) {
        return Some("a controller");
    }
    let same_controller = first.controller == other.controller;
    (same_controller && lacks(|one| one.cache.0.is_some())).then_some("a flash cache")
}

/// Returns the reason why `other` comes after `first`: the first rule of the order that
/// distinguishes both.
fn lost_by(first: &Finalist, other: &Finalist, ranking: &Ranking, wishes: &Wishes) -> String {
    if other.misses.len() > first.misses.len()
        && let Some(miss) = other
            .misses
            .iter()
            .find(|miss| first.misses.iter().all(|own| own.wish != miss.wish))
    {
        return miss.why.clone();
    }
    if first.misses.is_empty()
        && let Some(why) = farther_without_a_drive(first, other, wishes)
    {
        return why;
    }
    if first.misses.is_empty() && other.volume.drives > first.volume.drives {
        return format!(
            "it needs {} drives to meet the wishes, {} needs {}",
            other.volume.drives, first.name, first.volume.drives
        );
    }
    if first.misses.is_empty()
        && let Some(device) = needed_device(first, other)
    {
        return format!(
            "it needs {device} to meet the wishes, {} needs none",
            first.name
        );
    }
    let chances = (first.loss.chance_a_year, other.loss.chance_a_year);
    if wishes.of_speed() && first.misses.is_empty() && chances.1 > chances.0 {
        return format!(
            "it meets the same wishes with as many drives, but its chance of data loss within a year is {}; that of {} is {}",
            share(chances.1),
            first.name,
            share(chances.0)
        );
    }
    let (Some(own), Some(theirs)) = (ranked(ranking, first), ranked(ranking, other)) else {
        return "no measured number shows it to be better".to_owned();
    };
    // A reason whose difference is within chance must say so, because the next run may turn it
    // round.
    let sure = theirs
        .difference_to_best
        .map(|difference| difference.significance);
    let doubt = match sure {
        Some(Significance::NotSignificant | Significance::Unknown) => ", which may be chance",
        _ => "",
    };
    if !first.misses.is_empty() {
        let (nearer, farther) = (
            reached(&first.healthy, wishes),
            reached(&other.healthy, wishes),
        );
        return format!(
            "it misses the same wishes by more ({farther}; {} has {nearer}{doubt})",
            first.name
        );
    }
    let (theirs, own) = (number(theirs.value), number(own.value));
    match ranking.by.as_str() {
        "response_ms.p99" => format!(
            "its 99th percentile is {theirs} ms, that of {} {own} ms{doubt}",
            first.name
        ),
        "response_ms.mean" => {
            format!(
                "its mean response time is {theirs} ms, that of {} {own} ms{doubt}",
                first.name
            )
        }
        by => format!("its {by} is {theirs}, that of {} {own}{doubt}", first.name),
    }
}

/// Returns the reason why `other` comes after `first` if both miss wishes with a failed drive or
/// during a rebuild.
fn farther_without_a_drive(first: &Finalist, other: &Finalist, wishes: &Wishes) -> Option<String> {
    let (own, theirs) = (
        FailedDistance::new(first, wishes),
        FailedDistance::new(other, wishes),
    );
    if own >= theirs {
        return None;
    }
    let all = |one: &Finalist| {
        let whys: Vec<&str> = one
            .misses_without_a_drive
            .iter()
            .map(|miss| miss.why.as_str())
            .collect();
        whys.join("; ")
    };
    if theirs.is_lost && !own.is_lost {
        return Some(MissedWish::lost().why);
    }
    let known = |wish| {
        first
            .misses_without_a_drive
            .iter()
            .any(|own| own.wish == wish)
    };
    match other
        .misses_without_a_drive
        .iter()
        .find(|miss| !known(miss.wish))
    {
        Some(miss) if theirs.missed > own.missed => Some(miss.why.clone()),
        miss => {
            let by_more = match miss {
                Some(_) => "its wishes by a larger share",
                None => "the same wishes by more",
            };
            Some(format!(
                "with a failed drive it misses {by_more} ({}) than {} ({})",
                all(other),
                first.name,
                all(first)
            ))
        }
    }
}

/// Returns the finalists that are compared with the first: the second, and the best of each other
/// layout.
fn rivals(finalists: &[Finalist]) -> Vec<&Finalist> {
    let mut rivals: Vec<&Finalist> = finalists.get(1).into_iter().collect();
    for one in finalists.iter().skip(2) {
        let known = finalists.first().into_iter().chain(rivals.iter().copied());
        // A second setting of a known layout would repeat the reason.
        if known.into_iter().all(|other| other.layout != one.layout) {
            rivals.push(one);
        }
    }
    rivals
}

/// Returns the reason why the first answers sooner than a rival, from the counts of both runs. If
/// the rival is faster, or there is no such reason, the text names the rule by which the rival
/// lost.
fn why_not(
    head: &str,
    first: &Finalist,
    rival: &Finalist,
    ranking: &Ranking,
    wishes: &Wishes,
) -> String {
    let lost = lost_by(first, rival, ranking, wishes);
    match reason(first, rival, ranking) {
        Some(reason) if reason.better == first.name => {
            format!("{head}: {lost}. {}", reason.sentence)
        }
        Some(reason) => format!("{head}: {lost}. It is faster: {}", reason.sentence),
        None => format!("{head}: {lost}."),
    }
}

fn reason(first: &Finalist, rival: &Finalist, ranking: &Ranking) -> Option<Reason> {
    let by = Metric::parse(&ranking.by).unwrap_or(Metric::RESPONSE_MEAN);
    Reason::between(ranked(ranking, first)?, ranked(ranking, rival)?, by)
}

/// Returns the reasons why the first answers sooner or later than its rivals.
pub(crate) fn reasons(finalists: &[Finalist], ranking: &Ranking) -> Vec<Reason> {
    let Some(first) = finalists.first() else {
        return Vec::new();
    };
    rivals(finalists)
        .into_iter()
        .filter_map(|rival| reason(first, rival, ranking))
        .collect()
}

/// Returns a sentence if another finalist than the recommended one is first by the ranking's
/// metric. The sentence names both, and the reason.
pub(crate) fn beside(finalists: &[Finalist], ranking: &Ranking, wishes: &Wishes) -> Option<String> {
    let first = finalists.first()?;
    let best = ranking
        .candidates
        .first()
        .filter(|best| best.name != first.name)?;
    let fastest = finalists.iter().find(|one| one.name == best.name)?;
    Some(format!(
        "By {} alone, with all drives, {} is best: {}. Recommended is {} ({}), because {}: {}.",
        ranking.by,
        best.name,
        number(best.value),
        first.name,
        number(ranked(ranking, first)?.value),
        best.name,
        lost_by(first, fastest, ranking, wishes)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chance_is_a_percentage_and_odds() {
        for (chance, words) in [
            (0.5, "50 %"),
            (0.0123, "1.2 % (about 1 in 81)"),
            (5.3e-6, "0.00053 % (about 1 in 190,000)"),
            (1e-12, "less than 1 in 10^9"),
        ] {
            assert_eq!(share(chance), words);
        }
    }
}
