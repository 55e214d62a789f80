//! Drives of a served stack that are slow: by order, and as seen beside the other drives.
//!
//! An order changes the speed of a drive's clock in the model. The order is part of the record, so
//! that a replay has it too. The watch knows nothing of orders: it compares the times of the drives'
//! I/O, as a monitor of real disks would.

use crate::record::RecordedOrder;
use crate::served_stack::ServedStack;
use fullstroke_contract::{LayerOrder, MemberStatistics, Refusal};
use fullstroke_store::bytes::MemberStatus;
use fullstroke_transport::print_error;
use fullstroke_units::{Duration, Time};
use fullstroke_volume::IoTotals;

impl ServedStack {
    /// Lets the drive at `path` take longer by a factor, in thousandths. 1000 ends the slowness.
    pub(crate) fn slow(
        &mut self,
        now: Time,
        path: &[usize],
        thousandths: u32,
    ) -> Result<(), Refusal> {
        self.advance(now);
        let (now, submitted) = (self.machine.now(), self.machine.submitted());
        let order = LayerOrder::Slow { thousandths };
        self.machine.order(now, path, order, &mut self.watch)?;
        if let Some(recorder) = &mut self.watch.recorder {
            recorder.ordered(RecordedOrder::new(now, submitted, path, order));
        }
        Ok(())
    }

    /// Reports drives that have become slow beside the others, and drives that are no longer slow.
    pub(crate) fn tell_slow(&mut self) {
        let now = self.machine.now();
        if now < self.peers.due() {
            return;
        }
        let counters = self.machine.counters();
        let graph = self.machine.graph();
        let members = self.store.status();
        // A drive that is being filled has writes only, and larger ones than the others.
        let takes_part = |name: &str| {
            let path = graph.drive_path(name).map(crate::member_names::dotted);
            !members.iter().any(|member| {
                Some(&member.member) == path.as_ref()
                    && (MemberStatus::has_failed(member) || member.filled().is_some())
            })
        };
        let totals = graph
            .drive_names()
            .zip(&counters.drives)
            .map(|(name, drive)| takes_part(name).then(|| totals(drive)));
        let mut changes = Vec::new();
        self.peers
            .look(now, totals, &mut |change| changes.push(change));
        for change in changes {
            let drive = graph.drive_names().nth(change.member).unwrap_or_default();
            print_error(&format!("{}: drive {drive} {}", self.name, change.words()));
        }
    }
}

/// Returns the I/Os of a drive, and their times from arrival to completion: the integral of the
/// number of requests in the drive (Little's law).
fn totals(drive: &MemberStatistics) -> IoTotals {
    IoTotals {
        ios: drive.reads + drive.writes,
        time: Duration::from_nanos(u64::try_from(drive.queue_length_ns).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::tests::{RAID5, world};
    use fullstroke_contract::{Extent, Operation, Request};

    /// Reads four sectors every 40 ms for a time, and looks at the drives after each read. Returns
    /// the mean response time in ms.
    fn read_for(world: &mut ServedStack, seconds: u64) -> f64 {
        let (begin, mut at) = (world.machine.now(), 7);
        let (mut sum, mut count) = (0.0, 0.0);
        for read in 0..seconds * 25 {
            at = (at * 5 + 11) % 12_000;
            let now = begin + Duration::from_millis(40 * (read + 1));
            world.advance(now);
            let request = Request {
                operation: Operation::Read,
                extent: Extent::new(at, 4),
                ..Request::default()
            };
            world.machine.submit(now, request, &mut world.watch);
            world.tell_slow();
            for ended in world.watch.ended.drain(..) {
                sum += ended
                    .finished
                    .completion
                    .breakdown
                    .response()
                    .as_millis_f64();
                count += 1.0;
            }
        }
        sum / count
    }

    #[test]
    fn a_drive_that_is_slow_by_order_is_found_by_its_times_and_no_other_drive_is() {
        let mut world = world(RAID5);
        let usual = read_for(&mut world, 60);
        let slow = |world: &ServedStack| -> Vec<Option<f64>> {
            (0..4).map(|drive| world.peers.slowness(drive)).collect()
        };
        let none: Vec<Option<f64>> = vec![None; 4];
        assert_eq!(slow(&world), none);
        let now = world.machine.now();
        world.slow(now, &[2], 8000).unwrap();
        let mean = read_for(&mut world, 60);
        // A quarter of the reads takes at least eight times as long.
        assert!(mean > 2.5 * usual, "{mean} ms, {usual} ms before");
        let factors: Vec<Option<f64>> = slow(&world);
        assert!(factors[2].is_some_and(|factor| factor > 5.0), "{factors:?}");
        assert_eq!(factors.iter().flatten().count(), 1, "{factors:?}");
        let now = world.machine.now();
        world.slow(now, &[2], 1000).unwrap();
        let again = read_for(&mut world, 60);
        assert_eq!(slow(&world), none);
        assert!(
            (again - usual).abs() < 0.2 * usual,
            "{again} ms, {usual} ms before"
        );
        let refused = world.slow(now, &[4], 2000).unwrap_err().to_string();
        assert_eq!(refused, "there is no such drive in this stack");
    }
}
