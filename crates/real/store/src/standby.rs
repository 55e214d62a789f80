//! Stops the platters of idle members. Disks get no such commands unless the user has asked for
//! standby.
//!
//! - [`StandbyWatch`] decides when to stop a device, by the policies of simulated drives
//!   ([`fullstroke_drive::spin_down`]). A watch has no clock: the caller passes `now`, and the
//!   [`DeviceReading`] of each device.
//! - [`Array::rest`] stops the due devices, [`Array::stand_by`] all devices now.
//!
//! # Accesses that wake a disk
//! These accesses wake a disk: clients' reads and writes, the mark of a region on all members
//! before its first write, superblocks when members change or the array is stopped, and filling. A
//! flush wakes no disk: a disk is stopped only when all its writes are durable, so there is nothing
//! to flush until the next write. Marks are cleared, and journal records given up, some seconds
//! after the last write. This is before the shortest accepted time. [`Array::stand_by`] does both
//! first.

use crate::array::Array;
use crate::stop_control::{DeviceReading, Standby, Stopped};
use crate::{ArrayError, Device};
use fullstroke_contract::registry::Keys;
use fullstroke_device::standby::StandbyError;
use fullstroke_drive::spin_down::{self, Costs, SpinDown};
use fullstroke_units::{Duration, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Time from full speed to standing platters and back, if the disk cannot report its own. Assumed:
/// a little more than the maxima in the manuals of `drives/`, 30 s to stop and 25 s to start.
const ROUND_TRIP: Duration = Duration::from_secs(60);

/// Number of calls of `tidy` after which every region without writes is clear: two more than the
/// required quiet ones.
const LOOKS: usize = 5;

/// Decides when devices are stopped.
pub(crate) struct StandbyWatch {
    after: Duration,
    timers: BTreeMap<String, Timer>,
}

struct Timer {
    policy: Box<dyn SpinDown>,
    begun: u64,
    idle: Time,
    /// Time of the request to stop in this idle period; one request is enough.
    asked: Option<Time>,
    /// True if the device refused to stop.
    refused: bool,
}

impl StandbyWatch {
    /// Makes a watch with the same idle time for each device.
    ///
    /// # Errors
    /// The time is too short: disks would do little but stop and start.
    pub(crate) fn new(after: Duration) -> Result<StandbyWatch, ArrayError> {
        policy(after).map(|_| StandbyWatch {
            after,
            timers: BTreeMap::new(),
        })
    }

    /// Returns true if the device is to be stopped now. The idle time of a new device begins now.
    ///
    /// # Errors
    /// None beyond those of [`new`](StandbyWatch::new).
    pub(crate) fn look(
        &mut self,
        now: Time,
        device: &str,
        reading: DeviceReading,
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

    /// Notes the refusal of a device to stop. The device gets no further requests to stop.
    pub(crate) fn refused(&mut self, device: &str) {
        if let Some(timer) = self.timers.get_mut(device) {
            timer.refused = true;
        }
    }
}

impl Timer {
    fn look(&mut self, now: Time, reading: DeviceReading) -> bool {
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

/// Checks that all devices can be stopped after the idle time `after`. Stops nothing.
///
/// # Errors
/// A device that cannot be stopped, with the reason; or the time is too short.
pub fn check_standby(after: Duration, devices: &[Arc<dyn Device>]) -> Result<(), ArrayError> {
    policy(after)?;
    devices.iter().try_for_each(|device| can_stand(&**device))
}

/// Checks that a device can be stopped.
///
/// # Errors
/// The reason why it cannot.
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
    /// Returns members and spares with their slots; spares are counted behind the members.
    fn all_devices(&self) -> Vec<(usize, Arc<dyn Device>)> {
        let members = self.devices();
        let present = members
            .iter()
            .enumerate()
            .filter_map(|(slot, device)| Some((slot, device.clone()?)));
        let spares = (members.len()..).zip(self.book().spares.to_vec());
        present.chain(spares).collect()
    }

    /// Stops the due devices.
    ///
    /// # Errors
    /// A device could not be flushed.
    pub(crate) fn rest(&self, watch: &mut StandbyWatch, now: Time) -> Result<(), ArrayError> {
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
        // `stop` refuses a device with writes that are not durable.
        if !due.is_empty() {
            self.make_durable()?;
        }
        for (slot, device, begun) in due {
            let Some(standby) = device.standby() else {
                continue;
            };
            let name = device.name();
            // With `begun`, `stop` notices an access since the reading, and leaves the disk alone.
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

    /// Stops all members and spares now, except those in use. Returns a description of the result,
    /// for people.
    ///
    /// # Errors
    /// A device cannot be stopped: then none is. Or a device failed to stop.
    pub(crate) fn stand_by(&self) -> Result<String, ArrayError> {
        let devices = self.all_devices();
        devices
            .iter()
            .try_for_each(|(_, device)| can_stand(&**device))?;
        for _ in 0..LOOKS {
            self.tidy()?;
        }
        // The first flush may write markers of the journals; the second makes them durable.
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
