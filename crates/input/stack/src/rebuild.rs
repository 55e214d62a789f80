//! Members that are rebuilt while a stack runs: keys of every volume.

use fullstroke_contract::registry::{Keys, keys_of, read};
use fullstroke_contract::{ConfigError, MemberState, RebuildSpeed, ZoneRate};
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Layout, Volume};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Unit of the filled part of a member: a page of md, which fills members by pages (`raid5.h`, 6.1,
/// `RAID5_STRIPE_SIZE`).
const PAGE_BYTES: u64 = 4096;

/// Keys of a volume for the rebuild of its members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RebuildKeys {
    /// Number of the member that is new and empty at the start of the run, counted from 0; or a
    /// list of several members. The members are filled together from the others while requests are
    /// served. Default none.
    pub(crate) rebuild: Members,
    /// Part of each of these members, from its first address on, that is filled already at the
    /// start of the run, as after an interruption. Default 0.
    pub(crate) rebuild_from: Option<Bytes>,
    /// Guaranteed speed: a rebuild below this speed, in bytes per second, does not give way to
    /// requests. Default 1000KiB, as in md.
    pub(crate) speed_limit_min: Option<Bytes>,
    /// Upper limit of a rebuild in bytes per second. Default 200000KiB for an array like md
    /// (`sync_speed_max`), otherwise none.
    pub(crate) speed_limit_max: Option<Bytes>,
    /// Number of I/Os of a rebuild in flight beside requests, as Linux 6.16 and later limit the
    /// number. Only for an array like md. Default none, as in Linux 6.12.
    pub(crate) sync_io_depth: Option<u32>,
}

/// One member, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected the number of a member, or a list of numbers such as [0, 2]"
)]
pub(crate) enum Members {
    One(u32),
    Several(Vec<u32>),
}

impl Default for Members {
    fn default() -> Members {
        Members::Several(Vec::new())
    }
}

/// A member that is rebuilt from the start of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RebuiltMember {
    /// Member indices from the top.
    pub path: Vec<usize>,
    /// Table of the volume in the stack file, such as `volume`.
    pub table: String,
    /// End of the addresses that are filled at the start.
    pub from: Sectors,
    /// End of the addresses to fill.
    pub used: Sectors,
    /// Write rates of the drive's zones; empty for a volume.
    pub zones: Vec<ZoneRate>,
    /// Upper limit in bytes per second.
    pub most: Option<Bytes>,
    /// Share of scattered records if the resilver of a pool reads ordered and scattered records;
    /// otherwise `None`. The two kinds have very different paces.
    pub scattered: Option<f64>,
}

pub(crate) const KEYS: [&str; 5] = [
    "rebuild",
    "rebuild_from",
    "speed_limit_min",
    "speed_limit_max",
    "sync_io_depth",
];

/// Largest number of I/Os in flight: with 64 KiB each, 1 GiB.
const DEPTH_MAX: u32 = 16_384;

impl RebuildKeys {
    /// Takes the keys out of a volume's keys.
    pub(crate) fn take(keys: &mut Keys) -> Result<RebuildKeys, ConfigError> {
        let own = KEYS
            .iter()
            .filter_map(|&key| Some((key.to_owned(), keys.remove(key)?)));
        let own = keys_of(own);
        // `like` stays in the keys, because the layout reads it as well.
        let is_md = keys.get("like") == Some(&serde_json::json!("md"));
        let keys: RebuildKeys = read(&own)?;
        if keys.speed_limit_max == Some(Bytes(0)) {
            let message = "at 0 bytes a second no rebuild ends; give a positive rate, or no key";
            return Err(ConfigError::new("speed_limit_max", message));
        }
        let refuse = |message: String| Err(ConfigError::new("sync_io_depth", message));
        match keys.sync_io_depth {
            Some(_) if !is_md => {
                refuse("only an array like md has this limit; leave it out".to_owned())
            }
            Some(depth) if !(1..=DEPTH_MAX).contains(&depth) => refuse(format!(
                "found {depth}; expected 1 to {DEPTH_MAX} (Linux 6.16: 32)"
            )),
            _ => Ok(keys),
        }
    }

    /// Returns the volume with its rebuild.
    pub(crate) fn of_volume(&self, volume: Volume) -> Volume {
        volume
            .rebuilding_from(self.members(), self.from(), self.speed())
            .with_sync_io_depth(self.sync_io_depth)
    }

    pub(crate) fn members(&self) -> &[u32] {
        match &self.rebuild {
            Members::One(member) => std::slice::from_ref(member),
            Members::Several(members) => members,
        }
    }

    /// Returns the filled part of each member at the start, in whole sectors.
    pub(crate) fn from(&self) -> Sectors {
        Sectors(self.rebuild_from.map_or(0, |bytes| bytes.0 / SECTOR_BYTES))
    }

    pub(crate) fn speed(&self) -> RebuildSpeed {
        let least = self
            .speed_limit_min
            .unwrap_or(RebuildSpeed::default().least);
        RebuildSpeed {
            least,
            most: self.speed_limit_max,
        }
    }

    /// Checks the key `rebuild_from`.
    fn check_from(&self, layout: &dyn Layout) -> Result<(), ConfigError> {
        let Some(from) = self.rebuild_from else {
            return Ok(());
        };
        let fail = |message: String| Err(ConfigError::new("rebuild_from", message));
        if self.members().is_empty() {
            return fail(format!(
                "found {from}, and no member is rebuilt; give `rebuild`, or remove this key"
            ));
        }
        if from.0 % PAGE_BYTES != 0 {
            return fail(format!(
                "found {from}; expected a multiple of {PAGE_BYTES} bytes"
            ));
        }
        let used = self
            .members()
            .iter()
            .map(|&one| layout.member_used(one as usize));
        // The smallest, because one key holds for all rebuilt members.
        let used = used.min().map_or(Bytes(0), Sectors::bytes);
        if from >= used {
            return fail(format!(
                "found {from}; expected less than {used}, the part of the member that the array uses"
            ));
        }
        Ok(())
    }

    /// Checks that the members can be rebuilt in a volume of this layout.
    pub(crate) fn check(&self, layout: &mut dyn Layout) -> Result<(), ConfigError> {
        let fail = |message: String| Err(ConfigError::new("rebuild", message));
        let (members, name) = (layout.members(), layout.name());
        for (index, &member) in self.members().iter().enumerate() {
            if member as usize >= members {
                let last = members - 1;
                return fail(format!(
                    "there is no member {member}: the {members} are counted from 0 to {last}"
                ));
            }
            if self.members()[..index].contains(&member) {
                return fail(format!("member {member} is listed twice; list each once"));
            }
            if layout.failed().contains(&member) {
                return fail(format!(
                    "member {member} has failed, by the key `failed`; list it in one of them"
                ));
            }
        }
        self.check_from(layout)?;
        let lost = self.members().len() + layout.failed().len();
        assert!(
            lost <= members,
            "{lost} of {members} members are lost: each was checked, and is listed once"
        );
        let most = layout.failures_survived();
        // The number of failures is not enough: a mirror of pairs survives one failure in each
        // pair, but not two in one pair.
        for &member in self.members() {
            layout.set_member_state(member as usize, MemberState::Failed);
        }
        let answers = layout.answers() && most > 0;
        for &member in self.members() {
            // The caller gets the layout as it was: the states were set only for the question.
            layout.set_member_state(member as usize, MemberState::Alive);
        }
        if !self.members().is_empty() && !answers {
            return fail(format!(
                "{lost} members would be lost, and {name} survives {most}: nothing is left to rebuild from"
            ));
        }
        Ok(())
    }
}
