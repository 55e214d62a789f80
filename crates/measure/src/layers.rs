//! What layers other than drives counted.

use fullstroke_contract::{LayerReadings, Reading};
use serde::{Serialize, Serializer};

/// One layer over the whole run, the warm-up included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerReport {
    /// What kind of layer it is, such as `link fc-al`; with its place in the
    /// tree, if there is more than one volume.
    pub layer: String,
    /// Its numbers by their names, which end in their units.
    #[serde(serialize_with = "by_name")]
    pub readings: Vec<Reading>,
}

impl LayerReport {
    /// The number called `name`, if the layer has it.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.readings.iter().find(|reading| reading.name == name).map(|reading| reading.value)
    }
}

/// One report for each layer that counted anything.
pub(crate) fn layer_reports(layers: &[LayerReadings]) -> Vec<LayerReport> {
    let report = |LayerReadings { layer, readings }: &LayerReadings| LayerReport {
        layer: layer.clone(),
        readings: readings.clone(),
    };
    layers.iter().map(report).collect()
}

fn by_name<S: Serializer>(readings: &[Reading], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(readings.iter().map(|reading| (reading.name, reading.value)))
}
