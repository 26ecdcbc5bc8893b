//! docs/scenarios.md against the tests that it names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SCENARIOS: usize = 110;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text from the comment above a test to its name; `None` when there is no such test.
fn head<'a>(file: &'a str, test: &str) -> Option<&'a str> {
    let at = file.find(&format!("fn {test}("))?;
    let above = &file[..at];
    let start = above.rfind("\n\n").or_else(|| above.rfind("{\n")).unwrap_or(0);
    let head = &file[start..at + test.len() + 3];
    (head.contains("#[test]") || head.contains("#[tokio::test")).then_some(head)
}

/// Whether the test says which scenario it shows.
fn carries(head: &str, id: &str, name: &str) -> bool {
    let number = id.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    let is_word = |found: &str| head.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == found);
    is_word(id)
        || head.contains(name)
        || head.contains(&name.replace('-', "_"))
        || head.contains(&format!("scenario_{number}_"))
}

#[test]
fn each_scenario_names_tests_that_exist_and_one_that_carries_its_name() {
    let page = fs::read_to_string(root().join("docs/scenarios.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|row| row.len() > 6 && row[1].ends_with(|last: char| last.is_ascii_digit()))
        .collect();
    assert_eq!(rows.len(), SCENARIOS);
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let (id, name) = (row[1], row[2]);
        assert!(id.ends_with(&(number + 1).to_string()), "{id} is out of order");
        let tests: Vec<(&str, &str)> =
            row[4..].iter().flat_map(|cell| cell.split('`')).filter_map(|test| test.rsplit_once("::")).collect();
        let mut carried = false;
        for (path, test) in &tests {
            let file = files.entry(path).or_insert_with(|| fs::read_to_string(root().join(path)).unwrap_or_default());
            match head(file, test) {
                Some(head) => carried |= carries(head, id, name),
                None => wrong.push(format!("{id}: there is no test {path}::{test}")),
            }
        }
        if !carried {
            wrong.push(format!("{id}: none of {} tests says {id} or {name}", tests.len()));
        }
    }
    assert!(wrong.is_empty(), "docs/scenarios.md:\n  {}", wrong.join("\n  "));
}
