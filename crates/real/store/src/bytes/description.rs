//! The description of a store in its folder.

use crate::Device;
use crate::bytes::StoreError;
use crate::bytes::error::NAME;
use crate::copies::{PlaceContent, RecordKind, StoreRecord};
use crate::label::Label;
use crate::uuid::Uuid;
use fullstroke_contract::MemberState;
use fullstroke_units::{Bytes, Sectors};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Version of all files in the folder.
///
/// - 1 and 2: a text file `fullstroke.toml`, a file of regions and a journal of one record.
/// - 3: the present version.
const FORMAT: u32 = 3;

/// Two copies of the description in the file [`NAME`].
pub(crate) const COPIES: RecordKind = RecordKind {
    magic: *b"fsstore1",
    oldest: FORMAT,
    version: FORMAT,
    room: 1 << 20,
};

/// Member identifier of the store's own records.
const NOBODY: Uuid = Uuid::from_bytes([0; 16]);

/// Description of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// Identifier of the store.
    pub(crate) store: Uuid,
    /// Number of openings, failures and replacements.
    pub(crate) events: u64,
    /// Digest of the volume and its drives.
    pub(crate) digest: String,
    /// For people: `raid0 of 2 x raid5 of 4`.
    pub(crate) layout: String,
    /// True if all files of the store were made.
    pub(crate) complete: bool,
    /// True if the store was closed, rather than killed.
    pub(crate) clean: bool,
    /// Size of a region in sectors of the volume's addresses; each region has one mark.
    pub(crate) region_sectors: u64,
    /// Paths of the volumes in the low gear: indices from the top, as in members' paths. The path
    /// of the outermost volume is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) low_gear: Vec<String>,
    /// Changes that went to the journal since the last opening.
    #[serde(default, skip_serializing_if = "JournalScope::is_degraded")]
    pub(crate) journal: JournalScope,
    /// Speed limits of rebuilds, if any were set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rebuild: Option<RebuildRecord>,
    /// All members of all volumes, from the top, each volume before its members.
    pub(crate) members: Vec<MemberRecord>,
    /// One entry for each loss of data: the states of the outermost volume's members then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) losses: Vec<LossRecord>,
}

/// Changes of a store with parity that go to the journal first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalScope {
    /// Changes while a parity volume lacks a member. Parity of a volume with all members is mended
    /// from the data. This is impossible for a member that is lost together with power or with the
    /// process.
    #[default]
    Degraded,
    /// All changes. No member's data depends on redundancy that a kill has torn.
    All,
}

impl JournalScope {
    fn is_degraded(&self) -> bool {
        *self == JournalScope::Degraded
    }
}

/// Speed limits of rebuilds, in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RebuildRecord {
    /// Limit of the latest restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bytes>,
    /// See [`RebuildSpeed::least`](fullstroke_contract::RebuildSpeed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_limit_min: Option<Bytes>,
    /// See [`RebuildSpeed::most`](fullstroke_contract::RebuildSpeed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_limit_max: Option<Bytes>,
}

/// States of the members when data was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LossRecord {
    pub(crate) members: Vec<StateRecord>,
}

/// A member of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberRecord {
    /// Indices of the member from the top: `0.2`; empty for a drive without a volume.
    pub(crate) path: String,
    /// Name of the file; `None` for a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    pub(crate) sectors: u64,
    #[serde(flatten)]
    pub(crate) state: StateRecord,
}

impl MemberRecord {
    /// Returns the capacity of the drive in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        Sectors(self.sectors).bytes().0
    }
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(crate) enum StateRecord {
    Alive,
    Failed,
    Rebuilding { done_sectors: u64 },
}

impl From<MemberState> for StateRecord {
    fn from(state: MemberState) -> StateRecord {
        match state {
            MemberState::Alive => StateRecord::Alive,
            MemberState::Failed => StateRecord::Failed,
            MemberState::Rebuilding { done } => StateRecord::Rebuilding {
                done_sectors: done.0,
            },
        }
    }
}

impl From<StateRecord> for MemberState {
    fn from(state: StateRecord) -> MemberState {
        match state {
            StateRecord::Alive => MemberState::Alive,
            StateRecord::Failed => MemberState::Failed,
            StateRecord::Rebuilding { done_sectors } => MemberState::Rebuilding {
                done: Sectors(done_sectors),
            },
        }
    }
}

impl Description {
    pub(crate) fn new(
        store: Uuid,
        digest: &str,
        layout: String,
        region: Sectors,
        members: Vec<MemberRecord>,
    ) -> Description {
        Description {
            store,
            events: 0,
            digest: digest.to_owned(),
            layout,
            complete: false,
            clean: true,
            region_sectors: region.0,
            low_gear: Vec::new(),
            journal: JournalScope::default(),
            rebuild: None,
            members,
            losses: Vec::new(),
        }
    }

    /// Returns the right label of the member's file.
    pub(crate) fn label(&self, member: &MemberRecord) -> Label {
        Label::of_file(self.store, member.path.clone(), self.events)
    }

    /// Returns an error unless the folder was made for the stack with this digest and these
    /// members.
    pub(crate) fn check(
        &self,
        folder: &Path,
        digest: &str,
        members: &[MemberRecord],
    ) -> Result<(), StoreError> {
        if self.digest != digest {
            return Err(StoreError::OtherStack {
                folder: folder.to_owned(),
                found: self.digest.clone(),
                expected: digest.to_owned(),
                layout: self.layout.clone(),
            });
        }
        let key =
            |record: &MemberRecord| (record.path.clone(), record.file.clone(), record.sectors);
        if self.members.iter().map(key).eq(members.iter().map(key)) {
            return Ok(());
        }
        Err(damaged(
            folder.join(NAME),
            "the list of members is not that of the stack with this digest",
        ))
    }
}

/// The description and its two copies on a device.
pub(crate) struct StoredDescription {
    device: Arc<dyn Device>,
    description: Description,
    /// Index of the newest copy, and its number.
    newest: usize,
    number: u64,
}

impl StoredDescription {
    /// Reads the newer whole copy of a device. Returns `None` for a new device without a copy.
    ///
    /// # Errors
    /// The device's, or the copy has another version.
    pub(crate) fn read(device: Arc<dyn Device>) -> Result<Option<StoredDescription>, StoreError> {
        let name = PathBuf::from(device.name());
        let mut newest: Option<(usize, StoreRecord)> = None;
        let (mut failed, mut zeros) = (None, true);
        for (copy, found) in COPIES.read(&*device).into_iter().enumerate() {
            match found {
                Ok(PlaceContent::Whole(record)) => {
                    if newest
                        .as_ref()
                        // Two copies of the same number are equal.
                        .is_none_or(|(_, other)| other.number < record.number)
                    {
                        newest = Some((copy, record));
                    }
                }
                Ok(PlaceContent::OtherVersion(version)) => {
                    let detail = format!(
                        "the store has format {version}; this version of fullstroke reads {FORMAT}. Serve the store with the version that wrote it"
                    );
                    return Err(damaged(name, &detail));
                }
                Ok(PlaceContent::Nothing) => zeros &= is_untouched(&*device, copy),
                Err(error) => failed = Some(error),
            }
        }
        match (newest, failed) {
            (Some((copy, record)), _) => StoredDescription::of(device, copy, &record).map(Some),
            (None, Some(error)) => Err(StoreError::host("read", &name, error)),
            // The process died before it wrote the first description.
            (None, None) if zeros => Ok(None),
            (None, None) => Err(damaged(
                name,
                "no copy of the description is intact: the file was changed or damaged; restore the file as the server left it",
            )),
        }
    }

    fn of(
        device: Arc<dyn Device>,
        newest: usize,
        record: &StoreRecord,
    ) -> Result<StoredDescription, StoreError> {
        let name = PathBuf::from(device.name());
        let description: Description = serde_json::from_slice(&record.body)
            .map_err(|error| damaged(name.clone(), &error.to_string()))?;
        if description.region_sectors == 0 {
            return Err(damaged(
                name,
                "`region_sectors` is 0; expected a positive number",
            ));
        }
        Ok(StoredDescription {
            device,
            description,
            newest,
            number: record.number,
        })
    }

    /// Writes the first description to a new device.
    pub(crate) fn begin(
        device: Arc<dyn Device>,
        description: Description,
    ) -> Result<StoredDescription, StoreError> {
        let mut kept = StoredDescription {
            device,
            description: description.clone(),
            // So that the copy at the start is written first.
            newest: 1,
            number: 0,
        };
        kept.write(description)?;
        Ok(kept)
    }

    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    /// Replaces the description durably. An equal description is not written.
    pub(crate) fn replace(&mut self, description: Description) -> Result<(), StoreError> {
        if description == self.description {
            return Ok(());
        }
        assert!(
            description.store == self.description.store
                && description.events >= self.description.events,
            "the description of event {} is replaced with one of event {}",
            self.description.events,
            description.events
        );
        self.write(description)
    }

    fn write(&mut self, description: Description) -> Result<(), StoreError> {
        let name = PathBuf::from(self.device.name());
        let body = serde_json::to_vec(&description)
            .map_err(|error| damaged(name.clone(), &error.to_string()))?;
        let length = body.len();
        let record = StoreRecord {
            version: FORMAT,
            number: self.number + 1,
            store: description.store,
            member: NOBODY,
            body,
        };
        let encoded = COPIES.encode(&record).ok_or_else(|| {
            StoreError::Refused(format!(
                "the description of the store takes {length} bytes; expected less than {}: use fewer members",
                COPIES.room
            ))
        })?;
        // The older copy is written first, so one copy is always whole. The other is written at
        // once too: otherwise damage to the new copy would bring back an earlier state of the
        // store.
        for copy in [1 - self.newest, self.newest] {
            COPIES
                .write(&*self.device, copy, &encoded)
                .and_then(|()| self.device.flush())
                .map_err(|error| StoreError::host("write", &name, error))?;
            (self.newest, self.number) = (copy, record.number);
        }
        // After an error the old description stays here, and the next call writes again.
        self.description = description;
        Ok(())
    }
}

/// True if nothing was ever written in the place of a copy.
fn is_untouched(device: &dyn Device, copy: usize) -> bool {
    let mut bytes = vec![0; COPIES.room as usize];
    let read = device.read(COPIES.place(copy, device.bytes()), &mut bytes);
    read.is_ok() && bytes.iter().all(|&byte| byte == 0)
}

pub(crate) fn damaged(file: PathBuf, detail: &str) -> StoreError {
    StoreError::Damaged {
        file,
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;
    use crate::power::{SplitMix, simulated};
    use std::sync::atomic::Ordering::SeqCst;

    fn description(events: u64) -> Description {
        let record = |path: &str, file: Option<&str>, state| MemberRecord {
            path: path.into(),
            file: file.map(str::to_owned),
            sectors: 1000,
            state,
        };
        let members = vec![
            record("0", None, StateRecord::Failed),
            record("0.0", Some("member-0.0.img"), StateRecord::Alive),
            record(
                "1",
                Some("member-1.img"),
                StateRecord::Rebuilding { done_sectors: 17 },
            ),
        ];
        let store = Uuid::from_bytes([7; 16]);
        let mut description =
            Description::new(store, "abc", "raid1 of 2".into(), Sectors(32_768), members);
        description.events = events;
        description
    }

    fn device() -> Arc<dyn Device> {
        Arc::new(MemoryDevice::new(8 << 20))
    }

    #[test]
    fn what_is_written_is_read_again_also_where_one_copy_is_damaged() {
        let device = device();
        assert!(
            StoredDescription::read(Arc::clone(&device))
                .unwrap()
                .is_none()
        );
        let mut kept = StoredDescription::begin(Arc::clone(&device), description(1)).unwrap();
        for events in 2..6 {
            kept.replace(description(events)).unwrap();
            let read = || {
                StoredDescription::read(Arc::clone(&device))
                    .unwrap()
                    .unwrap()
            };
            assert_eq!(*read().description(), description(events));
            for copy in 0..2 {
                for byte in [0, 15, 20, 25, 64, 200] {
                    let place = COPIES.place(copy, device.bytes()) + byte;
                    let mut before = [0];
                    device.read(place, &mut before).unwrap();
                    device.write(place, &[before[0] ^ 1]).unwrap();
                    assert_eq!(*read().description(), description(events), "{copy} {byte}");
                    device.write(place, &before).unwrap();
                }
            }
        }
    }

    #[test]
    fn interrupted_replacements_bring_no_earlier_description_back() {
        let mut random = SplitMix(6);
        let (devices, power) = simulated(1, 8 << 20);
        let device = || Arc::clone(&devices[0]) as Arc<dyn Device>;
        StoredDescription::begin(device(), description(1)).unwrap();
        let (mut known, mut interrupted) = (1, 0);
        for _ in 0..200 {
            let mut kept = StoredDescription::read(device()).unwrap().unwrap();
            let found = kept.description().events;
            assert!(found >= known, "event {found} behind event {known}");
            known = found;
            // A replacement takes two writes and two flushes.
            power.0.store(1 + random.below(5) as i64, SeqCst);
            interrupted += u32::from(kept.replace(description(known + 1)).is_err());
            devices[0].lose_power(&mut random, 50);
            power.0.store(i64::MAX, SeqCst);
        }
        assert!(interrupted > 50 && known > 50, "{interrupted} {known}");
    }

    #[test]
    fn what_is_no_description_is_refused_with_the_file_named() {
        let device = device();
        StoredDescription::begin(Arc::clone(&device), description(1)).unwrap();
        let said = |byte: u64, value: u8| {
            let places = [0, 1].map(|copy| COPIES.place(copy, device.bytes()) + byte);
            let mut before = [0];
            device.read(places[0], &mut before).unwrap();
            places
                .iter()
                .for_each(|&place| device.write(place, &[value]).unwrap());
            let error = StoredDescription::read(Arc::clone(&device))
                .err()
                .unwrap()
                .to_string();
            places
                .iter()
                .for_each(|&place| device.write(place, &before).unwrap());
            assert!(error.contains("memory"), "{error}");
            error
        };
        assert!(said(8, 9).contains("format 9"));
        assert!(said(70, 0).contains("no copy of the description is intact"));
        assert!(StoredDescription::read(device).unwrap().is_some());
    }
}
