//! Reads the output of `mdadm --detail` and of `mdadm --examine`.

use super::array::MdArray;
use super::text::{
    chunk_of, fail, layout_of, lost_letters, members_of, number, reshapes, rotation_of, size_of,
    unquoted,
};
use crate::StackError;

/// An array of the text.
struct Described {
    uuid: String,
    /// Counter of the superblock that told the states of the members.
    events: u64,
    array: MdArray,
}

/// Reads all arrays. Several members of one array that were examined are one array.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<MdArray>, StackError> {
    let mut arrays: Vec<Described> = Vec::new();
    let mut block = MdadmBlock::default();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let line = unquoted(line);
        if line.starts_with('/') && line.ends_with(':') {
            let device = line.trim_end_matches(':').to_owned();
            block.end(file, &mut arrays)?;
            block.device = device;
        } else if let Some(volume) = volume_of(line) {
            // A volume of Intel's firmware stands below the name of its container's member, which
            // the next block keeps.
            let device = block.device.clone();
            block.end(file, &mut arrays)?;
            block.device = device;
            block.volume = Some(volume.to_owned());
        } else if let Some((key, value)) = line.split_once(" :") {
            block.key(file, at, key.trim(), value.trim())?;
        } else {
            block.row(line);
        }
    }
    block.end(file, &mut arrays)?;
    let arrays = arrays.into_iter().map(|described| {
        let mut array = described.array;
        // A superblock that is out of date may name a member that has failed since.
        let MdArray {
            missing,
            rebuilding,
            ..
        } = &mut array;
        rebuilding.retain(|place| !missing.contains(place));
        rebuilding.sort_unstable();
        rebuilding.dedup();
        array
    });
    Ok(arrays.collect())
}

/// Returns the name of a volume in a container of Intel's firmware, such as `[Volume0]:`.
fn volume_of(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix("]:")?;
    (!name.is_empty()).then_some(name)
}

/// One block of `mdadm`'s output: an array, a member, or a volume of Intel's firmware on a member.
#[derive(Default)]
struct MdadmBlock {
    device: String,
    /// Name of the volume of Intel's firmware.
    volume: Option<String>,
    array: MdArray,
    uuid: String,
    /// Number of the member that was examined.
    role: Option<u32>,
    /// State of each member as letters, of an examined member.
    states: String,
    /// States of the members by the table: place, state, device.
    seen: Vec<(u32, String, String)>,
    /// True if the block describes a member.
    examined: bool,
    /// Lines of the layout and of a change of shape.
    layout_line: usize,
    reshapes: Option<usize>,
    container: bool,
    /// Counter of the superblock of an examined member. The highest counter is current.
    events: u64,
    /// Bytes that are filled, of an examined member that is being filled.
    recovered: Option<u64>,
    /// Filled part of the members that are being filled, in percent.
    percent: Option<u64>,
}

impl MdadmBlock {
    fn key(&mut self, file: &str, at: usize, key: &str, value: &str) -> Result<(), StackError> {
        let array = &mut self.array;
        // While Intel's firmware fills a member, each value stands before an arrow and its former
        // value.
        let (value, before) = match value.split_once("<--") {
            Some((value, before)) => (value.trim(), Some(before.trim())),
            None => (value, None),
        };
        match key {
            "Magic" => self.examined = true,
            // Intel's firmware writes only the number.
            "Raid Level" | "RAID Level" if value == "container" => self.container = true,
            "Raid Level" => array.layout = layout_of(file, at, value)?,
            "RAID Level" => {
                array.layout = layout_of(file, at, &format!("raid{value}"))?;
                self.layout_line = at;
            }
            "Raid Devices" | "Members" => array.members = members_of(file, at, key, value)?,
            "Array UUID" | "UUID" => self.uuid = value.to_owned(),
            // mdadm prints this size in KiB or sectors, without a unit.
            "Array Size" => array.array_bytes = size_of(value, 1024),
            "Used Dev Size" | "Device Size" | "Per Dev Size" => {
                let unit = if self.examined { 512 } else { 1024 };
                array.member_bytes = size_of(value, unit);
            }
            "Chunk Size" => array.chunk = Some(chunk_of(file, at, value)?),
            "Layout" => self.layout(file, at, value)?,
            // A bitmap in a file of another disk costs the members nothing.
            "Intent Bitmap" => {
                // `Internal(Clustered)` of a cluster is a bitmap on the members, too.
                array.bitmap = value.to_ascii_lowercase().starts_with("internal");
                if value.starts_with('/') {
                    array.leaves_out(&format!("a bitmap in a file: {value}"));
                }
            }
            // Earlier superblocks have two numbers, `0.123`, of which the first is 0.
            "Events" => {
                let number = value.rsplit('.').next().unwrap_or_default();
                self.events = number.parse().unwrap_or(0);
            }
            "Name" if self.examined => {
                let name = value.split_whitespace().next().unwrap_or_default();
                array.name = name.to_owned();
            }
            "Internal Bitmap" => array.bitmap = true,
            "Consistency Policy" => {
                array.partial_parity = value == "ppl";
                array.journal |= value == "journal";
            }
            // Superblocks 1.x.
            "Device Role" => self.role(value),
            "This Slot" => {
                let slot = value.split_whitespace().next().unwrap_or_default();
                self.role = slot.parse().ok();
            }
            "Array State" | "Slots" => {
                let letters = value.trim_start_matches('[').split_whitespace().next();
                self.states = letters.unwrap_or_default().to_owned();
                let before = before.unwrap_or_default().trim_start_matches('[');
                array.rebuilding = lost_letters(before, array.members);
            }
            "Delta Devices" | "New Level" | "New Layout" | "New Chunksize" | "Reshape Status"
            | "Reshape pos'n" => {
                self.reshapes.get_or_insert(at);
            }
            "Migrate State" if value.contains("migrat") => {
                self.reshapes.get_or_insert(at);
            }
            _ => self.progress(key, value),
        }
        Ok(())
    }

    /// Reads a key about work in progress.
    fn progress(&mut self, key: &str, value: &str) {
        match key {
            "Recovery Offset" => {
                self.recovered = size_of(value, 512);
            }
            "Rebuild Status" => {
                self.percent = value.split('%').next().and_then(|part| part.parse().ok());
            }
            "Resync Status" | "Check Status" | "Repair Status" => {
                let kind = key.trim_end_matches(" Status").to_lowercase();
                self.array
                    .leaves_out(&format!("a {kind} in progress: {value}"));
            }
            _ => {}
        }
    }

    /// Reads the role of an examined member.
    fn role(&mut self, value: &str) {
        let role = value
            .strip_prefix("Active device ")
            .or_else(|| value.strip_prefix("Replacement device "));
        self.role = role.and_then(|number| number.trim().parse().ok());
        self.array.journal |= value == "Journal";
    }

    fn layout(&mut self, file: &str, at: usize, value: &str) -> Result<(), StackError> {
        let array = &mut self.array;
        if value.contains('=') {
            array.copies = Some(copies_of(file, at, value)?);
        } else if matches!(array.layout.as_str(), "raid5" | "raid6") {
            array.rotation = rotation_of(file, at, value)?;
        }
        Ok(())
    }

    /// Reads a row of the members' table: `Number Major Minor RaidDevice State device`. Superblocks
    /// of version 0.90 have one column more at the beginning.
    fn row(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let skip = usize::from(self.examined);
        if words.len() <= 4 + skip || words[0] == "this" {
            return;
        }
        let Ok(place) = words[3 + skip].parse() else {
            // Spares and the journal device have no place.
            self.array.journal |= words[4 + skip..].contains(&"journal");
            return;
        };
        let state = &words[4 + skip..];
        let device = state.last().filter(|word| word.starts_with('/'));
        let device = device.map_or("", |word| *word);
        if state
            .iter()
            .any(|word| matches!(*word, "writemostly" | "write-mostly"))
        {
            self.array.is_write_mostly(device);
        }
        self.seen.push((place, state.join(" "), device.to_owned()));
    }

    /// Adds the block to the arrays, and begins a new block.
    fn end(&mut self, file: &str, arrays: &mut Vec<Described>) -> Result<(), StackError> {
        let mut block = std::mem::take(self);
        // A container and the text before the first heading describe no array of their own.
        if block.container || block.array.layout.is_empty() || block.array.members == 0 {
            return Ok(());
        }
        if let Some(line) = block.reshapes {
            return Err(reshapes(file, line));
        }
        block.array.devices = vec![String::new(); block.array.members as usize];
        if block.volume.is_some() {
            block.complete_volume(file)?;
        }
        match block.examined || block.volume.is_some() {
            true => block.add_member(arrays),
            false => {
                block.array.name = std::mem::take(&mut block.device);
                block.place_members();
                let array = &mut block.array;
                let part = block.percent.zip(array.member_bytes);
                array.filled = part.map(|(percent, bytes)| bytes / 100 * percent.min(100));
                arrays.push(Described {
                    uuid: block.uuid,
                    events: 0,
                    array: block.array,
                });
            }
        }
        Ok(())
    }

    /// Adds what Intel's firmware does not write: its RAID 5 is left-asymmetric, its RAID 10 keeps
    /// two near copies, and its sizes are sectors (`super-intel.c` of mdadm).
    fn complete_volume(&mut self, file: &str) -> Result<(), StackError> {
        let array = &mut self.array;
        array.name = self.volume.clone().unwrap_or_default();
        match array.layout.as_str() {
            "raid5" => array.rotation = Some("left-asymmetric".to_owned()),
            "raid10" => array.copies = Some(("near".to_owned(), 2)),
            "raid1" => array.chunk = None,
            "raid0" => {}
            other => {
                let message =
                    format!("found {other} of Intel's firmware; expected RAID 0, 1, 5 or 10");
                return Err(fail(file, self.layout_line, "RAID Level", message));
            }
        }
        Ok(())
    }

    /// Adds an examined member. `--examine` prints a block for each member. Blocks with one UUID are
    /// one array. The superblock with the highest counter tells the states, because a member that was
    /// lost keeps the states from before its loss.
    fn add_member(mut self, arrays: &mut Vec<Described>) {
        self.place_members();
        let array = &mut self.array;
        if array.missing.is_empty() {
            array.missing = lost_letters(&self.states, array.members);
        }
        let known = arrays.iter().position(|known| known.uuid == self.uuid);
        let at = known.unwrap_or_else(|| {
            arrays.push(Described {
                uuid: std::mem::take(&mut self.uuid),
                events: self.events,
                array: self.array.clone(),
            });
            arrays.len() - 1
        });
        let known = &mut arrays[at];
        if self.events > known.events {
            known.events = self.events;
            known.array.missing.clone_from(&self.array.missing);
            known.array.bitmap = self.array.bitmap;
        }
        let array = &mut known.array;
        array.journal |= self.array.journal;
        if let Some((role, bytes)) = self.role.zip(self.recovered) {
            array.rebuilding.push(role);
            array.filled = Some(array.filled.map_or(bytes, |filled| filled.min(bytes)));
        }
        let role = self
            .role
            .and_then(|role| array.devices.get_mut(role as usize));
        if let Some(device) = role {
            *device = self.device;
        }
    }

    /// Reads states and devices of the members from the rows of the table.
    fn place_members(&mut self) {
        let array = &mut self.array;
        // While a member is being replaced, two rows have its place.
        let works = |wanted: u32| {
            let mut rows = self.seen.iter();
            rows.any(|(place, state, _)| *place == wanted && state.contains("sync"))
        };
        for (place, state, device) in &self.seen {
            let is_second = works(*place) && !state.contains("sync");
            if is_second {
                if state.contains("rebuilding") {
                    array.leaves_out(&format!(
                        "a device that is being filled in place of member {place}, which works: {device}"
                    ));
                }
                continue;
            }
            let Some(slot) = array.devices.get_mut(*place as usize) else {
                continue;
            };
            slot.clone_from(device);
            // A working member is `active sync`, an absent one `removed` or `faulty`.
            if state.contains("rebuilding") {
                array.rebuilding.push(*place);
            } else if !state.contains("sync") {
                array.missing.push(*place);
            }
        }
        for places in [&mut array.rebuilding, &mut array.missing] {
            places.sort_unstable();
            places.dedup();
        }
        let rebuilding = &array.rebuilding;
        array.missing.retain(|place| !rebuilding.contains(place));
    }
}

/// Returns the arrangement and number of copies of a layout such as `near=2`. Earlier versions of
/// mdadm print `near=2, far=1`.
fn copies_of(file: &str, at: usize, value: &str) -> Result<(String, u32), StackError> {
    let mut found = None;
    for part in value.split(',') {
        let (arrangement, copies) = part.trim().split_once('=').unwrap_or((part, ""));
        let copies = number(file, at, "Layout", copies)?;
        if !matches!(arrangement, "near" | "far" | "offset") {
            let message = format!("found {value}; expected near, far or offset copies");
            return Err(fail(file, at, "Layout", message));
        }
        let copies = u32::try_from(copies).unwrap_or(u32::MAX);
        match found {
            Some(_) if copies == 1 => {}
            Some((_, before)) if before > 1 => {
                let message = format!("found {value}; expected copies of one arrangement");
                return Err(fail(file, at, "Layout", message));
            }
            _ => found = Some((arrangement.to_owned(), copies)),
        }
    }
    found.ok_or_else(|| {
        fail(
            file,
            at,
            "Layout",
            format!("found {value}; expected near=2"),
        )
    })
}
