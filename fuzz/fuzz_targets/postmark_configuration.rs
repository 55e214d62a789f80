//! Parses a PostMark configuration of arbitrary bytes. An accepted configuration must run, and
//! every read, write or close must be of an open file.
#![no_main]

use fullstroke_contract::registry::Keys;
use fullstroke_programs::{
    Call, CallAnswer, Events, ProgramAction, ProgramKind, ProgramTurn, REGISTRY,
};
use fullstroke_units::{Duration, Seed, Time};
use libfuzzer_sys::fuzz_target;

/// Limit of calls. More would only slow the target.
const CALLS_MAX: usize = 2000;

fuzz_target!(|text: &[u8]| {
    let entry = REGISTRY
        .iter()
        .find(|entry| entry.name == "postmark")
        .expect("it is in the registry");
    let keys = Keys::from_iter([("file".to_owned(), "any".into())]);
    let Ok(recipe) = ProgramKind::recipe(entry, &keys, Some(&String::from_utf8_lossy(text))) else {
        return;
    };
    let mut program = recipe.program(Seed(1));
    let (mut answer, mut now, mut open): (Option<CallAnswer>, _, _) = (None, Time::ZERO, false);
    for _ in 0..CALLS_MAX {
        let mut events = Events::default();
        let turn = ProgramTurn {
            now,
            process: 0,
            answer: answer.as_ref(),
            events: &mut events,
        };
        let (kind, bytes) = match program.next(turn) {
            ProgramAction::Call(call) => {
                match call {
                    Call::Open { .. } => open = true,
                    Call::Read { .. } | Call::Write { .. } => assert!(open),
                    Call::Close { .. } => assert!(std::mem::take(&mut open)),
                    _ => {}
                }
                let bytes = if let Call::Read { bytes, .. } | Call::Write { bytes, .. } = call {
                    bytes
                } else {
                    0
                };
                (call.kind(), bytes)
            }
            ProgramAction::End => return,
            other => panic!("{other:?}"),
        };
        let began = now;
        now += Duration::from_micros(1);
        answer = Some(CallAnswer {
            kind,
            began,
            ended: now,
            result: Ok(bytes),
        });
    }
    assert!(
        program
            .report()
            .figures
            .iter()
            .all(|(_, value)| value.is_finite())
    );
});
