//! Every link, by name.

use crate::{Link, fc_al, sas, scsi};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};

/// Function to build a link from its keys, for a host and `members` members.
pub type BuildLink = fn(&Keys, members: usize) -> Result<Box<dyn Link>, ConfigError>;

/// Every link.
#[rustfmt::skip]
pub const REGISTRY: &[PolicyEntry<BuildLink>] = &[
    PolicyEntry { name: "fc-al", summary: fc_al::SUMMARY, schema: schema_of::<fc_al::FcAlConfig>, build: fc_al::build },
    PolicyEntry { name: "scsi", summary: scsi::SUMMARY, schema: schema_of::<scsi::ScsiConfig>, build: scsi::build },
    PolicyEntry { name: "sas", summary: sas::SUMMARY, schema: schema_of::<sas::SasConfig>, build: sas::build },
];
