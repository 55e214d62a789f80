//! Pictures of their own, beside those of pages: SVG files that commands write.
//!
//! | file | what |
//! |---|---|
//! | `curves.rs` | curves beside each other in one frame |
//! | `drive.rs` | a drive: zone rates, seek curve, order of tracks |
//! | `watts.rs` | what drives drew over time |
//! | `heads.rs` | how far apart heads are |
//! | `volumes.rs` | volumes beside each other |
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
