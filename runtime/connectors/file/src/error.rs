//! What can be wrong with a file, for the operator.

use std::fmt;
use std::io;

use oncewire_api::TaskError;

/// What can be wrong with a file.
#[derive(Debug)]
pub(crate) enum FileError {
    /// It may not be read.
    Permission { file: String, source: io::Error },
    /// It is a directory, a pipe or a device.
    NoRegularFile { file: String, kind: &'static str },
    /// It is shorter than what was read and committed of it.
    Truncated { file: String, position: u64, size: u64 },
    /// Another file has taken its name.
    Replaced { file: String, position: u64 },
    /// The stored position is within a line.
    NotAtLineStart { file: String, position: u64 },
    /// A line is longer than the limit.
    LineTooLong { file: String, position: u64, limit: usize },
    /// Reading failed.
    Read { file: String, position: u64, source: io::Error },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permission { file, .. } => {
                write!(
                    f,
                    "file '{file}' may not be read by this user; give the worker's user read permission on it and on its directories"
                )
            }
            Self::NoRegularFile { file, kind } => {
                write!(f, "'{file}' is {kind}, not a regular file; set 'file' to a file of lines")
            }
            Self::Truncated { file, position, size } => write!(
                f,
                "file '{file}' was truncated: it has {size} bytes, but {position} were read from it already; restore it, or remove \
                 this connector's stored offset to read the file from its start"
            ),
            Self::Replaced { file, position } => write!(
                f,
                "file '{file}' was replaced by another of the same name after {position} bytes of it were read; the stored offset \
                 belongs to the former; to read the new file from its start, remove this connector's stored offset"
            ),
            Self::NotAtLineStart { file, position } => write!(
                f,
                "stored position {position} of file '{file}' is not the start of a line: the file was replaced, or the offset comes \
                 from a worker that counts characters instead of bytes; correct or remove this connector's stored offset"
            ),
            Self::LineTooLong { file, position, limit } => write!(
                f,
                "file '{file}' has a line of more than {limit} bytes at position {position}; raise 'line.bytes.max' (and Kafka's limits \
                 max.request.size and max.message.bytes), or shorten the line"
            ),
            Self::Read { file, position, .. } => write!(f, "reading file '{file}' at position {position} failed"),
        }
    }
}

impl From<FileError> for TaskError {
    fn from(error: FileError) -> Self {
        let task_error = Self::fatal(error.to_string());
        match error {
            FileError::Permission { source, .. } | FileError::Read { source, .. } => task_error.caused_by(source),
            _ => task_error,
        }
    }
}
