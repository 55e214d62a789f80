//! The grammar of parameter files, as a tree whose nodes have places.
//!
//! ```text
//! file   = { block | "instantiate" list "as" name | "topology" place }
//! block  = type name "{" [ key "=" value { "," key "=" value } ] "}"
//! value  = number | word | list | block | type "{" ... "}" | place
//! list   = "[" [ item { "," item } ] "]"      item = value | word ".." word
//! place  = type name list
//! ```
//!
//! `#` begins a comment. `source FILE` is replaced by the text of the file, at any place. The path
//! is relative to the including file. The type of a block may be the name of an earlier block; the
//! block then inherits the keys of the earlier block. A key is one or more words; several blanks
//! count as one.

mod lexer;
mod parser;

pub(crate) use parser::parse;

use crate::error::{ErrorKind, ImportError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in one of the files of a [`Document`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FilePlace {
    /// Index into [`Document::files`].
    pub file: u32,
    /// Line, counted from 1.
    pub line: u32,
}

/// A parameter file together with all included files.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The file itself, then each included file.
    pub files: Vec<PathBuf>,
    /// Items at the top level, in order.
    pub items: Vec<Item>,
    /// All blocks with names, including nested blocks.
    pub named: BTreeMap<String, Arc<TypeBlock>>,
    /// Notes on text without effect, such as a second definition.
    pub notes: Vec<(FilePlace, String)>,
}

/// An item at the top level.
#[derive(Clone, Debug)]
pub enum Item {
    /// Definition of a block.
    Block(Arc<TypeBlock>),
    /// Components made from a block.
    Instantiate {
        /// Names of the components.
        names: Vec<String>,
        /// Name of the block.
        of: String,
        /// Place of the item.
        at: FilePlace,
    },
    /// Connections of components.
    Topology(Topology),
}

/// Keys and values under a type.
#[derive(Clone, Debug)]
pub struct TypeBlock {
    /// Type of the block. If keys are inherited: type of the ancestor.
    pub kind: String,
    /// Name of the block; `None` for a block without a name.
    pub name: Option<String>,
    /// Keys in order; inherited keys are last.
    pub parameters: Vec<Parameter>,
    /// Start of the block.
    pub at: FilePlace,
}

/// One key of a block.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Name of the key.
    pub key: String,
    /// Value of the key.
    pub value: Arc<PlacedValue>,
    /// Place of the key.
    pub at: FilePlace,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct PlacedValue {
    /// Content of the value.
    pub content: Content,
    /// Start of the value.
    pub at: FilePlace,
}

/// The kinds of values.
#[derive(Clone, Debug)]
pub enum Content {
    /// An integer, decimal or after `0x`.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A word: a name, a path, a choice.
    Word(String),
    /// Values in brackets; ranges are expanded.
    List(Vec<PlacedValue>),
    /// A block.
    Block(Arc<TypeBlock>),
    /// A component with the components below.
    Topology(Topology),
}

/// A component with the components below.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Type of the component.
    pub kind: String,
    /// Name of the component.
    pub name: String,
    /// Components connected below.
    pub below: Vec<PlacedValue>,
}

impl Document {
    /// Returns the file of a place.
    pub fn file(&self, place: FilePlace) -> &Path {
        self.files
            .get(place.file as usize)
            .map_or(Path::new(""), PathBuf::as_path)
    }

    /// Creates an error at a place.
    pub(crate) fn error(
        &self,
        kind: ErrorKind,
        at: FilePlace,
        key: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> ImportError {
        ImportError {
            file: self.file(at).to_owned(),
            line: at.line,
            key: key.into(),
            kind,
            found: found.into(),
            expected: expected.into(),
        }
    }
}

impl PlacedValue {
    /// Returns the value in a few words, for messages.
    pub(crate) fn describe(&self) -> String {
        match &self.content {
            Content::Integer(number) => number.to_string(),
            Content::Float(number) => number.to_string(),
            Content::Word(word) => format!("`{}`", shortened(word)),
            Content::List(items) => format!("a list of {}", items.len()),
            Content::Block(block) => format!("a block `{}`", shortened(&block.kind)),
            Content::Topology(place) => format!("a component `{}`", shortened(&place.name)),
        }
    }
}

/// Returns a word, shortened for messages.
pub(crate) fn shortened(word: &str) -> String {
    match word.char_indices().nth(60) {
        None => word.to_owned(),
        Some((end, _)) => format!("{}...", &word[..end]),
    }
}
