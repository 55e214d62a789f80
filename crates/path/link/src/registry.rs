//! Every link, by name.

use crate::{Link, fc_al, sas, scsi};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Entry, Keys, schema_of};

/// Function to build a link from its keys, for a host and `members` members.
pub type BuildLink = fn(&Keys, members: usize) -> Result<Box<dyn Link>, ConfigError>;

/// Every link.
#[rustfmt::skip]
pub const REGISTRY: &[Entry<BuildLink>] = &[
    Entry { name: "fc-al", summary: fc_al::SUMMARY, schema: schema_of::<fc_al::FcAlConfig>, build: fc_al::build },
    Entry { name: "scsi", summary: scsi::SUMMARY, schema: schema_of::<scsi::ScsiConfig>, build: scsi::build },
    Entry { name: "sas", summary: sas::SUMMARY, schema: schema_of::<sas::SasConfig>, build: sas::build },
];
