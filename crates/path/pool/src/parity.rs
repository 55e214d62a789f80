//! The arithmetic of RAIDZ and dRAID rows as steps of a plan.
//!
//! P is the sum of the data columns, Q the sum with the powers of 2, R the sum with the powers of 4.
//! The first data column has the highest power (`vdev_raidz.c`, "P, Q and R"). A short column counts
//! as filled up with zeros.

use fullstroke_parity::field::{divide, multiply, power};
use fullstroke_units::Sectors;
use fullstroke_volume::{BufferPlace, ParityStep};

/// Returns the factor of data column `column` of `data` in parity `parity` (0 = P, 1 = Q, 2 = R).
pub fn coefficient(parity: usize, column: usize, data: usize) -> u8 {
    // R's powers of 4 are powers of 2 with the doubled exponent; the field has 255 powers.
    power((parity * (data - 1 - column)) as u32 % 255)
}

/// Returns the place of a column: the columns lie one after the other in the scratch buffer, the
/// parities first.
fn place(column: usize, sectors: Sectors) -> BufferPlace {
    BufferPlace::Scratch(Sectors(column as u64 * sectors.0))
}

/// Returns the steps that compute all parities of a row with `data` data columns of `sectors`.
pub fn generate(parities: usize, data: usize, sectors: Sectors) -> Vec<ParityStep> {
    let mut steps = Vec::with_capacity(parities * data);
    for parity in 0..parities {
        for column in 0..data {
            steps.push(ParityStep {
                coefficient: coefficient(parity, column, data),
                from: place(parities + column, sectors),
                into: place(parity, sectors),
                sectors,
                accumulate: column > 0,
            });
        }
    }
    steps
}

/// Returns the steps that compute the `lost` columns of a row from the others; `None` if more
/// columns are lost than there are parities. Columns count from 0, the parities first. Data columns
/// are solved from as many parities as data columns are lost; then lost parities are summed anew.
pub fn recover(
    parities: usize,
    data: usize,
    lost: &[usize],
    sectors: Sectors,
) -> Option<Vec<ParityStep>> {
    let is_lost = |column: usize| lost.contains(&column);
    let unknown: Vec<usize> = (0..data)
        .filter(|column| is_lost(parities + column))
        .collect();
    let known: Vec<usize> = (0..parities).filter(|&parity| !is_lost(parity)).collect();
    if known.len() < unknown.len() {
        return None;
    }
    let known = &known[..unknown.len()];
    let inverse = inverse(known, &unknown, data)?;
    let mut steps = Vec::new();
    let mut add = |coefficient, from, into, accumulate| {
        steps.push(ParityStep {
            coefficient,
            from: place(from, sectors),
            into: place(into, sectors),
            sectors,
            accumulate,
        });
    };
    for (row, &target) in inverse.iter().zip(&unknown) {
        // The target is a sum over the known parities, and over the data that is left in them.
        for (index, (&factor, &parity)) in row.iter().zip(known).enumerate() {
            add(factor, parity, parities + target, index > 0);
        }
        for column in (0..data).filter(|column| !unknown.contains(column)) {
            let factor = row.iter().zip(known).fold(0, |sum, (&factor, &parity)| {
                sum ^ multiply(factor, coefficient(parity, column, data))
            });
            add(factor, parities + column, parities + target, true);
        }
    }
    for parity in (0..parities).filter(|&parity| is_lost(parity)) {
        for column in 0..data {
            add(
                coefficient(parity, column, data),
                parities + column,
                parity,
                column > 0,
            );
        }
    }
    Some(steps)
}

/// Returns the inverse of the square matrix of the coefficients of `unknown` columns in `known`
/// parities, by Gauss and Jordan; `None` if it has no inverse.
fn inverse(known: &[usize], unknown: &[usize], data: usize) -> Option<Vec<Vec<u8>>> {
    let size = known.len();
    let mut rows: Vec<Vec<u8>> = known
        .iter()
        .enumerate()
        .map(|(index, &parity)| {
            let left = unknown
                .iter()
                .map(|&column| coefficient(parity, column, data));
            left.chain((0..size).map(|column| u8::from(column == index)))
                .collect()
        })
        .collect();
    for pivot in 0..size {
        // A pivot may be 0 although the rows are independent. Then a row below serves.
        let swap = (pivot..size).find(|&row| rows[row][pivot] != 0)?;
        rows.swap(pivot, swap);
        let scale = rows[pivot][pivot];
        rows[pivot]
            .iter_mut()
            .for_each(|value| *value = divide(*value, scale));
        let base = rows[pivot].clone();
        for (index, row) in rows.iter_mut().enumerate() {
            let factor = row[pivot];
            if index != pivot && factor != 0 {
                for (value, base) in row.iter_mut().zip(&base) {
                    *value ^= multiply(factor, *base);
                }
            }
        }
    }
    Some(rows.into_iter().map(|row| row[size..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_parity::{multiply_add, multiply_into};
    use fullstroke_units::Seed;

    /// Bytes of a "sector" in these tests: the arithmetic is the same for any length.
    const SECTOR: usize = 8;

    fn run(steps: &[ParityStep], columns: &mut [Vec<u8>]) {
        let index = |place: BufferPlace| match place {
            BufferPlace::Scratch(at) => at.0 as usize,
            BufferPlace::Request(_) => unreachable!("all columns are in the scratch buffer"),
        };
        for step in steps {
            let from = columns[index(step.from)].clone();
            let into = &mut columns[index(step.into)];
            if step.accumulate {
                multiply_add(step.coefficient, into, &from);
            } else {
                multiply_into(step.coefficient, into, &from);
            }
        }
    }

    /// ZFS's own way: each column is added to twice (P: once, R: four times) the sum so far.
    fn by_horner(parity: usize, data: &[Vec<u8>]) -> Vec<u8> {
        let mut sum = vec![0; SECTOR];
        for column in data {
            for (sum, byte) in sum.iter_mut().zip(column) {
                *sum = multiply(*sum, 1 << parity) ^ byte;
            }
        }
        sum
    }

    #[test]
    fn parities_are_those_of_zfs_and_any_lost_columns_come_back() {
        let mut random = Seed(3).stream("bytes");
        for parities in 1..=3usize {
            for data in 1..=9usize {
                let width = parities + data;
                let mut columns: Vec<Vec<u8>> = (0..width)
                    .map(|_| (0..SECTOR).map(|_| random.below(256) as u8).collect())
                    .collect();
                run(&generate(parities, data, Sectors(1)), &mut columns);
                for parity in 0..parities {
                    assert_eq!(columns[parity], by_horner(parity, &columns[parities..]));
                }
                for bits in 0u32..1 << width {
                    let lost: Vec<usize> = (0..width).filter(|c| bits >> c & 1 == 1).collect();
                    let steps = recover(parities, data, &lost, Sectors(1));
                    if lost.len() > parities {
                        assert!(steps.is_none(), "{lost:?} of {parities}+{data}");
                        continue;
                    }
                    let mut found = columns.clone();
                    for &column in &lost {
                        found[column] = vec![0xa5; SECTOR];
                    }
                    run(&steps.unwrap(), &mut found);
                    assert_eq!(found, columns, "{lost:?} of {parities}+{data}");
                }
            }
        }
    }

    #[test]
    fn the_widest_vdev_loses_any_three() {
        let mut random = Seed(4).stream("columns");
        for _ in 0..2000 {
            let lost: Vec<usize> = (0..3).map(|_| random.below(255) as usize).collect();
            assert!(recover(3, 252, &lost, Sectors(1)).is_some(), "{lost:?}");
        }
    }
}
