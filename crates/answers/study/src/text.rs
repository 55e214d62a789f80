//! Values as text.

use crate::axes::Matrix;
use crate::expression::{
    Bindings, Estimate, Evaluator, Expression, ExpressionError, ExpressionValue, Problem, parse,
};
use crate::unknown::UnknownName;

/// Text with expressions in braces: `in {count(...):whole} cases; {min(...):percent}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Text, and the expression after it with its format.
    parts: Vec<(String, Option<(Expression, NumberFormat)>)>,
}

/// Format of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberFormat {
    unit: Unit,
    /// True if the interval is printed, too: `+3.1 ± 0.4 %`.
    with_interval: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Three significant digits.
    Plain,
    /// A whole number.
    Whole,
    /// A share as a difference in percent: `+3.1 %`.
    Difference,
    /// A share in percent: `3.1 %`.
    Share,
}

impl NumberFormat {
    /// A plain number with its interval.
    const INTERVAL: NumberFormat = NumberFormat::new(Unit::Plain, true);

    const fn new(unit: Unit, with_interval: bool) -> NumberFormat {
        NumberFormat {
            unit,
            with_interval,
        }
    }

    fn is_percent(self) -> bool {
        matches!(self.unit, Unit::Difference | Unit::Share)
    }
}

const FORMATS: &[(&str, NumberFormat)] = &[
    ("interval", NumberFormat::INTERVAL),
    ("value", NumberFormat::new(Unit::Plain, false)),
    ("whole", NumberFormat::new(Unit::Whole, false)),
    ("percent", NumberFormat::new(Unit::Difference, false)),
    ("change", NumberFormat::new(Unit::Difference, true)),
    ("share", NumberFormat::new(Unit::Share, false)),
];

impl Template {
    /// Parses a template.
    pub(crate) fn parse(text: &str) -> Result<Template, ExpressionError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let at = text.len() - behind.len();
            let Some((inner, after)) = behind.split_once('}') else {
                let span = at - 1..text.len();
                return Err(ExpressionError::new(
                    text,
                    span,
                    "this brace is not closed; expected `}`",
                ));
            };
            let (expression, format) = split_format(inner)
                .map_err(|message| ExpressionError::new(text, at..at + inner.len(), message))?;
            parts.push((before.to_owned(), Some((parse(expression)?, format))));
            rest = after;
        }
        parts.push((rest.to_owned(), None));
        Ok(Template { parts })
    }

    /// Returns the expressions of the template.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts
            .iter()
            .filter_map(|(_, inner)| inner.as_ref().map(|(expression, _)| expression))
    }

    /// Prints the interval of each expression that consists of `name` alone.
    pub(crate) fn with_intervals_of(mut self, name: &str) -> Template {
        let inner = self
            .parts
            .iter_mut()
            .filter_map(|(_, inner)| inner.as_mut());
        for (expression, format) in inner {
            if expression.text.trim() == name {
                format.with_interval = true;
            }
        }
        self
    }

    /// Returns the format of the expression that consists of `name` alone.
    pub(crate) fn format_of(&self, name: &str) -> Option<NumberFormat> {
        let inner = self.parts.iter().filter_map(|(_, inner)| inner.as_ref());
        inner
            .filter(|(expression, _)| expression.text.trim() == name)
            .map(|(_, format)| *format)
            .next()
    }

    /// Returns the text with values of the results.
    pub(crate) fn filled(&self, evaluator: &Evaluator<'_>) -> String {
        self.fill(evaluator, &Bindings::new())
            .unwrap_or_else(|_| "a number in these words is missing".to_owned())
    }

    /// Returns the text with its values.
    pub(crate) fn fill(
        &self,
        evaluator: &Evaluator<'_>,
        bindings: &Bindings,
    ) -> Result<String, Problem> {
        let mut filled = String::new();
        for (text, inner) in &self.parts {
            filled.push_str(text);
            if let Some((expression, format)) = inner {
                let value = evaluator.evaluate(expression, bindings)?;
                filled.push_str(&write(&value, *format, evaluator.matrix));
            }
        }
        Ok(filled)
    }
}

/// Splits an expression from the name of a format after its last colon. Colons inside brackets
/// belong to the expression.
fn split_format(text: &str) -> Result<(&str, NumberFormat), UnknownName> {
    let mut depth = 0i32;
    let colon = text.char_indices().filter(|&(_, letter)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ':' && depth == 0
    });
    let Some((at, _)) = colon.last() else {
        return Ok((text, NumberFormat::INTERVAL));
    };
    let name = text[at + 1..].trim();
    let found = FORMATS.iter().find(|entry| entry.0 == name);
    found.map(|entry| (&text[..at], entry.1)).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|entry| entry.0).collect();
        UnknownName::of("format", name, &names)
    })
}

/// Returns a published number in the units of `format`.
pub(crate) fn published(number: f64, format: Option<NumberFormat>) -> String {
    let percent = (number * 1e5).round() / 1e3;
    match format {
        Some(format) if format.unit == Unit::Difference && number > 0.0 => {
            format!("+{percent} %")
        }
        // Adding 0 turns -0 into 0, which would be shown as `-0 %`.
        Some(format) if format.is_percent() => format!("{} %", percent + 0.0),
        // Nine digits, because the sum of two decimal numbers may have a rest beyond them.
        _ => format!("{}", (number * 1e9).round() / 1e9 + 0.0),
    }
}

/// Returns a bound that was computed from a published number, rounded to significant digits: three,
/// or tenths of a percent.
pub(crate) fn bound(number: f64, format: Option<NumberFormat>) -> String {
    let rounded = match format {
        Some(format) if format.is_percent() => (number * 1e3).round() / 1e3,
        _ => significant(number, 3).parse().unwrap_or(number),
    };
    published(rounded, format)
}

/// Returns a value as short text, a number with its interval.
pub(crate) fn plain(value: &ExpressionValue, matrix: &Matrix) -> String {
    write(value, NumberFormat::INTERVAL, matrix)
}

fn write(value: &ExpressionValue, format: NumberFormat, matrix: &Matrix) -> String {
    match value {
        ExpressionValue::Number(number) => write_number(number, format),
        ExpressionValue::Truth(truth) => (if *truth { "yes" } else { "no" }).to_owned(),
        ExpressionValue::Text(text) => text.clone(),
        ExpressionValue::Label(axis, value) => matrix.axes[*axis].values[*value].name.clone(),
    }
}

fn write_number(number: &Estimate, format: NumberFormat) -> String {
    let mean = number.mean();
    let width = number.half_width().filter(|_| format.with_interval);
    let width = width.filter(|width| is_interval(mean, *width));
    // Adding zero removes the sign of a number that was rounded to zero.
    let percent = 100.0 * mean + 0.0;
    let unit = width.map_or_else(
        || " %".to_owned(),
        |width| format!(" ± {:.1} %", 100.0 * width),
    );
    match format.unit {
        Unit::Whole if width.is_none() => format!("{:.0}", mean + 0.0),
        Unit::Plain | Unit::Whole => with_width(mean, width),
        Unit::Difference => format!("{percent:+.1}{unit}"),
        Unit::Share => format!("{percent:.1}{unit}"),
    }
}

/// Returns true if half a width makes an interval. If all seeds give the same value, rounding leaves a
/// tiny width, which is no interval.
fn is_interval(value: f64, half_width: f64) -> bool {
    half_width > 1e-12 * value.abs()
}

/// Returns a number with half the width of its interval. The number has no more decimal places than
/// the width.
pub(crate) fn with_width(value: f64, half_width: Option<f64>) -> String {
    let alone = significant(value, 3);
    let Some(width) = half_width.filter(|width| is_interval(value, *width)) else {
        return alone;
    };
    let width = significant(width, 2);
    if !value.is_finite() || places(&alone) <= places(&width) {
        return format!("{alone} ± {width}");
    }
    let scale = 10f64.powi(places(&width));
    // Adding zero removes the sign of a number that was rounded to zero.
    let rounded = (value * scale).round() / scale + 0.0;
    format!("{rounded:.*} ± {width}", places(&width) as usize)
}

/// Returns the number of decimal places.
fn places(number: &str) -> i32 {
    number
        .split_once('.')
        .map_or(0, |(_, behind)| behind.len() as i32)
}

/// Returns a number with `digits` significant digits. Whole numbers are complete; NaN is `none`.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "none".to_owned();
    }
    if value == 0.0 || value.is_infinite() {
        // The log of 0 or of infinity is no magnitude.
        return format!("{}", value.abs() * value.signum());
    }
    let magnitude = value.abs().log10().floor();
    // Rounding may give one digit more, as from 9.996 to 10.0.
    let places = (digits as f64 - 1.0 - magnitude).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.places$}");
    let rounded = text
        .parse::<f64>()
        .map_or(magnitude, |rounded| rounded.abs().log10().floor());
    if rounded > magnitude && places > 0 {
        format!("{value:.0$}", places - 1)
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.80561, "0.806"),
            (9.996, "10.0"),
            (12.345, "12.3"),
            (1234.5, "1234"),
            (-0.001_234_5, "-0.00123"),
            (f64::NAN, "none"),
        ] {
            assert_eq!(significant(value, 3), text);
        }
        assert_eq!(
            write_number(
                &Estimate::of_run(0.8061, Some(0.0213)),
                NumberFormat::INTERVAL
            ),
            "0.806 ± 0.021"
        );
        assert_eq!(
            write_number(&Estimate::exact(3.0), NumberFormat::INTERVAL),
            "3.00"
        );
        // Digits below the precision of the interval are not printed.
        for (value, width, text) in [
            (61.24, 164.0, "61 ± 164"),
            (-0.000_19, 0.011, "0.000 ± 0.011"),
            (0.002_58, 0.06, "0.003 ± 0.060"),
            (27.04, 0.551, "27.0 ± 0.55"),
            (1234.5, 0.2, "1234 ± 0.20"),
            (0.205, 3e-17, "0.205"),
        ] {
            assert_eq!(with_width(value, Some(width)), text);
        }
    }

    #[test]
    fn a_published_number_is_written_in_the_units_of_what_was_obtained() {
        let format = |text: &str| Template::parse(text).unwrap().format_of("obtained");
        for (number, shown, text) in [
            (0.07, "{obtained:change}; {1:value}", "+7 %"),
            (-0.185, "{1:value}, {obtained:percent}", "-18.5 %"),
            (1.0, "{ obtained :share}", "100 %"),
            (0.0, "{obtained:percent} apart", "0 %"),
            (0.139, "{obtained:interval}", "0.139"),
            (338.0, "{1:value}", "338"),
        ] {
            assert_eq!(published(number, format(shown)), text, "{shown}");
        }
    }

    #[test]
    fn the_interval_of_a_name_is_printed_in_the_units_of_its_format() {
        let number = ExpressionValue::Number(Estimate::of_seeds(vec![0.4, 0.5, 0.6], 0.95));
        let exact = ExpressionValue::Number(Estimate::exact(64.0));
        let matrix = Matrix::default();
        for (shown, value, text) in [
            ("{obtained:percent}", &number, "+50.0 ± 24.8 %"),
            ("{obtained:share}", &number, "50.0 ± 24.8 %"),
            ("{obtained:value}", &number, "0.50 ± 0.25"),
            ("{obtained:whole}", &exact, "64"),
        ] {
            let template = Template::parse(shown)
                .unwrap()
                .with_intervals_of("obtained");
            let format = template.format_of("obtained").unwrap();
            assert_eq!(write(value, format, &matrix), text, "{shown}");
        }
    }

    #[test]
    fn a_computed_bound_has_no_more_digits_than_it_means() {
        let percent = Some(NumberFormat::new(Unit::Difference, false));
        for (number, format, text) in [
            (
                2000.0 * (1.0 - 1.0 / 3.0),
                Some(NumberFormat::new(Unit::Whole, false)),
                "1333",
            ),
            (22.0 * (1.0 - 1.0 / 3.0), None, "14.7"),
            (12.0 * (1.0 + 1.0 / 3.0), None, "16"),
            (-0.292 * (1.0 + 1.0 / 3.0), percent, "-38.9 %"),
            (0.07 * (1.0 - 1.0 / 3.0), percent, "+4.7 %"),
            (0.756 * (1.0 + 1.0 / 3.0), percent, "+100.8 %"),
        ] {
            assert_eq!(bound(number, format), text);
        }
    }

    #[test]
    fn a_template_takes_colons_inside_brackets_for_the_expressions_own() {
        let template = Template::parse("{min(a in b: 1):percent} to {2:whole}").unwrap();
        assert_eq!(template.expressions().count(), 2);
        for (text, words) in [
            ("{1", "not closed"),
            ("{1:percnt}", "did you mean `percent`?"),
            ("{}", "expected a value"),
        ] {
            let error = Template::parse(text).unwrap_err();
            assert!(error.message.contains(words), "{error}");
        }
    }
}
