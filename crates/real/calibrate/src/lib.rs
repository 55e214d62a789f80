//! Drive models and real disks, held against each other.
//!
//! | module | contents |
//! |---|---|
//! | [`extract`] | tracks, zones and mechanics of a disk, found from outside |
//! | [`validate`] | a drive model beside times that were measured on a disk |

pub mod extract;
pub mod validate;
