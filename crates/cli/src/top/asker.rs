//! Polls the server in a separate thread, so that keys work while the server does not answer.

use super::{NoStatus, look_at};
use fullstroke_live::Status;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// Receiver of the answers and errors.
pub(super) struct Asker(Receiver<Result<Status, NoStatus>>);

impl Asker {
    /// Starts a thread that polls the server at `path`, with a pause before each question.
    pub(super) fn start(path: PathBuf, pause: Duration) -> Asker {
        // The queue holds one answer, so that no answer is old.
        let (sender, receiver) = sync_channel(1);
        thread::spawn(move || {
            loop {
                thread::sleep(pause);
                if sender.send(look_at(&path)).is_err() {
                    return;
                }
            }
        });
        Asker(receiver)
    }

    /// Returns the newest unread answer, or `None`.
    pub(super) fn news(&self) -> Option<Result<Status, NoStatus>> {
        self.0.try_iter().last()
    }
}
