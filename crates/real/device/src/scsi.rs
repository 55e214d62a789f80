//! Commands to a SCSI disk, carried by Linux's SG_IO (`scsi/sg.h`, interface version 3). The user
//! needs the permission to send raw commands. SATA disks are SCSI disks to Linux.
//!
//! **No SCSI disk was at hand.** The tests cover the parts without a need for a disk. These parts
//! are the interpretation of statuses and sense data against the standard's tables, and the refusal
//! of devices other than SCSI disks.

use rustix::ioctl::{Opcode, Updater, ioctl};
use std::ffi::c_void;
use std::fs::File;
use std::ptr::null_mut;
use thiserror::Error;

/// `SG_IO` of `scsi/sg.h`.
const SG_IO: Opcode = 0x2285;

/// Direction of a command's data. The numbers are those of `scsi/sg.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum DataDirection {
    /// No data.
    None = -1,
    /// To the disk.
    ToDevice = -2,
    /// From the disk.
    FromDevice = -3,
}

/// Reason why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The kernel carries no commands to the device.
    #[error("SG_IO: {0}; expected a SCSI disk")]
    NoScsi(rustix::io::Errno),
    /// The transport to the disk failed.
    #[error("the {part} failed with status {status:#04x}")]
    Way {
        /// `adapter` or `driver`.
        part: &'static str,
        /// Status number of `scsi/scsi.h`.
        status: u16,
    },
    /// The disk reports an error.
    #[error("the disk says {}, additional sense {code:02x}h/{qualifier:02x}h", SENSE_KEYS[usize::from(*key & 15)])]
    Sense {
        /// Sense key of SPC-4.
        key: u8,
        /// Additional sense code.
        code: u8,
        /// Additional sense code qualifier.
        qualifier: u8,
    },
    /// The disk reports an error without a reason.
    #[error("the disk found the command bad, and did not say why")]
    Unsaid,
    /// Another status of SAM-5.
    #[error("the disk answers with status {0:#04x}")]
    Status(u8),
}

/// Timeout in ms, long enough for a disk that is spinning up.
const TIMEOUT_MS: u32 = 30_000;

/// Sense keys of SPC-4, by number.
const SENSE_KEYS: [&str; 16] = [
    "no sense",
    "recovered error",
    "not ready",
    "medium error",
    "hardware error",
    "illegal request",
    "unit attention",
    "data protect",
    "blank check",
    "vendor specific",
    "copy aborted",
    "aborted command",
    "reserved",
    "volume overflow",
    "miscompare",
    "completed",
];

const SENSE_BYTES: usize = 32;

/// Status of success, and of success or failure with sense data (SAM-5, 5.3.1).
const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;
/// Driver status: the driver has stored sense data, which is no failure.
const DRIVER_SENSE: u16 = 8;

/// `struct sg_io_hdr` of `scsi/sg.h`.
#[repr(C)]
struct Header {
    interface: i32,
    direction: i32,
    command_bytes: u8,
    sense_bytes_max: u8,
    pieces: u16,
    bytes: u32,
    data: *mut c_void,
    command: *mut u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack: i32,
    user: *mut c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_bytes: u8,
    host_status: u16,
    driver_status: u16,
    bytes_left: i32,
    duration_ms: u32,
    info: u32,
}

/// Sends one command and moves the data. Returns the number of bytes that were not moved.
///
/// # Errors
/// If the disk did not carry out the command, or the device is no SCSI disk.
#[expect(
    unsafe_code,
    reason = "no crate in use carries SG_IO without; the kernel takes addresses"
)]
pub fn carry_out(
    file: &File,
    command: &mut [u8; 6],
    direction: DataDirection,
    data: &mut [u8],
) -> Result<usize, CommandError> {
    let mut sense = [0u8; SENSE_BYTES];
    let mut header = Header {
        interface: 'S' as i32,
        direction: direction as i32,
        command_bytes: command.len() as u8,
        sense_bytes_max: SENSE_BYTES as u8,
        pieces: 0,
        bytes: data.len() as u32,
        data: data.as_mut_ptr().cast(),
        command: command.as_mut_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: TIMEOUT_MS,
        flags: 0,
        pack: 0,
        user: null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_bytes: 0,
        host_status: 0,
        driver_status: 0,
        bytes_left: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: `SG_IO` reads and changes a `sg_io_hdr`, and `Header` has its layout. Its three
    // addresses point to memory that is borrowed until the call returns, with the correct lengths.
    let carried = unsafe { ioctl(file, Updater::<SG_IO, Header>::new(&mut header)) };
    carried.map_err(CommandError::NoScsi)?;
    // The kernel's count is not trusted beyond the buffer.
    let written = usize::from(header.sense_bytes).min(SENSE_BYTES);
    judge(
        header.status,
        header.host_status,
        header.driver_status,
        &sense[..written],
    )?;
    Ok(usize::try_from(header.bytes_left).unwrap_or(0))
}

/// Returns an error if a command has failed.
fn judge(
    status: u8,
    host_status: u16,
    driver_status: u16,
    sense: &[u8],
) -> Result<(), CommandError> {
    // The transport comes first: without it the status of the disk was never received.
    if host_status != 0 {
        return Err(CommandError::Way {
            part: "adapter",
            status: host_status,
        });
    }
    if driver_status & !DRIVER_SENSE != 0 {
        return Err(CommandError::Way {
            part: "driver",
            status: driver_status,
        });
    }
    match status {
        GOOD => Ok(()),
        CHECK_CONDITION => match sensed(sense) {
            // Sense keys 0 and 1 (no sense, recovered error): the command was carried out.
            Some((0 | 1, ..)) => Ok(()),
            Some((key, code, qualifier)) => Err(CommandError::Sense {
                key,
                code,
                qualifier,
            }),
            None => Err(CommandError::Unsaid),
        },
        other => Err(CommandError::Status(other)),
    }
}

/// Returns sense key, additional sense code and qualifier, of either format (SPC-4, 4.5).
fn sensed(sense: &[u8]) -> Option<(u8, u8, u8)> {
    let byte = |at: usize| sense.get(at).copied();
    match byte(0)? & 0x7f {
        0x70 | 0x71 => Some((
            byte(2)? & 0x0f,
            byte(12).unwrap_or(0),
            byte(13).unwrap_or(0),
        )),
        0x72 | 0x73 => Some((byte(1)? & 0x0f, byte(2)?, byte(3)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_header_is_as_long_as_the_kernels() {
        // scsi/sg.h of a 64-bit system: three addresses at 16, one at 56.
        #[cfg(target_pointer_width = "64")]
        {
            assert_eq!(size_of::<Header>(), 88);
            assert_eq!(std::mem::offset_of!(Header, data), 16);
            assert_eq!(std::mem::offset_of!(Header, user), 56);
            assert_eq!(std::mem::offset_of!(Header, status), 64);
            assert_eq!(std::mem::offset_of!(Header, bytes_left), 72);
        }
    }

    /// Sense data by the tables of SPC-4, 4.5: fixed and descriptor format.
    #[test]
    fn a_disk_that_has_no_such_page_says_so() {
        let mut fixed = [0u8; 18];
        (fixed[0], fixed[2], fixed[7], fixed[12], fixed[13]) = (0x70, 0x05, 10, 0x26, 0x00);
        let descriptor = [0x72, 0x05, 0x26, 0x00, 0, 0, 0, 0];
        for sense in [&fixed[..], &descriptor[..]] {
            let said = judge(2, 0, DRIVER_SENSE, sense).unwrap_err().to_string();
            assert_eq!(
                said,
                "the disk says illegal request, additional sense 26h/00h"
            );
        }
        assert_eq!(judge(2, 0, 0, &[0x70, 0, 1]), Ok(()));
        assert_eq!(judge(0, 0, 0, &[]), Ok(()));
        assert!(
            judge(2, 0, 0, &[]).is_err()
                && judge(8, 0, 0, &[]).is_err()
                && judge(0, 3, 0, &[]).is_err()
        );
    }

    #[test]
    fn what_is_no_scsi_disk_is_refused() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let refused = carry_out(&file, &mut [0; 6], DataDirection::None, &mut []).unwrap_err();
        assert!(matches!(refused, CommandError::NoScsi(_)), "{refused}");
        assert!(
            refused.to_string().contains("expected a SCSI disk"),
            "{refused}"
        );
    }

    proptest! {
        #[test]
        fn any_sense_is_judged(status: u8, host: u16, driver: u16, sense in prop::collection::vec(any::<u8>(), 0..32)) {
            let _ = judge(status, host, driver, &sense);
        }
    }
}
