//! Figures that follow from a drive's description.

use fullstroke_drive::Model;
use serde::Serialize;

/// Data-sheet figures as the model has them.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) capacity_bytes: u64,
    pub(crate) rpm: f64,
    pub(crate) surfaces: u32,
    pub(crate) cylinders: u32,
    pub(crate) zones: usize,
    /// Sequential rate of the outermost zone, in 10^6 bytes per second.
    pub(crate) outer_mb_per_s: f64,
    /// Sequential rate of the innermost zone, in 10^6 bytes per second.
    pub(crate) inner_mb_per_s: f64,
    /// Time of a seek to the next cylinder.
    pub(crate) shortest_seek_ms: f64,
    /// Mean time of a seek between random cylinders.
    pub(crate) average_seek_ms: f64,
    /// Time of a seek across all cylinders.
    pub(crate) full_stroke_ms: f64,
    pub(crate) revolution_ms: f64,
}

impl Facts {
    pub(crate) fn new(name: &str, model: &Model) -> Facts {
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
                // The longest seek leads from the first to the last cylinder.
                .time(geometry.cylinders().saturating_sub(1))
                .as_millis_f64(),
            revolution_ms: geometry.spindle().revolution().as_millis_f64(),
        }
    }
}
