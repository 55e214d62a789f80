//! Disciplines that choose the next command of a smart disk. A discipline is one file with a type
//! that implements [`XorDiscipline`], and one line in [`REGISTRY`].

mod adaptive;
mod conditional;
mod greedy;
mod xpwq;
mod xpwt;

use crate::choices::{Choices, NextCommand};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};

/// A rule of choice.
pub trait XorDiscipline: Send {
    /// Returns the command to begin next. If any command can begin, the discipline must choose one.
    fn choose(&mut self, choices: &Choices<'_>) -> Option<NextCommand>;
}

/// Function that builds a discipline from its keys, for a disk with `segments` segments.
pub type BuildXorDiscipline =
    fn(&Keys, segments: u32) -> Result<Box<dyn XorDiscipline>, ConfigError>;

/// Every discipline.
#[rustfmt::skip]
pub const REGISTRY: &[PolicyEntry<BuildXorDiscipline>] = &[
    PolicyEntry { name: "greedy", summary: greedy::SUMMARY, schema: schema_of::<greedy::Config>, build: greedy::build },
    PolicyEntry { name: "xpwt", summary: xpwt::SUMMARY, schema: schema_of::<xpwt::Config>, build: xpwt::build },
    PolicyEntry { name: "xpwq", summary: xpwq::SUMMARY, schema: schema_of::<xpwq::Config>, build: xpwq::build },
    PolicyEntry { name: "conditional", summary: conditional::SUMMARY, schema: schema_of::<conditional::Config>, build: conditional::build },
    PolicyEntry { name: "adaptive", summary: adaptive::SUMMARY, schema: schema_of::<adaptive::Config>, build: adaptive::build },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::{CommandClass, CommandQueues, Segments};
    use crate::testing::model;
    use fullstroke_contract::registry::find;
    use fullstroke_drive::queue::{ArmView, WaitingRequest};
    use fullstroke_drive::{DriveModel, HeadPosition};
    use fullstroke_units::{Cylinder, Duration, Lbn, Sectors, Time};
    use proptest::prelude::*;
    use serde_json::json;

    /// A disk with waiting commands.
    #[derive(Debug)]
    struct QueuedDisk {
        model: DriveModel,
        commands: Vec<(CommandClass, WaitingRequest)>,
        now: Time,
        head: HeadPosition,
        segments: Segments,
    }

    impl QueuedDisk {
        fn arm(&self) -> ArmView<'_> {
            ArmView {
                now: self.now,
                head: self.head,
                next_lbn: Lbn(0),
                mechanics: self.model.mechanics(),
            }
        }

        fn choice(&self, name: &str, keys: serde_json::Value) -> Option<(CommandClass, Duration)> {
            let entry = find("discipline", REGISTRY, "", name).unwrap();
            let keys = serde_json::from_value(keys).unwrap();
            let mut discipline = (entry.build)(&keys, self.segments.total).unwrap();
            let mut queues = CommandQueues::default();
            self.commands
                .iter()
                .for_each(|&(class, waiting)| queues.insert(class, waiting));
            let choices = Choices {
                arm: self.arm(),
                queues: &queues,
                segments: self.segments,
            };
            let NextCommand { class, access, .. } = discipline.choose(&choices)?;
            Some((class, access))
        }

        /// Returns the least access time of a class, from a look at every command.
        fn least(&self, class: CommandClass) -> Option<Duration> {
            let mechanics = self.model.mechanics();
            let access = |waiting: &WaitingRequest| {
                let position = &waiting.position;
                let seek = mechanics.seek(
                    self.head,
                    position.cylinder,
                    position.surface,
                    waiting.write,
                );
                seek + mechanics.rotation(
                    self.head,
                    self.now + seek,
                    position.angle,
                    waiting.span,
                    waiting.write,
                )
            };
            let of_class = self.commands.iter().filter(|(other, _)| *other == class);
            let least = of_class.map(|(_, waiting)| access(waiting)).min();
            least.filter(|_| self.segments.free() >= class.segments())
        }

        fn all(&self) -> Option<Duration> {
            [CommandClass::Xdw, CommandClass::Xpw, CommandClass::Plain]
                .into_iter()
                .filter_map(|class| self.least(class))
                .min()
        }

        fn waiting(&self, class: CommandClass) -> usize {
            self.commands
                .iter()
                .filter(|(other, _)| *other == class)
                .count()
        }
    }

    fn disk() -> impl Strategy<Value = QueuedDisk> {
        let class = prop::sample::select(vec![
            CommandClass::Xdw,
            CommandClass::Xdw,
            CommandClass::Xpw,
            CommandClass::Plain,
        ]);
        let commands = prop::collection::vec((class, 0u64..1390), 0..12);
        (commands, 0u64..100_000_000, 0u32..20, 2u32..6, 0u32..6).prop_map(
            |(commands, now, cylinder, total, used)| {
                let model = model();
                let waiting = |(slot, &(class, lbn)): (usize, &(CommandClass, u64))| {
                    let position = model.mechanics().geometry().locate(Lbn(lbn));
                    let span = model.mechanics().span(&position, Sectors(1));
                    let (slot, lbn, arrived) = (slot as u32, Lbn(lbn), Time::ZERO);
                    (
                        class,
                        WaitingRequest {
                            slot,
                            lbn,
                            position,
                            span,
                            write: false,
                            arrived,
                        },
                    )
                };
                QueuedDisk {
                    commands: commands.iter().enumerate().map(waiting).collect(),
                    model,
                    now: Time::from_nanos(now),
                    head: HeadPosition {
                        cylinder: Cylinder(cylinder),
                        ..HeadPosition::default()
                    },
                    segments: Segments {
                        total,
                        working: 0,
                        results: used % (total + 1),
                    },
                }
            },
        )
    }

    proptest! {
        #[test]
        fn a_command_is_chosen_whenever_one_may_begin(disk in disk(), which in 0..REGISTRY.len()) {
            let choice = disk.choice(REGISTRY[which].name, json!({}));
            prop_assert_eq!(choice.is_some(), disk.all().is_some());
            if let Some((class, access)) = choice {
                prop_assert_eq!(Some(access), disk.least(class));
            }
        }

        #[test]
        fn greedy_takes_the_shortest(disk in disk()) {
            prop_assert_eq!(disk.choice("greedy", json!({})).map(|(_, access)| access), disk.all());
        }

        /// Section 3.2: the discipline takes an XPW if the time of the XPW exceeds the least time
        /// by at most δ.
        #[test]
        fn xpwt_decides_by_the_formula(disk in disk(), delta_ms in 0u64..10) {
            let choice = disk.choice("xpwt", json!({ "delta_ms": delta_ms }));
            let delta = Duration::from_millis(delta_ms);
            let xpw = disk.least(CommandClass::Xpw).filter(|&xpw| disk.all().is_some_and(|all| xpw <= all + delta));
            match xpw {
                Some(xpw) => prop_assert_eq!(choice, Some((CommandClass::Xpw, xpw))),
                None => prop_assert_eq!(choice.map(|(_, access)| access), disk.all()),
            }
        }

        /// Section 3.3: the discipline takes an XPW if more than maxNxpw XPWs wait.
        #[test]
        fn xpwq_decides_by_the_formula(disk in disk(), max_xpw in 0usize..6) {
            let choice = disk.choice("xpwq", json!({ "max_xpw": max_xpw }));
            match disk.least(CommandClass::Xpw).filter(|_| disk.waiting(CommandClass::Xpw) > max_xpw) {
                Some(xpw) => prop_assert_eq!(choice, Some((CommandClass::Xpw, xpw))),
                None => prop_assert_eq!(choice.map(|(_, access)| access), disk.all()),
            }
        }

        #[test]
        fn beyond_the_threshold_xdws_stand_back(disk in disk(), threshold in 0u32..3) {
            let choice = disk.choice("conditional", json!({ "threshold": threshold }));
            let others = disk.least(CommandClass::Xpw).into_iter().chain(disk.least(CommandClass::Plain)).min();
            match others.filter(|_| disk.segments.results > threshold) {
                Some(other) => {
                    prop_assert!(choice.is_some_and(|(class, access)| class != CommandClass::Xdw && access == other));
                }
                None => prop_assert_eq!(choice.map(|(_, access)| access), disk.all()),
            }
        }

        #[test]
        fn adaptive_lies_between_greedy_and_always_an_xpw(disk in disk()) {
            let choice = disk.choice("adaptive", json!({}));
            let always = disk.choice("xpwq", json!({ "max_xpw": 0 }));
            prop_assert!(choice == always || choice.map(|(_, access)| access) == disk.all());
            if disk.segments.free() <= 1 && disk.waiting(CommandClass::Xpw) + 1 >= disk.segments.total as usize {
                prop_assert_eq!(choice, always);
            }
        }
    }
}
