//! The arithmetic of P and Q on slices of bytes: exclusive or, and sums over GF(2^8).
//!
//! The field is the field of RAID-6's second parity, with the polynomial 0x11d and the generator 2
//! (H. P. Anvin, "The mathematics of RAID-6"). Every operation exists for each kind of vector unit
//! and in plain arithmetic. The implementation is chosen once, by the features of the processor.
//! All implementations give the same bytes.
//!
//! | file | contents |
//! |---|---|
//! | [`field`] | the field itself, an element at a time |
//! | `kernels.rs` | the operations on slices, and the choice among them |
//! | `scalar.rs` | plain arithmetic, eight bytes at a time where that helps |
//! | `vector.rs` | the same loops over any kind of vector |
//! | `x86_64.rs` | the vectors of SSSE3, AVX2, and AVX-512 with GFNI |
//! | `aarch64.rs` | the vectors of NEON |
//!
//! `unsafe` is confined to the last three. To compare the speed of each kernel with a memory copy:
//! `cargo run --release -p fullstroke-parity --example throughput`.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod choice;
pub mod field;
mod kernels;
mod scalar;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(test)]
mod proofs;

pub use choice::{multiply_add, multiply_into, syndromes, xor_into};
pub use kernels::Kernels;
