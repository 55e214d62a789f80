//! The plug of the block layer: member I/O of one pass of md's thread is collected, and adjacent
//! pages become one request (`block/blk-mq.c` and `block/blk-merge.c`, Linux 6.12 and 6.13).
//!
//! A new I/O is compared with the latest request if the latest request is for the same member, and
//! otherwise with the first request for the member (`blk_attempt_plug_merge`). If the two do not
//! join, the I/O is a new request. The plug empties itself when it holds too many requests, or when
//! the latest request is long (`blk_add_rq_to_plug`). An emptied plug sends the requests of one
//! member one after the other, in the order of the members' first requests
//! (`blk_mq_flush_plug_list`).
//!
//! A member with an elevator gets all its requests of a plug before one of them is issued. The
//! elevator joins each request behind an earlier request that ends at its beginning
//! (`dd_insert_requests`, `elv_attempt_insert_merge`).

use fullstroke_contract::{Hints, Operation};

/// Number of requests that empty a plug for one member: `BLK_MAX_REQUEST_COUNT`.
const REQUESTS_MAX: usize = 32;

/// Number of requests that empty a plug for several members: `blk_plug_max_rq_count`.
const REQUESTS_MAX_OF_SEVERAL: usize = 2 * REQUESTS_MAX;

/// Length in sectors of a latest request that empties the plug: `BLK_PLUG_FLUSH_SIZE`, 128 KiB.
const LONG: u64 = 256;

/// No part.
pub(super) const NONE: u32 = u32::MAX;

/// A member I/O of one page or of several adjacent pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct PluggedIo {
    pub(super) member: u32,
    pub(super) operation: Operation,
    /// First sector on the member.
    pub(super) start: u64,
    pub(super) sectors: u64,
    /// First and last part of a list of parts: the pages of the request.
    pub(super) parts: (u32, u32),
    /// Number of the workload's request that caused the I/O.
    pub(super) origin: u64,
    pub(super) hints: Hints,
}

/// Requests that wait for the end of a pass.
#[derive(Debug, Default)]
pub(super) struct Plug {
    /// Sectors of the largest request that the elevators of the members make; `None` for members
    /// without elevators.
    elevators: Option<u64>,
    requests: Vec<PluggedIo>,
    /// True if the plug has seen requests of several members since it was started.
    several: bool,
    /// True if the request at the same index was sent; kept to reuse the allocated memory.
    sent: Vec<bool>,
}

impl Plug {
    pub(super) fn new(elevators: Option<u64>) -> Plug {
        Plug {
            elevators,
            ..Plug::default()
        }
    }

    /// Begins a pass.
    pub(super) fn start(&mut self) {
        debug_assert!(
            self.requests.is_empty(),
            "the plug of the last pass was emptied"
        );
        self.several = false;
    }

    /// Adds an I/O of one page. `join` links the part of the second argument behind the list of
    /// parts in the first. `send` takes requests when the plug empties itself.
    pub(super) fn add(
        &mut self,
        io: PluggedIo,
        largest: u64,
        join: &mut dyn FnMut(u32, u32),
        send: &mut dyn FnMut(PluggedIo),
    ) {
        if let Some(other) = self.candidate(io.member)
            && merges(&self.requests[other], &io, largest)
        {
            let other = &mut self.requests[other];
            join(other.parts.1, io.parts.0);
            other.parts.1 = io.parts.1;
            other.start = other.start.min(io.start);
            other.sectors += io.sectors;
            return;
        }
        let most = match self.several {
            true => REQUESTS_MAX_OF_SEVERAL,
            false => REQUESTS_MAX,
        };
        if self.requests.len() >= most
            || self
                .requests
                .last()
                .is_some_and(|last| last.sectors >= LONG)
        {
            self.empty(join, send);
        }
        // An emptied plug has no latest request, so another member is not "several" then (`last =
        // NULL` in the kernel).
        if self
            .requests
            .last()
            .is_some_and(|last| last.member != io.member)
        {
            self.several = true;
        }
        self.requests.push(io);
    }

    /// Returns the index of the only request that a new I/O of `member` is compared with.
    fn candidate(&self, member: u32) -> Option<usize> {
        let last = self.requests.last()?;
        if last.member == member {
            return Some(self.requests.len() - 1);
        }
        // The kernel searches the list only with `multiple_queues`.
        if !self.several {
            return None;
        }
        self.requests
            .iter()
            .position(|other| other.member == member)
    }

    /// Joins requests as the elevators of the members do (`elv_attempt_insert_merge`).
    fn insert(&mut self, largest: u64, join: &mut dyn FnMut(u32, u32)) {
        let mut kept = 0;
        for at in 0..self.requests.len() {
            let (earlier, later) = self.requests.split_at_mut(at);
            let io = &later[0];
            let before = earlier[..kept].iter_mut().find(|other| {
                other.member == io.member
                    && other.start + other.sectors == io.start
                    && merges(other, io, largest)
            });
            match before {
                Some(other) => {
                    join(other.parts.1, io.parts.0);
                    other.parts.1 = io.parts.1;
                    other.sectors += io.sectors;
                }
                None => {
                    // Before the first request that was joined, each stays where it is.
                    if kept < at {
                        earlier[kept] = *io;
                    }
                    kept += 1;
                }
            }
        }
        self.requests.truncate(kept);
    }

    /// Sends all requests.
    pub(super) fn empty(
        &mut self,
        join: &mut dyn FnMut(u32, u32),
        send: &mut dyn FnMut(PluggedIo),
    ) {
        if let Some(largest) = self.elevators {
            self.insert(largest, join);
        }
        self.sent.clear();
        self.sent.resize(self.requests.len(), false);
        // A plug holds 64 requests at most, so a search for each request is cheap.
        for first in 0..self.requests.len() {
            let member = self.requests[first].member;
            for at in first..self.requests.len() {
                if !self.sent[at] && self.requests[at].member == member {
                    self.sent[at] = true;
                    send(self.requests[at]);
                }
            }
        }
        self.requests.clear();
    }
}

/// True if `io` continues `other` at its end or its beginning, and both fit into one request.
fn merges(other: &PluggedIo, io: &PluggedIo, largest: u64) -> bool {
    let adjacent = other.start + other.sectors == io.start || io.start + io.sectors == other.start;
    other.operation == io.operation && adjacent && other.sectors + io.sectors <= largest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(member: u32, page: u64) -> PluggedIo {
        PluggedIo {
            member,
            operation: Operation::Read,
            start: page * 8,
            sectors: 8,
            parts: (NONE, NONE),
            origin: 0,
            hints: Hints::default(),
        }
    }

    /// Adds pages and returns the requests in the order of sending, as member, page and pages.
    fn sent(ios: impl IntoIterator<Item = PluggedIo>) -> Vec<(u32, u64, u64)> {
        let (mut plug, mut sent) = (Plug::default(), Vec::new());
        let mut send = |io: PluggedIo| sent.push((io.member, io.start / 8, io.sectors / 8));
        plug.start();
        for io in ios {
            plug.add(io, 255, &mut |_, _| (), &mut send);
        }
        plug.empty(&mut |_, _| (), &mut send);
        sent
    }

    #[test]
    fn elevators_join_requests_of_a_plug() {
        // The kernel with mq-deadline (`tools/kernel-lab.py`): 124K, 68K and 64K of the same write
        // that is 124K, 4K, 64K and 64K without an elevator.
        let row = |row: u64| {
            [4, 0]
                .into_iter()
                .flat_map(move |member| (0..16).map(move |number| page(member, row * 16 + number)))
        };
        let (mut plug, mut sent) = (Plug::new(Some(255)), Vec::new());
        let mut send = |io: PluggedIo| sent.push((io.member, io.start / 8, io.sectors / 8));
        plug.start();
        for io in (0..4).flat_map(row) {
            plug.add(io, 255, &mut |_, _| (), &mut send);
        }
        plug.empty(&mut |_, _| (), &mut send);
        sent.retain(|io| io.0 == 4);
        assert_eq!(sent, [(4, 0, 31), (4, 31, 17), (4, 48, 16)]);
    }

    #[test]
    fn only_the_first_request_of_a_member_grows_when_members_alternate() {
        // `members.txt` of the oracle: a degraded read of 1 MiB on members with requests of at most
        // 255 sectors is 124K, fifteen single pages, and 8K after the plug has emptied itself.
        let pages = (0..48).flat_map(|number| [4, 3, 2, 0].map(|member| page(member, number)));
        let of_4: Vec<_> = sent(pages).into_iter().filter(|io| io.0 == 4).collect();
        let singles = (31..46).map(|number| (4, number, 1));
        let expected: Vec<_> = [(4, 0, 31)]
            .into_iter()
            .chain(singles)
            .chain([(4, 46, 2)])
            .collect();
        assert_eq!(of_4, expected);
    }

    #[test]
    fn the_latest_request_grows_when_one_member_is_written_for_long() {
        let row = |row: u64| {
            [4, 0]
                .into_iter()
                .flat_map(move |member| (0..16).map(move |number| page(member, row * 16 + number)))
        };
        let of_4: Vec<_> = sent((0..4).flat_map(row))
            .into_iter()
            .filter(|io| io.0 == 4)
            .collect();
        assert_eq!(of_4, [(4, 0, 31), (4, 31, 1), (4, 32, 16), (4, 48, 16)]);
    }

    #[test]
    fn requests_of_one_member_are_sent_together() {
        let order = [page(2, 9), page(1, 9), page(2, 5), page(1, 10)];
        assert_eq!(sent(order), [(2, 9, 1), (2, 5, 1), (1, 9, 2)]);
    }
}
