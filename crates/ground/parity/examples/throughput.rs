//! Prints the speed of P and Q for each kernel, and the speed of a memory copy, both in bytes of
//! data per second.

// A measurement reads a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use fullstroke_parity::Kernels;
use std::hint::black_box;
use std::time::Instant;

const CHUNK: usize = 64 << 10;
/// Amount of data: enough for a stable result, small enough for a short run.
const DATA_BYTES: usize = 4 << 30;
const RUNS: usize = 5;

fn main() {
    println!(
        "chunks of {} KiB, one thread, median of {RUNS} runs, GB of data a second\n",
        CHUNK >> 10
    );
    println!(
        "{:<8} {:>14} {:>10} {:>10} {:>14}",
        "array", "kernel", "P+Q", "copying", "P+Q : copying"
    );
    // One row stays in the processor's caches. Many rows do not.
    for (rows, place) in [(1, "in cache"), (1024, "in memory")] {
        println!("{place}, {rows} rows in turn");
        for data in [4, 8] {
            let copying = copying(data, rows);
            for kernels in Kernels::available() {
                let speed = syndromes(kernels, data, rows);
                let array = format!("{data}+2");
                println!(
                    "{array:<8} {:>14} {speed:>10.1} {copying:>10.1} {:>14.2}",
                    kernels.name(),
                    speed / copying
                );
            }
        }
    }
}

/// Returns the speed of `work` in GB of data per second. `work` is called row by row.
fn measured(data: usize, rows: usize, mut work: impl FnMut(usize)) -> f64 {
    let bytes = data * CHUNK;
    let rounds = (DATA_BYTES / RUNS / (bytes * rows)).max(1);
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            for _ in 0..rounds {
                (0..rows).for_each(&mut work);
            }
            (rounds * rows * bytes) as f64 / begun.elapsed().as_secs_f64() / 1e9
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[RUNS / 2]
}

/// Returns the chunks of some rows. The chunks are filled, so that the pages of their memory exist.
fn chunks(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|chunk| vec![chunk as u8; CHUNK]).collect()
}

fn copying(data: usize, rows: usize) -> f64 {
    let from = chunks(data * rows);
    let mut into = chunks(data * rows);
    measured(data, rows, |row| {
        let range = row * data..(row + 1) * data;
        for (into, from) in into[range.clone()].iter_mut().zip(&from[range]) {
            into.copy_from_slice(black_box(from));
        }
        black_box(&mut into);
    })
}

fn syndromes(kernels: &Kernels, data: usize, rows: usize) -> f64 {
    let from = chunks(data * rows);
    let from: Vec<&[u8]> = from.iter().map(Vec::as_slice).collect();
    let mut parity = chunks(2 * rows);
    measured(data, rows, |row| {
        let [p, q] = &mut parity[2 * row..2 * row + 2] else {
            return;
        };
        kernels.syndromes(black_box(&from[row * data..(row + 1) * data]), p, q);
        black_box((p, q));
    })
}
