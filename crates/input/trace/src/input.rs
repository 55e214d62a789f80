//! Bytes of a trace, read through one buffer of fixed size.

use crate::columns::ColumnMap;
use crate::fault::{TraceFault, TracePlace};
use crate::fields::excerpt;
use crate::{FileKind, FileSource};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The file that an [`Input`] reads.
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    /// Source of the file, and of further files beside it.
    pub(crate) files: FileSource,
}

/// Default size of the buffer.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;
/// Longest line. A longer line is not a row of any format.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Largest length of a line of the usual form, with its end; see
/// [`LineParser::usual`](crate::row::LineParser::usual). Longer than each line of the known traces.
pub(crate) const USUAL_LINE_BYTES: usize = 256;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Decompressed bytes of a trace.
pub struct Input<'a> {
    source: Box<dyn Read + Send + 'a>,
    file: Option<InputFile>,
    packed: bool,
    /// Columns of a table, as the user names them.
    columns: Option<ColumnMap>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the trace of `buffer[start]`.
    offset: u64,
    lines: u64,
    ended: bool,
    /// True if the packed data ended early, so that the rest of the buffer is not a whole row.
    cut: bool,
    /// Error about the early end, not reported yet.
    cut_untold: Option<io::Error>,
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("path", &self.path())
            .field("offset", &self.offset)
            .finish()
    }
}

impl<'a> Input<'a> {
    /// Reads decompressed bytes. `file` is the file of the bytes, if there is one.
    pub(crate) fn new(
        source: Box<dyn Read + Send + 'a>,
        file: Option<InputFile>,
        packed: bool,
        capacity: usize,
    ) -> Input<'a> {
        // So that the longest line fits, with its end `\r\n`.
        let buffer = vec![0; capacity.max(LINE_BYTES_MAX + 2)];
        Input {
            source,
            file,
            packed,
            columns: None,
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

    /// Returns the path of the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// Returns the file, if there is one.
    pub(crate) fn file(&self) -> Option<&InputFile> {
        self.file.as_ref()
    }

    /// Returns the path of the plain file on disk, if the file holds exactly the bytes read here
    /// (no packing). A pipe has a path too, but no seeks.
    pub fn plain_path(&self) -> Option<&Path> {
        let file = self.file.as_ref().filter(|_| !self.packed)?;
        let plain = file.files.are_on_disk() && file.files.kind(&file.path) == FileKind::Plain;
        plain.then_some(file.path.as_path())
    }

    /// Sets the columns of a table, as the user names them.
    pub(crate) fn set_columns(&mut self, columns: ColumnMap) {
        self.columns = Some(columns);
    }

    /// Returns the columns of a table, as the user names them.
    pub(crate) fn columns(&self) -> Option<&ColumnMap> {
        self.columns.as_ref()
    }

    /// Returns the number of lines read so far.
    #[inline]
    pub fn line_number(&self) -> u64 {
        self.lines
    }

    /// Returns the offset of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads more bytes into the buffer. Returns `false` at the end of the trace, or if the buffer
    /// is full.
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
                // A signal arrived during the read, which is repeated.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Decompressors report a cut file so. The rows before the cut are good.
                    self.cut = error.kind() == io::ErrorKind::UnexpectedEof;
                    self.ended = self.cut;
                    return Err(error);
                }
            }
        }
        Ok(false)
    }

    /// Returns the next `count` bytes without consuming them; fewer only at the end of the trace.
    /// `count` is limited to the size of the buffer.
    pub fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        let count = count.min(self.buffer.len());
        while self.end - self.start < count {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => break,
                // The error is reported when the caller reads beyond these bytes.
                Err(error) if self.cut && self.end > self.start => {
                    self.cut_untold = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + count)])
    }

    /// Consumes `count` bytes after a peek.
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Skips a byte-order mark at the beginning of the trace.
    pub(crate) fn skip_mark(&mut self) -> io::Result<()> {
        if self.peek(BYTE_ORDER_MARK.len())? == BYTE_ORDER_MARK {
            self.consume(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    /// Returns the next line without its end (`\n` or `\r\n`); `None` at the end. A last line
    /// without a line end counts.
    #[inline]
    pub fn line(&mut self) -> Result<Option<&[u8]>, TraceFault> {
        let length = match memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
            Some(length) => length,
            None => match self.long_line()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        let begin = self.start;
        // The last line may lack its end.
        let passed = (length + 1).min(self.end - begin);
        self.start += passed;
        self.offset += passed as u64;
        self.lines += 1;
        let line = &self.buffer[begin..begin + length];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Calls `parse` at the beginning of each line, with the bytes in memory from there on and the
    /// number of the line. `parse` returns the length of the line with its end. Ends when `parse`
    /// returns `None`, after `limit` lines, or when fewer bytes are in memory than the longest line
    /// of the usual form has. Returns the number of lines.
    #[inline]
    pub(crate) fn lines_at_once(
        &mut self,
        limit: usize,
        mut parse: impl FnMut(&[u8], u64) -> Option<usize>,
    ) -> usize {
        let text = &self.buffer[self.start..self.end];
        let (mut count, mut at) = (0, 0);
        while count < limit && text.len() - at >= USUAL_LINE_BYTES {
            let Some(length) = parse(&text[at..], self.lines + count as u64 + 1) else {
                break;
            };
            at += length;
            count += 1;
        }
        assert!(at <= text.len(), "a line ends behind the bytes in memory");
        self.start += at;
        self.offset += at as u64;
        self.lines += count as u64;
        count
    }

    /// Drops the rest of the trace, an incomplete row.
    fn drop_rest(&mut self) {
        self.offset += (self.end - self.start) as u64;
        self.start = self.end;
    }

    /// Returns the length of a line whose end is not in the buffer yet.
    fn long_line(&mut self) -> Result<Option<usize>, TraceFault> {
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
            let place = TracePlace::Line {
                line: self.lines + 1,
                column: 0,
            };
            let found = format!("a line of more than {LINE_BYTES_MAX} bytes");
            return Err(TraceFault::broken(place, found, "rows of text, one a line"));
        }
        if self.cut {
            self.drop_rest();
            return Ok(None);
        }
        Ok((searched > 0).then_some(searched))
    }

    /// Returns the next `count` bytes; `None` at the end. If the trace ends within these bytes, the
    /// result is a damaged row whose message says that `what` was cut off. The trace ends behind
    /// this row.
    #[inline]
    pub fn bytes(&mut self, count: usize, what: &str) -> Result<Option<&[u8]>, TraceFault> {
        while self.end - self.start < count {
            if !self.fill()? {
                let left = self.end - self.start;
                let place = TracePlace::Byte(self.offset);
                self.drop_rest();
                // `fill` has reported the cut of packed data already.
                if left == 0 || self.cut {
                    return Ok(None);
                }
                let found = format!("the end of the file after {left} of {count} bytes");
                return Err(TraceFault::row(place, found, format!("a whole {what}")));
            }
        }
        let begin = self.start;
        self.start += count;
        self.offset += count as u64;
        Ok(Some(&self.buffer[begin..begin + count]))
    }

    /// Skips `count` existing bytes; fewer bytes are an error.
    pub fn skip(&mut self, count: usize, what: &str) -> Result<(), TraceFault> {
        let mut left = count;
        while left > 0 {
            let step = left.min(self.buffer.len());
            if self.bytes(step, what)?.is_none() {
                let place = TracePlace::Byte(self.offset);
                return Err(TraceFault::row(
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

/// Returns the first bytes, for messages about unreadable files.
pub(crate) fn beginning(bytes: &[u8]) -> String {
    excerpt(bytes).trim_matches('`').to_owned()
}
