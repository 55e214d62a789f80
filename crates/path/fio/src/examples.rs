//! Holds the list of fio's own example jobs (`examples.md`) to those files, if fio's package is
//! installed. `FULLSTROKE_FIO_EXAMPLES` names another folder, and `FULLSTROKE_GENERATE=1` writes the
//! list.

use crate::{FioSource, JobSet, testing};
use fullstroke_contract::Operation;
use fullstroke_units::{Sectors, Seed};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folder of the examples in Debian's package `fio-examples`.
const FOLDER: &str = "/usr/share/doc/fio/examples";
/// A volume of 4 TB.
const VOLUME: Sectors = Sectors(4_000_000_000_000 / 512);
/// Smallest number of files in the folder of fio 3.33. A part of the examples gives no list.
const FILES_MIN: usize = 80;

/// Returns the error of a job file; `None` if the jobs run.
fn refused(name: &str, text: &str) -> Option<(String, String)> {
    let error = match JobSet::parse(name, text, &BTreeMap::new()) {
        Ok(set) => FioSource::new(&set, VOLUME, Seed(1), None).err()?,
        Err(error) => error,
    };
    Some((error.option, error.message))
}

fn list(files: &[PathBuf]) -> String {
    let mut runs = Vec::new();
    let mut others: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
        match refused(&name, &text) {
            None => runs.push(format!("`{name}`")),
            Some(why) => others.entry(why).or_default().push(format!("`{name}`")),
        }
    }
    let mut page = format!(
        "## fio's own examples\n\nThe job files in the folder `examples` of fio 3.33, on a volume of 4 TB.\n\n\
         These {} files run: {}.\n\n\
         These {} files are refused. The error names the line, too.\n\n| file | option | reason |\n|---|---|---|\n",
        runs.len(),
        runs.join(", "),
        others.values().map(Vec::len).sum::<usize>(),
    );
    for ((option, why), names) in others {
        let _ = writeln!(page, "| {} | `{option}` | {why} |", names.join(", "));
    }
    page
}

#[test]
fn the_list_of_examples_is_that_of_the_files() {
    let folder = env::var("FULLSTROKE_FIO_EXAMPLES").unwrap_or_else(|_| FOLDER.to_owned());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "fio"))
        .collect();
    files.sort();
    if files.len() < FILES_MIN {
        println!(
            "skipped: {} examples of fio in {folder}; expected {FILES_MIN}",
            files.len()
        );
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/examples.md");
    let found = list(&files);
    if env::var_os("FULLSTROKE_GENERATE").is_some() {
        fs::write(&page, &found).unwrap();
    }
    assert_eq!(include_str!("examples.md"), found, "{}", page.display());
}

/// The command by which people judge whether a disk is fast enough for etcd. Its blocks are no sectors.
const ETCD: &str = "fio --rw=write --ioengine=sync --fdatasync=1 --directory=test-data --size=22m --bs=2300 --name=mytest";

#[test]
fn buffered_blocks_of_any_size_reach_the_volume_in_pages() {
    let set = JobSet::parse("a.fio", ETCD, &BTreeMap::new()).unwrap();
    let mut source = FioSource::new(&set, VOLUME, Seed(1), Some(7)).unwrap();
    let mut seen = Vec::new();
    testing::run(&mut source, |request| {
        let extent = request.extent;
        seen.push((request.operation, extent.start.0, extent.sectors.0));
    });
    // Bytes 0 to 2300, 2300 to 4600, 4600 to 6900: pages 0, 0 and 1, 1.
    let writes: Vec<_> = seen
        .iter()
        .filter(|(operation, ..)| *operation == Operation::Write)
        .take(3)
        .map(|&(_, start, sectors)| (start, sectors))
        .collect();
    assert_eq!(writes, [(0, 8), (0, 16), (8, 8)]);
    assert_eq!(seen[1].0, Operation::Flush);
    assert!(
        set.notes[0].contains("whole pages of 4 KiB"),
        "{:?}",
        set.notes
    );
    // The kernel refuses such direct I/O.
    let direct = JobSet::parse("a.fio", &format!("{ETCD} --direct=1"), &BTreeMap::new());
    assert!(direct.unwrap_err().message.contains("multiple of 512"));
}
