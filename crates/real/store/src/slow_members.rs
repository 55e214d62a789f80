//! Members of an array that are slow beside their peers.
//!
//! The times of reads say so: a slow disk slows every request that needs the disk, and reports no
//! error. Writes do not count, because the memory of a disk answers writes. A member without a time
//! limit ([`Timed`](crate::Timed)) has no times, and takes no part.

use crate::array::Array;
use crate::limit::nanos;
use fullstroke_contract::MemberState;
use fullstroke_units::Time;
use fullstroke_volume::{IoTotals, PeerChange, PeerConfig, PeerWatch};
use std::time::Duration;

/// Kinds of events.
const SLOW: &str = "slow";
const USUAL: &str = "usual";

/// Settings of the watch over the members of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowMembers {
    /// Multiple of the median of the other members from which on a member is slow. Default 2.
    pub factor: f64,
    /// Length of a window. Three windows in a row decide. Default 60 s: an operator cannot act on
    /// seconds.
    pub window: Duration,
}

impl Default for SlowMembers {
    fn default() -> SlowMembers {
        SlowMembers {
            factor: PeerConfig::default().factor,
            window: Duration::from_secs(60),
        }
    }
}

impl Array {
    /// Returns a watch over the members. The watch begins at `now`.
    pub(crate) fn peer_watch(&self, settings: SlowMembers, now: Time) -> PeerWatch {
        let config = PeerConfig {
            factor: settings.factor,
            window: fullstroke_units::Duration::from_nanos(nanos(settings.window)),
            ..PeerConfig::default()
        };
        PeerWatch::new(self.states().len(), config, now)
    }

    /// Compares the members at the end of a window, and reports the changes as events.
    pub(crate) fn look_for_slow_members(&self, watch: &mut PeerWatch, now: Time) {
        if now < watch.due() {
            return;
        }
        let (states, devices) = (self.states(), self.devices());
        let totals = states.iter().zip(devices.iter());
        let totals = totals.map(|(state, device)| -> Option<IoTotals> {
            let limit = device.as_ref()?.limit()?;
            (*state == MemberState::Alive).then(|| limit.reads())
        });
        let mut changes: Vec<PeerChange> = Vec::new();
        watch.look(now, totals, &mut |change| changes.push(change));
        for slot in 0..states.len() {
            self.condition.note_slowness(slot, watch.slowness(slot));
        }
        for change in changes {
            let device = &devices[change.member];
            let name = device
                .as_ref()
                .map_or_else(String::new, |device| device.name());
            let kind = if change.is_slow { SLOW } else { USUAL };
            self.happened(kind, change.member, name, &change.words());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::{Simulated, design, dynamic, simulated};
    use crate::{Device, JournalPolicy, RequestScratch, Timed, assemble, create};
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A device whose reads take a time, in ms.
    struct LateDevice(Arc<Simulated>, Arc<AtomicU64>);

    impl Device for LateDevice {
        fn name(&self) -> String {
            self.0.name()
        }
        fn bytes(&self) -> u64 {
            self.0.bytes()
        }
        fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
            std::thread::sleep(Duration::from_millis(self.1.load(Ordering::SeqCst)));
            self.0.read(at, into)
        }
        fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
            self.0.write(at, from)
        }
        fn flush(&self) -> io::Result<()> {
            self.0.flush()
        }
    }

    #[test]
    fn a_slow_member_is_reported_once_with_its_factor_and_once_more_when_it_is_usual() {
        let (devices, _) = simulated(4, 1300 << 10);
        let plan = design("raid5", 4096, JournalPolicy::Partial);
        create(&plan, &dynamic(&devices)).unwrap();
        let times: Vec<Arc<AtomicU64>> = devices.iter().map(|_| Arc::default()).collect();
        let late = devices.iter().zip(&times).map(|(device, time)| {
            let late = LateDevice(Arc::clone(device), Arc::clone(time));
            Timed::limited(Arc::new(late), Duration::from_secs(60))
        });
        let (array, _) = assemble(&late.collect::<Vec<_>>(), false).unwrap();
        array.take_happenings();
        let mut watch = array.peer_watch(SlowMembers::default(), Time::ZERO);
        let (mut now, mut worker) = (Time::ZERO, RequestScratch::one_by_one());
        let mut window = |slow_ms: u64| {
            times
                .iter()
                .for_each(|time| time.store(4, Ordering::SeqCst));
            times[2].store(slow_ms, Ordering::SeqCst);
            let mut block = [0; 4096];
            for at in 0..48 {
                array.read(&mut worker, at * 4096, &mut block).unwrap();
            }
            now += fullstroke_units::Duration::from_secs(60);
            array.look_for_slow_members(&mut watch, now);
            (array.take_happenings(), array.status().slots[2].slowness)
        };
        for _ in 0..4 {
            assert_eq!(window(4), (Vec::new(), None));
        }
        // On a busy computer a window of a usual member may look slow, and begins the count of windows
        // anew. So the member has several windows for its event.
        let has_event = |(events, _): &(Vec<_>, _)| !events.is_empty();
        let slow = (0..40).map(|_| window(80)).find(has_event);
        let (events, slowness) = slow.unwrap();
        assert_eq!((events.len(), events[0].kind, events[0].slot), (1, SLOW, 2));
        assert!(events[0].why.contains("the median of the other members"));
        assert!(slowness.is_some_and(|factor| factor > 4.0), "{slowness:?}");
        assert_eq!(window(80).0, Vec::new(), "reported once");
        let usual = (0..40).map(|_| window(4)).find(has_event);
        let (events, slowness) = usual.unwrap();
        assert_eq!((events.len(), events[0].kind, slowness), (1, USUAL, None));
        assert_eq!(window(4).0, Vec::new(), "reported once");
    }
}
