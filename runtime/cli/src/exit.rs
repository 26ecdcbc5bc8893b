//! How a command ends: one number for each kind of end, so that a script can tell them apart.

use std::process::ExitCode;

/// The end of a command. The numbers are part of the command line's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done, or stopped when asked.
    Done,
    /// 1: something failed while running, say a task.
    Failed,
    /// 2: the command line, a property or a file is wrong; nothing was started.
    Usage,
    /// 3: could not start: no broker there, a topic can't be made, …
    NotStarted,
    /// 4: the auditor found a gap, a duplicate or a difference.
    NotContent,
    /// 5: a newer worker has taken over; this one stopped by itself and must not be restarted blindly.
    Superseded,
}

impl Exit {
    /// The process's exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotStarted => 3,
            Self::NotContent => 4,
            Self::Superseded => 5,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A command that could not do its job: how it ends, and the one line that says what to change.
#[derive(Debug)]
pub(crate) struct Stop {
    /// The kind of end.
    pub(crate) exit: Exit,
    /// For standard error, without a full stop.
    pub(crate) message: String,
}

impl Stop {
    /// A mistake in what was asked.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// Mistakes in one file, or in one connector's properties: several of them one below the other.
    pub(crate) fn mistakes(of: &str, problems: &[String]) -> Self {
        match problems {
            [problem] => Self::usage(format!("{of}: {problem}")),
            problems => Self::usage(format!("{of}: {} problems\n  - {}", problems.len(), problems.join("\n  - "))),
        }
    }

    /// The world outside did not let it start.
    pub(crate) fn not_started(message: impl Into<String>) -> Self {
        Self { exit: Exit::NotStarted, message: message.into() }
    }

    /// It started, and failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mistake_is_a_line_and_several_are_a_list() {
        let told = |problems: &[&str]| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Stop::mistakes("w.properties", &problems).message
        };
        assert_eq!(told(&["a is missing"]), "w.properties: a is missing");
        assert_eq!(told(&["a is missing", "b is 7"]), "w.properties: 2 problems\n  - a is missing\n  - b is 7");
        assert_eq!(Stop::mistakes("w.properties", &[]).exit.code(), 2);
    }
}
