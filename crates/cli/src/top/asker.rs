//! Polls the server in a separate thread, so that keys work while the server does not answer.

use super::question::{NoStatus, look_at};
use fullstroke_live::ServerStatus;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// Receiver of the answers and errors.
pub(super) struct AnswerReceiver(Receiver<Result<ServerStatus, NoStatus>>);

impl AnswerReceiver {
    /// Starts a thread that polls the server at `path`, with a pause before each question.
    pub(super) fn start(path: PathBuf, pause: Duration) -> AnswerReceiver {
        // The queue holds one answer, so that no answer is old.
        let (sender, receiver) = sync_channel(1);
        thread::spawn(move || {
            loop {
                thread::sleep(pause);
                if sender.send(look_at(&path)).is_err() {
                    // The screen has ended and dropped the receiver.
                    return;
                }
            }
        });
        AnswerReceiver(receiver)
    }

    /// Returns the newest unread answer, or `None`.
    pub(super) fn newest_answer(&self) -> Option<Result<ServerStatus, NoStatus>> {
        self.0.try_iter().last()
    }
}
