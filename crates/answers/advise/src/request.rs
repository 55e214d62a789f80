//! Question to `advise`, and reasons why there is no advice.

use crate::{Assumptions, Choices, Costs, Wishes};
use fullstroke_lab::LabError;
use fullstroke_stack::{Overrides, StackError};
use std::path::PathBuf;
use thiserror::Error;

/// Question to `advise`.
#[derive(Clone, Debug)]
pub struct AdviceRequest {
    /// Stack file with the workload and the hosts of the load.
    pub stack: PathBuf,
    /// Changes to the stack file.
    pub overrides: Overrides,
    /// Drive: a name of the library, or a file.
    pub drive: String,
    /// Permitted numbers of drives.
    pub counts: Vec<u32>,
    /// Price of a drive.
    pub drive_price: Option<f64>,
    /// Price of a controller.
    pub controller_price: Option<f64>,
    /// Price of a flash device beside the disks: of a cache, a special vdev or a log.
    pub flash_price: Option<f64>,
    /// Requirements of the array.
    pub wishes: Wishes,
    /// Layouts and settings to try.
    pub choices: Choices,
    /// Assumptions about failures.
    pub assumptions: Assumptions,
    /// Number of runs at the same time.
    pub jobs: usize,
    /// True if the runs keep timelines for pictures.
    pub timeline: bool,
    /// Currency, and the price of energy.
    pub costs: Costs,
    /// Largest number of requests that the extension of runs simulates; `None` for runs of the
    /// length that the user chose.
    pub budget: Option<u64>,
}

/// Reason why there is no advice.
#[derive(Debug, Error)]
pub enum AdviseError {
    /// Nothing meets the wishes. The message names the possible values.
    #[error("{0}")]
    Impossible(String),
    /// The stack cannot be used.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A run failed.
    #[error(transparent)]
    Lab(#[from] LabError),
}
