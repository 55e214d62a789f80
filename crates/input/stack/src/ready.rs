//! Ready loads: stack files inside the program, called `load:NAME` where a stack file is taken.
//!
//! A person without a trace begins with a ready load. Rates and sizes are chosen to be of a usual
//! order and are not measured; each file says so. A trace of the own load replaces them
//! (`--trace`).

/// Beginning of the name of a ready load.
pub const READY_PREFIX: &str = "load:";

/// A ready load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyLoad {
    /// Name behind `load:`.
    pub name: &'static str,
    /// Use in a few words.
    pub what: &'static str,
    /// Text of the stack file.
    pub text: &'static str,
}

/// All ready loads.
pub const READY_LOADS: [ReadyLoad; 10] = [
    ReadyLoad {
        name: "office",
        what: "files of an office or a family",
        text: include_str!("ready/office.toml"),
    },
    ReadyLoad {
        name: "vm-host",
        what: "virtual machines, or a small database",
        text: include_str!("ready/vm-host.toml"),
    },
    ReadyLoad {
        name: "films",
        what: "films for several viewers at a time",
        text: include_str!("ready/films.toml"),
    },
    ReadyLoad {
        name: "backup",
        what: "backups that are written in order",
        text: include_str!("ready/backup.toml"),
    },
    ReadyLoad {
        name: "films-and-backup",
        what: "films for a family, and a backup at the same time",
        text: include_str!("ready/films-and-backup.toml"),
    },
    ReadyLoad {
        name: "cameras",
        what: "recordings of cameras",
        text: include_str!("ready/cameras.toml"),
    },
    ReadyLoad {
        name: "database",
        what: "a database whose log lies on another volume",
        text: include_str!("ready/database.toml"),
    },
    ReadyLoad {
        name: "mail",
        what: "a mail server",
        text: include_str!("ready/mail.toml"),
    },
    ReadyLoad {
        name: "small-files",
        what: "a backup store of many small files",
        text: include_str!("ready/small-files.toml"),
    },
    ReadyLoad {
        name: "build",
        what: "a build server",
        text: include_str!("ready/build.toml"),
    },
];

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
            "no ready load is called `{name}`; known: {}",
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
