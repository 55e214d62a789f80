use super::*;
use fullstroke_programs::{CallKind, Events};
use std::collections::{BTreeMap, BTreeSet};

const CALL: Duration = Duration::from_millis(1);

fn program(text: &str) -> Result<FioProgram, FioError> {
    let set = JobSet::parse("a.fio", text, &BTreeMap::new())?;
    assert!(set.is_of_files(), "{text}");
    FioProgram::new(&set, Seed(1), None)
}

/// A call made by the program.
#[derive(Clone, Debug, PartialEq)]
struct MadeCall {
    process: u32,
    kind: CallKind,
    path: String,
    at: u64,
    bytes: u64,
    began: Time,
}

/// Runs the program. Each call takes a millisecond.
fn run(program: &mut FioProgram) -> Vec<MadeCall> {
    let mut due: BTreeSet<(Time, u32)> = (0..program.processes())
        .map(|process| (Time::ZERO, process))
        .collect();
    let (mut answers, mut waiting) = (BTreeMap::<u32, CallAnswer>::new(), BTreeSet::new());
    let (mut paths, mut made, mut events) = (BTreeMap::new(), Vec::new(), Events::default());
    while let Some((now, process)) = due.pop_first() {
        assert!(made.len() < 100_000);
        let answer = answers.remove(&process);
        match program.next(ProgramTurn {
            now,
            process,
            answer: answer.as_ref(),
            events: &mut events,
        }) {
            ProgramAction::Call(call) => {
                let mut one = MadeCall {
                    process,
                    kind: call.kind(),
                    path: String::new(),
                    at: 0,
                    bytes: 0,
                    began: now,
                };
                let fd = match call {
                    Call::Open { path, fd, .. } => {
                        paths.insert((process, fd), path.to_owned());
                        fd
                    }
                    Call::Read { fd, at, bytes } | Call::Write { fd, at, bytes } => {
                        (one.at, one.bytes) = (at.unwrap(), bytes);
                        fd
                    }
                    Call::Fsync { fd } | Call::Close { fd } => fd,
                    other => panic!("{other:?}"),
                };
                one.path.clone_from(&paths[&(process, fd)]);
                let answer = CallAnswer {
                    kind: one.kind,
                    began: now,
                    ended: now + CALL,
                    result: Ok(one.bytes),
                };
                answers.insert(process, answer);
                due.insert((now + CALL, process));
                made.push(one);
            }
            ProgramAction::Compute(time) => drop(due.insert((now + time, process))),
            ProgramAction::Wait => {
                // A wait after a call counts as progress, as in `Vfs::ask`.
                let others = std::mem::replace(&mut waiting, BTreeSet::from([process]));
                if answer.is_none() {
                    waiting.extend(others);
                } else {
                    due.extend(others.into_iter().map(|process| (now, process)));
                }
                continue;
            }
            ProgramAction::End => {}
            ProgramAction::Fail(message) => panic!("{message}"),
        }
        due.extend(
            std::mem::take(&mut waiting)
                .into_iter()
                .map(|process| (now, process)),
        );
    }
    assert!(waiting.is_empty(), "{waiting:?}");
    made
}

fn calls(text: &str) -> Vec<MadeCall> {
    run(&mut program(text).unwrap())
}

fn count(made: &[MadeCall], kind: CallKind) -> usize {
    made.iter().filter(|one| one.kind == kind).count()
}

fn paths(made: &[MadeCall]) -> Vec<&str> {
    let paths: BTreeSet<&str> = made.iter().map(|one| &one.path[..]).collect();
    paths.into_iter().collect()
}

/// `strace` of fio 3.33 shows the same numbers of writes and fsyncs for this job, in the same
/// order. An fsync takes a turn of the files.
#[test]
fn four_files_with_an_fsync_for_each_write_are_those_of_fio() {
    let job = "[w]\ndirectory=d\nrw=randwrite\nbs=4k\nsize=64k\nnrfiles=4\nfsync=1\nend_fsync=1\nfallocate=none\n";
    let made = calls(job);
    assert_eq!(paths(&made), ["d/w.0.0", "d/w.0.1", "d/w.0.2", "d/w.0.3"]);
    assert_eq!(
        (count(&made, CallKind::Write), count(&made, CallKind::Fsync)),
        (16, 19)
    );
    let io = |one: &&MadeCall| matches!(one.kind, CallKind::Write | CallKind::Fsync);
    let turns: String = made
        .iter()
        .filter(io)
        .take(16)
        .map(|one| &one.path[6..])
        .collect();
    assert_eq!(turns, "0123012301230123");
    for path in paths(&made) {
        let of = made
            .iter()
            .filter(|one| one.path == path && one.kind == CallKind::Write);
        assert_eq!(
            of.map(|one| one.at).collect::<BTreeSet<_>>(),
            [0, 4096, 8192, 12288].into(),
            "{path}"
        );
    }
}

#[test]
fn each_clone_has_files_of_its_own_unless_they_are_named() {
    let job = "[r]\ndirectory=d\nrw=read\nsize=16k\nnumjobs=2\n";
    let mut own = program(job).unwrap();
    let laid: Vec<String> = own
        .laid_out()
        .into_iter()
        .filter(|laid| laid.bytes.is_some())
        .map(|laid| laid.path)
        .collect();
    assert_eq!(laid, ["d/r.0.0", "d/r.1.0"]);
    assert_eq!(count(&run(&mut own), CallKind::Read), 8);
    assert_eq!(
        paths(&calls(&format!("{job}filename=x:y\n"))),
        ["d/x", "d/y"]
    );
}

#[test]
fn what_is_only_written_is_laid_out_to_be_overwritten() {
    let files = |more: &str| {
        let laid = program(&format!(
            "[w]\ndirectory=d\nrw=write\nfilesize=10k\nnrfiles=2\n{more}"
        ))
        .unwrap()
        .laid_out();
        laid.into_iter()
            .filter_map(|laid| laid.bytes)
            .collect::<Vec<Bytes>>()
    };
    // fio's default is fallocate=native.
    assert_eq!(files(""), [Bytes(10240); 2]);
    assert_eq!(files("fallocate=none\n"), []);
    assert_eq!(files("fallocate=native\ncreate_on_open=1\n"), []);
    assert_eq!(files("fallocate=none\noverwrite=1\n"), [Bytes(10240); 2]);
}

#[test]
fn files_are_served_by_turns_one_behind_another_or_at_random() {
    let order = |service: &str| -> String {
        let job = format!(
            "[r]\ndirectory=d\nrw=read\nsize=64k\nnrfiles=4\nfile_service_type={service}\n"
        );
        let made = calls(&job);
        made.iter()
            .filter(|one| one.kind == CallKind::Read)
            .map(|one| &one.path[6..])
            .collect()
    };
    assert_eq!(order("roundrobin"), "0123012301230123");
    assert_eq!(order("roundrobin:2"), "0011223300112233");
    assert_eq!(order("sequential"), "0000111122223333");
    let mut random: Vec<char> = order("random").chars().collect();
    assert_ne!(random.iter().collect::<String>(), "0000111122223333");
    random.sort_unstable();
    assert_eq!(random.iter().collect::<String>(), "0000111122223333");
}

#[test]
fn time_pauses_and_stages_are_those_of_jobs_on_a_volume() {
    let made = calls("[r]\nnrfiles=2\nrw=read\nsize=16k\ntime_based\nruntime=1\n");
    assert!(
        (990..=1000).contains(&count(&made, CallKind::Read)),
        "{}",
        count(&made, CallKind::Read)
    );
    let made = calls("[r]\ndirectory=d\nrw=read\nsize=16k\nthinktime=9ms\n");
    let began: Vec<Time> = made
        .iter()
        .filter(|one| one.kind == CallKind::Read)
        .map(|one| one.began)
        .collect();
    assert!(
        began
            .windows(2)
            .all(|pair| pair[1].since(pair[0]) == Duration::from_millis(10)),
        "{began:?}"
    );
    let made = calls(
        "[a]\ndirectory=d\nrw=write\nsize=16k\n[b]\nstonewall\ndirectory=d\nrw=read\nsize=16k\n",
    );
    let first = made
        .iter()
        .filter(|one| one.process == 0 && one.kind == CallKind::Write)
        .map(|one| one.began)
        .max();
    let second = made
        .iter()
        .filter(|one| one.process == 1)
        .map(|one| one.began)
        .min();
    assert!(second.unwrap() > first.unwrap());
}

#[test]
fn latencies_are_those_of_the_calls() {
    let mut job = program("[r]\ndirectory=d\nrw=read\nsize=1m\nbs=64k\nthread\n").unwrap();
    run(&mut job);
    let report = job.report();
    let figure = |name: &str| {
        report
            .figures
            .iter()
            .find(|(one, _)| *one == name)
            .unwrap()
            .1
    };
    // The file is opened once, and the open takes one more millisecond.
    assert_eq!(
        (figure("read_clat_ms_mean"), figure("read_iops").round()),
        (1.0, (16.0f64 / 0.017).round())
    );
    assert!(report.text.contains("KiB/s"), "{}", report.text);
    assert!(
        report.notes.iter().any(|note| note.contains("`thread`")) && report.notes.len() == 1,
        "{:?}",
        report.notes
    );
}

#[test]
fn what_files_cannot_have_is_refused_at_its_line() {
    for (options, line, option) in [
        ("size=1m\nioengine=mmap\n", 4, "ioengine"),
        ("size=1m\nrw=trim\n", 4, "rw"),
        ("size=1m\nprio=3\n", 4, "prio"),
        ("size=1m\nfallocate=some\n", 4, "fallocate"),
        ("size=1m\npre_read=1\n", 4, "pre_read"),
        ("size=1m\ncreate_on_open=1\n", 4, "create_on_open"),
        ("size=1m\nfile_service_type=zipf\n", 4, "file_service_type"),
        ("size=10%\n", 3, "size"),
        ("size=8k\nnrfiles=3\n", 1, "size"),
        ("nrfiles=3\n", 1, "size"),
        ("size=1m\nfilename=/dev/sda\n", 4, "filename"),
    ] {
        let error = program(&format!("[a]\ndirectory=d\n{options}"))
            .err()
            .unwrap_or_else(|| panic!("{options}"));
        assert_eq!(
            (error.line, error.option.as_str()),
            (Some(line), option),
            "{options}: {error}"
        );
    }
    assert!(program("[a]\ndirectory=d\nsize=1m\nioengine=psync\niodepth=4\n").is_ok());
}

/// Largest number of calls of a kind that run at the same time.
fn at_once(made: &[MadeCall], kind: CallKind) -> usize {
    let of_kind: Vec<&MadeCall> = made.iter().filter(|one| one.kind == kind).collect();
    let running = |at: Time| {
        let open = |one: &&&MadeCall| one.began <= at && at < one.began + CALL;
        of_kind.iter().filter(open).count()
    };
    of_kind
        .iter()
        .map(|one| running(one.began))
        .max()
        .unwrap_or(0)
}

#[test]
fn a_queue_depth_has_so_many_calls_in_flight() {
    let job = "[r]\ndirectory=d\nrw=randread\nbs=4k\nsize=256k\niodepth=8\n";
    let reads = |more: &str| {
        let made = calls(&format!("{job}{more}"));
        assert_eq!(count(&made, CallKind::Read), 64, "{more}");
        at_once(&made, CallKind::Read)
    };
    assert_eq!(reads("ioengine=libaio\ndirect=1\n"), 8);
    assert_eq!(reads("ioengine=io_uring\n"), 8);
    assert_eq!(reads("ioengine=psync\ndirect=1\n"), 1);
    // Buffered libaio waits in io_submit, and posixaio for each file.
    assert_eq!(reads("ioengine=libaio\n"), 1);
    assert_eq!(reads("ioengine=posixaio\ndirect=1\nnrfiles=2\n"), 2);
    let mut buffered = program(&format!("{job}ioengine=libaio\n")).unwrap();
    run(&mut buffered);
    let notes = buffered.report().notes;
    assert!(
        notes.iter().any(|note| note.contains("io_submit")),
        "{notes:?}"
    );
}

#[test]
fn jobs_with_a_queue_depth_keep_stages_rates_and_flushes() {
    let made = calls(
        "[global]\ndirectory=d\ndirect=1\nioengine=libaio\niodepth=4\nbs=4k\nsize=64k\n\
         [a]\nrw=write\nfsync=4\nend_fsync=1\n[b]\nstonewall\nrw=read\nrate_iops=100\nnumjobs=2\n",
    );
    assert_eq!(count(&made, CallKind::Write), 16);
    assert_eq!(count(&made, CallKind::Fsync), 4);
    let reads: Vec<Time> = made
        .iter()
        .filter(|one| one.kind == CallKind::Read)
        .map(|one| one.began)
        .collect();
    assert_eq!(reads.len(), 32);
    let last = made.iter().rfind(|one| one.kind == CallKind::Fsync);
    assert!(reads[0] >= last.unwrap().began + CALL);
    assert!(reads[31].since(reads[0]) >= Duration::from_millis(140));
}

#[test]
fn names_follow_filename_format() {
    let job = "[j]\ndirectory=d\nrw=read\nsize=16k\nnumjobs=2\nnrfiles=2\n";
    assert_eq!(
        paths(&calls(&format!(
            "{job}filename_format=f/$jobname-$jobnum-$filenum\n"
        ))),
        ["d/f/j-0-0", "d/f/j-0-1", "d/f/j-1-0", "d/f/j-1-1"]
    );
    assert_eq!(
        paths(&calls(&format!(
            "{job}nrfiles=1\nfilename_format=file$jobnum\n"
        ))),
        ["d/file0", "d/file1"]
    );
    assert_eq!(
        paths(&calls("[j]\nfilename=a\\:b:c\nrw=read\nsize=16k\n")),
        ["a:b", "c"]
    );
}

#[test]
fn verify_reads_written_data_back() {
    let made = calls("[w]\ndirectory=d\nrw=randwrite\nbs=4k\nsize=64k\nverify=crc32c\n");
    let at = |kind: CallKind| -> Vec<u64> {
        made.iter()
            .filter(|one| one.kind == kind)
            .map(|one| one.at)
            .collect()
    };
    // With a random map, in the order of the writes.
    assert_eq!(at(CallKind::Read), at(CallKind::Write));
    assert_eq!(at(CallKind::Write).len(), 16);
}
