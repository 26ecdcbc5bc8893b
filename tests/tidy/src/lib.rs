//! The house rules that a machine can hold, as tests over the tree itself.
//!
//! Held here: module headers, file and function sizes (as a ratchet: the list of exceptions may only shrink), import
//! arrows between crates, `txn` without dependencies, no test that skips itself, no `todo!`. Not held here: style in the
//! small (rustfmt, clippy) and taste.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines past which a file wants splitting.
pub const FILE_LINES_MAX: usize = 600;

/// Lines past which a function no longer fits one screen.
pub const FUNCTION_LINES_MAX: usize = 70;

/// One source file of the tree.
#[derive(Debug)]
pub struct Source {
    /// Relative to the repository's root, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").components().collect()
}

/// Every Rust file of the workspace's members and of `fuzz/`, without build output.
pub fn sources() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    for top in ["txn", "protocol-client", "dev-broker", "runtime", "tests", "fuzz"] {
        walk(&root.join(top), &mut found);
    }
    found.sort();
    found
        .into_iter()
        .map(|path| {
            let relative = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            let text = fs::read_to_string(&path).unwrap_or_default();
            Source { path: relative, text }
        })
        .collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("corpus") {
                walk(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// A function's name, its first line (from 1) and its length in lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`.
    pub line: usize,
    /// From the `fn` line to its closing brace.
    pub lines: usize,
}

/// Finds functions by the layout that rustfmt gives them: the closing brace stands at the indentation of the `fn` line.
pub fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let closing = format!("{}}}", " ".repeat(indent));
        let end = lines[at..].iter().position(|line| *line == closing);
        let next_semicolon = lines[at..].iter().position(|line| line.ends_with(';'));
        let Some(end) = end else { continue };
        let signature_only = next_semicolon
            .is_some_and(|semicolon| lines[at..at + semicolon + 1].iter().all(|line| !line.ends_with('{')));
        if !signature_only {
            out.push(Function { name: name.to_owned(), line: at + 1, lines: end + 1 });
        }
    }
    out
}

fn function_name(line: &str) -> Option<&str> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return None;
    }
    let at = code.find("fn ")?;
    let before = &code[..at];
    let words_only = before.split_whitespace().all(|word| {
        matches!(word, "pub" | "async" | "const" | "pub(crate)" | "pub(super)" | "unsafe" | "extern" | "default")
    });
    if !words_only {
        return None;
    }
    let name = &code[at + 3..];
    let end = name.find(|character: char| !character.is_alphanumeric() && character != '_')?;
    (end > 0).then(|| &name[..end])
}
