//! Recycled payload buffers.

/// Largest sum of the kept buffers, in bytes.
pub(crate) const POOL_BYTES_MAX: usize = 4 << 20;

/// Unused buffers. The last returned buffer is taken first, because its data are still in the
/// processor's cache.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl BufferPool {
    /// Returns a buffer of this length, which holds old data or zeroes.
    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        let Some(mut buffer) = self.buffers.pop() else {
            return vec![0; length];
        };
        // The sum counts capacities, because short payloads may sit in long buffers.
        self.bytes -= buffer.capacity();
        if buffer.capacity() < length {
            // The system provides fresh zero pages only at their first use.
            return vec![0; length];
        }
        buffer.resize(length, 0);
        buffer
    }

    /// Keeps a buffer for later use, if there is room.
    pub(crate) fn give(&mut self, buffer: Vec<u8>) {
        // A buffer without storage would only lengthen the list.
        if buffer.capacity() > 0 && self.bytes + buffer.capacity() <= POOL_BYTES_MAX {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_came_back_is_used_again() {
        let mut pool = BufferPool::default();
        let buffer = pool.take(4096);
        let address = buffer.as_ptr();
        pool.give(buffer);
        let again = pool.take(512);
        assert_eq!((again.as_ptr(), again.len()), (address, 512));
    }

    #[test]
    fn no_more_is_kept_than_the_bound_says() {
        let mut pool = BufferPool::default();
        for _ in 0..1000 {
            pool.give(vec![0; 64 << 10]);
        }
        let kept: usize = pool.buffers.iter().map(Vec::capacity).sum();
        assert_eq!(kept, POOL_BYTES_MAX);
        assert_eq!(pool.bytes, kept);
    }
}
