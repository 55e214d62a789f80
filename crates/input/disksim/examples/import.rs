//! Prints the disks of a parameter file, and the losses of the import: `cargo run --release
//! --example import -- FILE`.

use fullstroke_disksim::{ImportOptions, import};
use fullstroke_drive::{DriveModel, Geometry};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path: PathBuf = std::env::args_os()
        .nth(1)
        .ok_or("expected the path of a parameter file")?
        .into();
    for disk in import(&path, &ImportOptions::default())? {
        println!(
            "{}: {} zones, {}",
            disk.name,
            disk.config.zones.len(),
            disk.config.capacity_sectors
        );
        for loss in &disk.losses {
            println!("  {}: {}", loss.key, loss.what);
        }
        let geometry = Geometry::new(&disk.config)?;
        println!("  {} cylinders", geometry.cylinders());
        if let Err(error) = DriveModel::new(disk.config) {
            println!("  not a drive yet: {error}");
        }
    }
    Ok(())
}
