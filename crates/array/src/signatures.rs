//! Whose a device is, by what stands at the places where file systems, arrays,
//! volume managers and partition tables leave their signatures.
//!
//! The places are those that `blkid` looks at (util-linux, libblkid), for what is
//! found on Linux machines; each line of the table names where that is said.

use crate::Device;
use std::io;

/// From where a place is counted.
#[derive(Clone, Copy, Debug)]
enum From {
    /// The first byte.
    Start,
    /// The end, after rounding the size down to so many bytes.
    End(u64),
}

/// Bytes by which somebody is known.
struct Signature {
    owner: &'static str,
    from: From,
    /// Bytes behind the start, or before the end.
    offset: u64,
    bytes: &'static [u8],
}

const fn at(owner: &'static str, offset: u64, bytes: &'static [u8]) -> Signature {
    Signature { owner, from: From::Start, offset, bytes }
}

const fn before_end(owner: &'static str, rounded: u64, offset: u64, bytes: &'static [u8]) -> Signature {
    Signature { owner, from: From::End(rounded), offset, bytes }
}

/// `MD_SB_MAGIC` of Linux's `md_p.h`, little-endian.
const MD: &[u8] = &[0xFC, 0x4E, 0x2B, 0xA9];

#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    at("a fullstroke array", crate::superblock::START_BYTES, &crate::superblock::MAGIC),
    // s_magic of ext2_super_block, at 1024 + 56.
    at("ext2, ext3 or ext4", 1080, &[0x53, 0xEF]),
    at("XFS", 0, b"XFSB"),
    // super_block at 64 KiB, magic at 64 in it.
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
    // The label is in one of the first four sectors, its type 24 bytes in it.
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
    // The header is the second block, of 512 bytes or 4 KiB, and the last.
    at("a GPT partition table", 512, b"EFI PART"),
    at("a GPT partition table", 4096, b"EFI PART"),
    before_end("a GPT partition table", 512, 512, b"EFI PART"),
    before_end("a GPT partition table", 4096, 4096, b"EFI PART"),
];

/// `UBERBLOCK_MAGIC` of ZFS, in both orders.
const UBERBLOCKS: [[u8; 8]; 2] =
    [0x0000_0000_00BA_B10Cu64.to_le_bytes(), 0x0000_0000_00BA_B10Cu64.to_be_bytes()];
/// A ZFS label; two stand at either end.
const ZFS_LABEL_BYTES: u64 = 256 << 10;
/// Its second half are uberblocks, of a KiB or more each.
const UBERBLOCKS_BYTES: u64 = 128 << 10;

/// Where the array's own copies and all signatures of others are: what `create`
/// and `destroy` make zeros of, at either end.
pub(crate) const WIPED_BYTES: u64 = 1 << 20;

/// What the device belongs to, as far as that can be seen; each once.
///
/// # Errors
/// The device's.
pub fn owners(device: &dyn Device) -> io::Result<Vec<&'static str>> {
    let size = device.bytes();
    let length = size.min(WIPED_BYTES) / 4096 * 4096;
    let mut buffer = crate::device::Aligned::default();
    let mut head = vec![0; length as usize];
    let mut tail = head.clone();
    // The end of the window is that of the device, as far as blocks allow.
    let tail_start = size.saturating_sub(length).next_multiple_of(device.block_bytes());
    let tail_start = tail_start.min(size / 4096 * 4096 - length.min(size / 4096 * 4096));
    for (start, into) in [(0, &mut head), (tail_start, &mut tail)] {
        let bytes = buffer.of(length as usize);
        device.read(start, bytes)?;
        into.copy_from_slice(bytes);
    }
    let window = Window { size, head: &head, tail: &tail, tail_start };
    let mut found: Vec<&'static str> = Vec::new();
    let known = SIGNATURES.iter().filter(|signature| window.holds(signature)).map(|known| known.owner);
    for owner in known.chain(window.zfs()) {
        if !found.contains(&owner) {
            found.push(owner);
        }
    }
    if found.is_empty() {
        found.extend(window.mbr());
    }
    Ok(found)
}

struct Window<'a> {
    size: u64,
    head: &'a [u8],
    tail: &'a [u8],
    tail_start: u64,
}

impl Window<'_> {
    /// The bytes from `start` on, if they are at either end.
    fn at(&self, start: u64, length: usize) -> Option<&[u8]> {
        let head = self.head.get(start as usize..)?.get(..length);
        head.or_else(|| self.tail.get(start.checked_sub(self.tail_start)? as usize..)?.get(..length))
    }

    fn near_end(&self, start: u64, length: usize) -> Option<&[u8]> {
        let tail = start.checked_sub(self.tail_start);
        tail.and_then(|at| self.tail.get(at as usize..)?.get(..length)).or_else(|| self.at(start, length))
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

    /// Uberblocks in one of the four labels.
    fn zfs(&self) -> Option<&'static str> {
        let end = self.size / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
        let labels = [Some(0), Some(ZFS_LABEL_BYTES), end.checked_sub(2 * ZFS_LABEL_BYTES)];
        let labels = labels.into_iter().chain([end.checked_sub(ZFS_LABEL_BYTES)]).flatten();
        let mut blocks = labels.flat_map(|label| {
            (0..UBERBLOCKS_BYTES / 1024).map(move |index| label + UBERBLOCKS_BYTES + index * 1024)
        });
        blocks
            .any(|start| {
                self.near_end(start, 8).is_some_and(|found| UBERBLOCKS.iter().any(|magic| magic == found))
            })
            .then_some("ZFS")
    }

    /// A partition table of the old kind: its mark, and an entry in use whose
    /// flag is one of the two that there are. Boot sectors of FAT have the mark,
    /// too.
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
    use crate::{Access, FileDevice};
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt as _;
    use std::path::Path;
    use std::process::Command;

    fn owners_of(path: &Path) -> Vec<&'static str> {
        owners(&FileDevice::open(path, Access::Look).unwrap()).unwrap()
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
            // Of sizes that are no multiple of what the end is rounded to.
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
    fn labels_of_zfs_and_partition_tables_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let size = (16 << 20) + 4096;
        for (index, label) in
            [0, 256 << 10, (16 << 20) - (512 << 10), (16 << 20) - (256 << 10)].iter().enumerate()
        {
            let path = folder.path().join(format!("zfs{index}"));
            let magic = UBERBLOCKS[index % 2];
            empty(&path, size).write_all_at(&magic, label + (128 << 10) + 7 * 4096).unwrap();
            assert_eq!(owners_of(&path), ["ZFS"]);
        }
        let path = folder.path().join("mbr");
        let file = empty(&path, size);
        file.write_all_at(&[0x55, 0xAA], 510).unwrap();
        assert!(owners_of(&path).is_empty(), "a boot sector without partitions is nobody's");
        file.write_all_at(&[0x80, 0, 0, 0, 0x83], 446).unwrap();
        assert_eq!(owners_of(&path), ["an MBR partition table"]);
    }

    /// What `blkid` calls a thing, and what it is called here.
    const PROGRAMS: &[(&str, &[&str], &str, &str)] = &[
        ("mkfs.ext4", &["-q", "-F"], "ext4", "ext2, ext3 or ext4"),
        ("mkfs.xfs", &["-q", "-f"], "xfs", "XFS"),
        ("mkfs.btrfs", &["-q", "-f"], "btrfs", "btrfs"),
        ("mkfs.vfat", &[], "vfat", "FAT"),
        ("mkswap", &[], "swap", "swap"),
    ];

    #[test]
    fn what_programs_make_is_found_as_blkid_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        for (program, arguments, blkid, owner) in PROGRAMS {
            let path = folder.path().join(program);
            empty(&path, 320 << 20);
            let path_variable = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
            let run = |program: &str, arguments: &[&str]| {
                Command::new(program).args(arguments).arg(&path).env("PATH", &path_variable).output()
            };
            if !run(program, arguments).is_ok_and(|made| made.status.success()) {
                eprintln!("skipped: no {program} here");
                continue;
            }
            assert!(owners_of(&path).contains(owner), "{program}");
            let Ok(found) = run("blkid", &["-p", "-o", "value", "-s", "TYPE"]) else { continue };
            let found = String::from_utf8_lossy(&found.stdout).into_owned();
            assert_eq!(found.trim(), *blkid, "{program}");
        }
    }
}
