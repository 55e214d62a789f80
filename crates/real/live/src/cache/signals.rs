//! Signals of the server below.

use crate::{ControlRequest, ControlResponse, SignalExtent, ask};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Pause before a silent server is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// Error: no receiver wants signals any more.
pub(crate) struct NoReceivers;

/// A message about the server below.
pub(crate) enum BelowMessage {
    /// Signals, and the number of signals dropped by the server before.
    Signals {
        signals: Vec<SignalExtent>,
        missed: u64,
    },
    /// Reason why there are no signals: the server does not answer, or does not support signals.
    Nothing(String),
}

/// Listens at the control socket of the server below. Passes on the signals with the number of
/// missed signals. While there are none, repeatedly passes on the reason.
///
/// `tell` returns the sectors written for signals without an address, if known. The next question
/// reports this number to the server below.
pub(crate) fn listen(
    control: PathBuf,
    export: Option<String>,
    host: Option<String>,
    tell: impl Fn(BelowMessage) -> Result<Option<u64>, NoReceivers> + Send + 'static,
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
            let word = match ask(&control, &question) {
                Ok(ControlResponse::Signals {
                    next,
                    missed,
                    signals,
                }) => {
                    after = Some(next);
                    BelowMessage::Signals { signals, missed }
                }
                // The server may be starting, or have a version without signals.
                Ok(
                    ControlResponse::Refused { message }
                    | ControlResponse::Wrong { message }
                    | ControlResponse::Done { message },
                ) => BelowMessage::Nothing(message),
                Ok(ControlResponse::Status(_)) => {
                    BelowMessage::Nothing("it knows no signals".to_owned())
                }
                Err(error) => BelowMessage::Nothing(error.to_string()),
            };
            let is_silent = matches!(word, BelowMessage::Nothing(_));
            match tell(word) {
                Ok(done) => wrote = done,
                Err(NoReceivers) => return,
            }
            if is_silent {
                thread::sleep(RETRY);
            }
        }
    };
    listener.spawn(listening).map(drop)
}
