//! Random orders, failures and requests. The volume must complete every request once, and a repair
//! must always be possible.

use super::Volume;
use super::rebuild::Units;
use crate::proofs::{ProofRequest, asks, cases};
use fullstroke_contract::{
    Completion, Effect, Effects, LayerOrder, MemberState, Node, NodeContext, Notice, Port,
    RebuildSpeed, Request, RequestId, RequestStatus, Signal,
};
use fullstroke_units::{Bytes, Duration, Random, Sectors, Seed, Time};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum StormEvent {
    Ask(ProofRequest),
    Fail(Index),
    Restore(Index, Option<u64>, bool),
    ReAdd(Index),
    Speed(Option<u64>),
    /// A member sends this signal.
    Says(Index, Signal),
    /// Lets this number of events happen.
    Pass(usize),
}

fn events(most: usize) -> impl Strategy<Value = Vec<StormEvent>> {
    let ask = asks(2).prop_map(|mut asks| StormEvent::Ask(asks.remove(0)));
    let rate = prop::option::of(0u64..2_000_000_000_000);
    let signal = prop::sample::select(vec![
        Signal::Failed,
        Signal::Replaced,
        Signal::Returned,
        Signal::Rebuilt {
            member: 0,
            done: Sectors(3),
            used: Sectors(4),
            whole: false,
        },
    ]);
    let event = prop_oneof![
        8 => ask,
        2 => any::<Index>().prop_map(StormEvent::Fail),
        3 => (any::<Index>(), rate.clone(), any::<bool>())
            .prop_map(|(member, rate, accept)| StormEvent::Restore(member, rate, accept)),
        1 => any::<Index>().prop_map(StormEvent::ReAdd),
        1 => rate.prop_map(StormEvent::Speed),
        2 => (any::<Index>(), signal).prop_map(|(member, signal)| StormEvent::Says(member, signal)),
        4 => (0usize..10).prop_map(StormEvent::Pass),
    ];
    prop::collection::vec(event, 1..most)
}

/// A volume under random events.
struct Storm {
    volume: Volume,
    now: Time,
    random: Random,
    /// Member, completion, and time of its report.
    pending: Vec<(usize, Completion, Time)>,
    /// I/O in flight, by member and id.
    ids: BTreeSet<(usize, u64)>,
    submitted: u64,
    done: BTreeSet<u64>,
    /// Latest reported state of the volume.
    answers: bool,
    /// Share of lost member I/Os, in per cent.
    lost_percent: u64,
}

impl Storm {
    fn happen(&mut self, event: StormEvent) {
        match event {
            StormEvent::Ask(ask) => self.ask(&ask),
            StormEvent::Fail(member) => self.order(LayerOrder::Fail {
                member: self.member(member),
            }),
            StormEvent::Restore(member, rate, accept) => {
                self.restore(self.member(member), rate, accept)
            }
            StormEvent::ReAdd(member) => self.order(LayerOrder::ReAdd {
                member: self.member(member),
            }),
            StormEvent::Speed(most) => {
                let speed = RebuildSpeed {
                    most: most.map(Bytes),
                    ..RebuildSpeed::default()
                };
                self.order(LayerOrder::Speed(speed));
            }
            StormEvent::Says(member, signal) => {
                let member = self.member(member);
                self.call(|volume, now, out| {
                    volume.noticed(
                        now,
                        Port::of(member),
                        Notice::new(signal),
                        &mut NodeContext::alone(out),
                    )
                });
            }
            StormEvent::Pass(steps) => (0..steps).for_each(|_| {
                self.step();
            }),
        }
    }

    fn restore(&mut self, member: usize, rate: Option<u64>, accept_data_loss: bool) {
        let (done, rate) = (Sectors::ZERO, rate.map(Bytes));
        self.order(LayerOrder::Restore {
            member,
            done,
            rate,
            accept_data_loss,
        });
    }

    fn member(&self, index: Index) -> usize {
        index.index(self.volume.layout().members())
    }

    fn ask(&mut self, ask: &ProofRequest) {
        let extent = ask.extent(self.volume.layout().capacity().0);
        let origin = self.submitted;
        self.submitted += 1;
        let request = Request {
            id: RequestId(origin),
            origin,
            operation: ask.operation,
            extent,
            ..Request::default()
        };
        self.call(|volume, now, out| {
            volume.submit(now, Port::FIRST, request, &mut NodeContext::alone(out))
        });
    }

    /// Gives an order. A refused order must change nothing.
    fn order(&mut self, order: LayerOrder) {
        self.call(|volume, now, out| {
            // Work that is due by now is done first: it would otherwise count as an effect of the
            // refused order.
            volume.wake(now, &mut NodeContext::alone(out));
            let states = |volume: &Volume| {
                let layout = volume.layout();
                (0..layout.members())
                    .map(|member| layout.member_state(member))
                    .collect::<Vec<_>>()
            };
            let (before, effects) = (states(volume), out.len());
            if volume
                .ordered(now, order, &mut NodeContext::alone(out))
                .is_err()
            {
                assert_eq!(states(volume), before);
                assert_eq!(out.len(), effects);
            }
        });
    }

    fn call(&mut self, event: impl FnOnce(&mut Volume, Time, &mut Effects)) {
        let mut out = Effects::new();
        event(&mut self.volume, self.now, &mut out);
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => self.issue(port.index(), request),
                Effect::Complete { completion, .. } => {
                    assert!(
                        completion.id.0 < self.submitted && self.done.insert(completion.id.0),
                        "once"
                    );
                }
                Effect::Notice {
                    notice:
                        Notice {
                            signal: Signal::Failed,
                            ..
                        },
                    ..
                } => {
                    // A volume reports each change of its state once.
                    assert!(std::mem::replace(&mut self.answers, false))
                }
                Effect::Notice {
                    notice:
                        Notice {
                            signal: Signal::Replaced | Signal::Returned,
                            ..
                        },
                    ..
                } => {
                    assert!(!std::mem::replace(&mut self.answers, true))
                }
                Effect::Notice {
                    notice:
                        Notice {
                            signal:
                                Signal::Rebuilt {
                                    member,
                                    done,
                                    whole,
                                    ..
                                },
                            ..
                        },
                    ..
                } => {
                    assert_eq!(
                        whole,
                        done == self.volume.layout().member_used(member as usize)
                    );
                }
                Effect::Notice { notice, .. } => panic!("{notice:?}"),
            }
        }
        assert_eq!(self.volume.gauge().alive, self.answers);
        assert_eq!(self.volume.layout().answers(), self.answers);
        assert_eq!(
            self.volume.gauge().queue_length as usize,
            self.submitted as usize - self.done.len()
        );
        assert!(
            self.volume.next_wake().at() > self.now,
            "what was due was done"
        );
    }

    fn issue(&mut self, member: usize, request: Request) {
        assert!(
            self.ids.insert((member, request.id.0)),
            "an id names one I/O"
        );
        let lost = self.random.below(100) < self.lost_percent;
        let finished = self.now + Duration::from_nanos(self.random.below(50));
        let completion = Completion {
            id: request.id,
            submitted: self.now,
            finished,
            status: if lost {
                RequestStatus::Lost
            } else {
                RequestStatus::Done
            },
            ..Completion::default()
        };
        self.pending.push((
            member,
            completion,
            finished + Duration::from_nanos(self.random.below(20)),
        ));
    }

    fn step(&mut self) -> bool {
        let next = (0..self.pending.len()).min_by_key(|&at| self.pending[at].2);
        let reported = next.map_or(Time::NEVER, |at| self.pending[at].2);
        let due = self.volume.next_wake().at();
        if due.min(reported) == Time::NEVER {
            return false;
        }
        self.now = self.now.max(due.min(reported));
        if due <= reported {
            self.call(|volume, now, out| volume.wake(now, &mut NodeContext::alone(out)));
        } else {
            let (member, completion, _) = self.pending.swap_remove(next.unwrap());
            self.ids.remove(&(member, completion.id.0));
            self.call(|volume, now, out| {
                volume.completed(
                    now,
                    Port::of(member),
                    completion,
                    &mut NodeContext::alone(out),
                )
            });
        }
        true
    }

    /// Ends the random events and replaces all members that are not alive.
    fn mend(&mut self) {
        // Without further losses, because a repair must succeed only where the members answer.
        self.lost_percent = 0;
        while self.step() {}
        for member in self.volume.layout().member_states().impaired().to_vec() {
            let member = member as usize;
            // Only a failed member can be restored, so a member under rebuild fails first.
            if self.volume.layout().member_state(member) != MemberState::Failed {
                self.order(LayerOrder::Fail { member });
            }
            self.restore(member, None, true);
        }
        while self.step() {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_once_and_every_member_can_be_restored(
        case in cases(), events in events(100), seed: u64, unit in 1u64..16, window in 1usize..5,
        lost_percent in 0u64..20,
    ) {
        let mut volume = Volume::new(case.layout(&[]).unwrap());
        volume.rebuilds.sizes = Units { short: Sectors(unit), long: Sectors(unit), window };
        let mut storm = Storm {
            volume,
            now: Time::ZERO,
            random: Seed(seed).stream("members"),
            pending: Vec::new(),
            ids: BTreeSet::new(),
            submitted: 0,
            done: BTreeSet::new(),
            answers: true,
            lost_percent,
        };
        events.into_iter().for_each(|event| storm.happen(event));
        storm.mend();
        prop_assert_eq!(storm.done.len() as u64, storm.submitted, "nothing is lost in flight");
        prop_assert!(storm.volume.layout().member_states().impaired().is_empty());
        prop_assert!(storm.answers);
        prop_assert_eq!(storm.volume.next_wake().at(), Time::NEVER);
    }
}
