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

    /// The world outside did not let it start.
    pub(crate) fn not_started(message: impl Into<String>) -> Self {
        Self { exit: Exit::NotStarted, message: message.into() }
    }

    /// It started, and failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
    }
}
