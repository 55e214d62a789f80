//! Texts of tools that describe other arrays than those of md and ZFS.

use super::text::unquoted;

/// Texts of one kind: a test of a line, and the words of the error.
struct Other {
    is: fn(&str) -> bool,
    message: &'static str,
}

const OTHERS: [Other; 7] = [
    Other {
        // `storcli`, `perccli`, `MegaCli` and `ssacli`.
        is: |line| {
            let begins = [
                "Virtual Drive",
                "VD LIST",
                "logicaldrive ",
                "{\"Controllers\"",
            ];
            begins.iter().any(|begin| line.starts_with(begin))
        },
        message: "found the report of a hardware RAID controller, which is not read; write the stack file by hand: layout, chunk (the strip size) and drives under [volume], and [controller] for the controller's memory",
    },
    Other {
        is: |line| line.contains("MAJ:MIN") || line.starts_with("\"blockdevices\""),
        message: "found the output of lsblk, which tells neither layout nor chunk; expected mdadm --detail of the array, zpool status of the pool, or smartctl -a of one drive",
    },
    Other {
        is: |line| {
            line.starts_with("Device allocated:")
                || (line.starts_with("Label:") && line.contains("uuid:"))
        },
        message: "found a btrfs file system, which is not simulated; layout = \"raid1\" or \"raid10\" under [volume] keeps as many copies",
    },
    Other {
        is: |line| line.starts_with("parity /") || line.starts_with("1-parity /"),
        message: "found the settings of SnapRAID, whose disks stand alone and whose parity only `snapraid sync` writes; expected one disk: layout = \"jbod\" and drives = 1 under [volume]",
    },
    Other {
        is: |line| line.starts_with("mdNumDisks=") || line.starts_with("diskId."),
        message: "found an array of Unraid, which is not simulated: each disk has a file system of its own. layout = \"raid4\" with like = \"ideal\" reads and writes as many drives for a small write",
    },
    Other {
        is: |line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&["LV", "VG"])
        },
        message: "found the output of lvs, which is not read; write layout, chunk (the stripe size) and drives under [volume] by hand: the RAID of LVM is that of md",
    },
    Other {
        is: |line| line.contains("\"vdev_type\""),
        message: "found the JSON of zpool; expected the output of zpool status without -j",
    },
];

/// Returns the error's words for a text of another tool.
pub(super) fn message(text: &str) -> Option<&'static str> {
    let lines = || text.lines().map(unquoted);
    let found = OTHERS.iter().find(|other| lines().any(other.is));
    found.map(|other| other.message)
}
