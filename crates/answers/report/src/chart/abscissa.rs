//! An abscissa with named values.

use crate::markup::Markup;
use crate::svg::{WIDTH, label, path, short};

/// Width of a letter, and distance of two rows of names.
const LETTER: f64 = 7.0;
const ROW: f64 = 15.0;
/// Largest number of rows of names.
const ROWS: usize = 3;

/// Names at positions of the figure, in rows so that no name covers another.
pub(crate) struct Abscissa<'a> {
    names: Vec<(&'a str, f64)>,
    /// Row of each name; `None` if there is no room.
    rows: Vec<Option<usize>>,
}

impl<'a> Abscissa<'a> {
    /// Creates an abscissa. The names are ordered by position, from left to right.
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

    /// Returns the height below the axis.
    pub(crate) fn height(&self) -> f64 {
        44.0 + ROW * self.rows.iter().flatten().copied().max().unwrap_or(0) as f64
    }

    /// Draws the names below `bottom`, and the name of the axis at `middle`.
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

/// Returns half the width of a name.
fn half(name: &str) -> f64 {
    LETTER * name.chars().count() as f64 / 2.0
}

/// Returns the middle of a name at `at`, moved so that both ends are within the figure.
fn within(name: &str, at: f64) -> f64 {
    // A name wider than the figure is centred, because `clamp` needs a lower bound below the upper
    // one.
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
