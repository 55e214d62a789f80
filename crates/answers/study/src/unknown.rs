//! Names in a study that stand for nothing.

use fullstroke_contract::registry::nearest;
use thiserror::Error;

/// A name that stands for nothing, with the nearest name and all known ones.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum UnknownName {
    /// Of an axis, a set, an aggregate or a format.
    #[error("there is no {what} `{name}`{near}; known: {known}")]
    Of {
        what: &'static str,
        name: String,
        near: String,
        known: String,
    },
    /// Of a value of an axis.
    #[error("axis `{axis}` has no value `{name}`{near}; its values are {known}")]
    Value {
        axis: String,
        name: String,
        near: String,
        known: String,
    },
}

impl UnknownName {
    /// `name` is no `what`; `known` are the names of all.
    pub(crate) fn of(what: &'static str, name: &str, known: &[&str]) -> UnknownName {
        UnknownName::Of {
            what,
            name: name.to_owned(),
            near: nearest(name, known),
            known: known.join(", "),
        }
    }

    /// `name` is no value of `axis`.
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
