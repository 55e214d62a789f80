//! Bytes to send.

use std::fmt;

/// Largest storage that is kept when everything was sent. A larger storage served a burst, and is
/// freed.
const RETAINED_BYTES: usize = 4 << 20;
const FIRST_BYTES: usize = 64 << 10;

/// A queue of bytes in one piece. The storage is always initialised, so that room for data needs no
/// zeroing.
#[derive(Debug, Default)]
pub(crate) struct OutputBytes {
    storage: Vec<u8>,
    start: usize,
    end: usize,
}

impl OutputBytes {
    pub(crate) fn pending(&self) -> &[u8] {
        &self.storage[self.start..self.end]
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Removes `count` sent bytes.
    pub(crate) fn consumed(&mut self, count: usize) {
        assert!(count <= self.len(), "more bytes were sent than there were");
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // One answer of the longest payload would otherwise keep 64 MiB for each idle
            // connection.
            if self.storage.len() > RETAINED_BYTES {
                self.storage = Vec::new();
            }
        }
    }

    /// Frees the storage if the queue is empty.
    pub(crate) fn shrink(&mut self) {
        if self.start == self.end {
            *self = OutputBytes::default();
        }
    }

    /// Returns room for `count` bytes, which holds old data. The caller must write all bytes.
    pub(crate) fn room(&mut self, count: usize) -> &mut [u8] {
        if self.storage.len() - self.end < count {
            self.make_room(count);
        }
        let from = self.end;
        self.end += count;
        &mut self.storage[from..self.end]
    }

    /// Moves the pending bytes to the front, or to a larger storage. Either way frees at least as
    /// many bytes as it moves, so the cost per byte is constant.
    #[cold]
    fn make_room(&mut self, count: usize) {
        let needed = self.len() + count;
        // Moving is worth its cost only if it frees at least as much as it moves.
        if needed <= self.storage.len() && self.start >= self.len() {
            self.storage.copy_within(self.start..self.end, 0);
        } else {
            // The system provides fresh zero pages only at their first use.
            let size = (needed + self.len()).max(FIRST_BYTES).next_power_of_two();
            let mut larger = vec![0; size];
            larger[..self.len()].copy_from_slice(self.pending());
            self.storage = larger;
        }
        (self.start, self.end) = (0, self.len());
    }

    /// Returns a mark for [`rewind`](OutputBytes::rewind).
    pub(crate) fn mark(&self) -> usize {
        self.len()
    }

    /// Removes the bytes behind the mark.
    pub(crate) fn rewind(&mut self, mark: usize) {
        debug_assert!(mark <= self.len());
        self.end = self.start + mark;
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Overwrites bytes behind a mark.
    pub(crate) fn patch(&mut self, mark: usize, bytes: &[u8]) {
        let at = self.start + mark;
        self.storage[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn put_u16(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    pub(crate) fn put_u32(&mut self, number: u32) {
        self.put(&number.to_be_bytes());
    }

    pub(crate) fn put_u64(&mut self, number: u64) {
        self.put(&number.to_be_bytes());
    }

    pub(crate) fn put_zeroes(&mut self, count: usize) {
        self.room(count).fill(0);
    }

    /// Writes a text for people, cut at the protocol's longest string. Returns its length in bytes.
    pub(crate) fn put_text(&mut self, text: impl fmt::Display) -> usize {
        let from = self.mark();
        let mut writer = Text {
            left: crate::wire::STRING_BYTES_MAX,
            output: self,
        };
        // The writer fails where the text was cut, which is no error.
        let _ = fmt::write(&mut writer, format_args!("{text}"));
        self.mark() - from
    }
}

/// Writes text into an output without a string in between.
struct Text<'a> {
    output: &'a mut OutputBytes,
    left: usize,
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let longest = self.left.min(text.len());
        // A cut within a character would make the text invalid UTF-8. At most three steps back are
        // needed.
        let fits = (0..=longest)
            .rev()
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or(0);
        self.output.put(&text.as_bytes()[..fits]);
        self.left -= fits;
        if fits == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn what_is_put_comes_out_once_and_in_order(steps in prop::collection::vec((0usize..200_000, 0usize..300_000), 1..40)) {
            let (mut output, mut model) = (OutputBytes::default(), VecDeque::new());
            let mut next = 0u8;
            for (put, sent) in steps {
                let bytes: Vec<u8> = (0..put).map(|_| { next = next.wrapping_mul(5).wrapping_add(1); next }).collect();
                output.put(&bytes);
                model.extend(bytes);
                prop_assert!(output.pending() == model.make_contiguous());
                let sent = sent.min(model.len());
                output.consumed(sent);
                model.drain(..sent);
                prop_assert!(output.pending() == model.make_contiguous());
                prop_assert!(output.storage.len() <= (4 * (model.len() + put + sent)).max(FIRST_BYTES).max(RETAINED_BYTES));
            }
        }
    }

    #[test]
    fn a_text_is_cut_between_two_characters_where_the_longest_string_ends() {
        let mut output = OutputBytes::default();
        let length = output.put_text(format_args!("x{}", "ä".repeat(3000)));
        assert_eq!(length, 4095);
        assert!(std::str::from_utf8(output.pending()).is_ok());
    }
}
