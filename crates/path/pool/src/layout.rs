//! A pool as a layout of a stack: capacity and redundancy.

use crate::config::PoolSettings;
use crate::place::FirstPlaces;
use fullstroke_contract::{LayersBelow, Request, RequestStatus};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Geometry, Layout, Location, MemberStates, Plan, Role};

/// The layout of a pool. The layout tells sizes only: the records move with each write, and
/// the layer of the pool knows the places. [`locate`](Layout::locate) gives the
/// place of a record that has not been written since the start of the run.
pub struct PoolLayout {
    name: &'static str,
    settings: PoolSettings,
    places: FirstPlaces,
    states: MemberStates,
}

impl PoolLayout {
    /// Returns the layout of checked settings.
    pub(crate) fn new(name: &'static str, settings: PoolSettings) -> PoolLayout {
        let mut states = MemberStates::alive(settings.members.len());
        for &member in &settings.failed {
            states.set(member as usize, fullstroke_contract::MemberState::Failed);
        }
        PoolLayout {
            name,
            places: FirstPlaces::new(&settings),
            states,
            settings,
        }
    }
}

impl Layout for PoolLayout {
    fn name(&self) -> &'static str {
        self.name
    }

    fn capacity(&self) -> Sectors {
        Sectors(self.settings.volsize / SECTOR_BYTES)
    }

    fn member_capacity(&self, member: usize) -> Sectors {
        self.settings.members[member]
    }

    fn member_used(&self, member: usize) -> Sectors {
        self.settings.member_used(member)
    }

    fn geometry(&self) -> Geometry {
        Geometry::Varying
    }

    fn failures_survived(&self) -> u32 {
        let vdevs = self.settings.vdevs.iter().chain(&self.settings.special);
        vdevs.map(|(vdev, _)| vdev.survives()).min().unwrap_or(0) as u32
    }

    fn member_states(&self) -> &MemberStates {
        &self.states
    }

    fn member_states_mut(&mut self) -> &mut MemberStates {
        &mut self.states
    }

    fn answers(&self) -> bool {
        let width = self.settings.width();
        let impaired = self.states.impaired();
        let vdevs = self.settings.vdevs.iter().chain(&self.settings.special);
        vdevs.enumerate().all(|(index, (vdev, _))| {
            let drives = index * width..index * width + vdev.children() as usize;
            let lost = impaired
                .iter()
                .filter(|&&member| drives.contains(&(member as usize)));
            lost.count() as u64 <= vdev.survives()
        })
    }

    fn locate(&self, lbn: Lbn) -> Location {
        let (member, lbn) = self.places.sector(lbn.0);
        Location {
            member,
            lbn: Lbn(lbn),
        }
    }

    fn role_of(&self, _member: usize, _lbn: Lbn) -> Role {
        Role::Unused
    }

    /// A pool makes no plans: it has a layer of its own.
    fn plan_transfer(&mut self, _: &Request, _: LayersBelow<'_>, _: &mut Plan) -> RequestStatus {
        RequestStatus::Lost
    }
}
