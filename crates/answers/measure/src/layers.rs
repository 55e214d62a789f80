//! Measures of layers other than drives.

use fullstroke_contract::{CounterReading, LayerReadings};
use serde::{Serialize, Serializer};

/// One layer over the whole run, including the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerReport {
    /// Kind of the layer, such as `link fc-al`. If there is more than one volume, the place in the
    /// tree follows.
    pub layer: String,
    /// Readings by name. Each name ends in the unit.
    #[serde(serialize_with = "by_name")]
    pub readings: Vec<CounterReading>,
}

impl LayerReport {
    /// Returns the reading called `name`; `None` if the layer has none of this name.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.readings
            .iter()
            .find(|reading| reading.name == name)
            .map(|reading| reading.value)
    }
}

/// Returns one report for each layer with readings.
pub(crate) fn layer_reports(layers: &[LayerReadings]) -> Vec<LayerReport> {
    let report = |LayerReadings { layer, readings }: &LayerReadings| LayerReport {
        layer: layer.clone(),
        readings: readings.clone(),
    };
    layers.iter().map(report).collect()
}

/// Returns the reading called `name` over the layers that have it; `None` if no layer does. Amounts
/// (`_mb`) are added up. For all other readings, such as shares and times, the result is the mean.
pub(crate) fn over_layers(layers: &[LayerReport], name: &str) -> Option<f64> {
    let values: Vec<f64> = layers
        .iter()
        .filter_map(|layer| layer.value(name))
        .collect();
    let sum = values.iter().sum::<f64>();
    match values.len() {
        0 => None,
        _ if name.ends_with("_mb") => Some(sum),
        count => Some(sum / count as f64),
    }
}

fn by_name<S: Serializer>(readings: &[CounterReading], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(readings.iter().map(|reading| (reading.name, reading.value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_several_layers_are_added_up_and_shares_are_means() {
        let layer = |share, mb| {
            LayerReadings::new(
                "page cache",
                &[("memory_hit_share", share), ("memory_dirtied_mb", mb)],
            )
        };
        let reports = layer_reports(&[
            layer(0.2, 3.0),
            layer(0.4, 5.0),
            LayerReadings::new("link", &[]),
        ]);
        assert_eq!(over_layers(&reports, "memory_dirtied_mb"), Some(8.0));
        assert!((over_layers(&reports, "memory_hit_share").unwrap() - 0.3).abs() < 1e-12);
        assert_eq!(over_layers(&reports, "link_utilisation"), None);
    }
}
