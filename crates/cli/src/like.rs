//! `fullstroke like`: the stack file of an array that exists.

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_stack::{MdArray, drives};
use fullstroke_units::SECTOR_BYTES;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

/// Print the stack file of a Linux md array, from what its tools say about the array.
///
/// FILE holds the output of `mdadm --detail /dev/md0`, the output of `mdadm --examine` for one or
/// more members, or /proc/mdstat. The drives are those of the library that are nearest in capacity;
/// name your own with --drive.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Text about the array; `-` reads standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Model of the members, a name of the library.
    #[arg(long, value_name = "NAME")]
    drive: Option<String>,

    /// Array to print, if the text describes several, such as /dev/md0.
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
    let arrays = MdArray::read(&name, &text).map_err(CommandFailure::input)?;
    let array = chosen(arrays, arguments)?;
    let drive = match &arguments.drive {
        Some(drive) => {
            drives::load(drive).map_err(CommandFailure::input)?;
            drive.clone()
        }
        None => nearest_drive(array.member_bytes)?,
    };
    match output.json() {
        true => output.show_json(&array),
        false => output.print(&array.to_stack(&drive)),
    }
}

/// Returns the named array, or the only array.
fn chosen(arrays: Vec<MdArray>, arguments: &Arguments) -> Result<MdArray, CommandFailure> {
    let names: Vec<String> = arrays.iter().map(|array| array.name.clone()).collect();
    let is_named = |array: &MdArray| {
        arguments
            .array
            .as_ref()
            .is_none_or(|name| array.name == *name)
    };
    let mut found: Vec<MdArray> = arrays.into_iter().filter(is_named).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        _ => Err(CommandFailure::input(format!(
            "{}: found the arrays {}; name one of them with --array",
            arguments.file.display(),
            names.join(", ")
        ))),
    }
}

/// Returns the smallest drive of the library that holds `bytes`; the largest drive if none does.
fn nearest_drive(bytes: Option<u64>) -> Result<String, CommandFailure> {
    let mut sizes = Vec::new();
    for name in drives::names() {
        let model = drives::load_unchecked(name).map_err(CommandFailure::input)?;
        sizes.push((model.config().capacity_sectors.0 * SECTOR_BYTES, name));
    }
    // By size and then by name, so that of equal sizes the same drive is chosen in each run.
    sizes.sort_unstable();
    let least = bytes.unwrap_or(u64::MAX);
    let fitting = sizes.iter().find(|(size, _)| *size >= least);
    match fitting.or(sizes.last()) {
        Some((_, name)) => Ok((*name).to_owned()),
        None => Err(CommandFailure::input("the library has no drive")),
    }
}
