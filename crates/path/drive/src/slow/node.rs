//! The node around a drive that answers late.

use super::clock::{ONE, Pace, StretchedClock};
use super::config::{FACTOR_MAX, Slowness};
use super::periods::{PeriodState, Periods};
use fullstroke_contract::{
    Breakdown, Completion, Counters, Draw, Effect, Effects, Extent, Gauge, LayerOrder,
    LayerReadings, Node, NodeContext, Notice, Operation, Port, PowerState, QueueOrder, Refusal,
    Request, RequestId, RequestStatus, Slots, Wake,
};
use fullstroke_units::{Duration, Time};
use std::collections::{HashMap, VecDeque};

/// A drive that answers late.
///
/// - **Events in**: `submit`, `wake`, `ordered`.
/// - **Effects out**: the completions and notices of the drive inside, at the times outside.
///
/// Invariants: completions leave in the order of their times. The parts of a breakdown add up to
/// the response time outside.
pub(crate) struct SlowDrive {
    drive: Box<dyn Node>,
    slowness: Slowness,
    clock: StretchedClock,
    periods: Periods,
    ordered: OrderedSlowness,
    /// Effects of the drive inside; empty between events.
    inside: Effects,
    slots: Slots<RequestOutside>,
    /// The slot of each request; `None` if nobody gives orders about requests.
    slot_of: Option<HashMap<u64, u32>>,
    /// Completions that wait for their times, in order.
    held: VecDeque<Completion>,
    draw: Option<Draw>,
    idle_since: Time,
    counts: SlowCounts,
}

/// A request, as the layer above knows it.
#[derive(Clone, Copy, Debug)]
struct RequestOutside {
    id: RequestId,
    operation: Operation,
    extent: Extent,
    submitted: Time,
}

/// Slowness by order.
#[derive(Clone, Copy, Debug, Default)]
struct OrderedSlowness {
    /// Factor in thousandths, and the time of the order. `None` for no order, or an ended one.
    now: Option<(u64, Time)>,
    /// Length of all ended orders.
    before: Duration,
    /// Number of orders that made the drive slow.
    count: u64,
}

impl OrderedSlowness {
    /// Returns the time under orders until `now`.
    fn spent(&self, now: Time) -> Duration {
        let present = self
            .now
            .map_or(Duration::ZERO, |(_, since)| now.saturating_since(since));
        self.before.saturating_add(present)
    }
}

/// Totals that the drive inside cannot know.
#[derive(Clone, Copy, Debug, Default)]
struct SlowCounts {
    /// Last event, and the time inside then.
    last: Time,
    last_inside: Time,
    /// Time that the clock inside lost while requests were in the drive, and in all.
    lost_busy: Duration,
    lost: Duration,
    /// Waiting times and overheads that were added to the parts of the drive inside.
    queue: Duration,
    overhead: Duration,
    /// Integral of the number of requests over time.
    queue_length_ns: u128,
    recovered: u64,
    unreadable: u64,
}

impl SlowDrive {
    pub(crate) fn new(drive: Box<dyn Node>, slowness: &Slowness, draw: Option<Draw>) -> SlowDrive {
        SlowDrive {
            drive,
            clock: StretchedClock::new(),
            periods: Periods::new(slowness),
            ordered: OrderedSlowness::default(),
            slowness: slowness.clone(),
            inside: Effects::new(),
            slots: Slots::default(),
            slot_of: None,
            held: VecDeque::new(),
            draw,
            idle_since: Time::ZERO,
            counts: SlowCounts::default(),
        }
    }

    /// Returns the same drive, which takes orders about its requests.
    pub(crate) fn managed(self, is_managed: bool) -> SlowDrive {
        let slot_of = is_managed.then(HashMap::new);
        SlowDrive { slot_of, ..self }
    }

    /// Ends the retries of the last held request at `now`, without data.
    fn end_retries(&mut self, now: Time) {
        let Some(held) = self.held.back_mut() else {
            return;
        };
        let cut = held.finished.saturating_since(now);
        held.finished = held.finished.min(now);
        held.status = RequestStatus::Lost;
        let parts = &mut held.breakdown;
        parts.rotation = parts.rotation.saturating_sub(cut);
        // The overhead has the rounding of the other parts.
        let others = parts.response().saturating_sub(parts.overhead);
        parts.overhead = held.finished.since(held.submitted).saturating_sub(others);
        self.clock.release(now);
        self.counts.recovered = self.counts.recovered.saturating_sub(1);
        self.counts.unreadable += 1;
    }

    /// Number of requests in the drive, held completions included.
    fn in_flight(&self) -> usize {
        self.slots.len() + self.held.len()
    }

    /// Counts the time until `now`.
    fn pass(&mut self, now: Time) {
        let inside = self.clock.inner_at(now);
        let in_flight = self.in_flight();
        let counts = &mut self.counts;
        let passed = now.saturating_since(counts.last);
        let lost = passed.saturating_sub(inside.saturating_since(counts.last_inside));
        counts.lost += lost;
        if in_flight > 0 {
            counts.lost_busy += lost;
        }
        counts.queue_length_ns += u128::from(passed.as_nanos()) * in_flight as u128;
        (counts.last, counts.last_inside) = (now.max(counts.last), inside);
    }

    /// Carries out everything due by `now`, each at its time.
    fn advance(&mut self, now: Time, out: &mut Effects) {
        loop {
            let event = self.drive.next_wake().at();
            let due = self.clock.outer_of(event);
            let held = self.held.front().map_or(Time::NEVER, |held| held.finished);
            let next = due.min(held).min(self.periods.next);
            if next > now {
                return self.pass(now);
            }
            self.pass(next.max(self.counts.last));
            if held == next {
                if let Some(completion) = self.held.pop_front() {
                    self.idle_since = completion.finished;
                    out.complete(completion);
                }
            } else if self.periods.next == next {
                self.periods.change();
                self.clock.set(next, self.pace());
            } else {
                let event = event.max(self.clock.inner_at(next));
                self.drive
                    .wake(event, &mut NodeContext::alone(&mut self.inside));
                self.take(out);
            }
        }
    }

    /// Speed of the clock inside in the present state.
    fn pace(&self) -> Pace {
        match (self.periods.state, self.ordered.now) {
            (PeriodState::Stalled, _) => Pace::Standing,
            (_, Some((factor, _))) => Pace::Factor(factor),
            (PeriodState::Slow, None) if self.slowness.area.is_none() => {
                Pace::Factor(self.slowness.factor)
            }
            _ => Pace::Factor(ONE),
        }
    }

    /// Takes the effects of the drive inside.
    fn take(&mut self, out: &mut Effects) {
        let mut inside = std::mem::take(&mut self.inside);
        for effect in inside.drain() {
            match effect {
                Effect::Complete { completion, .. } => self.completed_inside(&completion),
                Effect::Notice { port, notice } => {
                    let at = match notice.at {
                        Time::NEVER => Time::NEVER,
                        at => self.clock.outer_of(at).min(self.counts.last),
                    };
                    out.notice(port, Notice { at, ..notice });
                }
                Effect::Issue { .. } => unreachable!("a drive has no lower port"),
            }
        }
        self.inside = inside;
    }

    /// Takes a completion of the drive inside. Holds the drive if the request takes longer.
    fn completed_inside(&mut self, completion: &Completion) {
        let request = self.slots.take(completion.id.0 as u32);
        if let Some(slots) = &mut self.slot_of {
            slots.remove(&request.id.0);
        }
        let ended = (self.clock.outer_of(completion.finished))
            .max(request.submitted)
            .max(self.held.back().map_or(Time::ZERO, |held| held.finished));
        let (longer, status) = self.longer(&request, completion);
        let finished = ended.saturating_add(longer);
        if longer > Duration::ZERO {
            self.clock.hold(
                completion.finished.max(self.clock.inner_at(ended)),
                finished,
            );
        }
        let breakdown = stretched(
            completion.breakdown,
            finished.since(request.submitted),
            longer,
        );
        if request.operation.transfers() {
            self.counts.queue += breakdown.queue.saturating_sub(completion.breakdown.queue);
            self.counts.overhead += breakdown
                .overhead
                .saturating_sub(completion.breakdown.overhead);
        }
        self.held.push_back(Completion {
            id: request.id,
            submitted: request.submitted,
            finished,
            status,
            breakdown,
        });
    }

    /// Returns the time by which the request takes longer than in the drive inside, apart from the
    /// stretched clock, and the status.
    fn longer(
        &mut self,
        request: &RequestOutside,
        completion: &Completion,
    ) -> (Duration, RequestStatus) {
        let status = completion.status;
        let slow = self.periods.state == PeriodState::Slow;
        if !slow || !request.operation.transfers() || status != RequestStatus::Done {
            return (Duration::ZERO, status);
        }
        let (start, end) = (request.extent.start.0, request.extent.end().0);
        let mut longer = Duration::ZERO;
        if let Some(area) = &self.slowness.area
            && start < area.end
            && area.start < end
        {
            let service = completion.breakdown.service().as_nanos();
            let more = u128::from(service) * u128::from(self.slowness.factor - ONE);
            longer += Duration::from_nanos((more / u128::from(ONE)) as u64);
        }
        if self.slowness.bad.range(start..end).next().is_none() {
            return (longer, status);
        }
        if request.operation == Operation::Write {
            // The drive puts the data on a spare sector, or on the same sector with success.
            let mended: Vec<u64> = self.slowness.bad.range(start..end).copied().collect();
            mended
                .iter()
                .for_each(|lbn| _ = self.slowness.bad.remove(lbn));
            return (longer, status);
        }
        match self.slowness.erc {
            Some(limit) if limit < self.slowness.recovery => {
                self.counts.unreadable += 1;
                (longer + limit, RequestStatus::Lost)
            }
            _ => {
                self.counts.recovered += 1;
                (longer + self.slowness.recovery, status)
            }
        }
    }
}

/// Returns the parts of a response time of `response`, of which `longer` are retries. The other
/// parts keep their shares.
fn stretched(inside: Breakdown, response: Duration, longer: Duration) -> Breakdown {
    let short = inside.response().as_nanos();
    let rest = response.saturating_sub(longer);
    if rest.as_nanos() == short {
        let rotation = inside.rotation + longer;
        return Breakdown { rotation, ..inside };
    }
    let part = |part: Duration| {
        let share = u128::from(part.as_nanos()) * u128::from(rest.as_nanos());
        Duration::from_nanos((share / u128::from(short.max(1))) as u64)
    };
    let mut parts = Breakdown {
        queue: part(inside.queue),
        parity: part(inside.parity),
        overhead: Duration::ZERO,
        seek: part(inside.seek),
        rotation: part(inside.rotation) + longer,
        transfer: part(inside.transfer),
        seek_cylinders: inside.seek_cylinders,
    };
    // The overhead has the rounding of the other parts.
    parts.overhead = response.saturating_sub(parts.response());
    parts
}

impl Node for SlowDrive {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        self.advance(now, cx.out);
        let slot = self.slots.keep(RequestOutside {
            id: request.id,
            operation: request.operation,
            extent: request.extent,
            submitted: now,
        });
        if let Some(slots) = &mut self.slot_of {
            slots.insert(request.id.0, slot);
        }
        let id = RequestId(u64::from(slot));
        let inside = self.clock.inner_at(now);
        self.drive.submit(
            inside,
            Port::FIRST,
            Request { id, ..request },
            &mut NodeContext::alone(&mut self.inside),
        );
        self.take(cx.out);
        self.advance(now, cx.out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.advance(now, cx.out);
    }

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        let LayerOrder::Slow { thousandths } = order else {
            return Err(Refusal("a drive does not manage members".into()));
        };
        let factor = u64::from(thousandths);
        if !(ONE..=FACTOR_MAX as u64 * ONE).contains(&factor) {
            let found = factor as f64 / ONE as f64;
            let message = format!("found the factor {found}; expected 1 to {FACTOR_MAX}");
            return Err(Refusal(message));
        }
        self.advance(now, cx.out);
        let ordered = &mut self.ordered;
        ordered.before = ordered.spent(now);
        ordered.now = (factor > ONE).then_some((factor, now));
        ordered.count += u64::from(factor > ONE);
        self.clock.set(now, self.pace());
        Ok(())
    }

    /// A request under retries is no longer in the drive inside. An abort ends the retries.
    fn manage(
        &mut self,
        now: Time,
        id: RequestId,
        order: QueueOrder,
        cx: &mut NodeContext<'_>,
    ) -> bool {
        self.advance(now, cx.out);
        if order == QueueOrder::Abort && self.held.back().is_some_and(|held| held.id == id) {
            self.end_retries(now);
            self.advance(now, cx.out);
            return true;
        }
        let slots = self.slot_of.as_ref();
        let Some(&slot) = slots.and_then(|slots| slots.get(&id.0)) else {
            return false;
        };
        let inner = self.clock.inner_at(now);
        let managed = self.drive.manage(
            inner,
            RequestId(slot.into()),
            order,
            &mut NodeContext::alone(&mut self.inside),
        );
        self.take(cx.out);
        self.advance(now, cx.out);
        managed
    }

    fn next_wake(&self) -> Wake {
        let inside = self.drive.next_wake();
        let held = self.held.front().map_or(Time::NEVER, |held| held.finished);
        if inside.at() == Time::NEVER && held == Time::NEVER {
            return Wake::NEVER;
        }
        let at = self.clock.outer_of(inside.at()).min(held);
        let at = at.min(self.periods.next);
        if inside.is_work() || held < Time::NEVER {
            Wake::Work(at)
        } else {
            Wake::Chore(at)
        }
    }

    fn gauge(&self) -> Gauge {
        let in_flight = self.in_flight();
        Gauge {
            queue_length: in_flight as u32,
            idle_since: (in_flight == 0).then_some(self.idle_since),
            ..self.drive.gauge()
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        let mut inside = Counters::default();
        self.drive.count(self.clock.inner_at(now), &mut inside);
        let counts = &self.counts;
        // Time since the last event, up to which the totals count.
        let passed = now.saturating_since(counts.last);
        let lost =
            passed.saturating_sub((self.clock.inner_at(now)).saturating_since(counts.last_inside));
        let in_flight = self.in_flight();
        let busy = if in_flight > 0 { lost } else { Duration::ZERO };
        for drive in &mut inside.drives {
            drive.busy += counts.lost_busy + busy;
            drive.queue += counts.queue;
            drive.overhead += counts.overhead;
            drive.queue_length_ns =
                counts.queue_length_ns + u128::from(passed.as_nanos()) * in_flight as u128;
            drive.power = drive.power.map(|power| match &self.draw {
                Some(draw) => power.staying(draw, PowerState::Rotate, counts.lost + lost),
                None => power,
            });
        }
        counters.drives.append(&mut inside.drives);
        counters.layers.append(&mut inside.layers);
        // A drive that could be made slow, and never was, reports nothing.
        if self.slowness.is_none() && self.ordered.count == 0 {
            return;
        }
        let spent = self
            .periods
            .spent(now)
            .saturating_add(self.ordered.spent(now));
        counters.layers.push(LayerReadings::new(
            "slow",
            &[
                ("slow_s", spent.as_secs_f64()),
                ("slow_stalls", self.periods.stalls as f64),
                ("slow_recovered", counts.recovered as f64),
                ("slow_unreadable", counts.unreadable as f64),
            ],
        ));
    }
}
