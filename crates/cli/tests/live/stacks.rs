//! Small stacks for the servers.

use std::fs;
use std::path::{Path, PathBuf};

/// Sectors per track of the disk in all stacks.
const TRACK_SECTORS: u64 = 64;
const SURFACES: u64 = 2;

/// A volume with its `[volume]` table and the drives that may fail.
#[derive(Clone, Copy, Debug)]
pub struct TestedVolume {
    /// Name of the stack file without its ending.
    pub name: &'static str,
    table: &'static str,
    /// Names of drives that may fail together.
    pub expendable: &'static [&'static str],
}

pub const DISK: TestedVolume = TestedVolume {
    name: "alone",
    table: "drive = \"disk.toml\"",
    expendable: &[],
};
pub const JBOD: TestedVolume = TestedVolume {
    name: "jbod",
    table: "layout = \"jbod\"\ndrive = \"disk.toml\"\ndrives = 3",
    expendable: &[],
};
pub const RAID0: TestedVolume = TestedVolume {
    name: "raid0",
    table: "layout = \"raid0\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 3",
    expendable: &[],
};
pub const RAID1: TestedVolume = TestedVolume {
    name: "raid1",
    table: "layout = \"raid1\"\ndrive = \"disk.toml\"\ndrives = 2",
    expendable: &["1"],
};
pub const RAID10: TestedVolume = TestedVolume {
    name: "raid10",
    table: "layout = \"raid10\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 4",
    expendable: &["2"],
};
pub const RAID4: TestedVolume = TestedVolume {
    name: "raid4",
    table: "layout = \"raid4\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 4",
    expendable: &["3"],
};
pub const RAID5: TestedVolume = TestedVolume {
    name: "raid5",
    table: "layout = \"raid5\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 5",
    expendable: &["3"],
};
/// Disks that compute parity among themselves, in a single node.
pub const XOR: TestedVolume = TestedVolume {
    name: "xor",
    table: "layout = \"xor\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 4",
    expendable: &[],
};
/// A drive has failed according to the stack file.
pub const DEGRADED: TestedVolume = TestedVolume {
    name: "degraded",
    table: "layout = \"raid5\"\nchunk = \"16KiB\"\nfailed = [1]\ndrive = \"disk.toml\"\ndrives = 4",
    expendable: &[],
};
pub const RAID6: TestedVolume = TestedVolume {
    name: "raid6",
    table: "layout = \"raid6\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 6",
    expendable: &["0", "4"],
};
pub const NESTED: TestedVolume = TestedVolume {
    name: "raid50",
    table: "layout = \"raid0\"\nchunk = \"16KiB\"\n[[volume.members]]\nlayout = \"raid5\"\nchunk = \"16KiB\"\n\
            drive = \"disk.toml\"\ndrives = 3\ncount = 2",
    expendable: &["1.0"],
};

/// With a single request at a time the array shifts down; with many it shifts up.
pub const PARAID: TestedVolume = TestedVolume {
    name: "paraid",
    table: "layout = \"paraid\"\nlevel = \"raid5\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 6\n\
            active = 4\nnative_percent = 35\nshift_down = 0.45\nshift_up = 0.75\nwindow_s = 0.1\nstay_s = 0.05",
    expendable: &["1"],
};
pub const E_PARAID: TestedVolume = TestedVolume {
    name: "e-paraid",
    table: "layout = \"e-paraid\"\nlevel = \"raid5\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 5\n\
            active = 4\nnative_percent = 35\ncluster = 4\nshift_down = 0.45\nshift_up = 0.75\nwindow_s = 0.1\nstay_s = 0.05",
    expendable: &["4"],
};
/// In the low gear the soft state has the only reachable copy of the standby drives' data.
pub const PARAID_RAID0: TestedVolume = TestedVolume {
    name: "paraid0",
    table: "layout = \"paraid\"\nlevel = \"raid0\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 4\n\
            active = 2\nnative_percent = 35\nshift_down = 0.35\nshift_up = 0.75\nwindow_s = 0.1\nstay_s = 0.05",
    expendable: &[],
};

pub const REDUNDANT: [TestedVolume; 6] = [RAID1, RAID10, RAID4, RAID5, RAID6, NESTED];

/// Writes the stack with disks of `disk_mib` MiB into a folder. Returns the path of the stack file.
pub fn write(volume: TestedVolume, disk_mib: u64, folder: &Path) -> PathBuf {
    fs::write(folder.join("disk.toml"), disk(disk_mib)).unwrap();
    let path = folder.join(format!("{}.toml", volume.name));
    fs::write(&path, format!("seed = 7\n[volume]\n{}\n", volume.table)).unwrap();
    path
}

fn disk(mib: u64) -> String {
    let capacity = mib << 11;
    let last = capacity / (TRACK_SECTORS * SURFACES) - 1;
    format!(
        "title = \"a small disk\"\n\
         capacity_sectors = {capacity}\n\
         rpm = 10000\n\
         surfaces = {SURFACES}\n\
         zones = [{{ first_cylinder = 0, last_cylinder = {last}, sectors_per_track = {TRACK_SECTORS}, \
         track_skew = 8, cylinder_skew = 12 }}]\n\
         [seek]\n\
         form = \"points\"\n\
         points = [[1, 0.8], [{last}, 8.0]]\n\
         [sources]\n\
         capacity_sectors = \"chosen\"\n\
         rpm = \"chosen\"\n\
         surfaces = \"chosen\"\n\
         zones = \"chosen\"\n\
         seek = \"chosen\"\n\
         queue = \"chosen\"\n"
    )
}
