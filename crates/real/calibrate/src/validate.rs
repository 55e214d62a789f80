//! Compares the drive model with times measured on real disks.
//!
//! A validation trace holds requests measured on a real disk, one at a time. [`ReplayedTrace`]
//! gives the same requests to a model in a closed loop, with the think times of the measurement.
//! [`Validation`] reports the distance between the two distributions of service time. Single
//! requests are not compared, because a trace records neither the rotational phase nor the state of
//! the disk's buffer before the first request.
//!
//! | file | contents |
//! |---|---|
//! | `parallel.rs` | work shared among threads |
//! | `find.rs` | traces under a path, and the drive of each trace |
//! | `paced.rs` | requests with as many outstanding as were measured |
//! | `replay.rs` | closed replay of a trace on a drive |
//! | `sample.rs` | quantiles, the demerit figure, the noise of a sample |
//! | `validation.rs` | the comparison, whole and by class of request |
//! | `leave_one_out.rs` | rules chosen on all disks but the tested one |
//! | `own.rs` | a drive fitted to the log of the user's own disk |
//! | `log.rs` | both times of every request, as a table |
//! | `error.rs` | errors of the validation |

mod error;
mod find;
mod leave_one_out;
mod log;
mod own;
mod paced;
mod parallel;
mod replay;
mod sample;
mod validation;

pub use error::ValidateError;
pub use find::{
    FailedTrace, FoundDrive, SkippedTrace, TraceFile, Traces, find_drive, find_traces, model_beside,
};
pub use leave_one_out::{
    Distance, GAIN_MIN, HeldOutDisk, LeaveOneOut, MeasuredDisk, leave_one_out,
};
pub use log::write_log;
pub use own::{
    FittedDrive, FittedParameter, JudgedRequests, LOGGED_MIN, LogPart, ModelVerdict, OwnDisk,
    OwnLog, Rotation, RotationEvidence, TimeOrigin, Trust, fit_given_disk, fit_own_disk,
};
pub use replay::ReplayedTrace;
pub use sample::{EmpiricalTimes, bootstrap_noise, demerit};
pub use validation::{ClassValidation, RESAMPLES, Validation};
