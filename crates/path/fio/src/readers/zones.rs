//! Parsers of the zones of `zonemode=strided`.

use super::Done;
use crate::job::FioJob;
use crate::option::OptionValue;
use fullstroke_contract::{Reason, reason};

pub(crate) fn zonemode(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.zones.strided = match value.required()? {
        "none" | "0" => false,
        "strided" => true,
        "zbd" => {
            return Err(
                "is not simulated, and would change the I/O: zbd means the zones of a zoned block device; expected none or strided"
                    .into(),
            );
        }
        other => return Err(reason!("found `{other}`; expected none or strided")),
    };
    Ok(())
}

/// Parses bytes of a zone.
fn bytes(value: OptionValue<'_>) -> Result<u64, Reason> {
    let text = value.required()?;
    if text.ends_with('z') {
        return Err(reason!(
            "found `{text}`; the unit z counts the zones of a zoned block device; expected bytes"
        ));
    }
    value.integer()
}

pub(crate) fn zonesize(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.zones.size = Some(bytes(value)?).filter(|bytes| *bytes > 0);
    Ok(())
}

pub(crate) fn zonerange(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.zones.range = Some(bytes(value)?).filter(|bytes| *bytes > 0);
    Ok(())
}

pub(crate) fn zoneskip(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.zones.skip = bytes(value)?;
    Ok(())
}
