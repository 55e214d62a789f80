//! io_uring, for concurrent transfers.

use crate::buffers::Buffers;
use crate::device::Aligned;
use crate::member_transfer::{MemberTransfer, TransferDirection};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Number of transfers handed to the kernel at a time.
const ENTRIES: usize = 128;
/// Number of memory blocks to keep.
const KEPT: usize = 8;

/// A ring, empty between calls.
pub(super) struct Ring {
    ring: IoUring,
    /// Memory of transfers with a limit. Such memory may be lost to the kernel for good.
    spare: Vec<Aligned>,
}

impl Ring {
    pub(super) fn new() -> io::Result<Ring> {
        Ok(Ring {
            ring: IoUring::new(ENTRIES as u32)?,
            spare: Vec::new(),
        })
    }

    /// Returns true if the ring can wait for a limited time (from Linux 5.11 on).
    pub(super) fn keeps_limits(&self) -> bool {
        self.ring.params().is_feature_ext_arg()
    }

    /// As [`carry`](Ring::carry), with a time limit, which the ring has to
    /// [keep](Ring::keeps_limits). Returns the indices of the transfers to try in another way, and
    /// the indices of the unfinished ones. The latter are among the former. Calls `read` with the
    /// time of each read that has ended.
    pub(super) fn carry_within(
        &mut self,
        limit: Option<Duration>,
        direction: TransferDirection,
        transfers: &[MemberTransfer],
        file: &dyn Fn(&MemberTransfer) -> Option<RawFd>,
        buffers: &mut Buffers<'_>,
        read: &dyn Fn(&MemberTransfer, Duration),
    ) -> (Vec<usize>, Vec<usize>) {
        let Some(limit) = limit else {
            return (self.carry(direction, transfers, file, buffers), Vec::new());
        };
        let (mut left, mut hung) = (Vec::new(), Vec::new());
        for (batch, some) in transfers.chunks(ENTRIES).enumerate() {
            let first = batch * ENTRIES;
            let mut lent = BTreeMap::new();
            for (index, transfer) in (first..).zip(some) {
                let mut memory = self.spare.pop().unwrap_or_default();
                if direction == TransferDirection::Write {
                    let from = buffers.at(transfer.place, transfer.sectors);
                    memory.of(from.len()).copy_from_slice(from);
                }
                let file = file(transfer);
                match file
                    .is_some_and(|file| self.lend(direction, transfer, file, &mut memory, index))
                {
                    true => drop(lent.insert(index, memory)),
                    false => left.push(index),
                }
            }
            let began = Instant::now();
            let until = began + limit;
            while !lent.is_empty() && self.wait_until(lent.len(), until) {
                for entry in self.ring.completion() {
                    let index = entry.user_data() as usize;
                    let Some(mut memory) = lent.remove(&index) else {
                        continue;
                    };
                    let transfer = &transfers[index];
                    if entry.result() < 0 || entry.result() as u64 != transfer.bytes() {
                        left.push(index);
                    } else if direction == TransferDirection::Read {
                        let into = buffers.at_mut(transfer.place, transfer.sectors);
                        let length = into.len();
                        into.copy_from_slice(memory.of(length));
                        read(transfer, began.elapsed());
                    }
                    self.spare.push(memory);
                }
            }
            if !lent.is_empty() {
                self.leave_behind(&mut lent);
                hung.extend(lent.keys());
                left.extend(lent.into_keys());
            }
        }
        // Only a little memory is kept between calls, however much was transferred.
        self.spare.truncate(KEPT);
        (left, hung)
    }

    /// Leaves memory to the kernel, perhaps forever. Later transfers get a new ring.
    fn leave_behind(&mut self, lent: &mut BTreeMap<usize, Aligned>) {
        for memory in lent.values_mut() {
            std::mem::forget(std::mem::take(memory));
        }
        match IoUring::new(ENTRIES as u32) {
            Ok(ring) => self.ring = ring,
            Err(error) => {
                eprintln!("io_uring cannot be begun anew behind a device that hangs: {error}");
                std::process::abort();
            }
        }
    }

    /// Waits for so many completions, or until the time is over. Returns true if there is time
    /// left.
    fn wait_until(&mut self, count: usize, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::from(left);
        let arguments = SubmitArgs::new().timespec(&left);
        let waited = self.ring.submitter().submit_with_args(count, &arguments);
        match waited.map_err(|error| error.raw_os_error()) {
            Ok(_) | Err(Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => true,
            // Some transfers may have ended.
            Err(Some(libc::ETIME)) => !self.ring.completion().is_empty() || Instant::now() < until,
            Err(error) => {
                eprintln!("io_uring cannot be waited for while it has memory: error {error:?}");
                std::process::abort();
            }
        }
    }

    /// Carries out `transfers`, and waits for their completion. Returns the indices of those to try
    /// in another way.
    pub(super) fn carry(
        &mut self,
        direction: TransferDirection,
        transfers: &[MemberTransfer],
        file: &dyn Fn(&MemberTransfer) -> Option<RawFd>,
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

    /// Waits for so many completions. The kernel uses the memory until then, so an error cannot be
    /// returned before.
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

    /// As [`push`](Ring::push), with memory of the transfer's own.
    #[expect(unsafe_code, reason = "the kernel takes addresses")]
    fn lend(
        &mut self,
        direction: TransferDirection,
        transfer: &MemberTransfer,
        file: RawFd,
        memory: &mut Aligned,
        index: usize,
    ) -> bool {
        let Ok(length) = u32::try_from(transfer.bytes()) else {
            return false;
        };
        let at = memory.of(length as usize).as_mut_ptr();
        let entry = match direction {
            TransferDirection::Read => opcode::Read::new(Fd(file), at, length)
                .offset(transfer.at)
                .build(),
            TransferDirection::Write => opcode::Write::new(Fd(file), at, length)
                .offset(transfer.at)
                .build(),
        };
        // SAFETY: the caller keeps the memory, unmoved on the heap and untouched, until the entry
        // has ended, and forgets the memory if the entry never ends.
        unsafe { self.ring.submission().push(&entry.user_data(index as u64)) }.is_ok()
    }

    #[expect(unsafe_code, reason = "the kernel takes addresses")]
    fn push(
        &mut self,
        direction: TransferDirection,
        transfer: &MemberTransfer,
        file: RawFd,
        buffers: &mut Buffers<'_>,
        index: usize,
    ) -> bool {
        let Ok(length) = u32::try_from(transfer.bytes()) else {
            return false;
        };
        let entry = match direction {
            TransferDirection::Read => {
                let into = buffers
                    .at_mut(transfer.place, transfer.sectors)
                    .as_mut_ptr();
                opcode::Read::new(Fd(file), into, length)
                    .offset(transfer.at)
                    .build()
            }
            TransferDirection::Write => {
                let from = buffers.at(transfer.place, transfer.sectors).as_ptr();
                opcode::Write::new(Fd(file), from, length)
                    .offset(transfer.at)
                    .build()
            }
        };
        // SAFETY: the memory belongs to `buffers`, which is borrowed until `carry` has seen the end
        // of every entry. The target of a read overlaps with nothing else of the same call.
        unsafe { self.ring.submission().push(&entry.user_data(index as u64)) }.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::RequestBytes;
    use fullstroke_units::Sectors;
    use fullstroke_volume::BufferPlace;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_transfer_that_never_ends_is_left_behind_and_the_others_end() {
        let Ok(mut ring) = Ring::new() else {
            eprintln!("skipped: no io_uring");
            return;
        };
        if !ring.keeps_limits() {
            eprintln!("skipped: io_uring without limits");
            return;
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 4096]).unwrap();
        let (silent, _open) = io::pipe().unwrap();
        let transfer = |slot: usize| MemberTransfer {
            slot,
            at: 0,
            place: BufferPlace::Scratch(Sectors(slot as u64)),
            sectors: Sectors(1),
        };
        let files = [file.as_raw_fd(), silent.as_raw_fd(), file.as_raw_fd()];
        let find = |transfer: &MemberTransfer| Some(files[transfer.slot]);
        for _ in 0..3 {
            let mut scratch = vec![0; 3 * 512];
            let mut buffers = Buffers {
                request: RequestBytes::From(&[]),
                scratch: &mut scratch,
            };
            let begun = Instant::now();
            let all = [transfer(0), transfer(1), transfer(2)];
            let limit = Some(Duration::from_millis(100));
            let ended = ring.carry_within(
                limit,
                TransferDirection::Read,
                &all,
                &find,
                &mut buffers,
                &|_, _| {},
            );
            assert_eq!(ended, (vec![1], vec![1]));
            assert!(begun.elapsed() < Duration::from_secs(20));
            assert!(scratch[..512] == [7; 512] && scratch[1024..] == [7; 512]);
            assert_eq!(scratch[512..1024], [0; 512]);
        }
    }
}
