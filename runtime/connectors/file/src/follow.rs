//! A file that is followed while it grows. Blocking; the task runs it on a thread made for that.
//!
//! The stored offset is a file name and a position, as in Java, so it cannot tell one file of a name from the next. Whatever shows that
//! the file is another one fails the task, rather than skipping lines in silence:
//!
//! - it is shorter than what was read (truncated), at the start or while it is followed;
//! - at the start, the byte before the stored position ends no line;
//! - while it is followed, the name leads to another file (seen by device and inode) once the old one is read to its end.
//!
//! A name that is gone for a moment is no error: the open file is still followed. Not seen: a file that was truncated and has grown
//! beyond the position between two looks, and one that was replaced while the worker was down, if the position fits it.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::error::FileError;

/// An open file and how to recognise it.
#[derive(Debug)]
pub(crate) struct FollowedFile {
    /// The name as the operator wrote it.
    name: String,
    path: PathBuf,
    file: File,
    identity: Option<(u64, u64)>,
    /// How far the file was read.
    read_position: u64,
}

impl FollowedFile {
    /// Opens a file at a position; `None` when there is no file of that name.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be read, or is not the file to which the position belongs.
    pub(crate) fn open(name: &str, path: PathBuf, position: u64) -> Result<Option<Self>, FileError> {
        let read_error = |source| FileError::Read { file: name.into(), position, source };
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(open_error(name, position, error)),
        };
        // Before opening: to open a pipe would wait for its other end.
        if !metadata.is_file() {
            let kind = if metadata.is_dir() { "a directory" } else { "a pipe, socket or device" };
            return Err(FileError::NoRegularFile { file: name.into(), kind });
        }
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(open_error(name, position, error)),
        };
        let metadata = file.metadata().map_err(read_error)?;
        if metadata.len() < position {
            return Err(FileError::Truncated { file: name.into(), position, size: metadata.len() });
        }
        if let Some(before) = position.checked_sub(1) {
            let mut last = [0];
            file.seek(SeekFrom::Start(before)).map_err(read_error)?;
            file.read_exact(&mut last).map_err(read_error)?;
            if !matches!(last, [b'\n' | b'\r']) {
                return Err(FileError::NotAtLineStart { file: name.into(), position });
            }
        }
        Ok(Some(Self { name: name.into(), path, file, identity: identity(&metadata), read_position: position }))
    }

    /// Appends at most `bytes_max` bytes to the buffer; nothing when there are none at the moment.
    ///
    /// # Errors
    /// [`FileError`] when reading fails or the file is no longer the one that was opened.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>, bytes_max: usize) -> Result<usize, FileError> {
        let read =
            (&mut self.file).take(bytes_max as u64).read_to_end(buffer).map_err(|source| self.read_error(source))?;
        self.read_position += read as u64;
        if read == 0 {
            self.check_identity()?;
        }
        Ok(read)
    }

    /// At the end of the file: is it still the file of that name?
    fn check_identity(&self) -> Result<(), FileError> {
        let size = self.file.metadata().map_err(|source| self.read_error(source))?.len();
        if size < self.read_position {
            return Err(FileError::Truncated { file: self.name.clone(), position: self.read_position, size });
        }
        let moved_on = match fs::metadata(&self.path) {
            Ok(metadata) => self.identity.is_some() && identity(&metadata) != self.identity,
            Err(_) => false, // gone for a moment, perhaps; the open file is still there
        };
        // What was appended to the old file before it was replaced comes first.
        if moved_on && size == self.read_position {
            return Err(FileError::Replaced { file: self.name.clone(), position: self.read_position });
        }
        Ok(())
    }

    fn read_error(&self, source: io::Error) -> FileError {
        FileError::Read { file: self.name.clone(), position: self.read_position, source }
    }
}

fn open_error(name: &str, position: u64, source: io::Error) -> FileError {
    if source.kind() == ErrorKind::PermissionDenied {
        FileError::Permission { file: name.into(), source }
    } else {
        FileError::Read { file: name.into(), position, source }
    }
}

/// Device and inode, where there are such.
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        // Replacement is then seen only when the new file is shorter.
        let _ = metadata;
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use super::*;

    fn open(path: &Path, position: u64) -> Result<Option<FollowedFile>, FileError> {
        FollowedFile::open("in.txt", path.to_path_buf(), position)
    }

    fn append(path: &Path, text: &[u8]) {
        File::options().append(true).create(true).open(path).unwrap().write_all(text).unwrap();
    }

    #[test]
    fn a_growing_file_is_followed_in_bounded_pieces() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("in.txt");
        append(&path, b"hello\n");
        let mut followed = open(&path, 0).unwrap().unwrap();
        let mut buffer = Vec::new();
        assert_eq!(followed.read(&mut buffer, 4).unwrap(), 4);
        assert_eq!(followed.read(&mut buffer, 4).unwrap(), 2);
        assert_eq!(followed.read(&mut buffer, 4).unwrap(), 0);
        append(&path, b"more");
        assert_eq!(followed.read(&mut buffer, 100).unwrap(), 4);
        assert_eq!(buffer, b"hello\nmore");
    }

    #[test]
    fn a_missing_file_is_no_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(open(&directory.path().join("nobody"), 0).unwrap().is_none());
    }

    #[test]
    fn a_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error = open(directory.path(), 0).unwrap_err();
        assert_eq!(error.to_string(), "'in.txt' is a directory, not a regular file; set 'file' to a file of lines");
    }

    #[test]
    fn a_file_shorter_than_the_stored_position_fails_with_both_numbers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("in.txt");
        append(&path, b"abc\n");
        let error = open(&path, 5).unwrap_err().to_string();
        assert!(error.contains("'in.txt' was truncated: it has 4 bytes, but 5 were read"), "{error}");
    }

    #[test]
    fn a_position_within_a_line_fails() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("in.txt");
        append(&path, b"abc\ndef\rg");
        assert!(open(&path, 4).unwrap().is_some());
        assert!(open(&path, 8).unwrap().is_some());
        assert!(matches!(open(&path, 2), Err(FileError::NotAtLineStart { position: 2, .. })));
    }

    #[test]
    fn a_file_truncated_while_it_is_followed_fails() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("in.txt");
        append(&path, b"abc\ndef\n");
        let mut followed = open(&path, 0).unwrap().unwrap();
        followed.read(&mut Vec::new(), 100).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4).unwrap();
        assert!(matches!(followed.read(&mut Vec::new(), 100), Err(FileError::Truncated { position: 8, size: 4, .. })));
    }

    #[test]
    fn a_replaced_file_fails_once_the_old_one_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("in.txt");
        append(&path, b"old\n");
        let mut followed = open(&path, 0).unwrap().unwrap();
        fs::rename(&path, directory.path().join("in.txt.1")).unwrap();
        let mut buffer = Vec::new();
        assert_eq!(followed.read(&mut buffer, 100).unwrap(), 4);
        assert_eq!(followed.read(&mut buffer, 100).unwrap(), 0, "a name that is gone is no error");
        append(&directory.path().join("in.txt.1"), b"late\n");
        append(&path, b"new\n");
        assert_eq!(followed.read(&mut buffer, 100).unwrap(), 5, "what was appended to the old file comes first");
        assert!(matches!(followed.read(&mut buffer, 100), Err(FileError::Replaced { position: 9, .. })));
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_without_waiting_for_its_other_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(matches!(open(&path, 0), Err(FileError::NoRegularFile { .. })));
    }
}
