//! What a store's folder says about itself.

use crate::bytes::StoreError;
use crate::bytes::lock::write_whole;
use crate::bytes::sealed::{Label, StoreId};
use fullstroke_contract::MemberState;
use fullstroke_units::{Bytes, Sectors};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The file's name in a store's folder.
pub(crate) const NAME: &str = "fullstroke.toml";

/// The version of everything in the folder.
///
/// - 1: without check sums and labels. It is refused.
/// - 2: this one.
const FORMAT: u32 = 2;

/// The line before what is summed up.
const CHECK_SUM: &str = "# crc32 of what follows: ";

const HEADER: &str = "\
# The bytes of a served volume. This file is kept by the server; do not edit it.
";

/// What a store's folder says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Superblock {
    format: u32,
    /// Names the store.
    uuid: String,
    /// Counts openings, failures and replacements.
    pub(crate) events: u64,
    /// Names the volume and its drives.
    pub(crate) digest: String,
    /// For people: `raid0 of 2 x raid5 of 4`.
    pub(crate) layout: String,
    /// Whether all files were made.
    pub(crate) complete: bool,
    /// Whether the store was closed, rather than killed.
    pub(crate) clean: bool,
    pub(crate) region_sectors: u64,
    /// Volumes that were left in the low gear: their indices from the top, as members have them;
    /// empty for the outermost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) low_gear: Vec<String>,
    /// How fast members are filled, if somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rebuild: Option<RebuildRecord>,
    /// Every member of every volume, from the top, each volume before its
    /// members.
    #[serde(rename = "member", default)]
    pub(crate) members: Vec<MemberRecord>,
    /// Each time that data was given up, the states of the outermost volume's
    /// members then.
    #[serde(rename = "loss", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) losses: Vec<LossRecord>,
}

/// How fast members are filled, in bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RebuildRecord {
    /// The most that was said with the latest restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bytes>,
    /// See [`RebuildSpeed::least`](fullstroke_contract::RebuildSpeed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_limit_min: Option<Bytes>,
    /// See [`RebuildSpeed::most`](fullstroke_contract::RebuildSpeed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_limit_max: Option<Bytes>,
}

/// Data that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LossRecord {
    pub(crate) members: Vec<StateRecord>,
}

/// A member of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberRecord {
    /// Its indices from the top: `0.2`; empty for a drive without a volume.
    pub(crate) path: String,
    /// The file, if it is a drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    pub(crate) sectors: u64,
    #[serde(flatten)]
    pub(crate) state: StateRecord,
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

impl Superblock {
    pub(crate) fn new(
        id: StoreId,
        digest: &str,
        layout: String,
        region: Sectors,
        members: Vec<MemberRecord>,
    ) -> Superblock {
        Superblock {
            format: FORMAT,
            uuid: id.to_string(),
            events: 0,
            digest: digest.to_owned(),
            layout,
            complete: false,
            clean: true,
            region_sectors: region.0,
            low_gear: Vec::new(),
            rebuild: None,
            members,
            losses: Vec::new(),
        }
    }

    /// The folder's, if it has one.
    pub(crate) fn read(folder: &Path) -> Result<Option<Superblock>, StoreError> {
        let path = folder.join(NAME);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::host("read", &path, error)),
        };
        check_format(&path, &text)?;
        check_sum(&path, &text)?;
        match toml::from_str::<Superblock>(&text) {
            Ok(superblock) if superblock.region_sectors > 0 => {
                superblock
                    .id()
                    .map_err(|error| damaged(path, &format!("`uuid`: {error}")))?;
                Ok(Some(superblock))
            }
            Ok(_) => Err(damaged(
                path,
                "`region_sectors` is 0; expected a positive number",
            )),
            Err(error) => Err(damaged(path, error.to_string().trim_end())),
        }
    }

    /// The store that this is of.
    pub(crate) fn id(&self) -> Result<StoreId, String> {
        self.uuid.parse()
    }

    /// The label that the member's file should have.
    pub(crate) fn label(&self, member: &MemberRecord) -> Option<Label> {
        let member = member.path.clone();
        self.id().ok().map(|id| Label {
            id,
            member,
            events: self.events,
        })
    }

    /// An error unless the folder was made for the stack with this digest and
    /// these members.
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

    /// Puts the file in place of the one before, durably.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), StoreError> {
        let path = folder.join(NAME);
        let text =
            toml::to_string(self).map_err(|error| damaged(path.clone(), &error.to_string()))?;
        let sum = crc32fast::hash(text.as_bytes());
        write_whole(&path, &format!("{HEADER}{CHECK_SUM}{sum:08x}\n{text}"))
            .map_err(|error| StoreError::host("write", &path, error))
    }
}

fn check_sum(path: &Path, text: &str) -> Result<(), StoreError> {
    let after = text
        .split_once(CHECK_SUM)
        .and_then(|(_, after)| after.split_once('\n'));
    let Some((stored, body)) = after else {
        return Err(damaged(
            path.to_owned(),
            "found no check sum; expected one in its second line",
        ));
    };
    let found = format!("{:08x}", crc32fast::hash(body.as_bytes()));
    if stored == found {
        return Ok(());
    }
    let detail = format!(
        "its check sum is {stored}, that of its content {found}: the file was changed or damaged; put it back \
         as the server left it"
    );
    Err(damaged(path.to_owned(), &detail))
}

/// The version first: another one may have other keys.
fn check_format(path: &Path, text: &str) -> Result<(), StoreError> {
    let format = toml::from_str::<toml::Table>(text)
        .ok()
        .and_then(|table| table.get("format")?.as_integer());
    match format {
        Some(format) if format == i64::from(FORMAT) => Ok(()),
        Some(format) => {
            let detail = format!(
                "the store has format {format}, and this version of fullstroke reads {FORMAT}; \
                 serve it with the version that wrote it"
            );
            Err(damaged(path.to_owned(), &detail))
        }
        None => Err(damaged(
            path.to_owned(),
            "no `format = ` with a number; expected a store's description",
        )),
    }
}

fn damaged(file: PathBuf, detail: &str) -> StoreError {
    StoreError::Damaged {
        file,
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock() -> Superblock {
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
        Superblock::new(
            StoreId::new().unwrap(),
            "abc",
            "raid1 of 2".into(),
            Sectors(32_768),
            members,
        )
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Superblock::read(folder.path()).unwrap(), None);
        let superblock = superblock();
        superblock.write(folder.path()).unwrap();
        assert_eq!(Superblock::read(folder.path()).unwrap(), Some(superblock));
    }

    #[test]
    fn what_is_no_superblock_is_refused_with_the_file_named() {
        let folder = tempfile::tempdir().unwrap();
        for (text, said) in [
            ("", "no `format = `"),
            ("format = 1\nnew = 1", "this version of fullstroke reads 2"),
            ("format = 2\n", "no check sum"),
            (
                "# crc32 of what follows: 00000000\nformat = 2\n",
                "its check sum is 00000000",
            ),
            (
                "# crc32 of what follows: 54fa8ae6\nformat = 2\n",
                "check sum",
            ),
            ("\u{0}", "no `format = `"),
        ] {
            std::fs::write(folder.path().join(NAME), text).unwrap();
            let error = Superblock::read(folder.path()).unwrap_err().to_string();
            assert!(
                error.contains(said) && error.contains(NAME),
                "{text:?}: {error}"
            );
        }
    }
}
