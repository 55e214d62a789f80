//! What a stack decided, in one number that grows with every decision.

use fullstroke_contract::Request;
use fullstroke_engine::Finished;
use fullstroke_units::Time;

/// A running digest of all decisions: which drive was given which I/O when, and
/// when each request finished how. Two runs decided alike, in the same order,
/// if (and, but for chance, only if) their digests agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Decisions {
    digest: u64,
    finished: u64,
}

impl Decisions {
    /// The digest of everything so far.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Requests that have finished so far.
    pub fn finished_requests(&self) -> u64 {
        self.finished
    }

    /// A drive is given I/O.
    #[inline]
    pub fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.mix(now.as_nanos());
        self.mix((drive as u64) << 8 | request.operation as u64);
        self.mix(request.origin);
        self.mix(request.extent.start.0);
        self.mix(request.extent.sectors.0);
    }

    /// A request has finished.
    #[inline]
    pub fn finished(&mut self, finished: &Finished) {
        self.finished += 1;
        self.mix(finished.origin);
        self.mix(finished.completion.finished.as_nanos());
        self.mix(finished.completion.status as u64);
    }

    /// Every bit of `word` changes about half of the digest's bits: a
    /// multiplication spreads it upwards, a shift downwards.
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
            let request = Request { extent: Extent::new(start, 8), ..Request::default() };
            decisions.drive_io(Time::from_nanos(now), drive, &request);
        }
        decisions.digest()
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
