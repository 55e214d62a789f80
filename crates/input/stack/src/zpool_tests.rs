//! Outputs of ZFS's tools, and the stack files from them.

use super::*;
use crate::{Overrides, Stack};

const STATUS: &str = "  pool: tank
 state: DEGRADED
status: One or more devices could not be used because the label is missing or invalid.
  scan: resilver in progress since Mon Jan  5 10:00:00 2026
config:

\tNAME                              STATE     READ WRITE CKSUM
\ttank                              DEGRADED     0     0     0
\t  raidz2-0                        DEGRADED     0     0     0
\t    ata-A1                        ONLINE       0     0     0
\t    ata-A2                        ONLINE       0     0     0
\t    replacing-2                   DEGRADED     0     0     0
\t      8899001122                  UNAVAIL      0     0     0  was /dev/sdc1
\t      ata-A3                      ONLINE       0     0     0  (resilvering)
\t    ata-A4                        ONLINE       0     0     0
\t  raidz2-1                        DEGRADED     0     0     0
\t    ata-B1                        ONLINE       0     0     0
\t    ata-B2                        FAULTED      3     0     0  too many errors
\t    ata-B3                        ONLINE       0     0     0
\t    ata-B4                        ONLINE       0     0     0
\tlogs
\t  mirror-3                        ONLINE       0     0     0
\t    nvme0n1                       ONLINE       0     0     0
\t    nvme1n1                       ONLINE       0     0     0
\tcache
\t  sdx                             ONLINE       0     0     0
\tspares
\t  sdy                             AVAIL

errors: No known data errors

NAME  PROPERTY  VALUE  SOURCE
tank  ashift    12     local
tank  recordsize     1M        local
tank  compressratio  1.31x     -
tank  sync           always    local
other recordsize     16K       local
";

#[test]
fn a_status_with_a_replacement_and_logs_becomes_a_stack() {
    assert!(ZfsPool::recognise(STATUS));
    let pools = ZfsPool::read("status", STATUS).unwrap();
    assert_eq!(pools.len(), 1);
    let pool = &pools[0];
    assert_eq!(
        (pool.layout.as_str(), pool.width, pool.vdevs),
        ("raidz2", 4, 2)
    );
    assert_eq!(
        (pool.failed.as_slice(), pool.resilvering.as_slice()),
        ([5].as_slice(), [2].as_slice())
    );
    assert_eq!((pool.caches, pool.logs, pool.devices.len()), (1, 2, 11));
    assert_eq!(
        (pool.devices[8].as_str(), pool.spares.as_slice()),
        ("sdx", ["sdy".to_owned()].as_slice())
    );
    assert_eq!(pool.devices[2], "ata-A3");
    let text = pool.to_stack("wd-red-plus-8tb");
    for line in [
        "width = 4",
        "caches = 1",
        "logs = 2",
        "# Name the model of the cache devices and of the log devices, too.",
        "# left out, a hot spare: sdy",
        "drive = \"wd-red-plus-8tb\"",
        "drive = \"samsung-870-evo-1tb\"",
        "failed = [5]",
        "rebuild = 2",
        "ashift = 12",
        "recordsize = \"1MiB\"",
        "compression = 1.31",
        "sync = \"always\"",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.toml");
    std::fs::write(&path, &text).unwrap();
    let stack = Stack::load(&path, &Overrides::default()).unwrap();
    assert_eq!(stack.summary().unwrap().drives, 11);
}

#[test]
fn a_list_tells_the_size_of_the_drives() {
    let list = "NAME                        SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT
fast                       3.62T   176G  3.45T        -         -     1%     4%  1.00x    ONLINE  -
  mirror-0                 1.81T    88G  1.73T        -         -     1%  4.74%      -    ONLINE
    sda                    1.82T      -      -        -         -      -      -      -    ONLINE
    sdb                    1.82T      -      -        -         -      -      -      -    ONLINE
  mirror-1                 1.81T    88G  1.73T        -         -     1%  4.74%      -    ONLINE
    sdc                    1.82T      -      -        -         -      -      -      -    ONLINE
    sdd                    1.82T      -      -        -         -      -      -      -    ONLINE
wide                       90.9T  10.1T  80.8T        -         -     0%    11%  1.00x    ONLINE  -
  draid2:4d:11c:1s-0       90.9T  10.1T  80.8T        -         -     0%  11.1%      -    ONLINE
    d1                     9.09T      -      -        -         -      -      -      -    ONLINE
    d2                     9.09T      -      -        -         -      -      -      -    ONLINE
    d3                     9.09T      -      -        -         -      -      -      -    ONLINE
    d4                     9.09T      -      -        -         -      -      -      -    ONLINE
    d5                     9.09T      -      -        -         -      -      -      -    ONLINE
    d6                     9.09T      -      -        -         -      -      -      -    ONLINE
    d7                     9.09T      -      -        -         -      -      -      -    ONLINE
    d8                     9.09T      -      -        -         -      -      -      -    ONLINE
    d9                     9.09T      -      -        -         -      -      -      -    ONLINE
    d10                    9.09T      -      -        -         -      -      -      -    ONLINE
    d11                    9.09T      -      -        -         -      -      -      -    ONLINE
";
    let pools = ZfsPool::read("list", list).unwrap();
    assert_eq!(pools.len(), 2);
    assert_eq!(
        (pools[0].layout.as_str(), pools[0].width, pools[0].vdevs),
        ("mirror", 2, 2)
    );
    let bytes = pools[0].member_bytes.unwrap() as f64;
    assert!(
        (bytes / 1.82 / 1024f64.powi(4) - 1.0).abs() < 1e-3,
        "{bytes}"
    );
    assert_eq!(
        (pools[1].layout.as_str(), pools[1].draid),
        ("draid2", Some((4, 1)))
    );
    assert_eq!(pools[1].width, 11);
    // 176 GiB of mirrors are 189 GB; of 10.1 TiB with four data drives of six are 7.40 TB left.
    for (pool, volsize) in pools.iter().zip(["189GB", "7403GB"]) {
        let text = pool.to_stack("toshiba-mg10-20tb");
        assert!(
            text.contains(&format!("\nvolsize = {volsize:?}\n")),
            "{text}"
        );
    }
}

#[test]
fn a_full_pool_has_a_volume_that_fits() {
    let list =
        "NAME        SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT
full       21.8T  21.5T   300G        -         -    70%    98%  1.00x    ONLINE  -
  raidz1-0 21.8T  21.5T   300G        -         -    70%  98.6%      -    ONLINE
    a      7.28T      -      -        -         -      -      -      -    ONLINE
    b      7.28T      -      -        -         -      -      -      -    ONLINE
    c      7.28T      -      -        -         -      -      -      -    ONLINE
";
    let text = ZfsPool::read("list", list).unwrap()[0].to_stack("wd-red-plus-8tb");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.toml");
    std::fs::write(&path, &text).unwrap();
    let stack = Stack::load(&path, &Overrides::default()).unwrap();
    assert_eq!(stack.summary().unwrap().drives, 3, "{text}");
    assert!(text.contains("volsize = "), "{text}");
}

#[test]
fn pools_that_do_not_exist_here_name_their_line() {
    let status = |tree: &str| format!("config:\n\n\tNAME STATE READ WRITE CKSUM\n{tree}");
    for (tree, line, says) in [
        (
            "\ttank ONLINE 0 0 0\n\t  odd-0 ONLINE 0 0 0\n\t    a ONLINE 0 0 0\n",
            5,
            "found the vdev odd-0",
        ),
        (
            "\ttank ONLINE 0 0 0\n\t  mirror-0 ONLINE 0 0 0\n\t    a ONLINE 0 0 0\n\t    b ONLINE 0 0 0\n\t  raidz1-1 ONLINE 0 0 0\n\t    c ONLINE 0 0 0\n\t    d ONLINE 0 0 0\n",
            8,
            "one kind",
        ),
        (
            "\ttank ONLINE 0 0 0\n\t  raidz1-0 ONLINE 0 0 0\n\t    a ONLINE 0 0 0\n\t    b ONLINE 0 0 0\n\t  raidz1-1 ONLINE 0 0 0\n\t    c ONLINE 0 0 0\n",
            8,
            "one width",
        ),
        (
            "\ttank ONLINE 0 0 0\n\t  raidz1-0 ONLINE 0 0 0\n\t    a ONLINE 0 0 0\n\t    b ONLINE 0 0 0\n\tspecial\n\t  c ONLINE 0 0 0\n\t  d ONLINE 0 0 0\n",
            10,
            "one mirror or one drive",
        ),
    ] {
        let error = ZfsPool::read("status", &status(tree)).unwrap_err();
        assert_eq!(error.line, Some(line), "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    assert!(ZfsPool::read("status", "nothing").is_err());
    assert!(!ZfsPool::recognise("/dev/md0:\n  Raid Level : raid5\n"));
}

#[test]
fn a_special_vdev_becomes_members_of_flash() {
    let status = |special: &str| {
        format!(
            "\tNAME STATE READ WRITE CKSUM\n\ttank ONLINE 0 0 0\n\t  raidz2-0 ONLINE 0 0 0\n\
             \t    a ONLINE 0 0 0\n\t    b ONLINE 0 0 0\n\t    c ONLINE 0 0 0\n\t    d ONLINE 0 0 0\n\
             \tspecial\n{special}\tlogs\n\t  l ONLINE 0 0 0\n"
        )
    };
    let mirror = |names: &[&str]| {
        let lines = names
            .iter()
            .map(|name| format!("\t    {name} ONLINE 0 0 0\n"));
        format!("\t  mirror-1 ONLINE 0 0 0\n{}", lines.collect::<String>())
    };
    for (special, drives, force) in [
        (mirror(&["x", "y", "z"]), 3, false),
        (mirror(&["x", "y"]), 2, true),
        ("\t  x ONLINE 0 0 0\n".to_owned(), 1, true),
    ] {
        let pools = ZfsPool::read("status", &status(&special)).unwrap();
        assert_eq!((pools[0].special, pools[0].logs), (drives, 1));
        let text = pools[0].to_stack("wd-red-plus-8tb");
        assert_eq!(text.contains("special_force = true"), force, "{text}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool.toml");
        std::fs::write(&path, &text).unwrap();
        let stack = Stack::load(&path, &Overrides::default()).unwrap();
        assert_eq!(stack.summary().unwrap().drives, 4 + drives as usize + 1);
    }
    let failed = mirror(&["x", "y", "z"]).replace("y ONLINE", "y FAULTED");
    let pools = ZfsPool::read("status", &status(&failed)).unwrap();
    assert_eq!(pools[0].failed, [5]);
}

#[test]
fn a_pool_of_single_disks_is_a_raid0() {
    let text = "\tNAME STATE READ WRITE CKSUM\n\ttank ONLINE 0 0 0\n\t  sda ONLINE 0 0 0\n\t  sdb ONLINE 0 0 0\n";
    let pools = ZfsPool::read("status", text).unwrap();
    let stack = pools[0].to_stack("wd-red-plus-8tb");
    assert!(
        stack.contains("layout = \"raid0\"") && stack.contains("drives = 2"),
        "{stack}"
    );
    assert!(!stack.contains("width"), "{stack}");
}

/// OpenZFS issue 10535 has this scrub.
#[test]
fn a_scrub_in_progress_becomes_keys() {
    let text = "  pool: zyklos\n state: ONLINE\n  scan: scrub in progress since Mon Jul  6 04:00:01 2020\n\
        \t8.19T scanned at 524M/s, 7.19T issued at 393M/s, 14.0T total\n\
        \t0B repaired, 51.37% done, 0 days 05:02:33 to go\nconfig:\n\n\
        \tNAME      STATE   READ WRITE CKSUM\n\tzyklos    ONLINE  0 0 0\n\t  mirror-0  ONLINE  0 0 0\n\
        \t    sda  ONLINE  0 0 0\n\t    sdb  ONLINE  0 0 0\n";
    let stack = ZfsPool::read("status", text).unwrap()[0].to_stack("quantum-atlas-10k");
    assert!(
        stack.contains("scrub = true\nscrub_from = 0.5137\n"),
        "{stack}"
    );
    let done = text.replace(
        "scrub in progress since",
        "scrub repaired 0B in 1 days with 0 errors on",
    );
    let stack = ZfsPool::read("status", &done).unwrap()[0].to_stack("quantum-atlas-10k");
    assert!(!stack.contains("scrub"), "{stack}");
}
