//! Idle members of an array.

use crate::occupancy::distinct_places;

/// Idle members under a random set of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleMembers {
    /// Probability that at least one member has no request.
    pub any_idle: f64,
    /// Mean number of members without a request.
    pub mean_idle: f64,
    /// Mean share of members without a request: the bandwidth lost by idleness.
    pub idle_share: f64,
}

/// Computes the idle members under `requests` independent requests. Each request goes to one of
/// `members` members with equal probability. Returns `None` without members.
///
/// Let `S` be Stirling's number of the second kind. The probability that no member is idle is
/// `members! x S(requests, members) / members^requests`. Each member is idle with probability `(1 -
/// 1 / members)^requests`. Carroll, "I/O scheduling on RAID", section 4.3.2, has the same result
/// from a simulation.
pub fn idle_members(requests: u32, members: u32) -> Option<IdleMembers> {
    if members == 0 {
        return None;
    }
    let reached = distinct_places(requests, u64::from(members));
    let any_idle = reached.iter().take(members as usize).sum();
    // Each of the requests misses one member with the probability 1 - 1/n.
    let idle_share = (1.0 - 1.0 / f64::from(members)).powf(f64::from(requests));
    Some(IdleMembers {
        any_idle,
        mean_idle: f64::from(members) * idle_share,
        idle_share,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Seed;

    /// Returns the number of outcomes in which some members get nothing, and the number of all
    /// outcomes. Uses inclusion and exclusion in whole numbers.
    fn ways(requests: u32, members: u32) -> (u128, u128) {
        let all = u128::from(members).pow(requests);
        let (mut choose, mut onto) = (1i128, 0i128);
        for left_out in 0..=members {
            let each = i128::from(members - left_out).pow(requests) * choose;
            onto += if left_out % 2 == 0 { each } else { -each };
            choose = choose * i128::from(members - left_out) / i128::from(left_out + 1);
        }
        (all - onto as u128, all)
    }

    #[test]
    fn thirty_two_requests_leave_one_of_eight_disks_idle_in_eleven_cases_of_a_hundred() {
        let (some, all) = ways(32, 8);
        let found = idle_members(32, 8).unwrap();
        assert!((found.any_idle / (some as f64 / all as f64) - 1.0).abs() < 1e-13);
        assert_eq!(format!("{:.4}", found.any_idle), "0.1087");
        // "approximately 1.5 % lost bandwidth"
        assert_eq!(format!("{:.4}", found.idle_share), "0.0139");
    }

    #[test]
    fn eight_requests_leave_one_of_two_disks_idle_in_one_case_of_a_hundred() {
        // All eight on one of the two: 2 outcomes of 256.
        assert_eq!(idle_members(8, 2).unwrap().any_idle, 2.0 / 256.0);
    }

    #[test]
    fn the_formula_is_that_of_whole_numbers_wherever_they_reach() {
        for members in 1..=9 {
            for requests in 0..=30 {
                let (some, all) = ways(requests, members);
                let expected = some as f64 / all as f64;
                let found = idle_members(requests, members).unwrap().any_idle;
                assert!(
                    (found - expected).abs() < 1e-14,
                    "{requests} {members}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn a_simulation_agrees_within_its_error() {
        let mut random = Seed(8).stream("idle members");
        let trials = 200_000;
        for (requests, members) in [(32u32, 8u32), (8, 2), (10, 5)] {
            let idle = (0..trials)
                .filter(|_| {
                    let reached =
                        (0..requests).fold(0u64, |met, _| met | 1 << random.below(members.into()));
                    reached.count_ones() < members
                })
                .count();
            let expected = idle_members(requests, members).unwrap().any_idle;
            let error = (expected * (1.0 - expected) / f64::from(trials)).sqrt();
            let found = idle as f64 / f64::from(trials);
            assert!(
                (found - expected).abs() < 4.0 * error,
                "{requests} {members}: {found} {expected}"
            );
        }
    }

    #[test]
    fn without_requests_all_are_idle_and_without_members_nothing_can_be_said() {
        let nothing = idle_members(0, 3).unwrap();
        assert_eq!((nothing.any_idle, nothing.mean_idle), (1.0, 3.0));
        assert_eq!(idle_members(5, 1).unwrap().any_idle, 0.0);
        assert_eq!(idle_members(5, 0), None);
    }
}
