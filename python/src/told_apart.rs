//! Distinct names for compared stacks.

use crate::Stack;
use crate::failed::Failed;
use fullstroke_lab::{ComparedStack, LabError, Recipe, Varied, recipes};
use fullstroke_stack::Overrides;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Returns a candidate for each stack and seed, with the candidate's recipe. A stack with a policy of
/// Python's has no recipe, because no file describes the policy.
///
/// As with `--vary`, stacks of one file are named by the keys that differ. Files of equal names are
/// named by their paths. Stacks that are still alike are numbered. The list ends early after an
/// exception in `failed`.
pub(crate) fn candidates(
    stacks: &[Stack],
    seeds: usize,
    failed: &Failed,
) -> Result<Vec<(ComparedStack, Option<Recipe>)>, LabError> {
    let mut by_file: BTreeMap<&PathBuf, Vec<&Stack>> = BTreeMap::new();
    stacks
        .iter()
        .for_each(|stack| by_file.entry(&stack.path).or_default().push(stack));
    let files: Vec<PathBuf> = by_file.keys().map(|file| (*file).clone()).collect();
    let names = recipes(&files, &Overrides::default(), &[])
        .into_iter()
        .map(|recipe| recipe.name);
    let known: BTreeMap<&PathBuf, (String, Vec<&str>)> = by_file
        .iter()
        .zip(names)
        .map(|((file, alike), name)| (*file, (name, differing(alike))))
        .collect();
    let mut met: BTreeMap<String, usize> = BTreeMap::new();
    let mut candidates = Vec::new();
    for stack in stacks {
        let (name, differing) = &known[&stack.path];
        let recipe = recipe(stack, name, differing);
        let label = stack.name_from(&recipe.label());
        let number = met
            .entry(label)
            .and_modify(|number| *number += 1)
            .or_insert(1);
        for recipe in recipe.with_seeds(seeds)? {
            if failed.is_kept() {
                return Ok(candidates);
            }
            let mut candidate = stack.candidate(&recipe, failed)?;
            if *number > 1 {
                candidate.name = format!("{} ({number})", candidate.name);
            }
            candidates.push((candidate, (!stack.has_policies()).then_some(recipe)));
        }
    }
    Ok(candidates)
}

fn recipe(stack: &Stack, name: &str, differing: &[&str]) -> Recipe {
    let own = |key: &&str| stack.value(key).map(|value| format!("{key}={value}"));
    let varied: Vec<String> = differing.iter().filter_map(own).collect();
    Recipe {
        name: name.to_owned(),
        varied: Varied::new(&varied),
        file: stack.path.clone(),
        overrides: stack.overrides(),
    }
}

/// Returns the keys whose values differ between the stacks of a file, in the order of appearance.
fn differing<'a>(alike: &[&'a Stack]) -> Vec<&'a str> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in alike.iter().flat_map(|stack| stack.assignments()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.retain(|key| {
        alike
            .iter()
            .any(|stack| stack.value(key) != alike[0].value(key))
    });
    keys
}
