//! A strict reader of Prometheus' text format, for tests. The reader accepts only text in agreement
//! with the format's description.
//!
//! Source: "Exposition formats", text-based format 0.0.4, of Prometheus' documentation, and its
//! rules for names.

use std::collections::BTreeMap;

/// A page: its families by name.
pub(super) type Families = BTreeMap<String, Family>;

#[derive(Debug, Default)]
pub(super) struct Family {
    pub(super) kind: String,
    pub(super) samples: Vec<MetricSample>,
}

#[derive(Debug, PartialEq)]
pub(super) struct MetricSample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// Reads a page, and checks each histogram and summary.
pub(super) fn parse(text: &str) -> Families {
    assert!(text.ends_with('\n'), "the last line has no end");
    let mut families = Families::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (name, help) = line
            .strip_prefix("# HELP ")
            .and_then(|rest| rest.split_once(' '))
            .expect(line);
        assert!(is_name(name) && !help.is_empty(), "{line}");
        let kind = lines
            .next()
            .and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")))
            .expect(name);
        assert!(
            ["counter", "gauge", "histogram", "summary"].contains(&kind),
            "{kind}"
        );
        let mut family = Family {
            kind: kind.to_owned(),
            samples: Vec::new(),
        };
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let sample = sample(line);
            assert!(
                suffixes(kind)
                    .iter()
                    .any(|suffix| format!("{name}{suffix}") == sample.name),
                "{line}"
            );
            let twin = |other: &MetricSample| {
                (&other.name, &other.labels) == (&sample.name, &sample.labels)
            };
            assert!(!family.samples.iter().any(twin), "twice: {line}");
            family.samples.push(sample);
        }
        check(name, &family);
        assert!(
            families.insert(name.to_owned(), family).is_none(),
            "twice: {name}"
        );
    }
    families
}

fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "histogram" => &["_bucket", "_sum", "_count"],
        "summary" => &["", "_sum", "_count"],
        _ => &[""],
    }
}

fn is_name(name: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty()
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
        && name.chars().all(letters)
}

fn sample(line: &str) -> MetricSample {
    let end = line.find(['{', ' ']).expect(line);
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").expect(line);
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = after.strip_prefix('}').expect(line);
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').expect(line);
    assert!(!value.contains(' '), "{line}");
    MetricSample {
        name: name.to_owned(),
        labels,
        value: number(value),
    }
}

/// Parses a label's value. Returns the value, and the text behind its closing quote.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match letters.next() {
                Some((_, 'n')) => '\n',
                Some((_, escaped @ ('\\' | '"'))) => escaped,
                other => panic!("escape {other:?} in {text}"),
            }),
            letter => value.push(letter),
        }
    }
    panic!("no end: {text}");
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        text => {
            assert!(
                text.chars()
                    .all(|letter| letter.is_ascii_digit() || "+-.eE".contains(letter)),
                "{text}"
            );
            text.parse().expect(text)
        }
    }
}

fn check(name: &str, family: &Family) {
    match family.kind.as_str() {
        "counter" => assert!(name.ends_with("_total"), "{name}"),
        "histogram" => check_distribution(name, family, "_bucket", "le"),
        "summary" => check_distribution(name, family, "", "quantile"),
        _ => assert!(!name.ends_with("_total"), "{name}"),
    }
}

/// Checks a distribution: bounds and values grow, `le` ends with infinity and the count, and each
/// has a sum and a count.
fn check_distribution(name: &str, family: &Family, suffix: &str, bound: &str) {
    let mut series: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
    let (mut sums, mut counts) = (BTreeMap::new(), BTreeMap::new());
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        let at = labels.remove(bound).map(|at| number(&at));
        match sample.name.strip_prefix(name).expect(name) {
            "_sum" => drop(sums.insert(labels, sample.value)),
            "_count" => drop(counts.insert(labels, sample.value)),
            part => {
                assert_eq!(part, suffix);
                series
                    .entry(labels)
                    .or_default()
                    .push((at.expect(bound), sample.value));
            }
        }
    }
    assert!(
        series.keys().eq(sums.keys()) && series.keys().eq(counts.keys()),
        "{name}"
    );
    for (labels, points) in series {
        assert!(
            points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
            "{name} {labels:?}: {points:?}"
        );
        if bound == "le" {
            assert_eq!(
                points.last(),
                Some(&(f64::INFINITY, counts[&labels])),
                "{name} {labels:?}"
            );
        }
    }
}
