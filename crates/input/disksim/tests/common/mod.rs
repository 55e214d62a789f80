//! A small disk in memory.

use fullstroke_disksim::{ImportError, ImportOptions, Imported, Reading, import_from};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const DISK_KEYS: &str = include_str!("disk_keys.txt");

/// Returns files by name.
pub fn files(list: &[(&str, &str)]) -> BTreeMap<PathBuf, Vec<u8>> {
    list.iter()
        .map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec()))
        .collect()
}

/// Returns a disk block with a model inside.
pub fn disk(model: &str) -> String {
    format!("disksim_disk D {{ Model = {model},\n{DISK_KEYS} }}\n")
}

/// Returns a model with a layout and a mechanical model inside.
pub fn model(surfaces: u32, cylinders: u32, blocks: u64, layout: &str, seek: &str) -> String {
    format!(
        "dm_disk M {{\nNumber of data surfaces = {surfaces},\nNumber of cylinders = {cylinders},\n\
         Block count = {blocks},\nLayout Model = {layout},\n\
         Mechanical Model = dm_mech_g1 {{\nAccess time type = trackSwitchPlusRotation,\n{seek},\n\
         Add. write settling delay = 0.1,\nHead switch time = 0.2,\nRotation speed (in rpms) = 10000,\n\
         Percent error in rpms = 0.0 }} }}"
    )
}

/// A seek with the same time for any distance.
pub const SEEK: &str = "Seek type = constant, Constant seek time = 1.5";

/// Imports the only disk of `d.diskspecs`.
#[allow(dead_code)]
pub fn one(list: &[(&str, &str)], strict: bool) -> Result<Imported, ImportError> {
    import_from(
        &files(list),
        Path::new("d.diskspecs"),
        &ImportOptions {
            strict,
            reading: Reading::AS_WRITTEN,
            ..ImportOptions::default()
        },
    )
    .map(|mut disks| disks.remove(0))
}

/// Runs requests (address, sectors, true for a write), one millisecond apart. Returns the number of
/// answers.
#[allow(dead_code)]
pub fn run(drive: &mut fullstroke_drive::Drive, requests: &[(u64, u64, bool)]) -> usize {
    use fullstroke_contract::{
        Effects, Extent, Node as _, NodeContext, Operation, Port, Request, RequestId,
    };
    use fullstroke_units::Time;
    let (mut out, mut done) = (Effects::new(), 0);
    for (number, &(start, sectors, writes)) in requests.iter().enumerate() {
        let at = Time::from_nanos(1_000_000 * number as u64);
        while drive.next_wake().at() < at {
            drive.wake(drive.next_wake().at(), &mut NodeContext::alone(&mut out));
        }
        let operation = if writes {
            Operation::Write
        } else {
            Operation::Read
        };
        let extent = Extent::new(start, sectors);
        let id = RequestId(number as u64);
        drive.submit(
            at,
            Port::FIRST,
            Request {
                id,
                operation,
                extent,
                ..Request::default()
            },
            &mut NodeContext::alone(&mut out),
        );
        done += out.drain().count();
    }
    while drive.next_wake().at() < Time::NEVER {
        drive.wake(drive.next_wake().at(), &mut NodeContext::alone(&mut out));
        done += out.drain().count();
    }
    done
}
