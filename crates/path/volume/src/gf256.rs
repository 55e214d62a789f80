//! The arithmetic of parity, one element at a time. The coefficients of a plan's steps are elements
//! of this field.

pub use fullstroke_parity::field::{divide, multiply, power};
