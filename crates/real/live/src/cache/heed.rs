//! A thread that receives a served array's signals, and makes the kernel follow them.

use crate::cache::kernel::PageObject;
use crate::cache::messages::CacheError;
use crate::cache::serve::stop_at_signals;
use crate::cache::signals::{self, BelowMessage, NoReceivers};
use crate::{ControlRequest, SignalExtent, ask};
use fullstroke_units::SECTOR_BYTES;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// Silence after which a server counts as gone. A restart may happen within this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// The server to follow, and the kernel's pages to control.
#[derive(Clone, Debug)]
pub struct HeedOptions {
    /// Control socket of the server.
    pub control: PathBuf,
    /// Export of the server; `None` for the default export.
    pub export: Option<String>,
    /// Name of this host for the server. Of several hosts with names, the server asks one at a
    /// time.
    pub name: Option<String>,
    /// The device, file or file system with the server's data: a device, a file, or a directory of
    /// the file system.
    pub on: PathBuf,
}

/// Description of a started session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignalSession {
    /// Device, file or directory whose pages are written and read ahead.
    pub on: PathBuf,
    /// Control socket of the server.
    pub control: PathBuf,
}

/// Counters of the signals and of the resulting work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SignalCounts {
    /// Time since the start, in s.
    pub uptime_s: f64,
    /// Number of PULLs.
    pub pulls: u64,
    /// Data requested by PULLs, in 10^6 bytes.
    pub pulled_mb: f64,
    /// Data written for PULLs, in 10^6 bytes; `None` if the kernel does not report the amount.
    pub written_mb: Option<f64>,
    /// Number of PUSHes.
    pub pushes: u64,
    /// Data requested from the kernel for PUSHes, in 10^6 bytes.
    pub fetched_mb: f64,
    /// Number of signals dropped by the server before this host asked for them.
    pub missed_signals: u64,
}

impl SignalCounts {
    /// Makes the kernel carry out `signals`, and counts the signals. Returns the sectors written
    /// for PULLs without an address, if the kernel reports this number.
    fn carry_out(
        &mut self,
        kept: &PageObject,
        signals: Vec<SignalExtent>,
    ) -> std::io::Result<Option<u64>> {
        let mut of_any = kept.is_counted().then_some(0);
        for said in signals {
            let done = kept.heed(said)?;
            match said {
                SignalExtent::Pull { sectors, .. } => {
                    self.pulls += 1;
                    self.pulled_mb += sectors as f64 * SECTOR_BYTES as f64 / 1e6;
                }
                SignalExtent::Push { .. } => self.pushes += 1,
            }
            self.fetched_mb += done.fetched as f64 / 1e6;
            if let (Some(sum), Some(written)) = (&mut self.written_mb, done.written) {
                *sum += written as f64 / 1e6;
            }
            // Only PULLs without an address count for the turns of hosts.
            if said.of_any() > 0 {
                of_any = of_any
                    .zip(done.written)
                    .map(|(sum, written)| sum + written / SECTOR_BYTES);
            }
        }
        Ok(of_any)
    }
}

enum HeedMessage {
    /// Received signals, and the channel for the number of written sectors, if known.
    Heard {
        signals: Vec<SignalExtent>,
        missed: u64,
        wrote: Sender<Option<u64>>,
    },
    /// Reason why there are no signals.
    Silent(String),
    Stop,
}

/// Follows a server until SIGTERM or SIGINT. `ready` is called at the start. `warn` is called when
/// the server falls silent, and when the server answers again.
///
/// # Errors
/// If the server does not answer, or is silent for five seconds; if the device keeps no pages; or
/// an error of the kernel.
pub fn heed(
    options: &HeedOptions,
    ready: &mut dyn FnMut(&SignalSession),
    warn: &mut dyn FnMut(&str),
) -> Result<SignalCounts, CacheError> {
    let host = |what: String| move |source| CacheError::Host { what, source };
    let on = options.on.display().to_string();
    let kept = PageObject::open(&options.on).map_err(host(on.clone()))?;
    // Asked once at the start, so that a wrong path is an error at once and not a silence of five
    // seconds.
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
            BelowMessage::Signals { signals, missed } => (signals, missed),
            BelowMessage::Nothing(why) => {
                return heard
                    .send(HeedMessage::Silent(why))
                    .map(|()| None)
                    .map_err(|_| NoReceivers);
            }
        };
        let (wrote, answer) = channel();
        heard
            .send(HeedMessage::Heard {
                signals,
                missed,
                wrote,
            })
            .map_err(|_| NoReceivers)?;
        answer.recv().map_err(|_| NoReceivers)
    };
    signals::listen(
        options.control.clone(),
        options.export.clone(),
        options.name.clone(),
        tell,
    )
    .map_err(host("a thread".into()))?;
    stop_at_signals(move || drop(told.send(HeedMessage::Stop))).map_err(host("signals".into()))?;
    ready(&SignalSession {
        on: options.on.clone(),
        control: options.control.clone(),
    });
    let began = Instant::now();
    let mut heeded = SignalCounts {
        written_mb: kept.is_counted().then_some(0.0),
        ..SignalCounts::default()
    };
    let mut silence = Silence::default();
    while let Ok(message) = messages.recv() {
        let (signals, missed, wrote) = match message {
            HeedMessage::Heard {
                signals,
                missed,
                wrote,
            } => (signals, missed, wrote),
            HeedMessage::Silent(why) => {
                silence.goes_on(&options.control, &why, warn)?;
                continue;
            }
            HeedMessage::Stop => break,
        };
        silence.ends(&options.control, warn);
        heeded.missed_signals += missed;
        let of_any = heeded.carry_out(&kept, signals).map_err(host(on.clone()))?;
        // The listener may have ended.
        let _ = wrote.send(of_any);
    }
    heeded.uptime_s = began.elapsed().as_secs_f64();
    Ok(heeded)
}

/// Time since which a server has not answered.
#[derive(Default)]
struct Silence(Option<Instant>);

impl Silence {
    /// Records another missing answer. Returns an error if the server's time is over.
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
