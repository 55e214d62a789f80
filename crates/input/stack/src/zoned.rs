//! Drives with zones below a volume.

use crate::spec::VolumeSpec;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_drive::DriveModel;
use fullstroke_volume::{DriveZones, ZONED_REGISTRY};
use serde_json::json;

/// The key of a layout with the zones of its drive.
const ZONES: &str = "zones";

/// True for a layout above a drive with zones.
pub(crate) fn is_zoned(layout: &str) -> bool {
    ZONED_REGISTRY.iter().any(|entry| entry.name == layout)
}

/// Gives a layout above a drive with zones the zones of the drive. Refuses
/// host-managed drives below any other layout, because such drives refuse writes out of order.
///
/// # Errors
/// Names the key of the volume.
pub(crate) fn complete(
    layout: &str,
    keys: &mut Keys,
    members: &[VolumeSpec],
) -> Result<(), ConfigError> {
    if !is_zoned(layout) {
        let managed =
            |member: &VolumeSpec| member.as_drive().is_some_and(DriveModel::is_host_managed);
        // One drive in a `jbod` is the drive itself. Its workload must keep the order of writes.
        let alone = members.len() == 1 && layout == "jbod";
        if !alone && members.iter().any(managed) {
            let message = format!(
                "found host-managed drives below {layout}; such a drive refuses every write that is not at the write pointer of its zone, and {layout} writes in any order. \
                 Expected conventional or drive-managed drives, or each drive below dm-zoned: [[volume.members]] with layout = \"dm-zoned\""
            );
            return Err(ConfigError::new("drive", message));
        }
        return Ok(());
    }
    if keys.contains_key(ZONES) {
        let message = "the drive file has the zones of the drive; remove this key, and set drive_settings.zoned";
        return Err(ConfigError::new(ZONES, message));
    }
    let drive = match members {
        [member] => member.as_drive(),
        _ => None,
    };
    if let Some(zones) = drive.and_then(DriveModel::zones) {
        let zones = DriveZones {
            sectors: zones.zone,
            count: zones.count,
            conventional: zones.conventional,
            full: zones.full,
        };
        keys.insert(ZONES.to_owned(), json!(zones));
    }
    Ok(())
}
