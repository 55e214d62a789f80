//! Columns of a table: by the names of its header, and by [`ColumnMap`].

use super::split::{Delimiter, bare};
use super::values::is_scsi;
use crate::columns::names::{ROLES, Role, meaning};
use crate::columns::{ColumnMap, EXAMPLE, NamedColumn};
use fullstroke_contract::Operation;

/// Text found and text expected.
#[derive(Debug)]
pub(super) struct HeaderProblem {
    pub(super) found: String,
    pub(super) expected: String,
}

/// A column with its role.
#[derive(Clone, Debug)]
pub(super) struct PlannedColumn {
    pub(super) role: Role,
    /// Number of ns or bytes in the unit; 0 until it is known.
    pub(super) unit: u64,
    /// Index of the column, from 0.
    pub(super) index: usize,
    pub(super) name: String,
    /// True if the user gave the unit.
    pub(super) unit_is_given: bool,
}

/// Columns of a table that have a role.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) delimiter: Delimiter,
    pub(super) columns: Vec<PlannedColumn>,
    /// Names of all columns.
    names: Vec<String>,
    /// Number of columns that each row has at least.
    pub(super) width: usize,
    pub(super) has_header: bool,
    /// Operation of all requests, if the table has no column of operations.
    pub(super) operation: Option<Operation>,
    /// True if the time is the time of completion.
    pub(super) time_is_end: bool,
    /// True if the device is a number in one column.
    pub(super) numbered: bool,
    /// True if addresses count blocks of the column of block sizes.
    pub(super) start_in_blocks: bool,
    /// True if sizes count blocks of the column of block sizes.
    pub(super) size_in_blocks: bool,
}

impl Table {
    /// Returns the table with the header `line`; `None` if the line is no header.
    pub(super) fn of_header(line: &[u8]) -> Option<Table> {
        let line = line.trim_ascii();
        // `#` begins a comment, or names a column of numbers if a tab follows (DiskMon).
        let line = line.strip_prefix(b"#").unwrap_or(line);
        let spaces = line.iter().take_while(|&&byte| byte == b' ').count();
        let line = line[spaces..].trim_ascii_end();
        let delimiter = Delimiter::of(line)?;
        let names = names_of(line, delimiter);
        // A row of values has numbers; a header has none.
        let is_value =
            |name: &String| name.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        if names.iter().filter(|name| !name.is_empty()).count() < 2 || names.iter().any(is_value) {
            return None;
        }
        let mut table = Table {
            delimiter,
            columns: Vec::new(),
            width: 0,
            has_header: true,
            operation: None,
            time_is_end: false,
            numbered: false,
            start_in_blocks: false,
            size_in_blocks: false,
            names,
        };
        table.columns = table.planned(&[]);
        table.settle();
        Some(table)
    }

    /// Returns the table whose first line is `first`, with the columns that `map` names.
    pub(super) fn mapped(first: &[u8], map: &ColumnMap) -> Result<Table, HeaderProblem> {
        let mut table = match Table::of_header(first) {
            Some(table) => table,
            None if map.is_by_numbers() => Table::without_header(first),
            None => {
                return Err(HeaderProblem {
                    found: crate::fields::excerpt(first),
                    expected: "a header with the names of the columns, or columns by number as in \
                               --columns time=1:us,op=2,offset=3:bytes,size=4:bytes"
                        .to_owned(),
                });
            }
        };
        let mut own = Vec::new();
        for column in &map.columns {
            own.push(table.column_of(column)?);
        }
        if map.operation.is_some() {
            table.operation = map.operation;
        }
        table.columns = table.planned(&own);
        table.settle();
        let missing = table.missing();
        if missing.is_empty() {
            return Ok(table);
        }
        Err(table.problem(&missing))
    }

    fn without_header(first: &[u8]) -> Table {
        let delimiter = Delimiter::of(first).unwrap_or(Delimiter::Byte(b','));
        let mut fields = Vec::new();
        delimiter.split(first, &mut fields);
        Table {
            delimiter,
            columns: Vec::new(),
            names: vec![String::new(); fields.len()],
            width: 0,
            has_header: false,
            operation: None,
            time_is_end: false,
            numbered: false,
            start_in_blocks: false,
            size_in_blocks: false,
        }
    }

    /// Returns the column that the user names.
    fn column_of(&self, named: &NamedColumn) -> Result<PlannedColumn, HeaderProblem> {
        let same = |name: &String| name.eq_ignore_ascii_case(&named.name);
        let by_number = || {
            let number = named.name.parse::<usize>().ok()?;
            (1..=self.names.len()).contains(&number).then(|| number - 1)
        };
        let Some(index) = self.names.iter().position(same).or_else(by_number) else {
            return Err(HeaderProblem {
                found: format!("the columns {}", self.listed()),
                expected: format!("a column `{}`, which --columns names", named.name),
            });
        };
        // The unit in a name counts only for the quantity that the name means.
        let own = match meaning(&self.names[index]) {
            (role, unit) if role == named.role => unit,
            _ => None,
        };
        Ok(PlannedColumn {
            role: named.role,
            unit: named.unit.or(own).unwrap_or(0),
            unit_is_given: named.unit.is_some(),
            index,
            name: match self.names[index].is_empty() {
                true => named.name.clone(),
                false => self.names[index].clone(),
            },
        })
    }

    /// Returns the columns with a role. Columns that the user names come first. Of several columns
    /// with one role, the first counts.
    fn planned(&self, own: &[PlannedColumn]) -> Vec<PlannedColumn> {
        let mut columns = own.to_vec();
        for (index, name) in self.names.iter().enumerate() {
            let (role, unit) = meaning(name);
            let taken = columns
                .iter()
                .any(|column| column.index == index || column.role == role);
            if role == Role::Other || (taken && role != Role::Text) {
                continue;
            }
            columns.push(PlannedColumn {
                role,
                unit: unit.unwrap_or(0),
                unit_is_given: false,
                index,
                name: name.clone(),
            });
        }
        let has = |role: Role| columns.iter().any(|column| column.role == role);
        let (named, writes) = (
            has(Role::Operation) || self.operation.is_some(),
            has(Role::IsWrite),
        );
        // A single column must decide the operation: one with words comes before a flag.
        columns.retain(|column| match column.role {
            Role::Operation => self.operation.is_none(),
            Role::IsWrite => !named,
            Role::IsRead => !named && !writes,
            _ => true,
        });
        columns
    }

    /// Sets what follows from the columns.
    fn settle(&mut self) {
        self.start_in_blocks = false;
        self.size_in_blocks = false;
        super::blocks::settle(self);
        let last = |column: &PlannedColumn| column.index + 1;
        // A column of text may be empty at the end of a row.
        let needed = self.columns.iter().filter(|column| {
            matches!(
                column.role,
                Role::Time
                    | Role::EndTime
                    | Role::Operation
                    | Role::IsWrite
                    | Role::IsRead
                    | Role::Start
                    | Role::Size
                    | Role::BlockSize
            )
        });
        self.width = needed.map(last).max().unwrap_or(0);
        if self.delimiter.is_spaces() {
            // An empty field between spaces cannot be seen and would shift the fields behind it, so
            // such a row is refused.
            self.width = self.names.len();
        }
        // Tools that trace with BPF print the time of completion: bcc tools/biosnoop.py and
        // libbpf-tools biosnoop.c.
        self.time_is_end =
            self.has_exactly("comm") && self.has_exactly("t") && self.has(Role::Latency);
    }

    fn has_exactly(&self, lower: &str) -> bool {
        self.names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(lower))
    }

    pub(super) fn has(&self, role: Role) -> bool {
        self.columns.iter().any(|column| column.role == role)
    }

    /// Returns true if arrivals are computed from times of completion.
    pub(super) fn has_completion_times(&self) -> bool {
        self.time_is_end || !self.has(Role::Time)
    }

    /// Returns the number of required columns that the header has.
    pub(super) fn recognised(&self) -> usize {
        4 - self.missing().len()
    }

    /// Returns the required contents without a column.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let operation = self.operation.is_some()
            || self.has(Role::Operation)
            || self.has(Role::IsWrite)
            || self.has(Role::IsRead);
        [
            (self.has(Role::Time) || self.has(Role::EndTime), "time"),
            (operation, "op"),
            (self.has(Role::Start), "offset"),
            (self.has(Role::Size), "size"),
        ]
        .into_iter()
        .filter(|(found, _)| !found)
        .map(|(_, name)| name)
        .collect()
    }

    /// Returns the number of fields of the header.
    pub(super) fn fields(&self) -> usize {
        self.names.len()
    }

    fn listed(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    }

    fn problem(&self, missing: &[&str]) -> HeaderProblem {
        let taken: Vec<String> = self
            .columns
            .iter()
            .filter_map(|column| Some(format!("`{}` ({})", column.name, option_of(column.role)?)))
            .collect();
        let taken = match taken.is_empty() {
            true => "none of them has a known name".to_owned(),
            false => format!("taken: {}", taken.join(", ")),
        };
        HeaderProblem {
            found: format!("the columns {}; {taken}", self.listed()),
            expected: format!(
                "also columns for {}; name them with --columns, as in --columns {EXAMPLE} (op=read or op=write if all \
                 requests are the same)",
                missing.join(", ")
            ),
        }
    }

    /// Replaces `fields` by the fields of `line`. In a table aligned with spaces, a name of a program
    /// may have spaces inside.
    pub(super) fn split(&self, line: &[u8], fields: &mut Vec<(usize, usize)>) {
        self.delimiter.split(line, fields);
        let Some(surplus) = fields.len().checked_sub(self.names.len()) else {
            return;
        };
        let text = self.columns.iter().find(|column| column.role == Role::Text);
        if surplus > 0
            && self.delimiter.is_spaces()
            && let Some(text) = text
        {
            let end = fields[text.index + surplus].1;
            fields[text.index].1 = end;
            fields.drain(text.index + 1..=text.index + surplus);
        }
    }

    /// Returns the texts of the column `index` in the first rows below the header.
    pub(super) fn sample<'l>(&self, rows: &[&'l [u8]], index: usize) -> Vec<&'l [u8]> {
        let mut fields = Vec::new();
        rows.iter()
            .filter_map(|line| {
                self.split(line, &mut fields);
                fields
                    .get(index)
                    .map(|&(begin, end)| bare(&line[begin..end]))
            })
            .collect()
    }

    /// Returns true if the table is libCacheSim's own CSV of its vscsi traces: blocks by `lbn`, and
    /// operations as SCSI commands. Its times are whole seconds (libCacheSim,
    /// `traceReader/customizedReader/vscsi.h`).
    pub(super) fn is_of_vscsi(&self, rows: &[&[u8]]) -> bool {
        let operation = self
            .columns
            .iter()
            .find(|column| column.role == Role::Operation);
        self.has_exactly("lbn")
            && operation.is_some_and(|operation| {
                self.sample(rows, operation.index)
                    .iter()
                    .any(|text| is_scsi(text))
            })
    }
}

pub(super) fn option_of(role: Role) -> Option<&'static str> {
    match role {
        Role::IsWrite | Role::IsRead => Some("op"),
        Role::Host => Some("device"),
        Role::Text | Role::Other => None,
        _ => ROLES
            .iter()
            .find(|roles| roles.role == role)
            .map(|roles| roles.option),
    }
}

fn names_of(line: &[u8], delimiter: Delimiter) -> Vec<String> {
    let mut fields = Vec::new();
    delimiter.split(line, &mut fields);
    fields
        .iter()
        .map(|&(begin, end)| String::from_utf8_lossy(bare(&line[begin..end])).into_owned())
        .collect()
}
