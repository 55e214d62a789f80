//! Studies of published claims: the verdicts, the published and the obtained values, and the
//! verdicts with other seeds, other free choices, and in variants.

use crate::chart::{self, Graph};
use crate::markup::Markup;
use crate::value::{NumberFormat, ReportColumn, TableCell, column, table};
use fullstroke_study::{CheckedClaims, ClaimVerdict, JudgedClaim};

/// Returns the title of one study, or of several.
pub(crate) fn title(checked: &[CheckedClaims<'_>]) -> String {
    match checked {
        [study] if study.title.is_empty() => study.study.to_owned(),
        [study] => format!("{}: {}", study.study, study.title),
        studies => format!("{} studies", studies.len()),
    }
}

fn verdict<'a>() -> ReportColumn<'a, JudgedClaim> {
    column("verdict", NumberFormat::Plain, |claim: &JudgedClaim| {
        TableCell::from(claim.verdict.name())
    })
}

fn obtained<'a>() -> ReportColumn<'a, JudgedClaim> {
    column("obtained", NumberFormat::Plain, |claim: &JudgedClaim| {
        claim.obtained
    })
}

fn half_width<'a>() -> ReportColumn<'a, JudgedClaim> {
    column(
        "± half the interval",
        NumberFormat::Plain,
        |claim: &JudgedClaim| claim.ci_half_width,
    )
}

/// Returns a column of text.
fn words<'a>(
    heading: &'a str,
    of: fn(&JudgedClaim) -> Option<&String>,
) -> ReportColumn<'a, JudgedClaim> {
    column(heading, NumberFormat::Plain, move |claim: &JudgedClaim| {
        of(claim).map(TableCell::from)
    })
}

/// Writes the verdicts on the claims.
pub(crate) fn verdicts(page: &mut Markup, checked: &[CheckedClaims<'_>], room: usize) {
    each(page, checked, room, |page, _, study| {
        page.element("h3", &[], study.title);
        page.element("p", &[], study.question);
        if !was_run(&study.claims) {
            let name = study.study;
            let note =
                format!("The study was not run yet; run fullstroke study run {name}. Claims:");
            page.element("p", &[("class", "note")], &note);
        }
        let columns = [
            verdict(),
            obtained(),
            half_width(),
            column(
                "fails or holds otherwise with",
                NumberFormat::Plain,
                |claim: &JudgedClaim| TableCell::from(claim.flips.as_slice()),
            ),
            words("claim", |claim| Some(&claim.says)),
        ];
        table(
            page,
            &format!("{}: claims", study.study),
            &columns,
            &claims(&study.claims),
        );
    });
}

/// Returns true if one of the studies has figures.
pub(crate) fn has_figures(checked: &[CheckedClaims<'_>]) -> bool {
    checked.iter().any(|study| !study.figures.is_empty())
}

/// Writes the figures, with published points on top.
pub(crate) fn figures(page: &mut Markup, checked: &[CheckedClaims<'_>], room: usize) {
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
pub(crate) fn published(page: &mut Markup, checked: &[CheckedClaims<'_>], room: usize) {
    each(page, checked, room, |page, _, study| {
        page.element("p", &[("class", "note")], study.source);
        let columns = [
            words("published", |claim| Some(&claim.published)),
            words("holds if", |claim| Some(&claim.holds_if)),
            words("here", |claim| Some(&claim.shown)),
        ];
        // Without a run there is nothing to put into the column `here`.
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
            words("reason of the difference", |claim| claim.why.as_ref()),
        ];
        table(
            page,
            &format!("{}: statements of the source", study.study),
            &columns,
            &claims(&study.claims),
        );
    });
}

/// Writes the tested free choices of the sources, and the claims in variants.
pub(crate) fn survives(page: &mut Markup, checked: &[CheckedClaims<'_>], room: usize) {
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
fn was_run(claims: &[JudgedClaim]) -> bool {
    claims
        .iter()
        .any(|claim| claim.verdict != ClaimVerdict::NotRun)
}

fn claims(claims: &[JudgedClaim]) -> Vec<(String, &JudgedClaim)> {
    claims
        .iter()
        .map(|claim| (claim.id.clone(), claim))
        .collect()
}

/// Writes each study in turn while the page is shorter than `room`.
fn each(
    page: &mut Markup,
    checked: &[CheckedClaims<'_>],
    room: usize,
    write: impl Fn(&mut Markup, usize, &CheckedClaims<'_>),
) {
    let mut left = 0;
    for (number, study) in checked.iter().enumerate() {
        let mut own = Markup::new();
        write(&mut own, number, study);
        // After a study that does not fit no other is shown, so that the page has the first studies
        // without a gap.
        if left == 0 && page.len() + own.len() <= room {
            page.add(&own);
        } else {
            left += 1;
        }
    }
    if left > 0 {
        let note = format!("{left} more studies do not fit on the page; --json contains them.");
        page.element("p", &[("class", "note")], &note);
    }
}
