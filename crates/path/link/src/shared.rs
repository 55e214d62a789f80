//! A medium for one port at a time: the next port, and the duration of its use.

use crate::LinkStatistics;
use crate::link::Link;
use crate::queues::{RankedQueues, WaitingTransfer};
use crate::transfer::{DeliveredTransfer, LinkTransfer, Station};
use fullstroke_units::{Duration, Time};
use std::collections::VecDeque;

/// Differences between shared media. All times are closed forms: a tenancy is one event, whatever
/// its number of frames.
pub(crate) trait Protocol: Send {
    /// The host and the members.
    fn ports(&self) -> usize;
    /// Priority of a port, from 0 (highest) to 127.
    fn rank(&self, port: Station) -> u32;
    /// True if a winner lets all other ports win before the next request of the winner.
    fn is_fair(&self) -> bool;
    /// Time from a free medium until the sender has the medium. `holder` had the medium before;
    /// `None` means no holder, or that all ports must ask again.
    fn arbitration(&self, holder: Option<Station>, transfer: &LinkTransfer) -> Duration;
    /// Time from then until the last word reaches the receiver. For a continuation of a tenancy,
    /// the time since the previous transfer.
    fn carry(&self, transfer: &LinkTransfer, goes_on: bool) -> Duration;
    /// Time from then until the medium is free.
    fn closing(&self, transfer: &LinkTransfer) -> Duration;
    /// Bytes besides the data.
    fn overhead(&self, transfer: &LinkTransfer, goes_on: bool) -> u64;
}

/// The medium and its ports.
///
/// Invariants after each event:
///
/// - The first port to ask for a free medium gets the medium. Other ports may ask during the
///   hand-over, and wait.
/// - When the medium becomes free, the waiting port of the highest rank gets the medium. With
///   fairness, only ports without the medium in this access window count. If no such port waits, a
///   new window starts.
/// - A tenancy carries one transfer. Further transfers of the same exchange to the same port may
///   follow if they are next in the queue before the last arrival.
pub(crate) struct SharedMedium<P> {
    protocol: P,
    queues: RankedQueues,
    /// Ranks that had the medium in this access window.
    served: u128,
    /// The last transfer.
    last: Option<LinkTransfer>,
    /// Arrival of the last transfer at the receiver.
    arrives: Time,
    /// Start of the time in which the medium is free.
    free: Time,
    /// Transfers in flight, in order of arrival.
    under_way: VecDeque<DeliveredTransfer>,
    statistics: LinkStatistics,
    now: Time,
}

impl<P: Protocol> SharedMedium<P> {
    pub(crate) fn new(protocol: P) -> SharedMedium<P> {
        SharedMedium {
            queues: RankedQueues::new(),
            protocol,
            served: 0,
            last: None,
            arrives: Time::ZERO,
            free: Time::ZERO,
            under_way: VecDeque::with_capacity(4),
            statistics: LinkStatistics {
                lanes: 1,
                ..LinkStatistics::default()
            },
            now: Time::ZERO,
        }
    }

    /// Assigns the medium at every free instant until `now`.
    fn catch_up(&mut self, now: Time) {
        while self.queues.occupied() != 0 && self.free <= now {
            self.choose();
        }
        self.now = self.now.max(now);
    }

    /// Chooses a port: the medium is free and a port waits.
    fn choose(&mut self) {
        let waiting = self.queues.occupied();
        let mut holder = self.last.map(|last| last.from);
        let mut candidates = waiting;
        if self.protocol.is_fair() {
            candidates = waiting & !self.served;
            if candidates == 0 {
                // All waiting ports have had the medium in this window. A new window begins (access
                // fairness of FC-AL-2).
                self.served = 0;
                candidates = waiting;
                // The holder need not ask again if no other port waits.
                holder = holder.filter(|&port| waiting == 1 << self.protocol.rank(port));
            }
        }
        // Rank 0 is the highest priority and the lowest bit.
        self.grant(candidates.trailing_zeros(), holder, self.free);
    }

    /// Gives the medium, which is free at `at`, to the port of this rank.
    fn grant(&mut self, rank: u32, holder: Option<Station>, at: Time) {
        let Some(waiting) = self.queues.pop(rank) else {
            return;
        };
        self.served |= 1 << rank;
        debug_assert!(
            at >= waiting.offered,
            "rank {rank} has the medium at {at:?}, before it asks at {:?}",
            waiting.offered
        );
        self.arrives = at + self.protocol.arbitration(holder, &waiting.transfer);
        self.statistics.tenancies += 1;
        self.carry(waiting, false);
        self.statistics.busy += self.free.since(at);
        self.go_on(rank);
    }

    /// Carries continuations at the end of the last transfer.
    fn go_on(&mut self, rank: u32) {
        while let (Some(last), Some(next)) = (self.last, self.queues.first(rank))
            && next.transfer.continues(&last)
            && let Some(next) = self.queues.pop(rank)
        {
            let free = self.free;
            self.carry(next, true);
            self.statistics.busy += self.free.since(free);
        }
    }

    fn carry(&mut self, waiting: WaitingTransfer, goes_on: bool) {
        let WaitingTransfer { offered, transfer } = waiting;
        let began = self.arrives;
        self.arrives = began + self.protocol.carry(&transfer, goes_on);
        self.free = self.arrives + self.protocol.closing(&transfer);
        self.last = Some(transfer);
        let overhead = self.protocol.overhead(&transfer, goes_on);
        self.statistics
            .count(&transfer, overhead, began.since(offered));
        assert!(
            offered <= began
                && self
                    .under_way
                    .back()
                    .is_none_or(|last| last.finished <= self.arrives),
            "a transfer of {offered:?} begins at {began:?} and arrives at {:?}, out of turn",
            self.arrives
        );
        self.under_way.push_back(DeliveredTransfer {
            token: transfer.token,
            offered,
            began,
            finished: self.arrives,
        });
    }
}

impl<P: Protocol> Link for SharedMedium<P> {
    fn offer(&mut self, now: Time, transfer: LinkTransfer) {
        assert_ne!(transfer.from, transfer.to, "a port does not send to itself");
        let highest = transfer.from.max(transfer.to);
        assert!(
            (highest.0 as usize) < self.protocol.ports(),
            "{highest:?} is no port of this link"
        );
        self.catch_up(now);
        let rank = self.protocol.rank(transfer.from);
        self.queues.push(
            rank,
            WaitingTransfer {
                offered: now,
                transfer,
            },
        );
        // Only a port that finds the medium free takes it at once. A port that asks during a
        // tenancy is chosen when the medium becomes free.
        if self.free <= now {
            // The access window ends with an idle medium: all ports may ask.
            self.served = 0;
            self.grant(rank, None, now);
        // The connection is still open until the last word has arrived.
        } else if now < self.arrives {
            self.go_on(rank);
        }
    }

    fn next_wake(&self) -> Time {
        let given = if self.queues.occupied() == 0 {
            Time::NEVER
        } else {
            self.free
        };
        self.under_way
            .front()
            .map_or(given, |first| first.finished.min(given))
    }

    fn advance(&mut self, now: Time, delivered: &mut Vec<DeliveredTransfer>) {
        self.catch_up(now);
        while let Some(&first) = self.under_way.front()
            && first.finished <= now
        {
            self.under_way.pop_front();
            delivered.push(first);
        }
    }

    /// Busy time after the latest call is not counted yet.
    fn statistics(&self) -> LinkStatistics {
        let busy = self
            .statistics
            .busy
            // The whole tenancy is counted when it begins. The part after the latest call is in the
            // future, and is taken off.
            .saturating_sub(self.free.saturating_since(self.now));
        LinkStatistics {
            busy,
            ..self.statistics
        }
    }
}
