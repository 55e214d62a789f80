//! Tests of pages and figures of every kind of answer in a headless browser.
//!
//! Nothing overlaps or leaves the page, colours have contrast, the keyboard reaches all controls,
//! and the numbers equal those of `--json`.

use crate::common::browser::{Browser, LOOKS};
use crate::common::{Folder, fullstroke};
use serde_json::Value;
use std::collections::BTreeSet;

/// A kind of page: its name, the command, the table columns to compare with `--json`, and required
/// text of the figure.
struct PageKind {
    name: &'static str,
    arguments: Vec<String>,
    /// Caption's beginning, heading, path of the list in `--json`, and path of the value in each
    /// item.
    columns: &'static [(&'static str, &'static str, &'static str, &'static str)],
    figure: &'static [&'static str],
}

const STUDY: &str = r#"title = "disciplines"
question = "Is SATF faster than FCFS?"
source = "A test (2020), table 1"
stack = "stacks/base.toml"
replications = 2
metrics = ["response_ms.mean"]

[[axes]]
name = "policy"
key = "volume.drive_settings.queue.discipline"
values = ["fcfs", "satf"]

[[axes]]
name = "rate"
key = "workload.arrivals.rate_per_s"
values = [60, 90, 110]

[[claims]]
id = "T-1"
says = "SATF is faster under load"
quote = "SATF wins."
at = "section 1"
published = "yes"
kind = "shape"
obtained = "1 - mean(policy=satf, rate=110) / mean(policy=fcfs, rate=110)"
holds = "low(obtained) > 0"

[[figures]]
id = "means"
title = "Response time"
x = "rate"
x_label = "requests a second"
series = "policy"
y = "response_ms.mean()"
published = [{ series = "fcfs", points = [[60, 17.5]] }]
"#;

fn stack(folder: &Folder, name: &str, layout: &str, drives: u32, drive: &str) -> String {
    folder.put(
        &format!("{name}.toml"),
        &format!(
            "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 600\nread_share = 0.7\nsize = \"4KiB\"\n\
             arrivals = {{ process = \"poisson\", rate_per_s = 70 }}\n[volume]\nlayout = \"{layout}\"\ndrives = {drives}\n\
             drive = \"{drive}\"\n"
        ),
    )
}

fn kinds(folder: &Folder) -> Vec<PageKind> {
    let [drawing, silent] = ["seagate-ironwolf-8tb", "seagate-cheetah-9lp"];
    let five = stack(folder, "five", "raid5", 5, drawing);
    let long = format!("a name of {} letters", "very-".repeat(14));
    let ten = stack(folder, &long, "raid10", 4, silent);
    let study = folder.path("studies/test-2020");
    std::fs::create_dir_all(study.join("stacks")).unwrap();
    std::fs::copy(
        stack(folder, "base", "raid5", 5, silent),
        study.join("stacks/base.toml"),
    )
    .unwrap();
    std::fs::write(study.join("disciplines.toml"), STUDY).unwrap();
    let wishes = folder.put(
        "wishes.toml",
        "title = \"A small office\"\nstack = \"five.toml\"\n[drives]\nmodel = \"quantum-atlas-10k\"\ncount = \"4..5\"\n\
         price = 200\n[wishes]\nfailures = 1\np99 = \"90ms\"\n[choices]\nlayouts = [\"raid5\", \"raid10\", \"raid0\"]\nchunks = [\"64KiB\"]\n\
         elevators = [\"mq-deadline\"]\nwrite_caches = [true]\nstripe_caches = [256]\n",
    );
    let owned = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let vary = [
        "--vary",
        "volume.chunk=16KiB,64KiB,256KiB",
        "--vary",
        "host.queue_depth=1,32",
    ];
    let studies = [
        "--studies",
        &folder.name("studies"),
        "--results",
        &folder.name("results"),
    ]
    .map(str::to_owned);
    let of_studies = |words: &[&str]| [owned(words), studies.to_vec()].concat();
    vec![
        PageKind {
            name: "run",
            arguments: owned(&["run", &five]),
            columns: &[
                ("The run", "IOPS", "", "iops"),
                ("Parts of the mean", "rotation", "", "time_ms.rotation"),
            ],
            figure: &["response (ms)", "arrival (s)", "rotation"],
        },
        PageKind {
            name: "compare",
            arguments: owned(&["compare", &five, &ten]),
            columns: &[
                ("Candidates by", "response_ms.mean", "candidates", "value"),
                ("Volumes", "usable", "candidates", "volume.usable_bytes"),
            ],
            figure: &["mean response time (ms)", "five", "queue"],
        },
        PageKind {
            name: "vary",
            arguments: [
                owned(&["compare", &five, "--by", "response_ms.p99"]),
                owned(&vary),
            ]
            .concat(),
            columns: &[(
                "Candidates by",
                "to the best",
                "candidates",
                "difference_to_best.value",
            )],
            figure: &["99th percentile of response times (ms)", "chunk=64KiB"],
        },
        PageKind {
            name: "find",
            arguments: owned(&["compare", &five, &ten, "--find", "load"]),
            columns: &[(
                "Largest sustained load",
                "too much",
                "candidates",
                "too_much",
            )],
            figure: &["load (multiples of this one)", "five"],
        },
        PageKind {
            name: "advise",
            arguments: owned(&["advise", &wishes]),
            columns: &[
                (
                    "The best of each layout",
                    "p99 ms",
                    "finalists",
                    "healthy.p99_ms",
                ),
                (
                    "How long a rebuild",
                    "loss within a year",
                    "finalists",
                    "loss.chance_a_year",
                ),
                ("At more load", "load", "at_loads", "load"),
            ],
            figure: &[
                "99th percentile of response times (ms)",
                "raid10 of 4",
                "A small office",
            ],
        },
        PageKind {
            name: "tune",
            arguments: [
                owned(&["tune", &five, "--batches", "4", "--first", "2"]),
                owned(&vary),
            ]
            .concat(),
            columns: &[("Candidates by", "response_ms.mean", "candidates", "value")],
            figure: &["mean response time (ms)", "queue_depth=32 chunk=64KiB"],
        },
        PageKind {
            name: "study",
            arguments: of_studies(&["study", "run"]),
            columns: &[(
                "test-2020/disciplines: claims",
                "obtained",
                "checked.0.claims",
                "obtained",
            )],
            figure: &[
                "response_ms.mean() (ms)",
                "requests a second",
                "policy satf",
                "published",
            ],
        },
    ]
}

fn words<'a>(kind: &'a PageKind, more: &[&'a str]) -> Vec<&'a str> {
    kind.arguments
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect()
}

/// Returns the output of a call. A failed claim (status 1) is allowed.
fn printed(arguments: &[&str]) -> String {
    let output = fullstroke(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_some_and(|code| code < 2) && error.is_empty(),
        "{arguments:?}: {error}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the value at a dotted path. A number in the path is an index of a list.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .filter(|key| !key.is_empty())
        .fold(value, |value, key| match key.parse::<usize>() {
            Ok(place) => &value[place],
            Err(_) => &value[key],
        })
}

/// Returns the numbers of an answer as text. Parsing and printing could change the last digit.
fn numbers(answer: &str) -> BTreeSet<&str> {
    answer
        .split(|letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter))
        .collect()
}

/// True if the text `read` is `value`, rounded to the shown digits.
fn is_rounded(read: &str, value: f64) -> bool {
    let (digits, unit) = read.split_once(' ').unwrap_or((read, ""));
    let value = match unit {
        "%" => 100.0 * value,
        "TB" => value / 1e12,
        "GB" => value / 1e9,
        _ => value,
    };
    let (mantissa, power) = digits.split_once('e').unwrap_or((digits, "0"));
    let places = mantissa
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len() as i32);
    let (Ok(shown), Ok(power)) = (digits.parse::<f64>(), power.parse::<i32>()) else {
        return false;
    };
    // A whole number beyond three digits ends with zeros in place of the digits that are cut.
    let whole = mantissa.trim_start_matches(['-', '+']);
    let cut = match places {
        0 => (whole.len() as i32 - 3).max(0),
        _ => 0,
    };
    (shown - value).abs() <= 0.501 * 10f64.powi(power - places + cut)
}

const TABLES: &str = r#"[...document.querySelectorAll("table")].map((table) => ({
  caption: table.caption.textContent,
  headings: [...table.tHead.rows[0].cells].map((cell) => cell.textContent),
  rows: [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) =>
    ({ read: cell.textContent, value: cell.querySelector("data")?.getAttribute("value") ?? null }))),
}))"#;

/// Returns the differences between the tables of the open page and `--json`.
fn numbers_off(browser: &mut Browser, kind: &PageKind, answer: &str) -> Vec<String> {
    let json: Value = serde_json::from_str(answer).unwrap();
    let tables = browser.evaluate(TABLES);
    let tables = tables.as_array().unwrap();
    let (known, mut off, mut seen) = (numbers(answer), Vec::new(), 0);
    let cells = tables
        .iter()
        .flat_map(|table| table["rows"].as_array().unwrap());
    for cell in cells.flat_map(|row| row.as_array().unwrap()) {
        let (read, Some(value)) = (cell["read"].as_str().unwrap(), cell["value"].as_str()) else {
            continue;
        };
        seen += 1;
        if !known.contains(value) || !is_rounded(read, value.parse().unwrap()) {
            off.push(format!("a table has {read} for {value}"));
        }
    }
    if seen < 3 {
        off.push(format!("the tables have {seen} numbers"));
    }
    for (caption, heading, list, path) in kind.columns {
        let table = tables
            .iter()
            .find(|table| table["caption"].as_str().unwrap().starts_with(caption));
        let Some(table) = table else {
            off.push(format!("no table {caption}"));
            continue;
        };
        let headings = table["headings"].as_array().unwrap();
        let Some(place) = headings.iter().position(|own| own == heading) else {
            off.push(format!("{caption}: no {heading} among {headings:?}"));
            continue;
        };
        let expected: Vec<Option<f64>> = match at(&json, list) {
            Value::Array(items) => items.iter().map(|item| at(item, path).as_f64()).collect(),
            one => vec![at(one, path).as_f64()],
        };
        let rows = table["rows"].as_array().unwrap().iter();
        let shown: Vec<Option<f64>> = rows
            .map(|row| {
                row[place]["value"]
                    .as_str()
                    .map(|value| value.parse().unwrap())
            })
            .collect();
        // `serde_json` parses numbers here with an error of about one bit.
        let same = |(one, other): (&Option<f64>, &Option<f64>)| match (one, other) {
            (Some(one), Some(other)) => (one - other).abs() <= 1e-12 * one.abs(),
            (one, other) => one == other,
        };
        if shown.len() != expected.len()
            || !shown.iter().zip(&expected).all(same)
            || shown.is_empty()
        {
            off.push(format!(
                "{caption}, {heading}: {shown:?}, and --json has {expected:?}"
            ));
        }
    }
    off
}

/// Returns the faults of the keyboard control of the open page.
fn keys_off(browser: &mut Browser) -> Vec<String> {
    let mut off = Vec::new();
    let focused = "(() => { const at = document.activeElement; return [`${at.tagName} ${at.textContent.slice(0, 60)}`, \
                   getComputedStyle(at).outlineStyle !== 'none']; })()";
    let buttons = browser
        .evaluate("document.querySelectorAll('th button').length")
        .as_u64()
        .unwrap();
    let (mut reached, mut sorted) = (0, false);
    for _ in 0..400 {
        browser.press("Tab");
        let at = browser.evaluate(focused);
        let (at, ring) = (at[0].as_str().unwrap(), &at[1]);
        if at.starts_with("BODY") && reached > 0 {
            break;
        }
        if !at.starts_with("BODY") && ring == &Value::Bool(false) {
            off.push(format!("nothing shows that the focus is on {at}"));
        }
        if at.starts_with("BUTTON") {
            reached += 1;
            if !sorted {
                browser.press("Enter");
                sorted = true;
                let order = "document.activeElement.closest('th').getAttribute('aria-sort')";
                if browser.evaluate(order) != "ascending" {
                    off.push(format!("the key Enter does not sort by {at}"));
                }
            }
        }
        if at.starts_with("SUMMARY") {
            browser.press("Enter");
            if browser.evaluate("document.activeElement.parentElement.open") != true {
                off.push(format!("the key Enter does not open {at}"));
            }
            if reached >= buttons {
                break;
            }
        }
    }
    if reached < buttons {
        off.push(format!("keys reach {reached} of {buttons} buttons"));
    }
    off
}

/// Returns the first XML error in tags, attributes and references of an SVG file.
fn xml_off(text: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['<', '&']) {
        let (kind, behind) = (rest.as_bytes()[start], &rest[start + 1..]);
        let Some(end) = behind.find(if kind == b'<' { '>' } else { ';' }) else {
            return Some(format!("something is not ended: {:.40}", behind));
        };
        let inside = &behind[..end];
        rest = &behind[end + 1..];
        if kind == b'&' {
            let known = ["lt", "gt", "amp", "quot", "apos"].contains(&inside);
            let number = inside
                .strip_prefix('#')
                .is_some_and(|digits| digits.parse::<u32>().is_ok());
            if !known && !number {
                return Some(format!("&{inside}; is no reference"));
            }
            continue;
        }
        if let Some(name) = inside.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}> ends what was not begun"));
            }
            continue;
        }
        let name = inside.split_whitespace().next().unwrap_or_default();
        let attributes: Vec<&str> = inside[name.len()..]
            .trim_end_matches('/')
            .split('"')
            .collect();
        // Names and values alternate, and only a blank may follow the last value.
        let names = attributes.iter().step_by(2);
        let mut named = names
            .map(|name| name.trim())
            .filter(|name| !name.is_empty());
        if attributes.len().is_multiple_of(2) || !named.all(|name| name.ends_with('=')) {
            return Some(format!("attributes of {name}: {inside}"));
        }
        if !inside.ends_with('/') {
            open.push(name.trim_end_matches('/'));
        }
    }
    open.pop().map(|name| format!("<{name}> is not ended"))
}

#[test]
fn what_is_no_xml_is_told_from_what_is() {
    assert_eq!(
        xml_off("<svg a=\"1\" b=\"2\"><text>a &lt; b</text><path d=\"M0\"/></svg>"),
        None
    );
    for wrong in [
        "<svg><a></svg></a>",
        "<svg>",
        "<svg a=1></svg>",
        "<svg>&nbsp;</svg>",
        "<svg a=\"1></svg>",
    ] {
        assert!(xml_off(wrong).is_some(), "{wrong}");
    }
}

#[test]
fn pages_and_figures_of_every_kind_are_sound_in_a_browser() {
    let folder = Folder::new();
    let kinds = kinds(&folder);
    let mut browser = Browser::open();
    let mut off = Vec::new();
    // A page exists even before the first run.
    let studies = kinds.iter().find(|kind| kind.name == "study").unwrap();
    let unmeasured = folder.name("unmeasured.html");
    let mut check = words(studies, &["--report", &unmeasured]);
    check[1] = "check";
    let text = printed(&check);
    assert!(text.contains("1 was not run yet"), "{text}");
    let page = std::fs::read_to_string(&unmeasured).unwrap();
    assert!(
        page.contains("The study was not run yet; run fullstroke study run test-2020/disciplines")
    );
    if let Some(browser) = &mut browser {
        browser.show(&format!("file://{unmeasured}"));
        off.extend(
            browser
                .faults("unmeasured", &LOOKS)
                .into_iter()
                .map(|fault| format!("unmeasured {fault}")),
        );
    }
    for kind in &kinds {
        let [page, plot] = ["html", "svg"].map(|end| folder.name(&format!("{}.{end}", kind.name)));
        let answer = printed(&words(
            kind,
            &["--json", "--report", &page, "--plot", &plot],
        ));
        let figure = std::fs::read_to_string(&plot).unwrap();
        if let Some(why) = xml_off(&figure) {
            off.push(format!("{} figure: {why}", kind.name));
        }
        for part in kind.figure.iter().filter(|part| !figure.contains(**part)) {
            off.push(format!("{} figure: no {part}", kind.name));
        }
        let bytes = std::fs::read(&page).unwrap().len();
        if bytes > 300_000 {
            off.push(format!("{}: {bytes} bytes", kind.name));
        }
        let Some(browser) = &mut browser else {
            continue;
        };
        browser.show(&format!("file://{page}"));
        let mut own = browser.faults(kind.name, &LOOKS);
        own.extend(numbers_off(browser, kind, &answer));
        own.extend(keys_off(browser));
        browser.printed();
        if browser.evaluate("[...document.querySelectorAll('details')].every((one) => one.open)")
            != true
        {
            own.push("what is folded is not printed".to_owned());
        }
        off.extend(
            own.into_iter()
                .map(|fault| format!("{} {fault}", kind.name)),
        );
        browser.show(&format!("file://{plot}"));
        if browser.evaluate("document.documentElement.localName") != "svg" {
            off.push(format!("{} figure: no SVG", kind.name));
        }
        let faults = browser.faults(&format!("{}-figure", kind.name), &LOOKS[..2]);
        off.extend(
            faults
                .into_iter()
                .map(|fault| format!("{} figure {fault}", kind.name)),
        );
    }
    assert!(off.is_empty(), "{} faults:\n{}", off.len(), off.join("\n"));
}
