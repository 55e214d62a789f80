//! Comparison of drive models and real disks.
//!
//! | module | contents |
//! |---|---|
//! | [`extract`] | tracks, zones and mechanics of a disk, measured from outside |
//! | [`validate`] | a drive model compared with times measured on a disk |

pub mod extract;
pub mod validate;
