//! The places of data and parity in the rows of a parity layout.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pattern in which parity moves from row to row, and the place where the row's data begins, as in
/// the Linux md driver. With n members, row r and P on member p:
///
/// | rotation | p | data |
/// |---|---|---|
/// | `left-symmetric` | n - 1 - (r mod n) | begins after the parity, wraps around |
/// | `left-asymmetric` | n - 1 - (r mod n) | ascending from member 0, parity left out |
/// | `right-symmetric` | r mod n | begins after the parity, wraps around |
/// | `right-asymmetric` | r mod n | ascending from member 0, parity left out |
///
/// If there is a Q, it is on the next member after P, cyclically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rotation {
    /// Parity moves towards member 0, and data follows the parity. Any n consecutive chunks of data
    /// lie on n different members (n is the number of members).
    #[default]
    LeftSymmetric,
    /// Parity moves towards member 0, data restarts at member 0.
    LeftAsymmetric,
    /// Parity moves away from member 0, and data follows the parity.
    RightSymmetric,
    /// Parity moves away from member 0, data restarts at member 0.
    RightAsymmetric,
}

/// Place of a row's parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Always on the last member.
    Dedicated,
    /// On a different member in each row.
    Rotating(Rotation),
}

/// Address arithmetic of a parity layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowMap {
    pub(crate) members: u64,
    /// Number of parities: 1 for P, 2 for P and Q. With 2, the placement must rotate.
    pub(crate) parities: u64,
    pub(crate) placement: Placement,
    /// Chunk size in sectors.
    pub(crate) chunk: u64,
    /// Number of whole chunks on each member.
    pub(crate) rows: u64,
}

/// Content of a member's chunk in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkContent {
    /// Data, by its index in the row.
    Data(u64),
    P,
    Q,
}

/// Roles of the members in one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowShape {
    members: u64,
    parities: u64,
    /// The member with P.
    p: u64,
    /// Member with data chunk 0, if data follows from there cyclically; `None` if data ascends from
    /// member 0.
    first: Option<u64>,
}

/// Place of a data sector of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataPlace {
    /// The row of chunks.
    pub(crate) row: u64,
    pub(crate) member: usize,
    /// Address on the member.
    pub(crate) sector: u64,
}

impl RowMap {
    /// Returns the number of data chunks in a row.
    pub(crate) fn data(&self) -> u64 {
        self.members - self.parities
    }
    /// Returns the number of data sectors in a row.
    pub(crate) fn row_sectors(&self) -> u64 {
        self.data() * self.chunk
    }

    /// Returns the place of a data sector of the volume.
    pub(crate) fn place_of(&self, lbn: u64) -> DataPlace {
        let (row, within) = (lbn / self.row_sectors(), lbn % self.row_sectors());
        DataPlace {
            row,
            member: self.shape(row).data_member(within / self.chunk) as usize,
            sector: row * self.chunk + within % self.chunk,
        }
    }

    /// Returns the roles of the members in `row`.
    pub(crate) fn shape(&self, row: u64) -> RowShape {
        let RowMap {
            members,
            parities,
            placement,
            ..
        } = *self;
        let (p, symmetric) = match placement {
            Placement::Dedicated => (members - 1, false),
            Placement::Rotating(rotation) => {
                let turn = row % members;
                match rotation {
                    Rotation::LeftSymmetric => (members - 1 - turn, true),
                    Rotation::LeftAsymmetric => (members - 1 - turn, false),
                    Rotation::RightSymmetric => (turn, true),
                    Rotation::RightAsymmetric => (turn, false),
                }
            }
        };
        // Data begins after P, or after Q, which follows P.
        let first = symmetric.then(|| wrap(p + parities, members));
        RowShape {
            members,
            parities,
            p,
            first,
        }
    }
}

/// Returns `sum` modulo `modulus`. The sum must be below twice the modulus; a subtraction is then
/// enough and cheaper than a division.
fn wrap(sum: u64, modulus: u64) -> u64 {
    debug_assert!(sum < 2 * modulus, "{sum} is twice {modulus} or more");
    if sum >= modulus { sum - modulus } else { sum }
}

impl RowShape {
    /// Returns the member with P.
    pub(crate) fn p(&self) -> u64 {
        self.p
    }
    /// Returns the member with Q, if there is a Q.
    pub(crate) fn q(&self) -> Option<u64> {
        (self.parities == 2).then(|| wrap(self.p + 1, self.members))
    }

    /// Returns the member with the row's data chunk `index`.
    pub(crate) fn data_member(&self, index: u64) -> u64 {
        debug_assert!(
            index + self.parities < self.members,
            "data chunk {index} of a row of {} members",
            self.members
        );
        if let Some(first) = self.first {
            return wrap(first + index, self.members);
        }
        let Some(q) = self.q() else {
            return index + u64::from(index >= self.p);
        };
        if q == 0 {
            // P is on the last member and Q on the first: the data lies between.
            index + 1
        } else {
            index + if index >= self.p { 2 } else { 0 }
        }
    }

    /// Returns the content of `member`.
    pub(crate) fn cell(&self, member: u64) -> ChunkContent {
        debug_assert!(member < self.members, "member {member} of {}", self.members);
        if member == self.p {
            return ChunkContent::P;
        }
        let q = self.q();
        if Some(member) == q {
            return ChunkContent::Q;
        }
        let index = match self.first {
            Some(first) => wrap(member + self.members - first, self.members),
            None => member - u64::from(member > self.p) - u64::from(q.is_some_and(|q| member > q)),
        };
        ChunkContent::Data(index)
    }

    /// Returns the exponent of the generator for the data chunk `index` in Q. The exponent is the
    /// place in the cycle of members from the member after Q on.
    pub(crate) fn exponent(&self, index: u64) -> u32 {
        let behind = wrap(self.p + self.parities, self.members);
        wrap(
            self.data_member(index) + self.members - behind,
            self.members,
        ) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rows of a small array, one text for each row: data by index, P, Q.
    fn drawn(members: u64, parities: u64, placement: Placement, rows: u64) -> Vec<String> {
        let map = RowMap {
            members,
            parities,
            placement,
            chunk: 1,
            rows,
        };
        let cell = |row: u64, member| match map.shape(row).cell(member) {
            ChunkContent::Data(index) => (row * map.data() + index).to_string(),
            ChunkContent::P => "P".to_owned(),
            ChunkContent::Q => "Q".to_owned(),
        };
        (0..rows)
            .map(|row| {
                (0..members)
                    .map(|member| cell(row, member))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    }

    #[test]
    fn single_parity_rotates_as_md_defines() {
        use Rotation::*;
        for (rotation, rows) in [
            (
                LeftAsymmetric,
                ["0 1 2 P", "3 4 P 5", "6 P 7 8", "P 9 10 11", "12 13 14 P"],
            ),
            (
                LeftSymmetric,
                ["0 1 2 P", "4 5 P 3", "8 P 6 7", "P 9 10 11", "12 13 14 P"],
            ),
            (
                RightAsymmetric,
                ["P 0 1 2", "3 P 4 5", "6 7 P 8", "9 10 11 P", "P 12 13 14"],
            ),
            (
                RightSymmetric,
                ["P 0 1 2", "5 P 3 4", "7 8 P 6", "9 10 11 P", "P 12 13 14"],
            ),
        ] {
            assert_eq!(
                drawn(4, 1, Placement::Rotating(rotation), 5),
                rows,
                "{rotation:?}"
            );
        }
    }

    #[test]
    fn double_parity_rotates_as_md_defines() {
        use Rotation::*;
        for (rotation, rows) in [
            (
                LeftAsymmetric,
                [
                    "Q 0 1 2 P",
                    "3 4 5 P Q",
                    "6 7 P Q 8",
                    "9 P Q 10 11",
                    "P Q 12 13 14",
                ],
            ),
            (
                LeftSymmetric,
                [
                    "Q 0 1 2 P",
                    "3 4 5 P Q",
                    "7 8 P Q 6",
                    "11 P Q 9 10",
                    "P Q 12 13 14",
                ],
            ),
            (
                RightAsymmetric,
                [
                    "P Q 0 1 2",
                    "3 P Q 4 5",
                    "6 7 P Q 8",
                    "9 10 11 P Q",
                    "Q 12 13 14 P",
                ],
            ),
            (
                RightSymmetric,
                [
                    "P Q 0 1 2",
                    "5 P Q 3 4",
                    "7 8 P Q 6",
                    "9 10 11 P Q",
                    "Q 12 13 14 P",
                ],
            ),
        ] {
            assert_eq!(
                drawn(5, 2, Placement::Rotating(rotation), 5),
                rows,
                "{rotation:?}"
            );
        }
    }

    #[test]
    fn dedicated_parity_stays_on_the_last_member() {
        assert_eq!(drawn(4, 1, Placement::Dedicated, 2), ["0 1 2 P", "3 4 5 P"]);
    }

    #[test]
    fn the_second_parity_weighs_data_in_member_order_from_behind_it() {
        let placement = Placement::Rotating(Rotation::LeftAsymmetric);
        let map = RowMap {
            members: 5,
            parities: 2,
            placement,
            chunk: 1,
            rows: 5,
        };
        let exponents = |row| {
            (0..3)
                .map(|index| map.shape(row).exponent(index))
                .collect::<Vec<_>>()
        };
        assert_eq!(exponents(0), [0, 1, 2]);
        assert_eq!(
            exponents(2),
            [1, 2, 0],
            "row `D D P Q D` begins with the last member"
        );
    }
}
