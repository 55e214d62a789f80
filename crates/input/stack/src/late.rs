//! The policy of a volume against slow members.

use fullstroke_contract::registry::{Keys, keys_of};
use fullstroke_contract::{ConfigError, MemberState, Node};
use fullstroke_volume::{LateVolume, Layout, Like, late_rule};
use serde_json::{Value, json};

/// The policy of a volume against slow members.
#[derive(Clone, Debug)]
pub(crate) struct LatePolicy {
    keys: Keys,
    /// True if the file has no policy, and the node only answers for unreadable sectors.
    only_unreadable: bool,
}

impl LatePolicy {
    /// Takes the key `late` out of a volume's keys. `None` for a volume without a policy.
    ///
    /// # Errors
    /// If the value is not a table.
    pub(crate) fn take(own: &mut Keys) -> Result<Option<LatePolicy>, ConfigError> {
        match own.remove("late") {
            None => Ok(None),
            Some(Value::Object(keys)) => Ok(Some(LatePolicy {
                keys,
                only_unreadable: false,
            })),
            Some(other) => {
                let message = format!("found {other}; expected a table with the key policy");
                Err(ConfigError::new("late", message))
            }
        }
    }

    /// Returns the policy of a volume with members that lose reads: the volume waits, and writes
    /// lost data again.
    pub(crate) fn of_unreadable() -> LatePolicy {
        LatePolicy {
            keys: keys_of([("policy".to_owned(), json!("wait"))]),
            only_unreadable: true,
        }
    }

    /// True if a stack file names the policy.
    pub(crate) fn is_given(&self) -> bool {
        !self.only_unreadable
    }

    /// Checks that a volume of this layout can have the policy.
    ///
    /// # Errors
    /// Names the invalid key.
    pub(crate) fn check(
        &self,
        layout: &dyn Layout,
        like: Option<&Value>,
    ) -> Result<(), ConfigError> {
        let below = |error: ConfigError| error.below("late");
        let rule = late_rule(&self.keys, layout.members()).map_err(below)?;
        let name = self.keys.get("policy").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        if rule.needs_redundancy() && layout.failures_survived() == 0 {
            let message = format!(
                "found {name:?}; {} has no second copy of its data. Expected \"wait\", or a layout with redundancy",
                layout.name()
            );
            return Err(below(ConfigError::new("policy", message)));
        }
        // md waits for each member or fails it (`md_error`); reads around a slow member need a
        // planner outside md.
        if !rule.is_of_md() && like == Some(&json!(Like::Md)) {
            let message = format!(
                "found {name:?}, which md does not have; expected \"wait\" or \"fail\". Or say like = \"ideal\" for the volume"
            );
            return Err(below(ConfigError::new("policy", message)));
        }
        Ok(())
    }

    /// Returns the node of the policy around `inside`. `layout` is a second instance of the
    /// volume's layout, and `rebuilt` are the members that are rebuilt from the start.
    ///
    /// # Errors
    /// Names the invalid key.
    pub(crate) fn around(
        &self,
        inside: Box<dyn Node>,
        mut layout: Box<dyn Layout>,
        rebuilt: &[u32],
    ) -> Result<Box<dyn Node>, ConfigError> {
        let rule = late_rule(&self.keys, layout.members()).map_err(|error| error.below("late"))?;
        let empty = MemberState::Rebuilding {
            done: Default::default(),
        };
        // A member under rebuild has no data to read around a slow member with.
        for &member in rebuilt {
            layout.set_member_state(member as usize, empty);
        }
        // md's stripes compute unreadable data themselves.
        let stripes = layout.md().is_some();
        let planner = (!stripes && layout.failures_survived() > 0).then_some(layout);
        Ok(Box::new(LateVolume::new(inside, rule, planner)))
    }
}
