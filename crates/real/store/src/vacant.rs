//! Devices that become members: owners, room, and old signatures.

use crate::signatures;
use crate::{ArrayError, Device};

/// Allocates all room of the device from its file system.
pub(crate) fn allocate(device: &dyn Device) -> Result<(), ArrayError> {
    let action = "take its room from the file system of";
    device
        .allocate()
        .map_err(|error| ArrayError::device(device.name(), action, error))
}

/// Returns an error if the device has an owner, or holds any data.
pub(crate) fn refuse_owned(device: &dyn Device) -> Result<(), ArrayError> {
    let looked = |error| ArrayError::device(device.name(), "look for signatures on", error);
    let owners = signatures::owners(device).map_err(looked)?;
    if !owners.is_empty() {
        return Err(ArrayError::Refused(format!(
            "`{}` is in use: found {}; expected a device without signatures, or --force, which destroys its data",
            device.name(),
            owners.join(", ")
        )));
    }
    match signatures::first_data(device).map_err(looked)? {
        None => Ok(()),
        Some(at) => Err(ArrayError::Refused(format!(
            "`{}` holds unknown data: found other bytes than zeros at byte {at}; expected zeros, or --force, which destroys the data",
            device.name()
        ))),
    }
}

/// Writes zeros to both ends of the device, where signatures may stand. The places of own records
/// are always written. Further blocks, up to `each` bytes from each end, are written only over
/// other data, so a sparse file stays sparse.
pub(crate) fn wipe(device: &dyn Device, each: u64) -> Result<(), ArrayError> {
    let mut buffer = crate::device::Aligned::default();
    let bytes = device.bytes() / 4096 * 4096;
    let length = signatures::OWN_BYTES.min(bytes);
    let all = buffer.of(length as usize);
    let mut wipe = || {
        for done in (0..each.min(bytes)).step_by(length.max(1) as usize) {
            let (start, end) = (
                done.min(bytes - length),
                (bytes - length).saturating_sub(done),
            );
            for at in [start, end] {
                let is_zero =
                    done > 0 && device.read(at, all).is_ok() && all.iter().all(|&byte| byte == 0);
                if !is_zero {
                    all.fill(0);
                    device.write(at, all)?;
                }
            }
        }
        device.flush()
    };
    wipe().map_err(|error| ArrayError::device(device.name(), "write to", error))
}
