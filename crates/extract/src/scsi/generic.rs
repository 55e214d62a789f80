//! The two commands, carried by Linux's SG_IO (`scsi/sg.h`, interface version 3): to
//! a disk (`/dev/sdX`) or its generic device (`/dev/sgN`), by who may send it raw
//! commands.
//!
//! **No SCSI disk was at hand.** What is tested is what can be without one: the bytes
//! of the commands, and what is made of statuses and sense data, both against the
//! standard's tables; and that what is no SCSI disk is refused.

use super::Transport;
use rustix::ioctl::{Opcode, Updater, ioctl};
use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::ptr::null_mut;

/// `SG_IO` of `scsi/sg.h`.
const SG_IO: Opcode = 0x2285;

/// Directions of `scsi/sg.h`.
const TO_DEVICE: i32 = -2;
const FROM_DEVICE: i32 = -3;

/// A disk may be turning up.
const TIMEOUT_MS: u32 = 30_000;

/// Operation codes of SPC-4.
const SEND_DIAGNOSTIC: u8 = 0x1d;
const RECEIVE_DIAGNOSTIC_RESULTS: u8 = 0x1c;
/// The parameter list is in pages.
const PAGE_FORMAT: u8 = 0x10;

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

/// Good, and good but for something to say (SAM-5, 5.3.1).
const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;
/// The driver has put sense data there, which is no failure of its own.
const DRIVER_SENSE: u16 = 8;

/// Carries diagnostic commands to a SCSI disk.
#[derive(Debug)]
pub struct ScsiGeneric {
    file: File,
}

impl ScsiGeneric {
    /// Opens a disk or its generic device. Diagnostic commands need it open for
    /// writing, though nothing is written.
    ///
    /// # Errors
    /// As the system's.
    pub fn open(path: &Path) -> io::Result<ScsiGeneric> {
        Ok(ScsiGeneric { file: OpenOptions::new().read(true).write(true).open(path)? })
    }
}

impl Transport for ScsiGeneric {
    fn send_diagnostic(&mut self, parameters: &[u8]) -> Result<(), String> {
        let mut bytes = parameters.to_vec();
        carry_out(&self.file, &mut send_command(parameters.len() as u16), TO_DEVICE, &mut bytes).map(|_| ())
    }

    fn receive_diagnostic(&mut self, bytes_max: u16) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; bytes_max.into()];
        let left = carry_out(&self.file, &mut receive_command(bytes_max), FROM_DEVICE, &mut bytes)?;
        bytes.truncate(bytes.len().saturating_sub(left));
        Ok(bytes)
    }
}

/// SEND DIAGNOSTIC with a parameter list of so many bytes.
fn send_command(bytes: u16) -> [u8; 6] {
    let [high, low] = bytes.to_be_bytes();
    [SEND_DIAGNOSTIC, PAGE_FORMAT, 0, high, low, 0]
}

/// RECEIVE DIAGNOSTIC RESULTS of at most so many bytes: of the page that was sent
/// last, for which no page code is given.
fn receive_command(bytes: u16) -> [u8; 6] {
    let [high, low] = bytes.to_be_bytes();
    [RECEIVE_DIAGNOSTIC_RESULTS, 0, 0, high, low, 0]
}

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

/// Sends one command and moves its data; says how many bytes of them were not moved.
#[expect(unsafe_code, reason = "no crate in use carries SG_IO without; the kernel takes addresses")]
fn carry_out(file: &File, command: &mut [u8; 6], direction: i32, data: &mut [u8]) -> Result<usize, String> {
    let mut sense = [0u8; SENSE_BYTES];
    let mut header = Header {
        interface: 'S' as i32,
        direction,
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
    // SAFETY: `SG_IO` takes and changes a `sg_io_hdr`, which `Header` is. Its three
    // addresses are of memory that is borrowed until the call returns, with its
    // lengths beside them.
    let carried = unsafe { ioctl(file, Updater::<SG_IO, Header>::new(&mut header)) };
    carried.map_err(|error| format!("SG_IO: {error}; expected a SCSI disk"))?;
    let written = usize::from(header.sense_bytes).min(SENSE_BYTES);
    judge(header.status, header.host_status, header.driver_status, &sense[..written])?;
    Ok(usize::try_from(header.bytes_left).unwrap_or(0))
}

/// Whether a command has done what it should.
fn judge(status: u8, host_status: u16, driver_status: u16, sense: &[u8]) -> Result<(), String> {
    if host_status != 0 {
        return Err(format!("the adapter failed with status {host_status:#04x}"));
    }
    if driver_status & !DRIVER_SENSE != 0 {
        return Err(format!("the driver failed with status {driver_status:#04x}"));
    }
    match status {
        GOOD => Ok(()),
        CHECK_CONDITION => match sensed(sense) {
            // It has been done, and so has what went before.
            Some((0 | 1, ..)) => Ok(()),
            Some((key, code, qualifier)) => {
                let key = SENSE_KEYS[usize::from(key)];
                Err(format!("the disk says {key}, additional sense {code:02x}h/{qualifier:02x}h"))
            }
            None => Err("the disk found the command bad, and did not say why".into()),
        },
        other => Err(format!("the disk answers with status {other:#04x}")),
    }
}

/// Sense key, additional code and its qualifier, of either format (SPC-4, 4.5).
fn sensed(sense: &[u8]) -> Option<(u8, u8, u8)> {
    let byte = |at: usize| sense.get(at).copied();
    match byte(0)? & 0x7f {
        0x70 | 0x71 => Some((byte(2)? & 0x0f, byte(12).unwrap_or(0), byte(13).unwrap_or(0))),
        0x72 | 0x73 => Some((byte(1)? & 0x0f, byte(2)?, byte(3)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_laid_out_as_the_standard_has_them() {
        assert_eq!(send_command(14), [0x1d, 0x10, 0, 0, 14, 0]);
        assert_eq!(receive_command(0x0140), [0x1c, 0, 0, 1, 0x40, 0]);
    }

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
            let said = judge(2, 0, DRIVER_SENSE, sense).unwrap_err();
            assert_eq!(said, "the disk says illegal request, additional sense 26h/00h");
        }
        assert_eq!(judge(2, 0, 0, &[0x70, 0, 1]), Ok(()));
        assert_eq!(judge(0, 0, 0, &[]), Ok(()));
        assert!(judge(2, 0, 0, &[]).is_err() && judge(8, 0, 0, &[]).is_err() && judge(0, 3, 0, &[]).is_err());
    }

    #[test]
    fn what_is_no_scsi_disk_is_refused() {
        let file = std::env::current_exe().unwrap();
        let mut none = ScsiGeneric { file: File::open(file).unwrap() };
        let said = none.send_diagnostic(&[0x40, 0, 0, 0]).unwrap_err();
        assert!(said.contains("expected a SCSI disk"), "{said}");
    }

    proptest! {
        #[test]
        fn any_sense_is_judged(status: u8, host: u16, driver: u16, sense in prop::collection::vec(any::<u8>(), 0..32)) {
            let _ = judge(status, host, driver, &sense);
        }
    }
}
