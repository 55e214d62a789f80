//! Many transfers at a time, on many members.

mod ring;

use crate::Device;
use crate::buffers::Buffers;
use crate::limit::Limit;
use crate::member_transfer::{FailedTransfer, MemberTransfer, TransferDirection};
use crate::stop_control::AccessGuard;
use fullstroke_units::SECTOR_BYTES;
use ring::Ring;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of retries of a failed transfer before its member counts as failed.
const RETRIES: usize = 2;

/// Devices of the members, in order; `None` for a missing member.
pub(crate) type Devices = Vec<Option<Arc<dyn Device>>>;

/// Carries transfers out: by io_uring all at a time, or one after the other.
pub(crate) struct Carrier {
    ring: Option<Ring>,
}

impl Carrier {
    /// Returns a carrier with io_uring, if the kernel has it.
    pub(crate) fn new() -> Carrier {
        Carrier {
            ring: Ring::new().ok(),
        }
    }

    /// Returns a carrier without io_uring.
    pub(crate) fn one_by_one() -> Carrier {
        Carrier { ring: None }
    }

    /// True if transfers are carried out at the same time.
    pub(crate) fn is_parallel(&self) -> bool {
        self.ring.is_some()
    }

    /// Carries out all `transfers`. Returns the failed ones.
    pub(crate) fn carry(
        &mut self,
        direction: TransferDirection,
        transfers: &[MemberTransfer],
        devices: &Devices,
        buffers: &mut Buffers<'_>,
    ) -> Vec<FailedTransfer> {
        self.carry_noting(direction, transfers, devices, buffers, &|_, _| {})
    }

    /// As [`carry`](Carrier::carry). Calls `note` with the slot and the time of each read that has
    /// ended well, if its member has a time limit.
    pub(crate) fn carry_noting(
        &mut self,
        direction: TransferDirection,
        transfers: &[MemberTransfer],
        devices: &Devices,
        buffers: &mut Buffers<'_>,
        note: &dyn Fn(usize, Duration),
    ) -> Vec<FailedTransfer> {
        let files = |transfer: &MemberTransfer| devices[transfer.slot].as_ref()?.descriptor();
        // A write to the page cache does not wait for a disk, so the ring has no advantage there.
        let waits = |transfer: &MemberTransfer| {
            let device = devices[transfer.slot].as_ref();
            device.is_some_and(|device| direction == TransferDirection::Read || !device.is_cached())
        };
        let limit = |transfer: &MemberTransfer| devices[transfer.slot].as_ref()?.limit();
        let shortest = transfers.iter().filter_map(limit).map(Limit::each).min();
        // With a limit the ring costs less than another thread, also for one transfer.
        let is_worth = transfers.len() > 1 && transfers.iter().any(waits) || shortest.is_some();
        let keeps_limits = self.ring.as_ref().is_some_and(Ring::keeps_limits);
        let by_ring = is_worth
            && (keeps_limits || shortest.is_none())
            && transfers.iter().all(|transfer| files(transfer).is_some());
        let standby = |transfer: &MemberTransfer| devices[transfer.slot].as_ref()?.standby();
        let is_tried = by_ring && self.ring.is_some();
        let mut left: Vec<usize> = match &mut self.ring {
            Some(ring) if by_ring => {
                let attended = transfers.iter().filter_map(standby);
                let uses: Vec<AccessGuard<'_>> =
                    attended.map(|standby| standby.begin(direction)).collect();
                let read = |transfer: &MemberTransfer, took| {
                    if let Some(limit) = limit(transfer) {
                        limit.note_read(took);
                        note(transfer.slot, took);
                    }
                };
                let (left, hung) =
                    ring.carry_within(shortest, direction, transfers, &files, buffers, &read);
                drop(uses);
                for limit in hung.iter().filter_map(|&index| limit(&transfers[index])) {
                    limit.note_timeout();
                }
                left
            }
            _ => (0..transfers.len()).collect(),
        };
        debug_assert!(
            left.iter().all(|&index| index < transfers.len()),
            "the ring returns a transfer that it did not get"
        );
        let mut failed = Vec::new();
        for index in left.drain(..) {
            let transfer = transfers[index];
            let mut carry = || {
                let began = Instant::now();
                carry_one(direction, &transfer, devices, buffers)?;
                if direction == TransferDirection::Read && limit(&transfer).is_some() {
                    note(transfer.slot, began.elapsed());
                }
                Ok(())
            };
            // The ring has tried it once.
            let result = match is_tried {
                true => carry().or_else(|_| carry()),
                false => persistently(carry),
            };
            if let Err(error) = result {
                failed.push(FailedTransfer { transfer, error });
            }
        }
        failed
    }
}

/// Repeats a failing action up to [`RETRIES`] times.
pub(crate) fn persistently<E>(mut act: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let mut result = act();
    for _ in 0..RETRIES {
        if result.is_err() {
            result = act();
        }
    }
    result
}

fn carry_one(
    direction: TransferDirection,
    transfer: &MemberTransfer,
    devices: &Devices,
    buffers: &mut Buffers<'_>,
) -> io::Result<()> {
    let Some(device) = &devices[transfer.slot] else {
        return Err(io::ErrorKind::NotFound.into());
    };
    match direction {
        TransferDirection::Read => device.read(
            transfer.at,
            buffers.at_mut(transfer.place, transfer.sectors),
        ),
        TransferDirection::Write => {
            device.write(transfer.at, buffers.at(transfer.place, transfer.sectors))
        }
    }
}

impl MemberTransfer {
    /// Length of the transfer in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.sectors.0 * SECTOR_BYTES
    }
}
