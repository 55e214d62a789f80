//! Handling of Ctrl-C and other signals that end a command.

use fullstroke_table::remove_partial_files;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::thread;

/// Removes temporary files at SIGHUP, SIGINT or SIGTERM. The process then ends with the usual
/// status of shells, 128 plus the signal's number.
///
/// Not used by `serve`, `array`, `cache`, `heed`, `replay`, `record`, `stream-test` and `top`,
/// which end by their own signal handlers.
pub(crate) fn clean_up_at_signals() {
    // Without signal handlers the signals still end the process; only temporary files stay.
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else {
        return;
    };
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            remove_partial_files();
            // 128 plus the signal is the exit code that shells give for a signal.
            std::process::exit(128 + signal);
        }
    });
}
