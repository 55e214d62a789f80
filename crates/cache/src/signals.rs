//! What the server below says unasked.

use fullstroke_live::{ControlRequest, ControlResponse, Said, ask};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Until a server that does not answer is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// Listens at the control socket of the server below, and tells each signal and how many
/// were missed before, until nobody wants them.
pub(crate) fn listen(
    control: PathBuf,
    export: Option<String>,
    host: Option<String>,
    tell: impl Fn(Vec<Said>, u64) -> bool + Send + 'static,
) -> std::io::Result<()> {
    let listener = thread::Builder::new().name("signals".into());
    let listening = move || {
        let mut after = None;
        loop {
            let question = ControlRequest::Signals { export: export.clone(), after, host: host.clone() };
            let (signals, missed) = match ask(&control, &question) {
                Ok(ControlResponse::Signals { next, missed, signals }) => {
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
            if !tell(signals, missed) {
                return;
            }
        }
    };
    listener.spawn(listening).map(drop)
}
