//! Separate pictures besides those of pages: SVG files that commands write.
//!
//! | file | contents |
//! |---|---|
//! | `curves.rs` | several curves in one frame |
//! | `drive.rs` | a drive: zone rates, seek curve, order of tracks |
//! | `watts.rs` | power of the drives over time |
//! | `heads.rs` | distance between heads |
//! | `volumes.rs` | volumes side by side |
//! | `distributions.rs` | measured and simulated times of disks |
//! | `study.rs` | a figure of a study |

mod curves;
mod distributions;
mod drive;
mod heads;
mod study;
mod volumes;
mod watts;

pub use distributions::{Distributions, distributions};
pub use drive::DrivePicture;
pub use heads::heads;
pub use study::figure;
pub use volumes::{VolumeDrawing, volumes};
pub use watts::watts;
