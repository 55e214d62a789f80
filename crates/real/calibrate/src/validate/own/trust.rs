//! The verdict, in words.

use super::{FittedParameter, JudgedRequests, LogPart, OwnLog, TimeOrigin};
use serde::Serialize;
use std::fmt;

/// Largest distance for the verdict `Close`, as a share of the mean. Of the eight measured disks
/// that were in no fit, the furthest was 6.0 % away (VALIDATION.md, Atlas III left out).
const CLOSE: f64 = 0.06;
/// Largest distance for the verdict `Rough`, at which means can be used. The value is about three
/// times `CLOSE`, by the project's choice.
const ROUGH: f64 = 0.2;
/// Ratio of the held-out distance to the fitted distance from which on the fit counts as chance.
const BY_CHANCE: f64 = 2.0;

/// Verdict on the use of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelVerdict {
    /// As near as library drives are to their disks.
    Close,
    /// Means can be used, single percentiles cannot.
    Rough,
    /// The model does not describe this disk.
    None,
}

/// A verdict with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    /// The verdict.
    pub verdict: ModelVerdict,
    /// Reasons and limits, one sentence each.
    pub sentences: Vec<String>,
}

impl Trust {
    pub(super) fn new(
        log: &OwnLog,
        fitted_on: &LogPart,
        held_out: &LogPart,
        noise_ms: f64,
        halves_apart_ms: f64,
        kinds: &[JudgedRequests],
        parameters: &[FittedParameter],
    ) -> Trust {
        let verdict = match held_out.rms_share {
            _ if held_out.rms_ms <= noise_ms => ModelVerdict::Close,
            share if share <= CLOSE => ModelVerdict::Close,
            share if share <= ROUGH => ModelVerdict::Rough,
            _ => ModelVerdict::None,
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
        if log.times == TimeOrigin::Arrival {
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

impl JudgedRequests {
    /// Returns true if the whole's verdict does not hold for this kind. The kind must have enough
    /// requests and a distance above the limit of the verdict.
    fn far(&self, verdict: ModelVerdict) -> bool {
        let allowed = match verdict {
            ModelVerdict::Close => CLOSE.max(ROUGH / 2.0),
            ModelVerdict::Rough => ROUGH,
            ModelVerdict::None => return false,
        };
        // Fewer requests have a distance by chance alone.
        self.part.n >= 30 && self.part.rms_share > allowed
    }
}

/// Returns a sentence about the kinds of requests of which the log has too few.
fn unseen(kinds: &[JudgedRequests]) -> Option<String> {
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

impl fmt::Display for ModelVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ModelVerdict::Close => {
                "close: as near as drives of the library are to the disks that they describe"
            }
            ModelVerdict::Rough => "rough: means can be used, percentiles cannot",
            ModelVerdict::None => "not to be trusted: this is no model of the disk",
        })
    }
}
