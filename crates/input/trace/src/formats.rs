//! The trace formats. Each is one file; the list below is their registry.

use crate::fault::Fault;
use crate::fields::excerpt;
use crate::fio_report::FioReport;
use crate::input::{Input, beginning};
use crate::row::{LineParser, Parser};
use crate::{Place, TraceError};
use std::fmt;

/// Declares the module of each format and puts its `FORMAT` in the registry.
macro_rules! formats {
    ($($(#[$attribute:meta])* $visibility:vis $module:ident,)*) => {
        $($visibility mod $module;)*
        /// Every format, as documented in `docs/traces.md`.
        pub const FORMATS: &[&Format] = &[$(&$module::FORMAT,)*];
    };
}

// To add a format: write its file and add its line.
formats! {
    pub(crate) native,
    msr,
    spc1,
    disksim,
    mqsim,
    pub(crate) disksim_validate,
    blktrace,
    blkparse,
    fio,
    fio_ms,
    fio_log,
    vscsi,
    blkreplay,
    hp_srt,
    alibaba,
    tencent,
    systor,
    fiu,
    oracle_general,
    hfplayer,
}

/// The example of CONTRIBUTING.md, compiled and tested.
#[cfg(test)]
#[path = "../../../../docs/examples/trace_format.rs"]
mod worked_example;

/// One trace format.
pub struct Format {
    /// As said with `--format`.
    pub name: &'static str,
    /// One sentence for lists and reference pages.
    pub summary: &'static str,
    /// Its columns and their units.
    pub columns: &'static str,
    /// How places in it are counted.
    pub counted: Counted,
    /// How sure it is that a trace with this beginning is in this format.
    pub(crate) detect: fn(&Head<'_>) -> Confidence,
    /// A parser for a trace, which stands at its first byte.
    pub(crate) open: fn(&mut Input<'_>) -> Result<Box<dyn Parser>, Fault>,
}

/// How places in a format are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// In lines of text.
    Lines,
    /// In bytes.
    Bytes,
    /// In rows of a table.
    Rows,
}

/// How sure a format is of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It is in another format.
    No,
    /// It could be in this format; nothing marks it.
    Possible,
    /// Its rows have this format's shape.
    Likely,
    /// It is marked as being in this format.
    Certain,
}

/// The beginning of a trace, to recognise its format by.
#[derive(Clone, Copy, Debug)]
pub struct Head<'h> {
    /// The file's name, without folders.
    pub name: &'h str,
    /// Its first bytes, at most 64 KiB.
    pub bytes: &'h [u8],
}

/// Bytes of a trace that its format is recognised by.
const HEAD_BYTES: usize = 64 * 1024;
/// Lines of a trace that its format is recognised by.
const HEAD_LINES: usize = 32;

impl<'h> Head<'h> {
    /// The first lines that are not empty. The last one may be cut off.
    pub fn lines(&self) -> impl Iterator<Item = &'h [u8]> {
        self.bytes
            .split(|&byte| byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.trim_ascii().is_empty())
    }

    /// How sure a line parser is: `sure` if it understands at least one of the
    /// first lines and as many as it does not.
    pub(crate) fn understood_by(
        &self,
        mut parser: impl LineParser,
        sure: Confidence,
    ) -> Confidence {
        let (mut good, mut bad) = (0, 0);
        for line in self.lines().take(HEAD_LINES) {
            match parser.row(line) {
                Ok(Some(_)) => good += 1,
                Ok(None) => {}
                Err(_) => bad += 1,
            }
        }
        if good > 0 && good >= bad {
            sure
        } else {
            Confidence::No
        }
    }
}

impl Format {
    /// A place in this format.
    pub(crate) fn place(&self, at: u64) -> Place {
        match self.counted {
            Counted::Lines => Place::Line {
                line: at,
                column: 0,
            },
            Counted::Bytes => Place::Byte(at),
            Counted::Rows => Place::Row(at),
        }
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Format").field("name", &self.name).finish()
    }
}

/// The format called `name`.
///
/// # Errors
/// If there is none; the error names the nearest one.
pub fn find_format(name: &str) -> Result<&'static Format, TraceError> {
    FORMATS
        .iter()
        .copied()
        .find(|format| format.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            TraceError::UnknownFormat {
                name: name.to_owned(),
                nearest: fullstroke_contract::registry::nearest(name, &names),
                known: names.join(", "),
            }
        })
}

/// Recognises the format of the trace called `name` by its first bytes. Among
/// formats that are equally sure, one whose name is part of the file's name wins.
pub(crate) fn recognise(name: &str, input: &mut Input<'_>) -> Result<&'static Format, TraceError> {
    let bytes = input
        .peek(HEAD_BYTES)
        .map_err(|source| TraceError::from_io(name.to_owned(), source))?;
    if bytes.is_empty() {
        return Err(TraceError::Empty {
            file: name.to_owned(),
        });
    }
    let short = name
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(name)
        .to_ascii_lowercase();
    let head = Head {
        name: &short,
        bytes,
    };
    let opinions: Vec<(Confidence, &'static Format)> = FORMATS
        .iter()
        .map(|format| ((format.detect)(&head), *format))
        .collect();
    let best = opinions
        .iter()
        .map(|opinion| opinion.0)
        .max()
        .unwrap_or(Confidence::No);
    if best == Confidence::No && FioReport::recognise(bytes) {
        return Err(TraceError::FioReport {
            file: name.to_owned(),
        });
    }
    if best == Confidence::No {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        let (found, known) = (beginning(bytes), known.join(", "));
        return Err(TraceError::Unrecognised {
            file: name.to_owned(),
            found,
            known,
        });
    }
    let top: Vec<&'static Format> = opinions
        .iter()
        .filter(|opinion| opinion.0 == best)
        .map(|opinion| opinion.1)
        .collect();
    let mut named = top.iter().filter(|format| short.contains(format.name));
    match (top.as_slice(), named.next(), named.next()) {
        ([only], _, _) => Ok(only),
        (_, Some(only), None) => Ok(only),
        _ => {
            let candidates: Vec<String> = top
                .iter()
                .map(|format| format!("--format {}", format.name))
                .collect();
            Err(TraceError::Ambiguous {
                file: name.to_owned(),
                candidates: candidates.join(" or "),
            })
        }
    }
}

/// A fault for a header that is not what the format begins with.
pub(crate) fn bad_header(line: &[u8], expected: &str) -> Fault {
    Fault::broken(Place::Line { line: 1, column: 0 }, excerpt(line), expected)
}
