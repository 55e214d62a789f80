//! The queues: one for the synchronous requests of each process, and seventeen for the asynchronous
//! requests of all processes, by class and level.

use super::super::fifos::{Fifos, RequestFifo};
use super::super::forest::{Forest, SlotTree};
use super::super::habits::Habits;
use crate::block::Queued;
use fullstroke_contract::PriorityClass;
use fullstroke_units::Time;
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// Levels of a class: `IOPRIO_BE_NR` of `include/linux/ioprio.h`.
const LEVELS: usize = 8;

/// One queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct CfqQueue {
    pub(super) synchronous: bool,
    pub(super) class: PriorityClass,
    pub(super) level: u8,
    /// Waiting requests by address.
    pub(super) sorted: SlotTree,
    /// Waiting requests in order of arrival.
    pub(super) arrived: RequestFifo,
    /// Number of requests in the dispatch list and in flight.
    pub(super) in_flight: u32,
    /// True if the slices of the queue wait for the next request.
    pub(super) idles: bool,
    /// Unused time of the last slice when it was taken away, in nanoseconds; negative if the slice
    /// was too long.
    pub(super) residue_ns: i64,
    /// Class in which the queue waits for its turn.
    ordered: Option<usize>,
}

/// A process.
#[derive(Clone, Copy, Debug)]
pub(super) struct CfqProcess {
    pub(super) habits: Habits,
    /// Queue of the synchronous requests.
    queue: Option<u32>,
}

/// All queues and processes.
#[derive(Debug, Default)]
pub(super) struct CfqQueues {
    pub(super) all: Vec<CfqQueue>,
    pub(super) processes: Vec<CfqProcess>,
    by_id: BTreeMap<u32, u32>,
    asynchronous: [Option<u32>; 2 * LEVELS + 1],
    /// Requests by address, one tree for each queue.
    pub(super) sorted: Forest,
    links: Fifos,
    /// Queues with waiting requests, by class, in the order of their turns.
    turns: [SlotTree; 3],
    order: Forest,
    busy: u32,
}

impl Index<u32> for CfqQueues {
    type Output = CfqQueue;
    fn index(&self, queue: u32) -> &CfqQueue {
        &self.all[queue as usize]
    }
}

impl IndexMut<u32> for CfqQueues {
    fn index_mut(&mut self, queue: u32) -> &mut CfqQueue {
        &mut self.all[queue as usize]
    }
}

impl CfqQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Sets the priority for the next requests (`cfq_init_prio_data` of `block/cfq-iosched.c`,
    /// Linux 2.6.24). The idle class has no levels, and no slice waits for its requests.
    fn set_priority(&mut self, class: PriorityClass, level: u8) {
        let becomes_idle = class == PriorityClass::Idle && self.class != class;
        self.idles &= !becomes_idle;
        self.class = class;
        self.level = if class == PriorityClass::Idle {
            LEVELS as u8 - 1
        } else {
            level.min(LEVELS as u8 - 1)
        };
    }
}

impl CfqQueues {
    /// Returns the index of the process called `id`.
    pub(super) fn process(&mut self, now: Time, id: u32) -> u32 {
        *self.by_id.entry(id).or_insert_with(|| {
            let mut habits = Habits::default();
            // As `cfq_alloc_io_context` does: the first think time counts from here.
            habits.completed = now;
            self.processes.push(CfqProcess {
                habits,
                queue: None,
            });
            self.processes.len() as u32 - 1
        })
    }

    /// Returns the queue for a request of `process`: `cfq_get_queue`. Asynchronous requests share
    /// queues, because the kernel's write-back sends them.
    pub(super) fn queue(&mut self, process: u32, request: &Queued) -> u32 {
        let level = usize::from(request.level).min(LEVELS - 1);
        let known = match request.class {
            _ if request.synchronous => &mut self.processes[process as usize].queue,
            PriorityClass::RealTime => &mut self.asynchronous[level],
            PriorityClass::BestEffort => &mut self.asynchronous[LEVELS + level],
            PriorityClass::Idle => &mut self.asynchronous[2 * LEVELS],
        };
        let queue = *known.get_or_insert_with(|| {
            self.all.push(CfqQueue {
                synchronous: request.synchronous,
                class: PriorityClass::BestEffort,
                level: 0,
                sorted: SlotTree::default(),
                arrived: RequestFifo::default(),
                in_flight: 0,
                idles: request.synchronous,
                residue_ns: 0,
                ordered: None,
            });
            self.all.len() as u32 - 1
        });
        self[queue].set_priority(request.class, request.level);
        queue
    }

    /// Adds a waiting request. Returns true if the queue was empty.
    pub(super) fn insert(&mut self, slot: u32, queue: u32, request: &Queued) -> bool {
        let CfqQueue {
            sorted, arrived, ..
        } = &mut self.all[queue as usize];
        self.sorted.insert(sorted, request.extent.start.0, slot);
        self.links.push_back(arrived, slot);
        let only = arrived.len() == 1;
        self.busy += u32::from(only);
        only
    }

    /// Sorts a request whose start has moved.
    pub(super) fn moved(&mut self, slot: u32, queue: u32, request: &Queued) {
        let sorted = &mut self.all[queue as usize].sorted;
        self.sorted.remove(sorted, slot);
        self.sorted.insert(sorted, request.extent.start.0, slot);
    }

    /// Removes a waiting request. An empty queue loses its turn.
    pub(super) fn remove(&mut self, slot: u32, queue: u32) {
        let CfqQueue {
            sorted, arrived, ..
        } = &mut self.all[queue as usize];
        self.sorted.remove(sorted, slot);
        self.links.remove(arrived, slot);
        debug_assert_eq!(
            sorted.len(),
            arrived.len(),
            "a request waits in both orders of queue {queue}, or in neither"
        );
        if arrived.is_empty() {
            assert!(self.busy > 0, "queue {queue} is done, and none was busy");
            self.busy -= 1;
            self.dequeue(queue);
        }
    }

    /// Removes `gone`, which has become part of `kept` in the same queue. `kept` takes the place of
    /// `gone` in the order of arrival (`cfq_merged_requests`).
    pub(super) fn inherit(&mut self, kept: u32, gone: u32, queue: u32) {
        let CfqQueue {
            sorted, arrived, ..
        } = &mut self.all[queue as usize];
        self.sorted.remove(sorted, gone);
        self.links.remove(arrived, kept);
        self.links.replace(arrived, gone, kept);
    }

    /// Returns the number of queues with waiting requests.
    pub(super) fn busy(&self) -> u32 {
        self.busy
    }

    /// Gives a queue its turn, by `key` within its class.
    pub(super) fn enqueue(&mut self, queue: u32, key: u64) {
        self.dequeue(queue);
        debug_assert!(
            !self[queue].is_empty(),
            "queue {queue} gets a turn, and no request waits in it"
        );
        let class = self[queue].class as usize;
        self[queue].ordered = Some(class);
        self.order.insert(&mut self.turns[class], key, queue);
    }

    fn dequeue(&mut self, queue: u32) {
        // The class may have changed since the queue was sorted, so the tree is that of the old
        // class.
        if let Some(class) = self[queue].ordered.take() {
            self.order.remove(&mut self.turns[class], queue);
        }
    }

    /// Returns the queue with the first turn.
    pub(super) fn first(&self) -> Option<u32> {
        self.turns.iter().find_map(|tree| self.order.first(tree))
    }

    /// Iterates over the queues above the idle class, in the order of turns.
    pub(super) fn in_order(&self) -> impl Iterator<Item = u32> + '_ {
        self.turns[..2]
            .iter()
            .flat_map(|tree| self.order.iter(tree))
    }
}
