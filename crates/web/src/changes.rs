//! Changes of a stack file by a command, and the progress of runs.

use crate::session::Session;
use fullstroke_stack::Overrides;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Changes of a stack file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Changes {
    /// `key=value` pairs, in order.
    set: Vec<String>,
    /// Trace in place of the workload.
    trace: Option<PathBuf>,
    /// Job file of fio in place of the workload.
    fio: Option<PathBuf>,
    /// Further keys of the trace.
    trace_keys: Map<String, Value>,
    /// Drive in place of the stack's drive.
    drive: Option<String>,
    /// Seed in place of the stack's seed.
    seed: Option<u64>,
    /// Number of requests after which the workload ends.
    requests: Option<u64>,
}

impl Changes {
    pub(crate) fn overrides(self, session: &Session) -> Overrides {
        Overrides {
            set: self.set,
            trace: self.trace,
            fio: self.fio,
            trace_keys: self.trace_keys,
            drive: self.drive,
            seed: self.seed,
            requests: self.requests,
            files: session.files().clone(),
            ..Overrides::default()
        }
    }
}

pub(crate) type Progress<'a> = &'a dyn Fn(u64, Option<u64>);
