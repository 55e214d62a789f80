//! The quantities of the field, as types. No function in fullstroke takes a bare integer for a
//! time, an address or an angle.
//!
//! | type | unit | range |
//! |---|---|---|
//! | [`Time`], [`Duration`] | nanoseconds, integer | 584 years |
//! | [`Lbn`], [`Sectors`] | 512-byte sectors | 2^64 |
//! | [`Bytes`] | bytes | 2^64 |
//! | [`BitRate`] | bits a second | 2^64 |
//! | [`Cylinder`] | tracks from the outer edge | 2^32 |
//! | [`Angle`] | 2^-64 of a revolution, wrapping | one revolution |
//! | [`Watts`], [`Joules`] | SI | f64 |
//!
//! Operators on times, spans, addresses and amounts check their results in every build. A result
//! that does not fit stops the program. The message has both operands and the line of the
//! calculation. Only angles wrap, because they are taken modulo one revolution.

mod angle;
mod divisor;
mod figure;
mod ordered;
mod outside;
mod overflow;
mod quantity;
mod random;
mod rate;
mod space;
mod time;

pub use angle::{Angle, Spindle};
pub use divisor::greatest_common_divisor;
pub use figure::three_digits;
pub use ordered::{map_of, order_by, order_by_key};
pub use outside::{one_line, printable, printable_json};
pub use quantity::{QuantityError, format_bytes, parse_bit_rate, parse_bytes};
pub use random::{Random, Seed};
pub use rate::BitRate;
pub use space::{Bytes, Cylinder, Joules, Lbn, SECTOR_BYTES, Sectors, Watts};
pub use time::{Duration, Time, parse_duration};
