//! `fullstroke drive plot`: zone rates, seek curve and track order, drawn.

use crate::output::{Failure, Output, write_whole};
use crate::outputs::{self, Kind, Target};
use clap::Args;
use fullstroke_report::plots::DrivePicture;
use fullstroke_stack::drives;
use std::path::PathBuf;

/// Draw a drive as SVG: its zone rates, its seek curve, and the order in which
/// LBNs pass through its first tracks. With --json, the numbers behind it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A name from `drive list`, or a drive file.
    drive: String,

    /// Write to this file; to standard output unless said.
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,

    /// How many tracks of the LBN order are drawn.
    #[arg(long, value_name = "NUMBER", default_value_t = 96, value_parser = clap::value_parser!(u32).range(2..=4096))]
    tracks: u32,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let target = Target::of("--output", &arguments.output, Kind::Figure);
    outputs::check([target], &[PathBuf::from(&arguments.drive)])?;
    let model = drives::load_unchecked(&arguments.drive).map_err(Failure::input)?;
    let picture = DrivePicture::new(&model, arguments.tracks);
    let svg = picture.draw().map_err(Failure::input)?;
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
