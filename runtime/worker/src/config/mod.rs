//! Configuration: files as people have them, the worker's properties, a connector's, and what clients make of both.

pub mod client_keys;
pub mod clients;
pub mod connector;
pub mod dead_letters;
pub mod distributed;
pub mod properties;
pub mod references;
pub mod topic_creation;
pub mod worker;

use oncewire_api::ConfigProblem;
use std::fmt;

/// Everything that is wrong with one configuration, each as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    /// Whose: the path of a file, or a connector's name.
    pub of: String,
    /// The lines.
    pub problems: Vec<String>,
}

impl ConfigErrors {
    /// One problem.
    pub fn one(of: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { of: of.into(), problems: vec![problem.into()] }
    }

    fn from_problems(of: &str, problems: &[ConfigProblem]) -> Self {
        Self { of: of.to_owned(), problems: problems.iter().map(ToString::to_string).collect() }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.of, self.problems.join("; "))
    }
}

impl std::error::Error for ConfigErrors {}

/// The defined name that an unknown one was perhaps meant to be.
pub fn meant<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known.map(|name| (distance(unknown, name), name)).filter(|(distance, _)| *distance <= 2).min().map(|(_, name)| name)
}

/// Letters to change, add or drop (Levenshtein), capped at 3: names that differ more are not alike.
fn distance(one: &str, other: &str) -> usize {
    if one.len().abs_diff(other.len()) > 2 {
        return 3;
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, wanted) in other.iter().enumerate() {
            let change = diagonal + usize::from(letter != *wanted);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()].min(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_what_was_meant() {
        let known = ["batch.size", "file", "topic", "tasks.max"];
        assert_eq!(meant("task.max", known.into_iter()), Some("tasks.max"));
        assert_eq!(meant("topci", known.into_iter()), Some("topic"));
        assert_eq!(meant("something.else", known.into_iter()), None);
    }
}
