//! The numbers of a data sheet, computed from a drive's model.

mod nearest;

use fullstroke_contract::registry::{Keys, read_unlisted};
use fullstroke_drive::DriveModel;
use serde::{Deserialize, Serialize};

pub(crate) use nearest::{NVME_FLASH, SATA_FLASH};
pub use nearest::{Wanted, mixed_with_flash, nearest, nearest_to};

/// The facts of all drives of the library. The models of all drives take 100 ms to build, because
/// the seek tables have some 10 million entries together; a list of the library must not wait.
/// `make generate` writes the file, and a test compares the file with the models.
const LIBRARY: &str = include_str!("../drive-facts.toml");

/// The numbers of a data sheet, computed from a drive's model.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Facts {
    /// Name in the library, or path of the file.
    pub name: String,
    /// Maker and model.
    pub title: String,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Number of recording surfaces.
    pub surfaces: u32,
    /// Number of cylinders.
    pub cylinders: u32,
    /// Number of zones.
    pub zones: usize,
    /// Sequential rate of the outermost zone in 10^6 bytes per second.
    pub outer_mb_per_s: f64,
    /// Sequential rate of the innermost zone in 10^6 bytes per second.
    pub inner_mb_per_s: f64,
    /// Seek to the next cylinder.
    pub shortest_seek_ms: f64,
    /// Mean over seeks between random cylinders.
    pub average_seek_ms: f64,
    /// Seek from edge to edge.
    pub full_stroke_ms: f64,
    /// Time of one revolution.
    pub revolution_ms: f64,
}

impl Facts {
    /// Computes the facts of `model`.
    pub fn new(name: &str, model: &DriveModel) -> Facts {
        let config = model.config();
        let geometry = model.mechanics().geometry();
        let seeks = model.mechanics().seek_table();
        let rates: Vec<f64> = geometry
            .zones()
            .map(|zone| zone.rate_mb_per_s(config.rpm))
            .collect();
        Facts {
            name: name.to_owned(),
            title: config.title.clone(),
            capacity_bytes: model.config().capacity_sectors.bytes().0,
            rpm: config.rpm,
            surfaces: config.surfaces,
            cylinders: geometry.cylinders(),
            zones: rates.len(),
            outer_mb_per_s: rates.first().copied().unwrap_or(0.0),
            inner_mb_per_s: rates.last().copied().unwrap_or(0.0),
            shortest_seek_ms: seeks.time(1).as_millis_f64(),
            average_seek_ms: seeks.average().as_millis_f64(),
            full_stroke_ms: seeks
                .time(geometry.cylinders().saturating_sub(1))
                .as_millis_f64(),
            revolution_ms: geometry.spindle().revolution().as_millis_f64(),
        }
    }
}

/// The file of the facts.
#[derive(Serialize, Deserialize)]
struct Library {
    drive: Vec<Facts>,
}

/// Returns the facts of all drives of the library, sorted by name.
///
/// # Panics
/// If the file within the program is damaged: a test reads the file.
pub fn library() -> Vec<Facts> {
    // By way of a `Map`, as stack files are read: a second reader of TOML would make the module for
    // browsers larger.
    let keys: Keys = toml::from_str(LIBRARY).expect("a test reads the facts of the library");
    let library: Library = read_unlisted(&keys).expect("a test reads the facts of the library");
    library.drive
}

/// Writes the facts of all drives of the library, computed from the models.
///
/// # Errors
/// As [`load`](crate::drives::load).
pub fn computed() -> Result<String, crate::StackError> {
    let facts = |name: &&str| crate::drives::load(name).map(|model| Facts::new(name, &model));
    let drive = crate::drives::names()
        .iter()
        .map(facts)
        .collect::<Result<_, _>>()?;
    toml::to_string(&Library { drive })
        .map_err(|error| crate::StackError::whole("the facts of the library", error.to_string()))
}
