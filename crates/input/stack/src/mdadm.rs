//! Reads the description of a Linux md array: the output of `mdadm --detail`, of `mdadm --examine`,
//! or `/proc/mdstat`.

use crate::StackError;
use fullstroke_units::Bytes;
use serde::Serialize;
use std::fmt::Write as _;

/// A Linux md array as its tools describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MdArray {
    /// Name of the device, such as `/dev/md0`; empty if unknown.
    pub name: String,
    /// Name of the layout in a stack file.
    pub layout: String,
    /// Number of members.
    pub members: u32,
    /// Bytes of each member that the array uses, if the text says.
    pub member_bytes: Option<u64>,
    /// Bytes of the array, if the text says.
    pub array_bytes: Option<u64>,
    /// Chunk, for layouts with chunks.
    pub chunk: Option<Bytes>,
    /// Pattern of the parity, for raid5 and raid6.
    pub rotation: Option<String>,
    /// Arrangement and number of the copies, for raid10.
    pub copies: Option<(String, u32)>,
    /// Members that are missing or have failed, ascending.
    pub missing: Vec<u32>,
    /// Members that are being filled, ascending.
    pub rebuilding: Vec<u32>,
    /// Devices by number of the member; empty if unknown.
    pub devices: Vec<String>,
    /// True if the array has a write-intent bitmap.
    pub bitmap: bool,
    /// Size of a region of the bitmap, if the text says.
    pub bitmap_chunk: Option<Bytes>,
    /// True if the array has a partial parity log.
    pub partial_parity: bool,
}

impl MdArray {
    /// Reads the arrays that a text describes. `file` is the name of the text in errors.
    ///
    /// # Errors
    /// If the text describes no array, or an array that fullstroke does not have.
    pub fn read(file: &str, text: &str) -> Result<Vec<MdArray>, StackError> {
        // Only /proc/mdstat has these words: the first in its head, the second in each array.
        let arrays = match text.contains("Personalities") || text.contains("blocks super") {
            true => mdstat(file, text)?,
            false => described(file, text)?,
        };
        if arrays.is_empty() {
            return Err(none_found(file, text));
        }
        Ok(arrays)
    }

    /// Returns the stack file of the array, with members of this drive.
    pub fn to_stack(&self, drive: &str) -> String {
        let mut text = String::new();
        let mut line = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        let name = if self.name.is_empty() {
            "md"
        } else {
            &self.name
        };
        line(&format!(
            "title = {:?}",
            format!("{name}: {} of {}", self.layout, self.members)
        ));
        line("seed = 1");
        line("");
        line("# Replace the workload by your own load, or give --trace or --fio.");
        line("[workload]");
        line("kind = \"synthetic\"");
        line("requests = 10000");
        line("size = \"4KiB\"");
        line("read_share = 0.7");
        line("arrivals = { process = \"closed\", outstanding = 4 }");
        line("");
        line("[volume]");
        line(&format!("layout = {:?}", self.layout));
        if self.layout != "jbod" {
            line("like = \"md\"");
            if self.bitmap {
                line("# The array has a write-intent bitmap. To simulate its writes:");
                line("# bitmap = \"internal\"");
                if let Some(chunk) = self.bitmap_chunk {
                    line(&format!("# bitmap_chunk = {:?}", chunk.to_string()));
                }
            }
        }
        if self.partial_parity {
            line("consistency_policy = \"ppl\"");
        }
        for one in self.keys() {
            line(&one);
        }
        let size = self.member_bytes.map_or_else(String::new, |bytes| {
            format!(
                " The array uses {bytes} bytes ({:.2} TB) of each.",
                bytes as f64 / 1e12
            )
        });
        line(&format!(
            "# Name the model of your drives.{size} See: fullstroke drive list"
        ));
        line(&format!("drive = {drive:?}"));
        line(&format!("drives = {}", self.members));
        for (member, device) in self.devices.iter().enumerate() {
            if !device.is_empty() {
                line(&format!("# member {member}: {device}"));
            }
        }
        text
    }

    /// Returns the keys of the volume, one line each.
    fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        if let Some(chunk) = self.chunk {
            keys.push(format!("chunk = \"{}KiB\"", chunk.0 / 1024));
        }
        if let Some(rotation) = &self.rotation {
            keys.push(format!("rotation = {rotation:?}"));
        }
        if let Some((arrangement, copies)) = &self.copies {
            keys.push(format!("arrangement = {arrangement:?}"));
            keys.push(format!("copies = {copies}"));
        }
        if !self.missing.is_empty() {
            keys.push(format!("failed = {:?}", self.missing));
        }
        if !self.rebuilding.is_empty() {
            keys.push(format!("rebuild = {:?}", self.rebuilding));
        }
        keys
    }
}

/// Returns the error of a text without an array that can be read.
fn none_found(file: &str, text: &str) -> StackError {
    let short = text.lines().enumerate().find(|(_, line)| {
        let line = line.trim_start();
        line.starts_with("ARRAY ") || line.starts_with("MD_LEVEL=")
    });
    let inactive = text.lines().enumerate().find(|(_, line)| {
        line.split_once(" : ").is_some_and(|(name, rest)| {
            name.starts_with("md") && rest.trim_start().starts_with("inactive")
        })
    });
    if let Some((at, line)) = inactive {
        let message = format!(
            "found `{}`, which tells no level; expected an active array, or the output of mdadm --examine for each member",
            line.trim()
        );
        return fail(file, at + 1, "inactive", message);
    }
    if text.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("NAME") && words.next() == Some("PROPERTY")
    }) {
        let message =
            "found properties without a pool; expected the output of zpool status in front of them";
        return StackError::whole(file, message);
    }
    match short {
        Some((at, line)) => fail(
            file,
            at + 1,
            "ARRAY",
            format!(
                "found `{}`, which names neither chunk nor layout; expected the output of mdadm --detail without --scan and --export",
                line.trim()
            ),
        ),
        None => StackError::whole(
            file,
            "found no array and no load; expected the output of mdadm --detail, mdadm --examine, zpool status, zpool list -v, iostat -x, sar -d, zpool iostat -v or smartctl -a, or /proc/mdstat",
        ),
    }
}

/// Returns the layout of a level of md.
fn layout_of(file: &str, line: usize, level: &str) -> Result<String, StackError> {
    match level {
        "raid0" | "raid1" | "raid4" | "raid5" | "raid6" | "raid10" => Ok(level.to_owned()),
        "linear" => Ok("jbod".to_owned()),
        other => Err(fail(
            file,
            line,
            "Raid Level",
            format!("found {other}; expected raid0, raid1, raid4, raid5, raid6, raid10 or linear"),
        )),
    }
}

fn fail(file: &str, line: usize, key: &str, message: String) -> StackError {
    StackError {
        file: file.to_owned(),
        line: Some(line),
        key: key.to_owned(),
        message,
    }
}

/// Returns the rotation of a layout's name in `mdadm`.
fn rotation_of(file: &str, line: usize, name: &str) -> Result<Option<String>, StackError> {
    match name {
        "left-symmetric" | "left-asymmetric" | "right-symmetric" | "right-asymmetric" => {
            Ok(Some(name.to_owned()))
        }
        other => Err(fail(
            file,
            line,
            "Layout",
            format!(
                "found {other}; expected left-symmetric, left-asymmetric, right-symmetric or right-asymmetric"
            ),
        )),
    }
}

/// Returns the number at the beginning of a text.
fn number(file: &str, line: usize, key: &str, value: &str) -> Result<u64, StackError> {
    let digits = value.split_whitespace().next().unwrap_or_default();
    digits.parse().map_err(|_| {
        fail(
            file,
            line,
            key,
            format!("found {value:?}; expected a number"),
        )
    })
}

/// Returns the bytes of a chunk such as `512K`.
fn chunk_of(file: &str, line: usize, value: &str) -> Result<Bytes, StackError> {
    let value = value.trim();
    let (digits, unit) = match value.find(|letter: char| !letter.is_ascii_digit()) {
        Some(at) => value.split_at(at),
        None => (value, ""),
    };
    let factor = match unit.trim().chars().next() {
        None => Some(1),
        // mdadm's K and M are powers of 1024.
        Some('K' | 'k') => Some(1024),
        Some('M' | 'm') => Some(1024 * 1024),
        Some(_) => None,
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .zip(factor)
        .and_then(|(count, factor)| count.checked_mul(factor));
    match bytes {
        Some(bytes) if bytes > 0 => Ok(Bytes(bytes)),
        _ => Err(fail(
            file,
            line,
            "Chunk Size",
            format!("found {value:?}; expected for example 512K"),
        )),
    }
}

/// Reads the output of `mdadm --detail` and of `mdadm --examine`. Several members of one array that
/// were examined are one array.
fn described(file: &str, text: &str) -> Result<Vec<MdArray>, StackError> {
    let mut arrays: Vec<(String, MdArray)> = Vec::new();
    let mut block = MdadmBlock::default();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let trimmed = line.trim();
        if trimmed.starts_with('/') && trimmed.ends_with(':') {
            block.end(&mut arrays);
            block.device = trimmed.trim_end_matches(':').to_owned();
        } else if let Some((key, value)) = trimmed.split_once(" : ") {
            block.key(file, at, key.trim(), value.trim())?;
        } else {
            block.row(trimmed);
        }
    }
    block.end(&mut arrays);
    Ok(arrays.into_iter().map(|(_, array)| array).collect())
}

/// One block of `mdadm`'s output: an array, or a member.
#[derive(Default)]
struct MdadmBlock {
    device: String,
    array: MdArray,
    uuid: String,
    /// Number of the member that was examined.
    role: Option<u32>,
    /// State of each member as letters, of an examined member.
    states: String,
    /// States of the members by the table of `--detail`.
    seen: Vec<(u32, String, String)>,
    examined: bool,
}

impl MdadmBlock {
    fn key(&mut self, file: &str, at: usize, key: &str, value: &str) -> Result<(), StackError> {
        let array = &mut self.array;
        match key {
            "Magic" => self.examined = true,
            "Raid Level" => array.layout = layout_of(file, at, value)?,
            "Raid Devices" => array.members = number(file, at, key, value)? as u32,
            "Array UUID" | "UUID" => self.uuid = value.to_owned(),
            "Array Size" => {
                // mdadm prints this size in KiB, without a unit.
                array.array_bytes = number(file, at, key, value)?.checked_mul(1024);
            }
            "Used Dev Size" => {
                // `--detail` counts KiB, `--examine` sectors.
                let unit = if self.examined { 512 } else { 1024 };
                array.member_bytes = number(file, at, key, value)?.checked_mul(unit);
            }
            "Chunk Size" => array.chunk = Some(chunk_of(file, at, value)?),
            "Layout" => self.layout(file, at, value)?,
            "Intent Bitmap" | "Internal Bitmap" => array.bitmap = true,
            "Consistency Policy" => array.partial_parity = value == "ppl",
            "Device Role" => {
                let role = value.strip_prefix("Active device ");
                self.role = role.and_then(|number| number.trim().parse().ok());
            }
            "Array State" => {
                let letters = value.split_whitespace().next();
                self.states = letters.unwrap_or_default().to_owned();
            }
            _ => {}
        }
        Ok(())
    }

    fn layout(&mut self, file: &str, at: usize, value: &str) -> Result<(), StackError> {
        let array = &mut self.array;
        if let Some((arrangement, copies)) = value.split_once('=') {
            let copies = number(file, at, "Layout", copies)? as u32;
            if !matches!(arrangement, "near" | "far" | "offset") {
                let message = format!("found {value}; expected near, far or offset copies");
                return Err(fail(file, at, "Layout", message));
            }
            array.copies = Some((arrangement.to_owned(), copies));
        } else if matches!(array.layout.as_str(), "raid5" | "raid6") {
            array.rotation = rotation_of(file, at, value)?;
        }
        Ok(())
    }

    /// Reads a row of the members' table of `--detail`:
    /// `Number Major Minor RaidDevice State device`.
    fn row(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, place, state @ ..] = &words[..] else {
            return;
        };
        let Ok(place) = place.parse() else { return };
        let device = state
            .last()
            .filter(|word| word.starts_with('/'))
            .map_or("", |word| *word);
        self.seen.push((place, state.join(" "), device.to_owned()));
    }

    /// Adds the block to the arrays, and begins a new block.
    fn end(&mut self, arrays: &mut Vec<(String, MdArray)>) {
        let block = std::mem::take(self);
        if block.array.layout.is_empty() || block.array.members == 0 {
            return;
        }
        let mut array = block.array;
        array.devices = vec![String::new(); array.members as usize];
        // `--examine` prints a block for each member. Blocks with one UUID are one array.
        if block.examined {
            let known = arrays.iter().position(|(uuid, _)| *uuid == block.uuid);
            let at = known.unwrap_or_else(|| {
                array.missing = lost_letters(&block.states, array.members);
                arrays.push((block.uuid, array));
                arrays.len() - 1
            });
            let devices = &mut arrays[at].1.devices;
            if let Some(device) = block.role.and_then(|role| devices.get_mut(role as usize)) {
                *device = block.device;
            }
            return;
        }
        array.name = block.device;
        for (place, state, device) in block.seen {
            let Some(slot) = array.devices.get_mut(place as usize) else {
                continue;
            };
            *slot = device;
            // A working member is `active sync`, an absent one `removed` or `faulty`.
            if state.contains("rebuilding") {
                array.rebuilding.push(place);
            } else if !state.contains("sync") {
                array.missing.push(place);
            }
        }
        arrays.push((block.uuid, array));
    }
}

/// Returns the places of members that a text such as `AA.A` or `UU_U` shows as missing.
fn lost_letters(states: &str, members: u32) -> Vec<u32> {
    (0..members)
        .zip(states.chars())
        .filter(|(_, letter)| matches!(letter, '.' | '_'))
        .map(|(member, _)| member)
        .collect()
}

/// Reads `/proc/mdstat`.
fn mdstat(file: &str, text: &str) -> Result<Vec<MdArray>, StackError> {
    let mut arrays: Vec<MdArray> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        if let Some((name, rest)) = line.split_once(" : ")
            && name.starts_with("md")
        {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let level = words.iter().position(|word| {
                word.starts_with("raid") || matches!(*word, "linear" | "multipath")
            });
            inside = level.is_some() && words.first() == Some(&"active");
            if let Some(level) = level.filter(|_| inside) {
                arrays.push(MdArray {
                    name: format!("/dev/{name}"),
                    layout: layout_of(file, at, words[level])?,
                    devices: words[level + 1..]
                        .iter()
                        .map(|word| (*word).to_owned())
                        .collect(),
                    ..MdArray::default()
                });
            }
        } else if let Some(array) = arrays.last_mut().filter(|_| inside) {
            mdstat_line(file, at, line.trim(), array)?;
        }
    }
    arrays.retain(|array| array.members > 0);
    Ok(arrays)
}

/// Reads a further line of an array: blocks, chunk, algorithm or copies, members.
fn mdstat_line(file: &str, at: usize, line: &str, array: &mut MdArray) -> Result<(), StackError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.get(1) == Some(&"blocks") {
        array.array_bytes = number(file, at, "blocks", words[0])?.checked_mul(1024);
        for pair in words.windows(2) {
            match pair {
                [size, "chunk," | "chunk" | "chunks"] => {
                    array.chunk = Some(chunk_of(file, at, size)?);
                }
                [copies, kind] if kind.ends_with("-copies") => {
                    let copies = number(file, at, "copies", copies)? as u32;
                    let arrangement = kind.trim_end_matches("-copies").to_owned();
                    array.copies = Some((arrangement, copies));
                }
                ["algorithm", code] if matches!(array.layout.as_str(), "raid5" | "raid6") => {
                    array.rotation = Some(algorithm(file, at, code)?.to_owned());
                }
                _ => {}
            }
        }
        mdstat_members(&words, array);
    } else if line.contains("recovery =") {
        // A line of a recovery says that the missing members are being filled.
        array.rebuilding = std::mem::take(&mut array.missing);
    } else if line.contains("reshape =") {
        let message = "found an array that changes its shape; expected an array whose layout stays: a reshape is not simulated";
        return Err(fail(file, at, "reshape", message.to_owned()));
    } else if line.starts_with("bitmap:") {
        array.bitmap = true;
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [.., size, "chunk"] = words[..] {
            array.bitmap_chunk = Some(chunk_of(file, at, size)?);
        }
    }
    Ok(())
}

/// Reads the members of an array: `[4/3] [UU_U]`, or the devices of an array without redundancy.
fn mdstat_members(words: &[&str], array: &mut MdArray) {
    let counts = words
        .iter()
        .find_map(|word| word.strip_prefix('[')?.split_once('/')?.0.parse().ok());
    let states = words
        .iter()
        .rfind(|word| word.starts_with('[') && word.contains(['U', '_']));
    // RAID 0 and linear arrays have no counts such as [4/4].
    array.members = counts.unwrap_or(array.devices.len() as u32);
    if let Some(states) = states {
        array.missing = lost_letters(states.trim_start_matches('['), array.members);
    }
    // The number of a device in brackets is its place in the superblock, which is the place in the
    // array only for the first members. Without the place, the order is unknown.
    let mut devices = vec![String::new(); array.members as usize];
    for word in std::mem::take(&mut array.devices) {
        let Some((device, rest)) = word.split_once('[') else {
            continue;
        };
        let place = rest
            .split(']')
            .next()
            .and_then(|place| place.parse::<usize>().ok());
        if let Some(slot) = place.and_then(|place| devices.get_mut(place)) {
            let _ = write!(slot, "/dev/{device}");
        }
    }
    array.devices = devices;
}

/// Returns the rotation of an algorithm's number: `ALGORITHM_*` (`drivers/md/raid5.h`).
fn algorithm(file: &str, at: usize, code: &str) -> Result<&'static str, StackError> {
    match code {
        "0" => Ok("left-asymmetric"),
        "1" => Ok("right-asymmetric"),
        "2" => Ok("left-symmetric"),
        "3" => Ok("right-symmetric"),
        other => Err(fail(
            file,
            at,
            "algorithm",
            format!("found {other}; expected 0 to 3"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let inactive = "Personalities : [raid6]\nmd127 : inactive sdf[4](S) sde[3](S)\n      23441682432 blocks super 1.2\n";
        let error = MdArray::read("x", inactive).unwrap_err();
        assert!(
            error.line == Some(2) && error.message.contains("--examine"),
            "{error}"
        );
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
}
