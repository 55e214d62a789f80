//! Finds the owner of a device, from the signatures of file systems, arrays, volume managers and
//! partition tables.
//!
//! The places are those that `blkid` looks at (util-linux, libblkid), for formats of Linux
//! machines. Comments in the table name the source of a place.

use crate::Device;
use std::io;
use std::ops::Range;

/// Origin of a place.
#[derive(Clone, Copy, Debug)]
enum From {
    /// The first byte.
    Start,
    /// The end, after rounding the size down to so many bytes.
    End(u64),
}

/// Identifying bytes of an owner.
struct Signature {
    owner: &'static str,
    from: From,
    /// Bytes behind the start, or before the end.
    offset: u64,
    bytes: &'static [u8],
}

const fn at(owner: &'static str, offset: u64, bytes: &'static [u8]) -> Signature {
    Signature {
        owner,
        from: From::Start,
        offset,
        bytes,
    }
}

const fn before_end(
    owner: &'static str,
    rounded: u64,
    offset: u64,
    bytes: &'static [u8],
) -> Signature {
    Signature {
        owner,
        from: From::End(rounded),
        offset,
        bytes,
    }
}

const EXT: &str = "ext2, ext3 or ext4";
const MINIX: &str = "minix";

/// `MD_SB_MAGIC` of Linux's `md_p.h`, little-endian.
const MD: &[u8] = &[0xFC, 0x4E, 0x2B, 0xA9];

#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    at("a fullstroke array", crate::copies::START_BYTES, &crate::superblock::MAGIC),
    // s_magic of ext2_super_block, at 1024 + 56.
    at(EXT, 1080, &[0x53, 0xEF]),
    at("XFS", 0, b"XFSB"),
    // super_block at 64 KiB, magic at byte 64 of it.
    at("btrfs", 0x1_0040, b"_BHRfS_M"),
    at("NTFS", 3, b"NTFS    "),
    at("exFAT", 3, b"EXFAT   "),
    // BS_FilSysType of FAT12 and FAT16, and of FAT32.
    at("FAT", 54, b"FAT12   "),
    at("FAT", 54, b"FAT16   "),
    at("FAT", 82, b"FAT32   "),
    // The last ten bytes of the first page, of 4 KiB or 64 KiB.
    at("swap", 4086, b"SWAPSPACE2"),
    at("swap", 4086, b"SWAP-SPACE"),
    at("swap", 65526, b"SWAPSPACE2"),
    // The label is in one of the first four sectors; its type is 24 bytes behind its start.
    at("LVM2", 24, b"LVM2 001"),
    at("LVM2", 536, b"LVM2 001"),
    at("LVM2", 1048, b"LVM2 001"),
    at("LVM2", 1560, b"LVM2 001"),
    // 0.90: the last whole 64 KiB but one; 1.0: 8 KiB before the end, on 4 KiB.
    before_end("md 0.90", 64 << 10, 64 << 10, MD),
    before_end("md 1.0", 4 << 10, 8 << 10, MD),
    at("md 1.1", 0, MD),
    at("md 1.2", 4096, MD),
    at("LUKS", 0, b"LUKS\xBA\xBE"),
    at("LUKS (second header)", 0x4000, b"SKUL\xBA\xBE"),
    at("dm-integrity", 0, b"integrt\0"),
    // Uuid-like magic of struct cache_sb and bch_sb, at 4096 + 24.
    at("bcache", 4120, &[0xC6, 0x85, 0x73, 0xF6, 0x4E, 0x1A, 0x45, 0xCA, 0x82, 0x65, 0xF5, 0x7F, 0x48, 0xBA, 0x6D, 0x81]),
    at("bcachefs", 4120, &[0xC6, 0x85, 0x73, 0xF6, 0x66, 0xCE, 0x90, 0xA9, 0xD9, 0x6A, 0x60, 0xCF, 0x80, 0x3D, 0xF7, 0xEF]),
    at("Ceph BlueStore", 0, b"bluestore block device"),
    at("F2FS", 1024, &[0x10, 0x20, 0xF5, 0xF2]),
    at("EROFS", 1024, &[0xE2, 0xE1, 0xF5, 0xE0]),
    at("NILFS2", 1030, &[0x34, 0x34]),
    at("ReiserFS", 0x1_0034, b"ReIsEr"),
    at("JFS", 0x8000, b"JFS1"),
    at("squashfs", 0, b"hsqs"),
    at("ISO 9660", 0x8001, b"CD001"),
    at("HFS+", 1024, b"H+"),
    at("APFS", 32, b"NXSB"),
    // Metadata of firmware arrays: Intel's anchor is the last sector but one.
    before_end("Intel Matrix RAID", 512, 1024, b"Intel Raid ISM Cfg Sig. "),
    before_end("a DDF array", 512, 512, &[0xDE, 0x11, 0xDE, 0x11]),
    // Metadata in the last sector, or the last but one (libblkid's adaptec_raid.c, where
    // the first of two marks is enough here, lsi_, silicon_, jmicron_ and nvidia_raid.c).
    before_end("an Adaptec array", 512, 512, &[0x37, 0xFC, 0x4D, 0x1E]),
    before_end("an LSI MegaRAID array", 512, 512, b"$XIDE$"),
    before_end("a Silicon Image array", 512, 512 - 0x60, &[0, 0, 0, 0x2F]),
    before_end("a JMicron array", 512, 512, b"JM"),
    before_end("an NVIDIA array", 512, 1024, b"NVIDIA"),
    // 37x: the tenth sector; 45x: eleven before the end, sound or not.
    at("a HighPoint array", 4640, &[0xF0, 0x16, 0x78, 0x5A]),
    at("a HighPoint array", 4640, &[0xFD, 0x16, 0x78, 0x5A]),
    before_end("a HighPoint array", 512, 11 * 512, &[0xF3, 0x16, 0x78, 0x5A]),
    before_end("a HighPoint array", 512, 11 * 512, &[0xFD, 0x16, 0x78, 0x5A]),
    // One of thirteen places, counted in sectors from the end (util-linux promise_raid.c).
    before_end("a Promise array", 512, 63 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 255 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 256 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 16 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 399 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 591 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 675 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 735 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 911 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 974 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 991 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 951 * 512, b"Promise Technology, Inc."),
    before_end("a Promise array", 512, 3087 * 512, b"Promise Technology, Inc."),
    // Magics of drbd_meta_data.h, 64 bytes behind the start of the last 4 KiB. A device that holds
    // only metadata has them elsewhere, but no data beside them.
    before_end("DRBD", 1, 4096 - 60, &[0x83, 0x74, 0x02, 0x6B]),
    before_end("DRBD", 1, 4096 - 60, &[0x83, 0x74, 0x02, 0x6C]),
    before_end("DRBD", 1, 4096 - 60, &[0x83, 0x74, 0x02, 0x6D]),
    at("VDO", 0, b"dmvdo001"),
    // Two copies, in the second and the tenth sector, each behind its checksum.
    at("Stratis", 516, b"!Stra0tis\x86\xFF\x02^\x41rh"),
    at("Stratis", 9 * 512 + 4, b"!Stra0tis\x86\xFF\x02^\x41rh"),
    // id and version 1 or 2 of pv_disk.
    at("LVM1", 0, b"HM\x01\0"),
    at("LVM1", 0, b"HM\x02\0"),
    at("a snapshot's exceptions (dm)", 0, b"SnAp"),
    at("dm-verity", 0, b"verity\0\0"),
    // s_magic of 14 and of 30 characters a name, versions 1 and 2, at 1024 + 16; version 3
    // has it at 1024 + 24; each in both orders.
    at(MINIX, 1040, &[0x7F, 0x13]),
    at(MINIX, 1040, &[0x8F, 0x13]),
    at(MINIX, 1040, &[0x68, 0x24]),
    at(MINIX, 1040, &[0x78, 0x24]),
    at(MINIX, 1048, &[0x5A, 0x4D]),
    at(MINIX, 1040, &[0x13, 0x7F]),
    at(MINIX, 1040, &[0x13, 0x8F]),
    at(MINIX, 1040, &[0x24, 0x68]),
    at(MINIX, 1040, &[0x24, 0x78]),
    at(MINIX, 1048, &[0x4D, 0x5A]),
    // The first volume structure descriptor of ECMA-167; that of ISO 9660 is `CD001`.
    at("UDF", 0x8001, b"BEA01"),
    at("UDF", 0x8001, b"BOOT2"),
    at("UDF", 0x8001, b"CDW02"),
    at("UDF", 0x8001, b"NSR02"),
    at("UDF", 0x8001, b"NSR03"),
    at("UDF", 0x8001, b"TEA01"),
    // The superblock is block 2, of 512 bytes to 4 KiB.
    at("OCFS2", 1 << 10, b"OCFSV2"),
    at("OCFS2", 2 << 10, b"OCFSV2"),
    at("OCFS2", 4 << 10, b"OCFSV2"),
    at("OCFS2", 8 << 10, b"OCFSV2"),
    at("OCFS", 8 << 10, b"OracleCFS"),
    at("Oracle ASM", 32, b"ORCLDISK"),
    // GFS2_MAGIC of the superblock at 64 KiB.
    at("GFS or GFS2", 64 << 10, &[0x01, 0x16, 0x19, 0x70]),
    at("ReFS", 0, b"\0\0\0ReFS\0"),
    at("cramfs", 0, &[0x45, 0x3D, 0xCD, 0x28]),
    at("cramfs", 0, &[0x28, 0xCD, 0x3D, 0x45]),
    at("zonefs", 0, b"SFOZ"),
    at("UBI", 0, b"UBI#"),
    // The volume's description at 1 MiB, the file system's at 2 MiB.
    at("VMFS (a volume)", 1 << 20, &[0x0D, 0xD0, 0x01, 0xC0]),
    at("VMFS", 2 << 20, &[0x5E, 0xF1, 0xAB, 0x2F]),
    at("VxFS", 1 << 10, &[0xF5, 0xFC, 0x01, 0xA5]),
    at("VxFS", 8 << 10, &[0xA5, 0x01, 0xFC, 0xF5]),
    at("BitLocker", 3, b"-FVE-FS-"),
    // The header is the second block, of 512 bytes or 4 KiB, and the last.
    at("a GPT partition table", 512, b"EFI PART"),
    at("a GPT partition table", 4096, b"EFI PART"),
    before_end("a GPT partition table", 512, 512, b"EFI PART"),
    before_end("a GPT partition table", 4096, 4096, b"EFI PART"),
];

/// `UBERBLOCK_MAGIC` of ZFS, in both orders.
const UBERBLOCKS: [[u8; 8]; 2] = [
    0x0000_0000_00BA_B10Cu64.to_le_bytes(),
    0x0000_0000_00BA_B10Cu64.to_be_bytes(),
];
/// Size of a ZFS label; two labels stand at either end.
const ZFS_LABEL_BYTES: u64 = 256 << 10;
/// Size of the second half of a ZFS label: uberblocks, of 1 KiB or more each.
const UBERBLOCKS_BYTES: u64 = 128 << 10;

/// Length of the part at either end with the array's own copies; `destroy` writes zeros there.
pub(crate) const OWN_BYTES: u64 = 1 << 20;
/// Length of the part at either end with all signatures; `create` writes zeros there. VMFS has a
/// signature at 2 MiB.
pub(crate) const LOOKED_AT_BYTES: u64 = 4 << 20;

/// Returns the owners of the device, as far as signatures tell; each once.
///
/// # Errors
/// The device's.
pub fn owners(device: &dyn Device) -> io::Result<Vec<&'static str>> {
    let size = device.bytes();
    let length = size.min(LOOKED_AT_BYTES) / 4096 * 4096;
    let mut buffer = crate::device::Aligned::default();
    let mut head = vec![0; length as usize];
    let mut tail = head.clone();
    // The window ends at the end of the device, as far as blocks allow.
    let tail_start = size
        .saturating_sub(length)
        .next_multiple_of(device.block_bytes());
    let tail_start = tail_start.min(size / 4096 * 4096 - length.min(size / 4096 * 4096));
    for (start, into) in [(0, &mut head), (tail_start, &mut tail)] {
        let bytes = buffer.of(length as usize);
        device.read(start, bytes)?;
        into.copy_from_slice(bytes);
    }
    let window = DeviceEnds {
        size,
        head: &head,
        tail: &tail,
        tail_start,
    };
    let mut found: Vec<&'static str> = Vec::new();
    let known = SIGNATURES
        .iter()
        .filter(|signature| window.holds(signature))
        .map(|known| known.owner);
    for owner in known.chain(window.zfs()).chain(window.via()) {
        if !found.contains(&owner) {
            found.push(owner);
        }
    }
    if found.is_empty() {
        found.extend(window.mbr());
    }
    // A mark of two bytes, where ext has numbers (libblkid's minix.c has the same exception).
    if found.contains(&EXT) {
        found.retain(|owner| *owner != MINIX);
    }
    Ok(found)
}

/// Largest device to read as a whole in search of data.
const READ_WHOLE_BYTES: u64 = 256 << 20;
/// Length to read at the beginning of a larger device. Superblock, bitmap and journal will be there
/// (the journal has at most 16 MiB).
const READ_HEAD_BYTES: u64 = 24 << 20;
/// Number of samples between there and the end of the device, at even distances.
const SAMPLES: u64 = 256;
const SAMPLE_BYTES: u64 = 64 << 10;

/// Returns the first nonzero byte. A small device is searched as a whole, a large one at either end
/// and in samples between.
///
/// # Errors
/// The device's.
pub(crate) fn first_data(device: &dyn Device) -> io::Result<Option<u64>> {
    let bytes = device.bytes() / 4096 * 4096;
    if bytes <= READ_WHOLE_BYTES {
        return first_data_in(device, 0..bytes);
    }
    let (head, tail) = (READ_HEAD_BYTES, bytes - LOOKED_AT_BYTES);
    let step = (tail - head) / SAMPLES / 4096 * 4096;
    let samples = (0..SAMPLES).map(|sample| {
        let start = head + sample * step;
        start..start + SAMPLE_BYTES
    });
    for run in [0..head, tail..bytes].into_iter().chain(samples) {
        // A sample in a hole of a file goes to the next data behind the hole.
        let start = next_data(device, run.start) / 4096 * 4096;
        let length = run.end - run.start;
        let found = first_data_in(device, start..(start + length).min(bytes))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns the first possibly nonzero byte from `at` on.
fn next_data(device: &dyn Device, at: u64) -> u64 {
    match device.next_data(at, device.bytes().saturating_sub(at)) {
        Ok(Some(run)) => run.start,
        Ok(None) => device.bytes().max(at),
        // Some file systems cannot report holes.
        Err(_) => at,
    }
}

fn first_data_in(device: &dyn Device, run: Range<u64>) -> io::Result<Option<u64>> {
    let mut buffer = crate::device::Aligned::default();
    let mut at = run.start;
    while at < run.end {
        at = at.max(next_data(device, at) / 4096 * 4096);
        let bytes = buffer.of((run.end.saturating_sub(at)).min(1 << 20) as usize);
        if bytes.is_empty() {
            break;
        }
        device.read(at, bytes)?;
        let block = bytes.chunks(4096).position(|block| {
            // Without a way out of the loop the compiler uses vector instructions.
            block.iter().fold(0, |all, byte| all | byte) != 0
        });
        if let Some(block) = block {
            let within = bytes[block * 4096..].iter().position(|&byte| byte != 0);
            return Ok(Some(at + (block * 4096 + within.unwrap_or(0)) as u64));
        }
        at += bytes.len() as u64;
    }
    Ok(None)
}

struct DeviceEnds<'a> {
    size: u64,
    head: &'a [u8],
    tail: &'a [u8],
    tail_start: u64,
}

impl DeviceEnds<'_> {
    /// Returns the bytes from `start` on, if they are at either end.
    fn at(&self, start: u64, length: usize) -> Option<&[u8]> {
        let head = self.head.get(start as usize..)?.get(..length);
        head.or_else(|| {
            self.tail
                .get(start.checked_sub(self.tail_start)? as usize..)?
                .get(..length)
        })
    }

    fn near_end(&self, start: u64, length: usize) -> Option<&[u8]> {
        let tail = start.checked_sub(self.tail_start);
        tail.and_then(|at| self.tail.get(at as usize..)?.get(..length))
            .or_else(|| self.at(start, length))
    }

    fn holds(&self, signature: &Signature) -> bool {
        let length = signature.bytes.len();
        let found = match signature.from {
            From::Start => self.at(signature.offset, length),
            From::End(rounded) => (self.size / rounded * rounded)
                .checked_sub(signature.offset)
                .and_then(|start| self.near_end(start, length)),
        };
        found == Some(signature.bytes)
    }

    /// Finds uberblocks in one of the four labels.
    fn zfs(&self) -> Option<&'static str> {
        let end = self.size / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
        let labels = [
            Some(0),
            Some(ZFS_LABEL_BYTES),
            end.checked_sub(2 * ZFS_LABEL_BYTES),
        ];
        let labels = labels
            .into_iter()
            .chain([end.checked_sub(ZFS_LABEL_BYTES)])
            .flatten();
        let mut blocks = labels.flat_map(|label| {
            (0..UBERBLOCKS_BYTES / 1024).map(move |index| label + UBERBLOCKS_BYTES + index * 1024)
        });
        blocks
            .any(|start| {
                self.near_end(start, 8)
                    .is_some_and(|found| UBERBLOCKS.iter().any(|magic| magic == found))
            })
            .then_some("ZFS")
    }

    /// VIA's metadata in the last sector: a mark, a version up to 2, and the sum of the
    /// 50 bytes before it (libblkid's via_raid.c).
    fn via(&self) -> Option<&'static str> {
        let last = (self.size / 512 * 512).checked_sub(512)?;
        let found = self.near_end(last, 51)?;
        let sum = found[..50]
            .iter()
            .fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        (found[..2] == [0x55, 0xAA] && found[2] <= 2 && sum == found[50]).then_some("a VIA array")
    }

    /// Recognises an MBR partition table by its mark, and by a used entry. All entries must have
    /// one of the two possible flags. Boot sectors of FAT have the mark, too.
    fn mbr(&self) -> Option<&'static str> {
        let sector = self.at(0, 512)?;
        let entries = || sector[446..510].chunks_exact(16);
        let sound = entries().all(|entry| entry[0] & 0x7F == 0);
        let used = entries().any(|entry| entry[4] != 0);
        let is_table = sector[510..] == [0x55, 0xAA] && sound && used;
        is_table.then_some("an MBR partition table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileDevice, OpenPurpose};
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt as _;
    use std::path::Path;
    use std::process::Command;

    fn owners_of(path: &Path) -> Vec<&'static str> {
        owners(&FileDevice::open(path, OpenPurpose::Look).unwrap()).unwrap()
    }

    fn empty(path: &Path, bytes: u64) -> File {
        let file = File::create_new(path).unwrap();
        file.set_len(bytes).unwrap();
        file
    }

    #[test]
    fn each_signature_is_found_at_its_place_and_nothing_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        for (index, signature) in SIGNATURES.iter().enumerate() {
            // The sizes include some that are no multiple of the unit that the end is rounded to.
            let size = (8 << 20) + [0u64, 4096, 36 << 10][index % 3];
            let path = folder.path().join(index.to_string());
            let file = empty(&path, size);
            assert!(owners_of(&path).is_empty());
            let start = match signature.from {
                From::Start => signature.offset,
                From::End(rounded) => size / rounded * rounded - signature.offset,
            };
            file.write_all_at(signature.bytes, start).unwrap();
            assert_eq!(owners_of(&path), [signature.owner]);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn metadata_of_via_is_known_by_its_sum_and_ext_goes_before_minix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("via");
        let file = empty(&path, 8 << 20);
        file.write_all_at(&[0x55, 0xAA, 2, 9], (8 << 20) - 512)
            .unwrap();
        assert!(
            owners_of(&path).is_empty(),
            "a mark of two bytes alone is nobody's"
        );
        file.write_all_at(
            &[0x55u8.wrapping_add(0xAA).wrapping_add(11)],
            (8 << 20) - 512 + 50,
        )
        .unwrap();
        assert_eq!(owners_of(&path), ["a VIA array"]);
        let path = folder.path().join("ext");
        let file = empty(&path, 8 << 20);
        file.write_all_at(&[0x7F, 0x13], 1040).unwrap();
        file.write_all_at(&[0x53, 0xEF], 1080).unwrap();
        assert_eq!(owners_of(&path), [EXT]);
    }

    #[test]
    fn labels_of_zfs_and_partition_tables_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let size = (16 << 20) + 4096;
        for (index, label) in [
            0,
            256 << 10,
            (16 << 20) - (512 << 10),
            (16 << 20) - (256 << 10),
        ]
        .iter()
        .enumerate()
        {
            let path = folder.path().join(format!("zfs{index}"));
            let magic = UBERBLOCKS[index % 2];
            empty(&path, size)
                .write_all_at(&magic, label + (128 << 10) + 7 * 4096)
                .unwrap();
            assert_eq!(owners_of(&path), ["ZFS"]);
        }
        let path = folder.path().join("mbr");
        let file = empty(&path, size);
        file.write_all_at(&[0x55, 0xAA], 510).unwrap();
        assert!(
            owners_of(&path).is_empty(),
            "a boot sector without partitions is nobody's"
        );
        file.write_all_at(&[0x80, 0, 0, 0, 0x83], 446).unwrap();
        assert_eq!(owners_of(&path), ["an MBR partition table"]);
    }

    /// A program with its arguments, the name of its result in `blkid`, and the name here.
    const PROGRAMS: &[(&str, &[&str], &str, &str)] = &[
        ("mkfs.ext4", &["-q", "-F"], "ext4", "ext2, ext3 or ext4"),
        ("mkfs.xfs", &["-q", "-f"], "xfs", "XFS"),
        ("mkfs.btrfs", &["-q", "-f"], "btrfs", "btrfs"),
        ("mkfs.vfat", &[], "vfat", "FAT"),
        ("mkswap", &[], "swap", "swap"),
        ("mkfs.minix", &[], "minix", MINIX),
    ];

    #[test]
    fn what_programs_make_is_found_as_blkid_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        for (program, arguments, blkid, owner) in PROGRAMS {
            let path = folder.path().join(program);
            empty(&path, 320 << 20);
            let path_variable = format!(
                "{}:/usr/sbin:/sbin",
                std::env::var("PATH").unwrap_or_default()
            );
            let run = |program: &str, arguments: &[&str]| {
                Command::new(program)
                    .args(arguments)
                    .arg(&path)
                    .env("PATH", &path_variable)
                    .output()
            };
            if !run(program, arguments).is_ok_and(|made| made.status.success()) {
                eprintln!("skipped: no {program} here");
                continue;
            }
            assert!(owners_of(&path).contains(owner), "{program}");
            let Ok(found) = run("blkid", &["-p", "-o", "value", "-s", "TYPE"]) else {
                continue;
            };
            let found = String::from_utf8_lossy(&found.stdout).into_owned();
            assert_eq!(found.trim(), *blkid, "{program}");
        }
    }
}
