//! Tests of every policy: the policy agrees with its plain model, page by page, and no page is lost
//! or held twice.

use super::{ListPlace, PolicySite, REGISTRY, Replacement, arc, lru, lru2, s3fifo, two_q};
use crate::pages::{PageTable, flag};
use crate::run::PageRun;
use fullstroke_contract::Object;
use fullstroke_contract::registry::{Keys, find};
use fullstroke_units::{Duration, Time};
use proptest::prelude::*;
use serde_json::json;

/// A plain model of a policy: pages by number, one at a time.
pub trait PlainPolicy {
    /// Sets the time in seconds.
    fn at(&mut self, _second: u64) {}
    /// Adds a missing page. Returns the evicted page if memory is full.
    fn come(&mut self, page: u64, full: bool) -> Option<u64>;
    /// Uses a held page. `first` is true for the first use since the page came.
    fn used(&mut self, page: u64, first: bool);
}

const OBJECT: Object = Object(3);

fn build(name: &str, keys: &Keys, limit: u64) -> Box<dyn Replacement> {
    (find("replacement", REGISTRY, "replacement", name)
        .unwrap()
        .build)(keys, &PolicySite { limit })
    .unwrap()
}

fn model(name: &str, kernel: &'static str, limit: usize) -> Box<dyn PlainPolicy> {
    match name {
        "lru" => Box::<lru::plain::Model>::default(),
        "2q" => Box::new(two_q::plain::Model::new(limit)),
        "arc" => Box::new(arc::plain::Model {
            c: limit,
            ..Default::default()
        }),
        "s3fifo" => {
            let small_most = (limit / 10).max(1);
            Box::new(s3fifo::plain::Model {
                small_most,
                main_most: limit - small_most,
                ..Default::default()
            })
        }
        "lru2" => Box::new(lru2::plain::Model::new(kernel)),
        other => panic!("`{other}` has no plain model"),
    }
}

/// The pages and the policy, without a cache around them.
struct PolicyBench {
    pages: PageTable,
    policy: Box<dyn Replacement>,
    limit: u64,
    gone: Vec<u64>,
    seconds: u64,
}

impl PolicyBench {
    fn new(policy: Box<dyn Replacement>, limit: u64) -> PolicyBench {
        PolicyBench {
            pages: PageTable::default(),
            policy,
            limit,
            gone: Vec::new(),
            seconds: 0,
        }
    }

    /// Begins the next second.
    fn tick(&mut self) {
        self.seconds += 1;
        self.policy
            .at(Time::ZERO + Duration::from_secs(self.seconds), &self.pages);
    }

    /// Uses pages run by run, as the cache does.
    fn access(&mut self, first: u64, count: u64) {
        let (mut at, end) = (first, first + count);
        while at < end {
            match self.pages.find(OBJECT, at) {
                Some(slot) => {
                    let to = self.pages.get(slot).end().min(end);
                    let slot = self.pages.cut(slot, at, to);
                    let first = self.pages.get(slot).is(flag::PUSHED);
                    self.pages.change(slot, 0, flag::PUSHED);
                    self.policy.used(&mut self.pages, slot, first);
                    at = to;
                }
                None => self.bring(at, self.pages.next_held(OBJECT, at).min(end) - at),
            }
        }
    }

    fn bring(&mut self, first: u64, count: u64) {
        let free = self.limit - self.pages.held().pages;
        let count = self
            .policy
            .wanted(&self.pages, PageRun::new(OBJECT, first, count), free)
            .min(self.limit);
        assert!(count > 0);
        while self.limit - self.pages.held().pages < count {
            let most = count - (self.limit - self.pages.held().pages);
            let slot = self
                .policy
                .victim(&mut self.pages, most)
                .expect("full memory has a victim");
            let gone = self.pages.remove(slot);
            assert!(u64::from(gone.pages) <= most);
            self.gone.extend(gone.first..gone.end());
            self.policy.evicted(&self.pages, &gone);
        }
        // In this test the flag stands for "not used yet".
        let slot = self
            .pages
            .add(PageRun::new(OBJECT, first, count), flag::PUSHED);
        self.policy
            .admitted(&mut self.pages, slot, ListPlace::Usual);
    }
}

/// Makes the same accesses to the model, page by page.
fn follow(
    model: &mut dyn PlainPolicy,
    bench: &mut PolicyBench,
    first: u64,
    count: u64,
) -> Result<(), TestCaseError> {
    for page in first..first + count {
        let held = bench.pages.look(OBJECT, page).is_some();
        let full = bench.pages.held().pages == bench.limit;
        bench.gone.clear();
        bench.tick();
        model.at(bench.seconds);
        let fresh = bench
            .pages
            .look(OBJECT, page)
            .is_none_or(|slot| bench.pages.get(slot).is(flag::PUSHED));
        bench.access(page, 1);
        let gone = if held { None } else { model.come(page, full) };
        model.used(page, fresh);
        prop_assert_eq!(&bench.gone, &Vec::from_iter(gone));
    }
    Ok(())
}

fn accesses() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let scan = (0u64..400, 1u64..40);
    let hot = (0u64..40, 1u64..4);
    prop::collection::vec(prop_oneof![scan, hot.clone(), hot], 1..160)
}

fn cases() -> Vec<(&'static str, Keys, &'static str)> {
    let kernels = ["2.4", "2.6", "3.0", "today"];
    let lru2 = kernels.map(|kernel| {
        (
            "lru2",
            Keys::from_iter([("kernel".to_owned(), json!(kernel))]),
            kernel,
        )
    });
    let others = REGISTRY
        .iter()
        .filter(|entry| entry.name != "lru2")
        .map(|entry| (entry.name, Keys::new(), ""));
    others.chain(lru2).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn each_policy_lets_go_what_its_plain_model_does(accesses in accesses(), limit in 20u64..150) {
        for (name, keys, kernel) in cases() {
            let mut model = model(name, kernel, limit as usize);
            let mut bench = PolicyBench::new(build(name, &keys, limit), limit);
            for &(first, count) in &accesses {
                follow(model.as_mut(), &mut bench, first, count).map_err(|error| {
                    TestCaseError::fail(format!("{name} {kernel}: {error}"))
                })?;
            }
        }
    }

    /// A run at once has the same effect as its pages one by one.
    #[test]
    fn runs_are_as_their_pages(accesses in accesses(), limit in 50u64..150) {
        for (name, keys, _) in cases() {
            let bench = || PolicyBench::new(build(name, &keys, limit), limit);
            let (mut by_run, mut by_page) = (bench(), bench());
            for &(first, count) in &accesses {
                let end = first + count;
                by_run.tick();
                by_page.tick();
                for page in first..end {
                    if by_page.pages.look(OBJECT, page).is_none() {
                        by_page.bring(page, 1);
                    }
                }
                let mut at = first;
                while at < end {
                    if by_run.pages.look(OBJECT, at).is_none() {
                        by_run.bring(at, by_run.pages.next_held(OBJECT, at).min(end) - at);
                    }
                    at += 1;
                }
                prop_assert_eq!(&by_run.gone, &by_page.gone, "{}", name);
            }
        }
    }
}

#[test]
fn every_policy_keeps_hot_pages_from_a_scan_but_lru() {
    for (name, keys, kernel) in cases() {
        let mut bench = PolicyBench::new(build(name, &keys, 1000), 1000);
        // First a tenth of the memory is used again and again. Then a file of ten times the memory
        // is read.
        for round in 0..20 {
            bench.access(0, 100);
            bench.access(100_000 + round * 90, 90);
        }
        (0..300).for_each(|window| bench.access(1_000_000 + window * 32, 32));
        let kept = (0..100)
            .filter(|&page| bench.pages.look(OBJECT, page).is_some())
            .count();
        match name {
            "lru" => assert_eq!(kept, 0),
            // In these kernels, active pages become inactive as quickly as inactive pages leave.
            "lru2" if kernel == "2.6" || kernel == "2.4" => {
                assert!(kept < 100, "{name} {kernel}: {kept}")
            }
            _ => assert_eq!(kept, 100, "{name} {kernel}"),
        }
    }
}
