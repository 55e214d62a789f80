//! A thread that hears what a served array says, and has the kernel do it.

use crate::cache::kernel::Kept;
use crate::cache::serve::{CacheError, stop_at_signals};
use crate::cache::signals::{self, Gone, Word};
use crate::{ControlRequest, Said, ask};
use fullstroke_units::SECTOR_BYTES;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A server that does not answer for so long has gone: it may be started again meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

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

impl Heeded {
    /// Has the kernel do what `signals` say, and counts it. The sectors written for PULLs of any
    /// address, where the kernel says how much it writes.
    fn carry_out(&mut self, kept: &Kept, signals: Vec<Said>) -> std::io::Result<Option<u64>> {
        let mut of_any = kept.is_counted().then_some(0);
        for said in signals {
            let done = kept.heed(said)?;
            match said {
                Said::Pull { sectors, .. } => {
                    self.pulls += 1;
                    self.pulled_mb += sectors as f64 * SECTOR_BYTES as f64 / 1e6;
                }
                Said::Push { .. } => self.pushes += 1,
            }
            self.fetched_mb += done.fetched as f64 / 1e6;
            if let (Some(sum), Some(written)) = (&mut self.written_mb, done.written) {
                *sum += written as f64 / 1e6;
            }
            if said.of_any() > 0 {
                of_any = of_any
                    .zip(done.written)
                    .map(|(sum, written)| sum + written / SECTOR_BYTES);
            }
        }
        Ok(of_any)
    }
}

enum Message {
    /// What was said, and whom to tell what has been written for it, if that is known.
    Heard {
        signals: Vec<Said>,
        missed: u64,
        wrote: Sender<Option<u64>>,
    },
    /// Why nothing was said.
    Silent(String),
    Stop,
}

/// Hears a server until SIGTERM or SIGINT. `ready` is told when it begins, `warn` when the
/// server falls silent and when it answers again.
///
/// # Errors
/// A server that does not answer, or not any more for five seconds; a device that keeps no
/// pages; what the kernel refuses.
pub fn heed(
    options: &HeedOptions,
    ready: &mut dyn FnMut(&Heeding),
    warn: &mut dyn FnMut(&str),
) -> Result<Heeded, CacheError> {
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
    let tell = move |word| {
        let (signals, missed) = match word {
            Word::Signals { signals, missed } => (signals, missed),
            Word::Nothing(why) => {
                return heard
                    .send(Message::Silent(why))
                    .map(|()| None)
                    .map_err(|_| Gone);
            }
        };
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
    let mut silence = Silence::default();
    while let Ok(message) = messages.recv() {
        let (signals, missed, wrote) = match message {
            Message::Heard {
                signals,
                missed,
                wrote,
            } => (signals, missed, wrote),
            Message::Silent(why) => {
                silence.goes_on(&options.control, &why, warn)?;
                continue;
            }
            Message::Stop => break,
        };
        silence.ends(&options.control, warn);
        heeded.missed_signals += missed;
        let of_any = heeded.carry_out(&kept, signals).map_err(host(on.clone()))?;
        // Whoever listens may have gone.
        let _ = wrote.send(of_any);
    }
    heeded.uptime_s = began.elapsed().as_secs_f64();
    Ok(heeded)
}

/// Since when a server has not answered.
#[derive(Default)]
struct Silence(Option<Instant>);

impl Silence {
    /// The server has not answered once more: an error if the server has had its time.
    fn goes_on(
        &mut self,
        control: &Path,
        why: &str,
        warn: &mut dyn FnMut(&str),
    ) -> Result<(), CacheError> {
        let Some(since) = self.0 else {
            self.0 = Some(Instant::now());
            warn(&format!(
                "{}: no signals: {why}; waiting {} s",
                control.display(),
                PATIENCE.as_secs()
            ));
            return Ok(());
        };
        if since.elapsed() < PATIENCE {
            return Ok(());
        }
        Err(CacheError::Silent {
            control: control.to_owned(),
            why: why.to_owned(),
        })
    }

    fn ends(&mut self, control: &Path, warn: &mut dyn FnMut(&str)) {
        if self.0.take().is_some() {
            warn(&format!("{}: the server answers again", control.display()));
        }
    }
}
