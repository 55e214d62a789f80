//! Asks the server again and again, in a thread of its own: a server that does
//! not answer must not keep the keys from working.

use super::{NoStatus, look_at};
use fullstroke_live::Status;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// Where answers arrive, or why there are none.
pub(super) struct Asker(Receiver<Result<Status, NoStatus>>);

impl Asker {
    /// Asks at `path`, and pauses between answers and questions.
    pub(super) fn start(path: PathBuf, pause: Duration) -> Asker {
        // One answer waits at most, so that none is old.
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

    /// The newest answer that was not taken yet.
    pub(super) fn news(&self) -> Option<Result<Status, NoStatus>> {
        self.0.try_iter().last()
    }
}
