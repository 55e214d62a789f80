//! The throttle of the records of a transaction group (`zio_dva_throttle`,
//! `metaslab_class_throttle_reserve`, OpenZFS 2.2).
//!
//! 1. A vdev takes 32 writes at first. Each end of a write raises this limit by one, up to 100.
//! 2. Each end of a write lets one waiting record go (`zio_allocate_dispatch`). So the number of
//!    writes in flight grows only as long as further records arrive.
//! 3. The thread of the group hands the records over one after the other.
//!
//! After the last record has arrived, the number in flight stays the same: each end raises the limit, and
//! lets one record go.
//!
//! A small group has arrived whole before its first write ends, and keeps 32 writes in flight. The
//! kernel laboratory shows both numbers (`samples/oracle/zfs`).

use fullstroke_units::{Duration, Time};

/// Writes in flight on each vdev at the beginning of a group: `zfs_vdev_def_queue_depth`.
const AT_FIRST: u32 = 32;

/// Most writes in flight on each vdev: `zfs_vdev_queue_depth_pct` of
/// `zfs_vdev_async_write_max_active`, 1000 % of 10.
const MOST: u32 = 100;

/// Time between two records from the thread of a group (`dbuf_sync_list`). An estimate:
/// 50,000 records a second.
const HANDED_OVER_EACH: Duration = Duration::from_micros(20);

/// The throttle. The special vdev is the last vdev.
#[derive(Debug)]
pub(crate) struct Throttle {
    in_flight: Vec<u32>,
    limits: Vec<u32>,
    /// Records that may go in the present event.
    turns: u64,
    /// Room of the vdevs for further writes after the last event.
    room: u64,
    /// Beginning of the group, its number of records, and the records handed over so far.
    began: Time,
    records: u64,
    arrived: u64,
}

impl Throttle {
    /// Returns the throttle of `vdevs` vdevs, and of a special vdev behind them.
    pub(crate) fn new(vdevs: usize, has_special: bool) -> Throttle {
        let vdevs = vdevs + usize::from(has_special);
        Throttle {
            in_flight: vec![0; vdevs],
            limits: vec![AT_FIRST; vdevs],
            turns: 0,
            room: 0,
            began: Time::ZERO,
            records: 0,
            arrived: 0,
        }
    }

    /// Begins a group of `records` records (`spa_sync_adjust_vdev_max_queue_depth`).
    pub(crate) fn begin(&mut self, now: Time, records: usize) {
        assert!(self.is_empty(), "the group before has ended");
        self.limits.fill(AT_FIRST);
        (self.began, self.records, self.arrived) = (now, records as u64, 0);
        // The first records arrive before the first of them ends.
        self.turns = u64::from(AT_FIRST) * self.limits.len() as u64;
    }

    fn is_empty(&self) -> bool {
        self.in_flight.iter().all(|&count| count == 0)
    }

    /// Takes note of the records handed over up to `now`. Each has a turn if a vdev had room.
    pub(crate) fn hand_over(&mut self, now: Time) {
        let all = now.since(self.began).as_nanos() / HANDED_OVER_EACH.as_nanos();
        let all = all.min(self.records);
        self.turns += (all - self.arrived).min(self.room);
        self.arrived = all;
    }

    /// Takes note of one record handed over.
    pub(crate) fn hand_over_one(&mut self) {
        self.turns += 1;
    }

    /// Returns true if a record may go. Without a write in flight no end would let one go.
    pub(crate) fn has_turn(&self) -> bool {
        self.turns > 0 || self.is_empty()
    }

    /// Returns true if the vdev takes a further write.
    pub(crate) fn is_open(&self, vdev: usize) -> bool {
        self.in_flight[vdev] < self.limits[vdev]
    }

    /// Counts a record as in flight.
    pub(crate) fn started(&mut self, vdev: usize) {
        self.in_flight[vdev] += 1;
        self.turns = self.turns.saturating_sub(1);
    }

    /// Counts a record as ended (`zio_dva_throttle_done`).
    pub(crate) fn ended(&mut self, vdev: usize) {
        self.in_flight[vdev] -= 1;
        self.limits[vdev] = (self.limits[vdev] + 1).min(MOST);
        self.turns += 1;
    }

    /// Ends the turns of an event. An unused turn is lost.
    pub(crate) fn close(&mut self) {
        self.turns = 0;
        let room = self.limits.iter().zip(&self.in_flight);
        self.room = room
            .map(|(limit, count)| u64::from(limit.saturating_sub(*count)))
            .sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets all records go that may, and returns the number in flight.
    fn go(throttle: &mut Throttle, now: Time) -> u32 {
        throttle.hand_over(now);
        while throttle.has_turn() && throttle.is_open(0) {
            throttle.started(0);
        }
        throttle.close();
        throttle.in_flight[0]
    }

    #[test]
    fn the_number_in_flight_grows_only_while_records_arrive() {
        let mut throttle = Throttle::new(1, false);
        let at = |micros: u64| Time::ZERO + Duration::from_micros(micros);
        throttle.begin(at(0), 2000);
        assert_eq!(go(&mut throttle, at(0)), 32);
        // 50 records arrive, and find no room; then 10 end.
        (0..10).for_each(|_| throttle.ended(0));
        assert_eq!(go(&mut throttle, at(1000)), 32);
        // The next records that arrive find the room that these ends have made.
        throttle.ended(0);
        assert_eq!(go(&mut throttle, at(1100)), 37, "5 records in 100 µs");
        (0..37).for_each(|_| throttle.ended(0));
        assert_eq!(go(&mut throttle, at(9000)), 37 + 6);
        throttle.ended(0);
        assert_eq!(go(&mut throttle, at(20_000)), 80);
        (0..40).for_each(|_| throttle.ended(0));
        assert_eq!(go(&mut throttle, at(30_000)), 81);
        throttle.ended(0);
        assert_eq!(go(&mut throttle, at(40_000)), 100);
    }

    #[test]
    fn the_number_in_flight_stays_once_all_records_have_arrived() {
        let mut throttle = Throttle::new(1, false);
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        throttle.begin(at(0), 300);
        assert_eq!(go(&mut throttle, at(0)), 32);
        // The records arrive within 6 ms. Each later end lets one record go.
        for round in 1..100 {
            throttle.ended(0);
            let expected = if round == 1 { 32 } else { 33 };
            assert!(go(&mut throttle, at(200 * round)) <= expected, "{round}");
        }
    }

    #[test]
    fn a_vdev_that_is_full_keeps_the_others_going() {
        let mut throttle = Throttle::new(2, false);
        throttle.begin(Time::ZERO, 1000);
        while throttle.has_turn() && throttle.is_open(0) {
            throttle.started(0);
        }
        assert!(throttle.has_turn() && throttle.is_open(1));
        throttle.close();
        assert!(!throttle.has_turn());
        throttle.ended(0);
        assert!(throttle.has_turn() && throttle.is_open(0));
    }
}
