//! Locks of rows for writes.
//!
//! Updates may share a row. Each update changes the parity by the change of the data, in one step
//! on the parity disk, so that the order does not matter. A write of a whole row brings parity that
//! is right for the written data only. Such a write holds the row alone. Requests for a row are
//! served in order of arrival.

use fullstroke_contract::Slots;
use fullstroke_units::Time;
use std::collections::HashMap;

/// Hold of a part of a request on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowHold {
    /// No hold, for a read.
    Nothing,
    /// A shared hold, for an update.
    Shared,
    /// An exclusive hold, for a write of the whole row.
    Alone,
}

/// A part of a request. The part of a write lies in one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPart {
    pub(crate) job: u32,
    pub(crate) row: u64,
    pub(crate) hold: RowHold,
    /// Begin and end as volume addresses.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Time when the commands of the part were sent.
    pub(crate) issued: Time,
    /// Number of unfinished commands of the part.
    pub(crate) pieces_left: u32,
    /// Next part in the wait list of the same row.
    pub(crate) next: Option<u32>,
}

/// The parts in flight, and the rows that the parts hold.
#[derive(Debug, Default)]
pub(crate) struct RowLocks {
    pub(crate) parts: Slots<RequestPart>,
    held: HashMap<u64, LockedRow>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LockedRow {
    updates: u32,
    alone: bool,
    /// List of waiting parts, in order.
    waiting: Option<WaitingParts>,
}

#[derive(Clone, Copy, Debug)]
struct WaitingParts {
    first: u32,
    last: u32,
}

impl LockedRow {
    /// Lets a part in, if the parts inside allow so.
    fn admit(&mut self, hold: RowHold) -> bool {
        // Updates of one row may overlap, because an XDW or XPW reads, computes and writes in one
        // command.
        let free = !self.alone && (hold != RowHold::Alone || self.updates == 0);
        match hold {
            _ if !free => {}
            RowHold::Alone => self.alone = true,
            _ => self.updates += 1,
        }
        free
    }
}

impl RowLocks {
    /// Keeps a new part, and returns true if the part may begin. Otherwise
    /// [`release`](RowLocks::release) returns the part later.
    pub(crate) fn acquire(&mut self, part: RequestPart) -> (u32, bool) {
        let slot = self.parts.keep(part);
        if part.hold == RowHold::Nothing {
            return (slot, true);
        }
        let row = self.held.entry(part.row).or_default();
        // A part queues behind waiting parts even if the row would admit the part. Otherwise
        // updates could overtake a waiting write of the whole row for ever.
        if let Some(waiting) = &mut row.waiting {
            self.parts[waiting.last].next = Some(slot);
            waiting.last = slot;
        } else if row.admit(part.hold) {
            return (slot, true);
        } else {
            row.waiting = Some(WaitingParts {
                first: slot,
                last: slot,
            });
        }
        (slot, false)
    }

    /// Removes a finished part, and appends to `granted` the parts that may begin now.
    pub(crate) fn release(&mut self, slot: u32, granted: &mut Vec<u32>) -> RequestPart {
        let part = self.parts.take(slot);
        let Some(row) = self
            .held
            .get_mut(&part.row)
            .filter(|_| part.hold != RowHold::Nothing)
        else {
            return part;
        };
        match part.hold {
            RowHold::Alone => row.alone = false,
            _ => row.updates -= 1,
        }
        // Several updates at the head begin together. A write of the whole row begins alone.
        while let Some(WaitingParts { first, last }) = row.waiting
            && row.admit(self.parts[first].hold)
        {
            granted.push(first);
            row.waiting = self.parts[first]
                .next
                .map(|next| WaitingParts { first: next, last });
        }
        // Unlocked rows are forgotten. Otherwise the table would grow with each row ever written.
        if row.updates == 0 && !row.alone {
            self.held.remove(&part.row);
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(row: u64, alone: bool) -> RequestPart {
        let hold = if alone {
            RowHold::Alone
        } else {
            RowHold::Shared
        };
        RequestPart {
            job: 0,
            row,
            hold,
            begin: 0,
            end: 1,
            issued: Time::ZERO,
            pieces_left: 1,
            next: None,
        }
    }

    proptest! {
        #[test]
        fn a_whole_row_is_written_alone_and_everybody_has_a_turn_in_order(
            asks in prop::collection::vec((0u64..3, any::<bool>(), any::<bool>()), 1..60),
        ) {
            let mut rows = RowLocks::default();
            let (mut inside, mut granted): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
            let mut order: Vec<(u64, u32)> = Vec::new();
            let mut begun: Vec<(u64, u32)> = Vec::new();
            let check = |rows: &RowLocks, inside: &[u32]| {
                for &slot in inside {
                    let of_row = inside.iter().filter(|&&other| rows.parts[other].row == rows.parts[slot].row);
                    assert!(rows.parts[slot].hold == RowHold::Shared || of_row.count() == 1);
                }
            };
            for (number, &(row, alone, ends)) in asks.iter().enumerate() {
                let (slot, free) = rows.acquire(RequestPart { job: number as u32, ..part(row, alone) });
                order.push((row, number as u32));
                if free {
                    inside.push(slot);
                    begun.push((row, number as u32));
                }
                check(&rows, &inside);
                if ends && !inside.is_empty() {
                    rows.release(inside.remove(0), &mut granted);
                    begun.extend(granted.iter().map(|&slot| (rows.parts[slot].row, rows.parts[slot].job)));
                    inside.append(&mut granted);
                    check(&rows, &inside);
                }
            }
            while !inside.is_empty() {
                rows.release(inside.remove(0), &mut granted);
                begun.extend(granted.iter().map(|&slot| (rows.parts[slot].row, rows.parts[slot].job)));
                inside.append(&mut granted);
                check(&rows, &inside);
            }
            order.sort_by_key(|&(row, _)| row);
            begun.sort_by_key(|&(row, _)| row);
            prop_assert_eq!(order, begun);
            prop_assert!(rows.parts.is_empty() && rows.held.is_empty());
        }
    }
}
