//! `fullstroke drive show`: shows one drive with the sources of its figures.

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_drive::{BufferConfig, DriveConfig, DriveModel, Published};
use fullstroke_lab::capacity;
use fullstroke_measure::{number, table};
use fullstroke_stack::drives;
use fullstroke_stack::facts::Facts;
use serde::Serialize;
use std::fmt;

/// Show a drive: its figures, its zones, and the source of each number.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name from `drive list`, or a drive file (*.toml).
    drive: String,
}

/// Output of `drive show`.
#[derive(Serialize)]
struct DriveOutput<'a> {
    #[serde(flatten)]
    facts: Facts,
    description: &'a DriveConfig,
    #[serde(skip)]
    model: &'a DriveModel,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    // A file that fails a check is shown as well, because its numbers show the cause.
    let model = drives::load_unchecked(&arguments.drive).map_err(CommandFailure::input)?;
    let shown = DriveOutput {
        facts: Facts::new(&arguments.drive, &model),
        description: model.config(),
        model: &model,
    };
    output.show(&shown, &shown)
}

impl fmt::Display for DriveOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\n{}\n", self.facts.title, self.numbers())?;
        writeln!(f, "{}\n", self.zones())?;
        write!(f, "Sources")?;
        self.description
            .sources
            .iter()
            .try_for_each(|(key, source)| write!(f, "\n  {key}: {source}"))
    }
}

impl DriveOutput<'_> {
    fn numbers(&self) -> String {
        let (facts, config) = (&self.facts, self.description);
        let mut table = table(["", "value"], &[0, 1]);
        let queue = &config.queue;
        let zero_latency = match (config.zero_latency.reads(), config.zero_latency.writes()) {
            (true, true) => "yes",
            (true, false) => "reads only",
            (false, true) => "writes only",
            (false, false) => "no",
        };
        let buffer = config.buffer.as_ref();
        let buffer = buffer.map_or_else(|| "none".to_owned(), buffer_in_words);
        let rows = [
            (
                "capacity",
                format!(
                    "{} ({} sectors of 512 bytes)",
                    capacity(facts.capacity_bytes),
                    config.capacity_sectors.0
                ),
            ),
            (
                "speed",
                format!(
                    "{} rpm, {} ms a revolution",
                    facts.rpm,
                    number(facts.revolution_ms)
                ),
            ),
            (
                "geometry",
                format!("{} surfaces, {} cylinders", facts.surfaces, facts.cylinders),
            ),
            (
                "sequential rate",
                format!(
                    "{} to {} MB/s",
                    number(facts.outer_mb_per_s),
                    number(facts.inner_mb_per_s)
                ),
            ),
            (
                "seek",
                format!(
                    "{} ms next cylinder, {} ms mean, {} ms full stroke",
                    number(facts.shortest_seek_ms),
                    number(facts.average_seek_ms),
                    number(facts.full_stroke_ms)
                ),
            ),
            ("head switch", format!("{} ms", config.head_switch_ms)),
            ("write settle", format!("{} ms", config.write_settle_ms)),
            (
                "command overhead",
                format!("{} ms", config.command_overhead_ms),
            ),
            ("zero-latency access", zero_latency.to_owned()),
            ("buffer", buffer),
            (
                "queue",
                format!("{} deep, {}", queue.depth, queue.discipline),
            ),
        ];
        for (name, value) in rows.into_iter().chain(noise(&config.published)) {
            table.add_row([name.to_owned(), value]);
        }
        table.trim_fmt()
    }

    fn zones(&self) -> String {
        let mut table = table(
            [
                "zone",
                "cylinders",
                "first LBN",
                "sectors",
                "sectors a track",
                "MB/s",
            ],
            &[],
        );
        for (index, zone) in self.model.mechanics().geometry().zones().enumerate() {
            table.add_row([
                index.to_string(),
                format!("{}-{}", zone.first_cylinder.0, zone.last_cylinder.0),
                zone.first_lbn.0.to_string(),
                zone.sectors.0.to_string(),
                format!("{:.0}", zone.sectors_per_track),
                number(zone.rate_mb_per_s(self.description.rpm)),
            ]);
        }
        table.trim_fmt()
    }
}

/// Returns the row of the noise, if the file has it.
fn noise(published: &Published) -> Option<(&'static str, String)> {
    let level = |bels: Option<f64>, when| bels.map(|bels| format!("{bels} bels {when}"));
    let levels = [
        level(published.idle_bels, "idle"),
        level(published.seek_bels, "seeking"),
    ];
    let levels: Vec<String> = levels.into_iter().flatten().collect();
    (!levels.is_empty()).then(|| ("noise", levels.join(", ")))
}

/// Returns the size and the caching of a drive's buffer as text.
fn buffer_in_words(buffer: &BufferConfig) -> String {
    let caching = if buffer.write_back {
        "write-back"
    } else {
        "write-through"
    };
    match buffer.sectors {
        // A buffer that divides its memory on demand, as drives since about 2000 have; the other
        // form has segments of a fixed size.
        Some(sectors) => format!(
            "{} MiB in up to {} segments, {caching}",
            // 2048 sectors of 512 bytes are a MiB.
            sectors / 2048,
            buffer.segments
        ),
        None => format!(
            "{} segments of {} sectors, {caching}",
            buffer.segments, buffer.segment_sectors
        ),
    }
}
