//! An abscissa whose values have names.

use crate::markup::Markup;
use crate::svg::{WIDTH, label, path, short};

/// What a letter takes, and two rows of names are apart.
const LETTER: f64 = 7.0;
const ROW: f64 = 15.0;
/// Rows of names.
const ROWS: usize = 3;

/// Names at places of the figure, in rows so that none covers another.
pub(crate) struct Abscissa<'a> {
    names: Vec<(&'a str, f64)>,
    /// `None` where there is no room.
    rows: Vec<Option<usize>>,
}

impl<'a> Abscissa<'a> {
    /// Of names in the order of their places, from left to right.
    pub(crate) fn new(names: impl Iterator<Item = (&'a str, f64)>) -> Abscissa<'a> {
        let names: Vec<(&str, f64)> = names.collect();
        let mut taken = [f64::NEG_INFINITY; ROWS];
        let place = |&(name, at): &(&str, f64)| {
            let (middle, half) = (within(name, at), half(name));
            let row = taken.iter().position(|taken| *taken < middle - half)?;
            taken[row] = middle + half + LETTER;
            Some(row)
        };
        let rows = names.iter().map(place).collect();
        Abscissa { names, rows }
    }

    /// What it takes below the axis.
    pub(crate) fn height(&self) -> f64 {
        44.0 + ROW * self.rows.iter().flatten().copied().max().unwrap_or(0) as f64
    }

    /// Below `bottom`, with the name of the axis at `middle`.
    pub(crate) fn draw(&self, svg: &mut Markup, bottom: f64, middle: f64, name: &str) {
        let marks = self
            .names
            .iter()
            .map(|(_, at)| format!("M{} {}v5", short(*at), short(bottom)));
        path(svg, &marks.collect::<String>(), "rule");
        for ((name, at), row) in self.names.iter().zip(&self.rows) {
            if let Some(row) = row {
                label(
                    svg,
                    (within(name, *at), bottom + 18.0 + ROW * *row as f64),
                    "middle",
                    name,
                );
            }
        }
        label(
            svg,
            (middle, bottom + self.height() - 8.0),
            "middle name",
            name,
        );
    }
}

/// Half of what a name takes.
fn half(name: &str) -> f64 {
    LETTER * name.chars().count() as f64 / 2.0
}

/// Where the middle of a name stands that is wanted at `at`, so that its ends are within the figure.
fn within(name: &str, at: f64) -> f64 {
    let half = half(name).min(WIDTH / 2.0);
    at.clamp(half, WIDTH - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_the_abscissa_never_cover_each_other() {
        let names: Vec<String> = (0..40).map(|number| format!("name of {number}")).collect();
        let place = |number: usize| 90.0 + 16.0 * number as f64;
        let abscissa = Abscissa::new(
            names
                .iter()
                .enumerate()
                .map(|(number, name)| (name.as_str(), place(number))),
        );
        for row in 0..ROWS {
            let spans: Vec<(f64, f64)> = (0..40)
                .filter(|&number| abscissa.rows[number] == Some(row))
                .map(|number| (place(number), half(&names[number])))
                .collect();
            assert!(spans.len() > 2);
            assert!(
                spans
                    .windows(2)
                    .all(|two| two[0].0 + two[0].1 < two[1].0 - two[1].1),
                "{spans:?}"
            );
        }
        assert_eq!(
            Abscissa::new([("1", 100.0), ("2", 400.0)].into_iter()).rows,
            [Some(0), Some(0)]
        );
    }
}
