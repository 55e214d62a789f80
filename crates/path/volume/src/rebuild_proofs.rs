//! Property tests on bytes: members fail, are replaced and are filled again while requests
//! continue.

use crate::bytes::{ByteArray, ByteDevice, SECTOR, range};
use crate::proofs::{Case, ProofRequest, asks, cases, check_parity};
use crate::{Detail, Plan, Role};
use fullstroke_contract::{Extent, LayersBelow, MemberState, Operation, Request, RequestStatus};
use fullstroke_units::{Lbn, Sectors};
use proptest::prelude::*;
use proptest::sample::Index;

/// An event of an array.
#[derive(Clone, Debug)]
enum ArrayEvent {
    Ask(ProofRequest),
    Fail(Index),
    /// Replaces a failed member with an empty one.
    Replace(Index),
    /// Continues to fill a member by this number of sectors.
    Fill(Index, u64),
}

fn events(most: usize) -> impl Strategy<Value = Vec<ArrayEvent>> {
    let ask = asks(2).prop_map(|mut asks| ArrayEvent::Ask(asks.remove(0)));
    let event = prop_oneof![
        8 => ask,
        3 => any::<Index>().prop_map(ArrayEvent::Fail),
        3 => any::<Index>().prop_map(ArrayEvent::Replace),
        6 => (any::<Index>(), 0u64..40).prop_map(|(member, most)| ArrayEvent::Fill(member, most)),
    ];
    prop::collection::vec(event, 1..most)
}

/// An array, its expected content, and the known part of this content.
struct Story {
    array: ByteArray,
    case: Case,
    plain: Vec<u8>,
    /// For each sector: true if the sector was not lost since its last write.
    known: Vec<bool>,
    /// True to skip failures with a loss of data.
    careful: bool,
}

impl Story {
    fn new(array: ByteArray, case: &Case, careful: bool) -> Story {
        let capacity = array.layout.capacity().0 as usize;
        Story {
            array,
            case: case.clone(),
            plain: vec![0; capacity * SECTOR],
            known: vec![true; capacity],
            careful,
        }
    }

    fn run(&mut self, events: &[ArrayEvent]) {
        for event in events {
            match event {
                ArrayEvent::Ask(ask) => self.ask(ask),
                ArrayEvent::Fail(member) => self.fail(member.index(self.array.layout.members())),
                ArrayEvent::Replace(member) => {
                    if let Some(member) = pick(member, self.array.layout.failed()) {
                        replace(&mut self.array, member);
                    }
                }
                ArrayEvent::Fill(member, most) => {
                    if let Some(member) = pick(member, self.array.layout.member_states().impaired())
                    {
                        self.array.fill(member, *most);
                    }
                }
            }
        }
    }

    fn ask(&mut self, ask: &ProofRequest) {
        let extent = ask.extent(self.array.layout.capacity().0);
        let mut bytes = ask.bytes(extent);
        let status = self.array.attempt(ask.operation, extent, &mut bytes);
        assert!(
            status == RequestStatus::Done || !self.careful && !self.array.layout.answers(),
            "{status:?}"
        );
        if status != RequestStatus::Done {
            return;
        }
        match ask.operation {
            Operation::Read => self.check_read(extent, &bytes),
            Operation::Discard => self.put(self.case.discarded(extent), None),
            _ => self.put(extent, Some(&bytes)),
        }
    }

    fn put(&mut self, extent: Extent, bytes: Option<&[u8]>) {
        let own = &mut self.plain[range(extent.start.0, extent.sectors.0)];
        match bytes {
            Some(bytes) => own.copy_from_slice(bytes),
            None => own.fill(0),
        }
        self.known[extent.start.0 as usize..extent.end().0 as usize].fill(true);
    }

    fn check_read(&self, extent: Extent, bytes: &[u8]) {
        for (at, bytes) in (extent.start.0..).zip(bytes.chunks(SECTOR)) {
            if self.known[at as usize] {
                assert_eq!(bytes, &self.plain[range(at, 1)], "sector {at}");
            }
        }
    }

    fn fail(&mut self, member: usize) {
        let before = self.array.layout.member_state(member);
        self.array
            .layout
            .set_member_state(member, MemberState::Failed);
        if self.careful && !self.array.layout.answers() {
            return self.array.layout.set_member_state(member, before);
        }
        self.array.scramble(member);
        let mut all_left = true;
        for at in 0..self.known.len() {
            let mut bytes = vec![0; SECTOR];
            let status = self
                .array
                .attempt(Operation::Read, Extent::new(at as u64, 1), &mut bytes);
            self.known[at] &= status == RequestStatus::Done;
            all_left &= status == RequestStatus::Done;
        }
        assert_eq!(self.array.layout.answers(), all_left);
    }

    /// Replaces and fills every member, in order.
    fn mend(&mut self, most: u64) {
        mend(&mut self.array, most);
        assert!(self.array.layout.answers());
        assert!(self.array.layout.member_states().impaired().is_empty());
    }

    fn check_everything(&mut self) {
        check_members(&mut self.array);
        let capacity = self.array.layout.capacity().0;
        let bytes = self.array.read(0, capacity);
        self.check_read(Extent::new(0, capacity), &bytes);
    }
}

/// Checks that every member of a whole array holds the correct content.
pub(crate) fn check_members(array: &mut ByteArray) {
    check_parity(array);
    let bytes = array.read(0, array.layout.capacity().0);
    for member in 0..array.layout.members() {
        for lbn in 0..array.layout.member_used(member).0 {
            let found = array.member_sector(member, lbn);
            if let Role::Data(of) | Role::Copy { of, .. } = array.layout.role_of(member, Lbn(lbn)) {
                assert_eq!(
                    found,
                    bytes[range(of.0, 1)],
                    "sector {lbn} of member {member}"
                );
            }
        }
    }
}

fn pick(index: &Index, members: &[u32]) -> Option<usize> {
    (!members.is_empty()).then(|| members[index.index(members.len())] as usize)
}

fn replace(array: &mut ByteArray, member: usize) {
    array.layout.set_member_state(
        member,
        MemberState::Rebuilding {
            done: Sectors::ZERO,
        },
    );
}

/// Replaces and fills all members that are not alive, `most` sectors at a time.
fn mend(array: &mut ByteArray, most: u64) {
    for &member in &array.layout.failed().to_vec() {
        replace(array, member as usize);
    }
    while let Some(&member) = array.layout.member_states().impaired().first() {
        array.fill(member as usize, most);
    }
}

/// Returns layouts with redundancy for at least one failure.
pub(crate) fn redundant_cases() -> impl Strategy<Value = Case> {
    // For some zones of random members, a paired layout has no space. Such cases have no redundancy
    // either.
    let is_redundant = |case: &Case| {
        case.layout(&[])
            .is_some_and(|layout| layout.failures_survived() > 0)
    };
    cases().prop_filter("with redundancy", is_redundant)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_while_members_fail_within_the_redundancy_and_are_rebuilt(
        case in redundant_cases(), events in events(80), reversed: bool, most in 0u64..50,
    ) {
        let mut array = ByteArray::of_memory(case.layout(&[]).unwrap());
        array.reversed = reversed;
        let mut story = Story::new(array, &case, true);
        story.run(&events);
        prop_assert!(story.known.iter().all(|&known| known));
        story.mend(most);
        story.check_everything();
    }

    /// Every `Done` answer is right, even after a loss of data. The array is consistent when all
    /// members are filled.
    #[test]
    fn whatever_fails_what_is_done_is_right(
        case in cases(), events in events(60), most in 0u64..50,
    ) {
        let mut story = Story::new(ByteArray::of_memory(case.layout(&[]).unwrap()), &case, false);
        story.run(&events);
        story.mend(most);
        story.check_everything();
        let asks: Vec<ArrayEvent> = events.into_iter().filter(|event| matches!(event, ArrayEvent::Ask(_))).collect();
        story.careful = true;
        story.run(&asks);
        story.check_everything();
    }

    #[test]
    fn members_of_nested_arrays_fail_and_are_rebuilt_alike(
        outer in redundant_cases(), inner in redundant_cases(), rounds in prop::collection::vec((events(12), events(12)), 1..5),
        most in 0u64..50,
    ) {
        let inner_capacity = inner.layout(&[]).unwrap().capacity().0;
        let outer = Case { members: vec![inner_capacity; outer.members.len()], ..outer };
        let Some(layout) = outer.layout(&[]) else { return Ok(()) };
        // Discards of an inner array do not guarantee zeros.
        let no_discards = |events: Vec<ArrayEvent>| -> Vec<ArrayEvent> {
            let is_discard = |event: &ArrayEvent| matches!(event, ArrayEvent::Ask(ask) if ask.operation == Operation::Discard);
            events.into_iter().filter(|event| !is_discard(event)).collect()
        };
        let members = (0..layout.members())
            .map(|_| Box::new(ByteArray::of_memory(inner.layout(&[]).unwrap())) as Box<dyn ByteDevice>);
        let mut story = Story::new(ByteArray::new(layout, members.collect()), &outer, true);
        for (count, (events, within)) in rounds.into_iter().enumerate() {
            story.run(&no_discards(events));
            let member = count % story.array.members.len();
            let array = story.array.members[member].as_array().unwrap();
            run_within(array, &within);
        }
        for member in &mut story.array.members {
            mend(member.as_array().unwrap(), most);
        }
        story.mend(most);
        story.check_everything();
        for member in &mut story.array.members {
            check_parity(member.as_array().unwrap());
        }
    }

    #[test]
    fn a_mended_array_plans_like_a_new_one(case in redundant_cases(), events in events(40), asks in asks(20)) {
        let mut story = Story::new(ByteArray::of_memory(case.layout(&[]).unwrap()), &case, false);
        story.run(&events);
        story.mend(16);
        let mut new = case.layout(&[]).unwrap();
        let (mut found, mut expected) = (Plan::new(Detail::Bytes), Plan::new(Detail::Bytes));
        // Copies that are read in turn may be at a different turn.
        let in_turn = case.keys["read_policy"] == "round-robin";
        for ask in asks.iter().filter(|ask| ask.operation != Operation::Read || !in_turn) {
            let extent = ask.extent(new.capacity().0);
            let request = Request { operation: ask.operation, extent, ..Request::default() };
            let mended = &mut story.array.layout;
            prop_assert_eq!(mended.plan(&request, LayersBelow::NOTHING, &mut found), RequestStatus::Done);
            prop_assert_eq!(new.plan(&request, LayersBelow::NOTHING, &mut expected), RequestStatus::Done);
            prop_assert_eq!(found.ios(), expected.ios());
            prop_assert_eq!(found.pieces(), expected.pieces());
            prop_assert_eq!(found.bands(), expected.bands());
            prop_assert_eq!(found.strands(), expected.strands());
        }
    }
}

/// Carries out the failures, replacements and fills of `events`, as far as the array loses no data.
fn run_within(array: &mut ByteArray, events: &[ArrayEvent]) {
    for event in events {
        match event {
            ArrayEvent::Fail(member) => {
                let member = member.index(array.layout.members());
                let before = array.layout.member_state(member);
                array.layout.set_member_state(member, MemberState::Failed);
                if array.layout.answers() {
                    array.scramble(member);
                } else {
                    array.layout.set_member_state(member, before);
                }
            }
            ArrayEvent::Replace(member) => {
                if let Some(member) = pick(member, array.layout.failed()) {
                    replace(array, member);
                }
            }
            ArrayEvent::Fill(member, most) => {
                if let Some(member) = pick(member, array.layout.member_states().impaired()) {
                    array.fill(member, *most);
                }
            }
            ArrayEvent::Ask(_) => {}
        }
    }
}
