//! Reads the description of a ZFS pool: the output of `zpool status` or `zpool list -v`.
//!
//! fullstroke knows no RAID-Z. A pool whose data lie on one kind of vdev becomes the nearest layout, and
//! the stack file says the difference. Other pools are refused with the found vdevs.

use crate::StackError;
use serde::Serialize;
use std::fmt::Write as _;

/// A pool as its tools describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ZfsPool {
    /// Name of the pool.
    pub name: String,
    /// Vdevs with data.
    pub vdevs: Vec<Vdev>,
    /// Devices of logs, caches, spares and other classes, by the name of the class.
    pub others: Vec<(String, Vec<String>)>,
}

/// A vdev: a group of disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Vdev {
    /// `disk`, `mirror`, `raidz1`, `raidz2`, `raidz3` or `draid`.
    pub kind: String,
    /// Disks of the vdev.
    pub disks: Vec<String>,
    /// Places of disks that are not online.
    pub missing: Vec<u32>,
}

/// Classes of vdevs without data of their own.
const CLASSES: [&str; 6] = ["logs", "cache", "spares", "special", "dedup", "replaced"];

impl ZfsPool {
    /// Returns true if the text is output of zpool.
    pub fn recognise(text: &str) -> bool {
        let status = text
            .lines()
            .any(|line| line.trim_start().starts_with("pool:"))
            && text.contains("config:");
        status || text.lines().any(is_list_header)
    }

    /// Reads the first pool. `file` is the name of the text in errors.
    ///
    /// # Errors
    /// If the text has no pool with disks.
    pub fn read(file: &str, text: &str) -> Result<ZfsPool, StackError> {
        let mut pool = ZfsPool::default();
        let mut within = false;
        let mut class: Option<usize> = None;
        let mut in_group = false;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [first, rest @ ..] = words.as_slice() else {
                continue;
            };
            if *first == "NAME" {
                within = true;
                continue;
            }
            if !within {
                continue;
            }
            if pool.name.is_empty() {
                pool.name = (*first).to_owned();
                continue;
            }
            // The next pool, or text behind the table.
            if *first == "errors:" || *first == "pool:" {
                break;
            }
            if CLASSES.contains(first) {
                class = Some(pool.others.len());
                pool.others.push(((*first).to_owned(), Vec::new()));
                in_group = false;
                continue;
            }
            let group = group_of(first);
            if let Some(class) = class {
                if group.is_none() {
                    pool.others[class].1.push((*first).to_owned());
                }
                continue;
            }
            if let Some(kind) = group {
                pool.vdevs.push(Vdev {
                    kind,
                    ..Vdev::default()
                });
                in_group = true;
                continue;
            }
            // A group's disks stand deeper than the group.
            let online = rest.first().is_none_or(|state| {
                !matches!(*state, "FAULTED" | "UNAVAIL" | "OFFLINE" | "REMOVED")
            });
            let depth = line.len() - line.trim_start().len();
            let alone = !in_group || depth <= DEPTH_OF_VDEVS + tabs(line);
            if alone {
                pool.vdevs.push(Vdev {
                    kind: "disk".to_owned(),
                    ..Vdev::default()
                });
                in_group = false;
            }
            if let Some(vdev) = pool.vdevs.last_mut() {
                if !online {
                    vdev.missing.push(vdev.disks.len() as u32);
                }
                vdev.disks.push((*first).to_owned());
            }
        }
        if pool.vdevs.iter().all(|vdev| vdev.disks.is_empty()) {
            let message = "found no disks of a pool; expected the output of `zpool status` or of `zpool list -v`";
            return Err(StackError::whole(file, message));
        }
        Ok(pool)
    }

    /// Returns the stack file of the nearest layout, with members of this drive.
    ///
    /// # Errors
    /// If no layout is near. The message lists the vdevs.
    pub fn to_stack(&self, file: &str, drive: &str) -> Result<String, StackError> {
        let refuse = || {
            let message = format!(
                "pool `{}` has {}; fullstroke has no volume of such vdevs. One vdev of disks, a mirror, raidz1 or raidz2, or \
                 several mirrors of one width become the nearest layout; describe one vdev of this pool in a stack file \
                 of your own (fullstroke stack new)",
                self.name,
                self.described()
            );
            StackError::whole(file, message)
        };
        let (layout, members, mut keys) = self.nearest().ok_or_else(refuse)?;
        let width = self.vdevs.first().map_or(0, |vdev| vdev.disks.len());
        if matches!(layout, "raid0" | "raid5" | "raid6" | "raid10") {
            keys.push_str("chunk = \"128KiB\"\n");
        }
        let missing: Vec<u32> = self
            .vdevs
            .iter()
            .enumerate()
            .flat_map(|(index, vdev)| {
                vdev.missing
                    .iter()
                    .map(move |place| (index * width) as u32 + place)
            })
            .collect();
        if !missing.is_empty() {
            let _ = writeln!(keys, "failed = {missing:?}");
        }
        let mut text = format!(
            "title = \"{}: {}\"\nseed = 1\n\n# Read of the pool: its vdevs and disks. Record size, compression, the ARC and dataset properties are not\n\
             # part of this text. {} is the nearest layout: ZFS writes each record at a new place and RAID-Z never reads old\n\
             # parity, so random writes are cheaper there, and a read of a small record uses fewer disks here.\n",
            self.name,
            self.described(),
            layout
        );
        text.push_str(
            "\n# Replace the workload by your own load, or give --trace or --fio.\n[workload]\nkind = \"synthetic\"\nrequests = 10000\n\
             size = \"128KiB\"\nread_share = 0.7\narrivals = { process = \"closed\", outstanding = 4 }\n\n",
        );
        let _ = writeln!(
            text,
            "[volume]\nlayout = \"{layout}\"\nlike = \"ideal\"\n{keys}# Name the model of your drives. See: fullstroke drive list\ndrive = {drive:?}\ndrives = {members}"
        );
        if layout == "jbod" {
            text = text.replace("like = \"ideal\"\n", "");
        }
        for (class, devices) in &self.others {
            let _ = writeln!(
                text,
                "# {class}: {} (not in this stack)",
                devices.join(", ")
            );
        }
        Ok(text)
    }

    /// Returns the nearest layout, its members and its own keys; `None` if no layout is near.
    fn nearest(&self) -> Option<(&'static str, usize, String)> {
        let first = self.vdevs.first()?;
        let (width, count) = (first.disks.len(), self.vdevs.len());
        let alike = self
            .vdevs
            .iter()
            .all(|vdev| vdev.kind == first.kind && vdev.disks.len() == width);
        let plain = |layout, members| Some((layout, members, String::new()));
        match (first.kind.as_str(), count) {
            _ if !alike => None,
            ("disk", 1) => plain("jbod", 1),
            ("disk", _) => plain("raid0", count),
            ("mirror", 1) => plain("raid1", width),
            ("mirror", _) => Some(("raid10", width * count, format!("copies = {width}\n"))),
            ("raidz1", 1) => plain("raid5", width),
            ("raidz2", 1) => plain("raid6", width),
            _ => None,
        }
    }

    fn described(&self) -> String {
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for vdev in &self.vdevs {
            let kind = match vdev.kind.as_str() {
                "disk" => "disk".to_owned(),
                kind => format!("{kind} of {} disks", vdev.disks.len()),
            };
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind, 1)),
            }
        }
        let texts: Vec<String> = kinds
            .iter()
            .map(|(kind, count)| format!("{count} x {kind}"))
            .collect();
        texts.join(", ")
    }
}

/// Spaces in front of a vdev in the table, behind the tab of `zpool status`.
const DEPTH_OF_VDEVS: usize = 2;

fn tabs(line: &str) -> usize {
    line.chars()
        .take_while(|character| *character == '\t')
        .count()
}

fn is_list_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.first() == Some(&"NAME") && words.contains(&"ALLOC") && words.contains(&"FREE")
}

/// Returns the kind of a group of disks, such as `raidz2-0`; `None` if the name is no group.
fn group_of(name: &str) -> Option<String> {
    let (kind, number) = name.rsplit_once('-')?;
    if number.is_empty() || !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    match kind {
        "mirror" | "raidz1" | "raidz2" | "raidz3" => Some(kind.to_owned()),
        "raidz" => Some("raidz1".to_owned()),
        _ if kind.starts_with("draid") => Some("draid".to_owned()),
        // Parts of a vdev during a replacement.
        "replacing" | "spare" => None,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAIDZ2: &str = "  pool: tank\n state: DEGRADED\n  scan: none requested\nconfig:\n\n\tNAME        STATE     READ WRITE CKSUM\n\
        \ttank        DEGRADED     0     0     0\n\t  raidz2-0  DEGRADED     0     0     0\n\t    sda     ONLINE       0     0     0\n\
        \t    sdb     ONLINE       0     0     0\n\t    sdc     FAULTED      0     0     0\n\t    sdd     ONLINE       0     0     0\n\
        \tlogs\n\t  nvme0n1p1 ONLINE       0     0     0\n\tcache\n\t  nvme0n1p2 ONLINE       0     0     0\n\nerrors: No known data errors\n";
    const MIRRORS: &str = "NAME         SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT\n\
        tank        7.25T  1.10T  6.15T        -         -     2%    15%  1.00x    ONLINE  -\n\
        \x20 mirror-0  3.62T   560G  3.08T        -         -     2%  15.1%      -    ONLINE\n\
        \x20   sda     3.64T      -      -        -         -      -      -      -    ONLINE\n\
        \x20   sdb     3.64T      -      -        -         -      -      -      -    ONLINE\n\
        \x20 mirror-1  3.62T   560G  3.08T        -         -     2%  15.1%      -    ONLINE\n\
        \x20   sdc     3.64T      -      -        -         -      -      -      -    ONLINE\n\
        \x20   sdd     3.64T      -      -        -         -      -      -      -    ONLINE\n";

    fn stack(text: &str) -> String {
        assert!(ZfsPool::recognise(text));
        let text = ZfsPool::read("z", text)
            .unwrap()
            .to_stack("z", "seagate-ironwolf-8tb")
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.toml");
        std::fs::write(&path, &text).unwrap();
        let loaded = crate::Stack::load(&path, &crate::Overrides::default());
        loaded.unwrap_or_else(|error| panic!("{error}\n{text}"));
        text
    }

    #[test]
    fn one_raidz_becomes_the_nearest_layout_with_its_missing_disk() {
        let text = stack(RAIDZ2);
        for line in [
            "layout = \"raid6\"",
            "drives = 4",
            "failed = [2]",
            "# logs: nvme0n1p1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn mirrors_become_raid10() {
        let text = stack(MIRRORS);
        assert!(
            text.contains("layout = \"raid10\"") && text.contains("drives = 4"),
            "{text}"
        );
    }

    #[test]
    fn a_pool_without_a_near_layout_is_refused_with_its_vdevs() {
        let text = RAIDZ2.replace("raidz2-0", "raidz3-0");
        let error = ZfsPool::read("z", &text)
            .unwrap()
            .to_stack("z", "d")
            .unwrap_err()
            .to_string();
        assert!(error.contains("1 x raidz3 of 4 disks"), "{error}");
        assert!(ZfsPool::read("z", "  pool: t\nconfig:\n").is_err());
    }
}
