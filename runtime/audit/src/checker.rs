//! Which of the checkers reads along, behind one face.

use std::io;
use std::path::PathBuf;

use crate::auditor::AuditError;
use crate::finding::{Content, Place};
use crate::lines::LinesChecker;
use crate::plain::{PlainChecker, Repeats};
use crate::sequence::SequenceChecker;

/// What the visible records are held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nothing is known about them.
    Plain(Repeats),
    /// They are the lines of this file, each once and in order.
    Lines(PathBuf),
    /// The sequence connector wrote them.
    Sequence,
}

impl Check {
    pub(crate) fn file_error(&self, source: io::Error) -> AuditError {
        let path = match self {
            Check::Lines(path) => path.clone(),
            Check::Plain(_) | Check::Sequence => PathBuf::new(),
        };
        AuditError::File { path, source }
    }
}

/// A checker at work.
#[derive(Debug)]
pub(crate) enum Checker {
    Plain(PlainChecker),
    Lines(LinesChecker),
    Sequence(SequenceChecker),
}

impl Checker {
    pub(crate) fn open(check: &Check, partitions: i32) -> io::Result<Self> {
        Ok(match check {
            Check::Plain(repeats) => Checker::Plain(PlainChecker::new(*repeats)),
            Check::Lines(path) => Checker::Lines(LinesChecker::open(path, partitions)?),
            Check::Sequence => Checker::Sequence(SequenceChecker::new()),
        })
    }

    pub(crate) fn observe(&mut self, place: Place, value: Option<&[u8]>) -> io::Result<()> {
        match self {
            Checker::Plain(checker) => checker.observe(place, value),
            Checker::Lines(checker) => checker.observe(place, value)?,
            Checker::Sequence(checker) => checker.observe(place, value, value.and_then(crate::sequence::numbered)),
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> io::Result<Content> {
        match self {
            Checker::Plain(checker) => Ok(checker.finish()),
            Checker::Lines(checker) => checker.finish(),
            Checker::Sequence(checker) => Ok(checker.finish()),
        }
    }
}
