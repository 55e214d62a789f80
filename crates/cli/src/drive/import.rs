//! `fullstroke drive import`: converts a parameter file of DiskSim into a drive file.

use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, OutputKind, Target};
use clap::Args;
use fullstroke_disksim::{ImportLoss, ImportOptions, Imported, Reading, import};
use fullstroke_stack::drives;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Convert a .parv, .diskspecs or .model file of DiskSim into a drive file, and list the losses of
/// the conversion.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Parameter file of DiskSim.
    file: PathBuf,

    /// Name of the block or component, if the file describes several disks.
    #[arg(long, value_name = "BLOCK")]
    name: Option<String>,

    /// Drive file to write. Default: standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Refuse unknown keys.
    #[arg(long)]
    strict: bool,

    /// Interpret the keys as documented. By default, rules that were fitted to measured disks
    /// apply; the drive file names the rules under `[sources]`.
    #[arg(long)]
    as_written: bool,

    /// Change one of the rules: NAME=on, NAME=off or NAME=NUMBER. An unknown name shows a list of
    /// all rules.
    #[arg(long = "rule", value_name = "NAME=VALUE")]
    rules: Vec<String>,
}

#[derive(Serialize)]
struct ImportedDrive<'a> {
    name: &'a str,
    file: Option<&'a Path>,
    losses: &'a [ImportLoss],
    /// Stack table of the bus, if other drives share the bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let target = Target::of("--output", &arguments.output, OutputKind::Toml);
    outputs::check([target], std::slice::from_ref(&arguments.file))?;
    let mut reading = if arguments.as_written {
        Reading::AS_WRITTEN
    } else {
        Reading::default()
    };
    for rule in &arguments.rules {
        reading
            .set(rule)
            .map_err(|error| CommandFailure::Input(format!("--rule {rule}: {error}")))?;
    }
    let options = ImportOptions {
        name: arguments.name.clone(),
        strict: arguments.strict,
        reading,
    };
    let disks = import(&arguments.file, &options).map_err(CommandFailure::input)?;
    // A drive file describes one disk. A parameter file of DiskSim may describe the disks of a
    // whole array.
    let [disk] = &disks[..] else {
        let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
        let file = arguments.file.display();
        return Err(CommandFailure::input(format!(
            "{file}: describes several disks; choose one with --name: {}",
            names.join(", ")
        )));
    };
    let text = drives::to_toml(&disk.config, &comments(disk, &arguments.file))
        .map_err(CommandFailure::input)?;
    match &arguments.output {
        // Without --output the drive file is the output. The losses are in the comments of the
        // file.
        None if !output.json() => return output.print(&text),
        None => {}
        Some(path) => write_whole(path, &text)?,
    }
    let file = arguments.output.as_deref();
    let written = ImportedDrive {
        name: &disk.name,
        file,
        losses: &disk.losses,
        link: link(disk),
    };
    output.show(&written, report(disk, arguments.output.as_deref()))
}

/// Returns the stack table of a bus that several drives share, or `None`.
fn link(disk: &Imported) -> Option<String> {
    let bus = disk.electronics.bus.as_ref()?;
    // A bus with one disk is part of the drive file: its transfer time is that of the drive's
    // interface.
    (bus.disks > 1).then(|| bus.link_table())
}

/// Returns the comment lines at the head of the drive file.
fn comments(disk: &Imported, file: &Path) -> Vec<String> {
    let file = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut comments = vec![format!(
        "{}, imported from the DiskSim parameter file {file}.",
        disk.name
    )];
    comments.extend(
        disk.losses
            .iter()
            .map(|loss| format!("Not carried over exactly: {}", told(loss))),
    );
    comments.extend(
        link(disk)
            .iter()
            .flat_map(|table| table.lines())
            .map(str::to_owned),
    );
    comments
}

/// Returns a loss in words. A loss of the whole file has no key.
fn told(loss: &ImportLoss) -> String {
    match loss.key.is_empty() {
        true => loss.what.clone(),
        false => format!("{}: {}", loss.key, loss.what),
    }
}

fn report(disk: &Imported, file: Option<&Path>) -> String {
    let mut text = format!("{}: {} sectors", disk.name, disk.config.capacity_sectors.0);
    if let Some(file) = file {
        let _ = write!(text, ", written to {}", file.display());
    }
    for loss in &disk.losses {
        let _ = write!(text, "\n  not carried over exactly: {}", told(loss));
    }
    if let Some(table) = link(disk) {
        let _ = write!(
            text,
            "\n  the shared bus, for a stack file:\n{}",
            table.trim_end()
        );
    }
    text
}
