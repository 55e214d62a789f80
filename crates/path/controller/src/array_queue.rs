//! I/Os to the array: I/Os that wait for the discipline, and I/Os in flight.

use crate::discipline::ControllerDiscipline;
use crate::io::ControllerIo;
use fullstroke_contract::{Effects, Extent, Request, RequestId, Slots};
use fullstroke_units::Lbn;

/// The I/Os of a controller.
pub(crate) struct ArrayQueue {
    depth: u32,
    ios: Slots<ControllerIo>,
    waiting: Box<dyn ControllerDiscipline>,
    issued: u32,
    /// End of the I/O issued last.
    position: Lbn,
}

impl ArrayQueue {
    /// Returns an empty queue; the array takes up to `depth` I/Os at a time.
    pub(crate) fn new(depth: u32, discipline: Box<dyn ControllerDiscipline>) -> ArrayQueue {
        ArrayQueue {
            depth,
            ios: Slots::default(),
            waiting: discipline,
            issued: 0,
            position: Lbn(0),
        }
    }

    /// Number of I/Os that wait or are in flight.
    pub(crate) fn len(&self) -> usize {
        self.ios.len()
    }

    /// Queues an I/O, and returns its slot.
    pub(crate) fn ask(&mut self, io: ControllerIo) -> u32 {
        let slot = self.ios.keep(io);
        // `add_waiter` and `begin_fetch` need the slot, so the I/O gets its slot before the
        // discipline has chosen.
        self.waiting.insert(slot, io.request.extent.start);
        slot
    }

    /// Puts `command` at the head of the wait list of an I/O. Returns the former head.
    pub(crate) fn add_waiter(&mut self, io: u32, command: u32) -> u32 {
        std::mem::replace(&mut self.ios[io].waiters, command)
    }

    /// Extent of the I/O in `slot`.
    pub(crate) fn extent_of(&self, slot: u32) -> Extent {
        self.ios[slot].request.extent
    }

    /// Issues waiting I/Os up to the depth of the array.
    pub(crate) fn dispatch(&mut self, out: &mut Effects) {
        while self.issued < self.depth
            && let Some(slot) = self.waiting.take(self.position)
        {
            self.issued += 1;
            let request = self.ios[slot].request;
            self.position = request.extent.end();
            out.issue(
                0,
                Request {
                    id: RequestId(u64::from(slot)),
                    ..request
                },
            );
        }
    }

    /// Removes an I/O that the array has answered.
    pub(crate) fn end(&mut self, slot: u32) -> ControllerIo {
        let io = self.ios.take(slot);
        assert!(
            self.issued > 0,
            "the array answers slot {slot}, and was asked for nothing"
        );
        self.issued -= 1;
        io
    }
}
