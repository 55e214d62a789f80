//! `fullstroke drive new`: a first drive file from the numbers of a data sheet.

use super::facts::Facts;
use crate::output::{Failure, Output, write_whole};
use clap::Args;
use fullstroke_drive::{DataSheet, Model, sectors_of};
use fullstroke_lab::capacity;
use fullstroke_stack::drives;
use fullstroke_units::{Bytes, QuantityError, parse_bytes};
use std::path::PathBuf;

/// Write a first drive file from what a data sheet says. What it does not say is
/// fitted, and named as such under `[sources]`; `drive check` passes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// Capacity as it is sold: 8T is 8 x 10^12 bytes, and the drive has as many
    /// sectors as drives of that size report.
    #[arg(long, value_name = "SIZE", value_parser = sold_as)]
    capacity: Bytes,

    /// Revolutions a minute.
    #[arg(long, value_name = "NUMBER")]
    rpm: f64,

    /// Sustained transfer rate at the outer edge, MB/s (10^6 bytes).
    #[arg(long, value_name = "MB/S", allow_negative_numbers = true)]
    outer: f64,

    /// The same at the inner edge; 0.458 of it unless said, as on a measured
    /// Toshiba X300.
    #[arg(long, value_name = "MB/S", allow_negative_numbers = true)]
    inner: Option<f64>,

    /// Average seek of reads, in milliseconds; 8.5 unless said.
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    seek: Option<f64>,

    /// Recording surfaces (heads); by the length of its tracks unless said.
    #[arg(long, value_name = "NUMBER")]
    surfaces: Option<u32>,

    /// Its buffer, as in 256MiB; 64MiB unless said.
    #[arg(long, value_name = "SIZE")]
    cache: Option<Bytes>,

    /// The drive's name for people; its capacity and speed unless said.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// The drive file to write; standard output unless said.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLE: &str = "\
Example:
  fullstroke drive new --capacity 8T --rpm 7200 --outer 245 --inner 120 --seek 8.5 -o mine.toml
  fullstroke drive show mine.toml";

/// A size as vendors print it: a bare letter is decimal.
fn sold_as(text: &str) -> Result<Bytes, QuantityError> {
    let decimal = text.trim().ends_with(|letter: char| "KMGTkmgt".contains(letter));
    parse_bytes(&if decimal { format!("{}B", text.trim()) } else { text.to_owned() }).map(Bytes)
}

impl Arguments {
    fn sheet(&self) -> DataSheet {
        let title = || format!("{}, {} rpm, from its data sheet", capacity(self.capacity.0), self.rpm);
        DataSheet {
            title: self.title.clone().unwrap_or_else(title),
            capacity: sectors_of(self.capacity),
            rpm: self.rpm,
            outer_mb_per_s: self.outer,
            inner_mb_per_s: self.inner,
            average_seek_ms: self.seek,
            surfaces: self.surfaces,
            buffer: self.cache,
        }
    }
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let refused = |error: fullstroke_contract::ConfigError| {
        Failure::Input(format!("--{}: {}", error.key, error.message))
    };
    let sheet = arguments.sheet();
    let config = sheet.drive().map_err(refused)?;
    let comments = [
        format!("{}.", sheet.title),
        "A first description from a data sheet: what is fitted or assumed says so under [sources]."
            .to_owned(),
    ];
    let text = drives::to_toml(&config, &comments).map_err(Failure::input)?;
    let Some(path) = &arguments.output else {
        return if output.json() { output.show_json(&config) } else { output.print(&text) };
    };
    write_whole(path, &text)?;
    let name = path.display().to_string();
    let facts = Facts::new(&name, &Model::new(config).map_err(refused)?);
    let told = format!(
        "{name}: {} sectors on {} surfaces of {} cylinders, {:.1} to {:.1} MB/s",
        sheet.capacity.0, facts.surfaces, facts.cylinders, facts.outer_mb_per_s, facts.inner_mb_per_s
    );
    output.show(&facts, told)
}
