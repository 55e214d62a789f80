//! Reads the keys of a block and checks their types.

use crate::error::{ErrorKind, ImportError, ImportLoss};
use crate::grammar::{Content, Document, FilePlace, Parameter, PlacedValue, TypeBlock};
use std::sync::Arc;

/// Largest number of unknown keys that are listed.
const MAX_UNKNOWN: usize = 100;

/// A block whose keys are read.
#[derive(Clone, Copy)]
pub(crate) struct BlockFields<'a> {
    pub(crate) document: &'a Document,
    pub(crate) block: &'a TypeBlock,
    /// Path of the block, with a dot at the end unless the path is empty.
    prefix: &'a str,
}

/// A value with its document and its path.
#[derive(Clone)]
pub(crate) struct FoundValue<'a> {
    pub(crate) document: &'a Document,
    pub(crate) value: &'a PlacedValue,
    pub(crate) key: String,
}

impl<'a> BlockFields<'a> {
    pub(crate) fn new(
        document: &'a Document,
        block: &'a TypeBlock,
        prefix: &'a str,
    ) -> BlockFields<'a> {
        BlockFields {
            document,
            block,
            prefix,
        }
    }

    /// Returns the path of a key.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(crate) fn optional(&self, key: &str) -> Option<FoundValue<'a>> {
        let parameter = self
            .block
            .parameters
            .iter()
            .find(|parameter| parameter.key == key)?;
        Some(FoundValue {
            document: self.document,
            value: &parameter.value,
            key: self.path(key),
        })
    }

    pub(crate) fn required(&self, key: &str) -> Result<FoundValue<'a>, ImportError> {
        self.optional(key).ok_or_else(|| {
            let name = self.block.name.as_deref().unwrap_or("without a name");
            let found = format!("no such key in the block `{}` {name}", self.block.kind);
            self.error(
                ErrorKind::MissingKey,
                self.block.at,
                key,
                found,
                "this key, which is required",
            )
        })
    }

    /// Checks that all keys are `known`. An unknown key is an error with `strict`, otherwise a
    /// loss.
    pub(crate) fn only(
        &self,
        known: &[&str],
        strict: bool,
        losses: &mut Vec<ImportLoss>,
    ) -> Result<(), ImportError> {
        let unknown = |parameter: &&Parameter| !known.contains(&parameter.key.as_str());
        for parameter in self
            .block
            .parameters
            .iter()
            .filter(unknown)
            .take(MAX_UNKNOWN)
        {
            let key = crate::grammar::shortened(&parameter.key);
            let nearest = nearest(&key, known);
            if strict {
                let found = format!("an unknown key in a block of type `{}`", self.block.kind);
                let expected = nearest.map_or("one of its keys".into(), |known| {
                    format!("`{known}` perhaps")
                });
                return Err(self.error(ErrorKind::UnknownKey, parameter.at, &key, found, expected));
            }
            let guess = nearest.map_or(String::new(), |known| {
                format!("; perhaps `{known}` is meant")
            });
            losses.push(ImportLoss::new(
                self.path(&key),
                format!(
                    "line {}: not a key of `{}`, ignored{guess}",
                    parameter.at.line, self.block.kind
                ),
            ));
        }
        Ok(())
    }

    pub(crate) fn error(
        &self,
        kind: ErrorKind,
        at: FilePlace,
        key: &str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> ImportError {
        self.document
            .error(kind, at, self.path(key), found, expected)
    }
}

/// Returns the most similar known key, if one is similar enough.
fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = known
        .iter()
        .map(|known| (strsim::jaro_winkler(key, known), *known));
    near.filter(|(likeness, _)| *likeness > 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

impl<'a> FoundValue<'a> {
    pub(crate) fn error(
        &self,
        kind: ErrorKind,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> ImportError {
        self.document
            .error(kind, self.value.at, self.key.clone(), found, expected)
    }

    fn wrong_type(&self, expected: &str) -> ImportError {
        self.error(ErrorKind::WrongType, self.value.describe(), expected)
    }

    /// Returns an element of a list.
    pub(crate) fn element(&self, index: usize, value: &'a PlacedValue) -> FoundValue<'a> {
        FoundValue {
            document: self.document,
            value,
            key: format!("{}[{index}]", self.key),
        }
    }

    pub(crate) fn integer(&self) -> Result<i64, ImportError> {
        match self.value.content {
            Content::Integer(number) => Ok(number),
            // Below 2^53 (9e15) each whole number is exact in a float.
            Content::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                Ok(number as i64)
            }
            _ => Err(self.wrong_type("a whole number")),
        }
    }

    /// Returns the value as an integer from `least` to `most`.
    pub(crate) fn within(&self, least: i64, most: i64) -> Result<i64, ImportError> {
        let number = self.integer()?;
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        let expected = match most {
            i64::MAX => format!("{least} or more"),
            _ => format!("{least} to {most}"),
        };
        Err(self.error(ErrorKind::WrongValue, number.to_string(), expected))
    }

    /// Returns the value as an integer from 0 to 2^32 - 2.
    pub(crate) fn unsigned(&self) -> Result<u32, ImportError> {
        // Callers add 1, for example for the cylinder behind the last.
        Ok(self.within(0, i64::from(u32::MAX - 1))? as u32)
    }

    /// Returns the value as a number of sectors, blocks or the like.
    pub(crate) fn amount(&self) -> Result<u64, ImportError> {
        Ok(self.within(0, 1 << 53)? as u64)
    }

    pub(crate) fn number(&self) -> Result<f64, ImportError> {
        match self.value.content {
            Content::Integer(number) => Ok(number as f64),
            Content::Float(number) => Ok(number),
            _ => Err(self.wrong_type("a number")),
        }
    }

    /// Returns the value as a time in milliseconds, 0 or more.
    pub(crate) fn milliseconds(&self) -> Result<f64, ImportError> {
        let number = self.number()?;
        if number >= 0.0 {
            return Ok(number);
        }
        Err(self.error(
            ErrorKind::WrongValue,
            number.to_string(),
            "milliseconds, 0 or more",
        ))
    }

    pub(crate) fn word(&self) -> Result<&'a str, ImportError> {
        match &self.value.content {
            Content::Word(word) => Ok(word),
            _ => Err(self.wrong_type("a word")),
        }
    }

    pub(crate) fn list(&self) -> Result<&'a [PlacedValue], ImportError> {
        match &self.value.content {
            Content::List(items) => Ok(items),
            _ => Err(self.wrong_type("a list in brackets")),
        }
    }

    /// Returns each element of a list.
    pub(crate) fn elements(
        &self,
    ) -> Result<impl Iterator<Item = FoundValue<'a>> + use<'a>, ImportError> {
        let list = self.clone();
        Ok(self
            .list()?
            .iter()
            .enumerate()
            .map(move |(index, value)| list.element(index, value)))
    }

    /// Returns a block, given in place or by its name.
    pub(crate) fn block(&self) -> Result<&'a TypeBlock, ImportError> {
        match &self.value.content {
            Content::Block(block) => Ok(block),
            Content::Word(name) => {
                self.document
                    .named
                    .get(name)
                    .map(Arc::as_ref)
                    .ok_or_else(|| {
                        self.error(
                            ErrorKind::WrongType,
                            self.value.describe(),
                            "a block, or the name of an earlier one",
                        )
                    })
            }
            _ => Err(self.wrong_type("a block")),
        }
    }
}
