//! The memory of one plan, and the plan's arithmetic.

use fullstroke_contract::Extent;
use fullstroke_parity as parity;
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Band, BufferPlace, ParityStep, Plan};
use std::ops::Range;

/// Size of a block of a band: all steps of the band are carried out on a block before the next. The
/// sums of a block stay in the processor's nearest cache.
const BLOCK: usize = 8 << 10;

/// The request's own bytes.
pub enum RequestBytes<'a> {
    /// Buffer of a read.
    Into(&'a mut [u8]),
    /// Bytes of a write.
    From(&'a [u8]),
}

/// Memory for the pieces and steps of a plan.
pub struct Buffers<'a> {
    /// The bytes of the request.
    pub request: RequestBytes<'a>,
    /// The plan's own memory, at least as long as the plan requires, with any content.
    pub scratch: &'a mut [u8],
}

fn range(start: Sectors, sectors: Sectors) -> Range<usize> {
    (start.0 * SECTOR_BYTES) as usize..((start.0 + sectors.0) * SECTOR_BYTES) as usize
}

impl Buffers<'_> {
    /// Returns the bytes at `place`.
    #[inline]
    pub fn at(&self, place: BufferPlace, sectors: Sectors) -> &[u8] {
        match (place, &self.request) {
            (BufferPlace::Scratch(start), _) => &self.scratch[range(start, sectors)],
            (BufferPlace::Request(start), RequestBytes::Into(bytes)) => {
                &bytes[range(start, sectors)]
            }
            (BufferPlace::Request(start), RequestBytes::From(bytes)) => {
                &bytes[range(start, sectors)]
            }
        }
    }

    /// Returns the bytes at `place`, to be changed.
    ///
    /// # Panics
    /// If the bytes are those of a write: no plan changes a request's data.
    #[inline]
    pub fn at_mut(&mut self, place: BufferPlace, sectors: Sectors) -> &mut [u8] {
        match (place, &mut self.request) {
            (BufferPlace::Scratch(start), _) => &mut self.scratch[range(start, sectors)],
            (BufferPlace::Request(start), RequestBytes::Into(bytes)) => {
                &mut bytes[range(start, sectors)]
            }
            (BufferPlace::Request(_), RequestBytes::From(_)) => {
                panic!("a plan does not change what is written")
            }
        }
    }

    /// Carries out the arithmetic of the whole plan. The steps of a band are carried out block by
    /// block.
    pub fn run_steps(&mut self, plan: &Plan) {
        self.run_bands(plan, plan.bands());
    }

    /// Carries out the arithmetic of some bands.
    pub(crate) fn run_bands(&mut self, plan: &Plan, bands: &[Band]) {
        for band in bands {
            let bytes = band.sectors.bytes().0 as usize;
            for begin in (0..bytes).step_by(BLOCK) {
                let block = begin..bytes.min(begin + BLOCK);
                plan.steps(band)
                    .iter()
                    .for_each(|step| self.run_step(step, block.clone()));
            }
        }
    }

    fn run_step(&mut self, step: &ParityStep, block: Range<usize>) {
        let (into, from) = self.pair(step);
        let (into, from) = (&mut into[block.clone()], &from[block]);
        if step.accumulate {
            parity::multiply_add(step.coefficient, into, from);
        } else {
            parity::multiply_into(step.coefficient, into, from);
        }
    }

    /// Returns target and source of a step.
    fn pair(&mut self, step: &ParityStep) -> (&mut [u8], &[u8]) {
        let ParityStep {
            from,
            into,
            sectors,
            ..
        } = *step;
        match (into, from, &mut self.request) {
            (BufferPlace::Scratch(into), BufferPlace::Scratch(from), _) => {
                disjoint(self.scratch, range(into, sectors), range(from, sectors))
            }
            (BufferPlace::Scratch(into), BufferPlace::Request(from), RequestBytes::From(bytes)) => {
                (
                    &mut self.scratch[range(into, sectors)],
                    &bytes[range(from, sectors)],
                )
            }
            (BufferPlace::Scratch(into), BufferPlace::Request(from), RequestBytes::Into(bytes)) => {
                (
                    &mut self.scratch[range(into, sectors)],
                    &bytes[range(from, sectors)],
                )
            }
            (BufferPlace::Request(into), BufferPlace::Scratch(from), RequestBytes::Into(bytes)) => {
                (
                    &mut bytes[range(into, sectors)],
                    &self.scratch[range(from, sectors)],
                )
            }
            (BufferPlace::Request(into), BufferPlace::Request(from), RequestBytes::Into(bytes)) => {
                disjoint(bytes, range(into, sectors), range(from, sectors))
            }
            (BufferPlace::Request(_), _, RequestBytes::From(_)) => {
                panic!("a plan does not change what is written")
            }
        }
    }
}

/// Returns two parts of one buffer. The parts must not overlap.
fn disjoint(bytes: &mut [u8], into: Range<usize>, from: Range<usize>) -> (&mut [u8], &[u8]) {
    assert!(
        into.end <= from.start || from.end <= into.start,
        "a step of a plan reads {from:?} and writes {into:?}"
    );
    // The parts do not overlap, so the one that begins first lies wholly below the other.
    if into.start < from.start {
        let (low, high) = bytes.split_at_mut(from.start);
        (&mut low[into], &high[..from.len()])
    } else {
        let (low, high) = bytes.split_at_mut(into.start);
        (&mut high[..into.len()], &low[from])
    }
}

/// Returns the extent of a buffer for the sectors from `lbn` on.
///
/// # Panics
/// If the length of the buffer is no whole number of sectors: the caller's mistake.
pub(crate) fn extent_of(lbn: Lbn, bytes: usize) -> Extent {
    let bytes = bytes as u64;
    assert!(
        bytes.is_multiple_of(SECTOR_BYTES),
        "a buffer of {bytes} bytes is no whole number of sectors"
    );
    Extent::new(lbn.0, bytes / SECTOR_BYTES)
}
