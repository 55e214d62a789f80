//! The link of a stack, between a volume and its drives.

use fullstroke_contract::registry::{Keys, PolicyEntry, check_known, find, known_keys};
use fullstroke_contract::{ConfigError, Node};
use fullstroke_link::{BuildLink, Link, LinkNode, REGISTRY};
use serde_json::Value;

/// Description of a link.
#[derive(Clone)]
pub(crate) struct LinkSpec {
    entry: &'static PolicyEntry<BuildLink>,
    keys: Keys,
}

impl Default for LinkSpec {
    /// The link of an xor array if the stack names none: an FC-AL loop, as in Chang & Du, section
    /// 4.1.2.
    fn default() -> LinkSpec {
        LinkSpec {
            entry: &REGISTRY[0],
            keys: Keys::new(),
        }
    }
}

impl LinkSpec {
    /// Reads the table `[link]`.
    ///
    /// # Errors
    /// If the kind of link or a key is unknown.
    pub(crate) fn read(mut keys: Keys) -> Result<LinkSpec, ConfigError> {
        let names = || {
            REGISTRY
                .iter()
                .map(|entry| entry.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let name = match keys.remove("kind") {
            Some(Value::String(name)) => name,
            Some(other) => {
                let message = format!("found {other}; expected the name of a link: {}", names());
                return Err(ConfigError::new("kind", message));
            }
            None => {
                return Err(ConfigError::new(
                    "kind",
                    format!("the link has no kind; set one of {}", names()),
                ));
            }
        };
        let entry = find("link", REGISTRY, "kind", &name)?;
        // Here, because a link is built only below a volume with drives, and the key would be wrong
        // anyway.
        check_known(&keys, &known_keys(&(entry.schema)()))?;
        Ok(LinkSpec { entry, keys })
    }

    /// Builds the node between a volume and `members` members.
    ///
    /// # Errors
    /// Errors of the link, at the key.
    pub(crate) fn node(&self, members: usize) -> Result<Box<dyn Node>, ConfigError> {
        let (kind, link) = self.build(members)?;
        Ok(Box::new(LinkNode::new(link, kind)))
    }

    /// Builds a link for `members` members. Returns its name and the link.
    ///
    /// # Errors
    /// Errors of the link, at the key.
    pub(crate) fn build(
        &self,
        members: usize,
    ) -> Result<(&'static str, Box<dyn Link>), ConfigError> {
        let link = (self.entry.build)(&self.keys, members).map_err(|error| error.below("link"))?;
        Ok((self.entry.name, link))
    }
}
