//! What the server below says unasked.

use crate::{ControlRequest, ControlResponse, Said, ask};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Until a server that does not answer is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// Nobody wants signals any more.
pub(crate) struct Gone;

/// Listens at the control socket of the server below, and tells each signal and how many
/// were missed before. `tell` answers what was written for those without an address, in
/// sectors, if it knows; the server below is told with the next question.
pub(crate) fn listen(
    control: PathBuf,
    export: Option<String>,
    host: Option<String>,
    tell: impl Fn(Vec<Said>, u64) -> Result<Option<u64>, Gone> + Send + 'static,
) -> std::io::Result<()> {
    let listener = thread::Builder::new().name("signals".into());
    let listening = move || {
        let (mut after, mut wrote) = (None, None);
        loop {
            let question = ControlRequest::Signals {
                export: export.clone(),
                after,
                host: host.clone(),
                wrote,
            };
            let (signals, missed) = match ask(&control, &question) {
                Ok(ControlResponse::Signals {
                    next,
                    missed,
                    signals,
                }) => {
                    after = Some(next);
                    (signals, missed)
                }
                // It may be starting, or of a version without signals: the cache works
                // without them.
                Ok(_) | Err(_) => {
                    thread::sleep(RETRY);
                    (Vec::new(), 0)
                }
            };
            match tell(signals, missed) {
                Ok(done) => wrote = done,
                Err(Gone) => return,
            }
        }
    };
    listener.spawn(listening).map(drop)
}
