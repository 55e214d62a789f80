//! Where a request's time went.

use fullstroke_units::Duration;

/// The parts of a response time. They add up to it, exactly, at every layer:
/// a layer that splits a request reports the parts of the member I/O that
/// finished last, and adds what it spent itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Breakdown {
    /// Waiting for a busy resource: host queue, array queue, drive queue.
    pub queue: Duration,
    /// Waiting for redundancy: reads of old data and parity that a write needs
    /// first, and for another write of the same stripe.
    pub parity: Duration,
    /// Command overhead and bus, as far as they are not hidden.
    pub overhead: Duration,
    /// Arm movement, head switches and settling, between tracks of the request
    /// as well.
    pub seek: Duration,
    /// Rotational latency.
    pub rotation: Duration,
    /// Sectors passing under the head.
    pub transfer: Duration,
    /// Cylinders crossed by the first seek of the request.
    pub seek_cylinders: u32,
}

impl Breakdown {
    /// The sum of all parts: the response time.
    pub fn response(&self) -> Duration {
        self.queue + self.parity + self.service()
    }
    /// The parts in which a drive worked on the request.
    pub fn service(&self) -> Duration {
        self.overhead + self.seek + self.rotation + self.transfer
    }
}
