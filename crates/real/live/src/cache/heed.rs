//! A thread that hears what a served array says, and has the kernel do it.

use crate::cache::kernel::Kept;
use crate::cache::serve::{CacheError, stop_at_signals};
use crate::cache::signals::{self, Gone};
use crate::{ControlRequest, Said, ask};
use fullstroke_units::SECTOR_BYTES;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

/// Whom to hear, and what the kernel keeps pages of.
#[derive(Clone, Debug)]
pub struct HeedOptions {
    /// The socket on which the server takes questions.
    pub control: PathBuf,
    /// Its export; the default one without.
    pub export: Option<String>,
    /// The name by which the server knows this host: of several with names one is asked at a
    /// time.
    pub name: Option<String>,
    /// The device that the server's bytes are seen as, a file, or a directory of the file
    /// system on it.
    pub on: PathBuf,
}

/// A server is heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heeding {
    /// Whose pages are written and read ahead.
    pub on: PathBuf,
    /// Where signals are listened for.
    pub control: PathBuf,
}

/// What was heard, and done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heeded {
    /// Since it began.
    pub uptime_s: f64,
    /// PULLs that were heard.
    pub pulls: u64,
    /// What they asked for.
    pub pulled_mb: f64,
    /// What was written for them; nothing where the kernel does not say.
    pub written_mb: Option<f64>,
    /// PUSHes that were heard.
    pub pushes: u64,
    /// What the kernel was told to fetch for them.
    pub fetched_mb: f64,
    /// Signals that were forgotten before they were heard.
    pub missed_signals: u64,
}

enum Message {
    /// What was said, and whom to tell what has been written for it, if that is known.
    Heard {
        signals: Vec<Said>,
        missed: u64,
        wrote: Sender<Option<u64>>,
    },
    Stop,
}

/// Hears a server until SIGTERM or SIGINT. `ready` is told when it begins.
///
/// # Errors
/// A server that does not answer, a device that keeps no pages; what the kernel refuses.
pub fn heed(options: &HeedOptions, ready: &mut dyn FnMut(&Heeding)) -> Result<Heeded, CacheError> {
    let host = |what: String| move |source| CacheError::Host { what, source };
    let on = options.on.display().to_string();
    let kept = Kept::open(&options.on).map_err(host(on.clone()))?;
    ask(&options.control, &ControlRequest::Status)
        .map_err(|error| std::io::Error::other(error.to_string()))
        .map_err(host(format!(
            "{}; expected the control socket of a server",
            options.control.display()
        )))?;
    let (told, messages) = channel();
    let heard = told.clone();
    let tell = move |signals, missed| {
        let (wrote, answer) = channel();
        heard
            .send(Message::Heard {
                signals,
                missed,
                wrote,
            })
            .map_err(|_| Gone)?;
        answer.recv().map_err(|_| Gone)
    };
    signals::listen(
        options.control.clone(),
        options.export.clone(),
        options.name.clone(),
        tell,
    )
    .map_err(host("a thread".into()))?;
    stop_at_signals(move || drop(told.send(Message::Stop))).map_err(host("signals".into()))?;
    ready(&Heeding {
        on: options.on.clone(),
        control: options.control.clone(),
    });
    let began = Instant::now();
    let mut heeded = Heeded {
        written_mb: kept.is_counted().then_some(0.0),
        ..Heeded::default()
    };
    while let Ok(Message::Heard {
        signals,
        missed,
        wrote,
    }) = messages.recv()
    {
        heeded.missed_signals += missed;
        let mut of_any = kept.is_counted().then_some(0);
        for said in signals {
            let done = kept.heed(said).map_err(host(on.clone()))?;
            match said {
                Said::Pull { sectors, .. } => {
                    heeded.pulls += 1;
                    heeded.pulled_mb += sectors as f64 * SECTOR_BYTES as f64 / 1e6;
                }
                Said::Push { .. } => heeded.pushes += 1,
            }
            heeded.fetched_mb += done.fetched as f64 / 1e6;
            if let (Some(sum), Some(written)) = (&mut heeded.written_mb, done.written) {
                *sum += written as f64 / 1e6;
            }
            if said.of_any() > 0 {
                of_any = of_any
                    .zip(done.written)
                    .map(|(sum, written)| sum + written / SECTOR_BYTES);
            }
        }
        // Whoever listens may have gone.
        let _ = wrote.send(of_any);
    }
    heeded.uptime_s = began.elapsed().as_secs_f64();
    Ok(heeded)
}
