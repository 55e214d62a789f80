//! What studies ask of published claims: which hold, beside what was published, and what of it
//! survives other seeds, other free choices, and one thing changed.

use crate::chart;
use crate::markup::Markup;
use crate::value::{Shown, at, column, list, table, text};
use serde_json::Value;

/// Whether an answer is of studies.
pub(crate) fn is_of_studies(answer: &Value) -> bool {
    at(answer, "checked").is_array()
}

/// What one study, or several, are called.
pub(crate) fn title(answer: &Value) -> String {
    match list(answer, "checked") {
        [study] if text(study, "title").is_empty() => text(study, "study").to_owned(),
        [study] => format!("{}: {}", text(study, "study"), text(study, "title")),
        studies => format!("{} studies", studies.len()),
    }
}

/// Which claims hold.
pub(crate) fn verdicts(page: &mut Markup, answer: &Value, room: usize) {
    each(page, answer, room, |page, _, study| {
        page.element("h3", &[], text(study, "title"));
        page.element("p", &[], text(study, "question"));
        if !was_run(study) {
            let name = text(study, "study");
            let note =
                format!("Nothing was run of it yet; fullstroke study run {name} does. Its claims:");
            page.element("p", &[("class", "note")], &note);
        }
        let columns = [
            column("verdict", "verdict", Shown::Plain),
            column("obtained", "obtained", Shown::Plain),
            column("± half the interval", "ci_half_width", Shown::Plain),
            column("fails or holds otherwise with", "flips", Shown::Plain),
            column("claim", "says", Shown::Plain),
        ];
        table(
            page,
            &format!("{}: its claims", text(study, "study")),
            &columns,
            &claims(study),
        );
    });
}

/// Whether a study of these has figures.
pub(crate) fn has_figures(answer: &Value) -> bool {
    list(answer, "checked")
        .iter()
        .any(|study| !list(study, "figures").is_empty())
}

/// The figures, published points laid over.
pub(crate) fn figures(page: &mut Markup, answer: &Value, room: usize) {
    each(page, answer, room, |page, number, study| {
        let drawn = list(study, "figures");
        if !drawn.is_empty() {
            page.element("h3", &[], text(study, "title"));
        }
        for (order, drawn) in drawn.iter().enumerate() {
            chart::lines(page, &format!("figure-{number}-{order}"), drawn);
        }
    });
}

/// What was published beside what was obtained.
pub(crate) fn published(page: &mut Markup, answer: &Value, room: usize) {
    each(page, answer, room, |page, _, study| {
        page.element("p", &[("class", "note")], text(study, "source"));
        let columns = [
            column("published", "published", Shown::Plain),
            column("holds if", "holds_if", Shown::Plain),
            column("here", "shown", Shown::Plain),
        ];
        let columns = if was_run(study) {
            &columns[..]
        } else {
            &columns[..2]
        };
        table(
            page,
            &format!("{}: published, and here", text(study, "study")),
            columns,
            &claims(study),
        );
        let columns = [
            column("where", "at", Shown::Plain),
            column("in the source's words", "quote", Shown::Plain),
            column("why it differs", "why", Shown::Plain),
        ];
        table(
            page,
            &format!("{}: what the source says", text(study, "study")),
            &columns,
            &claims(study),
        );
    });
}

/// What was tried of what the sources leave open, and the claims with one thing changed.
pub(crate) fn survives(page: &mut Markup, answer: &Value, room: usize) {
    let columns = [
        column("verdict", "verdict", Shown::Plain),
        column("obtained", "obtained", Shown::Plain),
        column("± half the interval", "ci_half_width", Shown::Plain),
        column("here", "shown", Shown::Plain),
    ];
    each(page, answer, room, |page, _, study| {
        let name = text(study, "study");
        let tried: Vec<&str> = list(study, "tried")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let sentence = match tried[..] {
            [] => {
                format!("{name}: verdicts were not held against other seeds or other free choices.")
            }
            _ => format!("{name}: verdicts were held against {}.", tried.join("; ")),
        };
        page.element("p", &[], &sentence);
        for variant in list(study, "variants")
            .iter()
            .filter(|variant| was_run(variant))
        {
            let caption = format!("{name}, changed: {}", text(variant, "title"));
            table(page, &caption, &columns, &claims(variant));
        }
    });
}

/// Whether a claim of it has a verdict.
fn was_run(study: &Value) -> bool {
    list(study, "claims")
        .iter()
        .any(|claim| text(claim, "verdict") != "not-run")
}

fn claims(study: &Value) -> Vec<(String, &Value)> {
    list(study, "claims")
        .iter()
        .map(|claim| (text(claim, "id").to_owned(), claim))
        .collect()
}

/// Each study in turn, as long as the page is shorter than `room`.
fn each(
    page: &mut Markup,
    answer: &Value,
    room: usize,
    write: impl Fn(&mut Markup, usize, &Value),
) {
    let mut left = 0;
    for (number, study) in list(answer, "checked").iter().enumerate() {
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
