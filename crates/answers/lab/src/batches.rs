//! Parts of a workload that are the same for all candidates.

use crate::space::shuffle;
use crate::{LabError, Recipe};
use fullstroke_stack::Stack;
use fullstroke_units::Duration;

/// Parts of a workload. A trace is cut into parts with equal numbers of requests. The parts stand
/// in random order, so that the first few parts are a sample of the whole trace. Any other workload
/// is run with consecutive seeds instead. Each part begins with idle drives and empty caches.
#[derive(Clone, Debug)]
pub struct Batches {
    windows: Vec<[Duration; 2]>,
    first_seed: u64,
    count: usize,
}

impl Batches {
    /// Divides the workload of `recipe` into about `count` parts.
    ///
    /// # Errors
    /// Errors of the stack or of the trace.
    pub fn new(recipe: &Recipe, count: usize) -> Result<Batches, LabError> {
        let stack = Stack::load(&recipe.file, &recipe.overrides)?;
        let mut random = stack.seed().stream("batches");
        let mut windows = stack.trace_parts(count)?.unwrap_or_default();
        // With the seed of the stack, so that all candidates see the same order.
        shuffle(&mut windows, &mut random);
        let count = if windows.is_empty() {
            count
        } else {
            windows.len()
        };
        Ok(Batches {
            windows,
            first_seed: stack.seed().0,
            count,
        })
    }

    /// Returns the number of parts.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns true if the parts are parts of a trace, false if the parts are runs with different
    /// seeds.
    pub fn are_windows(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Returns `recipe` limited to part `batch`.
    pub fn recipe(&self, recipe: &Recipe, batch: usize) -> Recipe {
        let mut recipe = recipe.clone();
        match self.windows.get(batch) {
            Some(&part) => recipe.limit_trace(part),
            None => {
                // A seed near the end of the range continues at 0.
                let seed = self.first_seed.wrapping_add(batch as u64);
                recipe.overrides.set.push(format!("seed={seed}"));
            }
        }
        recipe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Varied, run};
    use fullstroke_stack::Overrides;
    use serde_json::{Map, Value, json};
    use std::path::{Path, PathBuf};

    fn project(file: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../..")
            .join(file)
    }

    fn mix(kinds: &[(&str, Value)]) -> Recipe {
        let workloads = kinds.iter().map(|(name, keys)| {
            let mut workload = keys.as_object().cloned().unwrap_or_default();
            workload.insert("name".to_owned(), json!(name));
            workload
        });
        let workloads: Vec<Map<String, Value>> = workloads.collect();
        let overrides = Overrides {
            workloads,
            ..Overrides::default()
        };
        Recipe {
            name: "mix".to_owned(),
            varied: Varied::default(),
            file: project("stacks/demo/raid5.toml"),
            overrides,
        }
    }

    fn trace(name: &str) -> Value {
        json!({ "kind": "trace", "path": project(&format!("samples/{name}.parquet")) })
    }

    #[test]
    fn several_traces_are_cut_at_the_same_times_where_each_has_requests() {
        let recipe = mix(&[("database", trace("pgbench")), ("build", trace("compile"))]);
        let batches = Batches::new(&recipe, 400).unwrap();
        // The trace of PostgreSQL ends at 301 s, that of the compilation at 421 s. Every part needs
        // requests of both.
        assert!(
            batches.are_windows() && batches.count() < 400,
            "{}",
            batches.count()
        );
        let last = batches.windows.iter().map(|window| window[0]).max();
        assert!(
            last.is_some_and(|last| last < Duration::from_secs(301)),
            "{last:?}"
        );
        let ran = run(
            &batches.recipe(&recipe, 0).candidate().unwrap(),
            None,
            &|_, _| {},
        )
        .unwrap();
        let report = &ran.measured.report;
        let each: Vec<u64> = report
            .sources
            .workloads
            .iter()
            .map(|workload| workload.requests)
            .collect();
        assert!(
            each.len() == 2 && each.iter().all(|requests| *requests > 0),
            "{each:?}"
        );
        assert!(
            (200..600).contains(&report.arrived.requests),
            "a 400th of 145,000: {}",
            report.arrived.requests
        );
    }

    #[test]
    fn a_mix_with_something_else_than_traces_is_run_with_seeds() {
        let scan = json!({
            "kind": "synthetic", "size": "1MiB", "requests": 10, "arrivals": { "process": "closed", "outstanding": 1 },
        });
        let batches =
            Batches::new(&mix(&[("database", trace("pgbench")), ("scan", scan)]), 8).unwrap();
        assert!(!batches.are_windows() && batches.count() == 8);
    }
}
