//! Policies against slow members.
//!
//! A member may answer late without failing. The node [`LateVolume`] stands around a volume, watches
//! each member I/O, and lets a policy decide:
//!
//! | file | policy |
//! |---|---|
//! | `wait.rs` | waits, as Linux's md does |
//! | `around.rs` | reads late data around the member |
//! | `fail.rs` | fails the member after a timeout |
//! | `sit_out.rs` | leaves a persistently slow member out of reads, as OpenZFS 2.4 does |
//! | `node.rs` | the node |
//! | `peers.rs` | finds members that are slower than the other members |
//!
//! With each policy the node also answers for unreadable sectors: the other members give the data,
//! and the member gets the data again. A volume without a policy has no such node.
//!
//! A read around a member takes no locks of rows, and so may overtake a write of the same row. The
//! times are right all the same; a store of bytes does not use this node. An array on devices uses
//! the same rules ([`LateRule`]), and reads around members under the locks of its rows
//! (`real/store/src/array/race.rs`).

mod around;
mod fail;
mod node;
mod peers;
mod sit_out;
mod wait;

#[cfg(test)]
mod tests;

pub use around::AroundConfig;
pub use fail::FailConfig;
pub use node::LateVolume;
pub use peers::{IoTotals, PeerChange, PeerConfig, PeerWatch};
pub use sit_out::SitOutConfig;
pub use wait::WaitConfig;

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, find, schema_of};
use fullstroke_units::{Duration, Time};
use serde_json::Value;

/// Builds a policy from its keys and the number of members.
pub type BuildLateRule = fn(&Keys, usize) -> Result<Box<dyn LateRule>, ConfigError>;

/// Every policy against slow members. A new policy is a new file and a line here.
#[rustfmt::skip]
pub const LATE_REGISTRY: &[PolicyEntry<BuildLateRule>] = &[
    PolicyEntry { name: "wait", summary: "waits for every member, as Linux's md does", schema: schema_of::<WaitConfig>, build: wait::build },
    PolicyEntry { name: "read-around", summary: "computes late data from the other members, or reads another copy; the first answer counts", schema: schema_of::<AroundConfig>, build: around::build },
    PolicyEntry { name: "fail", summary: "fails a member that has not answered an I/O after a timeout", schema: schema_of::<FailConfig>, build: fail::build },
    PolicyEntry { name: "sit-out", summary: "leaves a persistently slow member out of reads for a while, as OpenZFS 2.4 does", schema: schema_of::<SitOutConfig>, build: sit_out::build },
];

/// A policy against slow members.
///
/// - **Events in**: [`ended`](LateRule::ended).
/// - **Getters**: the other methods.
pub trait LateRule: Send {
    /// Returns the time after which a read counts as late and is read around. `None` = never.
    fn reads_around_after(&self) -> Option<Duration> {
        None
    }

    /// Returns the time after which a member that has not answered an I/O is failed. `None` =
    /// never.
    fn fails_after(&self) -> Option<Duration> {
        None
    }

    /// True if reads leave `member` out at `now`.
    fn sits_out(&self, _member: usize, _now: Time) -> bool {
        false
    }

    /// Takes note that a read of `member` took `response`. Returns true if a member begins to sit
    /// out.
    fn ended(&mut self, _now: Time, _member: usize, _response: Duration) -> bool {
        false
    }

    /// True if the policy needs the other members' data.
    fn needs_redundancy(&self) -> bool {
        true
    }

    /// True if md has the policy.
    fn is_of_md(&self) -> bool {
        false
    }
}

/// Builds the policy of the table `late` of a volume. The key `policy` names the policy.
///
/// # Errors
/// Names the invalid key.
pub fn late_rule(keys: &Keys, members: usize) -> Result<Box<dyn LateRule>, ConfigError> {
    let mut keys = keys.clone();
    let name = match keys.remove("policy") {
        Some(Value::String(name)) => name,
        Some(other) => {
            let message = format!("found {other}; expected the name of a policy");
            return Err(ConfigError::new("policy", message));
        }
        None => {
            let known: Vec<&str> = LATE_REGISTRY.iter().map(|entry| entry.name).collect();
            let message = format!("found none; expected one of {}", known.join(", "));
            return Err(ConfigError::new("policy", message));
        }
    };
    let entry = find(
        "policy against slow members",
        LATE_REGISTRY,
        "policy",
        &name,
    )?;
    (entry.build)(&keys, members)
}
