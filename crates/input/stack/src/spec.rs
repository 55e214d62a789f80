//! A volume as the stack file describes it.

use crate::drive_tracks::DriveTracks;
use crate::late::LatePolicy;
use crate::rebuild::RebuildKeys;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry};
use fullstroke_drive::DriveModel;
use fullstroke_units::{Angle, Seed};
use fullstroke_volume::{BuildLayout, Coordination, MdRecords};

/// Description of a drive, or of a volume of members.
#[derive(Clone)]
pub(crate) enum VolumeSpec {
    Drive(DriveModel, DriveTracks),
    Volume {
        layout: &'static PolicyEntry<BuildLayout>,
        keys: Keys,
        members: Vec<VolumeSpec>,
        /// Members to rebuild, and the speed limits.
        rebuild: RebuildKeys,
        /// Coordination of the members' queues; `None` = members do not know each other's queues.
        coordination: Option<Coordination>,
        /// Superblocks and bitmap of an array like md; `None` for an array without them.
        records: Option<MdRecords>,
        /// The device of the journal of an array like md, behind the members.
        journal: Option<Box<DriveModel>>,
        /// Policy against slow members. `None` = the volume has no node for it.
        late: Option<LatePolicy>,
        /// Path of the volume in the stack file, for errors.
        path: String,
    },
}

impl VolumeSpec {
    /// Returns true for a pool like ZFS.
    pub(crate) fn is_pool(&self) -> bool {
        matches!(self, VolumeSpec::Volume { layout, .. } if fullstroke_pool::kind_of(layout.name).is_some())
    }

    /// Gives each drive its own random angle at time 0. The drives are numbered from `next`.
    pub(crate) fn turn_apart(&mut self, seed: Seed, next: &mut u32) -> Result<(), ConfigError> {
        if self.is_xor() {
            let message = "found \"apart\"; the disks of an xor array turn together";
            return Err(ConfigError::new("spindles", message));
        }
        match self {
            VolumeSpec::Drive(model, _) => {
                // The stream is named by a number, because equal drives must turn apart.
                let mut random = seed.stream(&format!("spindle of drive {next}"));
                *model = model.clone().turned(Angle(random.below(u64::MAX)));
                *next += 1;
                Ok(())
            }
            VolumeSpec::Volume { members, .. } => members
                .iter_mut()
                .try_for_each(|member| member.turn_apart(seed, next)),
        }
    }

    pub(crate) fn is_xor(&self) -> bool {
        matches!(self, VolumeSpec::Volume { layout, .. } if layout.name == fullstroke_smart::LAYOUT.name)
    }

    /// Returns true if the volume or a member is an xor array.
    pub(crate) fn has_xor(&self) -> bool {
        let VolumeSpec::Volume { members, .. } = self else {
            return false;
        };
        self.is_xor() || members.iter().any(VolumeSpec::has_xor)
    }

    /// Returns true for a concatenation of one member, which equals this member.
    pub(crate) fn is_only_its_member(&self) -> bool {
        matches!(self, VolumeSpec::Volume { layout, members, .. } if layout.name == "jbod" && members.len() == 1)
    }

    /// Returns true if the volume is in fact a single drive.
    pub(crate) fn is_drive(&self) -> bool {
        self.as_drive().is_some()
    }

    /// Returns the drive if the volume is in fact a single drive.
    pub(crate) fn as_drive(&self) -> Option<&DriveModel> {
        match self {
            VolumeSpec::Drive(model, _) => Some(model),
            VolumeSpec::Volume { members, .. } if self.is_only_its_member() => {
                members[0].as_drive()
            }
            VolumeSpec::Volume { .. } => None,
        }
    }
}
