//! B-WF2Q+: the order of the queues. Over time each queue gets sectors in proportion to its weight
//! (Valente & Avanzini, "Evolution of the BFQ storage I/O scheduler", 2015; Bennett & Zhang,
//! "Hierarchical packet fair queueing algorithms", 1997).
//!
//! Virtual time passes with the sectors served, and passes more slowly with a larger sum of
//! weights. An active queue has a virtual start and a virtual finish. At the finish the queue
//! should have used its budget. Among the queues whose start has come, the queue with the earliest
//! finish goes next.

use super::super::forest::{Forest, SlotTree};
use fullstroke_contract::PriorityClass;
use fullstroke_units::{Duration, Time};

/// Number of fraction bits of virtual time in sectors per weight: `WFQ_SERVICE_SHIFT` of
/// `block/bfq-wf2q.c`.
const SHIFT: u32 = 22;

/// Time without service after which the idle class is served even beside others:
/// `BFQ_CL_IDLE_TIMEOUT` of `block/bfq-iosched.h`.
const IDLE_CLASS_TIMEOUT: Duration = Duration::from_millis(200);

fn virtual_time(sectors: u64, weight: u64) -> u64 {
    (sectors << SHIFT) / weight
}

/// State of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QueueState {
    /// The queue is forgotten, because its finish has passed.
    #[default]
    Away,
    /// The queue wants no service, but its finish is still to come. The weight counts.
    Idle,
    /// The start of the queue is still to come.
    Early,
    /// The start of the queue has come.
    Eligible,
    /// The queue has the turn.
    Serving,
}

/// The record of a queue in B-WF2Q+.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entity {
    class: PriorityClass,
    weight: u32,
    /// Weight from the next time on at which the queue waits for service (`prio_changed`).
    next_weight: u32,
    start: u64,
    finish: u64,
    place: QueueState,
    /// Budget of a turn in sectors.
    pub(super) budget: u64,
    /// Sectors of service in the turn.
    pub(super) service: u64,
}

impl Entity {
    /// Returns the rest of the budget in sectors.
    pub(super) fn left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }
}

/// The queues of one class.
#[derive(Clone, Copy, Debug, Default)]
struct ClassQueues {
    now: u64,
    /// Sum of the weights of all queues, except for those away.
    weights: u64,
    /// Sorted by finish.
    eligible: SlotTree,
    idle: SlotTree,
    /// Sorted by start.
    early: SlotTree,
}

impl ClassQueues {
    fn wants_service(&self) -> bool {
        !self.eligible.is_empty() || !self.early.is_empty()
    }
}

/// All queues, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct ServiceQueues {
    entities: Vec<Entity>,
    /// In the order of [`PriorityClass::ALL`].
    classes: [ClassQueues; 3],
    by_finish: Forest,
    by_start: Forest,
    serving: Option<u32>,
    /// The queue that gets the next turn. The kernel looks for the queue when queues begin or end to
    /// wait, not at the begin of the turn (`next_in_service`).
    next: Option<u32>,
    /// Time of the present event.
    present: Time,
    idle_class_considered: Time,
    /// The queues that wait for their turns, the latest to come first (`active_list`).
    waiting: SlotTree,
    by_arrival: Forest,
    arrivals: u64,
}

impl ServiceQueues {
    /// Adds a queue. Its number is the number of queues before.
    pub(super) fn push(&mut self, class: PriorityClass, weight: u32, budget: u64) {
        let place = QueueState::Away;
        self.entities.push(Entity {
            class,
            weight,
            next_weight: weight,
            start: 0,
            finish: 0,
            place,
            budget,
            service: 0,
        });
    }

    /// Makes the number of an unused queue that of a new one.
    pub(super) fn renew(&mut self, queue: u32, class: PriorityClass, weight: u32, budget: u64) {
        let entity = &mut self.entities[queue as usize];
        assert!(
            matches!(entity.place, QueueState::Away | QueueState::Idle),
            "queue {queue} is renewed while it wants service"
        );
        if entity.place == QueueState::Idle {
            let class = &mut self.classes[entity.class as usize];
            class.weights -= u64::from(entity.weight);
            self.by_finish.remove(&mut class.idle, queue);
        }
        *entity = Entity {
            class,
            weight,
            next_weight: weight,
            start: 0,
            finish: 0,
            place: QueueState::Away,
            budget,
            service: 0,
        };
    }

    /// Returns the share of `requests` that a queue may hold, by its weight among those of its
    /// class and of the classes above. `None` if the queue is forgotten. A class below counts an
    /// eighth (`bfqq_request_over_limit`).
    pub(super) fn share(&self, queue: u32, requests: u32) -> Option<u64> {
        const LEVELS: u64 = 8;
        let entity = self.entity(queue);
        let weights = self.classes[..=entity.class as usize]
            .iter()
            .fold(0, |sum, class| sum * LEVELS + class.weights);
        let share = u64::from(requests) * u64::from(entity.weight);
        (entity.place != QueueState::Away && weights > 0).then(|| (share + weights / 2) / weights)
    }

    /// Notes the time of the present event.
    pub(super) fn at(&mut self, now: Time) {
        self.present = now;
    }

    /// Returns the serving queue.
    pub(super) fn serving(&self) -> Option<u32> {
        self.serving
    }

    pub(super) fn entity(&self, queue: u32) -> &Entity {
        &self.entities[queue as usize]
    }

    pub(super) fn entity_mut(&mut self, queue: u32) -> &mut Entity {
        &mut self.entities[queue as usize]
    }

    /// Sets the weight from the next time on at which the queue waits for service. Until then the
    /// old weight counts, even if the queue is idle: an idle queue of a favoured process that has
    /// merged keeps the favoured weight (`bfq_update_fin_time_enqueue`).
    pub(super) fn set_weight(&mut self, queue: u32, weight: u32) {
        self.entities[queue as usize].next_weight = weight;
    }

    /// Gives a queue its new weight now (`__bfq_entity_update_weight_prio`). Existing virtual times
    /// stay.
    pub(super) fn apply_weight(&mut self, queue: u32) {
        let entity = &mut self.entities[queue as usize];
        if entity.place != QueueState::Away {
            let weights = &mut self.classes[entity.class as usize].weights;
            *weights = *weights + u64::from(entity.next_weight) - u64::from(entity.weight);
        }
        entity.weight = entity.next_weight;
    }

    /// Returns the weight that counts now.
    pub(super) fn weight(&self, queue: u32) -> u32 {
        self.entities[queue as usize].weight
    }

    /// Starts service for an idle queue. With `recovers`, the queue is treated as if it had wanted
    /// service since its last turn (`bfq_update_fin_time_enqueue` of `block/bfq-wf2q.c`). The value
    /// of `recovers` is the factor of the favour: a larger factor means an earlier start.
    pub(super) fn activate(&mut self, queue: u32, recovers: Option<u32>) {
        let Entity {
            class: index,
            weight,
            finish,
            place,
            ..
        } = self.entities[queue as usize];
        let class = &mut self.classes[index as usize];
        // A queue that comes back in time continues from its old finish, as if it had never been
        // empty.
        let recovers = recovers.filter(|_| class.now > finish);
        let earliest = if recovers.is_some() {
            finish
        } else {
            class.now
        };
        let start = if place == QueueState::Idle {
            self.by_finish.remove(&mut class.idle, queue);
            earliest.max(finish)
        } else {
            class.weights += u64::from(weight);
            earliest
        };
        // The weight counts from here on, as the queue does.
        let entity = &mut self.entities[queue as usize];
        (entity.start, entity.place) = (start, QueueState::Early);
        self.enqueue(queue, recovers);
        self.consider(queue);
    }

    /// Ends the turn of the serving queue. The queue wants more service.
    pub(super) fn requeue(&mut self, queue: u32) {
        self.end_turn(queue);
        let entity = &mut self.entities[queue as usize];
        entity.start = entity.finish;
        self.enqueue(queue, None);
        self.consider(queue);
    }

    /// Sorts a waiting queue after a change of its budget.
    pub(super) fn reposition(&mut self, queue: u32) {
        self.dequeue(queue);
        self.enqueue(queue, None);
        self.consider(queue);
    }

    /// Ends the service of a queue, serving or waiting.
    pub(super) fn deactivate(&mut self, queue: u32) {
        match self.serving == Some(queue) {
            true => self.end_turn(queue),
            false => {
                self.dequeue(queue);
                // The finish is that of the sectors served, and not of the budget
                // (`__bfq_deactivate_entity`).
                self.finish_by_service(queue);
                self.entities[queue as usize].service = 0;
            }
        }
        let entity = &mut self.entities[queue as usize];
        let class = &mut self.classes[entity.class as usize];
        if entity.finish > class.now {
            entity.place = QueueState::Idle;
            self.by_finish.insert(&mut class.idle, entity.finish, queue);
        } else {
            entity.place = QueueState::Away;
            class.weights -= u64::from(entity.weight);
        }
        if self.next == Some(queue) {
            self.next = self.look_up();
        }
    }

    /// Counts sectors of service.
    pub(super) fn serve(&mut self, queue: u32, sectors: u64) {
        let entity = &mut self.entities[queue as usize];
        entity.service += sectors;
        assert!(
            self.classes[entity.class as usize].weights > 0 || sectors == 0,
            "queue {queue} is served, and no queue of its class counts"
        );
        let class = &mut self.classes[entity.class as usize];
        class.now += virtual_time(sectors, class.weights);
        self.forget_idle(self.entities[queue as usize].class);
    }

    /// Gives the next queue its turn, if any queue wants service. No queue may have the turn.
    pub(super) fn take_next(&mut self) -> Option<u32> {
        assert!(
            self.serving.is_none(),
            "a turn begins while queue {:?} has one",
            self.serving
        );
        let queue = self.next?;
        self.dequeue(queue);
        self.entities[queue as usize].place = QueueState::Serving;
        self.serving = Some(queue);
        self.next = self.look_up();
        Some(queue)
    }

    /// Chooses the queue of the next turn after `queue` began to wait or moved
    /// (`bfq_update_next_in_service`).
    fn consider(&mut self, queue: u32) {
        let instead = self.next.is_none_or(|next| {
            let (entity, other) = (self.entity(queue), self.entity(next));
            next != queue
                && entity.class == other.class
                && entity.start <= self.classes[entity.class as usize].now
                && entity.finish < other.finish
        });
        self.next = if instead { Some(queue) } else { self.look_up() };
    }

    /// Returns the queue that should have the next turn (`bfq_lookup_next_entity`).
    fn look_up(&mut self) -> Option<u32> {
        let class = self.next_class(self.present)?;
        self.advance(class);
        let ClassQueues {
            eligible, early, ..
        } = &self.classes[class as usize];
        self.by_finish
            .first(eligible)
            .or_else(|| self.by_start.first(early))
    }

    /// Iterates over the queues that wait for their turns, the latest to come first: the kernel
    /// searches the list in this order for a request to inject (`bfq_active_insert` of
    /// `block/bfq-wf2q.c` adds at the head).
    pub(super) fn candidates(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_arrival.iter(&self.waiting)
    }

    fn next_class(&mut self, now: Time) -> Option<PriorityClass> {
        if self.idle_class_considered + IDLE_CLASS_TIMEOUT < now {
            self.idle_class_considered = now;
            if self.classes[PriorityClass::Idle as usize].wants_service() {
                // Without a turn now and then, an idle process that holds a lock would block others
                // for ever.
                return Some(PriorityClass::Idle);
            }
        }
        PriorityClass::ALL
            .into_iter()
            .find(|&class| self.classes[class as usize].wants_service())
    }

    /// Makes each queue eligible whose start has come. If no queue is eligible and none has the
    /// turn, virtual time jumps to the first start (`__bfq_lookup_next_entity`).
    fn advance(&mut self, index: PriorityClass) {
        while let Some(queue) = self.by_start.first(&self.classes[index as usize].early) {
            let class = &mut self.classes[index as usize];
            let Entity { start, finish, .. } = self.entities[queue as usize];
            if start > class.now {
                if !class.eligible.is_empty() || self.serving.is_some() {
                    break;
                }
                class.now = start;
                self.forget_idle(index);
            }
            let class = &mut self.classes[index as usize];
            self.by_start.remove(&mut class.early, queue);
            self.by_finish.insert(&mut class.eligible, finish, queue);
            self.entities[queue as usize].place = QueueState::Eligible;
        }
    }

    fn end_turn(&mut self, queue: u32) {
        assert_eq!(
            self.serving,
            Some(queue),
            "the turn ends of a queue that has none"
        );
        self.finish_by_service(queue);
        self.serving = None;
    }

    /// Sets the virtual finish after the sectors served (`bfq_calc_finish`).
    fn finish_by_service(&mut self, queue: u32) {
        let entity = &mut self.entities[queue as usize];
        entity.finish = entity.start + virtual_time(entity.service, u64::from(entity.weight));
    }

    fn enqueue(&mut self, queue: u32, recovers: Option<u32>) {
        self.apply_weight(queue);
        let entity = &mut self.entities[queue as usize];
        let class = &mut self.classes[entity.class as usize];
        entity.finish = entity.start + virtual_time(entity.budget, u64::from(entity.weight));
        assert!(
            class.weights >= u64::from(entity.weight),
            "queue {queue} of weight {} waits in a class of {}",
            entity.weight,
            class.weights
        );
        if let Some(factor) = recovers {
            // The finish moves to the present at least. Otherwise the queue would have the device
            // for itself until it had caught up. A raised queue moves by a part of the distance
            // only.
            let missing = class.now.saturating_sub(entity.finish) / u64::from(factor);
            entity.start += missing;
            entity.finish += missing;
        }
        self.arrivals += 1;
        self.by_arrival
            .insert(&mut self.waiting, u64::MAX - self.arrivals, queue);
        if entity.start <= class.now {
            entity.place = QueueState::Eligible;
            self.by_finish
                .insert(&mut class.eligible, entity.finish, queue);
        } else {
            entity.place = QueueState::Early;
            self.by_start.insert(&mut class.early, entity.start, queue);
        }
    }

    fn dequeue(&mut self, queue: u32) {
        let entity = &self.entities[queue as usize];
        assert!(
            matches!(entity.place, QueueState::Early | QueueState::Eligible),
            "queue {queue} does not wait for its turn: {:?}",
            entity.place
        );
        self.by_arrival.remove(&mut self.waiting, queue);
        let class = &mut self.classes[entity.class as usize];
        match entity.place {
            QueueState::Early => self.by_start.remove(&mut class.early, queue),
            _ => self.by_finish.remove(&mut class.eligible, queue),
        }
    }

    /// Forgets the first idle queue if its finish has passed: one at each call. While no queue
    /// waits, virtual time goes back to the last finish of the idle queues if that has passed
    /// (`bfq_forget_idle` of `block/bfq-wf2q.c`).
    fn forget_idle(&mut self, index: PriorityClass) {
        let class = &mut self.classes[index as usize];
        let waits = class.wants_service();
        if let Some(last) = self.by_finish.last(&class.idle).filter(|_| !waits) {
            class.now = class.now.min(self.entities[last as usize].finish);
        }
        let Some(queue) = self.by_finish.first(&class.idle) else {
            return;
        };
        let entity = &mut self.entities[queue as usize];
        if entity.finish <= class.now {
            self.by_finish.remove(&mut class.idle, queue);
            class.weights -= u64::from(entity.weight);
            entity.place = QueueState::Away;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns active best-effort queues of these weights.
    fn backlogged(weights: &[u32], budget: u64) -> ServiceQueues {
        let mut service = ServiceQueues::default();
        for (queue, &weight) in (0..).zip(weights) {
            service.push(PriorityClass::BestEffort, weight, budget);
            service.activate(queue, None);
        }
        service
    }

    proptest! {
        #[test]
        fn the_backlogged_get_sectors_in_proportion_to_their_weights(
            weights in prop::collection::vec(1u32..100, 2..12),
            budgets in prop::collection::vec(1u64..5000, 1..50),
        ) {
            let mut service = backlogged(&weights, 5000);
            let mut received = vec![0u64; weights.len()];
            for turn in 0..2000 {
                let queue = service.take_next().unwrap();
                // Some turns do not use up their budgets, but the queue wants more at once.
                let sectors = budgets[turn % budgets.len()];
                service.serve(queue, sectors);
                received[queue as usize] += sectors;
                service.requeue(queue);
                service.entity_mut(queue).service = 0;
            }
            let total: u64 = received.iter().sum();
            let weight: u32 = weights.iter().sum();
            for (&received, &share) in received.iter().zip(&weights) {
                let ideal = total as f64 * f64::from(share) / f64::from(weight);
                // WF2Q+ deviates by at most one budget, either way. Add one more for budgets that
                // are not used up.
                prop_assert!((received as f64 - ideal).abs() <= 2.0 * 5000.0, "{received} of {ideal}");
            }
        }

        #[test]
        fn the_next_is_one_whose_start_has_come(
            weights in prop::collection::vec(1u32..100, 2..12),
            steps in prop::collection::vec((0u32..12, 1u64..3000, any::<bool>()), 1..200),
        ) {
            let mut service = backlogged(&weights, 3000);
            for (other, sectors, goes_on) in steps {
                let other = other % weights.len() as u32;
                if matches!(service.entity(other).place, QueueState::Away | QueueState::Idle) {
                    service.activate(other, sectors.is_multiple_of(2).then_some(1));
                }
                let starts = service.entities.iter().filter(|entity| matches!(entity.place, QueueState::Early | QueueState::Eligible));
                let earliest = starts.map(|entity| entity.start).min().unwrap();
                let now = service.classes[1].now.max(earliest);
                let queue = service.take_next().unwrap();
                prop_assert!(service.entity(queue).start <= now, "{} after {now}", service.entity(queue).start);
                service.serve(queue, sectors);
                match goes_on {
                    true => service.requeue(queue),
                    false => service.deactivate(queue),
                }
                service.entity_mut(queue).service = 0;
                let counted = |entity: &&Entity| entity.place != QueueState::Away;
                let weights: u64 = service.entities.iter().filter(counted).map(|entity| u64::from(entity.weight)).sum();
                prop_assert_eq!(service.classes[1].weights, weights);
                if service.classes[1].weights == 0 {
                    break;
                }
            }
        }
    }

    #[test]
    fn who_returns_late_starts_in_the_present_and_who_recovers_where_it_left() {
        for (recovers, is_first) in [(None, false), (Some(1), true)] {
            let mut service = backlogged(&[10, 10, 10], 1000);
            // The first queue has few sectors and leaves. The other queues have many turns.
            assert_eq!(service.take_next(), Some(0));
            service.serve(0, 8);
            service.deactivate(0);
            for _ in 0..20 {
                let queue = service.take_next().unwrap();
                service.serve(queue, 1000);
                service.requeue(queue);
                service.entity_mut(queue).service = 0;
            }
            service.activate(0, recovers);
            assert_eq!(service.take_next() == Some(0), is_first, "{recovers:?}");
        }
    }

    /// `bfq_forget_idle`: virtual time goes back to the last finish of the idle queues, and one
    /// idle queue is forgotten at a time.
    #[test]
    fn while_no_queue_waits_virtual_time_goes_back_to_the_last_finish_of_the_idle() {
        let mut service = backlogged(&[10, 10, 10], 1000);
        for queue in [0, 1] {
            assert_eq!(service.take_next(), Some(queue));
            service.serve(queue, 30);
            service.deactivate(queue);
        }
        assert_eq!(service.take_next(), Some(2));
        service.serve(2, 900);
        let last = service.entity(1).finish;
        assert_eq!(service.classes[1].now, last);
        assert_eq!(service.classes[1].weights, 20);
        service.serve(2, 900);
        assert_eq!(service.classes[1].now, last);
        assert_eq!(service.classes[1].weights, 10);
    }

    /// `bfq_get_next_queue` takes the queue of the last look-up, and a look-up beside a serving
    /// queue moves no virtual time.
    #[test]
    fn virtual_time_does_not_jump_to_a_queue_that_came_while_another_had_the_turn() {
        let mut service = backlogged(&[10, 1], 1000);
        assert_eq!(service.take_next(), Some(0));
        service.serve(0, 8);
        service.deactivate(0);
        assert_eq!(service.take_next(), Some(1));
        service.serve(1, 900);
        service.deactivate(1);
        service.activate(0, None);
        assert_eq!(service.take_next(), Some(0));
        // The start of the second queue lies ahead.
        service.activate(1, None);
        service.deactivate(0);
        let before = service.classes[1].now;
        assert_eq!(service.take_next(), Some(1));
        assert!(service.entity(1).start > before);
        assert_eq!(service.classes[1].now, before);
    }

    #[test]
    fn classes_go_in_order_but_the_idle_one_has_a_turn_in_200_ms_unless_a_queue_goes_on() {
        let mut service = ServiceQueues::default();
        for class in PriorityClass::ALL {
            service.push(class, 10, 1000);
            service.activate(class as u32, None);
        }
        let mut next = |at_ms, goes_on| {
            service.at(Time::ZERO + Duration::from_millis(at_ms));
            let queue = service.take_next().unwrap();
            if goes_on {
                service.requeue(queue);
            } else {
                service.deactivate(queue);
            }
            queue
        };
        // A queue that goes on has the next turn again (`bfq_update_next_in_service`).
        assert_eq!(next(1, true), 0);
        assert_eq!(next(201, true), 0);
        assert_eq!(next(402, false), 0);
        assert_eq!(next(403, true), 2);
        assert_eq!(next(404, false), 1);
    }
}
