//! What the server below says unasked.

use crate::serve::Message;
use fullstroke_live::{ControlRequest, ControlResponse, ask};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// Until a server that does not answer is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// Listens at the control socket of the server below, and tells each signal, until
/// nobody wants them.
pub(crate) fn listen(control: PathBuf, export: Option<String>, told: Sender<Message>) -> std::io::Result<()> {
    let listener = thread::Builder::new().name("signals".into());
    let listening = move || {
        let mut after = None;
        loop {
            let question = ControlRequest::Signals { export: export.clone(), after };
            let heard = match ask(&control, &question) {
                Ok(ControlResponse::Signals { next, missed, signals }) => {
                    after = Some(next);
                    Message::Signals { signals, missed }
                }
                // It may be starting, or of a version without signals: the cache works
                // without them.
                Ok(_) | Err(_) => {
                    thread::sleep(RETRY);
                    Message::Signals { signals: Vec::new(), missed: 0 }
                }
            };
            if told.send(heard).is_err() {
                return;
            }
        }
    };
    listener.spawn(listening).map(drop)
}
