//! The volume of a stack file, with all volumes and drives below.

use crate::document::Document;
use crate::drive_tracks::{DriveTracks, GivenTracks};
use crate::folder::Folder;
use crate::late::LatePolicy;
use crate::layouts::LAYOUTS;
use crate::like;
use crate::rebuild::{self, RebuildKeys};
use crate::slow;
use crate::spec::VolumeSpec;
use crate::{StackError, drives, zoned};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys, check_known};
use fullstroke_drive::DriveModel;
use fullstroke_volume::{Coordination, JournalDevice, Like, MemberZone, find_layout};
use serde_json::{Map, Value, json};

/// Drive keys that a volume passes down to the volumes inside.
#[derive(Clone)]
pub(crate) struct Inherited {
    /// Implementation of arrays without the key `like`.
    like: Like,
    drive: Option<String>,
    settings: Map<String, Value>,
    write_cache: Option<bool>,
    tracks: Option<GivenTracks>,
}

impl Inherited {
    /// Returns the keys of the uppermost volume's surroundings: no drive keys.
    pub(crate) fn of(like: Like) -> Inherited {
        Inherited {
            like,
            drive: None,
            settings: Map::new(),
            write_cache: None,
            tracks: None,
        }
    }

    /// Returns these keys, overridden by the keys of a volume itself. The keys are taken out of
    /// `own`.
    fn below(&self, own: &mut Keys, site: VolumeSite<'_>) -> Result<Inherited, StackError> {
        let mut inherited = self.clone();
        let refused = |key, found: Value, expected| {
            site.fail(key, format!("found {found}; expected {expected}"))
        };
        match own.remove("drive") {
            None => {}
            Some(Value::String(name)) => inherited.drive = Some(name),
            Some(other) => return Err(refused("drive", other, "the name of a drive")),
        }
        match own.remove("drive_settings") {
            None => {}
            Some(Value::Object(settings)) => inherited.settings.extend(settings),
            Some(other) => return Err(refused("drive_settings", other, "a table of drive keys")),
        }
        match own.remove("write_cache") {
            None => {}
            Some(Value::Bool(wanted)) => inherited.write_cache = Some(wanted),
            Some(other) => return Err(refused("write_cache", other, "true or false")),
        }
        if let Some(value) = own.remove("tracks") {
            let key = format!("{}.tracks", site.path);
            inherited.tracks = Some(GivenTracks::read(value, key, site.document, site.folder)?);
        }
        Ok(inherited)
    }

    /// Returns one drive as a member, with its tracks.
    fn drive(&self, site: VolumeSite<'_>) -> Result<VolumeSpec, StackError> {
        let Some(name) = &self.drive else {
            let message = "the volume has no drives; give drive = \"...\", or [[volume.members]]";
            return Err(site.fail("drive", message));
        };
        let model = self
            .load(name, site.folder)
            .map_err(|error| named_here(error, &site.fail("drive", "")))?;
        let tracks = match &self.tracks {
            Some(given) => given.of(&model, site.document)?,
            None => DriveTracks::default(),
        };
        Ok(VolumeSpec::Drive(model, tracks))
    }

    /// Loads the drive of this name with the settings of its volume.
    fn load(&self, name: &str, folder: &Folder) -> Result<DriveModel, StackError> {
        let described = drives::load_with(name, folder, &self.settings)?;
        let has_cache = described
            .config()
            .buffer
            .as_ref()
            .map(|buffer| buffer.write_back);
        // A drive without a buffer has no write cache, so `false` is true already.
        match (self.write_cache, has_cache) {
            (None | Some(false), None) | (None, _) => Ok(described),
            (Some(true), None) => Err(StackError::whole(
                name,
                "write_cache: found true; the drive has no buffer to take writes into, expected one with [buffer]",
            )),
            (Some(wanted), Some(has)) if wanted == has => Ok(described),
            (Some(wanted), Some(_)) => {
                let mut settings = self.settings.clone();
                let cache = json!({ "write_back": wanted });
                match settings.get_mut("buffer").and_then(Value::as_object_mut) {
                    Some(buffer) => _ = buffer.insert("write_back".into(), json!(wanted)),
                    None => _ = settings.insert("buffer".into(), cache),
                }
                drives::load_with(name, folder, &settings)
            }
        }
    }
}

/// The angles of a stack's drives relative to each other, `spindles` of the uppermost volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spindles {
    /// All platters have the same angle at time 0. Drives of equal speed stay at equal angles.
    Together,
    /// Each drive has a random angle, as today. Few arrays have had synchronised spindles since the
    /// nineties.
    Apart,
}

impl Spindles {
    /// Takes the key out of the uppermost volume's keys.
    pub(crate) fn take(keys: &mut Keys) -> Result<Spindles, ConfigError> {
        match keys.remove("spindles") {
            None => Ok(Spindles::Together),
            Some(Value::String(name)) if name == "together" => Ok(Spindles::Together),
            Some(Value::String(name)) if name == "apart" => Ok(Spindles::Apart),
            Some(other) => {
                let message = format!("found {other}; expected \"together\" or \"apart\"");
                Err(ConfigError::new("volume.spindles", message))
            }
        }
    }
}

/// Keys of a volume that do not belong to its layout.
const VOLUME_KEYS: &[&str] = &[
    "layout",
    "drive",
    "drives",
    "drive_settings",
    "write_cache",
    "tracks",
    "coordinate",
    "bitmap",
    "bitmap_chunk",
    "consistency_policy",
    "safe_mode_delay",
    "journal",
    "members",
    "count",
];

/// The place of a volume in its file.
#[derive(Clone, Copy)]
struct VolumeSite<'a> {
    document: &'a Document,
    folder: &'a Folder,
    /// Dotted path of the volume's table.
    path: &'a str,
}

impl VolumeSite<'_> {
    /// Returns an error at a key of the volume, with file and line.
    fn error(&self, error: ConfigError) -> StackError {
        self.document.error(error.below(self.path))
    }

    fn fail(&self, key: &str, message: impl Into<String>) -> StackError {
        self.error(ConfigError::new(key, message))
    }
}

/// Names the layouts that have an unknown key. A suggestion by spelling would mislead there:
/// `chunk` of a pool is no misspelt `count`, but a key of other layouts.
fn of_other_layouts(error: ConfigError, layout: &str) -> ConfigError {
    let others: Vec<&str> = LAYOUTS
        .iter()
        .filter(|entry| registry::known_keys(&(entry.schema)()).contains(&error.key))
        .map(|entry| entry.name)
        .collect();
    if others.is_empty() {
        return error;
    }
    let message = format!(
        "the layout {layout} has no such key; layouts with the key: {}; docs/reference/volume.md lists the keys of {layout}",
        others.join(", ")
    );
    ConfigError::new(error.key, message)
}

/// Reads a volume and the members below.
pub(crate) fn read_volume(
    document: &Document,
    folder: &Folder,
    keys: &Keys,
    path: &str,
    inherited: &Inherited,
) -> Result<VolumeSpec, StackError> {
    let site = VolumeSite {
        document,
        folder,
        path,
    };
    let mut own = keys.clone();
    let layout = take_layout(&mut own).map_err(|error| site.error(error))?;
    let entry = find_layout(LAYOUTS, &layout).map_err(|error| site.error(error))?;
    let known: Vec<String> = registry::known_keys(&(entry.schema)())
        .into_iter()
        .chain(
            VOLUME_KEYS
                .iter()
                .chain(&rebuild::KEYS)
                .chain(&slow::KEYS)
                .map(|&key| key.to_owned()),
        )
        .collect();
    check_known(&own, &known).map_err(|error| site.error(of_other_layouts(error, entry.name)))?;

    // Completed first, because the defaults of md have a key of the rebuild, `speed_limit_max`.
    like::complete(entry.name, &mut own, inherited.like);
    let rebuild = RebuildKeys::take(&mut own).map_err(|error| site.error(error))?;
    let inherited = inherited.below(&mut own, site)?;
    let coordination = own.remove("coordinate").map(coordination).transpose();
    let coordination = coordination.map_err(|error| site.error(error))?;
    let journal = take_journal(&mut own, site)?;
    let device = journal.as_deref().map(journal_device);
    let records =
        like::take_records(entry.name, &mut own, device).map_err(|error| site.error(error))?;
    let slow = slow::take_slow(&mut own).map_err(|error| site.error(error))?;
    let late = LatePolicy::take(&mut own).map_err(|error| site.error(error))?;
    let mut members = read_below(&mut own, keys, site, &inherited)?;
    let is_xor = entry.name == fullstroke_smart::LAYOUT.name;
    if let Some((path, _)) = slow.first().filter(|_| is_xor) {
        return Err(site.fail(path, "the disks of an xor array work together in one node, and none can be slow; remove this table"));
    }
    if let Some((policy, most)) = records.and_then(|records| records.excess(members.len())) {
        let found = members.len();
        let message =
            format!("found {policy:?} and {found} members; md has this policy for at most {most}");
        return Err(site.fail("consistency_policy", message));
    }
    slow::make_slow(&mut members, slow).map_err(|error| site.error(error))?;
    // Only the node against slow members reads around a sector that a drive cannot read.
    let late = late.or_else(|| lose_reads(&members).then(LatePolicy::of_unreadable));
    check_late(entry.name, late.is_some(), journal.is_some()).map_err(|error| site.error(error))?;
    if coordination.is_some() && (members.len() == 1 || entry.name == fullstroke_smart::LAYOUT.name)
    {
        let message = "the members have no queues of their own; remove this key";
        return Err(site.fail("coordinate", message));
    }
    if known.iter().any(|key| key == MEMBER_ZONES) && !own.contains_key(MEMBER_ZONES) {
        own.extend(member_zones(&members).map(|zones| (MEMBER_ZONES.to_owned(), zones)));
    }
    zoned::complete(entry.name, &mut own, &members).map_err(|error| site.error(error))?;
    Ok(VolumeSpec::Volume {
        layout: entry,
        keys: own,
        members,
        rebuild,
        coordination,
        records,
        journal,
        late,
        path: path.to_owned(),
    })
}

/// Checks that a volume of this layout can have its policy against slow members.
fn check_late(layout: &str, has_late: bool, has_journal: bool) -> Result<(), ConfigError> {
    let (key, message) = match has_late {
        true if layout == fullstroke_smart::LAYOUT.name => (
            "late",
            "an xor array has no policy against slow members; remove this table",
        ),
        true if has_journal => (
            "journal",
            "an array with a journal device waits for slow members; remove this key, or [late] and erc",
        ),
        _ => return Ok(()),
    };
    Err(ConfigError::new(key, message))
}

/// Takes the model of the journal device out of the keys of a volume.
fn take_journal(
    own: &mut Keys,
    site: VolumeSite<'_>,
) -> Result<Option<Box<DriveModel>>, StackError> {
    let expected = "\"none\", or the journal device: a drive of the library or a drive file, such as \"samsung-870-evo-1tb\"";
    match own.remove("journal") {
        None => Ok(None),
        // For `--vary`, as the bitmap's "none".
        Some(Value::String(name)) if name == "none" => Ok(None),
        Some(Value::String(name)) => {
            let model = drives::load_with(&name, site.folder, &Keys::new())?;
            Ok(Some(Box::new(model)))
        }
        Some(other) => Err(site.fail("journal", format!("found {other}; expected {expected}"))),
    }
}

fn journal_device(model: &DriveModel) -> JournalDevice {
    JournalDevice {
        sectors: model.config().capacity_sectors,
        volatile: model.has_volatile_cache(),
    }
}

/// True if a member may answer reads as lost.
fn lose_reads(members: &[VolumeSpec]) -> bool {
    let loses = |member: &VolumeSpec| member.as_drive().is_some_and(DriveModel::loses_reads);
    members.iter().any(loses)
}

/// Returns the name of the layout; "jbod" for a volume without the key.
fn take_layout(own: &mut Keys) -> Result<String, ConfigError> {
    match own.remove("layout") {
        None => Ok("jbod".to_owned()),
        Some(Value::String(name)) => Ok(name),
        Some(other) => {
            let message = format!("found {other}; expected the name of a layout");
            Err(ConfigError::new("layout", message))
        }
    }
}

/// Reads the members of a volume: `drives` drives of one kind, or the described members.
fn read_below(
    own: &mut Keys,
    keys: &Keys,
    site: VolumeSite<'_>,
    inherited: &Inherited,
) -> Result<Vec<VolumeSpec>, StackError> {
    let drives = count(own.remove("drives"), "drives", 1).map_err(|error| site.error(error))?;
    // The volume above counts the copies of this one.
    own.remove("count");
    match own.remove("members") {
        None => Ok(vec![inherited.drive(site)?; drives]),
        Some(Value::Array(_)) if keys.contains_key("drives") => {
            Err(site.fail("drives", "give either drives or members, not both"))
        }
        Some(Value::Array(items)) => {
            read_members(site.document, site.folder, &items, site.path, inherited)
        }
        Some(other) => Err(site.fail(
            "members",
            format!("found {other}; expected [[volume.members]]"),
        )),
    }
}

fn coordination(value: Value) -> Result<Coordination, ConfigError> {
    let message = format!("found {value}; expected \"longest\" or \"shortest\"");
    serde_json::from_value(value).map_err(|_| ConfigError::new("coordinate", message))
}

/// The key of layouts that use the zones of their members.
const MEMBER_ZONES: &str = "member_zones";

/// Returns the zones of all members in the form of the key [`MEMBER_ZONES`]; `None` if a member is
/// not a drive.
fn member_zones(members: &[VolumeSpec]) -> Option<Value> {
    let of_drive = |model: &DriveModel| -> Vec<MemberZone> {
        let zones = model.tracks().zone_rates().into_iter();
        zones
            .map(|zone| MemberZone {
                sectors: zone.sectors,
                bytes_per_s: zone.bytes_per_s,
            })
            .collect()
    };
    let all = members.iter().map(|member| member.as_drive().map(of_drive));
    all.collect::<Option<Vec<_>>>().map(|all| json!(all))
}

/// Reads members that are described one by one: each a drive or a volume, `count` times.
fn read_members(
    document: &Document,
    folder: &Folder,
    items: &[Value],
    path: &str,
    inherited: &Inherited,
) -> Result<Vec<VolumeSpec>, StackError> {
    let mut members = Vec::new();
    let mut drives = 0;
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}.members[{index}]");
        let fail = |key: &str, message: String| {
            document.error(ConfigError::new(key, message).below(&path))
        };
        let Value::Object(keys) = item else {
            return Err(fail("", format!("found {item}; expected a table")));
        };
        // Copied and not taken: `read_volume` takes the key out of its own copy.
        let times = count(keys.get("count").cloned(), "count", 1)
            .map_err(|error| document.error(error.below(&path)))?;
        let described = read_volume(document, folder, keys, &path, inherited)?;
        // Drives in a table without a layout are members of the upper volume.
        let each = match &described {
            VolumeSpec::Volume { members, .. } if !keys.contains_key("layout") => members.len(),
            _ => 1,
        };
        let own = described.drives().len();
        drives += times * own;
        // Before the copies are made, because a product of nested counts may not fit into memory.
        check_product(
            times,
            each,
            members.len() + times * each,
            MEMBERS_MAX as usize,
            "members of one layer",
        )
        .and_then(|()| check_product(times, own, drives, DRIVES_MAX, "drives below one layer"))
        .map_err(|error| document.error(error.below(&path)))?;
        for _ in 0..times {
            match &described {
                VolumeSpec::Volume {
                    members: drives, ..
                } if !keys.contains_key("layout") => {
                    members.extend(drives.iter().cloned());
                }
                _ => members.push(described.clone()),
            }
        }
    }
    Ok(members)
}

/// Largest number of members of one layer, and of each `count` and `drives`.
const MEMBERS_MAX: u64 = 1024;
/// Largest number of drives below one layer, through all levels. A drive takes some 100 KB, and its
/// machine more.
const DRIVES_MAX: usize = 16 * 1024;

/// Returns an error if `times` repetitions exceed the limit of the layer. The check comes before
/// any repetition is built, because nested counts multiply.
fn check_product(
    times: usize,
    each: usize,
    together: usize,
    limit: usize,
    what: &str,
) -> Result<(), ConfigError> {
    if together <= limit {
        return Ok(());
    }
    let before = together - times * each;
    let product = format!("found {times} times {each}, which is {}", times * each);
    let sum = match before {
        0 => String::new(),
        before => format!(", with {before} before {together}"),
    };
    Err(ConfigError::new(
        "count",
        format!("{product}{sum}; expected {limit} {what} at most"),
    ))
}

fn count(value: Option<Value>, key: &str, unless_said: usize) -> Result<usize, ConfigError> {
    match value.as_ref().map(Value::as_u64) {
        None => Ok(unless_said),
        Some(Some(number @ 1..=MEMBERS_MAX)) => Ok(number as usize),
        Some(_) => Err(ConfigError::new(
            key,
            format!(
                "found {}; expected 1 to {MEMBERS_MAX}",
                value.unwrap_or_default()
            ),
        )),
    }
}

/// An error in a drive's own file stays unchanged. An error about a drive's name is moved to the
/// place of the name.
fn named_here(error: StackError, here: &StackError) -> StackError {
    if error.line.is_some() || error.file.ends_with(".toml") {
        return error;
    }
    StackError {
        message: format!("`{}`: {}", error.file, error.message),
        ..here.clone()
    }
}

#[cfg(test)]
#[path = "volume_tests.rs"]
mod tests;
