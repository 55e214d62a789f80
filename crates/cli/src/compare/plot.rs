//! A ranking as a picture: a bar for each candidate, with its interval, and for
//! mean response times where the time went.

use fullstroke_lab::{Ranked, Ranking};
use fullstroke_measure::{Metric, number};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

type Page<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

const WIDTH: i32 = 1000;
/// Bars begin here; names stand to the left of it.
const LEFT: i32 = 330;
/// The largest value reaches to here; its number stands to the right of it.
const RIGHT: i32 = 880;
const TOP: i32 = 90;
const ROW: i32 = 44;
const BAR: i32 = 24;
const BELOW: i32 = 60;
/// Characters of a name that fit to the left of the bars.
const NAME_MAX: usize = 44;

const INK: RGBColor = RGBColor(40, 40, 40);
const RULE: RGBColor = RGBColor(205, 205, 205);
const PLAIN: RGBColor = RGBColor(70, 120, 180);
/// Queue, parity, overhead, seek, rotation, transfer (after Okabe and Ito, to be
/// told apart by people who see colours differently).
const PARTS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(150, 150, 150),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(204, 121, 167),
];

/// The ranking as SVG.
///
/// # Errors
/// If nothing was measured, so that there is nothing to draw.
pub(crate) fn draw(ranking: &Ranking) -> Result<String, String> {
    let candidates: Vec<&Ranked> =
        ranking.candidates.iter().filter(|ranked| !ranked.value.is_nan()).collect();
    let reach = |ranked: &&Ranked| ranked.value + ranked.ci95_half_width.unwrap_or(0.0);
    let largest = candidates.iter().map(reach).fold(0.0, f64::max);
    if largest <= 0.0 {
        return Err(format!("cannot draw the ranking: nothing was measured by {}", ranking.by));
    }
    let height = TOP + ROW * candidates.len() as i32 + BELOW;
    let mut svg = String::new();
    let page = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32)).into_drawing_area();
    let chart = Chart { scale: f64::from(RIGHT - LEFT) / largest, bottom: height - BELOW, largest };
    chart.all(&page, ranking, &candidates).map_err(|error| format!("cannot draw the ranking: {error}"))?;
    page.present().map_err(|error| format!("cannot draw the ranking: {error}"))?;
    drop(page);
    Ok(svg)
}

struct Chart {
    /// Pixels for each unit of the metric.
    scale: f64,
    bottom: i32,
    largest: f64,
}

impl Chart {
    fn all(&self, page: &Page<'_>, ranking: &Ranking, candidates: &[&Ranked]) -> Drawn {
        page.fill(&WHITE)?;
        let better = if ranking.more_is_better { "more is better" } else { "less is better" };
        let title = format!("{} ({better}), with 95 % intervals", ranking.by);
        page.draw(&Text::new(title, (20, 16), ("sans-serif", 20).into_font().color(&INK)))?;
        self.axis(page)?;
        let parts = ranking.by == Metric::RESPONSE_MEAN.name();
        if parts {
            self.legend(page, candidates)?;
        }
        for (row, ranked) in candidates.iter().enumerate() {
            self.row(page, TOP + ROW * row as i32, ranked, parts)?;
        }
        Ok(())
    }

    fn x(&self, value: f64) -> i32 {
        LEFT + (value * self.scale).round() as i32
    }

    /// A rule and a number at each round value.
    fn axis(&self, page: &Page<'_>) -> Drawn {
        let step = round_step(self.largest / 5.0);
        let below = ("sans-serif", 14).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Top));
        let mut tick = 0;
        while f64::from(tick) * step <= self.largest {
            let value = f64::from(tick) * step;
            let x = self.x(value);
            page.draw(&PathElement::new(vec![(x, TOP - 8), (x, self.bottom)], RULE))?;
            page.draw(&Text::new(plain(value), (x, self.bottom + 8), below.clone()))?;
            tick += 1;
        }
        Ok(())
    }

    /// The parts that any candidate has, in a line of their own above the bars.
    fn legend(&self, page: &Page<'_>, candidates: &[&Ranked]) -> Drawn {
        let mut x = LEFT;
        for (index, colour) in PARTS.iter().enumerate() {
            let share = |ranked: &&Ranked| ranked.report.time_ms.named()[index].1 / ranked.value;
            if !candidates.iter().map(share).any(|share| share > 0.001) {
                continue;
            }
            let name = candidates[0].report.time_ms.named()[index].0;
            page.draw(&Rectangle::new([(x, 52), (x + 14, 66)], colour.filled()))?;
            page.draw(&Text::new(name, (x + 20, 51), ("sans-serif", 15).into_font().color(&INK)))?;
            x += 40 + 8 * name.len() as i32;
        }
        Ok(())
    }

    fn row(&self, page: &Page<'_>, top: i32, ranked: &Ranked, parts: bool) -> Drawn {
        let middle = top + BAR / 2;
        let to_the_left = ("sans-serif", 15).into_font().color(&INK).pos(Pos::new(HPos::Right, VPos::Center));
        page.draw(&Text::new(short(&ranked.label()), (LEFT - 10, middle), to_the_left))?;
        if parts {
            let mut from = 0.0;
            for ((_, value), colour) in ranked.report.time_ms.named().into_iter().zip(PARTS) {
                let to = from + value;
                page.draw(&Rectangle::new([(self.x(from), top), (self.x(to), top + BAR)], colour.filled()))?;
                from = to;
            }
        } else {
            page.draw(&Rectangle::new([(LEFT, top), (self.x(ranked.value), top + BAR)], PLAIN.filled()))?;
        }
        if let Some(half_width) = ranked.ci95_half_width {
            let (from, to) =
                (self.x((ranked.value - half_width).max(0.0)), self.x(ranked.value + half_width));
            page.draw(&PathElement::new(vec![(from, middle), (to, middle)], INK.stroke_width(2)))?;
            for end in [from, to] {
                page.draw(&PathElement::new(
                    vec![(end, middle - 6), (end, middle + 6)],
                    INK.stroke_width(2),
                ))?;
            }
        }
        let end = self.x(ranked.value + ranked.ci95_half_width.unwrap_or(0.0));
        let to_the_right = ("sans-serif", 15).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        page.draw(&Text::new(number(ranked.value), (end + 8, middle), to_the_right))?;
        Ok(())
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `wanted`.
fn round_step(wanted: f64) -> f64 {
    let power = 10f64.powf(wanted.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= wanted)
        .unwrap_or(wanted)
}

/// A round value without needless decimals.
fn plain(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    rounded.to_string()
}

/// A name that fits: where names are long, what differs stands at their ends.
fn short(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME_MAX {
        return name.to_owned();
    }
    let kept: String = name.chars().skip(letters - NAME_MAX + 1).collect();
    format!("…{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        for (wanted, step) in [(0.7, 1.0), (1.3, 2.0), (23.0, 50.0), (0.011, 0.02), (600.0, 1000.0)] {
            assert!((round_step(wanted) - step).abs() < 1e-9 * step, "{wanted}");
        }
        assert_eq!(plain(0.02 * 3.0), "0.06");
    }

    #[test]
    fn long_names_keep_their_ends() {
        let name = format!("{} volume.chunk=64KiB", "a".repeat(60));
        assert!(short(&name).ends_with("volume.chunk=64KiB") && short(&name).chars().count() == NAME_MAX);
        assert_eq!(short("raid5"), "raid5");
    }
}
