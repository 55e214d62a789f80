//! The parts of a request's response time.

use fullstroke_units::Duration;

/// The parts of a response time. At every layer the sum of the parts is exactly the response time.
/// A layer that splits a request reports the parts of the member I/O that finished last, and adds
/// its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Breakdown {
    /// Waiting for a busy resource: host queue, array queue, drive queue.
    pub queue: Duration,
    /// Waiting for redundancy: reads of old data and parity that a write needs
    /// first, and for another write of the same stripe.
    pub parity: Duration,
    /// Command overhead and bus time, as far as no other activity hides them.
    pub overhead: Duration,
    /// Arm movement, head switches and settling, including those between tracks of the request.
    pub seek: Duration,
    /// Rotational latency.
    pub rotation: Duration,
    /// Sectors passing under the head.
    pub transfer: Duration,
    /// Cylinders crossed by the first seek of the request.
    pub seek_cylinders: u32,
}

impl Breakdown {
    /// Returns the response time, the sum of all parts.
    pub fn response(&self) -> Duration {
        self.queue + self.parity + self.service()
    }
    /// Returns the service time, in which a drive worked on the request.
    pub fn service(&self) -> Duration {
        self.overhead + self.seek + self.rotation + self.transfer
    }
}
