//! Studies of published claims: the verdicts, the published and the obtained values, and the
//! verdicts with other seeds, other free choices, and in variants.

use crate::chart::{self, Graph};
use crate::markup::Markup;
use crate::value::{Cell, Column, Shown, column, table};
use fullstroke_study::{Checked, Judged, Verdict};

/// Returns the title of one study, or of several.
pub(crate) fn title(checked: &[Checked<'_>]) -> String {
    match checked {
        [study] if study.title.is_empty() => study.study.to_owned(),
        [study] => format!("{}: {}", study.study, study.title),
        studies => format!("{} studies", studies.len()),
    }
}

fn verdict<'a>() -> Column<'a, Judged> {
    column("verdict", Shown::Plain, |claim: &Judged| {
        Cell::from(claim.verdict.name())
    })
}

fn obtained<'a>() -> Column<'a, Judged> {
    column("obtained", Shown::Plain, |claim: &Judged| claim.obtained)
}

fn half_width<'a>() -> Column<'a, Judged> {
    column("± half the interval", Shown::Plain, |claim: &Judged| {
        claim.ci_half_width
    })
}

/// Returns a column of text.
fn words<'a>(heading: &'a str, of: fn(&Judged) -> Option<&String>) -> Column<'a, Judged> {
    column(heading, Shown::Plain, move |claim: &Judged| {
        of(claim).map(Cell::from)
    })
}

/// Writes the verdicts on the claims.
pub(crate) fn verdicts(page: &mut Markup, checked: &[Checked<'_>], room: usize) {
    each(page, checked, room, |page, _, study| {
        page.element("h3", &[], study.title);
        page.element("p", &[], study.question);
        if !was_run(&study.claims) {
            let name = study.study;
            let note =
                format!("Nothing was run of it yet; fullstroke study run {name} does. Its claims:");
            page.element("p", &[("class", "note")], &note);
        }
        let columns = [
            verdict(),
            obtained(),
            half_width(),
            column(
                "fails or holds otherwise with",
                Shown::Plain,
                |claim: &Judged| Cell::from(claim.flips.as_slice()),
            ),
            words("claim", |claim| Some(&claim.says)),
        ];
        table(
            page,
            &format!("{}: its claims", study.study),
            &columns,
            &claims(&study.claims),
        );
    });
}

/// Returns true if one of the studies has figures.
pub(crate) fn has_figures(checked: &[Checked<'_>]) -> bool {
    checked.iter().any(|study| !study.figures.is_empty())
}

/// Writes the figures, with published points on top.
pub(crate) fn figures(page: &mut Markup, checked: &[Checked<'_>], room: usize) {
    each(page, checked, room, |page, number, study| {
        if !study.figures.is_empty() {
            page.element("h3", &[], study.title);
        }
        for (order, drawn) in study.figures.iter().enumerate() {
            chart::lines(
                page,
                &format!("figure-{number}-{order}"),
                &Graph::from(drawn),
            );
        }
    });
}

/// Writes the published values beside the obtained values.
pub(crate) fn published(page: &mut Markup, checked: &[Checked<'_>], room: usize) {
    each(page, checked, room, |page, _, study| {
        page.element("p", &[("class", "note")], study.source);
        let columns = [
            words("published", |claim| Some(&claim.published)),
            words("holds if", |claim| Some(&claim.holds_if)),
            words("here", |claim| Some(&claim.shown)),
        ];
        let columns = if was_run(&study.claims) {
            &columns[..]
        } else {
            &columns[..2]
        };
        table(
            page,
            &format!("{}: published, and here", study.study),
            columns,
            &claims(&study.claims),
        );
        let columns = [
            words("where", |claim| claim.at.as_ref()),
            words("in the source's words", |claim| claim.quote.as_ref()),
            words("why it differs", |claim| claim.why.as_ref()),
        ];
        table(
            page,
            &format!("{}: what the source says", study.study),
            &columns,
            &claims(&study.claims),
        );
    });
}

/// Writes the tested free choices of the sources, and the claims in variants.
pub(crate) fn survives(page: &mut Markup, checked: &[Checked<'_>], room: usize) {
    let columns = [
        verdict(),
        obtained(),
        half_width(),
        words("here", |claim| Some(&claim.shown)),
    ];
    each(page, checked, room, |page, _, study| {
        let name = study.study;
        let sentence = match &study.tried[..] {
            [] => {
                format!("{name}: verdicts were not held against other seeds or other free choices.")
            }
            tried => format!("{name}: verdicts were held against {}.", tried.join("; ")),
        };
        page.element("p", &[], &sentence);
        for variant in study
            .variants
            .iter()
            .filter(|variant| was_run(&variant.claims))
        {
            let caption = format!("{name}, changed: {}", variant.title);
            table(page, &caption, &columns, &claims(&variant.claims));
        }
    });
}

/// Returns true if one of the claims has a verdict.
fn was_run(claims: &[Judged]) -> bool {
    claims.iter().any(|claim| claim.verdict != Verdict::NotRun)
}

fn claims(claims: &[Judged]) -> Vec<(String, &Judged)> {
    claims
        .iter()
        .map(|claim| (claim.id.clone(), claim))
        .collect()
}

/// Writes each study in turn while the page is shorter than `room`.
fn each(
    page: &mut Markup,
    checked: &[Checked<'_>],
    room: usize,
    write: impl Fn(&mut Markup, usize, &Checked<'_>),
) {
    let mut left = 0;
    for (number, study) in checked.iter().enumerate() {
        let mut own = Markup::new();
        write(&mut own, number, study);
        if left == 0 && page.len() + own.len() <= room {
            page.add(&own);
        } else {
            left += 1;
        }
    }
    if left > 0 {
        let note = format!("No room is left for {left} studies more; --json has them.");
        page.element("p", &[("class", "note")], &note);
    }
}
