//! Ready loads: stack files inside the program, called `load:NAME` where a stack file is taken.
//!
//! A person without a trace begins with a ready load. Rates and sizes are chosen to be of a usual
//! order and are not measured; each file says so. A trace of the own load replaces them
//! (`--trace`).

use fullstroke_contract::registry::nearest;

/// Beginning of the name of a ready load.
pub const READY_PREFIX: &str = "load:";

/// A ready load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyLoad {
    /// Name behind `load:`.
    pub name: &'static str,
    /// Use in a few words.
    pub what: &'static str,
    /// Text of the stack file. The comment at the top describes the load.
    pub text: &'static str,
}

macro_rules! ready_loads {
    ($($name:literal: $what:literal,)*) => {
        &[$(ReadyLoad { name: $name, what: $what, text: include_str!(concat!("ready/", $name, ".toml")) }),*]
    };
}

/// All ready loads. The questions of the program and the page in a browser offer this list.
pub const READY_LOADS: &[ReadyLoad] = ready_loads![
    "office": "files of an office or a family",
    "vm-host": "virtual machines, or a small database",
    "films": "films for several viewers at a time",
    "backup": "backups that are written in order",
    "films-and-backup": "films for a family, and a backup at the same time",
    "photos": "photos and clips that are edited",
    "cameras": "recordings of cameras",
    "database": "a database whose log lies on another volume",
    "mail": "a mail server",
    "small-files": "a backup store of many small files",
    "build": "a build server",
];

impl ReadyLoad {
    /// Returns the description: the comment at the top of the file.
    pub fn about(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix('#'));
        lines.map(str::trim).collect::<Vec<_>>().join(" ")
    }
}

/// True if a path names a ready load, known or unknown, rather than a file.
pub fn is_ready(path: &std::path::Path) -> bool {
    path.to_str()
        .is_some_and(|name| name.starts_with(READY_PREFIX))
}

/// Returns the ready load that a path names; `None` for other paths.
pub(crate) fn ready(path: &std::path::Path) -> Option<Result<&'static ReadyLoad, String>> {
    let name = path.to_str()?.strip_prefix(READY_PREFIX)?;
    let found = READY_LOADS.iter().find(|load| load.name == name);
    Some(found.ok_or_else(|| {
        let known: Vec<&str> = READY_LOADS.iter().map(|load| load.name).collect();
        format!(
            "no ready load is called `{name}`{}; known: {}",
            nearest(name, &known),
            known.join(", ")
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Overrides, Stack};

    #[test]
    fn every_ready_load_is_a_stack() {
        for load in READY_LOADS {
            let path = format!("{READY_PREFIX}{}", load.name);
            let stack = Stack::load(path.as_ref(), &Overrides::default());
            assert!(stack.is_ok(), "{path}: {:?}", stack.err());
        }
    }
}
