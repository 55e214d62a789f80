//! Reads the description of a ZFS pool: the output of `zpool status` or `zpool list -v`, with the
//! properties of `zpool get` and `zfs get` beside it.

mod properties;

use crate::StackError;
use serde::Serialize;

/// A ZFS pool as its tools describe it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ZfsPool {
    /// Name of the pool.
    pub name: String,
    /// Name of the layout in a stack file.
    pub layout: String,
    /// Number of drives of each vdev.
    pub width: u32,
    /// Number of vdevs.
    pub vdevs: u32,
    /// Data drives of a group, and distributed spares, for dRAID.
    pub draid: Option<(u32, u32)>,
    /// Devices in the order of the members: data, special, caches, logs.
    pub devices: Vec<String>,
    /// Number of drives of the special vdev.
    pub special: u32,
    /// Number of devices that hold a cache of records (L2ARC).
    pub caches: u32,
    /// Number of log devices.
    pub logs: u32,
    /// Hot spares. A stack has no place for them.
    pub spares: Vec<String>,
    /// Allocated bytes and size of the pool, if the text says.
    pub used: Option<(u64, u64)>,
    /// Members that do not answer, ascending.
    pub failed: Vec<u32>,
    /// Members that are resilvered, ascending.
    pub resilvering: Vec<u32>,
    /// Bytes of a member, if the text says.
    pub member_bytes: Option<u64>,
    /// Properties that are keys of a stack, by key, in the form of a stack file.
    pub properties: Vec<(String, String)>,
}

/// States of a device that does not answer.
const GONE: [&str; 5] = ["FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SPLIT"];

/// All states in the second column of `zpool status`.
const STATES: [&str; 9] = [
    "ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SPLIT", "AVAIL", "INUSE",
];

/// Headings of devices that hold no data of the pool.
const HEADINGS: [&str; 5] = ["logs", "log", "cache", "spares", "special"];

/// The drive of a special vdev, a cache and a log in a stack file, until its owner names the model.
const FLASH: &str = "samsung-870-evo-1tb";

/// A line of the tree of vdevs.
struct Entry<'a> {
    line: usize,
    indent: usize,
    name: &'a str,
    state: &'a str,
    resilvering: bool,
    size: Option<u64>,
    /// Column ALLOC of `zpool list`.
    allocated: Option<u64>,
}

impl ZfsPool {
    /// Returns true if a text looks like the output of ZFS's tools: of zpool.
    pub fn recognise(text: &str) -> bool {
        text.lines()
            .any(|line| is_header(line) || line.trim_start().starts_with("pool:"))
    }

    /// Reads the pools that a text describes. `file` is the name of the text in errors.
    ///
    /// # Errors
    /// The text describes no pool, or a pool that fullstroke does not have.
    pub fn read(file: &str, text: &str) -> Result<Vec<ZfsPool>, StackError> {
        let lines: Vec<&str> = text.lines().collect();
        let mut pools = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            if is_header(line) {
                pools.extend(trees(file, &lines, at)?);
            }
        }
        if pools.is_empty() {
            let message = "found no pool; expected the output of zpool status, or of zpool list -v";
            return Err(StackError::whole(file, message));
        }
        // A text with `zpool status` and `zpool list -v` has each pool twice.
        pools.dedup_by(|later, first| {
            let is_same = later.name == first.name;
            if is_same {
                first.used = first.used.or(later.used);
                first.member_bytes = first.member_bytes.or(later.member_bytes);
            }
            is_same
        });
        for pool in &mut pools {
            pool.properties = properties::properties(&pool.name, &lines);
            pool.properties
                .extend(properties::scrub(&pool.name, &lines));
        }
        Ok(pools)
    }

    /// Returns the stack file of the pool, with members of this drive.
    pub fn to_stack(&self, drive: &str) -> String {
        let mut text = format!(
            "title = {:?}\nseed = 1\n\n\
             # Replace the workload by your own load, or give --trace or --fio.\n\
             [workload]\nkind = \"synthetic\"\nrequests = 10000\nsize = \"16KiB\"\nread_share = 0.7\n\
             arrivals = {{ process = \"closed\", outstanding = 4 }}\n\n[volume]\nlayout = {:?}\n",
            format!(
                "{}: {} x {} of {}",
                self.name, self.vdevs, self.layout, self.width
            ),
            self.layout
        );
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        let is_pool = self.layout != "raid0";
        if is_pool {
            line(format!("width = {}", self.width));
        } else {
            line("# A pool of single disks: a RAID 0 stands in its place, without the writes and the cache of ZFS.".to_owned());
        }
        if let Some((data, spares)) = self.draid {
            line(format!("data = {data}"));
            line(format!("spares = {spares}"));
        }
        if self.special > 0 {
            line(format!("special = {}", self.special));
        }
        if self.special > 0 && self.special != self.survives() + 1 {
            line("special_force = true".to_owned());
        }
        if self.caches > 0 {
            line(format!("caches = {}", self.caches));
        }
        if self.logs > 0 {
            line(format!("logs = {}", self.logs));
        }
        if let Some(bytes) = self.volume_bytes() {
            line("# The allocated space, without parity.".to_owned());
            line(format!("volsize = \"{:.0}GB\"", bytes / 1e9));
        }
        if !self.failed.is_empty() {
            line(format!("failed = {:?}", self.failed));
        }
        if let Some(first) = self.resilvering.first() {
            line(format!("rebuild = {first}"));
        }
        for (key, value) in self.properties.iter().filter(|_| is_pool) {
            line(format!("{key} = {value}"));
        }
        self.write_members(drive, &mut text);
        text
    }

    /// Writes the members, with the names of the devices as comments.
    fn write_members(&self, drive: &str, text: &mut String) {
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        let size = self.member_bytes.map_or_else(String::new, |bytes| {
            format!(" The pool uses {:.2} TB of each.", bytes as f64 / 1e12)
        });
        line(format!(
            "# Name the model of your drives.{size} See: fullstroke drive list"
        ));
        let flash = self.special + self.caches + self.logs;
        if flash > 0 {
            let data = self.devices.len() as u32 - flash;
            line(format!(
                "[[volume.members]]\ndrive = {drive:?}\ncount = {data}"
            ));
            let kinds = [
                (self.special, "the special vdev"),
                (self.caches, "the cache devices"),
                (self.logs, "the log devices"),
            ];
            let kinds: Vec<&str> = kinds
                .iter()
                .filter(|(number, _)| *number > 0)
                .map(|(_, kind)| *kind)
                .collect();
            line(format!(
                "# Name the model of {}, too.",
                kinds.join(" and of ")
            ));
            line(format!(
                "[[volume.members]]\ndrive = {FLASH:?}\ncount = {flash}"
            ));
        } else {
            line(format!("drive = {drive:?}"));
            line(format!("drives = {}", self.devices.len()));
        }
        for (member, device) in self.devices.iter().enumerate() {
            line(format!("# member {member}: {device}"));
        }
        for spare in &self.spares {
            line(format!("# left out, a hot spare: {spare}"));
        }
    }
}

/// Largest share of a pool that becomes the volume of a stack. Beyond, the space that ZFS keeps for
/// itself may leave no room (`spa_get_slop_space`: a 32nd, and a free metaslab a vdev).
const FULLEST: f64 = 0.9;

impl ZfsPool {
    /// Returns the bytes of data on the pool: what is allocated, without parity and before
    /// compression.
    fn volume_bytes(&self) -> Option<f64> {
        let (allocated, size) = self.used?;
        let width = f64::from(self.width);
        let data_share = match (self.draid, self.layout.as_str()) {
            (Some((data, _)), _) => f64::from(data) / f64::from(data + self.survives()),
            // `zpool list` counts parity of RAIDZ and dRAID as space, and a mirror once.
            (None, "mirror" | "raid0") => 1.0,
            (None, _) => (width - f64::from(self.survives())) / width,
        };
        let ratio = self.properties.iter().find(|(key, _)| key == "compression");
        let ratio = ratio
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(1.0);
        let bytes = (allocated as f64).min(FULLEST * size as f64) * data_share * ratio;
        // The stack file has whole GB, and `0GB` would be no volume.
        (self.layout != "raid0" && bytes >= 1e9).then_some(bytes)
    }

    /// Returns the number of failed drives that each vdev survives.
    fn survives(&self) -> u32 {
        match self
            .layout
            .strip_prefix("raidz")
            .or(self.layout.strip_prefix("draid"))
        {
            Some(parities) => parities.parse().unwrap_or(0),
            None => self.width.saturating_sub(1),
        }
    }
}

fn fail(file: &str, line: usize, message: String) -> StackError {
    StackError {
        file: file.to_owned(),
        line: Some(line + 1),
        key: String::new(),
        message,
    }
}

/// Returns true for the heading of a tree: of `zpool status`, or of `zpool list -v`.
fn is_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.starts_with(&["NAME", "STATE", "READ"]) || words.starts_with(&["NAME", "SIZE", "ALLOC"])
}

/// Reads the trees below a heading. `zpool list -v` has one heading for all pools.
fn trees(file: &str, lines: &[&str], header: usize) -> Result<Vec<ZfsPool>, StackError> {
    let mut pools = Vec::new();
    let mut tree: Vec<Entry> = Vec::new();
    let mut top = None;
    for (at, line) in lines.iter().enumerate().skip(header + 1) {
        let Some(entry) = entry(at, line) else {
            // An empty line, or `errors:`, ends the trees.
            break;
        };
        let top_indent = *top.get_or_insert(entry.indent);
        // `zpool list -v` writes headings such as `logs` as far left as the pools.
        let begins = entry.indent <= top_indent && !HEADINGS.contains(&entry.name);
        if begins && !tree.is_empty() {
            pools.push(pool(file, &std::mem::take(&mut tree))?);
        }
        tree.push(entry);
    }
    if !tree.is_empty() {
        pools.push(pool(file, &tree)?);
    }
    Ok(pools)
}

/// Reads a line of a tree; `None` if the line is none.
fn entry<'a>(at: usize, line: &'a str) -> Option<Entry<'a>> {
    // `zpool status` begins its lines with a tab.
    let indent = line
        .chars()
        .take_while(|letter| letter.is_whitespace())
        .map(|letter| if letter == '\t' { 8 } else { 1 })
        .sum();
    let mut words = line.split_whitespace();
    let name = words.next().filter(|name| !name.ends_with(':'))?;
    let second = words.next().unwrap_or("");
    let size = size_of(second);
    // Headings such as `logs` have no second word, and `zpool list -v` writes `-` for an unknown
    // size.
    let known = STATES.contains(&second) || size.is_some() || second == "-" || second.is_empty();
    known.then_some(Entry {
        line: at,
        indent,
        name,
        state: if STATES.contains(&second) {
            second
        } else {
            "ONLINE"
        },
        resilvering: line.contains("(resilvering)"),
        size,
        // The third column of `zpool status` counts read errors.
        allocated: size.and_then(|_| size_of(words.next()?)),
    })
}

/// Returns the bytes of a size as ZFS's tools write sizes: three digits and a binary unit.
fn size_of(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text[number.len()..].chars().next()?;
    let power = "BKMGTPE".find(unit)? as i32;
    let value: f64 = number.parse().ok()?;
    Some((value * 1024f64.powi(power)) as u64)
}

/// The kind of a vdev by its name: the layout, and data drives and spares of a dRAID.
fn kind(name: &str) -> Option<(&'static str, Option<(u32, u32)>)> {
    let shape = name.rsplit_once('-').map_or(name, |(shape, _)| shape);
    let mut parts = shape.split(':');
    let layout = match parts.next()? {
        "mirror" => "mirror",
        "raidz" | "raidz1" => "raidz1",
        "raidz2" => "raidz2",
        "raidz3" => "raidz3",
        "draid" | "draid1" => "draid1",
        "draid2" => "draid2",
        "draid3" => "draid3",
        _ => return None,
    };
    if !layout.starts_with("draid") {
        return Some((layout, None));
    }
    // The defaults of `zpool create` (zpoolconcepts.7).
    let (mut data, mut spares) = (8, 0);
    for part in parts {
        let number = |unit: char| {
            part.strip_suffix(unit)
                .and_then(|digits| digits.parse().ok())
        };
        data = number('d').unwrap_or(data);
        spares = number('s').unwrap_or(spares);
    }
    Some((layout, Some((data, spares))))
}

/// Returns the pool of a tree: the first entry is the pool.
fn pool(file: &str, tree: &[Entry]) -> Result<ZfsPool, StackError> {
    let mut pool = ZfsPool {
        name: tree[0].name.to_owned(),
        used: tree[0].allocated.zip(tree[0].size),
        ..ZfsPool::default()
    };
    let mut widths: Vec<(usize, u32)> = Vec::new();
    let mut special = Special::default();
    let (mut caches, mut logs): (Vec<&Entry>, Vec<&Entry>) = (Vec::new(), Vec::new());
    let mut heading = "";
    let mut vdev_indent = None;
    for (index, entry) in tree.iter().enumerate().skip(1) {
        let next = tree.get(index + 1);
        let has_children = next.is_some_and(|next| next.indent > entry.indent);
        if HEADINGS.contains(&entry.name) {
            heading = entry.name;
            continue;
        }
        match heading {
            "special" => {
                special_device(file, &mut special, tree, index)?;
                continue;
            }
            "logs" | "log" if !has_children => {
                logs.push(entry);
                continue;
            }
            "cache" => {
                caches.push(entry);
                continue;
            }
            "spares" => {
                pool.spares.push(entry.name.to_owned());
                continue;
            }
            "" => {}
            // The mirror of a log: its devices follow in lines of their own.
            _ => continue,
        }
        let top = entry.indent <= *vdev_indent.get_or_insert(entry.indent);
        if top {
            let known = kind(entry.name).filter(|_| has_children);
            // A single disk is a vdev without redundancy: the pool is a RAID 0.
            let (layout, draid) = known.unwrap_or(("raid0", None));
            if known.is_none() && has_children {
                let message = format!(
                    "found the vdev {}; expected mirror, raidz, draid or disks",
                    entry.name
                );
                return Err(fail(file, entry.line, message));
            }
            if !pool.layout.is_empty() && (pool.layout != layout || pool.draid != draid) {
                let message = format!(
                    "found a {layout} beside a {}; expected vdevs of one kind",
                    pool.layout
                );
                return Err(fail(file, entry.line, message));
            }
            pool.layout = layout.to_owned();
            pool.draid = draid;
            widths.push((entry.line, 0));
            if has_children {
                continue;
            }
        }
        device(&mut pool, &mut widths, tree, index);
    }
    finish(file, pool, &widths, (special, &caches, &logs))
}

/// The special vdev of a tree.
#[derive(Default)]
struct Special<'a> {
    vdevs: u32,
    devices: Vec<&'a Entry<'a>>,
}

/// Adds a line below `special`: the mirror, or a device.
fn special_device<'a>(
    file: &str,
    special: &mut Special<'a>,
    tree: &'a [Entry],
    index: usize,
) -> Result<(), StackError> {
    let entry = &tree[index];
    let heading = tree[..index].iter().rev().find(|one| one.name == "special");
    // Vdevs stand below the heading as deep as the vdevs of data below the pool.
    let is_top = heading.is_some_and(|heading| entry.indent <= heading.indent + 2);
    special.vdevs += u32::from(is_top);
    let has_children = tree
        .get(index + 1)
        .is_some_and(|next| next.indent > entry.indent);
    let is_mirror = kind(entry.name).is_some_and(|(layout, _)| layout == "mirror");
    if special.vdevs > 1 || (is_top && has_children && !is_mirror) {
        let message = format!(
            "found {} in the special vdev; expected one mirror or one drive",
            entry.name
        );
        return Err(fail(file, entry.line, message));
    }
    if !has_children && stands_for_member(tree, index).is_some() {
        special.devices.push(entry);
    }
    Ok(())
}

/// Returns `None` if a line is no member of a vdev. Of a device that is being replaced, the new one
/// counts; of a device that a spare stands for, the spare. The result is true for these two.
fn stands_for_member(tree: &[Entry], index: usize) -> Option<bool> {
    let entry = &tree[index];
    let is_group = |name: &str| name.starts_with("replacing-") || name.starts_with("spare-");
    if is_group(entry.name) {
        return None;
    }
    let parent = tree[..index]
        .iter()
        .rev()
        .find(|before| before.indent < entry.indent);
    // In a group the old disk comes first and the new disk last. The new disk is the member.
    let is_new = parent.is_some_and(|parent| is_group(parent.name));
    let next = tree.get(index + 1);
    let is_last = next.is_none_or(|next| next.indent < entry.indent);
    (!is_new || is_last).then_some(is_new)
}

/// Adds a device of a vdev.
fn device(pool: &mut ZfsPool, widths: &mut [(usize, u32)], tree: &[Entry], index: usize) {
    let entry = &tree[index];
    let Some(is_new) = stands_for_member(tree, index) else {
        return;
    };
    let member = pool.devices.len() as u32;
    if GONE.contains(&entry.state) {
        pool.failed.push(member);
    } else if entry.resilvering || is_new {
        pool.resilvering.push(member);
    }
    pool.member_bytes = pool.member_bytes.max(entry.size);
    pool.devices.push(entry.name.to_owned());
    if let Some((_, width)) = widths.last_mut() {
        *width += 1;
    }
}

fn finish(
    file: &str,
    mut pool: ZfsPool,
    widths: &[(usize, u32)],
    (special, caches, logs): (Special, &[&Entry], &[&Entry]),
) -> Result<ZfsPool, StackError> {
    let Some(&(_, width)) = widths.first() else {
        let message = format!(
            "found the pool {} without vdevs; expected zpool status, or zpool list -v",
            pool.name
        );
        return Err(StackError::whole(file, message));
    };
    if let Some(&(line, other)) = widths.iter().find(|(_, other)| *other != width) {
        let message =
            format!("found a vdev of {other} beside one of {width}; expected vdevs of one width");
        return Err(fail(file, line, message));
    }
    pool.width = width;
    pool.vdevs = widths.len() as u32;
    // A RAID 0 has no place for a special vdev, caches and logs.
    if pool.layout == "raid0" {
        return Ok(pool);
    }
    pool.special = special.devices.len() as u32;
    for device in special.devices {
        if GONE.contains(&device.state) {
            pool.failed.push(pool.devices.len() as u32);
        }
        pool.devices.push(device.name.to_owned());
    }
    pool.caches = caches.len() as u32;
    pool.logs = logs.len() as u32;
    let behind = caches.iter().chain(logs);
    pool.devices
        .extend(behind.map(|entry| entry.name.to_owned()));
    Ok(pool)
}

#[cfg(test)]
#[path = "zpool_tests.rs"]
mod tests;
