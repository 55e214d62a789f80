//! Buffers of the current drives in the library: streams run at the rate of the medium, and only
//! the medium holds writes back.

use fullstroke_contract::{
    Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_drive::{BufferConfig, Drive, DriveConfig, DriveModel, ReadAhead};
use fullstroke_units::Time;

const X24: &str = include_str!("../../../../../drives/seagate-exos-x24-24tb.toml");
/// Rate of the outermost zone, including revolutions lost to skews.
const OUTER_MB_PER_S: f64 = 285.0;

/// A drive with a constant queue depth.
struct DepthBench {
    drive: Drive,
    out: Effects,
    now: Time,
    submitted: u64,
    done: u64,
    response_ns: u64,
}

impl DepthBench {
    fn new(model: &DriveModel) -> DepthBench {
        let drive = model.drive().expect("the library's drives are sound");
        DepthBench {
            drive,
            out: Effects::new(),
            now: Time::ZERO,
            submitted: 0,
            done: 0,
            response_ns: 0,
        }
    }

    fn submit(&mut self, operation: Operation, extent: Extent) {
        let id = RequestId(self.submitted);
        self.submitted += 1;
        let request = Request {
            id,
            operation,
            extent,
            ..Request::default()
        };
        self.drive.submit(
            self.now,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect();
    }

    fn collect(&mut self) {
        for effect in self.out.drain() {
            if let Effect::Complete { completion, .. } = effect {
                self.done += 1;
                self.response_ns += completion.finished.since(completion.submitted).as_nanos();
            }
        }
    }

    /// Carries out `requests` requests with `depth` in flight. `next` returns each request. Returns
    /// MB/s and requests a second, measured after the first tenth.
    fn run(
        &mut self,
        requests: u64,
        depth: u64,
        mut next: impl FnMut(u64) -> (Operation, Extent),
    ) -> (f64, f64) {
        let (mut bytes, mut warm) = (0, (Time::ZERO, 0));
        while self.done < requests {
            while self.submitted < requests && self.submitted - self.done < depth {
                let (operation, extent) = next(self.submitted);
                if self.submitted == requests / 10 {
                    warm = (self.now, self.done);
                    bytes = 0;
                }
                bytes += extent.sectors.0 * 512;
                self.submit(operation, extent);
            }
            if self.done < requests {
                self.now = self.drive.next_wake().at();
                assert_ne!(self.now, Time::NEVER, "a request is never answered");
                self.drive
                    .wake(self.now, &mut NodeContext::alone(&mut self.out));
                self.collect();
            }
        }
        let seconds = self.now.since(warm.0).as_nanos() as f64 / 1e9;
        (
            bytes as f64 / seconds / 1e6,
            (self.done - warm.1) as f64 / seconds,
        )
    }
}

fn x24() -> DriveModel {
    x24_with(|_| {})
}

fn x24_with(change: impl Fn(&mut BufferConfig)) -> DriveModel {
    let mut config: DriveConfig = toml::from_str(X24).expect("the library's drives are sound");
    change(config.buffer.as_mut().expect("it has a buffer"));
    DriveModel::new(config).expect("the library's drives are sound")
}

/// Returns addresses over the whole drive, the same in each run.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) * 5_000 * 8 % 46_875_000_000 / 8 * 8
    }
}

#[test]
fn sequential_requests_go_at_the_rate_of_the_medium_at_any_depth() {
    for operation in [Operation::Read, Operation::Write] {
        for (sectors, least) in [(8, 0.35), (32, 0.90), (64, 0.95), (256, 0.95), (2048, 0.95)] {
            for depth in [1, 2, 4, 32] {
                let bytes: u64 = 1_500_000_000;
                let count = (bytes / 512 / sectors).min(60_000);
                let (rate, _) = DepthBench::new(&x24()).run(count, depth, |i| {
                    (operation, Extent::new(i * sectors, sectors))
                });
                println!("{operation:?} {sectors} sectors, depth {depth}: {rate:.1} MB/s");
                assert!(
                    rate >= least * OUTER_MB_PER_S,
                    "{operation:?} {sectors} sectors at {depth}: {rate}"
                );
            }
        }
    }
}

#[test]
fn streams_side_by_side_each_have_their_read_ahead() {
    for (streams, least) in [(2, 120.0), (4, 120.0), (8, 110.0)] {
        for operation in [Operation::Read, Operation::Write] {
            let (rate, _) = DepthBench::new(&x24()).run(20_000, streams, |i| {
                let (stream, at) = (i % streams, i / streams);
                (operation, Extent::new(stream * 100_000_000 + at * 256, 256))
            });
            println!("{streams} streams, {operation:?}: {rate:.1} MB/s");
            assert!(rate >= least, "{streams} streams, {operation:?}: {rate}");
        }
    }
}

/// The stream of one member of a RAID-5 with five members: one of five chunks is parity.
#[test]
fn a_stream_that_skips_a_little_goes_at_the_rate_of_the_medium() {
    for depth in [1, 4] {
        let chunk = |i: u64| (Operation::Read, Extent::new((i + i / 4) * 128, 128));
        let (rate, _) = DepthBench::new(&x24()).run(10_000, depth, chunk);
        println!("four chunks of five, depth {depth}: {rate:.1} MB/s");
        assert!(rate >= 0.95 * 0.8 * OUTER_MB_PER_S, "{depth}: {rate}");
    }
}

#[test]
fn random_reads_do_not_feel_the_buffer() {
    let plain =
        x24_with(|buffer| (buffer.read_ahead, buffer.buffered_first) = (ReadAhead::None, false));
    for depth in [1, 16, 32] {
        let rates = [x24(), plain.clone()].map(|model| {
            let mut next = random(1);
            DepthBench::new(&model)
                .run(3_000, depth, |_| (Operation::Read, Extent::new(next(), 8)))
                .1
        });
        println!(
            "random reads at {depth}: {:.1} with, {:.1} without",
            rates[0], rates[1]
        );
        assert!(
            (rates[0] / rates[1] - 1.0).abs() < 0.01,
            "{depth}: {rates:?}"
        );
    }
}

#[test]
fn random_writes_go_at_the_rate_of_destaging_in_the_order_of_access_time() {
    for depth in [1, 16] {
        let rates = [true, false].map(|cached| {
            let model = x24_with(|buffer| buffer.write_back = cached);
            let mut next = random(2);
            DepthBench::new(&model)
                .run(6_000, depth, |_| (Operation::Write, Extent::new(next(), 8)))
                .1
        });
        println!(
            "random writes at {depth}: {:.1} with, {:.1} without",
            rates[0], rates[1]
        );
        assert!(
            rates[0] > 300.0 && rates[0] > 1.9 * rates[1],
            "{depth}: {rates:?}"
        );
    }
}

/// Half of the buffer may be dirty: 256 MiB.
#[test]
fn a_full_write_cache_holds_writers_back() {
    let mut bench = DepthBench::new(&x24());
    let mut next = random(3);
    let mut responses = Vec::new();
    for _ in 0..700 {
        bench.run(bench.done + 1, 1, |_| {
            (Operation::Write, Extent::new(next(), 2048))
        });
        responses.push(bench.response_ns as f64 / 1e6);
        bench.response_ns = 0;
    }
    // 1 MiB over the bus is 1.75 ms, to the medium some 10.
    let taken = responses.iter().take_while(|ms| **ms < 2.0).count();
    println!("taken at once: {taken}");
    assert!((256..400).contains(&taken), "{taken}");
    let later = responses[600..].iter().sum::<f64>() / 100.0;
    println!("then {later:.2} ms each");
    assert!((4.0..12.0).contains(&later), "{later}");
}

#[test]
fn a_stream_beside_random_reads_leaves_them_their_turn() {
    let mut next = random(4);
    let mut stream = 0;
    let mut bench = DepthBench::new(&x24());
    let (rate, _) = bench.run(20_000, 8, |i| {
        if i % 8 == 0 {
            return (Operation::Read, Extent::new(next(), 8));
        }
        stream += 1;
        (Operation::Read, Extent::new(stream * 256, 256))
    });
    println!(
        "seven of eight in a stream, depth 8: {rate:.1} MB/s, mean {:.2} ms",
        bench.response_ns as f64 / 2e10
    );
    assert!(rate > 45.0, "{rate}");
}
