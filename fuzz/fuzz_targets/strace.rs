//! Parses a recording of arbitrary bytes. An accepted recording must end, whatever the answers to
//! its calls.
#![no_main]

use fullstroke_contract::registry::Keys;
use fullstroke_programs::{
    CallAnswer, Events, Program, ProgramAction, ProgramKind, ProgramTurn, REGISTRY,
};
use fullstroke_units::{Duration, Seed, Time};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let text = String::from_utf8_lossy(text);
    let entry = REGISTRY
        .iter()
        .find(|entry| entry.name == "strace")
        .expect("it is there");
    for skip in [false, true] {
        let mut keys = Keys::new();
        keys.insert("file".into(), "recording".into());
        keys.insert("skip_unknown_lines".into(), skip.into());
        if let Ok(recipe) = ProgramKind::recipe(entry, &keys, Some(&text)) {
            play(&mut *recipe.program(Seed(1)));
        }
    }
});

/// Asks each process in turn. Each call completes at once.
fn play(program: &mut dyn Program) {
    let mut answers: Vec<Option<CallAnswer>> = vec![None; program.processes() as usize];
    let mut over = vec![false; answers.len()];
    let (mut now, mut events) = (Time::ZERO, Events::default());
    while over.contains(&false) {
        let mut waiting = true;
        for process in 0..answers.len() {
            if over[process] {
                continue;
            }
            let answer = answers[process].take();
            let turn = ProgramTurn {
                now,
                process: process as u32,
                answer: answer.as_ref(),
                events: &mut events,
            };
            let next = program.next(turn);
            waiting &= next == ProgramAction::Wait;
            match next {
                ProgramAction::Call(call) => {
                    answers[process] = Some(CallAnswer {
                        kind: call.kind(),
                        began: now,
                        ended: now,
                        result: Ok(0),
                    });
                }
                ProgramAction::End => over[process] = true,
                ProgramAction::Fail(message) => panic!("{message}"),
                ProgramAction::Compute(_) | ProgramAction::Wait => {}
            }
            now += Duration::from_nanos(1);
        }
        assert!(!waiting, "all wait for each other");
    }
    program.report();
}
