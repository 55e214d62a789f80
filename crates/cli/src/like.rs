//! `fullstroke like`: the stack file of an array or a load that exists.

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_stack::{MdArray, ObservedLoad, ReportedDrive, ZfsPool, drives, facts};
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

/// Print the stack file of an array or a load that exists, from what tools say about it.
///
/// FILE holds the output of `mdadm --detail /dev/md0`, the output of `mdadm --examine` for one or
/// more members, or /proc/mdstat: the array. `zpool status` or `zpool list -v`, with the
/// output of `zpool get all` and `zfs get all` behind if you like: the pool. `iostat -x 10` (Linux,
/// FreeBSD, Solaris), `sar -d`, `sar -b`, `sadf -d` or `zpool iostat -v 10`, also in JSON: the load of a disk,
/// as rates and sizes. `smartctl -a`, also in JSON: one drive. The drive is a drive of the library: by
/// the model number in the names of the members, or else by the capacity. Name your own with --drive.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Text about the array; `-` reads standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Model of the members, a name of the library.
    #[arg(long, value_name = "NAME")]
    drive: Option<String>,

    /// Array or disk to print, if the text describes several, such as /dev/md0 or sda. Default of
    /// iostat and sar: the busiest disk.
    #[arg(long, value_name = "NAME")]
    array: Option<String>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let name = arguments.file.display().to_string();
    let text = match name.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        _ => fs::read_to_string(&arguments.file),
    };
    let text = text.map_err(|error| CommandFailure::input(format!("{name}: {error}")))?;
    // Loads and pools are known by their heads. Anything else goes to `MdArray`, whose error names
    // all accepted reports.
    if ObservedLoad::recognise(&text) {
        return observed(&name, &text, arguments, output);
    }
    if ReportedDrive::recognise(&text) {
        let reported = ReportedDrive::read(&name, &text).map_err(CommandFailure::input)?;
        let drive = match reported.flash() {
            // A flash device must not become the disk of the nearest capacity, which has the same
            // size and other times.
            Some(flash) if arguments.drive.is_none() => flash.to_owned(),
            _ => drive(arguments, || reported.nearest())?,
        };
        return match output.json() {
            true => output.show_json(&reported),
            false => output.print(&reported.to_stack(&drive)),
        };
    }
    // Before mdadm, because the report of a pool may name md devices as its members.
    if ZfsPool::recognise(&text) {
        let pools = ZfsPool::read(&name, &text).map_err(CommandFailure::input)?;
        let pool = chosen(pools, |pool| &pool.name, arguments)?;
        let drive = drive(arguments, || {
            facts::nearest(pool.member_bytes, pool.data_devices())
        })?;
        return match output.json() {
            true => output.show_json(&pool),
            false => output.print(&pool.to_stack(&drive)),
        };
    }
    let arrays = MdArray::read(&name, &text).map_err(CommandFailure::input)?;
    let array = chosen(arrays, |array| &array.name, arguments)?;
    let drive = drive(arguments, || {
        facts::nearest(array.member_bytes, &array.devices)
    })?;
    match output.json() {
        true => output.show_json(&array),
        false => output.print(&array.to_stack(&drive)),
    }
}

/// Prints the stack file of the load of a disk.
fn observed(
    name: &str,
    text: &str,
    arguments: &Arguments,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let loads = ObservedLoad::read(name, text).map_err(CommandFailure::input)?;
    let load = match &arguments.array {
        Some(device) => loads.iter().find(|load| load.device == *device),
        None => ObservedLoad::busiest(&loads),
    };
    let Some(load) = load else {
        let names: Vec<&str> = loads.iter().map(|load| load.device.as_str()).collect();
        return Err(CommandFailure::input(format!(
            "{name}: found the disks {}; name one of them with --array",
            names.join(", ")
        )));
    };
    // `iostat` and `sar` say nothing about the size or the model of a disk.
    let drive = drive(arguments, || facts::nearest(None, &[]))?;
    match output.json() {
        true => output.show_json(load),
        false => output.print(&load.to_stack(name, &drive).map_err(CommandFailure::input)?),
    }
}

/// Returns the drive that the user names, or else the nearest drive of the library.
fn drive(
    arguments: &Arguments,
    nearest: impl FnOnce() -> String,
) -> Result<String, CommandFailure> {
    match &arguments.drive {
        Some(drive) => {
            // Only checked here: the stack file names the drive, and a wrong name would be an error
            // at the next command.
            drives::load(drive).map_err(CommandFailure::input)?;
            Ok(drive.clone())
        }
        None => Ok(nearest()),
    }
}

/// Returns the named array, or the only array.
fn chosen<T>(
    arrays: Vec<T>,
    name: impl Fn(&T) -> &String,
    arguments: &Arguments,
) -> Result<T, CommandFailure> {
    let names: Vec<String> = arrays.iter().map(|array| name(array).clone()).collect();
    let is_named = |array: &T| {
        arguments.array.as_ref().is_none_or(|wanted| {
            name(array) == wanted || name(array).strip_prefix("/dev/") == Some(wanted.as_str())
        })
    };
    let mut found: Vec<T> = arrays.into_iter().filter(is_named).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        _ => Err(CommandFailure::input(format!(
            "{}: found the arrays {}; name one of them with --array",
            arguments.file.display(),
            names.join(", ")
        ))),
    }
}
