//! Devices whose platters can be stopped.

use crate::Device;
use crate::member_transfer::TransferDirection;
use crate::stop_control::Standby;
use fullstroke_device::standby::StoppableDisk;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;

/// A stoppable device.
pub struct StoppableDevice<D> {
    device: D,
    standby: Standby,
}

impl<D: Device> StoppableDevice<D> {
    /// Wraps `device` with its means `stops` to stop. Nothing is sent to the device.
    pub fn new(device: D, stops: Box<dyn StoppableDisk>) -> StoppableDevice<D> {
        StoppableDevice {
            device,
            standby: Standby::new(stops),
        }
    }
}

impl<D: Device> Device for StoppableDevice<D> {
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
        let _use = self.standby.begin(TransferDirection::Read);
        self.device.read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let _use = self.standby.begin(TransferDirection::Write);
        self.device.write(at, from)
    }
    fn flush(&self) -> io::Result<()> {
        self.standby.flush(|| self.device.flush())
    }
    fn trims(&self) -> bool {
        self.device.trims()
    }
    fn trim(&self, at: u64, bytes: u64) -> io::Result<()> {
        let _use = self.standby.begin(TransferDirection::Write);
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
