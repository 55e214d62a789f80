//! The JSON schema of study files, for editors.

use crate::config::{StudyConfig, ValueConfig};
use fullstroke_contract::registry::schema_of;
use serde_json::{Value, json};

/// Returns the schema of study files.
pub fn schema() -> Value {
    let mut schema: Value = schema_of::<StudyConfig>().into();
    schema["title"] = json!("a fullstroke study");
    let mut value: Value = schema_of::<ValueConfig>().into();
    if let Value::Object(table) = &mut value {
        table.remove("$schema");
    }
    schema["$defs"]["ValueConfig"] = value;
    schema["$defs"]["AxisConfig"]["properties"]["values"]["items"] = json!({
        "anyOf": [
            { "type": ["number", "string", "boolean"] },
            { "$ref": "#/$defs/ValueConfig" },
        ],
    });
    schema
}
