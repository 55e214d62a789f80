//! Stops a disk's platters on request.
//!
//! The command is START STOP UNIT (SBC-4, its clause of that name): byte 0 1Bh; byte 1 bit 0 IMMED;
//! byte 4 bits 7 to 4 POWER CONDITION, bit 2 NO_FLUSH, bit 1 LOEJ, bit 0 START.
//!
//! | disk | byte 4 | why |
//! |---|---|---|
//! | SATA, recognised by the vendor name `ATA` (SAT-4, INQUIRY) | 00h, START = 0 | SAT-4 translates the command to STANDBY IMMEDIATE (E0h). Linux's libata refuses power conditions (`ata_scsi_start_stop_xlat`). The next access starts the platters |
//! | SCSI | 30h, STANDBY | With START = 0 a disk refuses access until it is started explicitly. A disk in standby starts at the next access (SBC-4, power conditions). The disk's power condition page tells if the disk supports standby (SPC-5, power condition VPD page) |
//!
//! IMMED is 0, so the disk answers only when it has stopped, or has failed to stop.

use crate::scsi::{CommandError, DataDirection, carry_out};
use std::fs::File;
use std::path::Path;
use thiserror::Error;

/// Operation codes of SPC-5 and SBC-4.
const INQUIRY: u8 = 0x12;
const START_STOP_UNIT: u8 = 0x1b;

/// Flag: the command asks for vital product data.
const EVPD: u8 = 1;
/// Number of the power condition page, and its bit STANDBY_Z in byte 4.
const POWER_CONDITION_PAGE: u8 = 0x8a;
const STANDBY_Z: u8 = 1;
/// Length of the answer in bytes: the standard data beyond the vendor's name, and the whole page.
const ANSWER_BYTES: u8 = 36;
/// Peripheral device types of SPC-5: a disk (0) and a zoned disk (14h).
const DISKS: [u8; 2] = [0x00, 0x14];
/// Vendor name used by a translator of SCSI to ATA.
const TRANSLATED: &[u8] = b"ATA     ";

/// A device whose platters can be stopped. The next access starts the platters again.
pub trait StoppableDisk: Send + Sync {
    /// Checks if the device can be stopped. Does not stop the device.
    ///
    /// # Errors
    /// The reason why not.
    fn check(&self) -> Result<(), StandbyError>;

    /// Stops the platters.
    ///
    /// # Errors
    /// If the device did not stop.
    fn stop(&self) -> Result<(), StandbyError>;
}

/// Reason why a device cannot be stopped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StandbyError {
    /// The device has no platters of its own.
    #[error("found {0}; expected a whole SCSI or SATA disk, which alone can be put to standby")]
    NoDisk(&'static str),
    /// The device is a tape or the like.
    #[error("found a SCSI device of type {0:#04x}; expected a disk, type 0")]
    Type(u8),
    /// The disk has no standby condition.
    #[error("the disk reports no standby condition (power condition page, STANDBY_Z)")]
    NoStandby,
    /// The answer is too short.
    #[error("the disk answered INQUIRY with {found} bytes; expected at least {expected}")]
    Short {
        /// Number of bytes of the answer.
        found: usize,
        /// Least number of bytes.
        expected: usize,
    },
    /// A command failed.
    #[error("{0}")]
    Command(#[from] CommandError),
}

/// Way to stop the platters of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopMethod {
    /// SATA: STANDBY IMMEDIATE, by translation.
    Stop,
    /// SCSI: the power condition.
    Standby,
}

/// A SCSI or SATA disk, kept open.
#[derive(Debug)]
pub struct ScsiDisk {
    file: File,
    kind: DeviceKind,
}

/// Kind of the device according to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceKind {
    Whole,
    Other(&'static str),
}

impl ScsiDisk {
    /// Creates the disk on which `file` is open. Sends no command.
    pub fn new(file: File) -> ScsiDisk {
        let kind = kind_of(&file, Path::new("/sys/dev/block"));
        ScsiDisk { file, kind }
    }

    fn inquire(&self, command: &mut [u8; 6]) -> Result<Vec<u8>, CommandError> {
        let mut answer = vec![0; ANSWER_BYTES.into()];
        let left = carry_out(&self.file, command, DataDirection::FromDevice, &mut answer)?;
        // A disk may send less than was asked for. The bytes behind are no answer.
        answer.truncate(answer.len().saturating_sub(left));
        Ok(answer)
    }

    fn way(&self) -> Result<StopMethod, StandbyError> {
        if let DeviceKind::Other(what) = self.kind {
            return Err(StandbyError::NoDisk(what));
        }
        let way = way_of(&self.inquire(&mut inquiry(None))?)?;
        // A translator of SATA need not have the page, and does not need it.
        if way == StopMethod::Standby {
            let page = self.inquire(&mut inquiry(Some(POWER_CONDITION_PAGE)));
            page.map_err(no_page).and_then(|page| has_standby(&page))?;
        }
        Ok(way)
    }
}

impl StoppableDisk for ScsiDisk {
    fn check(&self) -> Result<(), StandbyError> {
        self.way().map(|_| ())
    }

    fn stop(&self) -> Result<(), StandbyError> {
        let way = self.way()?;
        carry_out(
            &self.file,
            &mut stop_command(way),
            DataDirection::None,
            &mut [],
        )?;
        Ok(())
    }
}

/// Returns INQUIRY of the standard data, or of a page of vital product data.
fn inquiry(page: Option<u8>) -> [u8; 6] {
    [
        INQUIRY,
        page.map_or(0, |_| EVPD),
        page.unwrap_or(0),
        0,
        ANSWER_BYTES,
        0,
    ]
}

fn stop_command(way: StopMethod) -> [u8; 6] {
    let condition = match way {
        // START = 0 and no power condition: SAT translates this to STANDBY IMMEDIATE.
        StopMethod::Stop => 0x00,
        // Power condition 3h, STANDBY, in the upper half of byte 4 (SBC-4, START STOP UNIT).
        StopMethod::Standby => 0x30,
    };
    [START_STOP_UNIT, 0, 0, 0, condition, 0]
}

/// Parses the standard data of INQUIRY (SPC-5): byte 0 bits 4 to 0 are the type, bytes 8 to 15 the
/// vendor.
fn way_of(answer: &[u8]) -> Result<StopMethod, StandbyError> {
    let Some(vendor) = answer.get(8..16) else {
        return Err(StandbyError::Short {
            found: answer.len(),
            expected: 16,
        });
    };
    let kind = answer[0] & 0x1f;
    if !DISKS.contains(&kind) {
        return Err(StandbyError::Type(kind));
    }
    Ok(if vendor == TRANSLATED {
        StopMethod::Stop
    } else {
        StopMethod::Standby
    })
}

/// Parses the power condition VPD page (SPC-5): byte 1 is the page code, byte 4 bit 0 is STANDBY_Z.
fn has_standby(page: &[u8]) -> Result<(), StandbyError> {
    let has = page.get(1) == Some(&POWER_CONDITION_PAGE)
        && page.get(4).is_some_and(|byte| byte & STANDBY_Z != 0);
    if has {
        Ok(())
    } else {
        Err(StandbyError::NoStandby)
    }
}

/// Converts the error of a disk without the page, which refuses the command with ILLEGAL REQUEST.
fn no_page(error: CommandError) -> StandbyError {
    match error {
        CommandError::Sense { key: 5, .. } => StandbyError::NoStandby,
        error => error.into(),
    }
}

/// Returns the kind of the device. Linux has a folder `device` for a device with a hardware driver,
/// and a file `partition` for a partition. A partition must not be stopped, because other users of
/// the disk would be stopped too.
fn kind_of(file: &File, devices: &Path) -> DeviceKind {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let Ok(metadata) = file.metadata() else {
        return DeviceKind::Other("what cannot be looked at");
    };
    if !metadata.file_type().is_block_device() {
        return DeviceKind::Other("a file");
    }
    let number = metadata.rdev();
    let own = devices.join(format!(
        "{}:{}",
        rustix::fs::major(number),
        rustix::fs::minor(number)
    ));
    kind_in(&own)
}

fn kind_in(folder: &Path) -> DeviceKind {
    if folder.join("partition").exists() {
        return DeviceKind::Other("a partition, beside which others may be in use");
    }
    if !folder.join("device").exists() {
        return DeviceKind::Other("a device that the kernel makes of others (loop, dm, md, nbd)");
    }
    DeviceKind::Whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// START STOP UNIT of SBC-4, INQUIRY of SPC-5, byte by byte.
    #[test]
    fn commands_are_laid_out_as_the_standards_have_them() {
        assert_eq!(stop_command(StopMethod::Stop), [0x1b, 0, 0, 0, 0x00, 0]);
        assert_eq!(stop_command(StopMethod::Standby), [0x1b, 0, 0, 0, 0x30, 0]);
        assert_eq!(inquiry(None), [0x12, 0, 0, 0, 36, 0]);
        assert_eq!(inquiry(Some(0x8a)), [0x12, 1, 0x8a, 0, 36, 0]);
    }

    fn answer(kind: u8, vendor: &[u8; 8]) -> Vec<u8> {
        let mut answer = vec![0; 36];
        answer[0] = kind;
        answer[8..16].copy_from_slice(vendor);
        answer
    }

    #[test]
    fn a_sata_disk_is_stopped_and_a_scsi_disk_put_to_standby() {
        assert_eq!(way_of(&answer(0, b"ATA     ")), Ok(StopMethod::Stop));
        assert_eq!(way_of(&answer(0x14, b"ATA     ")), Ok(StopMethod::Stop));
        assert_eq!(way_of(&answer(0, b"SEAGATE ")), Ok(StopMethod::Standby));
        assert_eq!(way_of(&answer(5, b"HL-DT-ST")), Err(StandbyError::Type(5)));
        assert_eq!(
            way_of(&[0; 5]),
            Err(StandbyError::Short {
                found: 5,
                expected: 16
            })
        );
    }

    #[test]
    fn a_disk_that_does_not_say_that_it_has_standby_is_not_asked_for_it() {
        // STANDBY_Y and STANDBY_Z; IDLE_C to IDLE_A.
        assert_eq!(has_standby(&[0, 0x8a, 0, 14, 0b11, 0b111]), Ok(()));
        assert_eq!(
            has_standby(&[0, 0x8a, 0, 14, 0b10, 0b111]),
            Err(StandbyError::NoStandby)
        );
        assert_eq!(
            has_standby(&[0, 0x00, 0, 14, 0b11]),
            Err(StandbyError::NoStandby)
        );
        let illegal = CommandError::Sense {
            key: 5,
            code: 0x24,
            qualifier: 0,
        };
        assert_eq!(no_page(illegal), StandbyError::NoStandby);
        assert_eq!(
            no_page(CommandError::Status(8)),
            StandbyError::Command(CommandError::Status(8))
        );
    }

    #[test]
    fn files_parts_and_devices_made_of_others_are_refused_before_anything_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str, entry: Option<&str>| {
            let own = folder.path().join(name);
            std::fs::create_dir(&own).unwrap();
            if let Some(entry) = entry {
                std::fs::create_dir(own.join(entry)).unwrap();
            }
            own
        };
        assert_eq!(kind_in(&made("8:0", Some("device"))), DeviceKind::Whole);
        assert!(
            matches!(kind_in(&made("8:1", Some("partition"))), DeviceKind::Other(what) if what.contains("partition"))
        );
        assert!(
            matches!(kind_in(&made("7:0", None)), DeviceKind::Other(what) if what.contains("loop"))
        );
        let disk = ScsiDisk::new(File::open(std::env::current_exe().unwrap()).unwrap());
        for refused in [disk.check(), disk.stop()] {
            assert_eq!(refused, Err(StandbyError::NoDisk("a file")));
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_judged(answer in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = (way_of(&answer), has_standby(&answer));
        }
    }
}
