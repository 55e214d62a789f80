//! The sums that bring lost data back.

use super::map::Cell;
use super::row::Row;
use crate::gf256::{divide, multiply, power};

/// How a lost data chunk follows from what is left of its row: each surviving
/// chunk times a coefficient, summed up.
///
/// With P = Σ Dᵢ and Q = Σ gⁱ Dᵢ (i the exponent of the chunk), losing Dₓ alone
/// is undone with P, or with Q divided by gˣ. Losing Dₓ and Dᵧ takes both:
/// Dₓ = (Q' + gʸ P') / (gˣ + gʸ), where P' and Q' are the parities less the
/// surviving data (H. P. Anvin, "The mathematics of RAID-6", section 4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    /// The coefficient of P.
    p: u8,
    /// The coefficient of Q. Data counts `p + q · gⁱ`.
    q: u8,
}

impl Recovery {
    /// The sum for the lost data chunk `index` of `row`.
    pub(crate) fn of(row: &Row, index: u64) -> Recovery {
        let own = power(row.shape.exponent(index));
        match row.lost_beside(index) {
            None if row.p.is_some() => Recovery { p: 1, q: 0 },
            None => Recovery {
                p: 0,
                q: divide(1, own),
            },
            Some(other) => {
                let other = power(row.shape.exponent(other));
                Recovery {
                    p: divide(other, own ^ other),
                    q: divide(1, own ^ other),
                }
            }
        }
    }

    /// The coefficient of a surviving chunk.
    pub(crate) fn coefficient(&self, row: &Row, cell: Cell) -> u8 {
        match cell {
            Cell::P => self.p,
            Cell::Q => self.q,
            Cell::Data(_) if self.q == 0 => self.p,
            Cell::Data(index) => self.p ^ multiply(self.q, power(row.shape.exponent(index))),
        }
    }
}
