//! Migration of folders of format 2, during an opening for writing.
//!
//! Such a folder has a text file `fullstroke.toml`, the marks in `regions`, one record in
//! `journal`, bits of losses in `written-0`, and labels of another form behind the drives' bytes.
//! The drives' bytes stay in their places. Only a closed store is migrated, because then there are
//! neither marks nor a record.

use crate::Device;
use crate::bytes::StoreError;
use crate::bytes::description::{
    Description, LossRecord, MemberRecord, RebuildRecord, StoredDescription, damaged,
};
use crate::bytes::error::NAME;
use crate::bytes::loss::LostData;
use crate::bytes::records::StorePlaces;
use crate::label::Label;
use crate::sparse::SparseFile;
use crate::uuid::Uuid;
use fullstroke_contract::Extent;
use fullstroke_units::Sectors;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

/// Name of the text file of format 2.
const OLD_NAME: &str = "fullstroke.toml";
const OLD_FORMAT: i64 = 2;
/// Line in front of the text under the check sum.
const CHECK_SUM: &str = "# crc32 of what follows: ";
/// Size of a block of bits with its check sum.
const BLOCK_BYTES: usize = 512;
const BITS_BYTES: usize = 500;

#[derive(Debug, Deserialize)]
struct OldSuperblock {
    uuid: String,
    events: u64,
    digest: String,
    layout: String,
    complete: bool,
    clean: bool,
    #[serde(default)]
    low_gear: Vec<String>,
    #[serde(default)]
    rebuild: Option<RebuildRecord>,
    #[serde(rename = "member", default)]
    members: Vec<MemberRecord>,
    #[serde(rename = "loss", default)]
    losses: Vec<LossRecord>,
}

/// True if the folder has a store of format 2, also one whose migration did not end.
pub(crate) fn is_in(folder: &Path) -> bool {
    folder.join(OLD_NAME).exists()
}

/// Returns an error if the folder has a store of format 2, for a read-only opening.
pub(crate) fn refuse(folder: &Path) -> Result<(), StoreError> {
    if !is_in(folder) {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "`{folder}` has format 2, and --read-only forbids the migration; `fullstroke serve STACK --store {folder}` without --read-only migrates the folder, if its server was stopped and not killed",
        folder = folder.display()
    )))
}

/// Migrates a folder of format 2 to the present format. The old files are removed after the new one
/// is durable.
///
/// # Errors
/// The folder is another stack's, is damaged, or was not closed; or the host's.
pub(crate) fn migrate(
    folder: &Path,
    digest: &str,
    members: &[MemberRecord],
    places: StorePlaces,
    capacity: Sectors,
) -> Result<(), StoreError> {
    if !is_in(folder) {
        return Ok(());
    }
    let old = read(folder)?;
    let store: Uuid = old
        .uuid
        .parse()
        .map_err(|error: String| damaged(folder.join(OLD_NAME), &format!("`uuid`: {error}")))?;
    let mut description =
        Description::new(store, &old.digest, old.layout, places.region(), old.members);
    description.check(folder, digest, members)?;
    if !old.clean || !old.complete {
        return Err(StoreError::Refused(format!(
            "`{}` has format 2, and its last server ended before all redundancy was compared; serve the folder with the \
             version of fullstroke that wrote the folder, stop that server, and this version then migrates the folder",
            folder.display()
        )));
    }
    description.events = old.events;
    description.complete = true;
    description.low_gear = old.low_gear;
    description.rebuild = old.rebuild;
    for (index, loss) in old.losses.iter().enumerate() {
        convert_loss(folder, index, loss, (capacity, store))?;
    }
    let losses = old.losses.len();
    description.losses = old.losses;
    let path = folder.join(NAME);
    let made = SparseFile::open(&path, places.bytes(), 0);
    let made: Arc<dyn Device> =
        Arc::new(made.map_err(|error| StoreError::host("make", &path, error))?);
    StoredDescription::begin(made, description)?;
    let failed = |error| StoreError::host("migrate", folder, error);
    sync(folder).map_err(failed)?;
    remove(folder, losses).map_err(failed)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes the text file last: while it exists, the whole migration can be repeated.
fn remove(folder: &Path, losses: usize) -> io::Result<()> {
    let written = (0..losses).map(|index| format!("written-{index}"));
    let all = ["regions".to_owned(), "journal".to_owned()];
    for name in all.into_iter().chain(written) {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_file(folder.join(OLD_NAME))?;
    sync(folder)
}

fn read(folder: &Path) -> Result<OldSuperblock, StoreError> {
    let path = folder.join(OLD_NAME);
    let text = fs::read_to_string(&path).map_err(|error| StoreError::host("read", &path, error))?;
    // Another version may have other keys, so the version is read first.
    let table = toml::from_str::<toml::Table>(&text).ok();
    let format = table.and_then(|table| table.get("format")?.as_integer());
    if format != Some(OLD_FORMAT) {
        let format = format.map_or("none".to_owned(), |format| format.to_string());
        let detail = format!(
            "found the format {format}; expected {OLD_FORMAT}, which this version of fullstroke migrates; serve \
             the store with the version that wrote the store"
        );
        return Err(damaged(path, &detail));
    }
    let after = text
        .split_once(CHECK_SUM)
        .and_then(|(_, after)| after.split_once('\n'));
    let whole = after.is_some_and(|(stored, body)| {
        stored == format!("{:08x}", crc32fast::hash(body.as_bytes()))
    });
    if !whole {
        return Err(damaged(
            path,
            "its check sum does not fit: the file was changed or damaged; restore the file as the server left it",
        ));
    }
    toml::from_str(&text).map_err(|error| damaged(path, error.to_string().trim_end()))
}

/// Reads the label of format 2 behind the `bytes` of a drive, if there is a whole one.
pub(crate) fn label(device: &dyn Device, bytes: u64) -> Option<Label> {
    let mut block = [0; BLOCK_BYTES];
    device.read(bytes, &mut block).ok()?;
    let store = Uuid::from_bytes(block[8..24].try_into().ok()?);
    let sum = check_sum(&store, &block[..BLOCK_BYTES - 4]);
    if block[..8] != *b"fsmemb02" || block[BLOCK_BYTES - 4..] != sum {
        return None;
    }
    let member = block.get(33..33 + block[32] as usize)?;
    let place = String::from_utf8(member.to_vec()).ok()?;
    let events = u64::from_le_bytes(block[24..32].try_into().ok()?);
    Some(Label::of_file(store, place, events))
}

fn check_sum(store: &Uuid, bytes: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(store.bytes());
    hasher.update(bytes);
    hasher.finalize().to_le_bytes()
}

/// Converts the bits of the sectors with writes since a loss.
fn convert_loss(
    folder: &Path,
    index: usize,
    loss: &LossRecord,
    (capacity, store): (Sectors, Uuid),
) -> Result<(), StoreError> {
    let path = folder.join(format!("written-{index}"));
    let failed = |error| StoreError::host("read", &path, error);
    let mut converted = LostData::open(index, &loss.members, capacity, Some((folder, store)))?;
    // A missing file means no write since the loss.
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(failed)?,
    };
    let mut block = [0; BLOCK_BYTES];
    for number in 0..capacity.0.div_ceil(BITS_BYTES as u64 * 8) {
        file.read_exact(&mut block).map_err(failed)?;
        if block == [0; BLOCK_BYTES] {
            continue;
        }
        let sum = check_sum(&store, &block[..BITS_BYTES + 8]);
        let expected = (number as u32).to_le_bytes();
        if block[BITS_BYTES + 8..] != sum || block[BITS_BYTES + 4..][..4] != expected {
            let detail = format!(
                "block {number} was changed after its last write: its check sum does not fit"
            );
            return Err(damaged(path, &detail));
        }
        for bit in
            (0..BITS_BYTES as u64 * 8).filter(|bit| block[*bit as usize / 8] >> (bit % 8) & 1 == 1)
        {
            let sector = Extent::new(number * BITS_BYTES as u64 * 8 + bit, 1);
            if sector.within(capacity) {
                converted.note_written(sector, 1)?;
            }
        }
    }
    match converted.changed_since(0) {
        Some(changed) => changed.run(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::samples::{VolumeSample, folder, pattern, sample};
    use crate::bytes::{Opening, Store, StoreLocation};
    use fullstroke_contract::MemberState;
    use fullstroke_units::Lbn;
    use std::os::unix::fs::FileExt as _;

    const STORE: Uuid = Uuid::from_bytes([0xAB; 16]);

    fn open(sample: VolumeSample, folder: &Path, read_only: bool) -> Result<Store, StoreError> {
        let location = StoreLocation::Folder(folder.to_owned());
        let opening = Opening {
            read_only,
            ..Opening::default()
        };
        Store::open((sample.shape)(), &location, "0123", opening).map(|(store, _)| store)
    }

    /// Writes a text file of format 2.
    fn describe(folder: &Path, body: &str) {
        let sum = crc32fast::hash(body.as_bytes());
        let text = format!("# The bytes of a served volume.\n{CHECK_SUM}{sum:08x}\n{body}");
        fs::write(folder.join(OLD_NAME), text).unwrap();
    }

    fn old_label(member: &str, events: u64) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        block[..8].copy_from_slice(b"fsmemb02");
        block[8..24].copy_from_slice(STORE.bytes());
        block[24..32].copy_from_slice(&events.to_le_bytes());
        block[32] = member.len() as u8;
        block[33..][..member.len()].copy_from_slice(member.as_bytes());
        let sum = check_sum(&STORE, &block[..BLOCK_BYTES - 4]);
        block[BLOCK_BYTES - 4..].copy_from_slice(&sum);
        block
    }

    /// Makes a folder of format 2: a RAID 1 of three drives of 200 sectors; the last drive has
    /// failed. Data was given up once, and sectors 3 and 4 were written since. Returns the folder
    /// and the drives' bytes.
    fn made(clean: bool) -> (tempfile::TempDir, Vec<u8>) {
        let folder = folder();
        let bytes = pattern(0, 200, 1);
        let member = |index: usize, state: &str| {
            format!(
                "[[member]]\npath = \"{index}\"\nfile = \"member-{index}.img\"\nsectors = 200\nstate = \"{state}\"\n"
            )
        };
        let states = ["alive", "alive", "failed"];
        let members: String = states
            .iter()
            .enumerate()
            .map(|(index, state)| member(index, state))
            .collect();
        describe(
            folder.path(),
            &format!(
                "format = 2\nuuid = \"{}\"\nevents = 7\ndigest = \"0123\"\nlayout = \"raid1 of 3\"\n\
                 complete = true\nclean = {clean}\nregion_sectors = 32768\n{members}\
                 [[loss]]\nmembers = [{{ state = \"failed\" }}, {{ state = \"failed\" }}, {{ state = \"failed\" }}]\n",
                STORE.to_string().replace('-', "")
            ),
        );
        for index in 0..3 {
            let file = File::create(folder.path().join(format!("member-{index}.img"))).unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            let label = old_label(&index.to_string(), if index == 2 { 5 } else { 7 });
            file.write_all_at(&label, 200 * 512).unwrap();
        }
        fs::write(folder.path().join("regions"), [0; 512]).unwrap();
        let mut block = [0; BLOCK_BYTES];
        block[0] = 0b0001_1000;
        block[BITS_BYTES..][..4].copy_from_slice(b"fsbt");
        let sum = check_sum(&STORE, &block[..BITS_BYTES + 8]);
        block[BITS_BYTES + 8..].copy_from_slice(&sum);
        fs::write(folder.path().join("written-0"), block).unwrap();
        (folder, bytes)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_of_the_form_before_keeps_its_bytes_its_members_and_what_was_lost() {
        let (folder, bytes) = made(true);
        let refused = open(sample("raid1"), folder.path(), true).err().unwrap();
        assert!(
            refused.to_string().contains("fullstroke serve"),
            "{refused}"
        );
        for _ in 0..2 {
            let mut store = open(sample("raid1"), folder.path(), false).unwrap();
            let states: Vec<MemberState> =
                store.status().iter().map(|member| member.state).collect();
            assert_eq!(
                states,
                [MemberState::Alive, MemberState::Alive, MemberState::Failed]
            );
            let mut read = vec![0; 2 * 512];
            store.read(Lbn(3), &mut read).unwrap();
            assert!(read == bytes[3 * 512..5 * 512]);
            let lost = store.read(Lbn(2), &mut read);
            assert!(matches!(lost, Err(StoreError::Lost { .. })));
            store.close().unwrap();
            let all = [
                "fullstroke.store",
                "lock",
                "member-0.img",
                "member-1.img",
                "member-2.img",
            ];
            assert_eq!(names(folder.path())[..5], all);
            assert_eq!(names(folder.path())[5..], ["written-since-0"]);
        }
    }

    #[test]
    fn a_migration_that_was_cut_short_is_done_again() {
        let (folder, _) = made(true);
        let (other, _) = made(true);
        open(sample("raid1"), other.path(), false)
            .unwrap()
            .close()
            .unwrap();
        let new = fs::read(other.path().join(NAME)).unwrap();
        // The file was made and not written; written in part; written, and the old file still
        // there.
        for length in [0, 4096 + 30, new.len()] {
            let mut cut = vec![0; new.len()];
            cut[..length].copy_from_slice(&new[..length]);
            fs::write(folder.path().join(NAME), cut).unwrap();
            let (again, _) = made(true);
            fs::copy(folder.path().join(NAME), again.path().join(NAME)).unwrap();
            let store = open(sample("raid1"), again.path(), false).unwrap();
            store.close().unwrap();
            assert!(!is_in(again.path()));
        }
    }

    #[test]
    fn what_was_not_closed_or_is_damaged_is_refused_and_left_as_it_is() {
        let (folder, _) = made(false);
        let before = names(folder.path());
        let refused = |part: &str| {
            let error = open(sample("raid1"), folder.path(), false).err().unwrap();
            let said = error.to_string();
            assert!(said.contains(part), "{said}");
        };
        refused("with the version of fullstroke that wrote the folder");
        let path = folder.path().join(OLD_NAME);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("events = 7", "events = 8")).unwrap();
        refused("its check sum does not fit");
        fs::write(&path, text.replace("format = 2", "format = 1")).unwrap();
        refused("found the format 1; expected 2");
        let mut now = names(folder.path());
        now.retain(|name| name != "lock");
        assert_eq!(now, before);
    }
}
