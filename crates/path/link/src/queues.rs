//! Waiting transfers of the ports of a shared medium.

use crate::transfer::LinkTransfer;
use fullstroke_contract::Slots;
use fullstroke_units::Time;

/// Ranks are the bits of a word.
// More ranks than the 126 ports of a loop and the 16 ports of a bus.
const RANKS: usize = 128;

/// A waiting transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingTransfer {
    pub(crate) offered: Time,
    pub(crate) transfer: LinkTransfer,
}

/// A first-in, first-out queue for each rank, all in one store, so that nothing is allocated after
/// growth.
#[derive(Clone, Debug)]
pub(crate) struct RankedQueues {
    places: Slots<WaitingEntry>,
    queues: Vec<Option<QueueEnds>>,
    /// Ranks with a non-empty queue, as bits.
    occupied: u128,
}

#[derive(Clone, Copy, Debug)]
struct WaitingEntry {
    waiting: WaitingTransfer,
    next: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct QueueEnds {
    first: u32,
    last: u32,
}

impl RankedQueues {
    pub(crate) fn new() -> RankedQueues {
        RankedQueues {
            places: Slots::default(),
            queues: vec![None; RANKS],
            occupied: 0,
        }
    }

    pub(crate) fn occupied(&self) -> u128 {
        self.occupied
    }

    pub(crate) fn push(&mut self, rank: u32, waiting: WaitingTransfer) {
        let place = self.places.keep(WaitingEntry {
            waiting,
            next: None,
        });
        let queue = &mut self.queues[rank as usize];
        *queue = match *queue {
            None => Some(QueueEnds {
                first: place,
                last: place,
            }),
            Some(QueueEnds { first, last }) => {
                self.places[last].next = Some(place);
                Some(QueueEnds { first, last: place })
            }
        };
        self.occupied |= 1 << rank;
    }

    pub(crate) fn first(&self, rank: u32) -> Option<&WaitingTransfer> {
        self.queues[rank as usize].map(|ends| &self.places[ends.first].waiting)
    }

    pub(crate) fn pop(&mut self, rank: u32) -> Option<WaitingTransfer> {
        let QueueEnds { first, last } = self.queues[rank as usize]?;
        let WaitingEntry { waiting, next } = self.places.take(first);
        self.queues[rank as usize] = next.map(|first| QueueEnds { first, last });
        if next.is_none() {
            self.occupied &= !(1 << rank);
        }
        Some(waiting)
    }
}
