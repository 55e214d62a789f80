//! Fields of a line, by a delimiter.

/// What stands between fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// One byte; fields may stand in double quotes.
    Byte(u8),
    /// One or more spaces or tabs.
    Spaces,
}

/// Delimiters by their rank: of equally good ones the first is taken.
const BYTES: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Smallest number of columns of a table: time, operation and address, with a size of its own.
const COLUMNS_MIN: usize = 3;

impl Delimiter {
    /// Returns the delimiter that divides `header` into the most fields; `None` if no delimiter makes
    /// three.
    pub(super) fn of(header: &[u8]) -> Option<Delimiter> {
        let count = |delimiter: Delimiter| {
            let mut fields = Vec::new();
            delimiter.split(header, &mut fields);
            fields.len()
        };
        let most = BYTES
            .iter()
            .rev()
            .map(|&byte| (count(Delimiter::Byte(byte)), Delimiter::Byte(byte)))
            .max_by_key(|&(fields, _)| fields)
            .filter(|&(fields, _)| fields >= COLUMNS_MIN);
        let spaces = (count(Delimiter::Spaces) >= COLUMNS_MIN).then_some(Delimiter::Spaces);
        most.map(|(_, delimiter)| delimiter).or(spaces)
    }

    pub(super) fn is_spaces(self) -> bool {
        self == Delimiter::Spaces
    }

    /// Returns true if a comma in a number can only be a decimal comma.
    pub(super) fn allows_decimal_comma(self) -> bool {
        self != Delimiter::Byte(b',')
    }

    /// Replaces `fields` by the begins and ends of the fields of `line`.
    pub(super) fn split(self, line: &[u8], fields: &mut Vec<(usize, usize)>) {
        fields.clear();
        match self {
            Delimiter::Byte(delimiter) => by_byte(line, delimiter, fields),
            Delimiter::Spaces => by_spaces(line, fields),
        }
    }
}

fn by_byte(line: &[u8], delimiter: u8, fields: &mut Vec<(usize, usize)>) {
    let (mut begin, mut quoted) = (0, false);
    for (at, &byte) in line.iter().enumerate() {
        if byte == b'"' {
            quoted = !quoted;
        } else if byte == delimiter && !quoted {
            fields.push((begin, at));
            begin = at + 1;
        }
    }
    fields.push((begin, line.len()));
}

fn by_spaces(line: &[u8], fields: &mut Vec<(usize, usize)>) {
    let mut begin = None;
    for (at, &byte) in line.iter().enumerate() {
        match (matches!(byte, b' ' | b'\t'), begin) {
            (false, None) => begin = Some(at),
            (true, Some(from)) => {
                fields.push((from, at));
                begin = None;
            }
            _ => {}
        }
    }
    fields.extend(begin.map(|from| (from, line.len())));
}

/// Returns a field without the spaces and quotes around it.
pub(super) fn bare(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    let inner = field
        .strip_prefix(b"\"")
        .and_then(|field| field.strip_suffix(b"\""));
    inner.unwrap_or(field).trim_ascii()
}
