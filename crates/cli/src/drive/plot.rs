//! `fullstroke drive plot`: draws zone rates, seek curve and track order.

use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, OutputKind, Target};
use clap::Args;
use fullstroke_report::plots::DrivePicture;
use fullstroke_stack::drives;
use std::path::PathBuf;

/// Draw a drive as SVG: the zone rates, the seek curve, and the LBN order on the first tracks.
/// --json prints the data of the figure.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name from `drive list`, or a drive file.
    drive: String,

    /// SVG file to write. Default: standard output.
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,

    /// Number of tracks in the drawing of the LBN order.
    #[arg(long, value_name = "NUMBER", default_value_t = 96, value_parser = clap::value_parser!(u32).range(2..=4096))]
    tracks: u32,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let target = Target::of("--output", &arguments.output, OutputKind::Figure);
    outputs::check([target], &[PathBuf::from(&arguments.drive)])?;
    // Unchecked, because the figure of a wrong drive shows the fault.
    let model = drives::load_unchecked(&arguments.drive).map_err(CommandFailure::input)?;
    let picture = DrivePicture::new(&model, arguments.tracks);
    let svg = picture.draw().map_err(CommandFailure::input)?;
    match &arguments.output {
        Some(path) => write_whole(path, &svg)?,
        None if !output.json() => output.print(&svg)?,
        None => {}
    }
    if output.json() {
        output.show_json(&picture)
    } else {
        Ok(())
    }
}
