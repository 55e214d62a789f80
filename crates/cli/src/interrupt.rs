//! Ctrl-C, and the other signals that ask a command to end.

use fullstroke_table::remove_partial_files;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::thread;

/// Commands that have no end of their own in mind leave nothing half-written:
/// at a signal, the files that are under construction are removed and the
/// process ends with the status that shells expect, 128 and the signal's number.
///
/// Not for `serve`, `replay`, `record`, `stream-test` and `top`, which have things to finish.
pub(crate) fn clean_up_at_signals() {
    // Where signals cannot be caught, they end the process as ever.
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else {
        return;
    };
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            remove_partial_files();
            std::process::exit(128 + signal);
        }
    });
}
