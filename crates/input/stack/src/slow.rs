//! Slow members of a volume.

use crate::spec::VolumeSpec;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, known_keys, read, schema_of};
use fullstroke_drive::SlowConfig;
use serde_json::Value;

pub(crate) const KEYS: [&str; 2] = ["slow", "late"];

/// Key of a slow member's number.
pub(crate) const MEMBER: &str = "member";

/// Takes the key `slow` out of a volume's keys: the tables of slow members, each with its path.
///
/// # Errors
/// If the value is neither a table nor a list of tables.
pub(crate) fn take_slow(own: &mut Keys) -> Result<Vec<(String, Keys)>, ConfigError> {
    let refusal = |found: &Value| {
        let message = format!("found {found}; expected [volume.slow] or [[volume.slow]]");
        ConfigError::new("slow", message)
    };
    match own.remove("slow") {
        None => Ok(Vec::new()),
        Some(Value::Object(keys)) => Ok(vec![("slow".to_owned(), keys)]),
        Some(Value::Array(items)) => (items.into_iter().enumerate())
            .map(|(index, item)| match item {
                Value::Object(keys) => Ok((format!("slow[{index}]"), keys)),
                other => Err(refusal(&other)),
            })
            .collect(),
        Some(other) => Err(refusal(&other)),
    }
}

/// Makes members of a volume slow.
///
/// # Errors
/// Names the invalid key with its path.
pub(crate) fn make_slow(
    members: &mut [VolumeSpec],
    slow: Vec<(String, Keys)>,
) -> Result<(), ConfigError> {
    for (path, keys) in slow {
        slow_member(members, keys).map_err(|error| error.below(&path))?;
    }
    Ok(())
}

fn slow_member(members: &mut [VolumeSpec], mut keys: Keys) -> Result<(), ConfigError> {
    let count = members.len();
    let number = keys.remove(MEMBER);
    let mut known = known_keys(&schema_of::<SlowConfig>());
    // The number is taken out before, and the suggestion for a misspelt key should still know it.
    known.push(MEMBER.to_owned());
    fullstroke_contract::registry::check_known(&keys, &known)?;
    let fail = |message: String| Err(ConfigError::new(MEMBER, message));
    let place = number.as_ref().and_then(Value::as_u64);
    let Some(place) = place.filter(|&place| place < count as u64) else {
        let found = number.map_or("none".to_owned(), |found| found.to_string());
        return fail(format!(
            "found {found}; expected the number of a member, 0 to {}",
            count - 1
        ));
    };
    let config: SlowConfig = read(&keys)?;
    let member = &mut members[place as usize];
    let model = match member {
        VolumeSpec::Drive(model, _) => model,
        VolumeSpec::Volume { .. } => {
            let message =
                format!("found {place}, a volume; expected a drive. Give the key to that volume");
            return fail(message);
        }
    };
    if model.is_slow() {
        return fail(format!(
            "found {place} a second time; a member has one table of this kind"
        ));
    }
    *model = model.clone().slow(&config)?;
    Ok(())
}
