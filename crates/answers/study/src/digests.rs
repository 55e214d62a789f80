//! Keys of results in the store.

use fullstroke_stack::{Stack, StackError};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

/// Digests of stacks and their traces. Each trace is read once.
#[derive(Debug, Default)]
pub struct Digests {
    traces: Mutex<BTreeMap<PathBuf, String>>,
}

impl Digests {
    /// Returns the key of a stack's results: the digest of the stack and that of its trace.
    ///
    /// # Errors
    /// An unreadable trace.
    pub fn of(&self, stack: &Stack) -> Result<String, StackError> {
        let Some(trace) = stack.trace_file() else {
            return Ok(stack.digest().to_owned());
        };
        let known = self
            .traces
            .lock()
            .ok()
            .and_then(|traces| traces.get(&trace).cloned());
        let of_trace = match known {
            Some(known) => known,
            None => {
                let found = digest_of_files(&stack.trace_files()).map_err(|error| {
                    StackError::whole(
                        trace.display().to_string(),
                        format!("cannot be read: {error}"),
                    )
                })?;
                if let Ok(mut traces) = self.traces.lock() {
                    traces.insert(trace, found.clone());
                }
                found
            }
        };
        Ok(hex(&Sha256::digest(format!(
            "{} {of_trace}",
            stack.digest()
        ))))
    }
}

fn digest_of_files(paths: &[PathBuf]) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    for path in paths {
        let mut file = File::open(path)?;
        loop {
            match io::Read::read(&mut file, &mut buffer)? {
                0 => break,
                length => hash.update(&buffer[..length]),
            }
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Returns the first sixteen hexadecimal digits.
pub(crate) fn hex(hash: &[u8]) -> String {
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
