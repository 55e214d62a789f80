//! Commands to `/dev/ublk-control`: add, start, stop, delete a device.

use crate::ublk::UblkError;
use crate::ublk::wire::{self, ControlCommand, FEATURES, INFO_BYTES, Info, Parameters};
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;

const PATH: &str = "/dev/ublk-control";

/// Sends commands, one at a time. Their entries are twice as long as other entries of a ring.
pub(crate) struct ControlRing {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
}

/// Checks if devices can be created.
///
/// # Errors
/// If the kernel has no ublk, its ublk is too old, or this user may not use it.
pub fn check() -> Result<(), UblkError> {
    ControlRing::open().map(drop)
}

fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map_or_else(
        |_| "of an unknown version".to_owned(),
        |text| text.trim().to_owned(),
    )
}

impl ControlRing {
    pub(crate) fn open() -> Result<ControlRing, UblkError> {
        let absent = |source| UblkError::Absent {
            path: PATH,
            release: release(),
            source,
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(PATH)
            .map_err(absent)?;
        let ring = IoUring::builder()
            .build(2)
            .map_err(UblkError::refused("make a ring for"))?;
        let mut control = ControlRing { file, ring };
        // A ublk before 6.5 does not support this command.
        let found = control.features().unwrap_or(0);
        if found & FEATURES == FEATURES {
            Ok(control)
        } else {
            Err(UblkError::Old {
                path: PATH,
                release: release(),
                found,
            })
        }
    }

    fn features(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.give(ControlCommand::GET_FEATURES, Info::ANY, 0, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Adds a device and returns its number.
    pub(crate) fn add(&mut self, info: Info) -> io::Result<u32> {
        let mut bytes = info.to_bytes();
        self.give(ControlCommand::ADD, info.device, 0, &mut bytes)?;
        Ok(Info::from_bytes(&bytes).device)
    }

    pub(crate) fn info(&mut self, device: u32) -> io::Result<Info> {
        let mut bytes = [0; INFO_BYTES];
        self.give(ControlCommand::GET_INFO, device, 0, &mut bytes)?;
        Ok(Info::from_bytes(&bytes))
    }

    pub(crate) fn set(&mut self, device: u32, parameters: Parameters) -> io::Result<()> {
        self.give(
            ControlCommand::SET_PARAMETERS,
            device,
            0,
            &mut parameters.to_bytes(),
        )
    }

    /// Starts the device. The call waits until the server has fetched all tags. Then the device
    /// appears.
    pub(crate) fn start(&mut self, device: u32) -> io::Result<()> {
        self.give(
            ControlCommand::START,
            device,
            std::process::id().into(),
            &mut [],
        )
    }

    /// Stops the device, once its requests have been answered.
    pub(crate) fn stop(&mut self, device: u32) -> io::Result<()> {
        self.give(ControlCommand::STOP, device, 0, &mut [])
    }

    /// Frees the number of the device: at once, or when the last user has closed the device.
    pub(crate) fn delete(&mut self, device: u32) -> io::Result<()> {
        match self.give(ControlCommand::DELETE_ASYNC, device, 0, &mut []) {
            // Kernels before 6.9 can only wait.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                self.give(ControlCommand::DELETE, device, 0, &mut [])
            }
            result => result,
        }
    }

    /// Sends a command and waits for its end. The kernel reads or fills `memory`.
    #[expect(unsafe_code, reason = "the kernel takes an address")]
    fn give(
        &mut self,
        command: ControlCommand,
        device: u32,
        data: u64,
        memory: &mut [u8],
    ) -> io::Result<()> {
        let address = if memory.is_empty() {
            0
        } else {
            memory.as_mut_ptr() as u64
        };
        let words = wire::control(device, data, address, memory.len() as u16);
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), command.0)
            .cmd(words)
            .build();
        // SAFETY: `memory` is borrowed until the command has ended, because this function waits for
        // the end.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the ring is empty between commands");
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if !crate::ublk::queue::is_passing(&error) => {
                    // The kernel may still use the command and `memory`, so this function cannot
                    // return.
                    eprintln!("fullstroke: a command to `{PATH}` was not answered: {error}");
                    std::process::abort();
                }
                _ => {}
            }
            if let Some(entry) = self.ring.completion().next() {
                return match entry.result() {
                    result if result < 0 => Err(io::Error::from_raw_os_error(-result)),
                    _ => Ok(()),
                };
            }
        }
    }
}
