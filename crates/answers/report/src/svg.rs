//! Parts of charts: figures with a title, a description and a legend, axes, marks.

use crate::markup::Markup;

/// Width of a figure, in units that the page scales.
pub(crate) const WIDTH: f64 = 760.0;

/// Largest number of letters of a name beside a chart.
const NAME_MAX: usize = 40;

/// One entry of a legend: the class with the style of a mark, and its name.
#[derive(Clone, Debug)]
pub(crate) struct LegendEntry {
    pub(crate) class: String,
    pub(crate) name: String,
    pub(crate) mark: MarkForm,
}

/// Form of a class in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkForm {
    Area,
    Line,
    /// A sign in place of a colour.
    Sign(&'static str),
}

/// Title of a figure, and its description for readers who cannot see the figure.
pub(crate) struct SvgTitle<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) description: &'a str,
    pub(crate) height: f64,
    pub(crate) legend: Vec<LegendEntry>,
}

/// A finished figure, for a page or a separate file.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) height: f64,
    pub(crate) legend: Vec<LegendEntry>,
    pub(crate) marks: Markup,
}

/// Draws a figure in a page. The legend stands above the drawing, so that it covers no data.
pub(crate) fn figure(markup: &mut Markup, figure: SvgTitle<'_>, draw: impl FnOnce(&mut Markup)) {
    Drawing::of(figure, draw).show(markup);
}

impl Drawing {
    pub(crate) fn of(figure: SvgTitle<'_>, draw: impl FnOnce(&mut Markup)) -> Drawing {
        let SvgTitle {
            id,
            title,
            description,
            height,
            legend,
        } = figure;
        let mut marks = Markup::new();
        draw(&mut marks);
        let [id, title, description] = [id, title, description].map(str::to_owned);
        Drawing {
            id,
            title,
            description,
            height,
            legend,
            marks,
        }
    }

    /// Writes the figure into a page.
    pub(crate) fn show(&self, markup: &mut Markup) {
        markup.within("figure", &[("id", &self.id)], |markup| {
            markup.element("figcaption", &[], &self.title);
            if !self.legend.is_empty() {
                markup.within("ul", &[("class", "legend")], |markup| {
                    for key in &self.legend {
                        markup.within("li", &[], |markup| {
                            let frame = [
                                ("viewBox", "0 0 24 14"),
                                ("class", "swatch"),
                                ("aria-hidden", "true"),
                            ];
                            markup.within("svg", &frame, |markup| swatch(markup, (0.0, 0.0), key));
                            markup.text(" ").text(&key.name);
                        });
                    }
                });
            }
            let frame = format!("0 0 {WIDTH} {}", short(self.height));
            // A narrow screen scrolls the figure; `tabindex` makes that possible with the keyboard.
            let plot = [
                ("class", "plot"),
                ("role", "group"),
                ("tabindex", "0"),
                ("aria-label", &*self.title),
            ];
            markup.within("div", &plot, |markup| {
                self.svg(markup, &[("viewBox", &frame), ("class", "chart")]);
            });
        });
    }

    /// Writes the drawing with its description for readers who cannot see the figure.
    pub(crate) fn svg(&self, markup: &mut Markup, attributes: &[(&'static str, &str)]) {
        let (title_id, description_id) = (
            format!("{}-title", self.id),
            format!("{}-description", self.id),
        );
        let labels = format!("{title_id} {description_id}");
        let all = [attributes, &[("role", "img"), ("aria-labelledby", &labels)]].concat();
        markup.within("svg", &all, |markup| {
            markup.element("title", &[("id", &title_id)], &self.title);
            markup.element("desc", &[("id", &description_id)], &self.description);
            markup.add(&self.marks);
        });
    }
}

/// Draws the mark of a legend's entry, 24 by 14, from the upper left corner.
pub(crate) fn swatch(markup: &mut Markup, (x, y): (f64, f64), key: &LegendEntry) {
    match key.mark {
        MarkForm::Area => rectangle(markup, (x + 1.0, y + 1.0), (22.0, 12.0), &key.class),
        MarkForm::Line => path(
            markup,
            &format!("M{} {}h24", short(x), short(y + 7.0)),
            &key.class,
        ),
        MarkForm::Sign(sign) => label(markup, (x + 12.0, y + 11.0), "middle sign", sign),
    }
}

/// A scale from values to units of the figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    from: f64,
    to: f64,
    begin: f64,
    end: f64,
    logarithmic: bool,
}

impl Axis {
    /// Creates a linear scale from `begin` to `end` for values of `from` to `to`.
    pub(crate) fn linear((from, to): (f64, f64), (begin, end): (f64, f64)) -> Axis {
        // An empty range would divide by zero in `at`.
        let to = if to > from { to } else { from + 1.0 };
        Axis {
            from,
            to,
            begin,
            end,
            logarithmic: false,
        }
    }

    /// Creates a scale by decades, for values above zero.
    pub(crate) fn logarithmic((from, to): (f64, f64), (begin, end): (f64, f64)) -> Axis {
        // Zero has no logarithm.
        let from = from.max(1e-9).log10().floor();
        let to = to.max(1e-9).log10().ceil().max(from + 1.0);
        Axis {
            from,
            to,
            begin,
            end,
            logarithmic: true,
        }
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = if self.logarithmic {
            value.max(1e-9).log10()
        } else {
            value
        };
        // A value beyond the axis is drawn at its end.
        let share = ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        self.begin + share * (self.end - self.begin)
    }

    /// Returns round values.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let step = ((self.to - self.from) / 8.0).ceil().max(1.0) as usize;
            return (self.from as i32..=self.to as i32)
                .step_by(step)
                .map(|power| 10f64.powi(power))
                .collect();
        }
        let step = round_step((self.to - self.from) / 5.0);
        let first = (self.from / step).ceil() as i64;
        (first..)
            .map(|tick| tick as f64 * step)
            // Rounding must not drop the last tick.
            .take_while(|tick| *tick <= self.to + 1e-9 * step)
            .collect()
    }
}

/// Returns the smallest of 1, 2, 5 times a power of ten that is at least `wanted`.
fn round_step(wanted: f64) -> f64 {
    let power = 10f64.powf(wanted.max(1e-12).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps
        .into_iter()
        .find(|step| *step >= wanted * (1.0 - 1e-9))
        // Only NaN finds no step.
        .unwrap_or(wanted)
}

/// Draws a rule across the figure at each tick of a vertical axis, with its number, and the axis'
/// name.
pub(crate) fn vertical(markup: &mut Markup, axis: &Axis, (left, right): (f64, f64), name: &str) {
    for tick in axis.ticks() {
        let y = axis.at(tick);
        line(markup, (left, y), (right, y), "rule");
        label(markup, (left - 6.0, y + 4.0), "end", &plain(tick));
    }
    name_upwards(markup, (axis.begin + axis.end) / 2.0, name);
}

/// Draws the name of a vertical axis, at the figure's left edge.
pub(crate) fn name_upwards(markup: &mut Markup, middle: f64, name: &str) {
    let middle = short(middle);
    let turn = format!("rotate(-90 14 {middle})");
    let attributes = [
        ("x", "14"),
        ("y", &middle),
        ("class", "middle name"),
        ("transform", &turn),
    ];
    markup.element("text", &attributes, name);
}

/// Draws a horizontal axis with rules from `top` to `bottom`.
pub(crate) fn horizontal(markup: &mut Markup, axis: &Axis, (top, bottom): (f64, f64), name: &str) {
    for tick in axis.ticks() {
        let x = axis.at(tick);
        line(markup, (x, top), (x, bottom), "rule");
        label(markup, (x, bottom + 16.0), "middle", &plain(tick));
    }
    label(
        markup,
        ((axis.begin + axis.end) / 2.0, bottom + 34.0),
        "middle name",
        name,
    );
}

pub(crate) fn line(markup: &mut Markup, from: (f64, f64), to: (f64, f64), class: &str) {
    path(
        markup,
        &format!(
            "M{} {}L{} {}",
            short(from.0),
            short(from.1),
            short(to.0),
            short(to.1)
        ),
        class,
    );
}

/// Draws a line through all points. NaN breaks the line. A point alone becomes a ring.
pub(crate) fn polyline(
    markup: &mut Markup,
    points: impl IntoIterator<Item = (f64, f64)>,
    class: &str,
) {
    let points: Vec<(f64, f64)> = points.into_iter().collect();
    let mut way = String::new();
    // NaN is a gap in the line. A single point between two gaps becomes a dot, because a line needs
    // two points.
    for run in points.split(|(x, y)| x.is_nan() || y.is_nan()) {
        match run {
            [] => {}
            [(x, y)] => way.push_str(&format!(
                "M{} {}a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
                short(x - 3.0),
                short(*y)
            )),
            run => {
                let each = run
                    .iter()
                    .map(|(x, y)| format!("{} {}", short(*x), short(*y)));
                way.push_str(&format!("M{}", each.collect::<Vec<_>>().join("L")));
            }
        }
    }
    path(markup, &way, class);
}

pub(crate) fn path(markup: &mut Markup, way: &str, class: &str) {
    markup.element("path", &[("d", way), ("class", class)], "");
}

/// Draws a rectangle from its upper left corner.
pub(crate) fn rectangle(
    markup: &mut Markup,
    (x, y): (f64, f64),
    (width, height): (f64, f64),
    class: &str,
) {
    // SVG refuses negative sizes.
    let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(short);
    markup.element(
        "rect",
        &[
            ("x", &x),
            ("y", &y),
            ("width", &width),
            ("height", &height),
            ("class", class),
        ],
        "",
    );
}

/// Draws text; `class` gives the position of the point: `start`, `middle` or `end`.
pub(crate) fn label(markup: &mut Markup, (x, y): (f64, f64), class: &str, text: &str) {
    markup.element(
        "text",
        &[("x", &short(x)), ("y", &short(y)), ("class", class)],
        text,
    );
}

/// Shortens a name for the space beside a chart. A long name keeps its ends, because names differ
/// there.
pub(crate) fn fitting(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME_MAX {
        return name.to_owned();
    }
    let kept: String = name.chars().skip(letters - NAME_MAX + 1).collect();
    format!("…{kept}")
}

/// Returns a coordinate, to a tenth.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Returns a round value without superfluous decimals.
pub(crate) fn plain(value: f64) -> String {
    // About ten significant digits hide the rounding of binary fractions.
    let digits = (9.0 - value.abs().max(1e-9).log10()).clamp(0.0, 12.0) as i32;
    let scale = 10f64.powi(digits);
    ((value * scale).round() / scale).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_few_and_within_the_axis() {
        for to in [0.011, 0.7, 1.3, 23.0, 600.0, 8e6] {
            let ticks = Axis::linear((0.0, to), (0.0, 700.0)).ticks();
            assert!((2..=11).contains(&ticks.len()), "{to}: {ticks:?}");
            assert!(
                ticks.iter().all(|tick| (0.0..=to * 1.001).contains(tick)),
                "{to}: {ticks:?}"
            );
        }
        let decades = Axis::logarithmic((0.2, 40.0), (0.0, 1.0));
        assert_eq!(
            decades
                .ticks()
                .iter()
                .map(|tick| plain(*tick))
                .collect::<Vec<_>>(),
            ["0.1", "1", "10", "100"]
        );
        assert!((decades.at(1.0) - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_point_without_neighbours_is_a_ring() {
        let mut markup = Markup::new();
        let gap = (2.0, f64::NAN);
        polyline(
            &mut markup,
            [(0.0, 1.0), (1.0, 1.0), gap, (3.0, 1.0), gap],
            "series-0",
        );
        let way = "M0 1L1 1M0 1a3 3 0 1 0 6 0a3 3 0 1 0-6 0z";
        assert_eq!(
            markup.into_text(),
            format!("<path d=\"{way}\" class=\"series-0\"></path>")
        );
    }

    #[test]
    fn long_names_keep_their_ends() {
        let name = format!("{} volume.chunk=64KiB", "a".repeat(60));
        assert!(
            fitting(&name).ends_with("volume.chunk=64KiB")
                && fitting(&name).chars().count() == NAME_MAX
        );
        assert_eq!(fitting("raid5"), "raid5");
    }
}
