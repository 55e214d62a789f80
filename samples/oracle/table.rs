//! Reads the tables of the oracle. Test programs of several crates include this file by path, and
//! each uses a part of the file.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

/// A table of the oracle: the first 200 requests of a case.
pub struct Table {
    /// Column, SHA-256 of the whole source file, name of the source file.
    pub sources: Vec<[String; 3]>,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The root of the repository.
pub fn root() -> &'static Path {
    let of_a_crate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut above = of_a_crate.ancestors();
    above
        .find(|folder| folder.join("samples/oracle").is_dir())
        .unwrap_or_else(|| panic!("samples/oracle is not above {}", of_a_crate.display()))
}

/// A file of the oracle.
pub fn path(name: &str) -> PathBuf {
    root().join("samples/oracle").join(name)
}

/// A file of the reference data beside the repository, or `None`, said aloud,
/// where they are not there.
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = root().join("../shared").join(name);
    if !path.exists() {
        eprintln!(
            "skipped: {name} is not beside the repository; its first 200 requests were tested"
        );
        return None;
    }
    Some(path)
}

impl Table {
    /// The table `name`, without `.csv`.
    pub fn read(name: &str) -> Table {
        let path = path(&format!("{name}.csv"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let fields = |line: &str| line.split(',').map(str::to_owned).collect();
        let mut lines = text.lines().peekable();
        let mut sources = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("# ")) {
            let words: Vec<&str> = line[2..].splitn(3, ' ').collect();
            sources.push([0, 1, 2].map(|at| words[at].to_owned()));
        }
        Table {
            sources,
            columns: fields(lines.next().unwrap()),
            rows: lines.map(fields).collect(),
        }
    }

    /// The fields of a column, in order.
    pub fn column(&self, name: &str) -> Vec<&str> {
        let at = self.columns.iter().position(|column| column == name);
        let at = at.unwrap_or_else(|| panic!("no column `{name}` in {:?}", self.columns));
        self.rows.iter().map(|row| &row[at][..]).collect()
    }

    /// Whether there is such a column.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column == name)
    }

    /// The numbers of a column, in order.
    pub fn numbers<N: std::str::FromStr>(&self, name: &str) -> Vec<N> {
        let number = |field: &str| {
            field
                .parse()
                .unwrap_or_else(|_| panic!("`{field}` in column `{name}`"))
        };
        self.column(name).into_iter().map(number).collect()
    }

    /// The lines of a measured disk's table in the format of validation traces.
    pub fn validation_trace(&self) -> String {
        let columns = [
            "operation",
            "cache",
            "lbn",
            "sectors",
            "service_us",
            "think_us",
        ]
        .map(|name| self.column(name));
        (0..self.rows.len())
            .map(|row| columns.each_ref().map(|column| column[row]).join(" ") + "\n")
            .collect()
    }
}

/// Table and column of a case of the reference's `mechanics`: `DISK.SET.TRACE` or
/// `DISK.SET.TRACE.ORDER`, where the trace of an array has a point in its name.
pub fn mechanics(case: &str) -> (String, String) {
    let parts: Vec<&str> = case.split('.').collect();
    let trace = if parts[2].starts_with("raid") { 2 } else { 1 };
    let column = [&[parts[1]], &parts[2 + trace..]].concat().join(".");
    let table = [&[parts[0]], &parts[2..2 + trace]].concat().join(".");
    (format!("mechanics/{table}"), column)
}
