//! A ranking as text.

use crate::{Ranked, Ranking};
use comfy_table::Cell;
use fullstroke_measure::{
    BEYOND_MIN, Difference, Metric, Significance, factor_in_words, number, table,
};
use std::fmt;

/// Factor from which on a longer run is no practical advice.
const LONGEST_FACTOR: f64 = 100.0;

impl fmt::Display for Ranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\n{}\n", self.table(), self.times())?;
        if let Some(verdict) = &self.verdict {
            writeln!(f, "{verdict}")?;
        }
        for reason in &self.reasons {
            writeln!(f, "Why: {}", reason.sentence)?;
        }
        self.write_trace(f)?;
        self.write_notes(f)
    }
}

impl Ranking {
    /// Returns the table of ranks and the verdict, for a further metric of the same runs.
    pub fn in_brief(&self) -> String {
        let verdict = self.verdict.as_deref().unwrap_or_default();
        format!("{}\n\n{verdict}", self.table())
            .trim_end()
            .to_owned()
    }

    /// Returns the table of ranks, with a column for each varied key.
    fn table(&self) -> String {
        let keys = self.varied_keys();
        let mut header = vec!["", "stack"];
        header.extend(keys.iter().map(|key| short(key, &keys)));
        header.extend([&self.by, "± 95 %", "to the best", "usable", "survives"]);
        let mut table = table(header, &[1]);
        for ranked in &self.candidates {
            let mut row = vec![Cell::new(ranked.rank), Cell::new(&ranked.name)];
            row.extend(
                keys.iter()
                    .map(|key| Cell::new(ranked.varied.get(key).unwrap_or("-"))),
            );
            row.extend([
                Cell::new(self.value_of(ranked)),
                Cell::new(
                    ranked
                        .ci95_half_width
                        .map_or_else(|| "-".to_owned(), number),
                ),
                Cell::new(difference(ranked)),
                Cell::new(capacity(ranked.volume.usable_bytes)),
                Cell::new(failures(ranked.volume.failures_survived)),
            ]);
            table.add_row(row);
        }
        table.trim_fmt()
    }

    /// Returns the table of the parts of the mean response time. If all drives have power figures,
    /// the table also has the energy.
    fn times(&self) -> String {
        let keys = self.varied_keys();
        let parts = self
            .candidates
            .first()
            .map(|ranked| ranked.report.times.time_ms.named())
            .unwrap_or_default();
        let mut header = vec!["", "mean ms"];
        header.extend(keys.iter().map(|key| short(key, &keys)));
        header.extend(parts.map(|(name, _)| name));
        // One drive without power figures would make the sums incomparable.
        let counted = self
            .candidates
            .iter()
            .all(|ranked| ranked.report.array.energy.is_some());
        header.extend(["W", "J an I/O"].into_iter().filter(|_| counted));
        let mut table = table(header, &[1]);
        for ranked in &self.candidates {
            let mut row = vec![Cell::new(ranked.rank), Cell::new(&ranked.name)];
            row.extend(
                keys.iter()
                    .map(|key| Cell::new(ranked.varied.get(key).unwrap_or("-"))),
            );
            row.extend(
                ranked
                    .report
                    .times
                    .time_ms
                    .named()
                    .map(|(_, value)| Cell::new(number(value))),
            );
            let energy = ranked.report.array.energy.iter().filter(|_| counted);
            row.extend(
                energy
                    .flat_map(|energy| [energy.mean_w, energy.j_per_io].map(number))
                    .map(Cell::new),
            );
            table.add_row(row);
        }
        table.trim_fmt()
    }

    /// Returns the value of a candidate, with a star if the value is a percentile with too few
    /// requests beyond.
    fn value_of(&self, ranked: &Ranked) -> String {
        let is_chance = ranked.beyond.is_some_and(|beyond| beyond < BEYOND_MIN);
        format!(
            "{}{}",
            number(ranked.value),
            if is_chance && !ranked.value.is_nan() {
                "*"
            } else {
                ""
            }
        )
    }

    /// Returns the varied keys, which are the same for all candidates.
    fn varied_keys(&self) -> Vec<&str> {
        self.candidates
            .first()
            .map(|ranked| ranked.varied.keys().collect())
            .unwrap_or_default()
    }

    /// Returns the best candidate, its lead and its confidence.
    pub(crate) fn in_words(&self) -> Option<String> {
        let [best, next, ..] = self.candidates.as_slice() else {
            return None;
        };
        // The load first: a response time of an array that does not keep up depends on the length
        // of the run.
        if let Some(verdict) = self.verdict_of_load(best, next) {
            return Some(verdict);
        }
        let (equal, others): (Vec<&Ranked>, Vec<&Ranked>) = self.candidates[1..]
            .iter()
            .partition(|ranked| ranked.equal_to_best);
        let leaders = names(best, &equal);
        let Some(next) = others.first() else {
            return Some(format!(
                "{leaders} are equal by {}: {}.",
                self.by,
                self.with_unit(best.value)
            ));
        };
        let are = if equal.is_empty() {
            "is best"
        } else {
            "are equal, and best"
        };
        let head = format!(
            "{leaders} {are} by {}: {}",
            self.by,
            self.with_unit(best.value)
        );
        let difference = next
            .difference_to_best
            .as_ref()
            .filter(|difference| !difference.value.is_nan());
        let Some(difference) = difference else {
            return (!equal.is_empty()).then(|| format!("{head}."));
        };
        // Times that leave out lost requests cannot be compared with times of all requests.
        if best.complete && !next.complete {
            return Some(format!("{head}; no other candidate served every request."));
        }
        let direction = if self.more_is_better { "more" } else { "less" };
        let share = match next.value {
            // No share of nothing.
            0.0 => String::new(),
            value => format!(" ({:.1} %)", 100.0 * (difference.value / value).abs()),
        };
        let half_width = difference
            .half_width
            .map_or_else(String::new, |width| format!(" ± {}", number(width)));
        let by = format!(
            "{}{half_width}{share} {direction} than {}, the next",
            number(difference.value.abs()),
            next.label()
        );
        let verdict = match difference.significance {
            Significance::Significant => format!("{head}, {by}."),
            Significance::Consistent => {
                format!("{head}, {by}, and better in {}.", batches(difference))
            }
            Significance::NotSignificant => format!(
                "{head}, but {by}, is not significant{}.",
                longer(difference.longer_to_tell())
            ),
            Significance::Unknown => format!(
                "{head}, {by}; there is no confidence interval{}.",
                longer(self.longer_for_interval(best))
            ),
        };
        let verdict = verdict + &self.too_few_beyond();
        Some(match survives(best) {
            Some(survives) => format!("{verdict} {survives}"),
            None => verdict,
        })
    }

    /// Returns a sentence if too few requests lie beyond a percentile; empty otherwise.
    fn too_few_beyond(&self) -> String {
        match self.thinnest() {
            Some(beyond) if beyond < BEYOND_MIN => format!(
                " The run is too short for {}: {beyond} requests lie beyond, and fewer than {BEYOND_MIN} are chance.",
                self.by
            ),
            _ => String::new(),
        }
    }

    /// Returns a value of the metric with three significant digits and its unit.
    fn with_unit(&self, value: f64) -> String {
        let unit = Metric::parse(&self.by).map_or("", |metric| metric.unit());
        match unit {
            // The unit of counts and shares.
            "" | "1" => number(value),
            unit => format!("{} {unit}", number(value)),
        }
    }

    /// Returns the least number of requests beyond the percentile over all candidates; `None` if
    /// the metric is no percentile.
    fn thinnest(&self) -> Option<u64> {
        self.candidates.iter().filter_map(|one| one.beyond).min()
    }

    /// Returns the factor by which a run must be longer for an interval; `None` if no length gives
    /// one.
    fn longer_for_interval(&self, best: &Ranked) -> Option<f64> {
        let metric = Metric::parse(&self.by).ok()?;
        let factor = metric.longer_for_interval(&best.report)?;
        (factor > 1.0 && !best.report.grows()).then_some(factor)
    }

    /// Returns true if each candidate has the same value with all seeds.
    fn seeds_change_nothing(&self) -> bool {
        self.candidates
            .iter()
            .all(|ranked| ranked.varies_with_seed == Some(false))
    }

    /// Returns the verdict on the load, which comes before any metric; `None` if the load decides
    /// nothing.
    fn verdict_of_load(&self, best: &Ranked, next: &Ranked) -> Option<String> {
        let overload = next.report.arrived.overload.as_ref()?;
        if let Some(best_overload) = &best.report.arrived.overload {
            let best_share = best_overload.carried_share;
            return Some(format!(
                "No candidate keeps up with this load; {} serves the largest part, {best_share:.2}. --find load ranks by the sustained load.",
                best.label()
            ));
        }
        (best.complete && next.complete).then(|| {
            format!(
                "{} is best by {}: {}; no other candidate keeps up with this load ({} serves {:.2} of it).",
                best.label(),
                self.by,
                self.with_unit(best.value),
                next.label(),
                overload.carried_share
            )
        })
    }

    /// Writes the notes on the trace, which are the same for all candidates.
    fn write_trace(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.candidates.first() else {
            return Ok(());
        };
        if first.report.arrived.skipped_rows > 0 {
            writeln!(
                f,
                "The trace: {} damaged rows were left out",
                first.report.arrived.skipped_rows
            )?;
        }
        for note in self.trace_notes() {
            writeln!(f, "The trace: {note}")?;
        }
        self.write_media(f)
    }

    /// Writes the notes on rates that media cannot hold. Notes of one kind differ in figures alone, so the
    /// first note stands for the kind.
    fn write_media(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn kind(note: &str) -> &str {
            let first_digit = note.find(|letter: char| letter.is_ascii_digit());
            &note[..first_digit.unwrap_or(note.len())]
        }
        let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
        for candidate in &self.candidates {
            for note in &candidate.report.array.media_notes {
                let found = kinds
                    .iter_mut()
                    .find(|(first, _)| kind(first) == kind(note));
                match found {
                    Some((_, labels)) => labels.push(candidate.label()),
                    None => kinds.push((note, vec![candidate.label()])),
                }
            }
        }
        for (note, labels) in kinds {
            match &labels[..] {
                [label] => writeln!(f, "{label}: {note}")?,
                [label, others @ ..] => {
                    writeln!(f, "{label}: {note} (Likewise: {}.)", others.join(", "))?;
                }
                [] => {}
            }
        }
        Ok(())
    }

    fn write_notes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mean ms: where the mean response time went; parity is the wait for reads and stripes that parity needs. usable: capacity for data. survives: drive failures without loss."
        )?;
        match self.seeds {
            0..=1 => {}
            seeds if self.seeds_change_nothing() => write!(
                f,
                "\nThe seed does not change {}: {seeds} runs of each candidate gave the same value. Intervals are within a run.",
                self.by
            )?,
            seeds => write!(
                f,
                "\nMeans and intervals are over {seeds} seeds (for a trace: {seeds} random angles of the platters), or within a run if the seeds change nothing. The parts of the time are those of the first seed."
            )?,
        }
        if let Some(beyond) = self.thinnest() {
            write!(
                f,
                "\n{}: at least {beyond} requests lie beyond the value of each candidate.",
                self.by
            )?;
        }
        self.write_marks(f)?;
        self.write_incomplete(f)?;
        if !self.same_number_of_requests {
            write!(
                f,
                "\nThe candidates received different numbers of requests, so the workloads differ."
            )?;
        }
        Ok(())
    }

    /// Writes the meaning of the marks beside differences.
    fn write_marks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |wanted: Significance| {
            let significance = |ranked: &Ranked| {
                ranked
                    .difference_to_best
                    .map(|difference| difference.significance)
            };
            // Marks are explained only if a row of the table shows them.
            let unequal = self
                .candidates
                .iter()
                .filter(|ranked| !ranked.equal_to_best);
            unequal
                .map(significance)
                .any(|significance| significance == Some(wanted))
        };
        if has(Significance::Consistent) {
            write!(
                f,
                "\n~: few batches of requests decide the size of the difference, but its sign is equal in nearly all batches (sign test)."
            )?;
        }
        if has(Significance::NotSignificant) {
            write!(
                f,
                "\n≈: the difference is not significant (95 % confidence over all pairs together)."
            )?;
        }
        if has(Significance::Unknown) {
            write!(
                f,
                "\n?: this metric has no interval here, so the difference may be chance{}.",
                if self.seeds > 1 {
                    ""
                } else {
                    "; --seeds 5 gives one where the seed changes the values"
                }
            )?;
        }
        Ok(())
    }

    /// Writes notes on candidates with lost requests, overload or no value.
    fn write_incomplete(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ranked in self.candidates.iter().filter(|ranked| !ranked.complete) {
            let report = &ranked.report;
            write!(
                f,
                "\n{}: {} requests touched lost data and {} were beyond the volume; the times leave these requests out.",
                ranked.label(),
                report.arrived.lost,
                report.arrived.out_of_range
            )?;
            if report.arrived.refused > 0 {
                write!(
                    f,
                    " Drives with zones refused {} more.",
                    report.arrived.refused
                )?;
            }
        }
        for ranked in &self.candidates {
            if let Some(overload) = &ranked.report.arrived.overload {
                write!(f, "\n{}: {overload}.", ranked.label())?;
            }
        }
        for ranked in self
            .candidates
            .iter()
            .filter(|ranked| ranked.value.is_nan())
        {
            write!(
                f,
                "\n{}: no value of {} was measured.",
                ranked.label(),
                self.by
            )?;
        }
        Ok(())
    }
}

/// Returns the factor by which a run must be longer, as the end of a sentence; empty without one.
fn longer(factor: Option<f64>) -> String {
    match factor {
        // The candidates may as well be equal, and no affordable run would tell.
        Some(factor) if factor > LONGEST_FACTOR => {
            format!(
                "; the candidates may be equal (a run {} times as long may tell)",
                factor_in_words(factor)
            )
        }
        Some(factor) => format!(
            "; the run is too short by a factor of about {}",
            factor_in_words(factor)
        ),
        None => String::new(),
    }
}

/// Returns the names of the best candidate and of those that are equal to it.
fn names(best: &Ranked, equal: &[&Ranked]) -> String {
    let Some((last, others)) = equal.split_last() else {
        return best.label();
    };
    let others: String = others
        .iter()
        .map(|ranked| format!(", {}", ranked.label()))
        .collect();
    format!("{}{others} and {}", best.label(), last.label())
}

/// Returns the last part of a key, or the whole key if another key has the same last part.
fn short<'a>(key: &'a str, all: &[&str]) -> &'a str {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let alike = all
        .iter()
        .filter(|other| other.rsplit('.').next() == Some(last(key)))
        .count();
    if alike > 1 { key } else { last(key) }
}

/// Returns the difference to the best candidate with its interval, marked if the difference may be
/// chance.
fn difference(ranked: &Ranked) -> String {
    if let Some(overload) = &ranked.report.arrived.overload {
        return format!("serves {:.2}", overload.carried_share);
    }
    if ranked.value.is_nan() {
        return "-".to_owned();
    }
    let Some(difference) = &ranked.difference_to_best else {
        return "best".to_owned();
    };
    if difference.value.is_nan() {
        return "-".to_owned();
    }
    // Before the sign: a difference of exactly 0 has none.
    if ranked.equal_to_best {
        return "equal".to_owned();
    }
    let sign = if difference.value >= 0.0 { "+" } else { "-" };
    let amount = format!("{sign}{}", number(difference.value.abs()));
    let mark = match difference.significance {
        Significance::Significant => "",
        Significance::Consistent => "~ ",
        Significance::NotSignificant => "≈ ",
        Significance::Unknown => "? ",
    };
    match difference.half_width {
        Some(half_width) => format!("{mark}{amount} ± {}", number(half_width)),
        None => format!("{mark}{amount}"),
    }
}

/// Returns the number of batches in which the best candidate is better.
fn batches(difference: &Difference) -> String {
    let all = difference.batches_above + difference.batches_below;
    format!(
        "{} of {all} batches of requests",
        difference.batches_above.max(difference.batches_below)
    )
}

/// Returns a capacity in decimal units, as for drives: `36.4 GB`.
pub fn capacity(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes >= 1e12 => format!("{} TB", number(bytes / 1e12)),
        bytes if bytes >= 1e9 => format!("{} GB", number(bytes / 1e9)),
        bytes => format!("{} MB", number(bytes / 1e6)),
    }
}

fn failures(survived: u32) -> String {
    match survived {
        0 => "none".to_owned(),
        survived => survived.to_string(),
    }
}

/// Returns the number of drives of a candidate and the number of drives that may fail; `None` for a
/// single drive.
fn survives(candidate: &Ranked) -> Option<String> {
    let failed = match candidate.volume.failures_survived {
        0 => "no failed drive".to_owned(),
        1 => "one failed drive".to_owned(),
        count => format!("{count} failed drives"),
    };
    let drives = candidate.volume.drives;
    (drives > 1).then(|| {
        let label = candidate.label();
        format!("{label} has {drives} drives and survives {failed}.")
    })
}
