//! The arithmetic of P and Q: exclusive or, and sums over GF(2^8), on slices
//! of bytes.
//!
//! The field is that of RAID-6's second parity, with the polynomial 0x11d and
//! the generator 2 (H. P. Anvin, "The mathematics of RAID-6"). Every operation
//! exists once for each kind of vector unit and once in plain arithmetic;
//! which of them runs is decided once, by asking the processor. All give the
//! same bytes.
//!
//! | file | what it holds |
//! |---|---|
//! | [`field`] | the field itself, an element at a time |
//! | `kernels.rs` | the operations on slices, and the choice among them |
//! | `scalar.rs` | plain arithmetic, eight bytes at a time where that helps |
//! | `vector.rs` | the same loops over any kind of vector |
//! | `x86_64.rs` | the vectors of SSSE3, AVX2, and AVX-512 with GFNI |
//! | `aarch64.rs` | the vectors of NEON |
//!
//! `unsafe` is confined to the last three. The speed of each kernel beside the
//! speed of copying memory: `cargo run --release -p fullstroke-parity --example
//! throughput`.

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub mod field;
mod kernels;
mod scalar;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(test)]
mod proofs;

pub use kernels::{Kernels, multiply_add, multiply_into, syndromes, xor_into};
