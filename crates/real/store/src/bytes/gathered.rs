//! The bytes of each member I/O in one piece.

use crate::buffers::Buffers;
use crate::bytes::StoreError;
use crate::bytes::error::first_error;
use crate::bytes::media::Media;
use crate::bytes::member::Member;
use fullstroke_contract::Operation;
use fullstroke_volume::Plan;

/// Joins the pieces of each write. Inner volumes get one request for each write, perhaps with whole
/// rows. The memory is reused.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    /// For each I/O of the plan, the first of its bytes in `bytes`.
    starts: Vec<usize>,
}

impl Gathered {
    /// Carries out the writes of `plan`. If one write fails, the others are carried out
    /// nevertheless.
    pub(crate) fn write<M: Member>(
        &mut self,
        plan: &Plan,
        buffers: &Buffers<'_>,
        members: &mut [M],
        media: &mut Media,
    ) -> Result<(), StoreError> {
        self.gather(plan, buffers);
        debug_assert_eq!(
            self.starts.len(),
            plan.ios().len(),
            "each I/O of the plan has a start"
        );
        let mut result = Ok(());
        for (io, &start) in plan.ios().iter().zip(&self.starts) {
            if io.operation == Operation::Write {
                let bytes = &self.bytes[start..][..io.extent.sectors.bytes().0 as usize];
                let written = members[io.member as usize].write(io.extent.start, bytes, media);
                result = first_error(result, written);
            }
        }
        result
    }

    fn gather(&mut self, plan: &Plan, buffers: &Buffers<'_>) {
        self.starts.clear();
        let mut length = 0;
        for io in plan.ios() {
            self.starts.push(length);
            if io.operation == Operation::Write {
                length += io.extent.sectors.bytes().0 as usize;
            }
        }
        self.bytes.resize(length, 0);
        for piece in plan.pieces() {
            let io = &plan.ios()[piece.io as usize];
            if io.operation == Operation::Write {
                let offset = piece.lbn.since(io.extent.start).bytes().0 as usize;
                let bytes = buffers.at(piece.place, piece.sectors);
                self.bytes[self.starts[piece.io as usize] + offset..][..bytes.len()]
                    .copy_from_slice(bytes);
            }
        }
    }
}
