//! Reads the description of a ZFS pool: the output of `zpool status` or `zpool list -v`, with the
//! properties of `zpool get` and `zfs get` beside it.

mod properties;

use crate::StackError;
use crate::facts;
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
    /// The member that is resilvered. A pool of a stack resilvers one drive.
    pub resilvering: Vec<u32>,
    /// True if the resilver fills a distributed spare of a dRAID.
    pub to_spare: bool,
    /// Bytes of a member, if the text says.
    pub member_bytes: Option<u64>,
    /// Properties that are keys of a stack, by key, in the form of a stack file.
    pub properties: Vec<(String, String)>,
    /// Parts of the pool that the stack file leaves out, one sentence each.
    pub notes: Vec<String>,
}

/// States of a device that does not answer.
const GONE: [&str; 5] = ["FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SPLIT"];

/// All states in the second column of `zpool status`.
const STATES: [&str; 9] = [
    "ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SPLIT", "AVAIL", "INUSE",
];

/// Headings of devices that hold no data of the pool.
const HEADINGS: [&str; 6] = ["logs", "log", "cache", "spares", "special", "dedup"];

/// The drive of a special vdev, a cache and a log in a stack file, until its owner names the model.
const FLASH: &str = facts::SATA_FLASH;

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
            let left_out = properties::left_out(&pool.name, &lines);
            pool.notes.extend(left_out);
            pool.work(file, &lines)?;
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
        if self.to_spare {
            line("resilver = \"spare\"".to_owned());
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
        let mixed = facts::mixed_with_flash(self.data_devices());
        for note in self.notes.iter().chain(&mixed) {
            line(format!("# {note}"));
        }
    }
}

/// Largest share of a pool that becomes the volume of a stack. Beyond, the space that ZFS keeps for
/// itself may leave no room (`spa_get_slop_space`: a 32nd, and a free metaslab a vdev).
const FULLEST: f64 = 0.9;

impl ZfsPool {
    /// Returns the names of the devices that hold data. Behind them stand the special vdev, caches and
    /// logs, which are flash devices in most pools.
    pub fn data_devices(&self) -> &[String] {
        let others = self.special + self.caches + self.logs;
        let data = self.devices.len().saturating_sub(others as usize);
        &self.devices[..data]
    }

    /// Derives the bytes of a member from those of the pool. OpenZFS before 2.1 prints no sizes of drives.
    fn derive_member_bytes(&mut self) {
        let counted = match (self.layout.as_str(), self.draid) {
            // `zpool list` counts a mirror once, and the parity of RAIDZ and dRAID as space.
            ("mirror", _) => 1,
            (_, Some((_, spares))) => self.width.saturating_sub(spares),
            _ => self.width,
        };
        let drives = u64::from(self.vdevs) * u64::from(counted);
        let derived = self.used.and_then(|(_, size)| size.checked_div(drives));
        self.member_bytes = self.member_bytes.or(derived);
    }

    /// Notes that the stack file leaves a device out.
    fn leaves_out(&mut self, what: &str, device: &str) {
        self.notes.push(format!("left out, {what}: {device}"));
    }

    /// Reads the lines of `zpool status` about work in progress.
    ///
    /// # Errors
    /// If the pool changes its shape.
    fn work(&mut self, file: &str, lines: &[&str]) -> Result<(), StackError> {
        for (at, line) in properties::of_pool(&self.name, lines) {
            let Some((key, rest)) = line.trim().split_once(": ") else {
                continue;
            };
            let runs = rest.contains("in progress");
            match key {
                "expand" if runs => {
                    let message = format!(
                        "found `{}`; expected a pool that keeps its shape: an expansion is not simulated. volume.expanded_from describes the pool after the expansion",
                        line.trim()
                    );
                    return Err(fail(file, at, message));
                }
                "remove" if runs => {
                    self.notes.push(format!("left out: {rest}"));
                }
                "scan" if runs && rest.contains("resilver") && self.resilvering.is_empty() => {
                    let note =
                        format!("left out, because no device is marked as resilvering: {rest}");
                    self.notes.push(note);
                }
                _ => {}
            }
        }
        if let Some(done) = properties::resilvered(&self.name, lines)
            && !self.resilvering.is_empty()
        {
            self.notes.push(format!(
                "The resilver is {done} done. Here the resilver begins at the start of the run; rebuild_from = \"1TB\" begins behind the first TB of the drive."
            ));
        }
        Ok(())
    }

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
        resilvering: ["(resilvering)", "(awaiting resilver)"]
            .iter()
            .any(|mark| line.contains(mark)),
        size,
        // The third column of `zpool status` counts read errors.
        allocated: size.and_then(|_| size_of(words.next()?)),
    })
}

/// Returns the bytes of a size as ZFS's tools write sizes: three digits and a binary unit, or bytes
/// with the option `-p`.
fn size_of(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let Some(unit) = text[number.len()..].chars().next() else {
        return text.parse().ok();
    };
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
    let mut behind = Behind::default();
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
            "" => {}
            // A mirror: its devices follow in lines of their own.
            _ if has_children => continue,
            _ => {
                behind.add(&mut pool, heading, tree, index);
                continue;
            }
        }
        let top = entry.indent <= *vdev_indent.get_or_insert(entry.indent);
        if top {
            let known = kind(entry.name);
            if known.is_some() && !has_children {
                let message = format!(
                    "found the vdev {} without drives; expected its drives in the next lines, indented as zpool prints them",
                    entry.name
                );
                return Err(fail(file, entry.line, message));
            }
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
    finish(file, pool, &widths, (special, &behind.caches, &behind.logs))
}

/// The devices below the headings `cache` and `logs`.
#[derive(Default)]
struct Behind<'a> {
    caches: Vec<&'a Entry<'a>>,
    logs: Vec<&'a Entry<'a>>,
    /// Indices of the mirrors that have a device in `logs`.
    mirrors: Vec<usize>,
}

impl<'a> Behind<'a> {
    /// Adds a device below a heading, or notes that the stack file leaves the device out.
    fn add(&mut self, pool: &mut ZfsPool, heading: &str, tree: &'a [Entry], index: usize) {
        let entry = &tree[index];
        let is_gone = GONE.contains(&entry.state);
        match heading {
            "logs" | "log" if is_gone => {
                pool.leaves_out("a log device that does not answer", entry.name);
            }
            "logs" | "log" if self.is_other_half(tree, index) => {
                let place = "a further half of the log's mirror, for which one device stands";
                pool.leaves_out(place, entry.name);
            }
            "logs" | "log" => self.logs.push(entry),
            "cache" if is_gone => {
                pool.leaves_out("a cache device that does not answer", entry.name);
            }
            "cache" => self.caches.push(entry),
            // A spare in use stands in the tree of the vdevs, too.
            "spares" if entry.state == "INUSE" => {}
            "spares" => pool.spares.push(entry.name.to_owned()),
            _ => pool.leaves_out("a device of the dedup vdev", entry.name),
        }
    }

    /// Returns true if another device of the same mirror holds the log already. One device stands for
    /// a mirror, because both halves take each block of the log at the same time.
    fn is_other_half(&mut self, tree: &[Entry], index: usize) -> bool {
        let parent = parent_of(tree, index);
        let Some(mirror) = parent.filter(|&parent| kind(tree[parent].name).is_some()) else {
            return false;
        };
        let is_known = self.mirrors.contains(&mirror);
        self.mirrors.push(mirror);
        is_known
    }
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

/// Returns the index of the line that the line at `index` is indented below.
fn parent_of(tree: &[Entry], index: usize) -> Option<usize> {
    let indent = tree[index].indent;
    (tree[..index].iter()).rposition(|before| before.indent < indent)
}

/// State of the data of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// The data are whole, as far as the group tells.
    Whole,
    /// The device replaces another, and its data are not whole: `zpool` removes the group of a
    /// replacement as soon as the new device is whole.
    Replaces,
}

/// Returns `None` if a line is no member of a vdev. Of a device that is being replaced, the new one
/// counts; of a device that a spare stands for, the spare.
fn stands_for_member(tree: &[Entry], index: usize) -> Option<Filled> {
    let entry = &tree[index];
    let replaces = |name: &str| name.starts_with("replacing-");
    let is_group = |name: &str| replaces(name) || name.starts_with("spare-");
    if is_group(entry.name) {
        return None;
    }
    let parent = parent_of(tree, index).map(|parent| &tree[parent]);
    let Some(parent) = parent.filter(|parent| is_group(parent.name)) else {
        return Some(Filled::Whole);
    };
    // In a group the old disk comes first and the new disk last. The new disk is the member.
    let next = tree.get(index + 1);
    let is_last = next.is_none_or(|next| next.indent < entry.indent);
    // A spare stays in its group after its resilver, until someone detaches a device.
    let filled = match replaces(parent.name) {
        true => Filled::Replaces,
        false => Filled::Whole,
    };
    is_last.then_some(filled)
}

/// Returns true for a distributed spare of a dRAID, such as `draid2-0-0`: parities, vdev, spare.
fn is_distributed(name: &str) -> bool {
    let mut parts = name.strip_prefix("draid").unwrap_or("").split('-');
    let numbers = parts
        .by_ref()
        .take(3)
        .filter(|part| part.parse::<u32>().is_ok());
    numbers.count() == 3 && parts.next().is_none()
}

/// Adds a device of a vdev.
fn device(pool: &mut ZfsPool, widths: &mut [(usize, u32)], tree: &[Entry], index: usize) {
    let entry = &tree[index];
    let Some(filled) = stands_for_member(tree, index) else {
        return;
    };
    let member = pool.devices.len() as u32;
    let is_filled = entry.resilvering || filled == Filled::Replaces;
    let distributed = is_distributed(entry.name);
    if GONE.contains(&entry.state) {
        pool.failed.push(member);
    } else if is_filled && pool.resilvering.is_empty() {
        pool.resilvering.push(member);
        pool.to_spare = distributed;
    } else if is_filled {
        pool.failed.push(member);
        let name = entry.name;
        let note = format!(
            "{name} is resilvered, too. A stack resilvers one drive, so member {member} counts as failed."
        );
        pool.notes.push(note);
    }
    let mut name = entry.name;
    if distributed {
        // The spare is space on the other drives. The line in front names the drive of this place.
        name = tree[index - 1].name;
        if !is_filled {
            let note = format!(
                "{name} is gone, and the distributed spare {} has its data: member {member} counts as whole.",
                entry.name
            );
            pool.notes.push(note);
        }
    }
    pool.member_bytes = pool.member_bytes.max(entry.size);
    pool.devices.push(name.to_owned());
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
    pool.derive_member_bytes();
    // A RAID 0 has no place for a special vdev, caches and logs.
    if pool.layout == "raid0" {
        let named = |entries: &[&Entry]| -> Vec<String> {
            let names = entries.iter().map(|entry| entry.name.to_owned());
            names.collect()
        };
        for (what, names) in [
            ("a device of the special vdev", named(&special.devices)),
            ("a cache device", named(caches)),
            ("a log device", named(logs)),
        ] {
            for name in names {
                pool.leaves_out(what, &name);
            }
        }
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
