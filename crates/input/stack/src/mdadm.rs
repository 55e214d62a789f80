//! Reads the description of a Linux md array: the output of `mdadm --detail`, of `mdadm --examine`,
//! or `/proc/mdstat`.

mod array;
mod described;
mod mdstat;
mod others;
mod text;

use crate::StackError;
pub use array::MdArray;
use text::fail;

impl MdArray {
    /// Reads the arrays that a text describes. `file` is the name of the text in errors.
    ///
    /// # Errors
    /// If the text describes no array, or an array that fullstroke does not have.
    pub fn read(file: &str, text: &str) -> Result<Vec<MdArray>, StackError> {
        // First, because the report of a controller has keys of mdadm, too.
        if let Some(message) = others::message(text) {
            return Err(StackError::whole(file, message));
        }
        let mut arrays = match text.lines().any(|line| mdstat::head(line).is_some()) {
            true => mdstat::read(file, text)?,
            false => described::read(file, text)?,
        };
        if arrays.is_empty() {
            return Err(none_found(file, text));
        }
        for array in &mut arrays {
            array.derive_member_bytes();
        }
        Ok(arrays)
    }
}

/// Returns the error of a text without an array that can be read.
fn none_found(file: &str, text: &str) -> StackError {
    let find = |wanted: &dyn Fn(&str) -> bool| {
        text.lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line.trim()))
            .find(|(_, line)| wanted(line))
    };
    // The likely mistakes, each with the command that helps; the last message lists all accepted
    // reports.
    let short = find(&|line| line.starts_with("ARRAY ") || line.starts_with("MD_LEVEL="));
    if let Some((at, line)) = short {
        let message = format!(
            "found `{line}`, which names neither chunk nor layout; expected the output of mdadm --detail without --scan and --export"
        );
        return fail(file, at, "ARRAY", message);
    }
    let inactive = find(&|line| {
        mdstat::head(line).is_some() || (line.starts_with("State :") && line.contains("inactive"))
    });
    if let Some((at, line)) = inactive {
        let message = format!(
            "found `{line}`; expected an active array, because an inactive one shows no layout. mdadm --examine of its members shows the layout"
        );
        return fail(file, at, "State", message);
    }
    let container = find(&|line| {
        let level = line.strip_prefix("Raid Level :");
        level.is_some_and(|level| level.trim() == "container")
    });
    if let Some((at, _)) = container {
        let message = "found a container, which holds arrays; expected mdadm --detail of an array in it, or /proc/mdstat";
        return fail(file, at, "Raid Level", message.to_owned());
    }
    let properties = find(&|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("NAME") && words.next() == Some("PROPERTY")
    });
    if properties.is_some() {
        let message =
            "found properties without a pool; expected the output of zpool status in front of them";
        return StackError::whole(file, message);
    }
    StackError::whole(
        file,
        "found no array and no load; expected the output of mdadm --detail, mdadm --examine, zpool status, zpool list -v, iostat -x, sar -d, zpool iostat -v or smartctl -a, or /proc/mdstat",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Bytes;

    const DETAIL: &str = "\
/dev/md0:
           Version : 1.2
     Creation Time : Sat Jun 15 12:00:00 2024
        Raid Level : raid5
        Array Size : 8790402048 (8.19 TiB 9.00 TB)
     Used Dev Size : 2930134016 (2.73 TiB 3.00 TB)
      Raid Devices : 4
     Total Devices : 3
       Persistence : Superblock is persistent

     Intent Bitmap : Internal

             State : clean, degraded
            Layout : left-symmetric
        Chunk Size : 512K

    Number   Major   Minor   RaidDevice State
       0       8        1        0      active sync   /dev/sda1
       -       0        0        1      removed
       2       8       33        2      active sync   /dev/sdc1
       4       8       49        3      active sync   /dev/sdd1
";

    #[test]
    fn detail_tells_layout_size_order_and_missing_members() {
        let [array] = &MdArray::read("x", DETAIL).unwrap()[..] else {
            panic!("one array is described")
        };
        assert_eq!((array.layout.as_str(), array.members), ("raid5", 4));
        assert_eq!(array.chunk, Some(Bytes(512 * 1024)));
        assert_eq!(array.member_bytes, Some(2_930_134_016 * 1024));
        assert_eq!(array.missing, [1]);
        assert_eq!(array.devices, ["/dev/sda1", "", "/dev/sdc1", "/dev/sdd1"]);
        assert!(array.bitmap);
        let stack = array.to_stack("seagate-exos-x24-24tb");
        for line in [
            "layout = \"raid5\"",
            "chunk = \"512KiB\"",
            "failed = [1]",
            "rotation = \"left-symmetric\"",
        ] {
            assert!(stack.lines().any(|found| found == line), "{line}:\n{stack}");
        }
    }

    #[test]
    fn examined_members_of_one_array_are_one_array() {
        let member = |device: &str, role: u32| {
            format!(
                "{device}:\n          Magic : a92b4efc\n     Array UUID : 5a:b\n     Raid Level : raid10\n   \
                 Raid Devices : 4\n\n     Array Size : 1953260544 KiB (1862.78 GiB 2000.14 GB)\n  \
                 Used Dev Size : 1953260544 sectors (931.39 GiB)\n         Layout : far=2\n     Chunk Size : 256K\n   \
                 Device Role : Active device {role}\n   Array State : A.AA ('A' == active, '.' == missing)\n"
            )
        };
        let text = member("/dev/sdb", 2) + &member("/dev/sda", 0);
        let [array] = &MdArray::read("x", &text).unwrap()[..] else {
            panic!("one array is described")
        };
        assert_eq!(array.copies, Some(("far".to_owned(), 2)));
        assert_eq!(array.member_bytes, Some(1_953_260_544 * 512));
        assert_eq!(array.missing, [1]);
        assert_eq!(array.devices, ["/dev/sda", "", "/dev/sdb", ""]);
    }

    #[test]
    fn mdstat_tells_every_array() {
        let text = "\
Personalities : [raid6] [raid5] [raid4] [raid10]
md0 : active raid6 sdd1[4] sdc1[2] sdb1[1] sda1[0]
      5860268032 blocks super 1.2 level 6, 512k chunk, algorithm 2 [4/3] [UUU_]
      [=>...................]  recovery =  8.5% (249061376/2930134016) finish=300.1min speed=148915K/sec
      bitmap: 1/22 pages [4KB], 65536KB chunk

md1 : active raid10 sdh[3] sdg[2] sdf[1] sde[0]
      1953260544 blocks super 1.2 64K chunks 2 offset-copies [4/4] [UUUU]

md2 : inactive sdi[0](S)
      976630464 blocks super 1.2

md3 : active raid0 sdk[1] sdj[0]
      1953260544 blocks super 1.2 512k chunks

unused devices: <none>
";
        let arrays = MdArray::read("x", text).unwrap();
        let [first, second, third] = &arrays[..] else {
            panic!("{arrays:?}")
        };
        assert_eq!((first.layout.as_str(), first.members), ("raid6", 4));
        assert_eq!(
            (&first.missing[..], &first.rebuilding[..]),
            (&[][..], &[3][..])
        );
        assert_eq!(second.copies, Some(("offset".to_owned(), 2)));
        assert_eq!(second.chunk, Some(Bytes(64 * 1024)));
        assert_eq!((third.layout.as_str(), third.members), ("raid0", 2));
    }

    #[test]
    fn what_is_no_array_is_refused_with_what_is_expected() {
        let error = MdArray::read("x", "hello\n").unwrap_err();
        assert!(error.message.contains("mdadm --detail"), "{error}");
        let properties = "NAME  PROPERTY  VALUE  SOURCE\ntank  ashift  12  local\n";
        let error = MdArray::read("x", properties).unwrap_err();
        assert!(error.message.contains("zpool status in front"), "{error}");
        for (text, key) in [
            ("ARRAY /dev/md/0 level=raid6 num-devices=6\n", "ARRAY"),
            ("MD_LEVEL=raid5\nMD_DEVICES=4\n", "ARRAY"),
            (
                "Personalities : [raid5]\nmd0 : active raid5 sdd[4] sdc[2] sdb[1] sda[0]\n      8790402048 blocks super 1.2 level 5, 512k chunk, algorithm 2 [4/4] [UUUU]\n      [>...]  reshape =  0.3% (10000/2930134016)\n",
                "reshape",
            ),
        ] {
            let error = MdArray::read("x", text).unwrap_err();
            assert_eq!(error.key, key, "{error}");
        }
        let text = DETAIL.replace("Chunk Size : 512K", "Chunk Size : much");
        let error = MdArray::read("x", &text).unwrap_err();
        assert_eq!((error.line, error.key.as_str()), (Some(15), "Chunk Size"));
        let text = DETAIL.replace("Raid Level : raid5", "Raid Level : container");
        assert!(
            MdArray::read("x", &text)
                .unwrap_err()
                .message
                .contains("container")
        );
    }

    /// Returns a text of `samples/mdadm`.
    fn sample(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../samples/mdadm/");
        std::fs::read_to_string(format!("{folder}{name}.txt")).unwrap()
    }

    /// The only array of a sample.
    fn only(name: &str) -> MdArray {
        let mut arrays = MdArray::read(name, &sample(name)).unwrap();
        assert_eq!(arrays.len(), 1, "{name}: {arrays:?}");
        arrays.remove(0)
    }

    /// Name of a sample, number of members, and parts of the stack file.
    const PASTED: &[(&str, u32, &[&str])] = &[
        (
            "detail",
            5,
            &[
                "raid6",
                "512KiB",
                "left-symmetric",
                "failed = [2]",
                "bitmap = \"internal\"",
            ],
        ),
        (
            "detail-raid1-bitmap",
            2,
            &["raid1", "bitmap = \"internal\"", "member 1: /dev/sdb1"],
        ),
        (
            "detail-raid5-rebuilding",
            4,
            &[
                "raid5",
                "rebuild = [1]",
                "member 1: /dev/sde",
                "member 3: /dev/sdd",
            ],
        ),
        (
            "detail-raid6-two-lost",
            8,
            &["raid6", "failed = [0, 3]", "128KiB"],
        ),
        (
            "detail-raid10-replacing",
            4,
            &["raid10", "near", "copies = 2", "member 1: /dev/sdb"],
        ),
        (
            "detail-raid10-old",
            3,
            &["raid10", "far", "copies = 2", "256KiB", "0.50 TB"],
        ),
        (
            "detail-journal",
            5,
            &["raid6", "journal = \"samsung-870-evo-1tb\"", "12.00 TB"],
        ),
        (
            "detail-imsm",
            3,
            &["raid5", "left-asymmetric", "128KiB", "member 2: /dev/sdc"],
        ),
        (
            "examine-imsm",
            3,
            &[
                "raid5",
                "left-asymmetric",
                "128KiB",
                "rebuild = [1]",
                "2.00 TB",
                "member 0: /dev/sda",
            ],
        ),
        (
            "examine-raid5-090",
            3,
            &[
                "raid5",
                "64KiB",
                "failed = [2]",
                "member 1: /dev/sdb1",
                "1.00 TB",
            ],
        ),
        (
            "examine-raid6",
            6,
            &[
                "raid6",
                "failed = [3]",
                "member 2: /dev/sdd",
                "14.00 TB",
                "bitmap = \"internal\"",
            ],
        ),
        (
            "mdstat-raid1-090",
            2,
            &["raid1", "0.50 TB", "member 1: /dev/sdb1"],
        ),
        (
            "mdstat-check",
            6,
            &[
                "raid6",
                "512KiB",
                "8.00 TB",
                "bitmap_chunk = \"64MiB\"",
                "member 2: /dev/sdc1",
            ],
        ),
        (
            "mdstat-raid10-far",
            4,
            &["raid10", "far", "failed = [1]", "member 0: /dev/sda1"],
        ),
        (
            "mdstat-raid6-two-filled",
            7,
            &[
                "raid6",
                "rebuild = [0]",
                "failed = [2]",
                "journal = \"samsung-870-evo-1tb\"",
                "6.00 TB",
            ],
        ),
        ("mdstat-imsm", 2, &["raid1", "1.90 TB"]),
    ];

    #[test]
    fn texts_that_users_paste_become_the_keys_of_their_arrays() {
        for &(name, drives, keys) in PASTED {
            let array = only(name);
            let stack = array.to_stack("wd-red-plus-4tb");
            assert_eq!(array.members, drives, "{name}");
            for key in keys {
                assert!(stack.contains(key), "{name}: {key} is missing in\n{stack}");
            }
            // The file is a stack that runs.
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("stack.toml");
            std::fs::write(&path, stack).unwrap();
            let stack = crate::Stack::load(&path, &crate::Overrides::default());
            let built = stack.and_then(|stack| stack.build().map(|_| ()));
            assert!(built.is_ok(), "{name}: {:?}", built.err());
        }
    }

    /// The only array of a text.
    fn of(text: &str) -> MdArray {
        let mut arrays = MdArray::read("x", text).unwrap();
        assert_eq!(arrays.len(), 1, "{arrays:?}");
        arrays.remove(0)
    }

    #[test]
    fn a_rebuild_begins_where_the_text_says() {
        let detail = DETAIL
            .replace(
                "       -       0        0        1      removed",
                "       4       8       65        1      spare rebuilding   /dev/sde1",
            )
            .replace(
                "        Chunk Size",
                "    Rebuild Status : 41% complete\n        Chunk Size",
            );
        let array = of(&detail);
        assert_eq!(
            (&array.rebuilding[..], &array.missing[..]),
            (&[1][..], &[][..])
        );
        // 41 % of 2930134016 KiB, in whole pages.
        let stack = array.to_stack("toshiba-p300-3tb");
        assert!(
            stack.contains("rebuild = [1]\nrebuild_from = \"1201354944KiB\"\n"),
            "{stack}"
        );
        let mdstat = "md1 : active raid5 sda3[0] sdd3[4] sdc3[2] sdb3[1]\n\
            \x20     17551701504 blocks super 1.0 level 5, 64k chunk, algorithm 2 [4/3] [UUU_]\n\
            \x20     [==>...]  recovery = 13.6% (796251392/5850567168) finish=1000.5min speed=84201K/sec\n";
        let stack = of(mdstat).to_stack("seagate-ironwolf-8tb");
        assert!(
            stack.contains("rebuild = [3]\nrebuild_from = \"796251392KiB\"\n"),
            "{stack}"
        );
    }

    #[test]
    fn the_bitmap_of_a_cluster_lies_on_the_members() {
        assert!(of(&DETAIL.replace("Bitmap : Internal", "Bitmap : Internal(Clustered)")).bitmap);
        assert!(!of(&DETAIL.replace("Bitmap : Internal", "Bitmap : None")).bitmap);
    }

    fn examined(device: &str, role: u32, states: &str, more: &str) -> String {
        format!(
            "{device}:\n          Magic : a92b4efc\n     Array UUID : 5a:b\n           Name : nas:0  (local to host nas)\n     \
             Raid Level : raid5\n   Raid Devices : 4\n     Array Size : 5860145664 KiB (5588.67 GiB 6000.79 GB)\n  \
             Used Dev Size : 3906763776 sectors (1862.89 GiB 2000.26 GB)\n{more}         Layout : left-symmetric\n     \
             Chunk Size : 64K\n   Device Role : Active device {role}\n   Array State : {states} ('A' == active)\n"
        )
    }

    #[test]
    fn an_examined_member_that_is_being_filled_is_rebuilt() {
        let text = examined(
            "/dev/sda1",
            2,
            "AAAA",
            "Recovery Offset : 1253426176 sectors\n",
        ) + &examined("/dev/sdb1", 0, "AAAA", "");
        let array = of(&text);
        assert_eq!(array.name, "nas:0");
        assert_eq!(
            (&array.rebuilding[..], &array.missing[..]),
            (&[2][..], &[][..])
        );
        assert_eq!(array.filled, Some(1_253_426_176 * 512));
    }

    #[test]
    fn the_newest_superblock_tells_which_members_are_lost() {
        let lost = examined("/dev/sda1", 1, "AAAA", "         Events : 119\n");
        let left = examined("/dev/sdb1", 0, "A.AA", "         Events : 4711\n");
        for text in [format!("{lost}{left}"), format!("{left}{lost}")] {
            let array = of(&text);
            assert_eq!(array.missing, [1], "{text}");
            assert_eq!(array.devices[..2], ["/dev/sdb1", "/dev/sda1"]);
        }
    }

    #[test]
    fn work_beside_the_load_and_other_parts_are_named() {
        let detail =
            |more: &str| DETAIL.replace("        Chunk Size", &format!("{more}        Chunk Size"));
        let mdstat = |line: &str, device: &str| {
            format!(
                "md0 : active raid6 {device} sdf[5] sde[4] sdd[3] sdc[2] sdb[1] sda[0]\n\
                 \x20     31255584768 blocks super 1.2 level 6, 512k chunk, algorithm 2 [6/6] [UUUUUU]\n      {line}\n"
            )
        };
        for (text, note) in [
            (detail("     Resync Status : 12% complete\n"), "left out, a resync in progress: 12% complete"),
            (detail("      Check Status : 3% complete\n"), "left out, a check in progress: 3% complete"),
            (
                DETAIL.replace("active sync   /dev/sdc1", "active sync writemostly   /dev/sdc1"),
                "left out, a member that serves writes mostly: /dev/sdc1",
            ),
            (
                DETAIL.replace("Bitmap : Internal", "Bitmap : /var/md0.bitmap"),
                "left out, a bitmap in a file: /var/md0.bitmap",
            ),
            (
                DETAIL.replace(
                    "/dev/sdd1\n",
                    "/dev/sdd1\n       5       8       97        3      spare rebuilding   /dev/sdg1\n",
                ),
                "left out, a device that is being filled in place of member 3, which works: /dev/sdg1",
            ),
            (
                mdstat("[>...]  check =  0.4% (36000000/7813896192) finish=900.0min", ""),
                "left out, a check in progress",
            ),
            (
                mdstat("\tresync=DELAYED", ""),
                "left out, a resync or a recovery that waits: resync=DELAYED",
            ),
            (
                mdstat("[>...]  recovery =  0.0% (1000000/7813896192) finish=2000min", "sdg[7](R)"),
                "left out, a device that is being filled in place of a member that works",
            ),
            (
                mdstat("bitmap: 0/1 pages [0KB], 65536KB chunk, file: /var/md0.bitmap", ""),
                "left out, a bitmap in a file: /var/md0.bitmap",
            ),
            (
                mdstat("", "").replace("sdb[1]", "sdb[1](W)"),
                "left out, a member that serves writes mostly: /dev/sdb",
            ),
            (
                DETAIL.replace("/dev/sda1", "/dev/nvme0n1p1"),
                "By their names, members 0 are flash devices and others are disks; list them in [[volume.members]].",
            ),
        ] {
            let array = of(&text);
            assert!(array.rebuilding.is_empty(), "{array:?}");
            let stack = array.to_stack("seagate-ironwolf-8tb");
            let line = format!("# {note}");
            assert!(stack.lines().any(|found| found == line), "{note}:\n{stack}");
        }
    }

    #[test]
    fn texts_of_other_tools_say_what_to_give() {
        for (text, part) in [
            (
                "Virtual Drives :\n==============\n0/0   RAID6 Optl  RW\n",
                "hardware RAID",
            ),
            (
                "Virtual Drive: 0 (Target Id: 0)\nRAID Level          : Primary-6, Secondary-0\n",
                "hardware RAID",
            ),
            (
                "      logicaldrive 1 (1.1 TB, RAID 1, OK)\n",
                "hardware RAID",
            ),
            (
                "{\"Controllers\":[{\"Command Status\":{}}]}",
                "hardware RAID",
            ),
            (
                "NAME        MAJ:MIN RM   SIZE RO TYPE  MOUNTPOINTS\nsda 8:0 0 7.3T 0 disk\n",
                "lsblk",
            ),
            (
                "Overall:\n    Device size:  21.83TiB\n    Device allocated:  14.91TiB\n",
                "btrfs",
            ),
            (
                "Label: 'data'  uuid: 6d1c\n\tTotal devices 3 FS bytes used 7.37TiB\n",
                "btrfs",
            ),
            (
                "parity /mnt/parity1/snapraid.parity\ndata d1 /mnt/disk1/\n",
                "SnapRAID",
            ),
            ("mdState=STARTED\nmdNumDisks=5\n", "Unraid"),
            (
                "  LV   VG   Attr       LSize\n  data vg0  rwi-aor--- 10.00t\n",
                "lvs",
            ),
            (
                "{\"pools\": {\"tank\": {\"vdev_type\": \"raidz\"}}}",
                "without -j",
            ),
        ] {
            let error = MdArray::read("x", text).unwrap_err();
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn texts_without_a_layout_say_why() {
        for (name, line, part) in [
            ("mdstat-inactive", 2, "an inactive one shows no layout"),
            ("mdstat-reshape", 4, "changes its shape"),
            ("detail-reshape", 17, "changes its shape"),
            ("detail-container", 3, "a container, which holds arrays"),
            ("detail-inactive", 7, "an inactive one shows no layout"),
        ] {
            let error = MdArray::read(name, &sample(name)).unwrap_err();
            assert_eq!(error.line, Some(line), "{name}: {error}");
            assert!(error.message.contains(part), "{name}: {error}");
        }
    }
}
