//! Measures the time of a look-up and the size of a table: `cargo run --release -p
//! fullstroke-tracks --example look_up [drive.toml]`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures"
)]

use fullstroke_drive::{DriveConfig, Geometry};
use fullstroke_tracks::{Boundaries, Builder};
use fullstroke_units::{Lbn, Sectors, Seed};
use std::hint::black_box;
use std::time::Instant;

/// Look-ups per batch, and number of batches. The median over batches hides the disturbance by
/// other programs of the machine.
const LOOK_UPS: u64 = 20_000;
const BATCHES: u64 = 301;
const TRACKS: u64 = 10_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| {
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../drives/seagate-exos-x24-24tb.toml"
        )
        .into()
    });
    let geometry = Geometry::new(&toml::from_str::<DriveConfig>(&std::fs::read_to_string(
        &path,
    )?)?)?;
    let start = Instant::now();
    let table = Boundaries::of(&geometry, path.as_str())?;
    println!("{path}: built in {:.2} s", start.elapsed().as_secs_f64());
    measure("the drive", &table);

    let mut random = Seed(1).stream("tracks");
    let mut builder = Builder::default();
    for number in 0..TRACKS {
        let irregular = number % 200 == 199;
        builder.push(Sectors(3000 - u64::from(irregular) * random.below(100)))?;
    }
    measure("every 200th track shorter", &builder.finish("")?);
    let mut builder = Builder::default();
    for _ in 0..TRACKS {
        builder.push(Sectors(2900 + random.below(200)))?;
    }
    measure("all tracks unlike each other", &builder.finish("")?);
    Ok(())
}

fn measure(what: &str, table: &Boundaries) {
    let mut random = Seed(2).stream("addresses");
    let addresses: Vec<Lbn> = (0..1 << 20)
        .map(|_| Lbn(random.below(table.capacity().0)))
        .collect();
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|batch| batch_ns(table, &addresses, batch))
        .collect();
    batches.sort_by(f64::total_cmp);
    let each_ns = batches[batches.len() / 2];
    let bytes = table.bytes();
    println!(
        "{what}: {} tracks, {bytes} bytes ({:.2} a track), {each_ns:.0} ns a look-up",
        table.len(),
        bytes as f64 / table.len() as f64
    );
}

/// Returns the mean time of a look-up in a batch, in nanoseconds.
fn batch_ns(table: &Boundaries, addresses: &[Lbn], batch: u64) -> f64 {
    let start = Instant::now();
    let mut sum = 0;
    for index in batch * LOOK_UPS..(batch + 1) * LOOK_UPS {
        let lbn = addresses[index as usize & (addresses.len() - 1)];
        sum += table.boundary_from(lbn).map_or(0, |boundary| boundary.0);
    }
    black_box(sum);
    start.elapsed().as_nanos() as f64 / LOOK_UPS as f64
}
