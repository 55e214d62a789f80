//! Media streams as a workload.

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, check_known, known_keys, read, schema_of};
use fullstroke_workload::{StreamsConfig, VariationConfig, WeightedBitRate};
use serde_json::Value;

/// Reads a load of streams table by table, so that an unknown key names the
/// nearest one.
pub(crate) fn read_streams(keys: &Keys) -> Result<StreamsConfig, ConfigError> {
    if let Some(Value::Object(variation)) = keys.get("variation") {
        let known = known_keys(&schema_of::<VariationConfig>());
        check_known(variation, &known).map_err(|error| error.below("variation"))?;
    }
    if let Some(Value::Array(rates)) = keys.get("bit_rates") {
        let known = known_keys(&schema_of::<WeightedBitRate>());
        for (index, rate) in rates.iter().enumerate() {
            if let Value::Object(rate) = rate {
                check_known(rate, &known).map_err(|error| error.below(&format!("bit_rates[{index}]")))?;
            }
        }
    }
    read(keys)
}
