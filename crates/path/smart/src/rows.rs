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
pub(crate) enum Hold {
    /// No hold, for a read.
    Nothing,
    /// A shared hold, for an update.
    Shared,
    /// An exclusive hold, for a write of the whole row.
    Alone,
}

/// A part of a request. The part of a write lies in one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) job: u32,
    pub(crate) row: u64,
    pub(crate) hold: Hold,
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
pub(crate) struct Rows {
    pub(crate) parts: Slots<Part>,
    held: HashMap<u64, Row>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    updates: u32,
    alone: bool,
    /// List of waiting parts, in order.
    waiting: Option<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    first: u32,
    last: u32,
}

impl Row {
    /// Lets a part in, if the parts inside allow so.
    fn admit(&mut self, hold: Hold) -> bool {
        let free = !self.alone && (hold != Hold::Alone || self.updates == 0);
        match hold {
            _ if !free => {}
            Hold::Alone => self.alone = true,
            _ => self.updates += 1,
        }
        free
    }
}

impl Rows {
    /// Keeps a new part, and returns true if the part may begin. Otherwise
    /// [`release`](Rows::release) returns the part later.
    pub(crate) fn acquire(&mut self, part: Part) -> (u32, bool) {
        let slot = self.parts.keep(part);
        if part.hold == Hold::Nothing {
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
            row.waiting = Some(Waiting {
                first: slot,
                last: slot,
            });
        }
        (slot, false)
    }

    /// Removes a finished part, and appends to `granted` the parts that may begin now.
    pub(crate) fn release(&mut self, slot: u32, granted: &mut Vec<u32>) -> Part {
        let part = self.parts.take(slot);
        let Some(row) = self
            .held
            .get_mut(&part.row)
            .filter(|_| part.hold != Hold::Nothing)
        else {
            return part;
        };
        match part.hold {
            Hold::Alone => row.alone = false,
            _ => row.updates -= 1,
        }
        while let Some(Waiting { first, last }) = row.waiting
            && row.admit(self.parts[first].hold)
        {
            granted.push(first);
            row.waiting = self.parts[first]
                .next
                .map(|next| Waiting { first: next, last });
        }
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

    fn part(row: u64, alone: bool) -> Part {
        let hold = if alone { Hold::Alone } else { Hold::Shared };
        Part {
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
            let mut rows = Rows::default();
            let (mut inside, mut granted): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
            let mut order: Vec<(u64, u32)> = Vec::new();
            let mut begun: Vec<(u64, u32)> = Vec::new();
            let check = |rows: &Rows, inside: &[u32]| {
                for &slot in inside {
                    let of_row = inside.iter().filter(|&&other| rows.parts[other].row == rows.parts[slot].row);
                    assert!(rows.parts[slot].hold == Hold::Shared || of_row.count() == 1);
                }
            };
            for (number, &(row, alone, ends)) in asks.iter().enumerate() {
                let (slot, free) = rows.acquire(Part { job: number as u32, ..part(row, alone) });
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
