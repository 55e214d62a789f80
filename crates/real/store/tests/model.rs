//! Every layout, in memory and in files, against plain memory. Members fail, are restored, rebuilt
//! and written in any order.

mod common;

use common::{SAMPLES, VolumeSample, folder, path, pattern};
use fullstroke_store::bytes::{MemberStatus, Opening, Store, StoreError, StoreLocation};
use fullstroke_units::{Lbn, Sectors};
use proptest::prelude::*;
use proptest::sample::Index;
use std::ops::ControlFlow;

/// An act on a volume.
#[derive(Clone, Debug)]
enum Act {
    Write {
        at: Index,
        sectors: u64,
    },
    Read {
        at: Index,
        sectors: u64,
    },
    Zero {
        at: Index,
        sectors: u64,
        may_punch: bool,
    },
    Discard {
        at: Index,
        sectors: u64,
    },
    Fail {
        member: Index,
    },
    Restore {
        member: Index,
    },
    Rebuild {
        member: Index,
        sectors: u64,
    },
    Sync,
    Tidy,
    Reopen,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let sectors = || prop_oneof![1u64..9, 1u64..100];
    let at = any::<Index>;
    let act = prop_oneof![
        8 => (at(), sectors()).prop_map(|(at, sectors)| Act::Write { at, sectors }),
        3 => (at(), sectors()).prop_map(|(at, sectors)| Act::Read { at, sectors }),
        2 => (at(), sectors(), any::<bool>())
            .prop_map(|(at, sectors, may_punch)| Act::Zero { at, sectors, may_punch }),
        1 => (at(), sectors()).prop_map(|(at, sectors)| Act::Discard { at, sectors }),
        1 => at().prop_map(|member| Act::Fail { member }),
        2 => at().prop_map(|member| Act::Restore { member }),
        3 => (at(), 1u64..60).prop_map(|(member, sectors)| Act::Rebuild { member, sectors }),
        1 => Just(Act::Sync),
        1 => Just(Act::Tidy),
        1 => Just(Act::Reopen),
    ];
    prop::collection::vec(act, 1..60)
}

struct ModelTrial {
    sample: VolumeSample,
    location: StoreLocation,
    store: Store,
    model: Vec<u8>,
    version: u64,
    /// Number of failed drives since all members were last alive. A failure without effect does not
    /// count.
    failures: usize,
}

fn open(sample: VolumeSample, location: &StoreLocation) -> Store {
    Store::open((sample.shape)(), location, "digest", Opening::default())
        .unwrap()
        .0
}

fn range(lbn: Lbn, sectors: Sectors) -> std::ops::Range<usize> {
    lbn.0 as usize * 512..(lbn.0 + sectors.0) as usize * 512
}

impl ModelTrial {
    fn new(sample: VolumeSample, location: StoreLocation) -> ModelTrial {
        let store = open(sample, &location);
        let model = vec![0; store.capacity().bytes().0 as usize];
        ModelTrial {
            sample,
            location,
            store,
            model,
            version: 0,
            failures: 0,
        }
    }

    fn extent(&self, at: Index, sectors: u64) -> (Lbn, Sectors) {
        let capacity = self.store.capacity().0;
        let start = at.index(capacity as usize) as u64;
        (Lbn(start), Sectors(sectors.min(capacity - start)))
    }

    fn read(&mut self, lbn: Lbn, sectors: Sectors) -> Vec<u8> {
        let mut bytes = vec![0xEE; sectors.bytes().0 as usize];
        self.store.read(lbn, &mut bytes).unwrap();
        bytes
    }

    fn members(&self, wanted: impl Fn(&MemberStatus) -> bool) -> Vec<Vec<usize>> {
        let members = self
            .store
            .status()
            .into_iter()
            .filter(|member| !member.member.is_empty());
        members
            .filter(wanted)
            .map(|member| path(&member.member))
            .collect()
    }

    fn carry_out(&mut self, act: &Act) {
        match *act {
            Act::Write { at, sectors } => {
                let (lbn, sectors) = self.extent(at, sectors);
                self.version += 1;
                let bytes = pattern(lbn.0, sectors.0, self.version);
                self.store.write(lbn, &bytes).unwrap();
                self.model[range(lbn, sectors)].copy_from_slice(&bytes);
            }
            Act::Read { at, sectors } => {
                let (lbn, sectors) = self.extent(at, sectors);
                assert!(
                    self.read(lbn, sectors) == self.model[range(lbn, sectors)],
                    "{lbn} {sectors}"
                );
            }
            Act::Zero {
                at,
                sectors,
                may_punch,
            } => {
                let (lbn, sectors) = self.extent(at, sectors);
                self.store.write_zeroes(lbn, sectors, may_punch).unwrap();
                self.model[range(lbn, sectors)].fill(0);
            }
            Act::Discard { at, sectors } => {
                let (lbn, sectors) = self.extent(at, sectors);
                self.store.discard(lbn, sectors).unwrap();
                self.take_over_discarded(lbn, sectors);
            }
            Act::Fail { member } => self.fail(member),
            Act::Restore { member } => self.restore(member),
            Act::Rebuild { member, sectors } => self.rebuild(member, sectors),
            Act::Sync => self.store.sync().unwrap(),
            Act::Tidy => {
                self.store
                    .tidy(std::time::Duration::from_secs(self.version * 3))
                    .unwrap();
            }
            Act::Reopen => self.reopen(),
        }
    }

    /// Each discarded sector holds its former bytes, or zeros.
    fn take_over_discarded(&mut self, lbn: Lbn, sectors: Sectors) {
        let read = self.read(lbn, sectors);
        for (read, model) in read
            .chunks(512)
            .zip(self.model[range(lbn, sectors)].chunks_mut(512))
        {
            assert!(read == model || read.iter().all(|&byte| byte == 0));
            model.copy_from_slice(read);
        }
    }

    fn fail(&mut self, member: Index) {
        if self.members(|member| !member.is_alive()).is_empty() {
            self.failures = 0;
        }
        // A failed inner volume counts as two failed drives.
        let left = self.sample.tolerance - self.failures;
        let drives = self.members(|member| !member.has_failed() && member.file.is_some());
        let volumes = self.members(|member| !member.has_failed() && member.file.is_none());
        let choice: Vec<(usize, Vec<usize>)> = (drives.into_iter().map(|path| (1, path)))
            .chain(volumes.into_iter().map(|path| (2, path)))
            .filter(|&(cost, _)| cost <= left)
            .collect();
        if !choice.is_empty() {
            let (cost, path) = &choice[member.index(choice.len())];
            self.failures += cost;
            self.store.fail_member(path).unwrap();
        }
    }

    fn restore(&mut self, member: Index) {
        let failed = self.members(|member| member.has_failed());
        if !failed.is_empty() {
            self.try_to_restore(&failed[member.index(failed.len())]);
        }
    }

    /// Restores a member. A volume is restored through its members, if these have failed.
    fn try_to_restore(&mut self, path: &[usize]) {
        match self.store.restore_member(path) {
            Ok(()) | Err(StoreError::Refused(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn rebuild(&mut self, member: Index, sectors: u64) {
        let rebuilding = self.members(|member| member.filled().is_some());
        if !rebuilding.is_empty() {
            let path = &rebuilding[member.index(rebuilding.len())];
            let done = self.store.rebuild_member(path, Sectors(0)).unwrap();
            self.store
                .rebuild_member(path, done + Sectors(sectors))
                .unwrap();
        }
    }

    /// Opens the volume again without a close, as after a kill.
    fn reopen(&mut self) {
        if self.location != StoreLocation::Memory {
            // Releases the lock of the folder.
            self.store = open(self.sample, &StoreLocation::Memory);
            self.store = open(self.sample, &self.location);
        }
    }

    /// Checks three things: written data is there, everything else is zero, and redundancy follows.
    /// Checks the same when all members are alive again.
    fn finish(mut self) {
        self.check();
        loop {
            let failed = self.members(|member| member.has_failed());
            failed.iter().for_each(|path| self.try_to_restore(path));
            let rebuilding = self.members(|member| member.filled().is_some());
            for path in &rebuilding {
                self.store.rebuild_member(path, Sectors(u64::MAX)).unwrap();
            }
            if failed.is_empty() && rebuilding.is_empty() {
                break;
            }
        }
        self.check();
        assert!(self.store.status().iter().all(|member| member.is_alive()));
        self.store.close().unwrap();
        if self.location != StoreLocation::Memory {
            let opening = Opening::default();
            let (store, report) =
                Store::open((self.sample.shape)(), &self.location, "digest", opening).unwrap();
            assert!(
                report.clean && report.regions == 0 && report.replayed_changes == 0,
                "{report:?}"
            );
            ModelTrial {
                store,
                location: StoreLocation::Memory,
                ..self
            }
            .check();
        }
    }

    fn check(&mut self) {
        let capacity = self.store.capacity();
        assert!(
            self.read(Lbn(0), capacity) == self.model,
            "the volume holds what was written"
        );
        let found = self.store.scrub().unwrap();
        assert_eq!(found.mismatched_sectors, 0, "{found:?}");
        self.check_allocation();
    }

    /// Checks three things: runs cover the volume in order, neighbours differ, and runs without
    /// room are zero.
    fn check_allocation(&mut self) {
        let mut runs = Vec::new();
        let capacity = self.store.capacity();
        let mut visit = |run, takes_room| {
            runs.push((run, takes_room));
            ControlFlow::Continue(())
        };
        self.store.allocated(Lbn(0), capacity, &mut visit).unwrap();
        let mut at = Lbn(0);
        for (index, &(run, takes_room)) in runs.iter().enumerate() {
            assert_eq!(run.start, at);
            assert!(index == 0 || runs[index - 1].1 != takes_room);
            let bytes = &self.model[range(run.start, run.sectors)];
            assert!(takes_room || bytes.iter().all(|&byte| byte == 0), "{run:?}");
            at = run.end();
        }
        assert_eq!(at.0, capacity.0);
    }
}

fn try_out(sample: VolumeSample, location: StoreLocation, acts: &[Act]) {
    let mut trial = ModelTrial::new(sample, location);
    acts.iter().for_each(|act| trial.carry_out(act));
    trial.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_volume_in_memory_holds_what_was_written(which in 0..SAMPLES.len(), acts in acts()) {
        try_out(SAMPLES[which], StoreLocation::Memory, &acts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_volume_in_files_holds_what_was_written(which in 0..SAMPLES.len(), acts in acts()) {
        let folder = folder();
        try_out(SAMPLES[which], StoreLocation::Folder(folder.path().to_owned()), &acts);
    }
}
