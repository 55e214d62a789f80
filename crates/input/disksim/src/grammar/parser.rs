//! Builds a [`Document`] from tokens, and follows `source`.

use super::lexer::{Lexer, Token};
use super::{Content, Document, FilePlace, Item, Parameter, PlacedValue, Topology, TypeBlock};
use crate::error::{ErrorKind, ImportError};
use crate::files::ReadFiles;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest number of files open at once, as in DiskSim.
const MAX_SOURCES: usize = 32;
/// Largest number of bytes of a file and all included files.
const MAX_BYTES: usize = 64 << 20;
/// Largest depth of nested blocks and lists.
const MAX_DEPTH: u32 = 64;
/// Largest number of names that one file may create by ranges such as `disk1 .. disk8`.
const MAX_RANGE: u64 = 100_000;
/// Largest number of keys that the blocks of one file may inherit.
const MAX_INHERITED: usize = 1_000_000;

/// Reads a parameter file and all included files.
pub(crate) fn parse(files: &dyn ReadFiles, path: &Path) -> Result<Document, ImportError> {
    let mut parser = DocumentParser {
        files,
        document: Document::default(),
        open: Vec::new(),
        ahead: VecDeque::new(),
        bytes: 0,
        ranges: 0,
        inherited: 0,
    };
    parser.open(path, None)?;
    parser.items()?;
    Ok(parser.document)
}

struct DocumentParser<'a> {
    files: &'a dyn ReadFiles,
    document: Document,
    /// Stack of open files: the last is being read, and each includes the next.
    open: Vec<Open>,
    /// Tokens that were read ahead.
    ahead: VecDeque<(Token, FilePlace)>,
    bytes: usize,
    ranges: u64,
    inherited: usize,
}

struct Open {
    path: PathBuf,
    file: u32,
    lexer: Lexer,
}

impl DocumentParser<'_> {
    fn items(&mut self) -> Result<(), ImportError> {
        loop {
            let (token, at) = self.next()?;
            let item = match token {
                Token::End => return Ok(()),
                Token::Word(word) if word == "topology" => Item::Topology(self.topology(None, 0)?),
                Token::Word(word) if word == "instantiate" => self.instantiate(at)?,
                Token::Word(kind) => {
                    let name = self.word("the name of the block")?;
                    self.sign('{', "`{` behind the type and name of a block")?;
                    let block = self.block(kind, Some(name), at, 0)?;
                    if !is_known(&block.kind) {
                        let expected =
                            "a type of DiskSim (disksim_..., dm_...) or an earlier block";
                        let found = format!("a block of type `{}`", super::shortened(&block.kind));
                        return Err(self.document.error(
                            ErrorKind::Syntax,
                            at,
                            "",
                            found,
                            expected,
                        ));
                    }
                    Item::Block(block)
                }
                other => {
                    return Err(self.syntax(at, &other, "a block, `instantiate` or `topology`"));
                }
            };
            self.document.items.push(item);
        }
    }

    fn instantiate(&mut self, at: FilePlace) -> Result<Item, ImportError> {
        self.sign('[', "a list of names behind `instantiate`")?;
        let names = self.list(0)?;
        let names = names
            .iter()
            .map(|value| self.name_of(value))
            .collect::<Result<_, _>>()?;
        let (token, place) = self.next()?;
        if token != Token::Word("as".into()) {
            return Err(self.syntax(place, &token, "`as` and the name of a block"));
        }
        let of = self.word("the name of a block")?;
        Ok(Item::Instantiate { names, of, at })
    }

    /// Reads a component. `kind` is its type if the type has been read already.
    fn topology(&mut self, kind: Option<String>, depth: u32) -> Result<Topology, ImportError> {
        let kind = match kind {
            Some(kind) => kind,
            None => self.word("the type of a component")?,
        };
        let name = self.word("the name of a component")?;
        self.sign('[', "`[` and what is below the component")?;
        Ok(Topology {
            kind,
            name,
            below: self.list(depth)?,
        })
    }

    /// Reads a block after its `{`.
    fn block(
        &mut self,
        kind: String,
        name: Option<String>,
        at: FilePlace,
        depth: u32,
    ) -> Result<Arc<TypeBlock>, ImportError> {
        let mut block = TypeBlock {
            kind,
            name,
            parameters: Vec::new(),
            at,
        };
        loop {
            let (token, place) = self.next()?;
            let keys = match token {
                Token::Sign('}') => break,
                Token::Sign('[') => {
                    let names = self.list(depth + 1)?;
                    names
                        .iter()
                        .map(|name| self.name_of(name))
                        .collect::<Result<Vec<_>, _>>()?
                }
                Token::Word(word) => vec![self.key(word)?],
                other => return Err(self.syntax(place, &other, "a key, or `}`")),
            };
            self.sign('=', "`=` behind the key")?;
            let value = Arc::new(self.value(depth + 1)?);
            for key in keys {
                self.set(
                    &mut block,
                    Parameter {
                        key,
                        value: Arc::clone(&value),
                        at: place,
                    },
                );
            }
            match self.next()? {
                // The comma behind the last value may be missing.
                (Token::Sign('}'), _) => break,
                (Token::Sign(','), _) => {}
                (other, place) => {
                    return Err(self.syntax(place, &other, "`,` or `}` behind a value"));
                }
            }
        }
        self.inherit(&mut block)?;
        let block = Arc::new(block);
        if let Some(name) = &block.name {
            if self.document.named.contains_key(name) {
                let note = format!(
                    "a second definition of `{}` has no effect",
                    super::shortened(name)
                );
                self.document.notes.push((at, note));
            } else {
                self.document.named.insert(name.clone(), Arc::clone(&block));
            }
        }
        Ok(block)
    }

    /// Adds a key, or replaces an earlier key of the same name.
    fn set(&mut self, block: &mut TypeBlock, parameter: Parameter) {
        match block
            .parameters
            .iter_mut()
            .find(|other| other.key == parameter.key)
        {
            None => block.parameters.push(parameter),
            Some(earlier) => {
                let note = format!(
                    "`{}` is given twice; the last one counts",
                    super::shortened(&earlier.key)
                );
                self.document.notes.push((parameter.at, note));
                *earlier = parameter;
            }
        }
    }

    /// Adds the keys of the earlier block that is the type of this block.
    fn inherit(&mut self, block: &mut TypeBlock) -> Result<(), ImportError> {
        let Some(parent) = self.document.named.get(&block.kind).cloned() else {
            return Ok(());
        };
        // A block may name another block as its type. Its own type is then that of the other.
        block.kind.clone_from(&parent.kind);
        self.inherited += parent.parameters.len();
        if self.inherited > MAX_INHERITED {
            return Err(self.limit(block.at, "more inherited keys", MAX_INHERITED as u64));
        }
        let own: std::collections::BTreeSet<String> = block
            .parameters
            .iter()
            .map(|parameter| parameter.key.clone())
            .collect();
        let inherited = parent
            .parameters
            .iter()
            .filter(|parameter| !own.contains(&parameter.key));
        block.parameters.extend(inherited.cloned());
        Ok(())
    }

    /// Reads a key after its first word.
    fn key(&mut self, first: String) -> Result<String, ImportError> {
        let mut key = first;
        // Keys consist of several words, such as `Block count`.
        while let (Token::Word(_), _) = self.peek(0)? {
            if let (Token::Word(word), _) = self.next()? {
                key.push(' ');
                key.push_str(&word);
            }
        }
        Ok(key)
    }

    fn value(&mut self, depth: u32) -> Result<PlacedValue, ImportError> {
        let (token, at) = self.next()?;
        // The parser calls itself for each depth, so a deeper file would overflow the stack.
        if depth > MAX_DEPTH {
            return Err(self.limit(at, "blocks and lists nested deeper", u64::from(MAX_DEPTH)));
        }
        let content = match token {
            Token::Sign('[') => Content::List(self.list(depth)?),
            Token::Word(word) => self.word_value(word, at, depth)?,
            other => return Err(self.syntax(at, &other, "a value")),
        };
        Ok(PlacedValue { content, at })
    }

    /// Reads a value that begins with a word: a number, a word, a block or a component.
    fn word_value(
        &mut self,
        word: String,
        at: FilePlace,
        depth: u32,
    ) -> Result<Content, ImportError> {
        match self.peek(0)?.0 {
            Token::Sign('{') => {
                self.next()?;
                Ok(Content::Block(self.block(word, None, at, depth)?))
            }
            // Only the second token ahead tells a named block, a component and two values without a
            // comma apart.
            Token::Word(_) => match self.peek(1)?.0 {
                Token::Sign('{') => {
                    let name = self.word("a name")?;
                    self.next()?;
                    Ok(Content::Block(self.block(word, Some(name), at, depth)?))
                }
                Token::Sign('[') => Ok(Content::Topology(self.topology(Some(word), depth)?)),
                _ => {
                    let (token, at) = self.next()?;
                    Err(self.syntax(at, &token, "`,`, `}` or `]` behind a value"))
                }
            },
            _ => Ok(scalar(word)),
        }
    }

    /// Reads a list after its `[`.
    fn list(&mut self, depth: u32) -> Result<Vec<PlacedValue>, ImportError> {
        let mut items = Vec::new();
        loop {
            match self.peek(0)? {
                (Token::Sign(']'), _) => {
                    self.next()?;
                    return Ok(items);
                }
                (Token::Sign(','), _) => {
                    self.next()?;
                    continue;
                }
                _ => {}
            }
            let value = self.value(depth + 1)?;
            if self.peek(0)?.0 == Token::Range {
                self.next()?;
                let last = self.value(depth + 1)?;
                self.expand(&value, &last, &mut items)?;
            } else {
                items.push(value);
            }
            let (token, at) = self.peek(0)?;
            if !matches!(token, Token::Sign(',' | ']')) {
                return Err(self.syntax(at, &token, "`,` or `]` in a list"));
            }
        }
    }

    /// Adds the words from `first` to `last`. Both words are equal except for the number at the
    /// end.
    fn expand(
        &mut self,
        first: &PlacedValue,
        last: &PlacedValue,
        items: &mut Vec<PlacedValue>,
    ) -> Result<(), ImportError> {
        let (from, to) = (self.name_of(first)?, self.name_of(last)?);
        let numbers = match (numbered(&from), numbered(&to)) {
            (Some((stem, from)), Some((other, to))) if stem == other && from <= to => {
                Some((stem, from, to))
            }
            _ => None,
        };
        let Some((stem, from, to)) = numbers else {
            let found = format!("{} .. {}", first.describe(), last.describe());
            let expected = "two names that differ in a rising number at their end";
            return Err(self
                .document
                .error(ErrorKind::Syntax, first.at, "", found, expected));
        };
        // Counted before the names are made, because a range of a damaged file may fill the memory.
        self.ranges = self.ranges.saturating_add(to - from).saturating_add(1);
        if self.ranges > MAX_RANGE {
            return Err(self.limit(first.at, "ranges of more names", MAX_RANGE));
        }
        let word = |number| PlacedValue {
            content: Content::Word(format!("{stem}{number}")),
            at: first.at,
        };
        items.extend((from..=to).map(word));
        Ok(())
    }

    fn name_of(&self, value: &PlacedValue) -> Result<String, ImportError> {
        match &value.content {
            Content::Word(word) => Ok(word.clone()),
            _ => Err(self.document.error(
                ErrorKind::Syntax,
                value.at,
                "",
                value.describe(),
                "a name",
            )),
        }
    }

    fn word(&mut self, expected: &str) -> Result<String, ImportError> {
        match self.next()? {
            (Token::Word(word), _) => Ok(word),
            (other, at) => Err(self.syntax(at, &other, expected)),
        }
    }

    fn sign(&mut self, sign: char, expected: &str) -> Result<(), ImportError> {
        match self.next()? {
            (Token::Sign(found), _) if found == sign => Ok(()),
            (other, at) => Err(self.syntax(at, &other, expected)),
        }
    }

    fn next(&mut self) -> Result<(Token, FilePlace), ImportError> {
        match self.ahead.pop_front() {
            Some(token) => Ok(token),
            None => self.read(),
        }
    }

    fn peek(&mut self, distance: usize) -> Result<(Token, FilePlace), ImportError> {
        while self.ahead.len() <= distance {
            let token = self.read()?;
            self.ahead.push_back(token);
        }
        Ok(self.ahead[distance].clone())
    }

    /// Returns the next token. `source FILE` is replaced by the tokens of the file.
    fn read(&mut self) -> Result<(Token, FilePlace), ImportError> {
        loop {
            let depth = self.open.len();
            let Some(top) = self.open.last_mut() else {
                return Ok((Token::End, FilePlace::default()));
            };
            let (token, line) = top.lexer.next();
            let at = FilePlace {
                file: top.file,
                line,
            };
            match token {
                // The end of an included file is not the end of the text.
                Token::End if depth > 1 => {
                    self.open.pop();
                }
                Token::Word(word) if word == "source" => match top.lexer.next() {
                    (Token::Word(path), line) => {
                        let including = top.path.parent().unwrap_or(Path::new("")).join(path);
                        self.open(&including, Some(FilePlace { line, ..at }))?;
                    }
                    (other, _) => {
                        return Err(self.syntax(at, &other, "the path of a file behind `source`"));
                    }
                },
                token => return Ok((token, at)),
            }
        }
    }

    fn open(&mut self, path: &Path, from: Option<FilePlace>) -> Result<(), ImportError> {
        let fail = |document: &Document, kind, found: String, expected: &str| match from {
            Some(at) => document.error(kind, at, "source", found, expected),
            None => ImportError::whole(kind, path, found, expected),
        };
        // The identity finds a cycle even if the same file is named by different paths.
        let identity = self.files.identity(path);
        if self
            .open
            .iter()
            .any(|open| self.files.identity(&open.path) == identity)
        {
            let found = format!("`{}`, which includes this file", path.display());
            let expected = "files that do not include each other";
            return Err(fail(
                &self.document,
                ErrorKind::SourceCycle,
                found,
                expected,
            ));
        }
        if self.open.len() >= MAX_SOURCES {
            let found = format!("more than {MAX_SOURCES} files within each other");
            return Err(fail(&self.document, ErrorKind::TooLarge, found, "fewer"));
        }
        let text = self
            .files
            .read(path, MAX_BYTES - self.bytes)
            .map_err(|error| {
                let found = format!("`{}`: {error}", path.display());
                fail(
                    &self.document,
                    ErrorKind::Unreadable,
                    found,
                    "a readable file of reasonable size",
                )
            })?;
        // An empty file counts as well. Otherwise a file could include empty files without end.
        self.bytes = (self.bytes + text.len() + 64).min(MAX_BYTES);
        if self.bytes >= MAX_BYTES {
            let found = format!("more than {MAX_BYTES} bytes in all files");
            return Err(fail(&self.document, ErrorKind::TooLarge, found, "less"));
        }
        let file = self.document.files.len() as u32;
        self.document.files.push(path.to_owned());
        self.open.push(Open {
            path: path.to_owned(),
            file,
            lexer: Lexer::new(text),
        });
        Ok(())
    }

    fn syntax(&self, at: FilePlace, found: &Token, expected: &str) -> ImportError {
        self.document
            .error(ErrorKind::Syntax, at, "", found.describe(), expected)
    }

    fn limit(&self, at: FilePlace, what: &str, limit: u64) -> ImportError {
        self.document.error(
            ErrorKind::TooLarge,
            at,
            "",
            format!("{what} than {limit}"),
            "fewer",
        )
    }
}

fn is_known(kind: &str) -> bool {
    kind.starts_with("disksim_") || kind.starts_with("dm_") || kind.starts_with("ssdmodel_")
}

/// Returns a number if the word is a number.
fn scalar(word: String) -> Content {
    let unsigned = word.strip_prefix('-').unwrap_or(&word);
    if let Some(digits) = unsigned.strip_prefix("0x")
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && let Ok(number) = i64::from_str_radix(digits, 16)
    {
        return Content::Integer(if word.starts_with('-') {
            -number
        } else {
            number
        });
    }
    // Rust would read the words `inf` and `nan` as numbers.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Content::Word(word);
    }
    // The integer comes first, because each integer is a float also.
    match (word.parse::<i64>(), word.parse::<f64>()) {
        (Ok(number), _) => Content::Integer(number),
        (_, Ok(number)) if number.is_finite() => Content::Float(number),
        _ => Content::Word(word),
    }
}

/// Splits a name into the part before the final number and this number.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((stem, name[stem.len()..].parse().ok()?))
}
