//! The answer of `energy` as text.

use super::{EnergyAnswer, LOAD_OF_IDLE_TIMES, RefusedPolicy, StopPolicy};
use fullstroke_measure::{
    BEYOND_MIN, STAR, factor_in_words, number, percentile, requests_beyond, table,
};
use std::fmt;

/// Response times below a microsecond: memory answers.
const AT_ONCE_MS: f64 = 0.001;

/// A percentile of the response times: name, share of requests below, and getter.
type Shown = (&'static str, f64, fn(&StopPolicy) -> f64);

const PERCENTILES: [Shown; 2] = [
    ("p99", 0.99, |policy| policy.response_ms_p99),
    ("p99.9", 0.999, |policy| policy.response_ms_p999),
];

impl EnergyAnswer {
    /// Returns the policy with the largest saving; `None` if no policy saves energy.
    fn best(&self) -> Option<&StopPolicy> {
        let saves = self
            .policies
            .iter()
            // NaN, from a drive without power data, is no saving.
            .filter(|policy| policy.saved_share > 0.0);
        // Equal savings: the last policy of the list. total_cmp needs no case for NaN, which was
        // left out.
        saves.max_by(|one, other| one.saved_share.total_cmp(&other.saved_share))
    }

    /// Returns the first percentile that needs a drive; `None` if memory answers nearly all
    /// requests, so that only the maximum says something.
    fn percentile(&self) -> Option<Shown> {
        let turning = self.policies.first()?;
        PERCENTILES.into_iter().find(|(_, quantile, value)| {
            let beyond = requests_beyond(turning.requests, *quantile);
            value(turning) >= AT_ONCE_MS && beyond >= BEYOND_MIN
        })
    }

    fn verdict(&self) -> String {
        let Some(best) = self.best() else {
            return self.nothing_saved();
        };
        let StopPolicy {
            name, saved_share, ..
        } = best;
        let saved = number(100.0 * saved_share);
        let Some(half_width) = best.saved_share_ci95_half_width else {
            return format!(
                "Too short to tell: `{name}` saves {saved} % here, but the load of {} s has too few pauses for an interval; a load several times as long has one.",
                number(self.load_s)
            );
        };
        let interval = number(100.0 * half_width);
        if *saved_share <= half_width {
            let factor = (half_width / saved_share).powi(2).max(1.0);
            return format!(
                "Too short to tell: `{name}` saves {saved} ± {interval} %; the load of {} s is too short by a factor of about {}.",
                number(self.load_s),
                factor_in_words(factor)
            );
        }
        format!(
            "Stopping pays: `{name}` saves {saved} ± {interval} %{}, {}, and stops the busiest drive {} times a year ({} stops in the run){}.",
            self.money(best),
            self.speed(best),
            number(best.stops_a_year),
            best.stops,
            self.used_up(best)
        )
    }

    /// Returns the saved energy and money of a year.
    fn money(&self, best: &StopPolicy) -> String {
        let Some(turning) = self.policies.first() else {
            return String::new();
        };
        // The interval of the share is that of the same spans of both runs.
        let share = best.saved_share_ci95_half_width;
        let saved =
            |all: f64, own: f64| with_interval(all - own, share.map(|half_width| half_width * all));
        let kwh = saved(turning.kwh_a_year, best.kwh_a_year);
        let cost = match (&self.price, turning.cost_a_year, best.cost_a_year) {
            (Some(price), Some(turning), Some(own)) => {
                format!(" or {} {}", saved(turning, own), price.currency)
            }
            _ => String::new(),
        };
        format!(" ({kwh} kWh{cost} a year)")
    }

    /// Returns the energy of a year of drives that always turn.
    fn a_year(&self) -> String {
        let Some(turning) = self.policies.first() else {
            return String::new();
        };
        let kwh = with_interval(turning.kwh_a_year, turning.kwh_a_year_ci95_half_width);
        let cost = match (&self.price, turning.cost_a_year) {
            (Some(price), Some(cost)) => {
                let cost = with_interval(cost, turning.cost_a_year_ci95_half_width);
                format!(" or {cost} {}", price.currency)
            }
            _ => String::new(),
        };
        let doubt = match turning.kwh_a_year_ci95_half_width {
            Some(_) => String::new(),
            None => format!(
                ", without an interval: the load of {} s is too short",
                number(self.load_s)
            ),
        };
        format!("The drives take {kwh} kWh{cost} a year under this load{doubt}.")
    }

    fn speed(&self, best: &StopPolicy) -> String {
        match self.percentile() {
            Some((name, quantile, value)) => format!(
                "at a {name} of {} ms",
                percentile(value(best), best.requests, quantile)
            ),
            None => format!(
                "with a slowest request of {} s",
                number(best.response_ms_max / 1000.0)
            ),
        }
    }

    fn used_up(&self, best: &StopPolicy) -> String {
        match (best.years, self.rated_cycles) {
            (Some(years), Some(rated)) => format!(
                ", which uses up the {rated} rated starts and stops (not the load cycles of the heads) in {} years",
                number(years)
            ),
            _ => String::new(),
        }
    }

    /// Returns the verdict if no policy saves energy.
    fn nothing_saved(&self) -> String {
        let refused = self
            .refused
            .iter()
            .filter_map(|one| Some((one.name.as_str(), one.too_short_by?)));
        let tried = self
            .policies
            .iter()
            .filter_map(|one| Some((one.name.as_str(), one.too_short_by?)));
        let longest = refused
            .chain(tried)
            .max_by(|one, other| one.1.total_cmp(&other.1));
        let pays = "Stopping the platters does not pay for this load";
        let Some((name, factor)) = longest else {
            return format!("{pays}. {}", self.a_year());
        };
        format!(
            "{pays} at idle times up to {} s. The load of {} s says nothing about longer ones: {name} would need a load {} times as long. {}",
            number(self.load_s / LOAD_OF_IDLE_TIMES),
            number(self.load_s),
            factor_in_words(factor),
            self.a_year()
        )
    }

    /// Returns the table of power, energy and stops.
    fn powers(&self) -> String {
        let currency = self.price.as_ref().map(|price| price.currency.as_str());
        let cost = currency.map(|currency| format!("{currency} a year"));
        let mut header = vec!["idle time", "W", "saved", "± 95 %", "kWh a year"];
        header.extend(cost.as_deref());
        header.extend(["stops a year", "rating lasts, years"]);
        let mut table = table(header, &[0]);
        for policy in &self.policies {
            let mut row = vec![
                policy.name.clone(),
                number(policy.mean_w),
                percent(policy.saved_share),
                policy
                    .saved_share_ci95_half_width
                    .map_or_else(|| "-".to_owned(), percent),
                with_interval(policy.kwh_a_year, policy.kwh_a_year_ci95_half_width),
            ];
            row.extend(
                policy
                    .cost_a_year
                    .map(|cost| with_interval(cost, policy.cost_a_year_ci95_half_width)),
            );
            row.extend([
                number(policy.stops_a_year),
                policy.years.map_or_else(|| "-".to_owned(), number),
            ]);
            table.add_row(row);
        }
        table.trim_fmt()
    }

    /// Returns the table of response times.
    fn times(&self) -> String {
        let shown = self.percentile();
        let named = shown.map(|(name, ..)| format!("{name} ms"));
        let mut header = vec!["idle time", "mean ms"];
        header.extend(named.as_deref());
        header.push("max ms");
        let mut table = table(header, &[0]);
        for policy in &self.policies {
            let mut row = vec![policy.name.clone(), number(policy.response_ms_mean)];
            row.extend(
                shown.map(|(_, quantile, value)| {
                    percentile(value(policy), policy.requests, quantile)
                }),
            );
            row.push(number(policy.response_ms_max));
            table.add_row(row);
        }
        table.trim_fmt()
    }

    /// Returns the meaning of the percentile in the table of times.
    fn about_the_percentile(&self) -> String {
        let requests = self.policies.first().map_or(0, |policy| policy.requests);
        match self.percentile() {
            Some((name, quantile, _)) => {
                let beyond = requests_beyond(requests, quantile);
                let memory = match name {
                    "p99" => "",
                    _ => " Memory answers 99 % of the requests at once.",
                };
                format!("{name}: {beyond} of {requests} requests lie beyond.{memory}")
            }
            None => {
                let memory = match self.policies.first() {
                    Some(turning) if turning.response_ms_p99 < AT_ONCE_MS => {
                        "memory answers 99 % of the requests at once, and "
                    }
                    _ => "",
                };
                format!(
                    "No percentile is shown: {memory}fewer than {BEYOND_MIN} of {requests} requests lie beyond the next."
                )
            }
        }
    }
}

/// Returns a number with half the width of its interval, or with the word that there is none.
fn with_interval(value: f64, half_width: Option<f64>) -> String {
    match half_width {
        Some(half_width) => format!("{} ± {}", number(value), number(half_width)),
        None => format!("about {}", number(value)),
    }
}

/// Returns a share in per cent, without the sign of a zero.
fn percent(share: f64) -> String {
    let text = format!("{:.1} %", 100.0 * share);
    text.strip_prefix("-0.0")
        .map_or(text.clone(), |rest| format!("0.0{rest}"))
}

impl fmt::Display for EnergyAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self.times();
        writeln!(f, "{}\n\n{times}", self.powers())?;
        if times.contains('*') {
            writeln!(f, "{STAR}")?;
        }
        writeln!(f, "{}\n", self.about_the_percentile())?;
        for RefusedPolicy { name, why, .. } in &self.refused {
            writeln!(f, "Idle time {name} was not tried: {why}.")?;
        }
        if let Some(seconds) = self.break_even_s {
            writeln!(
                f,
                "A spin-down saves energy if the standby lasts {} s or longer.",
                number(seconds)
            )?;
        }
        if let Some(source) = self.assumed {
            writeln!(f, "Source of the power figures: {source}.")?;
        }
        write!(f, "{}", self.verdict())
    }
}
