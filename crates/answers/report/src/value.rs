//! Numbers of an answer in the page.
//!
//! Each number stands in an element `data` with the complete number as value, as `--json` prints
//! it. The visible text is rounded.

use crate::markup::Markup;
use fullstroke_measure::number;
use serde_json::Number;

/// Format of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    /// Three significant digits.
    Plain,
    /// With a sign.
    Signed,
    /// A share, in per cent.
    Percent,
    /// A share with enough digits for very small values.
    Small,
    /// Bytes, in the decimal units of drives.
    Bytes,
    /// A count.
    Whole,
}

impl NumberFormat {
    pub(crate) fn words(self, value: f64) -> String {
        match self {
            NumberFormat::Plain => number(value),
            NumberFormat::Signed if value >= 0.0 => format!("+{}", number(value)),
            NumberFormat::Signed => number(value),
            NumberFormat::Percent => format!("{:.1} %", 100.0 * value),
            // Two decimals say nothing about so small a share.
            NumberFormat::Small if value < 1e-4 => format!("{:.2e} %", 100.0 * value),
            NumberFormat::Small => format!("{:.2} %", 100.0 * value),
            NumberFormat::Bytes if value >= 1e12 => format!("{} TB", number(value / 1e12)),
            NumberFormat::Bytes => format!("{} GB", number(value / 1e9)),
            NumberFormat::Whole => format!("{value:.0}"),
        }
    }
}

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TableCell {
    /// No value, or NaN.
    Nothing,
    /// A number in the form of JSON.
    Number(Number),
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// True or false.
    Flag(bool),
}

impl TableCell {
    /// Returns the value if it is a number.
    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            TableCell::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// Returns the number in the form of JSON; `null` if the cell holds no number.
    pub(crate) fn as_json(&self) -> String {
        match self {
            TableCell::Number(number) => number.to_string(),
            _ => "null".to_owned(),
        }
    }

    /// Returns true if there is nothing to show.
    fn is_empty(&self) -> bool {
        match self {
            TableCell::Nothing => true,
            TableCell::Texts(texts) => texts.is_empty(),
            _ => false,
        }
    }

    /// Returns true for text that may break into lines.
    fn is_long(&self) -> bool {
        match self {
            TableCell::Texts(_) => true,
            TableCell::Text(text) => text.len() > LONG,
            _ => false,
        }
    }

    /// Returns true if the cell shows a word.
    fn is_word(&self) -> bool {
        matches!(self, TableCell::Text(_) | TableCell::Flag(_))
    }

    /// Writes the cell; a dash if there is nothing to show.
    pub(crate) fn show(&self, markup: &mut Markup, shown: NumberFormat) {
        match self {
            TableCell::Number(exact) => {
                // The attribute `value` keeps all digits for the script that sorts a column, and
                // for programs that read the page.
                let words = exact
                    .as_f64()
                    .map_or_else(|| exact.to_string(), |value| shown.words(value));
                markup.element("data", &[("value", &exact.to_string())], &words);
            }
            TableCell::Text(text) => {
                markup.text(text);
            }
            TableCell::Texts(texts) if !texts.is_empty() => {
                markup.text(&texts.join("; "));
            }
            TableCell::Flag(value) => {
                markup.text(if *value { "yes" } else { "no" });
            }
            TableCell::Texts(_) | TableCell::Nothing => {
                markup.text("–");
            }
        }
    }
}

impl From<f64> for TableCell {
    fn from(value: f64) -> TableCell {
        // JSON has no NaN and no infinity.
        Number::from_f64(value).map_or(TableCell::Nothing, TableCell::Number)
    }
}

impl From<u64> for TableCell {
    fn from(value: u64) -> TableCell {
        TableCell::Number(value.into())
    }
}

impl From<u32> for TableCell {
    fn from(value: u32) -> TableCell {
        TableCell::Number(value.into())
    }
}

impl From<usize> for TableCell {
    fn from(value: usize) -> TableCell {
        TableCell::Number(value.into())
    }
}

impl From<bool> for TableCell {
    fn from(value: bool) -> TableCell {
        TableCell::Flag(value)
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> TableCell {
        TableCell::Text(text.to_owned())
    }
}

impl From<&String> for TableCell {
    fn from(text: &String) -> TableCell {
        TableCell::Text(text.clone())
    }
}

impl From<&[String]> for TableCell {
    fn from(texts: &[String]) -> TableCell {
        TableCell::Texts(texts.to_vec())
    }
}

impl<T: Into<TableCell>> From<Option<T>> for TableCell {
    fn from(value: Option<T>) -> TableCell {
        value.map_or(TableCell::Nothing, Into::into)
    }
}

/// Number of letters from which text may break into lines.
const LONG: usize = 24;

/// One column of a table: heading, format, and the value for a row.
pub(crate) struct ReportColumn<'a, R: ?Sized> {
    heading: &'a str,
    shown: NumberFormat,
    of: Box<dyn Fn(&R) -> TableCell + 'a>,
}

/// Creates a column.
pub(crate) fn column<'a, R: ?Sized, C: Into<TableCell>>(
    heading: &'a str,
    shown: NumberFormat,
    of: impl Fn(&R) -> C + 'a,
) -> ReportColumn<'a, R> {
    ReportColumn {
        heading,
        shown,
        of: Box::new(move |row| of(row).into()),
    }
}

/// A column with its values in all rows.
struct UsedColumn<'a, R: ?Sized> {
    column: &'a ReportColumn<'a, R>,
    cells: Vec<TableCell>,
    /// Alignment of all cells: text left, numbers right. Long text may break into lines.
    class: &'static str,
}

impl<'a, R: ?Sized> UsedColumn<'a, R> {
    fn new(column: &'a ReportColumn<'a, R>, rows: &[(String, &R)]) -> UsedColumn<'a, R> {
        let cells: Vec<TableCell> = rows.iter().map(|(_, row)| (column.of)(row)).collect();
        let class = match () {
            () if cells.iter().any(TableCell::is_long) => "text",
            () if cells.iter().any(TableCell::is_word) => "word",
            () => "short",
        };
        UsedColumn {
            column,
            cells,
            class,
        }
    }
}

/// Writes a table with a row for each item: the name, then the columns. Columns that are empty in
/// all rows are left out.
pub(crate) fn table<R: ?Sized>(
    markup: &mut Markup,
    caption: &str,
    columns: &[ReportColumn<'_, R>],
    rows: &[(String, &R)],
) {
    let used: Vec<UsedColumn<'_, R>> = columns
        .iter()
        .map(|column| UsedColumn::new(column, rows))
        .filter(|used| used.cells.iter().any(|cell| !cell.is_empty()))
        .collect();
    // A region that scrolls must be reachable by keyboard (WCAG 2.1, 2.1.1), and needs a name then.
    let scroll = [
        ("class", "scroll"),
        ("role", "region"),
        ("tabindex", "0"),
        ("aria-label", caption),
    ];
    markup.within("div", &scroll, |markup| {
        markup.within("table", &[("class", "sortable")], |markup| {
            markup.element("caption", &[], caption);
            markup.within("thead", &[], |markup| {
                markup.within("tr", &[], |markup| {
                    markup.element("th", &[("scope", "col")], "name");
                    for UsedColumn { column, class, .. } in &used {
                        let attributes = [("scope", "col"), ("class", class)];
                        markup.element("th", &attributes, column.heading);
                    }
                });
            });
            markup.within("tbody", &[], |markup| {
                for (place, (name, _)) in rows.iter().enumerate() {
                    markup.within("tr", &[], |markup| {
                        markup.element("th", &[("scope", "row")], name);
                        for used in &used {
                            markup.within("td", &[("class", used.class)], |markup| {
                                used.cells[place].show(markup, used.column.shown)
                            });
                        }
                    });
                }
            });
        });
    });
}

/// Writes a table if there are rows.
pub(crate) fn filled<R: ?Sized>(
    markup: &mut Markup,
    caption: &str,
    columns: &[ReportColumn<'_, R>],
    rows: &[(String, &R)],
) {
    if !rows.is_empty() {
        table(markup, caption, columns, rows);
    }
}
