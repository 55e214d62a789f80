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
    assert_eq!((pool.caches, pool.logs, pool.devices.len()), (1, 1, 10));
    assert_eq!(
        (pool.devices[8].as_str(), pool.spares.as_slice()),
        ("sdx", ["sdy".to_owned()].as_slice())
    );
    assert_eq!(pool.devices[2], "ata-A3");
    let text = pool.to_stack("wd-red-plus-8tb");
    for line in [
        "width = 4",
        "caches = 1",
        "logs = 1",
        "# left out, a further half of the log's mirror, for which one device stands: nvme1n1",
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
    assert_eq!(stack.summary().unwrap().drives, 10);
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
        // A text that lost its indentation.
        (
            "tank ONLINE 0 0 0\n raidz1-0 ONLINE 0 0 0\n a ONLINE 0 0 0\n b ONLINE 0 0 0\n",
            5,
            "the vdev raidz1-0 without drives",
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

/// Returns the output of `zpool status` of a pool `tank` with this scan and tree.
fn status_of(scan: &str, tree: &str) -> String {
    format!("  pool: tank\n  scan: {scan}\nconfig:\n\n\tNAME STATE READ WRITE CKSUM\n{tree}\n")
}

/// Returns the stack file of the only pool, which must load.
fn stack_of(text: &str) -> String {
    let pools = ZfsPool::read("status", text).unwrap();
    assert_eq!(pools.len(), 1, "{pools:?}");
    let stack = pools[0].to_stack("wd-red-plus-8tb");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.toml");
    std::fs::write(&path, &stack).unwrap();
    let loaded = Stack::load(&path, &Overrides::default()).unwrap();
    loaded.summary().unwrap();
    stack
}

#[test]
fn a_spare_whose_resilver_has_ended_is_a_whole_member() {
    let tree = |mark: &str| {
        format!(
            "\ttank DEGRADED 0 0 0\n\t  raidz1-0 DEGRADED 0 0 0\n\t    a ONLINE 0 0 0\n\
             \t    spare-1 DEGRADED 0 0 0\n\t      b UNAVAIL 0 0 0\n\t      s ONLINE 0 0 0{mark}\n\
             \t    c ONLINE 0 0 0\n\tspares\n\t  s INUSE currently in use\n\t  t AVAIL\n"
        )
    };
    let done = stack_of(&status_of(
        "resilvered 4.05T in 10:33:06 with 0 errors",
        &tree(""),
    ));
    assert!(!done.contains("rebuild"), "{done}");
    assert!(done.contains("# member 1: s\n"), "{done}");
    // The spare in use is a member, and not left out.
    assert!(!done.contains("hot spare: s\n"), "{done}");
    assert!(done.contains("hot spare: t\n"), "{done}");
    let running = status_of("resilver in progress since Mon", &tree("  (resilvering)"));
    assert!(stack_of(&running).contains("rebuild = 1\n"));
}

#[test]
fn a_second_resilvered_drive_counts_as_failed() {
    let tree = "\ttank DEGRADED 0 0 0\n\t  raidz2-0 DEGRADED 0 0 0\n\
        \t    replacing-0 DEGRADED 0 0 0\n\t      a UNAVAIL 0 0 0\n\t      x ONLINE 0 0 0  (resilvering)\n\
        \t    b ONLINE 0 0 0\n\t    c ONLINE 0 0 0  (resilvering)\n\t    d ONLINE 0 0 0\n";
    let scan = "resilver in progress since Sun\n\t1.1T resilvered, 22.88% done, 07:34:01 to go";
    let stack = stack_of(&status_of(scan, tree));
    assert!(stack.contains("failed = [2]\nrebuild = 0\n"), "{stack}");
    assert!(stack.contains("# c is resilvered, too."), "{stack}");
    assert!(stack.contains("# The resilver is 22.88 % done."), "{stack}");
}

#[test]
fn a_distributed_spare_stands_for_its_drive() {
    let tree = |mark: &str| {
        let drives: String = ["a", "b", "c", "d", "e"]
            .map(|name| format!("\t    {name} ONLINE 0 0 0\n"))
            .concat();
        format!(
            "\ttank DEGRADED 0 0 0\n\t  draid1:3d:6c:1s-0 DEGRADED 0 0 0\n{drives}\
             \t    spare-5 DEGRADED 0 0 0\n\t      f FAULTED 5 12 0  too many errors\n\
             \t      draid1-0-0 ONLINE 0 0 0{mark}\n\tdedup\n\t  mirror-1 ONLINE 0 0 0\n\
             \t    n ONLINE 0 0 0\n\t    m ONLINE 0 0 0\n\tspares\n\t  draid1-0-0 INUSE currently in use\n"
        )
    };
    let scan = "resilver (draid1:3d:6c:1s-0) in progress since Mon";
    let stack = stack_of(&status_of(scan, &tree("  (resilvering)")));
    assert!(
        stack.contains("rebuild = 5\nresilver = \"spare\"\n"),
        "{stack}"
    );
    assert!(stack.contains("# member 5: f\n"), "{stack}");
    for device in ["n", "m"] {
        let note = format!("# left out, a device of the dedup vdev: {device}\n");
        assert!(stack.contains(&note), "{stack}");
    }
    let stack = stack_of(&status_of(
        "resilvered (draid1:3d:6c:1s-0) 1T in 01:00:00",
        &tree(""),
    ));
    assert!(!stack.contains("rebuild"), "{stack}");
    assert!(stack.contains("# f is gone, and the distributed spare draid1-0-0 has its data"));
    assert!(is_distributed("draid2-0-12"));
    for other in [
        "draid2-0",
        "draid2:4d:11c:1s-0",
        "sda",
        "draid-0-0",
        "draid2-0-0-0",
    ] {
        assert!(!is_distributed(other), "{other}");
    }
}

#[test]
fn parts_that_a_stack_has_not_are_named() {
    let tree = "\ttank ONLINE 0 0 0\n\t  a ONLINE 0 0 0\n\t  b ONLINE 0 0 0\n\tspecial\n\
        \t  mirror-2 ONLINE 0 0 0\n\t    n ONLINE 0 0 0\n\t    m ONLINE 0 0 0\n\tlogs\n\t  l ONLINE 0 0 0\n\
        \tcache\n\t  k ONLINE 0 0 0\n";
    let properties = "\nNAME PROPERTY VALUE SOURCE\ntank copies 2 local\ntank dedup off default\n\
        tank encryption aes-256-gcm -\ntank/a copies 3 local\n";
    let stack = stack_of(&(status_of("none requested", tree) + properties));
    for note in [
        "# left out, a device of the special vdev: n",
        "# left out, a device of the special vdev: m",
        "# left out, a log device: l",
        "# left out, a cache device: k",
        "# left out, copies = 2: each block has one copy here",
    ] {
        assert!(stack.lines().any(|line| line == note), "{note}:\n{stack}");
    }
    assert!(
        stack.contains("left out, encryption = aes-256-gcm"),
        "{stack}"
    );
    assert!(
        !stack.contains("dedup") && !stack.contains("copies = 3"),
        "{stack}"
    );
}

#[test]
fn a_pool_that_changes_its_shape_is_refused() {
    let tree = "\ttank ONLINE 0 0 0\n\t  raidz1-0 ONLINE 0 0 0\n\t    a ONLINE 0 0 0\n\t    b ONLINE 0 0 0\n\t    c ONLINE 0 0 0\n";
    let scan = "none requested\nexpand: expansion of raidz1-0 in progress since Thu Aug  7";
    let error = ZfsPool::read("status", &status_of(scan, tree)).unwrap_err();
    assert_eq!(error.line, Some(3), "{error}");
    assert!(
        error.message.contains("an expansion is not simulated"),
        "{error}"
    );
    let scan = "none requested\nexpand: expanded raidz1-0 copied 21G in 00:01:00";
    stack_of(&status_of(scan, tree));
    // A resilver of a pool without a marked device, such as one that begins.
    let scan = "resilver in progress since Thu Aug  7 11:02:33 2025";
    let stack = stack_of(&status_of(scan, tree));
    assert!(
        stack.contains("# left out, because no device is marked as resilvering"),
        "{stack}"
    );
}

#[test]
fn a_list_in_bytes_is_read() {
    let list = "NAME             SIZE        ALLOC         FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT\n\
        tank  47850746839040  31134031773696  16716715065344  -  -  9  65  1.00  ONLINE  -\n\
        \u{20} raidz2-0  47850746839040  31134031773696  16716715065344  -  -  9  65  -  ONLINE\n\
        \u{20}   a  8001559953408  -  -  -  -  -  -  -  ONLINE\n\u{20}   b  8001559953408  -  -  -  -  -  -  -  ONLINE\n\
        \u{20}   c  8001559953408  -  -  -  -  -  -  -  ONLINE\n\u{20}   d  8001559953408  -  -  -  -  -  -  -  ONLINE\n";
    let pool = &ZfsPool::read("list", list).unwrap()[0];
    assert_eq!(pool.member_bytes, Some(8_001_559_953_408));
    assert_eq!(pool.used, Some((31_134_031_773_696, 47_850_746_839_040)));
}

#[test]
fn a_list_without_sizes_of_drives_tells_the_size_of_the_pool() {
    let list = |vdev: &str, width: usize, size: &str| {
        let drives: String = (0..width)
            .map(|drive| format!("    d{drive}      -      -      -  -  -  -  -  -  ONLINE\n"))
            .collect();
        format!(
            "NAME   SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT\n\
             tank  {size}  1T  1T  -  -  9%  64%  1.00x  ONLINE  -\n  {vdev}  {size}  1T  1T  -  -  9%  64%  -  ONLINE\n{drives}"
        )
    };
    for (vdev, width, size) in [
        ("raidz2-0", 6, "43.7T"),
        ("mirror-0", 2, "7.28T"),
        ("draid1:3d:6c:1s-0", 6, "36.4T"),
    ] {
        let pool = &ZfsPool::read("list", &list(vdev, width, size)).unwrap()[0];
        let terabytes = pool.member_bytes.unwrap() as f64 / 1e12;
        assert!((terabytes - 8.0).abs() < 0.02, "{vdev}: {terabytes}");
    }
}
