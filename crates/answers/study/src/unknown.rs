//! Unknown names in a study.

use fullstroke_contract::registry::nearest;
use thiserror::Error;

/// An unknown name, with the nearest name and all known ones.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum UnknownName {
    /// A name of an axis, a set, an aggregate or a format.
    #[error("there is no {what} `{name}`{near}; known: {known}")]
    Of {
        what: &'static str,
        name: String,
        near: String,
        known: String,
    },
    /// A name of a value of an axis.
    #[error("axis `{axis}` has no value `{name}`{near}; its values are {known}")]
    Value {
        axis: String,
        name: String,
        near: String,
        known: String,
    },
}

impl UnknownName {
    /// Returns the error for `name`, which is no `what`; `known` are all known names.
    pub(crate) fn of(what: &'static str, name: &str, known: &[&str]) -> UnknownName {
        UnknownName::Of {
            what,
            name: name.to_owned(),
            near: nearest(name, known),
            known: known.join(", "),
        }
    }

    /// Returns the error for `name`, which is no value of `axis`.
    pub(crate) fn value(axis: &str, name: &str, known: &[&str]) -> UnknownName {
        UnknownName::Value {
            axis: axis.to_owned(),
            name: name.to_owned(),
            near: nearest(name, known),
            known: known.join(", "),
        }
    }
}

impl From<UnknownName> for String {
    fn from(unknown: UnknownName) -> String {
        unknown.to_string()
    }
}
