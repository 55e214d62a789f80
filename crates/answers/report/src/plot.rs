//! The main figure of an answer as a separate file.

use crate::advice::wished_bars;
use crate::answer::{AnswerBody, CommandAnswer};
use crate::candidate::{CandidateReport, IN_A_CHART, candidates};
use crate::chart::{heat_map, line_chart, time_parts};
use crate::found::{load_bars, searches};
use crate::markup::Markup;
use crate::metric::axis;
use crate::page::{ranking_bars, title};
use crate::svg::{Drawing, LegendEntry, WIDTH, label, short, swatch};
use fullstroke_study::CheckedClaims;
use std::fmt::Write as _;
use thiserror::Error;

/// Margin around the drawing.
const MARGIN: f64 = 20.0;
/// Width of a letter of a legend, and of a heading.
const LETTER: f64 = 6.7;
const HEADING_LETTER: f64 = 8.2;
/// Height of a row of a legend, and of a row of a heading.
const KEY_ROW: f64 = 20.0;
const HEADING_ROW: f64 = 22.0;
/// Largest number of study figures in one file.
const FIGURES: usize = 12;

/// Reason why an answer has no figure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlotError {
    /// The answer lacks the data of its figure.
    #[error("cannot draw: {0}")]
    Nothing(&'static str),
    /// No candidate of the ranking has a value of this metric.
    #[error("cannot draw the ranking: no value of {0} was measured")]
    Ranking(String),
    /// No run has the distance between heads.
    #[error(
        "cannot draw how far apart heads are: found no stack with several drives that were all used for 20 simulated \
         seconds"
    )]
    NoHeads,
    /// No drive has power figures.
    #[error(
        "cannot draw the power of the drives: no drive file has power figures; choose a drive with [power] (`fullstroke drive list`), or give `volume.drive_settings.power`"
    )]
    NoWatts,
    /// The plotting library failed.
    #[error("cannot draw {0}: {1}")]
    Drawing(&'static str, String),
}

/// Returns the main figure of an answer as SVG. A ranking shows its bars, and the parts of the
/// response time if the metric is the mean response time. A run shows the map of its response times
/// by cause. Searches show the result of each candidate, an advice shows the finalists by the
/// wished number, and studies show their figures.
///
/// Colours are written as values, those of a dark screen under `prefers-color-scheme`. Programs
/// without support for CSS variables show the light colours.
///
/// # Errors
/// If the answer has nothing to draw. The error names the missing data.
pub fn plot(answer: &CommandAnswer<'_>) -> Result<String, PlotError> {
    let candidates = candidates(answer);
    let (drawings, left_out) = main_figures(answer, &candidates)?;
    let heading = wrapped(&title(answer, &candidates), HEADING_LETTER);
    let mut inside = Markup::new();
    let mut y = MARGIN;
    for line in &heading {
        y += HEADING_ROW;
        label(&mut inside, (MARGIN, y - 6.0), "start heading", line);
    }
    for drawing in &drawings {
        y = placed(&mut inside, drawing, y + 12.0);
    }
    if left_out > 0 {
        y += KEY_ROW;
        let note = format!("{left_out} figures more are in --report and --json.");
        label(&mut inside, (MARGIN, y), "start name", &note);
    }
    Ok(sheet(&inside, y + MARGIN))
}

/// Returns the drawings, and the number of figures that are left out.
fn main_figures(
    answer: &CommandAnswer<'_>,
    candidates: &[CandidateReport<'_>],
) -> Result<(Vec<Drawing>, usize), PlotError> {
    let shown = &candidates[..candidates.len().min(IN_A_CHART)];
    let one = |drawing: Option<Drawing>, lacking: &'static str| {
        drawing
            .map(|drawing| (vec![drawing], 0))
            .ok_or(PlotError::Nothing(lacking))
    };
    match answer.found {
        AnswerBody::Studies { checked, .. } => of_studies(checked),
        AnswerBody::Sustained(..) | AnswerBody::LoadRanking(..) => one(
            load_bars(searches(answer)),
            "the searches found no sustained load",
        ),
        AnswerBody::Advice { advice, .. } => one(
            wished_bars(advice),
            "no finalist has a value of the wished number",
        ),
        AnswerBody::Run(_) => one(
            shown
                .first()
                .and_then(|run| heat_map(0, run))
                .or_else(|| time_parts(shown)),
            "the run answered no request",
        ),
        AnswerBody::Ranking(_) | AnswerBody::Tuned(..) => {
            let by = answer.by();
            let bars = ranking_bars(answer, shown).ok_or_else(|| PlotError::Ranking(axis(by)))?;
            // The parts add up to the mean alone. A ranking by another metric has no such figure.
            let parts = (by == "response_ms.mean")
                .then(|| time_parts(shown))
                .flatten();
            Ok(([Some(bars), parts].into_iter().flatten().collect(), 0))
        }
    }
}

fn of_studies(checked: &[CheckedClaims<'_>]) -> Result<(Vec<Drawing>, usize), PlotError> {
    let all = checked.iter().flat_map(|study| &study.figures);
    let drawn = all
        .enumerate()
        .filter_map(|(order, figure)| line_chart(&format!("figure-{order}"), &figure.into()));
    let mut drawn: Vec<Drawing> = drawn.collect();
    if drawn.is_empty() {
        return Err(PlotError::Nothing(
            "the studies have no figure with results; run them, or see --report",
        ));
    }
    let left_out = drawn.len().saturating_sub(FIGURES);
    drawn.truncate(FIGURES);
    Ok((drawn, left_out))
}

/// Places one figure with its title and legend from `y` on. Returns the position of its end.
fn placed(sheet: &mut Markup, drawing: &Drawing, mut y: f64) -> f64 {
    for line in wrapped(&drawing.title, LETTER + 0.6) {
        y += KEY_ROW;
        label(sheet, (MARGIN, y - 6.0), "start caption", &line);
    }
    y = legend(sheet, &drawing.legend, y) + 8.0;
    let attributes = [
        ("x", short(MARGIN)),
        ("y", short(y)),
        ("width", short(WIDTH)),
        ("height", short(drawing.height)),
    ];
    let attributes: Vec<(&'static str, &str)> = attributes
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    drawing.svg(sheet, &attributes);
    y + drawing.height
}

/// Places the entries of a legend in rows from `y` on. Returns the position of their end.
fn legend(sheet: &mut Markup, keys: &[LegendEntry], y: f64) -> f64 {
    let (mut x, mut row) = (MARGIN, 0);
    for key in keys {
        let width = 30.0 + LETTER * key.name.chars().count() as f64;
        // The first key of a row is placed even if it is wider than the row.
        if x > MARGIN && x + width > MARGIN + WIDTH {
            (x, row) = (MARGIN, row + 1);
        }
        let top = y + KEY_ROW * f64::from(row);
        swatch(sheet, (x, top + 3.0), key);
        label(sheet, (x + 30.0, top + 14.0), "start", &key.name);
        x += width + 16.0;
    }
    if keys.is_empty() {
        y
    } else {
        y + KEY_ROW * f64::from(row + 1)
    }
}

/// Breaks text into lines that fit, for letters of this width.
fn wrapped(text: &str, letter: f64) -> Vec<String> {
    let most = (WIDTH / letter) as usize;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        while !word.is_empty() {
            let own = lines.last().map_or(0, |line| line.chars().count());
            if own > 0 && own + 1 + word.len() > most {
                lines.push(String::new());
                continue;
            }
            // There is always a line.
            let Some(line) = lines.last_mut() else { break };
            line.push_str(if own > 0 { " " } else { "" });
            line.extend(word.drain(..word.len().min(most)));
        }
    }
    lines
}

fn sheet(inside: &Markup, height: f64) -> String {
    let (width, height) = (short(WIDTH + 2.0 * MARGIN), short(height));
    let frame = format!("0 0 {width} {height}");
    let mut file = Markup::new();
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("viewBox", frame.as_str()),
        ("width", &width),
        ("height", &height),
        ("class", "sheet"),
    ];
    file.within("svg", &attributes, |file| {
        file.within("style", &[], |file| {
            file.text(&written_out(include_str!("looks.css")));
        });
        file.code(include_str!("patterns.svg"));
        file.element(
            "rect",
            &[("width", &width), ("height", &height), ("class", "paper")],
            "",
        );
        file.add(inside);
    });
    file.into_text()
}

/// Rules of a sheet besides the styles of marks.
const SHEET: &str =
    ".sheet{font-family:system-ui,\"Segoe UI\",Roboto,Arial,sans-serif}.paper{fill:var(--paper)}
svg .heading{font-size:17px;font-weight:600}svg .caption{font-weight:600}
";

/// Returns the rules of `looks` with values in place of variables, first for light, then for dark
/// screens.
fn written_out(looks: &str) -> String {
    let (variables, rules): (Vec<&str>, Vec<&str>) = looks.lines().partition(|line| {
        [":root", "@media", "--"]
            .iter()
            .any(|begin| line.starts_with(begin))
    });
    let variables = variables.join("");
    let (light, dark) = variables
        .split_once("@media screen and")
        // Without rules for dark screens, both are light.
        .unwrap_or((&variables, &variables));
    let rules = format!("{}\n{SHEET}", rules.join("\n"));
    let [mut in_light, mut in_dark] = [rules.clone(), rules];
    for (rules, values) in [(&mut in_light, light), (&mut in_dark, dark)] {
        for (name, value) in values_of(values) {
            *rules = rules.replace(&format!("var({name})"), value);
        }
    }
    let mut css = in_light;
    // Writing to a string cannot fail.
    let _ = write!(
        css,
        "@media screen and (prefers-color-scheme:dark){{{in_dark}}}"
    );
    css
}

/// Returns the variables of a block of CSS.
fn values_of(block: &str) -> Vec<(&str, &str)> {
    let inner = block
        .rsplit('{')
        .next()
        .unwrap_or_default()
        .trim_end_matches('}');
    inner
        .split(';')
        .filter_map(|one| one.split_once(':'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_is_left_and_dark_differs_from_light() {
        let css = written_out(include_str!("looks.css"));
        assert!(!css.contains("var(") && !css.contains("--"), "{css}");
        let (light, dark) = css
            .split_once("@media screen and (prefers-color-scheme:dark)")
            .unwrap();
        for block in [light, dark] {
            assert!(
                block.contains(".bar{fill:#") && block.contains(".paper{fill:#"),
                "{block}"
            );
        }
        assert!(
            light.contains("fill:#fff") && dark.contains("fill:#16181c"),
            "{css}"
        );
    }

    #[test]
    fn lines_of_a_heading_fit_also_where_a_word_does_not() {
        let lines = wrapped(&format!("of {} and", "x".repeat(300)), HEADING_LETTER);
        assert!(
            lines.len() > 3
                && lines
                    .iter()
                    .all(|line| line.chars().count() as f64 * HEADING_LETTER <= WIDTH)
        );
    }
}
