//! The arithmetic of parity, an element at a time: what the coefficients of a
//! plan's steps are made of, and the definition of what they mean.

pub use fullstroke_parity::field::{divide, multiply, power};
