//! A small disk in memory.

use fullstroke_disksim::{ImportError, Imported, Options, Reading, import_from};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const DISK_KEYS: &str = include_str!("disk_keys.txt");

/// Files by name.
pub fn files(list: &[(&str, &str)]) -> BTreeMap<PathBuf, Vec<u8>> {
    list.iter().map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec())).collect()
}

/// A disk block around a model.
pub fn disk(model: &str) -> String {
    format!("disksim_disk D {{ Model = {model},\n{DISK_KEYS} }}\n")
}

/// A model around a layout and a mechanical model.
pub fn model(surfaces: u32, cylinders: u32, blocks: u64, layout: &str, seek: &str) -> String {
    format!(
        "dm_disk M {{\nNumber of data surfaces = {surfaces},\nNumber of cylinders = {cylinders},\n\
         Block count = {blocks},\nLayout Model = {layout},\n\
         Mechanical Model = dm_mech_g1 {{\nAccess time type = trackSwitchPlusRotation,\n{seek},\n\
         Add. write settling delay = 0.1,\nHead switch time = 0.2,\nRotation speed (in rpms) = 10000,\n\
         Percent error in rpms = 0.0 }} }}"
    )
}

/// A seek of the same time for any distance.
pub const SEEK: &str = "Seek type = constant, Constant seek time = 1.5";

/// The only disk of `d.diskspecs`.
pub fn one(list: &[(&str, &str)], strict: bool) -> Result<Imported, ImportError> {
    import_from(
        &files(list),
        Path::new("d.diskspecs"),
        &Options { strict, reading: Reading::AsWritten, ..Options::default() },
    )
    .map(|mut disks| disks.remove(0))
}
