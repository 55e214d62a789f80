//! io_uring, for transfers that go at the same time.

use super::{Direction, Transfer};
use crate::buffers::Buffers;
use io_uring::types::Fd;
use io_uring::{IoUring, opcode};
use std::io;
use std::os::fd::RawFd;

/// Transfers that are handed to the kernel at a time.
const ENTRIES: usize = 128;

/// A ring that is empty between any two calls.
pub(super) struct Ring {
    ring: IoUring,
}

impl Ring {
    pub(super) fn new() -> io::Result<Ring> {
        Ok(Ring {
            ring: IoUring::new(ENTRIES as u32)?,
        })
    }

    /// Carries `transfers` out, and waits for all of them. Answers the indices
    /// of those that have to be tried in another way.
    pub(super) fn carry(
        &mut self,
        direction: Direction,
        transfers: &[Transfer],
        file: &dyn Fn(&Transfer) -> Option<RawFd>,
        buffers: &mut Buffers<'_>,
    ) -> Vec<usize> {
        let mut left = Vec::new();
        for (batch, some) in transfers.chunks(ENTRIES).enumerate() {
            let first = batch * ENTRIES;
            let mut waiting = 0;
            for (index, transfer) in (first..).zip(some) {
                match file(transfer) {
                    Some(file) if self.push(direction, transfer, file, buffers, index) => {
                        waiting += 1
                    }
                    _ => left.push(index),
                }
            }
            while waiting > 0 {
                self.wait(waiting);
                for entry in self.ring.completion() {
                    waiting -= 1;
                    let index = entry.user_data() as usize;
                    if entry.result() < 0 || entry.result() as u64 != transfers[index].bytes() {
                        left.push(index);
                    }
                }
            }
        }
        left
    }

    /// Waits for so many. The memory is lent until they have ended, so there is
    /// no way back before.
    fn wait(&mut self, count: usize) {
        if let Err(error) = self.ring.submit_and_wait(count)
            && !matches!(
                error.raw_os_error(),
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
            )
        {
            eprintln!("io_uring cannot be waited for while it has memory: {error}");
            std::process::abort();
        }
    }

    #[expect(unsafe_code, reason = "the kernel takes addresses")]
    fn push(
        &mut self,
        direction: Direction,
        transfer: &Transfer,
        file: RawFd,
        buffers: &mut Buffers<'_>,
        index: usize,
    ) -> bool {
        let Ok(length) = u32::try_from(transfer.bytes()) else {
            return false;
        };
        let entry = match direction {
            Direction::Read => {
                let into = buffers
                    .at_mut(transfer.place, transfer.sectors)
                    .as_mut_ptr();
                opcode::Read::new(Fd(file), into, length)
                    .offset(transfer.at)
                    .build()
            }
            Direction::Write => {
                let from = buffers.at(transfer.place, transfer.sectors).as_ptr();
                opcode::Write::new(Fd(file), from, length)
                    .offset(transfer.at)
                    .build()
            }
        };
        // SAFETY: the memory belongs to `buffers`, which is borrowed until
        // `carry` has seen the end of every entry; what is read into overlaps
        // with nothing else of the same call.
        unsafe { self.ring.submission().push(&entry.user_data(index as u64)) }.is_ok()
    }
}
