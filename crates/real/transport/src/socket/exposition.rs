//! Prometheus' text format, version 0.0.4, written from one snapshot of values.
//!
//! Client libraries for Prometheus serve counters that live in the program, and have no summaries.

use fullstroke_counters::Total;
use std::fmt::{self, Write as _};

/// The media type of the text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page under construction.
#[derive(Debug, Default)]
pub struct MetricsPage(String);

/// Kind of a family.
#[derive(Clone, Copy, Debug)]
pub enum FamilyKind {
    /// A value that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Counts in buckets, a sum and a count.
    Histogram,
    /// Quantiles, a sum and a count.
    Summary,
}

/// A family under construction: samples of one name.
pub struct Family<'page> {
    page: &'page mut String,
    name: &'page str,
}

/// Names and values of a sample's labels.
pub type Labels<'a> = [(&'static str, &'a str)];

/// Value of a sample.
#[derive(Clone, Copy, Debug)]
pub enum SampleValue {
    /// A count, written exactly.
    Whole(u64),
    /// Any other value.
    Real(f64),
}

impl MetricsPage {
    /// Begins a family. Its name must end with the unit; a counter's name must end in `_total`.
    pub fn family<'page>(
        &'page mut self,
        name: &'page str,
        kind: FamilyKind,
        help: &str,
    ) -> Family<'page> {
        let kind = match kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
            FamilyKind::Summary => "summary",
        };
        self.0
            .push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Family {
            page: &mut self.0,
            name,
        }
    }

    /// Returns the finished page.
    pub fn into_text(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// Adds one sample of a counter or gauge.
    pub fn sample(&mut self, labels: &Labels<'_>, value: impl Into<SampleValue>) {
        self.line("", labels, None, value.into());
    }

    /// Adds one histogram. `counts[i]` is the number of observations at most as large as
    /// `bounds[i]` and larger than the bound before. The last element of `counts` is the number of
    /// observations above all bounds.
    pub fn histogram(&mut self, labels: &Labels<'_>, bounds: &[f64], counts: &[u64], sum: f64) {
        let mut total = 0;
        for (index, bound) in bounds.iter().enumerate() {
            total += counts.get(index).copied().unwrap_or(0);
            self.line(
                "_bucket",
                labels,
                Some(("le", *bound)),
                SampleValue::Whole(total),
            );
        }
        total += counts.iter().skip(bounds.len()).sum::<u64>();
        self.line(
            "_bucket",
            labels,
            Some(("le", f64::INFINITY)),
            SampleValue::Whole(total),
        );
        self.line("_sum", labels, None, SampleValue::Real(sum));
        self.line("_count", labels, None, SampleValue::Whole(total));
    }

    /// Adds one summary. `quantiles` holds each quantile with its value.
    pub fn summary(&mut self, labels: &Labels<'_>, quantiles: &[(f64, f64)], sum: f64, count: u64) {
        for &(quantile, value) in quantiles {
            self.line(
                "",
                labels,
                Some(("quantile", quantile)),
                SampleValue::Real(value),
            );
        }
        self.line("_sum", labels, None, SampleValue::Real(sum));
        self.line("_count", labels, None, SampleValue::Whole(count));
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &Labels<'_>,
        last: Option<(&str, f64)>,
        value: SampleValue,
    ) {
        let last = last.map(|(name, number)| (name, SampleValue::Real(number).to_string()));
        let last = last.as_ref().map(|(name, text)| (*name, text.as_str()));
        self.page.push_str(self.name);
        self.page.push_str(suffix);
        let mut separator = '{';
        for (name, text) in labels.iter().copied().chain(last) {
            self.page.push(separator);
            self.page.push_str(name);
            self.page.push_str("=\"");
            text.chars().for_each(|letter| self.escape(letter));
            self.page.push('"');
            separator = ',';
        }
        let end = if separator == ',' { "} " } else { " " };
        writeln!(self.page, "{end}{value}").expect("a string takes all text");
    }

    fn escape(&mut self, letter: char) {
        match letter {
            '\\' => self.page.push_str("\\\\"),
            '"' => self.page.push_str("\\\""),
            '\n' => self.page.push_str("\\n"),
            letter => self.page.push(letter),
        }
    }
}

impl fmt::Display for SampleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SampleValue::Whole(count) => write!(f, "{count}"),
            SampleValue::Real(number) if number.is_nan() => f.write_str("NaN"),
            SampleValue::Real(f64::INFINITY) => f.write_str("+Inf"),
            SampleValue::Real(f64::NEG_INFINITY) => f.write_str("-Inf"),
            SampleValue::Real(number) => write!(f, "{number}"),
        }
    }
}

impl From<u64> for SampleValue {
    fn from(count: u64) -> SampleValue {
        SampleValue::Whole(count)
    }
}
impl From<Total> for SampleValue {
    fn from(total: Total) -> SampleValue {
        match total {
            Total::Count(count) | Total::Bytes(count) => SampleValue::Whole(count),
            Total::Seconds(_) | Total::Joules(_) => SampleValue::Real(total.value()),
        }
    }
}
impl From<f64> for SampleValue {
    fn from(number: f64) -> SampleValue {
        SampleValue::Real(number)
    }
}
