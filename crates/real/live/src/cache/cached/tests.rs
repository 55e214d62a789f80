use super::bench::{CacheBench, CacheStep, steps};
use super::*;
use fullstroke_units::Bytes;
use proptest::prelude::*;

proptest! {
    #[test]
    fn nothing_flushed_is_lost_nothing_is_older_and_reads_see_what_was_written(steps in steps(0.0)) {
        let mut bench = CacheBench::new();
        steps.iter().for_each(|step| bench.step(step));
        // In the end every request is answered, whatever waits for what.
        bench.drain();
        bench.step(&CacheStep::Flush);
        bench.drain();
        bench.check_end();
    }

    /// Holds for any order of reads, writes, PUSH, PULL, flushes and failures.
    #[test]
    fn what_is_lost_below_is_told_by_the_next_flush(steps in steps(0.1)) {
        let mut bench = CacheBench::new();
        steps.iter().for_each(|step| bench.step(step));
        bench.drain();
        // One flush may still report an earlier failure.
        for _ in 0..2 {
            bench.step(&CacheStep::Flush);
            bench.drain();
        }
        bench.check_end();
    }
}

/// Takes all jobs of a cache for the server below.
fn taken(cached: &mut Cached) -> Vec<NumberedWork> {
    cached.jobs().collect()
}

#[test]
fn a_write_that_is_lost_below_fails_the_next_flush_and_no_other() {
    let mut cached = Cached::new(&MemoryKeys::of(Bytes(64 * PAGE_BYTES)), 1 << 20).unwrap();
    cached.ask(
        Time::ZERO,
        1,
        ClientRequest::Write {
            offset: 0,
            data: vec![1; 4096],
            durable: false,
        },
    );
    assert_eq!(
        cached.answers().collect::<Vec<_>>(),
        [(1, ClientOutcome::Done)]
    );
    assert_eq!(cached.pull_any(Time::ZERO, 4096), 1);
    let jobs = taken(&mut cached);
    assert_eq!(
        jobs[0].work,
        ServerWork::Write {
            offset: 0,
            data: vec![1; 4096]
        }
    );
    cached.ended(Time::ZERO, jobs[0].id, Err(()));
    for (tag, outcome) in [(2, ClientOutcome::Failed), (3, ClientOutcome::Done)] {
        cached.ask(Time::ZERO, tag, ClientRequest::Flush);
        let flush = taken(&mut cached);
        assert_eq!(flush[0].work, ServerWork::Flush);
        cached.ended(Time::ZERO, flush[0].id, Ok(Vec::new()));
        assert_eq!(cached.answers().collect::<Vec<_>>(), [(tag, outcome)]);
    }
}

#[test]
fn what_was_pushed_is_read_without_asking_below() {
    let mut cached = Cached::new(&MemoryKeys::of(Bytes(64 * PAGE_BYTES)), 1 << 20).unwrap();
    assert_eq!(cached.push(Time::ZERO, 8192, 4096), 1);
    let jobs = taken(&mut cached);
    assert_eq!(
        jobs[0].work,
        ServerWork::Read {
            offset: 8192,
            bytes: 4096
        }
    );
    cached.ended(Time::ZERO, jobs[0].id, Ok(vec![7; 4096]));
    cached.ask(
        Time::ZERO,
        1,
        ClientRequest::Read {
            offset: 8192 + 512,
            bytes: 1024,
        },
    );
    assert_eq!(
        cached.answers().collect::<Vec<_>>(),
        [(1, ClientOutcome::Data(vec![7; 1024]))]
    );
    assert!(
        taken(&mut cached)
            .iter()
            .all(|job| !matches!(job.work, ServerWork::Read { offset: 8192, .. }))
    );
}

#[test]
fn a_read_that_fails_below_fails() {
    let mut cached = Cached::new(&MemoryKeys::of(Bytes(64 * PAGE_BYTES)), 1 << 20).unwrap();
    cached.ask(
        Time::ZERO,
        1,
        ClientRequest::Read {
            offset: 0,
            bytes: 4096,
        },
    );
    for job in taken(&mut cached) {
        cached.ended(Time::ZERO, job.id, Err(()));
    }
    assert_eq!(
        cached.answers().collect::<Vec<_>>(),
        [(1, ClientOutcome::Failed)]
    );
}
