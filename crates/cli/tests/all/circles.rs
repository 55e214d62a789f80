//! Circles among the files of a crate: files that use each other can only be read together.

use crate::common::project;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Crates with files in circles, and the largest number of these files. A node of a volume or pool
/// owns state whose type stands beside the methods by which the node changes this state. All other
/// crates have no circles.
const KNOWN: &[(&str, usize)] = &[("path/pool", 3), ("path/volume", 2)];

/// A path of names, such as `["array", "writing"]`.
type Names = Vec<String>;

/// The files of a crate with their text, without tests.
struct Sources {
    files: BTreeMap<Names, String>,
    /// For each name that the crate's root exports, its path within the crate.
    exported: BTreeMap<String, Names>,
}

impl Sources {
    fn of(src: &Path) -> Sources {
        let mut files = BTreeMap::new();
        collect(src, &mut Vec::new(), &mut files);
        let tests: Vec<Names> = files.iter().flat_map(test_modules).collect();
        files.retain(|names, _| !tests.iter().any(|test| names.starts_with(test)));
        for text in files.values_mut() {
            *text = without_tests(text);
        }
        let root = files.remove(&Vec::new()).unwrap_or_default();
        let exports = uses(&root, "pub use ").into_iter();
        let exported = exports.filter_map(|path| Some((path.last()?.clone(), path)));
        Sources {
            exported: exported.collect(),
            files,
        }
    }

    /// Returns the file of a path within the crate.
    fn file_of(&self, path: &[String]) -> Option<Names> {
        let longest = (1..=path.len())
            .rev()
            .find(|&length| self.files.contains_key(&path[..length]));
        longest.map(|length| path[..length].to_vec()).or_else(|| {
            let exported = self.exported.get(path.first()?)?;
            let longest = (1..=exported.len())
                .rev()
                .find(|&length| self.files.contains_key(&exported[..length]));
            longest.map(|length| exported[..length].to_vec())
        })
    }

    /// Returns the files that a file uses.
    fn used_by(&self, names: &Names, text: &str) -> BTreeSet<Names> {
        let mut used = BTreeSet::new();
        let inline = text.match_indices("crate::").map(|(at, _)| {
            let path =
                text[at..].split(|sign: char| !(sign.is_alphanumeric() || "_:".contains(sign)));
            let path = path.into_iter().next().unwrap_or_default();
            path.split("::").map(str::to_owned).collect::<Names>()
        });
        for path in uses(text, "use ").into_iter().chain(inline) {
            let depth = path.iter().take_while(|name| *name == "super").count();
            let within = match path[0].as_str() {
                "crate" => path[1..].to_vec(),
                "super" => {
                    let above = &names[..names.len().saturating_sub(depth)];
                    [above, &path[depth..]].concat()
                }
                child
                    if self
                        .files
                        .contains_key(&[&names[..], &[child.to_owned()]].concat()) =>
                {
                    [&names[..], &path[..]].concat()
                }
                _ => continue,
            };
            used.extend(self.file_of(&within).filter(|file| file != names));
        }
        used
    }
}

fn collect(folder: &Path, names: &mut Names, files: &mut BTreeMap<Names, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            names.push(stem);
            collect(&path, names, files);
            names.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let lines = fs::read_to_string(&path).unwrap();
            let code = lines
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let own = (stem != "lib" && stem != "main").then_some(stem);
            let key = names.iter().cloned().chain(own).collect();
            files.insert(key, code.map(|line| format!("{line}\n")).collect());
        }
    }
}

/// Returns the modules that a file declares for tests alone.
fn test_modules((names, text): (&Names, &String)) -> Vec<Names> {
    let declared = text.split("#[cfg(test)]\n").skip(1);
    let declared = declared.filter_map(|after| {
        let mut lines = after.lines().skip_while(|line| line.starts_with("#["));
        let (name, _) = lines.next()?.strip_prefix("mod ")?.split_once(';')?;
        Some([&names[..], &[name.to_owned()]].concat())
    });
    declared.collect()
}

/// Returns the text before the tests within the file.
fn without_tests(text: &str) -> String {
    let begins = |visibility| text.find(&format!("#[cfg(test)]\n{visibility}mod tests {{"));
    let tests = ["", "pub(crate) ", "pub(super) "]
        .into_iter()
        .find_map(begins);
    text[..tests.unwrap_or(text.len())].to_owned()
}

/// Returns the paths of all declarations that begin a line with `keyword`.
fn uses(text: &str, keyword: &str) -> Vec<Names> {
    let mut found = Vec::new();
    for after in format!("\n{text}").split(&format!("\n{keyword}")).skip(1) {
        let declared: String = after
            .split(';')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        expand(&[], &declared, &mut found);
    }
    found.retain(|path: &Names| !path.is_empty());
    found
}

/// Expands `a::{b, c::d}` to paths.
fn expand(before: &[String], declared: &str, found: &mut Vec<Names>) {
    let (mut depth, mut start) = (0, 0);
    let ends = declared.char_indices().chain([(declared.len(), ',')]);
    for (at, sign) in ends {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let item = &declared[start..at];
                start = at + 1;
                let (path, group) = item.split_once('{').unwrap_or((item, ""));
                let own = path.split("::").filter(|name| !name.is_empty());
                let own: Names = before
                    .iter()
                    .cloned()
                    .chain(own.map(str::to_owned))
                    .collect();
                match group.strip_suffix('}') {
                    Some(group) => expand(&own, group, found),
                    None => found.push(own),
                }
            }
            _ => {}
        }
    }
}

/// Returns the files that lead back to themselves.
fn in_circles(used: &BTreeMap<Names, BTreeSet<Names>>) -> Vec<String> {
    let leads_back = |from: &Names| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            for next in used.get(file).into_iter().flatten() {
                if next == from {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    };
    let files = used.keys().filter(|file| leads_back(file));
    files.map(|file| file.join("::")).collect()
}

/// Returns the crates by their paths below `crates/`.
fn crates() -> Vec<String> {
    let root = project().join("crates");
    let (mut found, mut open) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = open.pop() {
        if folder.join("Cargo.toml").exists() {
            let place = folder.strip_prefix(&root).unwrap();
            found.push(place.to_str().unwrap().to_owned());
            continue;
        }
        let entries = fs::read_dir(&folder).unwrap();
        let entries = entries.map(|entry| entry.unwrap().path());
        open.extend(entries.filter(|path| path.is_dir()));
    }
    found.sort_unstable();
    found
}

#[test]
fn no_file_of_the_house_stands_in_a_circle_except_the_known_ones() {
    let places = crates();
    assert!(places.len() > 40, "{places:?}");
    for place in &places {
        let most = KNOWN.iter().find(|(known, _)| known == place);
        let most = most.map_or(0, |(_, most)| *most);
        let sources = Sources::of(&project().join("crates").join(place).join("src"));
        let used = sources.files.iter();
        let used = used.map(|(names, text)| (names.clone(), sources.used_by(names, text)));
        let found = in_circles(&used.collect());
        assert!(
            found.len() <= most,
            "{place}: {} files stand in circles; expected at most {most}: {found:?}. Move the shared type down into a file of its own",
            found.len()
        );
    }
}

#[test]
fn each_file_of_a_crate_belongs_to_a_module() {
    let mut strays = Vec::new();
    for place in crates() {
        let mut files = BTreeMap::new();
        let src = project().join("crates").join(&place).join("src");
        collect(&src, &mut Vec::new(), &mut files);
        let has_path = |stem: &str| {
            let path = format!("{stem}.rs\"");
            files.values().any(|text| text.contains(&path))
        };
        for names in files.keys() {
            let Some((stem, above)) = names.split_last() else {
                continue;
            };
            let declares = |text: &String| {
                text.split(|sign: char| !(sign.is_alphanumeric() || sign == '_'))
                    .any(|word| word == stem)
            };
            let inside = [above, &["mod".to_owned()]].concat();
            let parent = files.get(above).or_else(|| files.get(&inside));
            if stem != "mod" && !parent.is_some_and(declares) && !has_path(stem) {
                strays.push(format!("{place}: {}", names.join("/")));
            }
        }
    }
    assert!(
        strays.is_empty(),
        "no module declares these files: {strays:?}"
    );
}

#[test]
fn a_circle_is_found() {
    let text = "use crate::b::Thing;\n";
    let sources = Sources {
        files: [
            (vec!["a".to_owned()], text.to_owned()),
            (
                vec!["b".to_owned()],
                "use super::a::{Other, More};\n".to_owned(),
            ),
            (
                vec!["c".to_owned()],
                "fn f() { crate::a::g() }\n".to_owned(),
            ),
        ]
        .into(),
        exported: BTreeMap::new(),
    };
    let used = sources.files.iter();
    let used = used.map(|(names, text)| (names.clone(), sources.used_by(names, text)));
    assert_eq!(in_circles(&used.collect()), ["a", "b"]);
}
