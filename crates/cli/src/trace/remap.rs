//! `fullstroke trace remap`: converts a volume's trace into traces of its drives.

use crate::options::{BeyondOption, Selection};
use crate::output::{CommandFailure, CommandOutput};
use crate::outputs::{self, OutputKind, Target, read_for};
use clap::Args;
use fullstroke_lab::lzvs::{LzvsError, Remapper};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_trace::{TraceOptions, TraceReader, TraceRecord, TraceWriter, output_for};
use fullstroke_units::Sectors;
use fullstroke_volume::Shape;
use serde::Serialize;
use std::path::PathBuf;

/// Map a trace of a volume onto its drives. Each drive gets a trace with its requests at the
/// arrival times of the volume's requests. Each file appears whole or not at all.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Stack file of the volume. Its workload is ignored.
    stack: PathBuf,

    /// Trace: plain, gzip, zstd or xz.
    trace: PathBuf,

    /// Folder to write to. It is created if missing.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Ending of the file names, which gives the format: parquet, fio, disksim or csv. Text is
    /// compressed if .gz, .zst or .xz follows.
    #[arg(long, value_name = "ENDING", default_value = "parquet")]
    ending: String,

    /// Map each sector of each request to its drive and back, and require the original address.
    #[arg(long)]
    verify: bool,

    /// Treatment of addresses beyond the end of the volume.
    #[arg(long, value_name = "WHAT", default_value = "reject")]
    beyond: BeyondOption,

    #[command(flatten)]
    selection: Selection,
}

/// Result of the command.
#[derive(Debug, Serialize)]
struct Remapped {
    requests: u64,
    /// Number of skipped damaged rows of the trace.
    skipped_rows: u64,
    /// Number of sectors mapped to a drive and back, counted at each level of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    sectors_verified: Option<u64>,
    drives: Vec<DriveTrace>,
}

#[derive(Debug, Serialize)]
struct DriveTrace {
    drive: String,
    file: PathBuf,
    requests: u64,
    sectors: u64,
    /// Number of requests that the format cannot express.
    left_out: u64,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let stack = Stack::load_for_clients(&arguments.stack, &Overrides::default())
        .map_err(CommandFailure::input)?;
    let service = stack.serve().map_err(CommandFailure::input)?;
    let options = TraceOptions {
        capacity: Some(service.shape.capacity()),
        beyond: arguments.beyond.kind(),
        ..arguments.selection.options()
    };
    let mut reader =
        TraceReader::open(&arguments.trace, &options).map_err(CommandFailure::input)?;
    let folder = &arguments.output;
    if service.graph.hides_drives() {
        let message = "the disks of an xor array send commands to each other, so no disk has a trace of its own requests";
        return Err(CommandFailure::Input(message.to_owned()));
    }
    let file_of = |name: &str| folder.join(format!("drive-{name}.{}", arguments.ending));
    let files: Vec<PathBuf> = service.graph.drive_names().map(file_of).collect();
    let formats = files.iter().map(|file| output_for(file, None));
    let formats = formats
        .collect::<Result<Vec<_>, _>>()
        .map_err(CommandFailure::input)?;
    // After all names have a known format, so that a wrong --ending leaves no folder behind.
    prepare(arguments, &files)?;
    let (mut drives, mut writers) = (Vec::new(), Vec::new());
    for ((name, file), format) in service.graph.drive_names().zip(files).zip(formats) {
        writers.push(TraceWriter::create(format, &file).map_err(CommandFailure::input)?);
        drives.push(DriveTrace {
            drive: name.to_owned(),
            file,
            requests: 0,
            sectors: 0,
            left_out: 0,
        });
    }
    let (requests, verified) = remap(
        &mut reader,
        service.shape,
        arguments.verify,
        &mut |drive: usize, record: TraceRecord| {
            let trace = &mut drives[drive];
            if writers[drive].write(&record)? {
                trace.requests += 1;
                trace.sectors += record.extent.sectors.0;
            } else {
                // DiskSim's ASCII format, for example, has reads and writes only. The count tells the
                // user what the drive's trace lacks.
                trace.left_out += 1;
            }
            Ok(())
        },
    )
    .map_err(CommandFailure::input)?;
    for writer in writers {
        // The files get their names only here, so that an error in the trace leaves no drive with a
        // part of its requests.
        writer.finish().map_err(CommandFailure::input)?;
    }
    let sectors_verified = arguments.verify.then_some(verified);
    let remapped = Remapped {
        requests,
        skipped_rows: reader.skipped(),
        sectors_verified,
        drives,
    };
    output.show(&remapped, remapped.text())
}

/// Creates the folder, and checks that no output replaces an input.
fn prepare(arguments: &Arguments, files: &[PathBuf]) -> Result<(), CommandFailure> {
    let folder = &arguments.output;
    std::fs::create_dir_all(folder).map_err(|error| {
        CommandFailure::Input(format!(
            "cannot make the folder `{}`: {error}",
            folder.display()
        ))
    })?;
    let mut read = read_for(
        std::slice::from_ref(&arguments.stack),
        &Overrides::default(),
        &[],
    );
    read.push(arguments.trace.clone());
    let targets = files
        .iter()
        .map(|file| Some(Target::to("--output", file, OutputKind::Trace)));
    outputs::check(targets, &read)
}

/// Maps all requests. Returns the number of requests and the number of verified sectors.
fn remap(
    reader: &mut TraceReader,
    shape: Shape,
    verify: bool,
    each: &mut dyn FnMut(usize, TraceRecord) -> Result<(), LzvsError>,
) -> Result<(u64, u64), LzvsError> {
    let mut remapper = Remapper::new(shape, verify);
    let mut requests = 0;
    while let Some(record) = reader.next()? {
        remapper.remap(&record, each)?;
        requests += 1;
    }
    Ok((requests, remapper.sectors_verified()))
}

impl Remapped {
    fn text(&self) -> String {
        let mut lines = vec![format!("{} requests", self.requests)];
        if self.skipped_rows > 0 {
            lines.push(format!("{} damaged rows skipped", self.skipped_rows));
        }
        lines.extend(self.drives.iter().map(|drive| {
            let left_out = match drive.left_out {
                0 => String::new(),
                number => format!("; {number} left out, which the format cannot express"),
            };
            let size = Sectors(drive.sectors).bytes();
            format!(
                "  {}: {} requests, {size}{left_out}",
                drive.file.display(),
                drive.requests
            )
        }));
        if let Some(sectors) = self.sectors_verified {
            lines.push(format!(
                "{sectors} sectors mapped to their drives and back: one to one"
            ));
        }
        lines.join("\n")
    }
}
