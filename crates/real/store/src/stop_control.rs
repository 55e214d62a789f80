//! The use of a device, and its stop. An attended device counts its requests, and holds up new
//! requests during a stop.

use crate::member_transfer::TransferDirection;
use fullstroke_device::standby::{StandbyError, StoppableDisk};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// Use of a device, and its means to stop.
pub struct Standby {
    stops: Box<dyn StoppableDisk>,
    /// Number of begun reads and writes.
    begun: AtomicU64,
    under_way: AtomicU32,
    /// Number of beginnings and ends of writes, and its value when the last successful flush began.
    written: AtomicU64,
    flushed: AtomicU64,
    /// True while the holder of the gate stops the device.
    stopping: AtomicBool,
    gate: Mutex<()>,
    stands: AtomicBool,
}

/// An access in progress, ended when dropped.
pub(crate) struct AccessGuard<'a>(&'a Standby, Option<TransferDirection>);

/// State of a device for a [`StandbyWatch`](crate::standby::StandbyWatch).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceReading {
    pub(crate) begun: u64,
    pub(crate) is_busy: bool,
}

/// Result of an attempt to stop a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The device has stopped.
    Now,
    /// The device stood already.
    Before,
    /// The device is in use, or has undurable writes.
    Busy,
}

impl Standby {
    /// Returns the control of a device, with its means to stop.
    pub(crate) fn new(stops: Box<dyn StoppableDisk>) -> Standby {
        Standby {
            stops,
            begun: AtomicU64::new(0),
            under_way: AtomicU32::new(0),
            // Earlier writes may not be durable.
            written: AtomicU64::new(1),
            flushed: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            gate: Mutex::new(()),
            stands: AtomicBool::new(false),
        }
    }

    /// Checks that the device can be stopped.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(crate) fn check(&self) -> Result<(), StandbyError> {
        self.stops.check()
    }

    /// True if the device was stopped and not used since.
    pub(crate) fn is_in_standby(&self) -> bool {
        self.stands.load(SeqCst)
    }

    pub(crate) fn reading(&self) -> DeviceReading {
        DeviceReading {
            begun: self.begun.load(SeqCst),
            is_busy: self.under_way.load(SeqCst) > 0,
        }
    }

    /// Begins a read or a write; waits while the device is being stopped.
    pub(crate) fn begin(&self, direction: TransferDirection) -> AccessGuard<'_> {
        let entered = self.enter(Some(direction));
        self.begun.fetch_add(1, SeqCst);
        if direction == TransferDirection::Write {
            self.written.fetch_add(1, SeqCst);
        }
        self.stands.store(false, SeqCst);
        entered
    }

    /// Counts the access before the check of `stopping`, while `stop` sets `stopping` before it
    /// reads the count. So either the access sees the stop, or the stop sees the access.
    fn enter(&self, direction: Option<TransferDirection>) -> AccessGuard<'_> {
        loop {
            self.under_way.fetch_add(1, SeqCst);
            if !self.stopping.load(SeqCst) {
                return AccessGuard(self, direction);
            }
            self.under_way.fetch_sub(1, SeqCst);
            // Waits for the end of the stop, which holds the gate.
            drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Makes all writes durable by `flush`, unless the device stands.
    pub(crate) fn flush(&self, flush: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let _use = self.enter(None);
        // Read before the flush, which does not cover later writes.
        let written = self.written.load(SeqCst);
        if self.is_in_standby() {
            return Ok(());
        }
        flush()?;
        // Flushes may end in another order than they began.
        self.flushed.fetch_max(written, SeqCst);
        Ok(())
    }

    /// Stops the device. A device in use, used since its reading `begun`, or with undurable writes
    /// is not stopped.
    pub(crate) fn stop(&self, begun: Option<u64>) -> Result<Stopped, StandbyError> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_in_standby() {
            return Ok(Stopped::Before);
        }
        self.stopping.store(true, SeqCst);
        let is_quiet = self.under_way.load(SeqCst) == 0
            && begun.is_none_or(|begun| self.begun.load(SeqCst) == begun)
            && self.flushed.load(SeqCst) == self.written.load(SeqCst);
        let stopped = if is_quiet {
            self.stops.stop().map(|()| Stopped::Now)
        } else {
            Ok(Stopped::Busy)
        };
        // Before new accesses are let in: they clear the flag, and must have the last word.
        self.stands.store(stopped == Ok(Stopped::Now), SeqCst);
        self.stopping.store(false, SeqCst);
        drop(gate);
        stopped
    }
}

impl Drop for AccessGuard<'_> {
    fn drop(&mut self) {
        if self.1 == Some(TransferDirection::Write) {
            // A flush that began during the write does not cover it.
            self.0.written.fetch_add(1, SeqCst);
        }
        let under_way = self.0.under_way.fetch_sub(1, SeqCst);
        assert!(under_way > 0, "an access ends that has not begun");
    }
}
