//! Members whose platters stand while nobody needs them. Nothing is sent to a disk
//! unless somebody has asked for that.
//!
//! - [`Attended`] is a device that can be stopped: it knows whether it is in use, and
//!   holds up who comes while it is being stopped.
//! - [`Watch`] decides when, by the policies of simulated drives
//!   ([`fullstroke_drive::spin_down`]). It has no clock: it is told `now`, and what
//!   each device's [`Reading`] is.
//! - [`Array::rest`] carries out what is due, [`Array::stand_by`] what is asked for now.
//!
//! # What wakes a disk that stands
//! What moves its data: clients' reads and writes, the mark of a region on all members
//! before its first write, superblocks when members change or the array is stopped,
//! and filling. A flush does not: a disk is stopped only when all that it was given is
//! durable, so that there is nothing to flush until it is used again. Regions are
//! forgotten, and records given up, some seconds after the last write and so before the
//! shortest time that is accepted; [`Array::stand_by`] has it done first.

use crate::array::Array;
use crate::transfer::Direction;
use crate::{ArrayError, Device};
use fullstroke_contract::registry::Keys;
use fullstroke_device::standby::{StandbyError, Stops};
use fullstroke_drive::spin_down::{self, Costs, SpinDown};
use fullstroke_units::{Duration, Time};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// From full speed to standing platters and back, where nobody can ask the disk.
/// Assumed: a little more than the manuals of `drives/` have at most, 30 s to stop and
/// 25 s to start.
const ROUND_TRIP: Duration = Duration::from_secs(60);

/// Looks behind which every region that nobody writes is forgotten: two more than it
/// must have been quiet for.
const LOOKS: usize = 5;

/// What is known of a device's use, and what stops it.
pub struct Standby {
    stops: Box<dyn Stops>,
    /// Reads and writes that have begun.
    begun: AtomicU64,
    under_way: AtomicU32,
    /// Beginnings and ends of writes, and how many there were when the last good flush
    /// began.
    written: AtomicU64,
    flushed: AtomicU64,
    /// It is being stopped, by whoever holds the gate.
    stopping: AtomicBool,
    gate: Mutex<()>,
    stands: AtomicBool,
}

/// An access that is under way, until it is dropped.
pub(crate) struct Use<'a>(&'a Standby, Option<Direction>);

/// What a [`Watch`] is told of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) begun: u64,
    pub(crate) is_busy: bool,
}

/// How an attempt to stop a device ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It stands now.
    Now,
    /// It stood already.
    Before,
    /// It is in use, or has not made everything durable.
    Busy,
}

impl Standby {
    fn new(stops: Box<dyn Stops>) -> Standby {
        Standby {
            stops,
            begun: AtomicU64::new(0),
            under_way: AtomicU32::new(0),
            // What happened to it before is not known.
            written: AtomicU64::new(1),
            flushed: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            gate: Mutex::new(()),
            stands: AtomicBool::new(false),
        }
    }

    /// Whether it can be stopped.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self) -> Result<(), StandbyError> {
        self.stops.check()
    }

    /// It was stopped, and not used since.
    pub(crate) fn stands(&self) -> bool {
        self.stands.load(SeqCst)
    }

    pub(crate) fn reading(&self) -> Reading {
        Reading {
            begun: self.begun.load(SeqCst),
            is_busy: self.under_way.load(SeqCst) > 0,
        }
    }

    /// A read or a write begins; not while the device is being stopped.
    pub(crate) fn begin(&self, direction: Direction) -> Use<'_> {
        let entered = self.enter(Some(direction));
        self.begun.fetch_add(1, SeqCst);
        if direction == Direction::Write {
            self.written.fetch_add(1, SeqCst);
        }
        self.stands.store(false, SeqCst);
        entered
    }

    /// Either it sees that the device is being stopped, or who stops it sees that
    /// somebody is there.
    fn enter(&self, direction: Option<Direction>) -> Use<'_> {
        loop {
            self.under_way.fetch_add(1, SeqCst);
            if !self.stopping.load(SeqCst) {
                return Use(self, direction);
            }
            self.under_way.fetch_sub(1, SeqCst);
            drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Makes durable what there is to be made so.
    fn flush(&self, device: &dyn Device) -> io::Result<()> {
        let _use = self.enter(None);
        let written = self.written.load(SeqCst);
        if self.stands() {
            return Ok(());
        }
        device.flush()?;
        self.flushed.fetch_max(written, SeqCst);
        Ok(())
    }

    /// Stops it, unless it is in use, or has been used since its reading said `begun`, or
    /// something is not durable.
    pub(crate) fn stop(&self, begun: Option<u64>) -> Result<Stopped, StandbyError> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stands() {
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
        self.stands.store(stopped == Ok(Stopped::Now), SeqCst);
        self.stopping.store(false, SeqCst);
        drop(gate);
        stopped
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        if self.1 == Some(Direction::Write) {
            // A flush that began meanwhile does not count.
            self.0.written.fetch_add(1, SeqCst);
        }
        self.0.under_way.fetch_sub(1, SeqCst);
    }
}

/// A device that can be stopped.
pub struct Attended<D> {
    device: D,
    standby: Standby,
}

impl<D: Device> Attended<D> {
    /// `device`, which `stops` can stop. Nothing is sent to it.
    pub fn new(device: D, stops: Box<dyn Stops>) -> Attended<D> {
        Attended {
            device,
            standby: Standby::new(stops),
        }
    }
}

impl<D: Device> Device for Attended<D> {
    fn name(&self) -> String {
        self.device.name()
    }
    fn bytes(&self) -> u64 {
        self.device.bytes()
    }
    fn block_bytes(&self) -> u64 {
        self.device.block_bytes()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let _use = self.standby.begin(Direction::Read);
        self.device.read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let _use = self.standby.begin(Direction::Write);
        self.device.write(at, from)
    }
    fn flush(&self) -> io::Result<()> {
        self.standby.flush(&self.device)
    }
    fn trims(&self) -> bool {
        self.device.trims()
    }
    fn trim(&self, at: u64, bytes: u64) -> io::Result<()> {
        let _use = self.standby.begin(Direction::Write);
        self.device.trim(at, bytes)
    }
    fn allocate(&self) -> io::Result<()> {
        self.device.allocate()
    }
    fn next_data(&self, at: u64, bytes: u64) -> io::Result<Option<Range<u64>>> {
        self.device.next_data(at, bytes)
    }
    fn is_zero(&self) -> bool {
        self.device.is_zero()
    }
    fn is_cached(&self) -> bool {
        self.device.is_cached()
    }
    fn descriptor(&self) -> Option<RawFd> {
        self.device.descriptor()
    }
    fn standby(&self) -> Option<&Standby> {
        Some(&self.standby)
    }
}

/// When devices are to be stopped.
pub(crate) struct Watch {
    after: Duration,
    timers: BTreeMap<String, Timer>,
}

struct Timer {
    policy: Box<dyn SpinDown>,
    begun: u64,
    idle: Time,
    /// When it was to be stopped in this idle time; once is enough.
    asked: Option<Time>,
    /// It did not do it.
    refused: bool,
}

impl Watch {
    /// Each behind an idle time of its own.
    ///
    /// # Errors
    /// Disks would do little but stop and start.
    pub(crate) fn new(after: Duration) -> Result<Watch, ArrayError> {
        policy(after).map(|_| Watch {
            after,
            timers: BTreeMap::new(),
        })
    }

    /// What is to be stopped now. Who is seen for the first time is idle since now.
    ///
    /// # Errors
    /// None that [`new`](Watch::new) has not had.
    pub(crate) fn look(
        &mut self,
        now: Time,
        device: &str,
        reading: Reading,
    ) -> Result<bool, ArrayError> {
        if !self.timers.contains_key(device) {
            let policy = policy(self.after)?;
            let timer = Timer {
                policy,
                begun: reading.begun,
                idle: now,
                asked: None,
                refused: false,
            };
            self.timers.insert(device.to_owned(), timer);
        }
        Ok(self
            .timers
            .get_mut(device)
            .is_some_and(|timer| timer.look(now, reading)))
    }

    /// It did not do it, and is not asked again.
    pub(crate) fn refused(&mut self, device: &str) {
        if let Some(timer) = self.timers.get_mut(device) {
            timer.refused = true;
        }
    }
}

impl Timer {
    fn look(&mut self, now: Time, reading: Reading) -> bool {
        if reading.is_busy || reading.begun != self.begun {
            if let Some(asked) = self.asked.take() {
                self.policy.woken(now.saturating_since(asked));
            }
            (self.begun, self.idle) = (reading.begun, now);
        }
        let is_due = !self.refused
            && !reading.is_busy
            && self.asked.is_none()
            && now >= self.policy.stops_at(self.idle);
        if is_due {
            self.asked = Some(now);
        }
        is_due
    }
}

fn policy(after: Duration) -> Result<Box<dyn SpinDown>, ArrayError> {
    if after < ROUND_TRIP {
        return Err(ArrayError::Refused(format!(
            "--standby-after: found {after}; expected at least {ROUND_TRIP}, the time that a disk may need to stop and to start"
        )));
    }
    let keys: Keys = [("after".to_owned(), serde_json::json!(after.to_string()))]
        .into_iter()
        .collect();
    let costs = Costs {
        round_trip: ROUND_TRIP,
        break_even: None,
    };
    spin_down::named("fixed", &keys, &costs)
        .map_err(|error| ArrayError::Refused(format!("--standby-after: {}", error.message)))
}

/// Whether all of these can be stopped behind such a time; nothing is stopped.
///
/// # Errors
/// Which cannot, and why; or the time is too short.
pub fn check_standby(after: Duration, devices: &[Arc<dyn Device>]) -> Result<(), ArrayError> {
    policy(after)?;
    devices.iter().try_for_each(|device| can_stand(&**device))
}

/// # Errors
/// Why it cannot be stopped.
pub(crate) fn can_stand(device: &dyn Device) -> Result<(), ArrayError> {
    let checked = device
        .standby()
        .map_or(Err(StandbyError::NoDisk("a file")), Standby::check);
    checked.map_err(|error| {
        ArrayError::Refused(format!(
            "`{}` cannot be put to standby: {error}",
            device.name()
        ))
    })
}

impl Array {
    /// Members and spares with their places; spares are counted behind.
    fn all_devices(&self) -> Vec<(usize, Arc<dyn Device>)> {
        let members = self.devices();
        let present = members
            .iter()
            .enumerate()
            .filter_map(|(slot, device)| Some((slot, device.clone()?)));
        let spares = (members.len()..).zip(self.book().spares.to_vec());
        present.chain(spares).collect()
    }

    /// Stops what is due.
    ///
    /// # Errors
    /// A device could not be flushed.
    pub(crate) fn rest(&self, watch: &mut Watch, now: Time) -> Result<(), ArrayError> {
        let mut due = Vec::new();
        for (slot, device) in self.all_devices() {
            let Some(standby) = device.standby() else {
                continue;
            };
            let reading = standby.reading();
            if watch.look(now, &device.name(), reading)? {
                due.push((slot, device, reading.begun));
            }
        }
        if !due.is_empty() {
            self.make_durable()?;
        }
        for (slot, device, begun) in due {
            let Some(standby) = device.standby() else {
                continue;
            };
            let name = device.name();
            match standby.stop(Some(begun)) {
                Ok(Stopped::Now) => self.happened("standby", slot, name, "the disk was idle"),
                Ok(Stopped::Before | Stopped::Busy) => {}
                Err(error) => {
                    watch.refused(&name);
                    let why = format!("standby failed, and is not tried again: {error}");
                    self.happened("refused", slot, name, &why);
                }
            }
        }
        Ok(())
    }

    /// Stops all members and spares now, but those that are in use. Answers what was
    /// done, for people.
    ///
    /// # Errors
    /// One of them cannot be stopped: then none is; or did not.
    pub(crate) fn stand_by(&self) -> Result<String, ArrayError> {
        let devices = self.all_devices();
        devices
            .iter()
            .try_for_each(|(_, device)| can_stand(&**device))?;
        for _ in 0..LOOKS {
            self.tidy()?;
        }
        // The second makes durable what the first has written.
        self.make_durable()?;
        self.make_durable()?;
        let mut busy = Vec::new();
        for (_, device) in &devices {
            let stopped = device
                .standby()
                .map_or(Ok(Stopped::Busy), |standby| standby.stop(None));
            match stopped {
                Ok(Stopped::Busy) => busy.push(format!("`{}`", device.name())),
                Ok(Stopped::Now | Stopped::Before) => {}
                Err(error) => {
                    let message = format!("`{}` was not put to standby: {error}", device.name());
                    return Err(ArrayError::Refused(message));
                }
            }
        }
        let stand = devices.len() - busy.len();
        Ok(match busy.is_empty() {
            true => format!("{stand} disks in standby"),
            false => format!("{stand} disks in standby; in use: {}", busy.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests;
