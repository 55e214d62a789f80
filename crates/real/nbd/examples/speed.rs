//! Measures the time of the protocol for one request in nanoseconds, without any socket: `cargo run
//! --release -p fullstroke-nbd --example speed`.

// Needed because a measurement reads a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use fullstroke_nbd::{Connection, ConnectionEvent, Export, Exports, ProtocolError, RequestCommand};
use std::sync::Arc;
use std::time::Instant;

const BLOCK_BYTES: u32 = 4096;
/// Number of requests that a client with a queue depth of 16 sends at once.
const BATCH: u64 = 16;
const BATCHES: u32 = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (name, command, payload_bytes) in [
        ("read 4 KiB", 0, 0),
        ("write 4 KiB", 1, BLOCK_BYTES as usize),
        ("cache", 5, 0),
    ] {
        let mut connection =
            Connection::new(Arc::new(Exports::new(vec![Export::new("disk", 1 << 30)])?));
        exchange(
            &mut connection,
            b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0",
            &[],
        )?;
        let batch: Vec<u8> = (0..BATCH)
            .flat_map(|cookie| request(command, cookie, payload_bytes))
            .collect();
        let block = vec![7; BLOCK_BYTES as usize];
        let begin = Instant::now();
        for _ in 0..BATCHES {
            exchange(&mut connection, &batch, &block)?;
        }
        let elapsed_ns = begin.elapsed().as_nanos() as f64;
        println!(
            "{name}: {:.0} ns a request",
            elapsed_ns / (f64::from(BATCHES) * BATCH as f64)
        );
    }
    Ok(())
}

/// Passes bytes in like a socket, answers the requests, and drops the output.
fn exchange(
    connection: &mut Connection,
    mut bytes: &[u8],
    block: &[u8],
) -> Result<(), ProtocolError> {
    while !bytes.is_empty() {
        let space = connection.space();
        let count = space.len().min(bytes.len());
        space[..count].copy_from_slice(&bytes[..count]);
        connection.filled(count);
        bytes = &bytes[count..];
        while let Some(event) = connection.next_event()? {
            let ConnectionEvent::Request { request, payload } = event else {
                continue;
            };
            match request.command {
                RequestCommand::Read => connection.reply_read(&request, |data| {
                    data.copy_from_slice(block);
                    Ok(())
                }),
                _ => connection.reply_done(&request),
            }
            connection.recycle(payload);
        }
        connection.consumed(connection.output().len());
    }
    Ok(())
}

fn request(command: u16, cookie: u64, payload_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13, 0, 0];
    bytes.extend(command.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend((cookie * u64::from(BLOCK_BYTES)).to_be_bytes());
    bytes.extend(BLOCK_BYTES.to_be_bytes());
    bytes.resize(bytes.len() + payload_bytes, 0xab);
    bytes
}
