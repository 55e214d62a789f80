//! Tests of the digest of the simulating code (`build/code.rs`).

#[path = "../build/code.rs"]
mod code;

use code::{code, files_of_tests};
use std::path::{Path, PathBuf};

fn same(one: &str, other: &str) {
    assert_eq!(code(one), code(other), "{one}\n{other}");
}

fn different(one: &str, other: &str) {
    assert_ne!(code(one), code(other), "{one}\n{other}");
}

#[test]
fn the_version_of_a_result_names_the_code_that_made_it() {
    let (_, digest) = fullstroke_study::VERSION.split_once('-').unwrap();
    assert!(
        digest.len() == 12 && digest.chars().all(|digit| digit.is_ascii_hexdigit()),
        "found `{digest}`; expected the digest of the simulating code, of 12 hexadecimal digits"
    );
}

#[test]
fn comments_spaces_and_trailing_commas_do_not_count() {
    same(
        "/// A.\nfn a(b: u8, c: u8) {}",
        "fn a(\n    b: u8, // it is b\n    c: u8,\n) {\n}",
    );
    same("let a = 1 /* one /* or so */ */ + 2;", "let a = 1 + 2;");
    same("//! x\nlet a = 1;", "let a = 1;");
    different("let a = 1;", "let a = 2;");
    different("let a = (b, c);", "let a = (b c);");
}

#[test]
fn what_looks_like_a_comment_in_a_literal_is_none() {
    different(r#"f("a // b");"#, r#"f("a // c");"#);
    different(r#"f("\" // b");"#, r#"f("\" // c");"#);
    different(r##"f(r#"" // b"#);"##, r##"f(r#"" // c"#);"##);
    different("f(b\"/* a */\");", "f(b\"/* b */\");");
    different("f('\"', 1); // \"", "f('\"', 2); // \"");
    different("f(b'\\'', 1);", "f(b'\\'', 2);");
    same("f('\\'') // '", "f('\\'')");
    same("f(r\"\\\") // \"", "f(r\"\\\")");
    same("f(r#\"\\\"#) // \"", "f(r#\"\\\"#)");
}

#[test]
fn spaces_in_literals_count() {
    different(r#"f("a b");"#, r#"f("a  b");"#);
    different("f(' ');", "f('\t');");
}

#[test]
fn lifetimes_and_raw_identifiers_are_no_literals() {
    same(
        "fn a<'a>(b: &'a u8, c: &'a u8) {} // 'a",
        "fn a<'a>(b: &'a u8, c: &'a u8) {}",
    );
    different(
        "fn a<'a>(b: &'a u8) { 1 } // '",
        "fn a<'a>(b: &'a u8) { 2 } // '",
    );
    same("let r#type = 1; // \"", "let r#type = 1;");
    same(
        "'outer: loop { break 'outer; } // x",
        "'outer: loop { break 'outer; }",
    );
}

#[test]
fn modules_of_tests_do_not_count_and_all_else_does() {
    let plain = "fn a() {}\nfn b() {}";
    same(
        "fn a() {}\n#[cfg(test)]\nmod tests { fn c() { \"}\"; } }\nfn b() {}",
        plain,
    );
    same(
        "fn a() {}\n#[cfg(test)]\n#[path = \"a_tests.rs\"]\npub(crate) mod tests;\nfn b() {}",
        plain,
    );
    different(
        "fn a() {}\n#[cfg(not(test))]\nmod tests {}\nfn b() {}",
        plain,
    );
    different("fn a() {}\nmod tests {}\nfn b() {}", plain);
    different("fn a() {}\n#[cfg(test)]\nfn c() {}\nfn b() {}", plain);
    different("fn a() {}\n#[cfg(test)]\nmod tests { \nfn b() {}", plain);
}

#[test]
fn files_of_tests_are_found_where_their_module_is_declared() {
    let files = |path: &str, text: &str| files_of_tests(Path::new(path), text);
    let paths = |each: &[&str]| each.iter().map(PathBuf::from).collect();
    let declared = "mod code;\n#[cfg(test)]\nmod tests;";
    assert_eq!(
        files("src/lib.rs", declared),
        paths(&["src/tests.rs", "src/tests"])
    );
    assert_eq!(
        files("src/a/mod.rs", declared),
        paths(&["src/a/tests.rs", "src/a/tests"])
    );
    assert_eq!(
        files("src/a.rs", declared),
        paths(&["src/a/tests.rs", "src/a/tests"])
    );
    let named = "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;\n#[cfg(test)]\nmod here {}";
    assert_eq!(files("src/a.rs", named), paths(&["src/a_tests.rs"]));
}

#[test]
fn every_file_of_this_house_is_read_to_its_end() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let more = |what: &str| code(&format!("{text}\n{what}"));
                let behind = more("fn one_more() {}")
                    .strip_prefix(&code(&text))
                    .map(str::to_owned);
                assert_eq!(behind, Some(code("fn one_more() {}")), "{}", path.display());
                assert_eq!(
                    more("// x\n#[cfg(test)]\nmod x {}"),
                    code(&text),
                    "{}",
                    path.display()
                );
            }
        }
    }
}
