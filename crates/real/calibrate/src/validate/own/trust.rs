//! The verdict, in words.

use super::{FittedParameter, Kind, OwnLog, Part, Times};
use serde::Serialize;
use std::fmt;

/// A drive's distance from its own measurement may be this share of the mean: of
/// the eight measured disks that nobody had looked at the furthest was 6.0 % away
/// (VALIDATION.md, Atlas III left out).
const CLOSE: f64 = 0.06;
/// Up to here means can be used. Three times that: a choice of ours.
const ROUGH: f64 = 0.2;
/// Held out, a fit may be so many times as far away as where it was made before it
/// is called one of chance.
const BY_CHANCE: f64 = 2.0;

/// How far a model may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As near as library drives are to the disks that they describe.
    Close,
    /// Means can be used, single percentiles cannot.
    Rough,
    /// The model is no model of this disk.
    None,
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    /// The verdict.
    pub verdict: Verdict,
    /// Reasons and limits, a sentence each.
    pub sentences: Vec<String>,
}

impl Trust {
    pub(super) fn new(
        log: &OwnLog,
        fitted_on: &Part,
        held_out: &Part,
        noise_ms: f64,
        halves_apart_ms: f64,
        kinds: &[Kind],
        parameters: &[FittedParameter],
    ) -> Trust {
        let verdict = match held_out.rms_share {
            _ if held_out.rms_ms <= noise_ms => Verdict::Close,
            share if share <= CLOSE => Verdict::Close,
            share if share <= ROUGH => Verdict::Rough,
            _ => Verdict::None,
        };
        let mut sentences = vec![format!(
            "On the half that it had not seen the model is {:.3} ms from the disk, {:.1} % of the mean; \
             {:.3} ms on the half that it was fitted to; sampling noise is {noise_ms:.3} ms.",
            held_out.rms_ms,
            100.0 * held_out.rms_share,
            fitted_on.rms_ms
        )];
        if held_out.rms_ms > BY_CHANCE * fitted_on.rms_ms.max(noise_ms) {
            sentences.push(format!(
                "Held out it is {:.1} times as far as where it was fitted: what was fitted is chance, or the \
                 load changed.",
                held_out.rms_ms / fitted_on.rms_ms
            ));
        }
        sentences.push(if held_out.rms_ms < halves_apart_ms {
            format!("The measured halves are {halves_apart_ms:.3} ms apart: the model foresees the change.")
        } else {
            format!(
                "The measured halves are {halves_apart_ms:.3} ms apart: for this very load the first half \
                 tells more of the second than the model does."
            )
        });
        sentences.extend(kinds.iter().filter(|kind| kind.far(verdict)).map(|kind| {
            format!(
                "Not of {} {}: {:.1} % away.",
                kind.by,
                kind.class,
                100.0 * kind.part.rms_share
            )
        }));
        let at_end = parameters.iter().filter(|parameter| parameter.at_end);
        sentences.extend(at_end.map(|parameter| {
            format!(
                "`{}` is at the end of what is tried: its value stands for something else that the drive lacks.",
                parameter.key
            )
        }));
        sentences.extend(unseen(kinds));
        if log.times == Times::Arrival {
            sentences.push(
                "Times are counted from arrivals: what waited in the host is in them, and in the model's \
                 overhead."
                    .to_owned(),
            );
        }
        sentences.extend(log.resolution_ms.map(|unit| {
            format!("Times are whole multiples of {unit} ms: no smaller distance means anything.")
        }));
        Trust { verdict, sentences }
    }
}

impl Kind {
    /// Whether the whole's verdict does not hold for them: enough requests to say so,
    /// and further away than it allows.
    fn far(&self, verdict: Verdict) -> bool {
        let allowed = match verdict {
            Verdict::Close => CLOSE.max(ROUGH / 2.0),
            Verdict::Rough => ROUGH,
            Verdict::None => return false,
        };
        self.part.n >= 30 && self.part.rms_share > allowed
    }
}

/// What the log has too little of to say anything.
fn unseen(kinds: &[Kind]) -> Option<String> {
    let seen = |by: &str, class: &str| {
        kinds
            .iter()
            .any(|kind| kind.by == by && kind.class == class && kind.part.n >= 30)
    };
    let mut unseen: Vec<&str> = Vec::new();
    let wanted = [
        ("operation", "read", "reads"),
        ("operation", "write", "writes"),
        ("size", "larger", "requests above 256 KiB"),
        ("outstanding", "1", "requests alone"),
        ("outstanding", "5 to 16", "queues of 5 and more"),
    ];
    unseen.extend(
        wanted
            .iter()
            .filter(|(by, class, _)| !seen(by, class))
            .map(|(.., words)| *words),
    );
    (!unseen.is_empty()).then(|| {
        format!(
            "The log says nothing, or next to nothing, of {}.",
            unseen.join(", ")
        )
    })
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Close => {
                "close: as near as drives of the library are to the disks that they describe"
            }
            Verdict::Rough => "rough: means can be used, percentiles cannot",
            Verdict::None => "not to be trusted: this is no model of the disk",
        })
    }
}
