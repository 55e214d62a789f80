//! Simulated times of a log's requests.

use super::log::OwnLog;
use crate::validate::ValidateError;
use crate::validate::paced::{Paced, simulate};
use fullstroke_drive::DriveModel;
use std::sync::Arc;

/// Returns the times of `requests` of the log on `model`.
pub(super) fn times_of(
    log: &OwnLog,
    model: &DriveModel,
    requests: &Arc<[Paced]>,
) -> Result<Vec<f64>, ValidateError> {
    let (completed, times) = simulate(model, requests).map_err(|source| ValidateError::Model {
        drive: model.config().title.clone(),
        source,
    })?;
    if completed < requests.len() as u64 {
        let file = log.file.clone();
        return Err(ValidateError::ClockEnded {
            file,
            completed,
            requests: requests.len(),
        });
    }
    Ok(times)
}
