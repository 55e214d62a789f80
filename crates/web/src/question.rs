//! A question about drives and a load, and its answer step by step.

use crate::changes::{Changes, Progress};
use crate::error::CommandError;
use crate::session::Session;
use fullstroke_advise::{
    AdviceRequest, ArrayOutcome, Assumptions, Choices, Condition, Costs, GradualAdvice,
    GradualProgress, RoundPlan, Wishes,
};
use fullstroke_contract::registry::read_value;
use fullstroke_measure::Stop;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// A question about drives and a load.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    /// Stack file with the load.
    stack: PathBuf,
    #[serde(default)]
    changes: Changes,
    /// Drive: a name of the library, or a file.
    drive: String,
    /// Permitted numbers of drives.
    counts: Vec<u32>,
    drive_price: Option<f64>,
    /// Price of a flash device beside the disks.
    flash_price: Option<f64>,
    #[serde(default)]
    wishes: Wishes,
    #[serde(default)]
    choices: Choices,
    #[serde(default)]
    assumptions: Assumptions,
    /// Requests of the first round.
    #[serde(default = "first_round")]
    first: u64,
    /// Largest number of requests of a round.
    #[serde(default = "largest_round")]
    most: u64,
    /// Multiple of the load.
    #[serde(default = "once")]
    load: f64,
}

/// 2,000 requests: enough for a first interval, and less than a second for four layouts.
fn first_round() -> u64 {
    2_000
}

/// 54,000 requests: the fourth round. Large writes to an array like md take a minute there.
fn largest_round() -> u64 {
    54_000
}

fn once() -> f64 {
    1.0
}

/// Largest number of drives of a question, as in a wish file.
const DRIVES_MAX: u32 = 64;

/// Begins an advice. Returns the possible layouts, and the runs that other workers may carry out.
pub(crate) fn ask(session: &mut Session, question: Question) -> Result<Value, CommandError> {
    // A failed question must not leave the question before in its place.
    session.asked = None;
    let counts = &question.counts;
    if counts.is_empty() || counts.iter().any(|count| !(1..=DRIVES_MAX).contains(count)) {
        return Err(CommandError::Other(format!(
            "counts: found {counts:?}; expected numbers of drives from 1 to {DRIVES_MAX}"
        )));
    }
    if question.first == 0 || question.most < question.first {
        return Err(CommandError::Other(format!(
            "first: found {}, most: found {}; expected 1 <= first <= most",
            question.first, question.most
        )));
    }
    let request = AdviceRequest {
        stack: question.stack,
        overrides: question.changes.overrides(session),
        drive: question.drive,
        counts: question.counts,
        drive_price: question.drive_price,
        controller_price: None,
        flash_price: question.flash_price,
        wishes: question.wishes,
        choices: question.choices,
        assumptions: question.assumptions,
        jobs: 1,
        timeline: false,
        costs: Costs::default(),
        budget: None,
    };
    let plan = RoundPlan {
        first: question.first,
        most: question.most,
        load: question.load,
    };
    let asked = GradualAdvice::new(request, plan)?;
    let (possible, left_out) = asked.layouts();
    let conditions: Vec<Value> = asked
        .conditions()
        .into_iter()
        .map(|(name, condition)| json!({ "name": name, "condition": condition }))
        .collect();
    let answer = json!({ "possible": possible, "left_out": left_out, "conditions": conditions });
    session.asked = Some(asked);
    Ok(answer)
}

/// Carries out the next step of the advice.
pub(crate) fn step(session: &mut Session, progress: Progress<'_>) -> Result<Value, CommandError> {
    let asked = session.asked.as_mut().ok_or_else(nothing_asked)?;
    let made = asked.step(&Stop::default(), progress)?;
    Ok(stepped(asked, &made))
}

/// Returns the outcome of a layout in a condition.
pub(crate) fn outcome(
    session: &Session,
    name: &str,
    condition: Condition,
    progress: Progress<'_>,
) -> Result<Value, CommandError> {
    let asked = session.asked.as_ref().ok_or_else(nothing_asked)?;
    let outcome = asked.outcome(name, condition, &Stop::default(), progress)?;
    let outcome = exact(json!(outcome));
    Ok(json!({ "name": name, "condition": condition, "outcome": outcome }))
}

/// Returns the events of a layout in a condition over time.
pub(crate) fn watch(
    session: &Session,
    name: &str,
    condition: Condition,
    progress: Progress<'_>,
) -> Result<Value, CommandError> {
    let asked = session.asked.as_ref().ok_or_else(nothing_asked)?;
    let timeline = asked.timeline(name, condition, &Stop::default(), progress)?;
    Ok(json!({ "name": name, "condition": condition, "timeline": timeline }))
}

/// Takes the outcome that [`outcome`] has returned in another worker.
pub(crate) fn take_outcome(
    session: &mut Session,
    name: &str,
    condition: Condition,
    outcome: Value,
) -> Result<Value, CommandError> {
    let asked = session.asked.as_mut().ok_or_else(nothing_asked)?;
    let outcome: Option<ArrayOutcome> = read_value(restored(outcome))
        .map_err(|(_, error)| CommandError::Other(format!("outcome: {error}")))?;
    let made = asked.take_outcome(name, condition, outcome)?;
    Ok(stepped(asked, &made))
}

/// Returns the stack file of a layout of the advice.
pub(crate) fn stack_file(session: &Session, name: &str) -> Result<Value, CommandError> {
    let asked = session.asked.as_ref().ok_or_else(nothing_asked)?;
    Ok(json!({ "text": asked.stack_file(name)? }))
}

/// Returns an outcome with each fraction as a text of its 64 bits. A reader of JSON may round the last
/// digit, and an advice must not depend on the number of workers.
fn exact(mut outcome: Value) -> Value {
    for value in outcome
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        if let Some(number) = value.as_f64().filter(|_| value.is_f64()) {
            *value = json!(format!("{:016x}", number.to_bits()));
        }
    }
    outcome
}

/// Returns the outcome that [`exact`] has written.
fn restored(mut outcome: Value) -> Value {
    for value in outcome
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        let bits = value
            .as_str()
            .and_then(|text| u64::from_str_radix(text, 16).ok());
        if let Some(bits) = bits {
            *value = json!(f64::from_bits(bits));
        }
    }
    outcome
}

/// Returns the progress, and the advice if the advice is new.
fn stepped(asked: &GradualAdvice, made: &GradualProgress) -> Value {
    let advice = made.renewed.then(|| asked.advice()).flatten();
    json!({ "progress": made, "advice": advice })
}

fn nothing_asked() -> CommandError {
    CommandError::other("there is no question; send `ask` first")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_stack::READY_LOADS;

    fn asked(load: &str) -> Session {
        let mut session = Session::default();
        session.put("load.toml", load.as_bytes());
        let question = json!({
            "command": "ask", "stack": "load.toml", "drive": "seagate-exos-x16-16tb",
            "counts": [6], "wishes": { "failures": 1 }, "first": 200, "most": 200,
        });
        let answer = session.call(&question.to_string(), &|_, _| {});
        assert!(answer.contains("raid10 of 6"), "{answer}");
        session
    }

    #[test]
    fn each_ready_load_is_answered() {
        for load in READY_LOADS {
            assert!(load.about().len() > 20, "{}", load.name);
            let mut session = asked(load.text);
            let mut last = String::new();
            for _ in 0..3 {
                last = session.call("{\"command\":\"step\"}", &|_, _| {});
                assert!(last.starts_with("{\"answer\""), "{}: {last}", load.name);
            }
            let last: Value = serde_json::from_str(&last).unwrap();
            let candidates = last["answer"]["advice"]["candidates"].as_array().unwrap();
            assert_eq!(candidates.len(), 3, "{}", load.name);
            for candidate in candidates {
                assert!(candidate["value"].as_f64().unwrap() > 0.0, "{}", load.name);
            }
        }
    }

    #[test]
    fn a_layout_at_work_has_heads_queues_and_causes_over_time() {
        let mut session = asked(READY_LOADS[0].text);
        for condition in ["healthy", "degraded", "rebuilding"] {
            let command =
                json!({ "command": "watch", "name": "raid5 of 6", "condition": condition });
            let answer = session.call(&command.to_string(), &|_, _| {});
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let timeline = &answer["answer"]["timeline"];
            let drives = timeline["drives"].as_array().unwrap();
            // The drive in place of the failed one receives data during a rebuild alone.
            let working = if condition == "degraded" { 5 } else { 6 };
            assert_eq!(drives.len(), working, "{condition}");
            for drive in drives {
                let columns = drive["requests"].as_array().unwrap().len();
                assert!(
                    (10..=96).contains(&columns),
                    "{condition}: {columns} columns"
                );
                assert_eq!(drive["offset_gb_mean"].as_array().unwrap().len(), columns);
            }
            assert!(timeline["cells"].as_array().unwrap().len() > 10);
        }
    }

    #[test]
    fn an_outcome_goes_from_session_to_session_to_the_bit() {
        let outcome = json!({ "mean_ms": 0.1 + 0.2, "requests": 7, "rebuild_hours": null });
        let sent: Value = serde_json::from_str(&exact(outcome.clone()).to_string()).unwrap();
        assert_eq!(sent["mean_ms"], "3fd3333333333334");
        assert_eq!(restored(sent), outcome);
        let damaged = take_outcome(
            &mut asked(READY_LOADS[0].text),
            "raid5 of 6",
            Condition::Degraded,
            json!({ "mean_ms": "no number" }),
        );
        assert!(damaged.unwrap_err().to_string().starts_with("outcome: "));
    }
}
