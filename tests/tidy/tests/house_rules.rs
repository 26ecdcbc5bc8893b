//! Each rule is a test; a failure lists the places.

use oncewire_tidy::{FILE_LINES_MAX, FUNCTION_LINES_MAX, functions, root, sources};
use std::collections::BTreeMap;
use std::fs;

/// Files that are longer than the rule allows, with the length at which they are held. Only shrink or remove lines.
const LONG_FILES: &[(&str, usize)] = &[];

/// Functions that are longer than the rule allows: (file, name, length at which it is held). Only shrink or remove lines.
/// Those here are tables of cases written as code; cutting them would only hide the table.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[
    ("dev-broker/tests/hostile_requests.rs", "sound_requests", 126),
    ("protocol-client/tests/hostile_corpus.rs", "write_seeds", 75),
    ("txn/tests/transitions.rs", "stage", 97),
];

fn report(rule: &str, places: &[String]) {
    assert!(places.is_empty(), "{rule}:\n  {}", places.join("\n  "));
}

#[test]
fn every_module_says_what_it_is_for() {
    let places: Vec<String> = sources()
        .into_iter()
        .filter(|source| {
            let code = source.text.lines().find(|line| !line.starts_with("#![") && !line.trim().is_empty());
            !code.is_some_and(|line| line.starts_with("//!"))
        })
        .map(|source| source.path)
        .collect();
    report("these files lack a `//!` header", &places);
}

#[test]
fn no_file_outgrows_its_limit() {
    let held: BTreeMap<&str, usize> = LONG_FILES.iter().copied().collect();
    let places: Vec<String> = sources()
        .into_iter()
        .filter_map(|source| {
            let lines = source.text.lines().count();
            let limit = held.get(source.path.as_str()).copied().unwrap_or(FILE_LINES_MAX);
            (lines > limit).then(|| format!("{} has {lines} lines, at most {limit}", source.path))
        })
        .collect();
    report("split these by subject", &places);
}

#[test]
fn no_function_outgrows_a_screen() {
    let mut places = Vec::new();
    for source in sources() {
        for function in functions(&source.text) {
            let held = LONG_FUNCTIONS.iter().find(|(path, name, _)| *path == source.path && *name == function.name);
            let limit = held.map_or(FUNCTION_LINES_MAX, |(_, _, lines)| *lines);
            if function.lines > limit {
                places.push(format!(
                    "{}:{} {} has {} lines, at most {limit}",
                    source.path, function.line, function.name, function.lines
                ));
            }
        }
    }
    report("these functions do not fit a screen", &places);
}

#[test]
fn imports_go_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        ("txn", &[]),
        ("protocol-client", &["oncewire-txn", "oncewire-dev-broker"]),
        ("dev-broker", &["oncewire-client"]),
        ("runtime/api", &[]),
        ("runtime/plugins", &["oncewire-api"]),
        ("runtime/connectors/file", &["oncewire-api"]),
        ("runtime/connectors/sequence", &["oncewire-api"]),
        (
            "runtime/worker",
            &[
                "oncewire-api",
                "oncewire-plugins",
                "oncewire-validation",
                "oncewire-client",
                "oncewire-dev-broker",
                "oncewire-connector-file",
                "oncewire-connector-sequence",
            ],
        ),
        ("runtime/membership", &[]),
        ("runtime/topics", &["oncewire-client", "oncewire-dev-broker"]),
        (
            "runtime/validation",
            &["oncewire-api", "oncewire-plugins", "oncewire-connector-file", "oncewire-connector-sequence"],
        ),
        ("runtime/rest", &["oncewire-client", "oncewire-rest-requests"]),
        (
            "runtime/audit",
            &["oncewire-client", "oncewire-plugins", "oncewire-connector-sequence", "oncewire-dev-broker"],
        ),
    ];
    let mut places = Vec::new();
    for (member, may) in allowed {
        let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).expect("a member has a manifest");
        let mut dev = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                dev = line.contains("dev-dependencies");
            }
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            // The dev broker serves tests only; nothing that ships may lean on it (the command line alone embeds it).
            let only_for_tests = matches!(name, "oncewire-dev-broker" | "oncewire-rest-requests")
                || (matches!(*member, "runtime/worker" | "runtime/validation")
                    && name.starts_with("oncewire-connector"));
            if name.starts_with("oncewire-") && (!may.contains(&name) || (only_for_tests && !dev)) {
                places.push(format!("{member} must not import {name}"));
            }
        }
    }
    report("arrows against the design", &places);
}

#[test]
fn the_transaction_machine_has_no_dependency() {
    let manifest = fs::read_to_string(root().join("txn/Cargo.toml")).expect("txn has a manifest");
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let first = section
        .lines()
        .take_while(|line| !line.starts_with('['))
        .find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    assert_eq!(first, None, "txn must stay free of dependencies");
}

#[test]
fn an_ignored_test_says_what_it_needs() {
    let mut places = Vec::new();
    for source in sources() {
        for (at, line) in source.text.lines().enumerate() {
            if line.trim() == "#[ignore]" {
                places.push(format!("{}:{} ignores a test without saying what it needs", source.path, at + 1));
            }
        }
    }
    report("tests that hide what they need", &places);
}

#[test]
fn nothing_is_left_to_do_in_silence() {
    let unfinished = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!(")];
    let places: Vec<String> = sources()
        .into_iter()
        .flat_map(|source| {
            let path = source.path;
            source
                .text
                .lines()
                .enumerate()
                .filter(|(_, line)| unfinished.iter().any(|word| line.contains(word)))
                .map(|(at, _)| format!("{path}:{}", at + 1))
                .collect::<Vec<_>>()
        })
        .collect();
    report("unfinished places", &places);
}

#[test]
fn functions_are_found_by_their_layout() {
    let text = "fn one() {\n    two();\n}\n\nimpl X {\n    pub(crate) async fn three(\n        a: u8,\n    ) -> u8 {\n        a\n    }\n}\n";
    let found: Vec<(String, usize)> =
        functions(text).into_iter().map(|function| (function.name, function.lines)).collect();
    assert_eq!(found, [("one".to_owned(), 3), ("three".to_owned(), 5)]);
}
