//! Explains why one candidate answers sooner than another, in sentences that follow from the
//! measures of both runs. A clause is left out if its premise does not hold.

use crate::Condition;
use crate::ranked::Ranked;
use fullstroke_counters::Counter;
use fullstroke_measure::{Metric, Report, SLOWEST_SHARES, TimeParts, comes_round, number};
use serde::Serialize;

/// Largest number of reasons.
const REASONS_MAX: usize = 6;

/// A difference of mean response times below this share needs no reason.
const WORTH_A_REASON: f64 = 0.02;

/// Thresholds of a clear difference: factor between two counts, and distance between two shares.
const CLEARLY_MORE: f64 = 1.05;
const CLEARLY_APART: f64 = 0.1;

/// A cause is named from this share of a difference on.
const WORTH_WORDS: f64 = 0.3;

/// Why `better` ranks before `worse`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Name of the faster candidate.
    pub better: String,
    /// Name of the other candidate.
    pub worse: String,
    /// The part of the response time with the largest difference, and the counts that explain the
    /// difference.
    pub sentence: String,
}

impl Reason {
    /// Returns the reason why one of two candidates answers sooner by the metric, in either order.
    /// `None` if the times are within 2 % of each other, or cannot be compared.
    pub fn between(one: &Ranked, other: &Ranked, by: Metric) -> Option<Reason> {
        reason(one, other, by).or_else(|| reason(other, one, by))
    }

    fn of_equals(self, by: &str) -> Reason {
        let Reason {
            better,
            worse,
            sentence,
        } = self;
        let sentence = format!("{better} and {worse} are equal by {by}; {sentence}");
        Reason {
            better,
            worse,
            sentence,
        }
    }
}

/// Returns reasons for three kinds of pairs: the leader and the next; a candidate with more
/// redundancy that is better than one with less; and a degraded volume that is better than the
/// whole volume. A whole volume that is better than its own degraded or rebuilding form needs no
/// reason. Other pairs are chosen as if that form were absent. If both candidates of a pair are
/// equal by the metric, the sentence says so first.
pub(crate) fn reasons(ranked: &[Ranked], by: Metric) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (place, better) in ranked.iter().enumerate() {
        let mut surprised = false;
        let expected = |worse: &&Ranked| {
            Condition::ALL
                .iter()
                .any(|form| is_form(*form, better, worse))
        };
        let others = ranked[place + 1..].iter().filter(|worse| !expected(worse));
        for (distance, worse) in others.enumerate() {
            let leads = place == 0 && distance == 0;
            let healed = is_form(Condition::Degraded, worse, better);
            let safer =
                better.volume.failures_survived > worse.volume.failures_survived && !surprised;
            if (leads || healed || safer) && reasons.len() < REASONS_MAX {
                reasons.extend(reason(better, worse, by).map(|reason| {
                    match better.value == worse.value {
                        true => reason.of_equals(&by.name()),
                        false => reason,
                    }
                }));
                surprised |= safer;
            }
        }
    }
    reasons
}

/// Returns true if `form` is the candidate `whole` in this condition.
fn is_form(condition: Condition, whole: &Ranked, form: &Ranked) -> bool {
    form.name == condition.name_of(&whole.name) && form.varied == whole.varied
}

/// Requests that a reason explains: all of them by their mean, or the slowest by a percentile.
struct Explained {
    /// Difference of the values, in ms.
    gain: f64,
    /// Value of the slower candidate, in ms.
    of: f64,
    /// Parts of the times of these requests, of the faster and of the slower candidate.
    parts: [TimeParts; 2],
    /// Share of the slowest requests; `None` for the mean over all requests.
    share: Option<f64>,
}

/// Returns the explained requests for a metric. A percentile of the response time from p90 on, and
/// the maximum, concern the slowest requests, which may wait for something else than most requests.
/// All other metrics are explained by the mean response time.
fn explained(by: Metric, sooner: &Report, later: &Report) -> Option<Explained> {
    let shares = SLOWEST_SHARES.iter().copied();
    let share = match by.tail_share() {
        // No collected share is smaller than that of the maximum.
        Some(share) => shares
            .filter(|known| *known >= share * 0.999)
            .reduce(f64::min),
        None => None,
    };
    let slowest = |report: &Report| {
        let mut all = report.times.slowest.iter();
        all.find(|one| Some(one.share) == share)
            .map(|one| one.time_ms)
    };
    let tails = share.and_then(|_| Some([slowest(sooner)?, slowest(later)?]));
    let (of, parts, share) = match tails {
        Some(tails) => (by, tails, share),
        None => {
            let means = [sooner.times.time_ms, later.times.time_ms];
            (Metric::RESPONSE_MEAN, means, None)
        }
    };
    let (gain, of) = (of.value(later) - of.value(sooner), of.value(later));
    (!gain.is_nan()).then_some(Explained {
        gain,
        of,
        parts,
        share,
    })
}

fn reason(better: &Ranked, worse: &Ranked, by: Metric) -> Option<Reason> {
    let (sooner, later) = (&better.report, &worse.report);
    let Explained {
        gain,
        of,
        parts: [short, long],
        share,
    } = explained(by, sooner, later)?;
    // Times cannot be compared if queues grow or the requests differ. With a page cache, the memory
    // makes the requests instead of the programs. A candidate without a value was not ranked.
    let own = sooner.sources.hosts.is_empty() && later.sources.hosts.is_empty();
    let ranked = !better.value.is_nan() && !worse.value.is_nan();
    let comparable =
        own && ranked && better.carries && worse.carries && better.complete && worse.complete;
    if !comparable || gain < WORTH_A_REASON * of {
        return None;
    }
    let parts = long.named().into_iter().zip(short.named());
    let (part, less) = parts
        .map(|((part, later), (_, sooner))| (part, later - sooner))
        // The part with the largest difference explains most.
        .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let (better, worse) = (better.label(), worse.label());
    let names = (better.as_str(), worse.as_str());
    let why = match part {
        "parity" => parity(names, sooner, later),
        "queue" => queue(names, sooner, later),
        "rotation" | "seek" => mechanics(part, names, sooner, later),
        _ => None,
    };
    let head = match share {
        None => format!(
            "{} answers {} ms sooner than {} on average, mostly by {} ms less {}",
            better,
            number(gain),
            worse,
            number(less),
            in_words(part)
        ),
        Some(share) => format!(
            "{} answers {} ms sooner than {} by {}. The slowest {} % of its requests have {} ms less {}",
            better,
            number(gain),
            worse,
            by.name(),
            100.0 * share,
            number(less),
            in_words(part)
        ),
    };
    let sentence = why.map_or_else(|| format!("{head}."), |why| format!("{head}: {why}."));
    Some(Reason {
        better,
        worse,
        sentence,
    })
}

fn in_words(part: &str) -> &'static str {
    match part {
        "queue" => "waiting in queues",
        "parity" => "waiting for parity",
        "overhead" => "overhead",
        "seek" => "seeking",
        "rotation" => "rotational latency",
        _ => "transfer",
    }
}

/// Explains the time that writes wait for old data and parity: the number of preceding reads, the
/// method of the parity update, and the wait until a sector that was read comes round again.
fn parity((better, worse): (&str, &str), sooner: &Report, later: &Report) -> Option<String> {
    let reads = |report: &Report| report.reading("volume_pre_reads_per_write").unwrap_or(0.0);
    let modified = |report: &Report| {
        report
            .reading("volume_read_modify_write_share")
            .unwrap_or(0.0)
    };
    let mut clauses = Vec::new();
    if reads(sooner) == 0.0 {
        clauses.push(format!(
            "{better} writes without reading first, {worse} reads {:.1} blocks for each write",
            reads(later)
        ));
    } else if reads(later) > CLEARLY_MORE * reads(sooner) {
        clauses.push(format!(
            "{worse} reads {:.1} blocks before each write, {better} {:.1}",
            reads(later),
            reads(sooner)
        ));
    }
    if modified(later) - modified(sooner) > CLEARLY_APART {
        let reconstructed = sooner
            .reading("volume_reconstruct_write_share")
            .unwrap_or(0.0);
        let mut clause = format!(
            "{worse} makes parity from old data and old parity (read-modify-write) in {} of its updates, {better} in {}",
            percent(modified(later)),
            percent(modified(sooner))
        );
        if reconstructed > CLEARLY_APART {
            clause.push_str(&format!(
                ", and in {} from the data that stays, on other drives (reconstruct-write)",
                percent(reconstructed)
            ));
        }
        clauses.push(clause);
    }
    let rewrites = |report: &Report| report.reading("volume_rewrite_share").unwrap_or(0.0);
    if rewrites(later) - rewrites(sooner) > CLEARLY_APART
        && let Some(words) = comes_round(later)
    {
        clauses.push(format!("in {worse} {words}"));
    }
    clauses.extend(rows((better, worse), sooner, later));
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// Writes of one row wait for each other. The wait grows with the time that each write holds the
/// row.
fn rows((better, worse): (&str, &str), sooner: &Report, later: &Report) -> Option<String> {
    let wait = |report: &Report| report.reading("volume_row_wait_ms_mean").unwrap_or(0.0);
    let less = wait(later) - wait(sooner);
    if less < WORTH_WORDS * (later.times.time_ms.parity - sooner.times.time_ms.parity) {
        return None;
    }
    let mut words = format!(
        "writes wait {} ms for other writes of their row in {worse} and {} ms in {better}",
        number(wait(later)),
        number(wait(sooner))
    );
    let holds = |report: &Report| {
        report
            .kinds
            .writes
            .map(|writes| writes.response_ms.mean - wait(report))
    };
    if let (Some(long), Some(short)) = (holds(later), holds(sooner))
        && long > CLEARLY_MORE * short
    {
        words.push_str(&format!(
            ", because a write that has its row takes {} ms there, and {} ms here",
            number(long),
            number(short)
        ));
    }
    Some(words)
}

/// Queues are shorter if drives are less busy, because a request needs fewer member I/Os or because
/// more drives share the I/Os.
fn queue((better, worse): (&str, &str), sooner: &Report, later: &Report) -> Option<String> {
    let busy = |report: &Report| {
        report
            .array
            .members
            .iter()
            .map(|member| member.value(Counter::BUSY))
            .sum::<f64>()
            / report.array.members.len() as f64
    };
    if busy(later) <= CLEARLY_MORE * busy(sooner) {
        return None;
    }
    let mut words = format!(
        "its drives are busy {} of the time, those of {worse} {}",
        percent(busy(sooner)),
        percent(busy(later))
    );
    let ios = |report: &Report| {
        let served: u64 = report
            .array
            .members
            .iter()
            .map(|member| member.statistics.requests())
            .sum();
        served as f64 / report.arrived.requests as f64
    };
    if ios(later) > CLEARLY_MORE * ios(sooner) {
        words.push_str(&format!(
            ", since a request is {:.2} member I/Os on average, and {:.2} in {worse}",
            ios(sooner),
            ios(later)
        ));
    } else if sooner.array.members.len() > later.array.members.len() {
        words.push_str(&format!(
            ", since {better} spreads them over {} drives and {worse} over {}",
            sooner.array.members.len(),
            later.array.members.len()
        ));
    }
    Some(words)
}

/// Explains shorter seeks or a shorter rotational latency.
fn mechanics(
    part: &str,
    (_, worse): (&str, &str),
    sooner: &Report,
    later: &Report,
) -> Option<String> {
    let of = |report: &Report| {
        let each = report.array.members.iter().map(|member| match part {
            "seek" => member.value(Counter::SEEK),
            _ => member.value(Counter::ROTATION),
        });
        each.sum::<f64>() / report.array.members.len() as f64
    };
    (of(later) > CLEARLY_MORE * of(sooner)).then(|| {
        let mean = if part == "seek" {
            "mean seek"
        } else {
            "mean rotational latency"
        };
        format!(
            "the {mean} of its drives is {} ms, in {worse} {} ms",
            number(of(sooner)),
            number(of(later))
        )
    })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
