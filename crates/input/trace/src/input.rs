//! The bytes of a trace, through one buffer of fixed size.

use crate::fault::{Fault, Place};
use crate::fields::excerpt;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes that are in memory at a time, unless said otherwise.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;
/// A line longer than this is no row of any format.
const LINE_BYTES_MAX: usize = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The decompressed bytes of a trace.
pub struct Input<'a> {
    source: Box<dyn Read + Send + 'a>,
    path: Option<PathBuf>,
    packed: bool,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset in the trace of `buffer[start]`.
    offset: u64,
    lines: u64,
    ended: bool,
    /// The packed data ended early: what is left in the buffer is no whole row.
    cut: bool,
    /// That it did is still to be told.
    cut_untold: Option<io::Error>,
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("path", &self.path)
            .field("offset", &self.offset)
            .finish()
    }
}

impl<'a> Input<'a> {
    /// Over decompressed bytes. `path` is the file on disk, if there is one.
    pub(crate) fn new(
        source: Box<dyn Read + Send + 'a>,
        path: Option<PathBuf>,
        packed: bool,
        capacity: usize,
    ) -> Input<'a> {
        let buffer = vec![0; capacity.max(LINE_BYTES_MAX + 2)];
        Input {
            source,
            path,
            packed,
            buffer,
            start: 0,
            end: 0,
            offset: 0,
            lines: 0,
            ended: false,
            cut: false,
            cut_untold: None,
        }
    }

    /// The file on disk, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The file on disk, if it holds just the bytes that are read here.
    pub fn plain_path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| !self.packed)
    }

    /// Lines that were read so far.
    #[inline]
    pub fn line_number(&self) -> u64 {
        self.lines
    }

    /// The offset of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads more into the buffer; `false` at the end or when it is full.
    fn fill(&mut self) -> io::Result<bool> {
        if let Some(error) = self.cut_untold.take() {
            return Err(error);
        }
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end < self.buffer.len() {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.cut = error.kind() == io::ErrorKind::UnexpectedEof;
                    self.ended = self.cut;
                    return Err(error);
                }
            }
        }
        Ok(false)
    }

    /// Up to `count` bytes ahead, without passing them; fewer only at the end
    /// of the trace. At most the buffer's size.
    pub fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        let count = count.min(self.buffer.len());
        while self.end - self.start < count {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => break,
                // Whoever reads on will be told.
                Err(error) if self.cut && self.end > self.start => {
                    self.cut_untold = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + count)])
    }

    /// Passes over `count` bytes that were peeked at.
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Passes over a byte-order mark, if the trace begins with one.
    pub(crate) fn skip_mark(&mut self) -> io::Result<()> {
        if self.peek(BYTE_ORDER_MARK.len())? == BYTE_ORDER_MARK {
            self.consume(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    /// The next line without its end (`\n` or `\r\n`); `None` at the end. A
    /// last line without an end counts.
    #[inline]
    pub fn line(&mut self) -> Result<Option<&[u8]>, Fault> {
        let length = match memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
            Some(length) => length,
            None => match self.long_line()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        let begin = self.start;
        let passed = (length + 1).min(self.end - begin);
        self.start += passed;
        self.offset += passed as u64;
        self.lines += 1;
        let line = &self.buffer[begin..begin + length];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Passes over what is left at the end, which is no whole row.
    fn drop_rest(&mut self) {
        self.offset += (self.end - self.start) as u64;
        self.start = self.end;
    }

    /// The length of a line whose end is not in the buffer yet.
    fn long_line(&mut self) -> Result<Option<usize>, Fault> {
        let mut searched = self.end - self.start;
        while searched <= LINE_BYTES_MAX {
            if !self.fill()? {
                break;
            }
            let unsearched = &self.buffer[self.start + searched..self.end];
            if let Some(found) = memchr::memchr(b'\n', unsearched) {
                return Ok(Some(searched + found));
            }
            searched = self.end - self.start;
        }
        if searched > LINE_BYTES_MAX {
            let place = Place::Line {
                line: self.lines + 1,
                column: 0,
            };
            let found = format!("a line of more than {LINE_BYTES_MAX} bytes");
            return Err(Fault::broken(place, found, "rows of text, one a line"));
        }
        if self.cut {
            self.drop_rest();
            return Ok(None);
        }
        Ok((searched > 0).then_some(searched))
    }

    /// The next `count` bytes; `None` at the end. An end in their midst is a
    /// damaged row that says `what` was cut off; behind it is the end.
    #[inline]
    pub fn bytes(&mut self, count: usize, what: &str) -> Result<Option<&[u8]>, Fault> {
        while self.end - self.start < count {
            if !self.fill()? {
                let left = self.end - self.start;
                let place = Place::Byte(self.offset);
                self.drop_rest();
                if left == 0 || self.cut {
                    return Ok(None);
                }
                let found = format!("the end of the file after {left} of {count} bytes");
                return Err(Fault::row(place, found, format!("a whole {what}")));
            }
        }
        let begin = self.start;
        self.start += count;
        self.offset += count as u64;
        Ok(Some(&self.buffer[begin..begin + count]))
    }

    /// Passes over `count` bytes, which must be there.
    pub fn skip(&mut self, count: usize, what: &str) -> Result<(), Fault> {
        let mut left = count;
        while left > 0 {
            let step = left.min(self.buffer.len());
            if self.bytes(step, what)?.is_none() {
                let place = Place::Byte(self.offset);
                return Err(Fault::row(
                    place,
                    "the end of the file",
                    format!("a whole {what}"),
                ));
            }
            left -= step;
        }
        Ok(())
    }
}

impl Read for Input<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end {
            self.fill()?;
        }
        let count = bytes.len().min(self.end - self.start);
        bytes[..count].copy_from_slice(&self.buffer[self.start..self.start + count]);
        self.consume(count);
        Ok(count)
    }
}

/// The first bytes, for messages about files that are not understood.
pub(crate) fn beginning(bytes: &[u8]) -> String {
    excerpt(bytes).trim_matches('`').to_owned()
}
