//! A medium that one port at a time may use: who is next, and for how long.

use crate::LinkStatistics;
use crate::queues::{Queues, Waiting};
use crate::transfer::{Delivered, Link, Station, Transfer};
use fullstroke_units::{Duration, Time};
use std::collections::VecDeque;

/// What differs between shared media. All times are closed forms: a tenancy is
/// one event, however many frames it has.
pub(crate) trait Protocol: Send {
    /// The host and the members.
    fn ports(&self) -> usize;
    /// The place of a port in the order of priority, from 0, the highest, to 127.
    fn rank(&self, port: Station) -> u32;
    /// Whether a port that has won lets all others win before it asks again.
    fn is_fair(&self) -> bool;
    /// From the instant at which the medium is free until the sender has it,
    /// where `holder` has had it until then; `None` = nobody has, or all have to
    /// ask anew.
    fn arbitration(&self, holder: Option<Station>, transfer: &Transfer) -> Duration;
    /// From then until the last word is with the receiver; of a transfer that
    /// goes on in a tenancy that has carried another, since the end of that.
    fn carry(&self, transfer: &Transfer, goes_on: bool) -> Duration;
    /// From then until the medium is free.
    fn closing(&self, transfer: &Transfer) -> Duration;
    /// Bytes that it takes besides its data.
    fn overhead(&self, transfer: &Transfer, goes_on: bool) -> u64;
}

/// The medium and its ports.
///
/// What holds after each event:
///
/// - Whoever asks first for a free medium gets it; others may ask while it is
///   being given, and wait.
/// - When it becomes free, the waiting port of the highest rank gets it. With
///   fairness, only ports that have not had it in this access window count; when
///   none of these waits, or nobody does, a new window begins.
/// - A tenancy carries one transfer, and further ones of the same exchange to
///   the same port that stand next in the queue before the last has arrived.
pub(crate) struct Shared<P> {
    protocol: P,
    queues: Queues,
    /// The ranks that have had the medium in this access window.
    served: u128,
    /// What was carried last.
    last: Option<Transfer>,
    /// When that is with its receiver.
    arrives: Time,
    /// When the medium is free after it.
    free: Time,
    /// What is on its way, in order of arrival.
    under_way: VecDeque<Delivered>,
    statistics: LinkStatistics,
    now: Time,
}

impl<P: Protocol> Shared<P> {
    pub(crate) fn new(protocol: P) -> Shared<P> {
        Shared {
            queues: Queues::new(),
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

    /// Gives the medium away whenever it was free until `now`.
    fn catch_up(&mut self, now: Time) {
        while self.queues.occupied() != 0 && self.free <= now {
            self.choose();
        }
        self.now = self.now.max(now);
    }

    /// The medium is free, and some port waits.
    fn choose(&mut self) {
        let waiting = self.queues.occupied();
        let mut holder = self.last.map(|last| last.from);
        let mut candidates = waiting;
        if self.protocol.is_fair() {
            candidates = waiting & !self.served;
            if candidates == 0 {
                self.served = 0;
                candidates = waiting;
                // A holder for whose successor nobody asks need not ask itself.
                holder = holder.filter(|&port| waiting == 1 << self.protocol.rank(port));
            }
        }
        self.give(candidates.trailing_zeros(), holder, self.free);
    }

    /// The port of this rank gets the medium, which is free at `at`.
    fn give(&mut self, rank: u32, holder: Option<Station>, at: Time) {
        let Some(waiting) = self.queues.pop(rank) else {
            return;
        };
        self.served |= 1 << rank;
        self.arrives = at + self.protocol.arbitration(holder, &waiting.transfer);
        self.statistics.tenancies += 1;
        self.carry(waiting, false);
        self.statistics.busy += self.free.since(at);
        self.go_on(rank);
    }

    /// Carries what goes on where the last transfer ends.
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

    fn carry(&mut self, waiting: Waiting, goes_on: bool) {
        let Waiting { offered, transfer } = waiting;
        let began = self.arrives;
        self.arrives = began + self.protocol.carry(&transfer, goes_on);
        self.free = self.arrives + self.protocol.closing(&transfer);
        self.last = Some(transfer);
        let overhead = self.protocol.overhead(&transfer, goes_on);
        self.statistics
            .count(&transfer, overhead, began.since(offered));
        self.under_way.push_back(Delivered {
            token: transfer.token,
            offered,
            began,
            finished: self.arrives,
        });
    }
}

impl<P: Protocol> Link for Shared<P> {
    fn offer(&mut self, now: Time, transfer: Transfer) {
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
            Waiting {
                offered: now,
                transfer,
            },
        );
        if self.free <= now {
            self.served = 0;
            self.give(rank, None, now);
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

    fn advance(&mut self, now: Time, delivered: &mut Vec<Delivered>) {
        self.catch_up(now);
        while let Some(&first) = self.under_way.front()
            && first.finished <= now
        {
            self.under_way.pop_front();
            delivered.push(first);
        }
    }

    /// What is busy beyond the latest call is not counted yet.
    fn statistics(&self) -> LinkStatistics {
        let busy = self
            .statistics
            .busy
            .saturating_sub(self.free.saturating_since(self.now));
        LinkStatistics {
            busy,
            ..self.statistics
        }
    }
}
