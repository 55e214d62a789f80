//! Requests and I/Os in flight.

use crate::rule::{CopyIo, Part};
use fullstroke_contract::{Completion, Request, RequestStatus};
use fullstroke_units::Time;

/// Lower port of the origin.
pub(crate) const ORIGIN: usize = 0;
/// Lower port of the flash device.
pub(crate) const FLASH: usize = 1;

/// A request of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedRequest {
    pub(crate) request: Request,
    pub(crate) submitted: Time,
    /// Parts in flight.
    pub(crate) left: u32,
    pub(crate) status: RequestStatus,
    /// Latest completion of a part.
    pub(crate) last: Completion,
    /// True once the request is made durable: the last stage of a flush, or of a write with FUA.
    pub(crate) commits: bool,
}

/// An I/O in flight: on one device, or on both at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheIo {
    pub(crate) part: Part,
    pub(crate) purpose: IoPurpose,
    /// Devices without an answer.
    pub(crate) left: u32,
    pub(crate) status: RequestStatus,
    pub(crate) issued: Time,
}

/// Purpose of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoPurpose {
    /// A part of the request in this slot.
    Host(u32),
    /// A flush, or a write of the map, for the request in this slot.
    Commit(u32),
    /// A write of read data to the flash device.
    Fill,
    /// The read of a copy, and its write.
    CopyRead(CopyIo),
    CopyWrite(CopyIo),
    /// A write of the map in the background.
    Map,
}
