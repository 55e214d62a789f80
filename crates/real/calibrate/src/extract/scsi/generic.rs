//! The two commands, carried by SG_IO ([`fullstroke_device::scsi`]) to a disk (`/dev/sdX`) or its
//! generic device (`/dev/sgN`).
//!
//! **No SCSI disk was at hand.** The tests cover the parts without a need for a disk. These parts
//! are the bytes of the commands against the standard's tables, and the refusal of devices other
//! than SCSI disks.

use super::Transport;
use fullstroke_device::scsi::{CommandError, DataDirection, carry_out};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Operation codes of SPC-4.
const SEND_DIAGNOSTIC: u8 = 0x1d;
const RECEIVE_DIAGNOSTIC_RESULTS: u8 = 0x1c;
/// Flag: the parameter list is in pages.
const PAGE_FORMAT: u8 = 0x10;

/// Carries diagnostic commands to a SCSI disk.
#[derive(Debug)]
pub struct ScsiGeneric {
    file: File,
}

impl ScsiGeneric {
    /// Opens a disk or its generic device. Diagnostic commands need a device opened for writing,
    /// though nothing is written.
    ///
    /// # Errors
    /// As the system's.
    pub fn open(path: &Path) -> io::Result<ScsiGeneric> {
        Ok(ScsiGeneric {
            file: OpenOptions::new().read(true).write(true).open(path)?,
        })
    }
}

impl Transport for ScsiGeneric {
    fn send_diagnostic(&mut self, parameters: &[u8]) -> Result<(), CommandError> {
        let mut bytes = parameters.to_vec();
        let mut command = send_command(parameters.len() as u16);
        let carried = carry_out(
            &self.file,
            &mut command,
            DataDirection::ToDevice,
            &mut bytes,
        );
        carried.map(|_| ())
    }

    fn receive_diagnostic(&mut self, bytes_max: u16) -> Result<Vec<u8>, CommandError> {
        let mut bytes = vec![0; bytes_max.into()];
        let carried = carry_out(
            &self.file,
            &mut receive_command(bytes_max),
            DataDirection::FromDevice,
            &mut bytes,
        );
        let left = carried?;
        bytes.truncate(bytes.len().saturating_sub(left));
        Ok(bytes)
    }
}

/// Returns SEND DIAGNOSTIC with a parameter list of `bytes` bytes.
fn send_command(bytes: u16) -> [u8; 6] {
    let [high, low] = bytes.to_be_bytes();
    [SEND_DIAGNOSTIC, PAGE_FORMAT, 0, high, low, 0]
}

/// Returns RECEIVE DIAGNOSTIC RESULTS for at most `bytes` bytes. The command has no page code,
/// because the answer belongs to the page that was sent last.
fn receive_command(bytes: u16) -> [u8; 6] {
    let [high, low] = bytes.to_be_bytes();
    [RECEIVE_DIAGNOSTIC_RESULTS, 0, 0, high, low, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_laid_out_as_the_standard_has_them() {
        assert_eq!(send_command(14), [0x1d, 0x10, 0, 0, 14, 0]);
        assert_eq!(receive_command(0x0140), [0x1c, 0, 0, 1, 0x40, 0]);
    }

    #[test]
    fn what_is_no_scsi_disk_is_refused() {
        let file = std::env::current_exe().unwrap();
        let mut none = ScsiGeneric {
            file: File::open(file).unwrap(),
        };
        let said = none
            .send_diagnostic(&[0x40, 0, 0, 0])
            .unwrap_err()
            .to_string();
        assert!(said.contains("expected a SCSI disk"), "{said}");
    }
}
