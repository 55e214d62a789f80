//! The grammar of parameter files, as a tree whose nodes know their places.
//!
//! ```text
//! file   = { block | "instantiate" list "as" name | "topology" place }
//! block  = type name "{" [ key "=" value { "," key "=" value } ] "}"
//! value  = number | word | list | block | type "{" ... "}" | place
//! list   = "[" [ item { "," item } ] "]"      item = value | word ".." word
//! place  = type name list
//! ```
//!
//! `#` begins a comment. `source FILE` stands for the text of that file,
//! wherever it occurs; its path is relative to the including file. The type of
//! a block may be the name of an earlier one, whose keys it then inherits.
//! Keys are one or more words; runs of blanks count as one.

mod lexer;
mod parser;

pub(crate) use parser::parse;

use crate::error::{ErrorKind, ImportError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in one of the files of a [`Document`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// Index into [`Document::files`].
    pub file: u32,
    /// Line, counted from 1.
    pub line: u32,
}

/// A parameter file together with all that it includes.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The file itself, then each included one.
    pub files: Vec<PathBuf>,
    /// What stands at the top level, in order.
    pub items: Vec<Item>,
    /// Every block that has a name, nested ones included.
    pub named: BTreeMap<String, Arc<Block>>,
    /// What was read but has no effect, such as a second definition.
    pub notes: Vec<(Place, String)>,
}

/// Something at the top level.
#[derive(Clone, Debug)]
pub enum Item {
    /// A block and its definition.
    Block(Arc<Block>),
    /// Components made from a block.
    Instantiate {
        /// Their names.
        names: Vec<String>,
        /// The block's name.
        of: String,
        /// Where.
        at: Place,
    },
    /// How components are connected.
    Topology(Topology),
}

/// Keys and values under a type.
#[derive(Clone, Debug)]
pub struct Block {
    /// The type; that of the ancestor, where keys are inherited.
    pub kind: String,
    /// The name, if it has one.
    pub name: Option<String>,
    /// Keys in order, inherited ones last.
    pub parameters: Vec<Parameter>,
    /// Where it begins.
    pub at: Place,
}

/// One key of a block.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Arc<Value>,
    /// Where the key stands.
    pub at: Place,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Value {
    /// What it is.
    pub content: Content,
    /// Where it begins.
    pub at: Place,
}

/// The kinds of values.
#[derive(Clone, Debug)]
pub enum Content {
    /// A whole number, decimal or after `0x`.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A word: a name, a path, a choice.
    Word(String),
    /// Values in brackets, ranges expanded.
    List(Vec<Value>),
    /// A block.
    Block(Arc<Block>),
    /// A component and what is below it.
    Topology(Topology),
}

/// A component and those below it.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Its type.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What is connected below.
    pub below: Vec<Value>,
}

impl Document {
    /// The file of a place.
    pub fn file(&self, place: Place) -> &Path {
        self.files
            .get(place.file as usize)
            .map_or(Path::new(""), PathBuf::as_path)
    }

    /// An error at a place.
    pub(crate) fn error(
        &self,
        kind: ErrorKind,
        at: Place,
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

impl Value {
    /// The value in a few words, for messages.
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

/// The beginning of a word that may be of any length.
pub(crate) fn shortened(word: &str) -> String {
    match word.char_indices().nth(60) {
        None => word.to_owned(),
        Some((end, _)) => format!("{}...", &word[..end]),
    }
}
