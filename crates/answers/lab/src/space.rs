//! Points of a search: every combination of the values of some keys.

use crate::Vary;
use fullstroke_units::Random;
use std::collections::BTreeSet;

/// A point: the index of the value of each key.
pub type Point = Vec<usize>;

/// Every combination of the values of some keys.
#[derive(Clone, Debug)]
pub struct Combinations {
    varied: Vec<Vary>,
}

impl Combinations {
    /// Creates the space of these keys.
    pub fn new(varied: &[Vary]) -> Combinations {
        Combinations {
            varied: varied.to_vec(),
        }
    }

    /// Returns the number of points; `usize::MAX` if the number is larger.
    pub fn points(&self) -> usize {
        self.varied.iter().fold(1, |points: usize, vary| {
            // The number is only compared with bounds, so the top value means "too many".
            points.saturating_mul(vary.values().len())
        })
    }

    /// Returns `key=value` for each key.
    pub fn assignments(&self, point: &Point) -> Vec<String> {
        assert_eq!(
            point.len(),
            self.varied.len(),
            "a point has a value of each key"
        );
        let each = self.varied.iter().zip(point);
        each.map(|(vary, &value)| format!("{}={}", vary.key(), vary.values()[value]))
            .collect()
    }

    /// Returns the point with this number. The last key varies fastest.
    pub fn point(&self, mut number: usize) -> Point {
        let mut point: Point = self
            .varied
            .iter()
            .rev()
            .map(|vary| {
                let values = vary.values().len();
                let value = number % values;
                number /= values;
                value
            })
            .collect();
        assert_eq!(number, 0, "a number is below the number of points");
        point.reverse();
        point
    }

    /// Returns `count` points, or all points if there are fewer. The points form a Latin hypercube
    /// (McKay, Beckman and Conover, Technometrics 21(2), 1979): the values of a key occur equally
    /// often, within one.
    pub fn sample(&self, count: usize, random: &mut Random) -> Vec<Point> {
        if count >= self.points() {
            return (0..self.points())
                .map(|number| self.point(number))
                .collect();
        }
        let columns: Vec<Vec<usize>> = self
            .varied
            .iter()
            .map(|vary| {
                let values = vary.values().len();
                let mut column: Vec<usize> =
                    (0..count).map(|place| place * values / count).collect();
                shuffle(&mut column, random);
                column
            })
            .collect();
        let mut known = BTreeSet::new();
        let mut sample = Vec::with_capacity(count);
        for place in 0..count {
            let mut point: Point = columns.iter().map(|column| column[place]).collect();
            // The hypercube may contain a point twice; a random point replaces the second one.
            while !known.insert(point.clone()) {
                point = self
                    .varied
                    .iter()
                    .map(|vary| random.below(vary.values().len() as u64) as usize)
                    .collect();
            }
            sample.push(point);
        }
        sample
    }

    /// Returns the points that differ in one key. The key differs by one step if the values are
    /// numbers, or has any other value if the values are names.
    pub fn neighbours(&self, point: &Point) -> Vec<Point> {
        let mut neighbours = Vec::new();
        for (key, vary) in self.varied.iter().enumerate() {
            let own = point[key];
            let near =
                |other: &usize| *other != own && (!vary.is_ordered() || other.abs_diff(own) == 1);
            neighbours.extend((0..vary.values().len()).filter(near).map(|value| {
                let mut neighbour = point.clone();
                neighbour[key] = value;
                neighbour
            }));
        }
        neighbours
    }
}

/// Fisher-Yates shuffle.
pub(crate) fn shuffle<T>(values: &mut [T], random: &mut Random) {
    for place in (1..values.len()).rev() {
        values.swap(place, random.below(place as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Seed;

    fn space() -> Combinations {
        let varied = [
            "a=1..5",
            "b=4KiB,8KiB,16KiB,32KiB,64KiB",
            "c=noop,cfq,bfq,none",
        ];
        Combinations::new(&varied.map(|argument| argument.parse().unwrap()))
    }

    #[test]
    fn a_sample_has_every_value_of_every_key_as_often() {
        let space = space();
        assert_eq!(space.points(), 100);
        let sample = space.sample(20, &mut Seed(1).stream("sample"));
        let distinct: BTreeSet<&Point> = sample.iter().collect();
        assert_eq!((sample.len(), distinct.len()), (20, 20));
        for (key, values) in [5, 5, 4].into_iter().enumerate() {
            for value in 0..values {
                let often = sample.iter().filter(|point| point[key] == value).count();
                assert!(
                    often.abs_diff(20 / values) <= 2,
                    "key {key}, value {value}: {often}"
                );
            }
        }
        let all = space.sample(500, &mut Seed(1).stream("sample"));
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 100);
    }

    #[test]
    fn neighbours_are_a_step_away_or_another_name() {
        let neighbours = space().neighbours(&vec![0, 2, 1]);
        assert_eq!(
            neighbours,
            [
                [1, 2, 1],
                [0, 1, 1],
                [0, 3, 1],
                [0, 2, 0],
                [0, 2, 2],
                [0, 2, 3]
            ]
        );
        assert_eq!(
            space().assignments(&vec![4, 0, 2]),
            ["a=5", "b=4KiB", "c=bfq"]
        );
        assert_eq!(space().point(99), [4, 4, 3]);
    }
}
