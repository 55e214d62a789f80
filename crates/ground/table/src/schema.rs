//! The columns of a table.

use std::fmt;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Integers from 0 to 2^64 - 1.
    U64,
    /// Integers from -2^63 to 2^63 - 1.
    I64,
    /// Integers from 0 to 2^32 - 1.
    U32,
    /// 64-bit floating point.
    F64,
    /// UTF-8 text, meant for few different values with many repetitions.
    Text,
    /// True or false.
    Bool,
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Name with the unit at the end: `response_ms`.
    pub name: String,
    /// Type of the values.
    pub kind: ColumnType,
    /// True if a row may leave the column empty.
    pub optional: bool,
}

/// The columns of a table in order, and notes about the whole file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Schema {
    columns: Vec<TableColumn>,
    metadata: Vec<(String, String)>,
}

impl Schema {
    /// Creates a table without columns.
    pub fn new() -> Schema {
        Schema::default()
    }

    /// Adds a required column: every row has a value.
    pub fn column(self, name: &str, kind: ColumnType) -> Schema {
        self.push(TableColumn {
            name: name.to_owned(),
            kind,
            optional: false,
        })
    }

    /// Adds an optional column: a row may leave it empty. A reader accepts a file without the
    /// column.
    pub fn optional(self, name: &str, kind: ColumnType) -> Schema {
        self.push(TableColumn {
            name: name.to_owned(),
            kind,
            optional: true,
        })
    }

    fn push(mut self, column: TableColumn) -> Schema {
        self.columns.push(column);
        self
    }

    /// Adds a note to the file's footer, such as the schema's name and version. CSV drops notes.
    pub fn metadata(mut self, key: &str, value: &str) -> Schema {
        self.metadata.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Returns the columns, in order.
    pub fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// Returns the notes, in order.
    pub fn notes(&self) -> &[(String, String)] {
        &self.metadata
    }

    /// Returns the position of the column called `name`.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColumnType::U64 => "whole numbers from 0 to 2^64 - 1",
            ColumnType::I64 => "whole numbers from -2^63 to 2^63 - 1",
            ColumnType::U32 => "whole numbers from 0 to 2^32 - 1",
            ColumnType::F64 => "floating-point numbers",
            ColumnType::Text => "UTF-8 text",
            ColumnType::Bool => "true or false",
        })
    }
}
