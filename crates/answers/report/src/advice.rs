//! The recommendation of `advise` and its rivals.

use crate::chart::{self, Bar, Graph, GraphLine, GraphPoint};
use crate::markup::Markup;
use crate::svg::Drawing;
use crate::value::{NumberFormat, ReportColumn, TableCell, column, table};
use fullstroke_advise::{
    Advice, ArrayOutcome, AtLoad, ExcludedLayout, Finalist, FlashOutcome, MissedWish,
};

/// Writes the recommendation in sentences, and a table of the best candidate of each layout.
pub(crate) fn recommendation(page: &mut Markup, advice: &Advice) {
    for (order, sentence) in advice.recommendation.iter().enumerate() {
        let class: &[(&'static str, &str)] = if order == 0 {
            &[("class", "verdict")]
        } else {
            &[]
        };
        page.element("p", class, sentence);
    }
    finalists(page, advice);
    page.element("p", &[("class", "note")], &advice.assumed);
}

/// Writes the changes of wishes, drives and load that change the answer.
pub(crate) fn would_change(page: &mut Markup, advice: &Advice) {
    page.within("ul", &[], |page| {
        for sentence in &advice.would_change {
            page.element("li", &[], sentence);
        }
        if advice.would_change.is_empty() {
            page.element("li", &[], "None of the tried layouts.");
        }
    });
    without_a_drive(page, advice);
    let at_loads: Vec<(String, &AtLoad)> = advice
        .at_loads
        .iter()
        .map(|at_load| {
            let load = TableCell::from(at_load.load).as_json();
            (format!("{load} times the load"), at_load)
        })
        .collect();
    if !at_loads.is_empty() {
        let columns = [
            column("load", NumberFormat::Plain, |at: &AtLoad| at.load),
            column("take", NumberFormat::Plain, |at: &AtLoad| {
                TableCell::from(&at.recommended)
            }),
            column("as recommended", NumberFormat::Plain, |at: &AtLoad| at.same),
            column(
                "meets every wish with all drives",
                NumberFormat::Plain,
                |at: &AtLoad| at.meets,
            ),
        ];
        table(page, "At more load", &columns, &at_loads);
    }
}

/// Returns the wished number of an outcome, and the name of this number.
fn wished(advice: &Advice) -> (fn(&ArrayOutcome) -> TableCell, &'static str) {
    let wishes = &advice.wishes;
    match () {
        () if wishes.streams.is_some() => (
            |outcome| outcome.underruns.into(),
            "underruns (runs of all seeds)",
        ),
        () if wishes.p99.is_some() => (
            |outcome| outcome.p99_ms.into(),
            "99th percentile of response times (ms)",
        ),
        () if wishes.mb_per_s.is_some() => (|outcome| outcome.mb_per_s.into(), "data moved (MB/s)"),
        () => (|outcome| outcome.mean_ms.into(), "mean response time (ms)"),
    }
}

/// Returns bars of the wished number of each finalist with all drives.
pub(crate) fn wished_bars(advice: &Advice) -> Option<Drawing> {
    let (number, axis) = wished(advice);
    let bar = |finalist: &Finalist| {
        Some((
            finalist.name.clone(),
            number(&finalist.healthy).float()?,
            None,
        ))
    };
    let bars: Vec<Bar> = advice.finalists.iter().filter_map(bar).collect();
    let title = "The best of each layout, with all drives";
    (!bars.is_empty()).then(|| chart::bars("finalists", title, axis, &bars))
}

/// Writes the wished number of each finalist with all drives, with a failed drive, during a rebuild,
/// and with a slow drive.
fn without_a_drive(page: &mut Markup, advice: &Advice) {
    const CONDITIONS: [&str; 4] = [
        "all drives",
        "one failed drive",
        "during a rebuild",
        "one slow drive",
    ];
    let (number, axis) = wished(advice);
    let of = |finalist: &Finalist| {
        let conditions = [
            Some(&finalist.healthy),
            finalist.degraded.as_ref(),
            finalist.rebuilding.as_ref(),
            finalist.slow.as_ref(),
        ];
        conditions.map(|outcome| outcome.map_or(TableCell::Nothing, number))
    };
    let values = advice.finalists.iter().flat_map(of);
    // NaN and missing values must not decide about the axis; `fold` with `max` leaves NaN out.
    let high = values.filter_map(|value| value.float()).fold(0.0, f64::max);
    let line = |finalist: &Finalist| GraphLine {
        name: finalist.name.clone(),
        points: of(finalist).map(GraphPoint::of).to_vec(),
    };
    let ticks = CONDITIONS.iter().enumerate();
    let drawn = Graph {
        title: "Effect of a failed or slow drive on the best candidate of each layout".to_owned(),
        x: "condition".to_owned(),
        y: axis.to_owned(),
        caption: None,
        // 5 % above the highest point keep the line off the frame.
        ordinate: (0.0, high * 1.05),
        ticks: ticks
            .map(|(place, name)| (place as f64, (*name).to_owned()))
            .collect(),
        lines: advice.finalists.iter().map(line).collect(),
    };
    // Without an underrun in any condition all values are 0, and lines at 0 tell nothing.
    if high > 0.0 {
        chart::lines(page, "conditions", &drawn);
    }
}

/// Returns a column of numbers of an outcome in one condition.
fn outcome<'a>(
    heading: &'a str,
    shown: NumberFormat,
    condition: fn(&Finalist) -> Option<&ArrayOutcome>,
    number: fn(&ArrayOutcome) -> TableCell,
) -> ReportColumn<'a, Finalist> {
    column(heading, shown, move |one: &Finalist| {
        condition(one).map(number)
    })
}

fn healthy(one: &Finalist) -> Option<&ArrayOutcome> {
    Some(&one.healthy)
}

fn degraded(one: &Finalist) -> Option<&ArrayOutcome> {
    one.degraded.as_ref()
}

fn rebuilding(one: &Finalist) -> Option<&ArrayOutcome> {
    one.rebuilding.as_ref()
}

fn slow(one: &Finalist) -> Option<&ArrayOutcome> {
    one.slow.as_ref()
}

fn finalists(page: &mut Markup, advice: &Advice) {
    let rows: Vec<(String, &Finalist)> = advice
        .finalists
        .iter()
        .map(|finalist| (finalist.name.clone(), finalist))
        .collect();
    let p99 = |outcome: &ArrayOutcome| TableCell::from(outcome.p99_ms);
    let columns = [
        column("place", NumberFormat::Whole, |one: &Finalist| one.place),
        column("usable", NumberFormat::Bytes, |one: &Finalist| {
            one.volume.usable_bytes
        }),
        column("survives", NumberFormat::Whole, |one: &Finalist| {
            one.volume.failures_survived
        }),
        column("price", NumberFormat::Plain, |one: &Finalist| one.price),
        outcome("p99 ms", NumberFormat::Plain, healthy, p99),
        outcome("one failed drive", NumberFormat::Plain, degraded, p99),
        outcome("rebuilding", NumberFormat::Plain, rebuilding, p99),
        outcome("one slow drive", NumberFormat::Plain, slow, p99),
        outcome("underruns", NumberFormat::Whole, healthy, |outcome| {
            outcome.underruns.into()
        }),
        outcome("MB/s", NumberFormat::Plain, healthy, |outcome| {
            outcome.mb_per_s.into()
        }),
        outcome("W", NumberFormat::Plain, healthy, |outcome| {
            outcome.mean_w.into()
        }),
    ];
    table(page, "The best of each layout", &columns, &rows);
    tails(page, &rows, advice.assumptions.slow_factor);
    flash(page, &rows);
    losses(page, &rows);
    let whys = |misses: &[MissedWish]| {
        TableCell::Texts(misses.iter().map(|miss| miss.why.clone()).collect())
    };
    let columns = [
        column("settings", NumberFormat::Plain, |one: &Finalist| {
            TableCell::from(one.settings.as_slice())
        }),
        column("misses", NumberFormat::Plain, |one: &Finalist| {
            whys(&one.misses)
        }),
        column(
            "misses without a drive",
            NumberFormat::Plain,
            |one: &Finalist| whys(&one.misses_without_a_drive),
        ),
        column(
            "misses with a slow drive",
            NumberFormat::Plain,
            |one: &Finalist| whys(&one.misses_with_a_slow_drive),
        ),
    ];
    table(page, "Settings and missed wishes", &columns, &rows);
    left_out(page, &advice.left_out);
}

/// Writes the 99.9th percentile of response times in the four states of an array.
fn tails(page: &mut Markup, rows: &[(String, &Finalist)], slow_factor: f64) {
    let p999 = |outcome: &ArrayOutcome| TableCell::from(outcome.p999_ms);
    let columns = [
        outcome("all drives", NumberFormat::Plain, healthy, p999),
        outcome("one failed drive", NumberFormat::Plain, degraded, p999),
        outcome("rebuilding", NumberFormat::Plain, rebuilding, p999),
        outcome("one slow drive", NumberFormat::Plain, slow, p999),
    ];
    let title = format!("99.9th percentile (ms); a slow drive takes {slow_factor} times as long");
    table(page, &title, &columns, rows);
}

/// Writes price, power and wear of the flash devices beside the disks, if there are any.
fn flash(page: &mut Markup, rows: &[(String, &Finalist)]) {
    let with_flash: Vec<(String, &Finalist)> = rows
        .iter()
        .filter(|(_, one)| one.flash.is_some())
        .cloned()
        .collect();
    if with_flash.is_empty() {
        return;
    }
    let of = |heading, shown, number: fn(&FlashOutcome) -> TableCell| {
        column(heading, shown, move |one: &Finalist| {
            one.flash.as_ref().map(number)
        })
    };
    let columns = [
        of("devices", NumberFormat::Whole, |flash| flash.devices.into()),
        of("price", NumberFormat::Plain, |flash| flash.price.into()),
        of("W", NumberFormat::Plain, |flash| flash.mean_w.into()),
        of("written, GB a day", NumberFormat::Plain, |flash| {
            flash.written_gb_a_day.into()
        }),
        of("worn in a year", NumberFormat::Percent, |flash| {
            flash.wear_share_a_year.into()
        }),
        of("only in the cache, MB", NumberFormat::Plain, |flash| {
            flash.dirty_mb.into()
        }),
    ];
    let unpriced = |one: &Finalist| {
        one.flash
            .as_ref()
            .is_some_and(|flash| flash.price.is_none())
    };
    let left_out = with_flash
        .iter()
        .any(|(_, one)| one.price.is_some() && unpriced(one));
    let title = match left_out {
        true => {
            "Flash devices beside the disks; the prices leave flash devices without a price out"
        }
        false => "Flash devices beside the disks",
    };
    table(page, title, &columns, &with_flash);
}

/// Writes the hours of a rebuild and the chance of loss.
fn losses(page: &mut Markup, rows: &[(String, &Finalist)]) {
    let columns = [
        outcome(
            "rebuild, hours",
            NumberFormat::Plain,
            rebuilding,
            |outcome| outcome.rebuild_hours.into(),
        ),
        column(
            "loss within a year",
            NumberFormat::Small,
            |one: &Finalist| one.loss.chance_a_year,
        ),
        column(
            "mean time to loss, years",
            NumberFormat::Plain,
            |one: &Finalist| one.loss.mttdl_years,
        ),
        column(
            "a sector cannot be read then",
            NumberFormat::Percent,
            |one: &Finalist| one.loss.unreadable_chance,
        ),
    ];
    table(
        page,
        "How long a rebuild takes, and the chance of loss",
        &columns,
        rows,
    );
}

/// Writes the layouts that arithmetic excludes.
fn left_out(page: &mut Markup, all: &[ExcludedLayout]) {
    let rows: Vec<(String, &ExcludedLayout)> = all
        .iter()
        .map(|one| (format!("{} of {}", one.layout, one.drives), one))
        .collect();
    if !rows.is_empty() {
        let why = column("why", NumberFormat::Plain, |one: &ExcludedLayout| {
            TableCell::from(&one.why)
        });
        table(page, "Left out before anything was run", &[why], &rows);
    }
}
