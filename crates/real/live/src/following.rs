//! What the data have still to do, because the layers have done it: members to fill, and gears.

use crate::member_names::dotted;
use crate::status::GearStatus;
use fullstroke_contract::Gear;
use fullstroke_units::Sectors;
use std::collections::VecDeque;

/// A step in which the data follow the layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FollowingStep {
    /// Fill the member at this path up to the sector.
    Fill(Vec<usize>, Sectors),
    /// Shift the volume at this path.
    Shift(Vec<usize>, Gear),
}

/// A volume with gears, and its state according to the layers.
#[derive(Debug)]
struct GearedVolume {
    path: Vec<usize>,
    gear: Gear,
    /// Number of shifts begun.
    shifts: u64,
}

/// Work of the data, in the order of the layers.
#[derive(Debug)]
pub(crate) struct Following {
    /// Members, and the sector up to which their data are to be filled.
    unfilled: VecDeque<(Vec<usize>, Sectors)>,
    gears: Vec<GearedVolume>,
    /// Volumes, and the gears for their data to follow.
    shifts: VecDeque<(Vec<usize>, Gear)>,
    /// True while members are being filled.
    rebuilding: bool,
}

impl Following {
    /// Returns no work, for volumes with gears at these paths.
    pub(crate) fn new(geared: Vec<Vec<usize>>) -> Following {
        let gears = geared.into_iter().map(|path| GearedVolume {
            path,
            gear: Gear::default(),
            shifts: 0,
        });
        Following {
            unfilled: VecDeque::new(),
            gears: gears.collect(),
            shifts: VecDeque::new(),
            rebuilding: false,
        }
    }

    /// Notes that the layers have filled a member up to `done`.
    pub(crate) fn rebuilt(&mut self, path: Vec<usize>, done: Sectors) {
        match self.unfilled.iter_mut().find(|unfilled| unfilled.0 == path) {
            Some((_, upto)) => *upto = done,
            None => self.unfilled.push_back((path, done)),
        }
    }

    /// Notes that the layers have shifted a volume.
    pub(crate) fn shifted(&mut self, path: Vec<usize>, gear: Gear) {
        for geared in self.gears.iter_mut().filter(|geared| geared.path == path) {
            geared.gear = gear;
            geared.shifts += u64::from(matches!(gear, Gear::Falling | Gear::Rising));
        }
        self.shifts.push_back((path, gear));
    }

    /// True if data are to be filled or copied.
    pub(crate) fn has_work(&self) -> bool {
        !self.unfilled.is_empty() || !self.shifts.is_empty()
    }

    /// Takes the next step. Members are filled in the high gear, and none is stopped before all are
    /// filled.
    pub(crate) fn next(&mut self) -> Option<FollowingStep> {
        let is_filled_first = matches!(self.shifts.front(), None | Some((_, Gear::Falling)))
            && !self.unfilled.is_empty();
        if is_filled_first {
            let (path, upto) = self.unfilled.pop_front()?;
            return Some(FollowingStep::Fill(path, upto));
        }
        let (path, to) = self.shifts.pop_front()?;
        Some(FollowingStep::Shift(path, to))
    }

    /// Puts a step in front again that is not done, because steps of one volume depend on their
    /// order.
    pub(crate) fn put_back(&mut self, step: FollowingStep) {
        match step {
            FollowingStep::Fill(path, upto) => self.unfilled.push_front((path, upto)),
            FollowingStep::Shift(path, to) => self.shifts.push_front((path, to)),
        }
    }

    /// Notes whether members are being filled.
    pub(crate) fn set_rebuilding(&mut self, rebuilding: bool) {
        self.rebuilding = rebuilding;
    }

    /// True while the layers fill members, and the data have followed so far.
    pub(crate) fn waits_for_layers(&self) -> bool {
        self.rebuilding && !self.has_work()
    }

    /// Returns the states of all volumes with gears.
    pub(crate) fn gears(&self) -> Vec<GearStatus> {
        let status = |volume: &GearedVolume| GearStatus {
            volume: dotted(&volume.path),
            gear: volume.gear.name().to_owned(),
            shifts: volume.shifts,
        };
        self.gears.iter().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_filled_before_a_volume_falls_and_after_it_has_risen() {
        let mut following = Following::new(vec![vec![]]);
        following.shifted(vec![], Gear::Rising);
        following.rebuilt(vec![1], Sectors(8));
        following.rebuilt(vec![1], Sectors(16));
        let rise = FollowingStep::Shift(vec![], Gear::Rising);
        assert_eq!(following.next(), Some(rise.clone()));
        following.put_back(rise.clone());
        assert_eq!(following.next(), Some(rise));
        following.shifted(vec![], Gear::Falling);
        let fill = FollowingStep::Fill(vec![1], Sectors(16));
        assert_eq!(following.next(), Some(fill));
        let fall = FollowingStep::Shift(vec![], Gear::Falling);
        assert_eq!(following.next(), Some(fall));
        assert_eq!(following.next(), None);
        assert_eq!(following.gears()[0].shifts, 2);
    }
}
