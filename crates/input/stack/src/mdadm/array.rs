//! A Linux md array, and its stack file.

use crate::facts;
use fullstroke_units::Bytes;
use serde::Serialize;

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
    /// True if the array has a journal device.
    pub journal: bool,
    /// Bytes of each member of `rebuilding` that are filled, if the text says.
    pub filled: Option<u64>,
    /// Parts of the array that the stack file leaves out, one sentence each.
    pub notes: Vec<String>,
}

/// Bytes of a page, in which md rebuilds.
const PAGE: u64 = 4096;

impl MdArray {
    /// Notes that the stack file leaves a part of the array out.
    pub(super) fn leaves_out(&mut self, what: &str) {
        let note = format!("left out, {what}");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Notes a read policy: md reads from such a member only if no other has the data.
    pub(super) fn is_write_mostly(&mut self, device: &str) {
        self.leaves_out(&format!("a member that serves writes mostly: {device}"));
    }

    /// Derives the bytes of a member from those of the array, if only these are known.
    pub(super) fn derive_member_bytes(&mut self) {
        let members = u64::from(self.members);
        let share = match (self.layout.as_str(), &self.copies) {
            ("raid1", _) => Some((1, 1)),
            ("raid4" | "raid5", _) => members.checked_sub(1).map(|data| (1, data)),
            ("raid6", _) => members.checked_sub(2).map(|data| (1, data)),
            // Each member has `copies / members` of the data, also if the copies do not divide the
            // members.
            ("raid10", Some((_, copies))) => Some((u64::from(*copies), members)),
            ("raid0" | "jbod", _) => Some((1, members)),
            _ => None,
        };
        if self.member_bytes.is_none()
            && let Some((array, (factor, divisor))) = self.array_bytes.zip(share)
        {
            let all = array.checked_mul(factor);
            self.member_bytes = all.and_then(|all| all.checked_div(divisor));
        }
    }

    /// Returns the stack file of the array, with members of this drive.
    pub fn to_stack(&self, drive: &str) -> String {
        let mut lines = Vec::new();
        let name = if self.name.is_empty() {
            "md"
        } else {
            &self.name
        };
        let title = format!("{name}: {} of {}", self.layout, self.members);
        lines.push(format!("title = {title:?}"));
        for line in [
            "seed = 1",
            "",
            "# Replace the workload by your own load, or give --trace or --fio.",
            "[workload]",
            "kind = \"synthetic\"",
            "requests = 10000",
            "size = \"4KiB\"",
            "read_share = 0.7",
            "arrivals = { process = \"closed\", outstanding = 4 }",
            "",
            "[volume]",
        ] {
            lines.push(line.to_owned());
        }
        lines.push(format!("layout = {:?}", self.layout));
        lines.extend(self.keys());
        let size = self.member_bytes.map_or_else(String::new, |bytes| {
            format!(
                " The array uses {bytes} bytes ({:.2} TB) of each.",
                bytes as f64 / 1e12
            )
        });
        lines.push(format!(
            "# Name the model of your drives.{size} See: fullstroke drive list"
        ));
        lines.push(format!("drive = {drive:?}"));
        lines.push(format!("drives = {}", self.members));
        for (member, device) in self.devices.iter().enumerate() {
            if !device.is_empty() {
                lines.push(format!("# member {member}: {device}"));
            }
        }
        let mixed = facts::mixed_with_flash(&self.devices);
        for note in self.notes.iter().chain(&mixed) {
            lines.push(format!("# {note}"));
        }
        lines.push(String::new());
        lines.join("\n")
    }

    /// Returns the keys of the volume, one line each.
    fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        let has_records = !matches!(self.layout.as_str(), "jbod" | "raid0");
        if self.layout != "jbod" {
            // Written out, because RAID 0 is like md only by word.
            keys.push("like = \"md\"".to_owned());
        }
        if has_records {
            keys.extend(self.records());
        }
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
            // `rebuild_from` is a multiple of a page.
            let filled = self.filled.map_or(0, |bytes| bytes / PAGE * PAGE);
            if filled > 0 {
                keys.push(format!("rebuild_from = \"{}KiB\"", filled / 1024));
            }
        }
        keys
    }

    /// Returns the keys of the records that md keeps on the members.
    fn records(&self) -> Vec<String> {
        if self.partial_parity {
            return vec!["consistency_policy = \"ppl\"".to_owned()];
        }
        if self.journal {
            return vec![
                "# The model of the journal device is not known: name yours here.".to_owned(),
                format!("journal = {:?}", facts::SATA_FLASH),
            ];
        }
        if !self.bitmap {
            return Vec::new();
        }
        let mut keys = vec!["bitmap = \"internal\"".to_owned()];
        if let Some(chunk) = self.bitmap_chunk {
            keys.push(format!("bitmap_chunk = {:?}", chunk.to_string()));
        }
        keys
    }
}
