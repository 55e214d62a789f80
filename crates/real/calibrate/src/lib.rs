//! Comparison of drive models and real disks.
//!
//! | module | contents |
//! |---|---|
//! | [`depths`] | a drive file from response times by depth, `smartctl` and the data sheet |
//! | [`extract`] | tracks, zones and mechanics of a disk, measured from outside |
//! | [`validate`] | a drive model compared with times measured on a disk |

pub mod depths;
pub mod extract;
pub mod validate;
