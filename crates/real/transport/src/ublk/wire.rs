//! The structures exchanged with the kernel, as bytes: `include/uapi/linux/ublk_cmd.h` of Linux
//! 6.12. Numbers are in the machine's byte order.

/// A command for `/dev/ublk-control`: the number of an ioctl with the size of `struct
/// ublksrv_ctrl_cmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ControlCommand(pub(crate) u32);

const READ: u32 = 2;
const READ_WRITE: u32 = 3;

/// `_IOC(direction, 'u', number, size)`.
const fn ioctl(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | number
}

impl ControlCommand {
    pub(crate) const GET_INFO: ControlCommand = ControlCommand(ioctl(READ, 0x02, CONTROL_BYTES));
    pub(crate) const ADD: ControlCommand = ControlCommand(ioctl(READ_WRITE, 0x04, CONTROL_BYTES));
    pub(crate) const DELETE: ControlCommand =
        ControlCommand(ioctl(READ_WRITE, 0x05, CONTROL_BYTES));
    pub(crate) const START: ControlCommand = ControlCommand(ioctl(READ_WRITE, 0x06, CONTROL_BYTES));
    pub(crate) const STOP: ControlCommand = ControlCommand(ioctl(READ_WRITE, 0x07, CONTROL_BYTES));
    pub(crate) const SET_PARAMETERS: ControlCommand =
        ControlCommand(ioctl(READ_WRITE, 0x08, CONTROL_BYTES));
    pub(crate) const GET_FEATURES: ControlCommand =
        ControlCommand(ioctl(READ, 0x13, CONTROL_BYTES));
    /// Like `DELETE`, but without the wait for the last user of the device (Linux 6.9).
    pub(crate) const DELETE_ASYNC: ControlCommand =
        ControlCommand(ioctl(READ, 0x14, CONTROL_BYTES));
}

/// `UBLK_U_IO_FETCH_REQ`: fetches the next request with this tag.
pub(crate) const FETCH: u32 = ioctl(READ_WRITE, 0x20, ANSWER_BYTES);
/// `UBLK_U_IO_COMMIT_AND_FETCH_REQ`: answers a request and fetches the next.
pub(crate) const COMMIT_AND_FETCH: u32 = ioctl(READ_WRITE, 0x21, ANSWER_BYTES);

/// `UBLK_F_CMD_IOCTL_ENCODE` and `UBLK_F_USER_COPY`.
pub(crate) const FEATURES: u64 = 1 << 6 | 1 << 7;

/// `struct ublksrv_ctrl_cmd`.
const CONTROL_BYTES: usize = 32;
/// `struct ublksrv_ctrl_dev_info`.
pub(crate) const INFO_BYTES: usize = 64;
/// `struct ublksrv_io_desc`.
pub(crate) const DESCRIPTION_BYTES: usize = 24;
/// `struct ublksrv_io_cmd`.
pub(crate) const ANSWER_BYTES: usize = 16;
/// `struct ublk_params`, the used part: its head, `ublk_param_basic`, `ublk_param_discard`, padded
/// to 8 bytes.
pub(crate) const PARAMETERS_BYTES: usize = 64;

/// `UBLKSRV_IO_BUF_OFFSET`: start of the data on a character device.
const DATA_START: u64 = 0x8000_0000;
/// `UBLK_TAG_OFF`: the data of a tag begin at the tag shifted by this number of bits.
const TAG_SHIFT: u32 = 25;

fn put<const N: usize>(into: &mut [u8], at: usize, bytes: [u8; N]) {
    into[at..at + N].copy_from_slice(&bytes);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

/// Returns the data behind a command's number: the device, a number specific to the command, and
/// memory that the kernel reads or fills.
pub(crate) fn control(device: u32, data: u64, address: u64, length: u16) -> [u8; 80] {
    let mut bytes = [0; 80];
    put(&mut bytes, 0, device.to_ne_bytes());
    // No queue.
    put(&mut bytes, 4, u16::MAX.to_ne_bytes());
    put(&mut bytes, 6, length.to_ne_bytes());
    put(&mut bytes, 8, address.to_ne_bytes());
    put(&mut bytes, 16, data.to_ne_bytes());
    bytes
}

/// Description of a device: `struct ublksrv_ctrl_dev_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    /// Number of the device, or [`Info::ANY`].
    pub(crate) device: u32,
    pub(crate) depth: u16,
    pub(crate) request_bytes_max: u32,
    pub(crate) features: u64,
    /// `ublksrv_flags`: kept but not used by the kernel.
    pub(crate) label: u64,
}

impl Info {
    /// Any free number.
    pub(crate) const ANY: u32 = u32::MAX;

    /// Returns the bytes, for a device with one queue.
    pub(crate) fn to_bytes(self) -> [u8; INFO_BYTES] {
        let mut bytes = [0; INFO_BYTES];
        put(&mut bytes, 0, 1u16.to_ne_bytes());
        put(&mut bytes, 2, self.depth.to_ne_bytes());
        put(&mut bytes, 8, self.request_bytes_max.to_ne_bytes());
        put(&mut bytes, 12, self.device.to_ne_bytes());
        put(&mut bytes, 24, self.features.to_ne_bytes());
        put(&mut bytes, 32, self.label.to_ne_bytes());
        bytes
    }

    /// Parses the bytes written by the kernel or by the server of the device.
    pub(crate) fn from_bytes(bytes: &[u8; INFO_BYTES]) -> Info {
        Info {
            device: u32_at(bytes, 12),
            depth: u16::from_ne_bytes([bytes[2], bytes[3]]),
            request_bytes_max: u32_at(bytes, 8),
            features: u64_at(bytes, 24),
            label: u64_at(bytes, 32),
        }
    }
}

/// Properties of a device: `struct ublk_params`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) size_bytes: u64,
    pub(crate) block_bytes: u32,
    pub(crate) preferred_bytes: u32,
    pub(crate) request_bytes_max: u32,
    pub(crate) rotates: bool,
    /// Longest discard in bytes; 0 for no discards.
    pub(crate) discarded_bytes_max: u32,
    pub(crate) zeroed_bytes_max: u32,
}

/// `UBLK_PARAM_TYPE_BASIC` and `UBLK_PARAM_TYPE_DISCARD`.
const TYPES: u32 = 1 << 0 | 1 << 1;
/// `UBLK_ATTR_ROTATIONAL`.
const ROTATES: u32 = 1 << 1;
/// `UBLK_ATTR_VOLATILE_CACHE` and `UBLK_ATTR_FUA`: the kernel sends flushes, and writes with FUA.
const CACHES: u32 = 1 << 2 | 1 << 3;
/// Size of the kernel's sectors, for any block size.
const SECTOR_BYTES: u32 = 512;

impl Parameters {
    pub(crate) fn to_bytes(self) -> [u8; PARAMETERS_BYTES] {
        let mut bytes = [0; PARAMETERS_BYTES];
        put(&mut bytes, 0, (PARAMETERS_BYTES as u32).to_ne_bytes());
        put(&mut bytes, 4, TYPES.to_ne_bytes());
        put(
            &mut bytes,
            8,
            (CACHES | if self.rotates { ROTATES } else { 0 }).to_ne_bytes(),
        );
        let shift = |length: u32| length.trailing_zeros() as u8;
        let (block, preferred) = (shift(self.block_bytes), shift(self.preferred_bytes));
        // Logical block, physical block, preferred request and least request.
        put(&mut bytes, 12, [block, block, preferred, preferred]);
        put(
            &mut bytes,
            16,
            (self.request_bytes_max / SECTOR_BYTES).to_ne_bytes(),
        );
        put(
            &mut bytes,
            24,
            (self.size_bytes / u64::from(SECTOR_BYTES)).to_ne_bytes(),
        );
        // The field before is the boundary of segments, which stays 0. Here the discards begin.
        put(&mut bytes, 44, self.preferred_bytes.to_ne_bytes());
        put(
            &mut bytes,
            48,
            (self.discarded_bytes_max / SECTOR_BYTES).to_ne_bytes(),
        );
        put(
            &mut bytes,
            52,
            (self.zeroed_bytes_max / SECTOR_BYTES).to_ne_bytes(),
        );
        put(
            &mut bytes,
            56,
            u16::from(self.discarded_bytes_max > 0).to_ne_bytes(),
        );
        bytes
    }
}

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UblkOperation {
    /// `UBLK_IO_OP_READ`.
    Read,
    /// `UBLK_IO_OP_WRITE`.
    Write,
    /// `UBLK_IO_OP_FLUSH`: all writes answered before become durable.
    Flush,
    /// `UBLK_IO_OP_DISCARD`: the contents are no longer needed.
    Discard,
    /// `UBLK_IO_OP_WRITE_ZEROES`.
    WriteZeroes,
}

/// One request: `struct ublksrv_io_desc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    /// Operation; `None` if unknown.
    pub(crate) operation: Option<UblkOperation>,
    /// `UBLK_IO_F_FUA`.
    pub(crate) durable: bool,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
}

impl Description {
    pub(crate) fn from_bytes(bytes: &[u8; DESCRIPTION_BYTES]) -> Description {
        let what = u32_at(bytes, 0);
        let operation = match what & 0xff {
            0 => Some(UblkOperation::Read),
            1 => Some(UblkOperation::Write),
            2 => Some(UblkOperation::Flush),
            3 => Some(UblkOperation::Discard),
            5 => Some(UblkOperation::WriteZeroes),
            _ => None,
        };
        let sector = u64::from(SECTOR_BYTES);
        Description {
            operation,
            durable: what & 1 << 13 != 0,
            offset_bytes: u64_at(bytes, 8).saturating_mul(sector),
            length_bytes: u64::from(u32_at(bytes, 4)) * sector,
        }
    }
}

/// Returns the bytes of an answer with the tag to fetch next: `struct ublksrv_io_cmd` of queue 0.
/// `result` is a count of bytes, or a negative error number.
pub(crate) fn answer(tag: u16, result: i32) -> [u8; ANSWER_BYTES] {
    let mut bytes = [0; ANSWER_BYTES];
    put(&mut bytes, 2, tag.to_ne_bytes());
    put(&mut bytes, 4, result.to_ne_bytes());
    bytes
}

/// Returns the position of a tag's data on the character device, for queue 0.
pub(crate) fn data_at(tag: u16) -> u64 {
    DATA_START + (u64::from(tag) << TAG_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_numbers_of_the_kernels_header() {
        // Values of `_IOWR('u', ...)` and `_IOR('u', ...)` on x86 and ARM.
        assert_eq!(ControlCommand::GET_INFO.0, 0x8020_7502);
        assert_eq!(ControlCommand::ADD.0, 0xc020_7504);
        assert_eq!(ControlCommand::GET_FEATURES.0, 0x8020_7513);
        assert_eq!([FETCH, COMMIT_AND_FETCH], [0xc010_7520, 0xc010_7521]);
    }

    #[test]
    fn what_is_told_of_a_device_comes_back() {
        let info = Info {
            device: 7,
            depth: 64,
            request_bytes_max: 1 << 20,
            features: FEATURES,
            label: 0x0123_4567_89ab,
        };
        assert_eq!(Info::from_bytes(&info.to_bytes()), info);
    }

    #[test]
    fn a_description_says_what_and_where() {
        let mut bytes = [0; DESCRIPTION_BYTES];
        put(&mut bytes, 0, (1u32 | 1 << 13).to_ne_bytes());
        put(&mut bytes, 4, 8u32.to_ne_bytes());
        put(&mut bytes, 8, 100u64.to_ne_bytes());
        let description = Description::from_bytes(&bytes);
        assert_eq!(description.operation, Some(UblkOperation::Write));
        assert!(description.durable);
        assert_eq!(
            (description.offset_bytes, description.length_bytes),
            (51_200, 4096)
        );
        // No kernel sends UBLK_IO_OP_WRITE_SAME.
        put(&mut bytes, 0, 4u32.to_ne_bytes());
        assert_eq!(Description::from_bytes(&bytes).operation, None);
    }

    #[test]
    fn parameters_stand_where_the_kernel_looks_for_them() {
        let parameters = Parameters {
            size_bytes: 1 << 30,
            block_bytes: 512,
            preferred_bytes: 4096,
            request_bytes_max: 1 << 20,
            rotates: true,
            discarded_bytes_max: 0,
            zeroed_bytes_max: 64 << 20,
        };
        let bytes = parameters.to_bytes();
        assert_eq!(u32_at(&bytes, 8), 0b1110);
        assert_eq!(bytes[12..16], [9, 9, 12, 12]);
        assert_eq!(
            [u32_at(&bytes, 16), u32_at(&bytes, 48), u32_at(&bytes, 52)],
            [2048, 0, 131_072]
        );
        assert_eq!(u64_at(&bytes, 24), 1 << 21);
        assert_eq!(data_at(3), 0x8600_0000);
    }
}
