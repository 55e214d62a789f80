//! What the server below says unasked.

use crate::{ControlRequest, ControlResponse, Said, ask};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Until a server that does not answer is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// Nobody wants signals any more.
pub(crate) struct Gone;

/// What is told of the server below.
pub(crate) enum Word {
    /// What it has said, and how many signals it had forgotten before.
    Signals { signals: Vec<Said>, missed: u64 },
    /// Why it has said nothing: it does not answer, or knows no signals.
    Nothing(String),
}

/// Listens at the control socket of the server below, and tells each signal and how many
/// were missed before; or, again and again, why there are none. `tell` answers what was written for those without an address, in
/// sectors, if it knows; the server below is told with the next question.
pub(crate) fn listen(
    control: PathBuf,
    export: Option<String>,
    host: Option<String>,
    tell: impl Fn(Word) -> Result<Option<u64>, Gone> + Send + 'static,
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
                    Word::Signals { signals, missed }
                }
                // It may be starting, or of a version without signals.
                Ok(
                    ControlResponse::Refused { message }
                    | ControlResponse::Wrong { message }
                    | ControlResponse::Done { message },
                ) => Word::Nothing(message),
                Ok(ControlResponse::Status(_)) => Word::Nothing("it knows no signals".to_owned()),
                Err(error) => Word::Nothing(error.to_string()),
            };
            let is_silent = matches!(word, Word::Nothing(_));
            match tell(word) {
                Ok(done) => wrote = done,
                Err(Gone) => return,
            }
            if is_silent {
                thread::sleep(RETRY);
            }
        }
    };
    listener.spawn(listening).map(drop)
}
