//! The sentences. Each follows from what was run; one whose premise does not hold is not said.

use crate::advise::report_of;
use crate::{Assumptions, Finalist, LeftOut, Outcome, Wishes};
use fullstroke_lab::{Ranking, capacity};
use fullstroke_measure::{Significance, number};

/// Parts of the response time that are named.
const PARTS_NAMED: usize = 2;
/// Sentences of a kind that say what would change the answer.
const CHANGES_MAX: usize = 3;

/// What the chance of loss rests on.
pub(crate) fn assumed(assumptions: &Assumptions) -> String {
    format!(
        "The chance of loss is that of independent failures at a constant rate (Chen et al., ACM Computing Surveys 26(2), 1994), a mean time \
         to failure of {:.0} hours a drive, one unreadable bit in {:.0e}, and {} hours until another drive stands in the place of one that has failed; \
         it compares layouts, and arrays in the field lose data more often than it says.",
        assumptions.mttf_hours, assumptions.unreadable_bits, assumptions.replace_hours
    )
}

/// What to take and why, and what comes second.
pub(crate) fn recommendation(
    finalists: &[Finalist],
    ranking: &Ranking,
    wishes: &Wishes,
    drive: &str,
) -> Vec<String> {
    let Some(first) = finalists.first() else { return Vec::new() };
    let mut sentences =
        vec![take(first, drive), wishes_met(first), speed(first, wishes), without_a_drive(first)];
    sentences.extend(time_went(first, ranking));
    sentences.push(chance(first));
    sentences.extend(finalists.get(1).map(|second| next(first, second, ranking, wishes)));
    let named =
        |sentence: &&fullstroke_lab::Reason| sentence.better == first.name || sentence.worse == first.name;
    let reasons = ranking.reasons.iter().filter(named).take(1);
    sentences.extend(reasons.map(|reason| format!("Why: {}", reason.sentence)));
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn take(first: &Finalist, drive: &str) -> String {
    let verb = if first.misses.is_empty() { "Take" } else { "Nothing meets every wish. Nearest comes" };
    let price = first.price.map_or_else(String::new, |price| format!(", for {price}"));
    format!(
        "{verb} {} drives {drive}: {}{price}; {} usable, {}.",
        first.name,
        settings(first),
        capacity(first.volume.usable_bytes),
        may_fail(first.volume.failures_survived)
    )
}

fn settings(finalist: &Finalist) -> String {
    let each = finalist.settings.iter().map(|assignment| match assignment.split_once('=') {
        Some(("volume.chunk", chunk)) => format!("chunks of {chunk}"),
        Some(("host.elevator", elevator)) => format!("elevator {elevator}"),
        Some(("volume.write_cache", on)) => {
            format!("the drives' write caches {}", if on == "true" { "on" } else { "off" })
        }
        _ => assignment.clone(),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn may_fail(count: u32) -> String {
    match count {
        0 => "no drive may fail".to_owned(),
        1 => "one drive may fail, whichever it is".to_owned(),
        count => format!("{count} drives may fail, whichever they are"),
    }
}

fn wishes_met(first: &Finalist) -> String {
    let of =
        |misses: &[crate::Miss]| misses.iter().map(|miss| miss.why.clone()).collect::<Vec<_>>().join("; ");
    match (first.misses.is_empty(), first.misses_without_a_drive.is_empty()) {
        (false, _) => format!("What it misses: {}.", of(&first.misses)),
        (true, false) => {
            format!(
                "It meets every wish with all drives, but not without one: {}.",
                of(&first.misses_without_a_drive)
            )
        }
        (true, true) if first.degraded.is_some() => {
            "It meets every wish, with a drive gone and while one is filled, too.".to_owned()
        }
        (true, true) => "It meets every wish as long as no drive fails.".to_owned(),
    }
}

/// What it does with all drives.
fn speed(first: &Finalist, wishes: &Wishes) -> String {
    let Outcome { mean_ms, p99_ms, mb_per_s, mean_w, underruns, .. } = first.healthy;
    let mut words = format!(
        "With this load it answers in {} ms on average, 99 % within {} ms, at {} MB/s",
        number(mean_ms),
        number(p99_ms),
        number(mb_per_s)
    );
    if let (Some(streams), Some(0)) = (wishes.streams, underruns) {
        words.push_str(&format!(", and {streams} streams play without an underrun"));
    }
    if let Some(watts) = mean_w {
        words.push_str(&format!("; its drives draw {} W", number(watts)));
    }
    words + "."
}

fn without_a_drive(first: &Finalist) -> String {
    let (Some(degraded), Some(rebuilding)) = (&first.degraded, &first.rebuilding) else {
        return String::new();
    };
    let hours = rebuilding
        .rebuild_hours
        .map_or_else(String::new, |hours| format!(", which takes {} hours beside this load", number(hours)));
    format!(
        "With a drive gone 99 % are answered within {} ms, while one is filled within {} ms{hours}.",
        number(degraded.p99_ms),
        number(rebuilding.p99_ms)
    )
}

/// The largest parts of the mean response time.
fn time_went(first: &Finalist, ranking: &Ranking) -> Option<String> {
    let report = report_of(ranking, first)?;
    let mut parts = report.time_ms.named();
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let whole = report.response_ms.mean;
    let named = parts.iter().take(PARTS_NAMED).filter(|(_, ms)| *ms > 0.0);
    let named: Vec<String> =
        named.map(|(part, ms)| format!("{:.0} % into {part}", 100.0 * ms / whole)).collect();
    let parity = report.parity_in_words().map_or_else(String::new, |words| format!(" {words}"));
    (!named.is_empty()).then(|| format!("Of its time goes {}.{parity}", named.join(", ")))
}

fn chance(first: &Finalist) -> String {
    let loss = &first.loss;
    let mut words = format!(
        "Its data are lost within a year with a chance of {} (mean time to data loss {} years)",
        share(loss.chance_a_year),
        number(loss.mttdl_years)
    );
    if !loss.unreadable_chance.is_nan() {
        words.push_str(&format!(
            "; once no redundancy is left, a sector cannot be read with a chance of {}",
            share(loss.unreadable_chance)
        ));
    }
    words + "."
}

fn share(chance: f64) -> String {
    match 100.0 * chance {
        percent if percent >= 0.01 => format!("{percent:.2} %"),
        percent => format!("{percent:.1e} %"),
    }
}

/// What comes second, and why it does.
fn next(first: &Finalist, second: &Finalist, ranking: &Ranking, wishes: &Wishes) -> String {
    let head = format!("Next comes {} ({})", second.name, settings(second));
    if second.misses.len() > first.misses.len()
        && let Some(miss) = second.misses.first()
    {
        return format!("{head}: {}.", miss.why);
    }
    if first.misses_without_a_drive.is_empty()
        && let Some(miss) = second.misses_without_a_drive.first()
    {
        return format!("{head}: {}.", miss.why);
    }
    if first.misses.is_empty() && second.volume.drives > first.volume.drives {
        return format!("{head}: it meets the same wishes, with {} drives.", second.volume.drives);
    }
    if wishes.of_speed() && first.misses.is_empty() {
        return format!(
            "{head}: it meets the same wishes with as many drives, but its data are lost within a year with a chance of {}.",
            share(second.loss.chance_a_year)
        );
    }
    let value = |one: &Finalist| ranking.candidates.iter().find(|ranked| ranked.name == one.name);
    let (Some(own), Some(other)) = (value(first), value(second)) else { return format!("{head}.") };
    let sure = other.difference_to_best.map(|difference| difference.significance);
    let doubt = match sure {
        Some(Significance::NotSignificant | Significance::Unknown) => ", which may be chance",
        _ => "",
    };
    format!("{head}: {} {} against {}{doubt}.", ranking.by, number(other.value), number(own.value))
}

/// Whoever lost by wishes alone, and which; what was left out for one wish.
pub(crate) fn would_change(finalists: &[Finalist], left_out: &[LeftOut]) -> Vec<String> {
    let mut sentences = Vec::new();
    let Some(first) = finalists.first() else { return sentences };
    let fewer = |drives: usize| drives < first.volume.drives;
    let more = |other: &Finalist| {
        fewer(other.volume.drives) || other.volume.usable_bytes > first.volume.usable_bytes
    };
    for other in finalists.iter().skip(1).filter(|other| more(other)).take(CHANGES_MAX) {
        let [miss] = &other.misses[..] else { continue };
        if first.misses.iter().all(|own| own.wish != miss.wish) {
            sentences.push(format!(
                "Without the wish of {}, {} would do: {}; {} usable of {} drives.",
                miss.wish,
                other.name,
                miss.why,
                capacity(other.volume.usable_bytes),
                other.volume.drives
            ));
        }
    }
    if !first.misses_without_a_drive.is_empty()
        && let Some(safe) =
            finalists.iter().find(|one| one.misses.is_empty() && one.misses_without_a_drive.is_empty())
    {
        sentences.push(format!("If the wishes are to hold without a drive, too, take {}.", safe.name));
    }
    for one in left_out.iter().filter(|one| one.drives as usize <= first.volume.drives).take(CHANGES_MAX) {
        sentences.push(format!("{} of {} was left out: {}.", one.layout, one.drives, one.why));
    }
    sentences
}
