//! The decisions of a stack, as one number that changes with every decision.

use fullstroke_contract::{Notice, Request, Signal};
use fullstroke_engine::Finished;
use fullstroke_units::Time;

/// A running digest of all decisions. The digest covers the I/O given to each drive with its time,
/// all notices with place and time, and the end of each request. Two runs with equal digests made
/// the same decisions in the same order, except by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Decisions {
    digest: u64,
    finished: u64,
}

impl Decisions {
    /// Returns the digest of all decisions so far.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the number of finished requests so far.
    pub fn finished_requests(&self) -> u64 {
        self.finished
    }

    /// Adds I/O given to a drive.
    #[inline]
    pub fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.mix(now.as_nanos());
        self.mix((drive as u64) << 8 | request.operation as u64);
        self.mix(request.origin);
        self.mix(request.extent.start.0);
        self.mix(request.extent.sectors.0);
    }

    /// Adds the end of a request.
    #[inline]
    pub fn finished(&mut self, finished: &Finished) {
        self.finished += 1;
        self.mix(finished.origin);
        self.mix(finished.completion.finished.as_nanos());
        self.mix(finished.completion.status as u64);
    }

    /// Adds a notice of the layer at `path`.
    pub fn noticed(&mut self, path: &[usize], notice: &Notice) {
        self.mix(notice.at.as_nanos());
        path.iter().for_each(|&member| self.mix(member as u64));
        let words = match notice.signal {
            Signal::Push(extent) => [1, extent.start.0, extent.sectors.0],
            Signal::Pull { extent, sectors } => [
                2,
                extent.map_or(u64::MAX, |extent| extent.start.0),
                sectors.0,
            ],
            Signal::SpunDown => [3, 0, 0],
            Signal::SpunUp => [4, 0, 0],
            Signal::Failed => [5, 0, 0],
            Signal::Replaced => [6, 0, 0],
            Signal::Returned => [7, 0, 0],
            Signal::Rebuilt { member, done, .. } => [8, u64::from(member), done.0],
            Signal::Ask(extent) => [9, extent.start.0, extent.sectors.0],
            Signal::Shifted(gear) => [10, gear as u64, 0],
            Signal::CleaningBegan => [11, 0, 0],
            Signal::CleaningEnded => [12, 0, 0],
        };
        words.into_iter().for_each(|word| self.mix(word));
    }

    /// Mixes `word` into the digest. Every bit of `word` changes about half of the digest's bits:
    /// the multiplication spreads the change upwards, the shift downwards.
    #[inline]
    fn mix(&mut self, word: u64) {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        let mixed = (self.digest.rotate_left(23) ^ word).wrapping_mul(ODD);
        self.digest = mixed ^ (mixed >> 29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Extent;

    fn digest(ios: &[(u64, usize, u64)]) -> u64 {
        let mut decisions = Decisions::default();
        for &(now, drive, start) in ios {
            let request = Request {
                extent: Extent::new(start, 8),
                ..Request::default()
            };
            decisions.drive_io(Time::from_nanos(now), drive, &request);
        }
        decisions.digest()
    }

    #[test]
    fn what_is_noticed_counts_with_its_place_and_instant() {
        let digest = |path: &[usize], signal, at| {
            let mut decisions = Decisions::default();
            decisions.noticed(path, &Notice::of_instant(signal, Time::from_nanos(at)));
            decisions.digest()
        };
        let push = |start| Signal::Push(Extent::new(start, 8));
        let first = digest(&[1], push(64), 10);
        assert_eq!(digest(&[1], push(64), 10), first);
        for other in [
            digest(&[2], push(64), 10),
            digest(&[1], push(72), 10),
            digest(&[1], push(64), 11),
        ] {
            assert_ne!(other, first);
        }
        assert_ne!(
            digest(&[1], Signal::Failed, 10),
            digest(&[1], Signal::Replaced, 10)
        );
    }

    #[test]
    fn another_time_drive_place_or_order_is_another_digest() {
        let first = digest(&[(10, 0, 64), (10, 1, 64)]);
        for other in [
            [(11, 0, 64), (10, 1, 64)],
            [(10, 2, 64), (10, 1, 64)],
            [(10, 0, 65), (10, 1, 64)],
            [(10, 1, 64), (10, 0, 64)],
        ] {
            assert_ne!(digest(&other), first, "{other:?}");
        }
        assert_eq!(digest(&[(10, 0, 64), (10, 1, 64)]), first);
    }
}
