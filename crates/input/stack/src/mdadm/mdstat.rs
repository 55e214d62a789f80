//! Reads `/proc/mdstat` (`md_seq_show`, `drivers/md/md.c`).

use super::array::MdArray;
use super::text::{
    chunk_of, fail, layout_of, lost_letters, members_of, number, reshapes, unquoted,
};
use crate::StackError;
use std::fmt::Write as _;

/// The array of the lines that are read, and its devices by state.
struct Listed {
    array: MdArray,
    /// Name and place in the superblock of each device that holds data of the array.
    devices: Vec<(String, Option<u32>)>,
}

/// Returns name and description of the first line of an array, such as
/// `md0 : active raid1 sdb1[1] sda1[0]`.
pub(super) fn head(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = unquoted(line).split_once(" : ")?;
    let name = name.trim();
    let is_array = name.starts_with("md") && !name.contains(char::is_whitespace);
    let state = rest.split_whitespace().next()?;
    (is_array && matches!(state, "active" | "inactive")).then_some((name, rest))
}

/// Reads the arrays that are active.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<MdArray>, StackError> {
    let mut arrays: Vec<Listed> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        if let Some((name, rest)) = head(line) {
            let begun = begin(file, at, name, rest)?;
            inside = begun.is_some();
            arrays.extend(begun);
        } else if let Some(listed) = arrays.last_mut().filter(|_| inside) {
            listed.line(file, at, unquoted(line))?;
        }
    }
    let arrays = arrays.into_iter().map(|listed| listed.array);
    Ok(arrays.filter(|array| array.members > 0).collect())
}

/// Reads the first line of an array. Returns `None` for an inactive array.
fn begin(file: &str, at: usize, name: &str, rest: &str) -> Result<Option<Listed>, StackError> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    if words.first() != Some(&"active") {
        return Ok(None);
    }
    // Behind `active` may stand `(read-only)` or `(auto-read-only)`.
    let level = words[1..].iter().position(|word| !word.starts_with('('));
    let Some(level) = level.map(|level| level + 1) else {
        return Err(fail(
            file,
            at,
            "Raid Level",
            format!("found {rest:?}; expected a level behind the state, such as raid5"),
        ));
    };
    let mut array = MdArray {
        name: format!("/dev/{name}"),
        layout: layout_of(file, at, words[level])?,
        ..MdArray::default()
    };
    let mut devices = Vec::new();
    for word in &words[level + 1..] {
        // `sdb1[1](W)(S)`: write-mostly, journal, failed, spare, replacement.
        let Some((device, rest)) = word.split_once('[') else {
            continue;
        };
        array.journal |= rest.contains("(J)");
        if rest.contains("(W)") {
            array.is_write_mostly(&format!("/dev/{device}"));
        }
        // A failed device, a spare, the journal and a replacement hold no part of the array in a
        // place of its own.
        if !["(F)", "(S)", "(J)", "(R)"]
            .iter()
            .any(|mark| rest.contains(mark))
        {
            let place = rest.split(']').next().and_then(|place| place.parse().ok());
            devices.push((device.to_owned(), place));
        }
    }
    Ok(Some(Listed { array, devices }))
}

impl Listed {
    /// Reads a further line of an array: blocks, chunk, algorithm or copies, members, a recovery,
    /// a bitmap.
    fn line(&mut self, file: &str, at: usize, line: &str) -> Result<(), StackError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let array = &mut self.array;
        if words.get(1) == Some(&"blocks") {
            array.array_bytes = number(file, at, "blocks", words[0])?.checked_mul(1024);
            self.shape(file, at, &words)?;
            self.members(file, at, &words)?;
        } else if line.contains("recovery =") || line.contains("recovery=") {
            self.fill();
            self.array.filled = span_of(&words).map(|(done, _)| done);
        } else if let Some(kind) = ["resync", "check"]
            .into_iter()
            .find(|kind| line.contains(&format!("{kind} =")))
        {
            array.leaves_out(&format!("a {kind} in progress"));
        } else if let Some(state) = line.strip_prefix("resync=") {
            array.leaves_out(&format!(
                "a resync or a recovery that waits: resync={state}"
            ));
        } else if line.contains("reshape =") || line.contains("reshape=") {
            // The text shows the old and the new layout mixed.
            return Err(reshapes(file, at));
        } else if let Some((_, bitmap_file)) = bitmap_in_file(line) {
            array.leaves_out(&format!("a bitmap in a file: {bitmap_file}"));
        } else if line.starts_with("bitmap:") {
            array.bitmap = true;
            let chunk = words.iter().position(|word| word.starts_with("chunk"));
            if let Some(size) = chunk.and_then(|chunk| words.get(chunk.checked_sub(1)?)) {
                array.bitmap_chunk = Some(chunk_of(file, at, size)?);
            }
        }
        // Of a resync and of a recovery, `(249061376/2930134016)` are KiB of each member; of a
        // RAID 10, KiB of the array.
        if self.array.layout != "raid10"
            && let Some((_, all)) = span_of(&words)
        {
            self.array.member_bytes = Some(all);
        }
        Ok(())
    }

    /// Reads chunk, copies and rotation.
    fn shape(&mut self, file: &str, at: usize, words: &[&str]) -> Result<(), StackError> {
        let array = &mut self.array;
        for pair in words.windows(2) {
            match pair {
                [size, "chunk," | "chunk" | "chunks"] => {
                    array.chunk = Some(chunk_of(file, at, size)?);
                }
                [copies, kind] if kind.ends_with("-copies") => {
                    let copies = members_of(file, at, "copies", copies)?;
                    let arrangement = kind.trim_end_matches("-copies").to_owned();
                    if let Some((other, others)) = array.copies.replace((arrangement, copies)) {
                        let message = format!(
                            "found {others} {other} and {copies} {kind}; expected copies of one arrangement"
                        );
                        return Err(fail(file, at, "copies", message));
                    }
                }
                ["algorithm", code] if matches!(array.layout.as_str(), "raid5" | "raid6") => {
                    array.rotation = Some(algorithm(file, at, code)?.to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the members: `[4/3] [UU_U]`, or the devices of an array without redundancy.
    fn members(&mut self, file: &str, at: usize, words: &[&str]) -> Result<(), StackError> {
        let array = &mut self.array;
        let counts = words
            .iter()
            .find_map(|word| Some(word.strip_prefix('[')?.split_once('/')?.0));
        // RAID 0 and linear arrays have no counts such as [4/4].
        array.members = match counts {
            Some(count) => members_of(file, at, "members", count)?,
            None => self.devices.len() as u32,
        };
        let states = words
            .iter()
            .rfind(|word| word.starts_with('[') && word.contains(['U', '_']));
        if let Some(states) = states {
            array.missing = lost_letters(states.trim_start_matches('['), array.members);
        }
        self.name_devices();
        Ok(())
    }

    /// Finds the place of each device. The number in brackets is a place in the superblock, which is
    /// the place in the array for the first members. A device that replaced another has a higher
    /// number; its place is known if only one place is left.
    fn name_devices(&mut self) {
        let mut devices = vec![String::new(); self.array.members as usize];
        let mut others = Vec::new();
        for (device, place) in &self.devices {
            let slot = place.and_then(|place| devices.get_mut(place as usize));
            match slot.filter(|slot| slot.is_empty()) {
                Some(slot) => {
                    let _ = write!(slot, "/dev/{device}");
                }
                None => others.push(device),
            }
        }
        let free: Vec<usize> = (0..devices.len())
            .filter(|&place| devices[place].is_empty())
            .filter(|&place| !self.array.missing.contains(&(place as u32)))
            .collect();
        // With two places left, the text does not say which device took which.
        if let ([place], [device]) = (&free[..], &others[..]) {
            devices[*place] = format!("/dev/{device}");
        }
        self.array.devices = devices;
    }

    /// Takes note of a recovery: the listed devices beyond the working members are being filled.
    fn fill(&mut self) {
        let array = &mut self.array;
        let working = array.members as usize - array.missing.len();
        if array.missing.is_empty() {
            array.leaves_out("a device that is being filled in place of a member that works");
            return;
        }
        // At least one, because the line of the recovery says so, even if a device has no place
        // yet.
        let filling = self.devices.len().saturating_sub(working).max(1);
        let filling = filling.min(array.missing.len());
        let left = array.missing.split_off(filling);
        array.rebuilding = std::mem::replace(&mut array.missing, left);
    }
}

/// Splits the line of a bitmap that lies in a file of another disk, such as
/// `bitmap: 0/1 pages [0KB], 65536KB chunk, file: /var/md0.bitmap`.
fn bitmap_in_file(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("bitmap:")?.split_once("file: ")
}

/// Returns the finished bytes and all bytes of a word such as `(249061376/2930134016)`, in KiB.
fn span_of(words: &[&str]) -> Option<(u64, u64)> {
    words.iter().find_map(|word| {
        let (done, all) = word.strip_prefix('(')?.strip_suffix(')')?.split_once('/')?;
        let bytes = |kib: &str| kib.parse::<u64>().ok()?.checked_mul(1024);
        bytes(done).zip(bytes(all))
    })
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
