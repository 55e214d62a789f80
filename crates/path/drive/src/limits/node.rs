//! The node around a drive whose commands have duration limits.

use super::config::{DurationLimit, LimitPolicy, Limits};
use fullstroke_contract::{
    Breakdown, Completion, Counters, Effect, Effects, Gauge, LayerOrder, LayerReadings, Node,
    NodeContext, Operation, Port, QueueOrder, Refusal, Request, RequestId, RequestStatus, Slots,
    Wake,
};
use fullstroke_units::Time;
use std::collections::BTreeSet;

/// A drive whose commands have duration limits.
///
/// - **Events in**: `submit`, `wake`, `ordered`.
/// - **Effects out**: the effects of the drive inside, and the answers to commands whose limit has
///   passed.
///
/// Invariants: each command is answered once. The parts of a breakdown add up to the response time.
pub(crate) struct LimitedDrive {
    drive: Box<dyn Node>,
    limits: Limits,
    /// Effects of the drive inside; empty between events.
    inside: Effects,
    slots: Slots<LimitedCommand>,
    /// Alarms, each with its command.
    alarms: BTreeSet<(Time, Alarm, u32)>,
    /// Commands with a limit of their work that have not begun.
    inactive: Vec<u32>,
    /// Commands in the drive.
    in_flight: u32,
    counts: LimitCounts,
}

/// A command, as the layer above knows it.
#[derive(Clone, Copy, Debug)]
struct LimitedCommand {
    request: Request,
    submitted: Time,
    limit: Option<DurationLimit>,
    /// True if the command has been answered before its end in the drive.
    answered: bool,
}

/// What is due at the time of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// A limit ends soon: the command goes next.
    Hurry,
    Inactive,
    Active,
    Duration,
}

/// Numbers of events.
#[derive(Clone, Copy, Debug, Default)]
struct LimitCounts {
    limited: u64,
    hurried: u64,
    late: u64,
    aborted: u64,
}

impl LimitedDrive {
    pub(crate) fn new(drive: Box<dyn Node>, limits: &Limits) -> LimitedDrive {
        LimitedDrive {
            drive,
            limits: limits.clone(),
            inside: Effects::new(),
            slots: Slots::default(),
            alarms: BTreeSet::new(),
            inactive: Vec::new(),
            in_flight: 0,
            counts: LimitCounts::default(),
        }
    }

    /// Returns the limit of a command.
    fn limit(&self, request: &Request) -> Option<DurationLimit> {
        let limits = match request.operation {
            Operation::Read => &self.limits.read,
            Operation::Write => &self.limits.write,
            _ => return None,
        };
        let holds =
            |limit: &&DurationLimit| limit.class.is_none_or(|class| class == request.hints.class);
        limits.iter().find(holds).copied()
    }

    /// Sets the alarms of a command that has come.
    fn set_alarms(&mut self, now: Time, slot: u32, limit: &DurationLimit) {
        let spans = [
            (Alarm::Inactive, limit.inactive),
            (Alarm::Duration, limit.duration),
        ];
        for (alarm, span) in spans {
            if let Some(span) = span {
                let end = now.saturating_add(span);
                self.alarms.insert((end, alarm, slot));
                let early = span.saturating_sub(self.limits.ahead);
                self.alarms
                    .insert((now.saturating_add(early), Alarm::Hurry, slot));
            }
        }
        if limit.active.is_some() {
            self.inactive.push(slot);
        }
    }

    /// Carries out everything due by `now`, each at its time.
    fn advance(&mut self, now: Time, out: &mut Effects) {
        loop {
            let event = self.drive.next_wake().at();
            let alarm = self.alarms.first().map_or(Time::NEVER, |first| first.0);
            if event.min(alarm) > now {
                return;
            }
            // A command that ends with its limit has kept the limit.
            if event <= alarm {
                self.drive
                    .wake(event, &mut NodeContext::alone(&mut self.inside));
                self.take(event, out);
            } else if let Some((at, alarm, slot)) = self.alarms.pop_first() {
                self.due(at, alarm, slot, out);
            }
        }
    }

    fn manage_inside(&mut self, now: Time, slot: u32, order: QueueOrder) -> bool {
        let id = RequestId(slot.into());
        self.drive
            .manage(now, id, order, &mut NodeContext::alone(&mut self.inside))
    }

    /// Handles an alarm.
    fn due(&mut self, now: Time, alarm: Alarm, slot: u32, out: &mut Effects) {
        let command = self.slots[slot];
        let Some(limit) = command.limit.filter(|_| !command.answered) else {
            return;
        };
        let (policy, waits_only) = match alarm {
            Alarm::Hurry => {
                let hurried = self.manage_inside(now, slot, QueueOrder::Hurry);
                self.counts.hurried += u64::from(hurried);
                return self.take(now, out);
            }
            Alarm::Inactive => (limit.inactive_policy, true),
            Alarm::Active => (limit.active_policy, false),
            Alarm::Duration => (limit.duration_policy, false),
        };
        if waits_only && !self.manage_inside(now, slot, QueueOrder::Ask) {
            return;
        }
        if policy == LimitPolicy::Complete {
            self.counts.late += 1;
            return;
        }
        self.counts.aborted += 1;
        if self.manage_inside(now, slot, QueueOrder::Abort) {
            return self.take(now, out);
        }
        // The arm ends its access, and the answer does not wait for the arm.
        self.slots[slot].answered = true;
        LimitedDrive::answer(now, &command, out);
    }

    /// Answers a command at its limit.
    fn answer(now: Time, command: &LimitedCommand, out: &mut Effects) {
        out.complete(Completion {
            id: command.request.id,
            submitted: command.submitted,
            finished: now,
            status: RequestStatus::Lost,
            breakdown: Breakdown {
                queue: now.since(command.submitted),
                ..Breakdown::default()
            },
        });
    }

    /// Takes the effects of the drive inside at `now`.
    fn take(&mut self, now: Time, out: &mut Effects) {
        let mut inside = std::mem::take(&mut self.inside);
        for effect in inside.drain() {
            match effect {
                Effect::Complete { completion, .. } => self.completed_inside(&completion, out),
                Effect::Notice { port, notice } => out.notice(port, notice),
                Effect::Issue { .. } => unreachable!("a drive has no lower port"),
            }
        }
        self.inside = inside;
        self.note_begun(now);
    }

    fn completed_inside(&mut self, completion: &Completion, out: &mut Effects) {
        let slot = completion.id.0 as u32;
        let command = self.slots.take(slot);
        self.in_flight -= 1;
        self.inactive.retain(|&other| other != slot);
        self.alarms.retain(|&(_, _, other)| other != slot);
        if !command.answered {
            out.complete(Completion {
                id: command.request.id,
                ..*completion
            });
        }
    }

    /// Starts the limits of the work of commands that the drive has begun.
    fn note_begun(&mut self, now: Time) {
        let mut waiting = std::mem::take(&mut self.inactive);
        waiting.retain(|&slot| {
            if self.manage_inside(now, slot, QueueOrder::Ask) {
                return true;
            }
            let command = self.slots[slot];
            if let Some(active) = command.limit.and_then(|limit| limit.active) {
                let end = now.saturating_add(active);
                self.alarms.insert((end, Alarm::Active, slot));
            }
            false
        });
        self.inactive = waiting;
    }
}

impl Node for LimitedDrive {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        self.advance(now, cx.out);
        let limit = self.limit(&request);
        let slot = self.slots.keep(LimitedCommand {
            request,
            submitted: now,
            limit,
            answered: false,
        });
        self.in_flight += 1;
        if let Some(limit) = &limit {
            self.counts.limited += 1;
            self.set_alarms(now, slot, limit);
        }
        let id = RequestId(slot.into());
        self.drive.submit(
            now,
            Port::FIRST,
            Request { id, ..request },
            &mut NodeContext::alone(&mut self.inside),
        );
        self.take(now, cx.out);
        self.advance(now, cx.out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.advance(now, cx.out);
        // The drive inside may catch up with work of its own.
        self.drive
            .wake(now, &mut NodeContext::alone(&mut self.inside));
        self.take(now, cx.out);
    }

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        self.advance(now, cx.out);
        let ordered = self
            .drive
            .ordered(now, order, &mut NodeContext::alone(&mut self.inside));
        self.take(now, cx.out);
        ordered
    }

    fn next_wake(&self) -> Wake {
        let alarm = self.alarms.first().map_or(Time::NEVER, |first| first.0);
        match self.drive.next_wake() {
            Wake::Work(at) => Wake::Work(at.min(alarm)),
            Wake::Chore(at) if alarm == Time::NEVER => Wake::Chore(at),
            Wake::Chore(at) => Wake::Work(at.min(alarm)),
        }
    }

    fn gauge(&self) -> Gauge {
        self.drive.gauge()
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        self.drive.count(now, counters);
        let counts = &self.counts;
        counters.layers.push(LayerReadings::new(
            "limits",
            &[
                ("limit_commands", counts.limited as f64),
                ("limit_hurried", counts.hurried as f64),
                ("limit_late", counts.late as f64),
                ("limit_aborted", counts.aborted as f64),
            ],
        ));
    }
}
