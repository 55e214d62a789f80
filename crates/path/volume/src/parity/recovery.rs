//! The sums for the recovery of lost data.

use super::map::ChunkContent;
use super::row::ParityRow;
use crate::gf256::{divide, multiply, power};

/// Coefficients of the sum for a lost data chunk: each surviving chunk of the row times a
/// coefficient.
///
/// Let P = Σ Dᵢ and Q = Σ gⁱ Dᵢ, with i the exponent of the chunk. If only Dₓ is lost, P restores
/// Dₓ, or Q divided by gˣ does. If Dₓ and Dᵧ are lost, both parities are needed: Dₓ = (Q' + gʸ P')
/// / (gˣ + gʸ). Here P' and Q' are the parities minus the surviving data (H. P. Anvin, "The
/// mathematics of RAID-6", section 4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    /// Coefficient of P.
    p: u8,
    /// Coefficient of Q. The coefficient of data is `p + q · gⁱ`.
    q: u8,
}

impl Recovery {
    /// Returns the sum for the lost data chunk `index` of `row`.
    pub(crate) fn of(row: &ParityRow, index: u64) -> Recovery {
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

    /// Returns the coefficient of a surviving chunk.
    pub(crate) fn coefficient(&self, row: &ParityRow, cell: ChunkContent) -> u8 {
        match cell {
            ChunkContent::P => self.p,
            ChunkContent::Q => self.q,
            ChunkContent::Data(_) if self.q == 0 => self.p,
            ChunkContent::Data(index) => {
                self.p ^ multiply(self.q, power(row.shape.exponent(index)))
            }
        }
    }
}
