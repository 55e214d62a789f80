//! System calls of the C library's buffered streams.
//!
//! Follows glibc's `libio/fileops.c` (`_IO_new_file_xsputn`, `_IO_file_xsgetn`), unchanged from 2.3
//! to today. A stream has a buffer of `st_blksize` bytes. The stream allocates the buffer at its
//! first use. A longer transfer bypasses the buffer in multiples of the buffer size.

/// Lengths of the calls for a transfer in blocks, in order.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Bytes not yet requested by the program.
    left: u64,
    block: u64,
    stream: Option<BufferedStream>,
}

#[derive(Clone, Debug)]
struct BufferedStream {
    /// Size of the buffer.
    size: u64,
    writes: bool,
    made: bool,
    /// For writes: bytes in the buffer not yet in the kernel. For reads: bytes in the buffer not
    /// yet in the program.
    held: u64,
    /// Bytes that the next call moves past the buffer.
    around: u64,
    /// Remaining bytes of the present block.
    wanted: u64,
    /// Bytes of the file not yet read.
    ahead: u64,
}

impl Blocks {
    /// Returns the calls with `read(2)` or `write(2)`: one call per block.
    pub fn plain(bytes: u64, block: u64) -> Blocks {
        Blocks {
            left: bytes,
            block,
            stream: None,
        }
    }

    /// Returns the calls with `fwrite(3)` and `fclose(3)`, through a buffer of `size` bytes.
    pub fn written(bytes: u64, block: u64, size: u64) -> Blocks {
        Blocks {
            left: bytes,
            block,
            stream: Some(BufferedStream::new(size, true, 0)),
        }
    }

    /// Returns the calls for a whole file with `fread(3)`, through a buffer of `size` bytes.
    pub fn read(bytes: u64, block: u64, size: u64) -> Blocks {
        Blocks {
            left: bytes,
            block,
            stream: Some(BufferedStream::new(size, false, bytes)),
        }
    }
}

impl BufferedStream {
    fn new(size: u64, writes: bool, ahead: u64) -> BufferedStream {
        BufferedStream {
            size,
            writes,
            made: false,
            held: 0,
            around: 0,
            wanted: 0,
            ahead,
        }
    }

    /// Writes a block. Returns the length of the first call for the block, or 0 if the block fits
    /// into the buffer.
    fn put(&mut self, bytes: u64) -> u64 {
        // Before the first use the stream has no buffer, and glibc treats the buffer as full.
        let room = if self.made { self.size - self.held } else { 0 };
        self.made = true;
        if bytes <= room {
            self.held += bytes;
            return 0;
        }
        debug_assert!(
            self.held <= self.size,
            "a stream holds {} bytes in a buffer of {}",
            self.held,
            self.size
        );
        let (full, rest) = (self.held + room, bytes - room);
        self.held = rest % self.size;
        self.around = rest - self.held;
        if full > 0 {
            full
        } else {
            // The buffer is empty and the rest is a multiple of the buffer: glibc writes it around
            // the buffer in one call.
            std::mem::take(&mut self.around)
        }
    }

    /// Returns the length of the next call for the present block, or 0 if the block is complete.
    fn get(&mut self) -> u64 {
        let there = self.held.min(self.wanted);
        self.held -= there;
        self.wanted -= there;
        if self.wanted == 0 {
            return 0;
        }
        // A short request fills the whole buffer.
        if self.wanted < self.size {
            self.held = self.size.min(self.ahead);
            self.ahead -= self.held;
            return self.size;
        }
        let around = self.wanted - self.wanted % self.size;
        assert!(
            around <= self.ahead,
            "{around} bytes are read around the buffer, and the file has {}",
            self.ahead
        );
        self.wanted -= around;
        self.ahead -= around;
        around
    }

    /// Returns the length of the next call, or `None` at the end.
    fn next(&mut self, left: &mut u64, block: u64) -> Option<u64> {
        loop {
            let call = match self.writes {
                true => std::mem::take(&mut self.around),
                false => self.get(),
            };
            if call > 0 {
                return Some(call);
            }
            let piece = block.min(*left);
            if piece == 0 {
                // `fclose` writes the rest of the buffer.
                let rest = if self.writes {
                    std::mem::take(&mut self.held)
                } else {
                    0
                };
                return (rest > 0).then_some(rest);
            }
            *left -= piece;
            if !self.writes {
                self.wanted = piece;
                continue;
            }
            let call = self.put(piece);
            if call > 0 {
                return Some(call);
            }
        }
    }
}

impl Iterator for Blocks {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if let Some(stream) = &mut self.stream {
            return stream.next(&mut self.left, self.block);
        }
        let call = self.block.min(self.left);
        self.left -= call;
        (call > 0).then_some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::Blocks;
    use proptest::prelude::*;

    #[test]
    fn blocks_below_the_buffer_are_gathered_and_longer_ones_go_around_it() {
        let written = |bytes, block| Blocks::written(bytes, block, 4096).collect::<Vec<u64>>();
        assert_eq!(written(9000, 512), [4096, 4096, 808]);
        assert_eq!(written(300, 512), [300]);
        assert_eq!(written(70_000, 65_536), [65_536, 4096, 368]);
        assert_eq!(written(6000, 5000), [4096, 1904]);
        let read = |bytes, block| Blocks::read(bytes, block, 4096).collect::<Vec<u64>>();
        assert_eq!(read(9000, 512), [4096, 4096, 4096]);
        assert_eq!(read(10_000, 6000), [4096, 4096, 4096]);
        assert_eq!(read(65_536, 65_536), [65_536]);
    }

    proptest! {
        #[test]
        fn every_byte_is_moved_once(bytes in 0u64..200_000, block in 1u64..70_000, size in 1u64..9000) {
            prop_assert_eq!(Blocks::plain(bytes, block).sum::<u64>(), bytes);
            prop_assert_eq!(Blocks::written(bytes, block, size).sum::<u64>(), bytes);
            let read = Blocks::read(bytes, block, size).sum::<u64>();
            prop_assert!(read >= bytes && read < bytes + size);
        }
    }
}
