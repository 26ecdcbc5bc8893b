//! The offsets file of at-least-once standalone mode (`offset.storage.file.filename`): the same file that Java's standalone
//! worker keeps, so that either can go on where the other stopped.
//!
//! It is written whole at each flush. Ours goes to a temporary file beside it first and is then renamed, so that a crash
//! leaves the old or the new file, never half of one (Java truncates and rewrites). Limit: [`FILE_BYTES_MAX`].

use super::java_map;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The largest offsets file that is read: 256 MiB.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// The file and what it holds, shared by all tasks of a worker.
#[derive(Debug)]
pub struct OffsetFile {
    path: PathBuf,
    entries: Mutex<BTreeMap<Bytes, Option<Bytes>>>,
}

impl OffsetFile {
    /// Reads the file; a missing or empty one is an empty store.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn open(path: &Path) -> Result<Self, String> {
        let named = |problem: String| format!("offsets file {}: {problem}", path.display());
        let bytes = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(named(format!("can't be opened: {error}"))),
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(FILE_BYTES_MAX + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| named(format!("can't be read: {error}")))?;
                bytes
            }
        };
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(named(format!("is larger than {FILE_BYTES_MAX} bytes")));
        }
        let entries = java_map::read(&bytes.into()).map_err(|error| {
            named(format!("is not an offsets file ({error}); name another with offset.storage.file.filename"))
        })?;
        Ok(Self { path: path.to_owned(), entries: Mutex::new(entries.into_iter().collect()) })
    }

    /// The entries, for a fold.
    pub fn entries(&self) -> Vec<(Bytes, Option<Bytes>)> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Takes over these entries and writes the file. Blocks on the disk.
    ///
    /// # Errors
    /// One line that names the file; what was taken over stays, and is written with the next flush.
    pub fn store(&self, changes: Vec<(Bytes, Option<Bytes>)>) -> Result<(), String> {
        // Held while writing: two tasks must not rename over each other with older content.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.extend(changes);
        let bytes = java_map::write(entries.iter().map(|(key, value)| (key, value.as_ref())));
        self.replace(&bytes).map_err(|error| format!("offsets file {}: can't be written: {error}", self.path.display()))
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(".tmp");
        let temporary = PathBuf::from(name);
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        std::fs::rename(&temporary, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_survives_its_process_and_keeps_tombstones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("offsets");
        let store = OffsetFile::open(&path).unwrap();
        store
            .store(vec![(Bytes::from_static(b"a"), Some(Bytes::from_static(b"1"))), (Bytes::from_static(b"b"), None)])
            .unwrap();
        store.store(vec![(Bytes::from_static(b"a"), Some(Bytes::from_static(b"2")))]).unwrap();
        let again = OffsetFile::open(&path).unwrap().entries();
        assert_eq!(
            again,
            [(Bytes::from_static(b"a"), Some(Bytes::from_static(b"2"))), (Bytes::from_static(b"b"), None)]
        );
        assert!(!folder.path().join("offsets.tmp").exists());
    }

    #[test]
    fn a_file_that_is_something_else_is_refused_by_name_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "dear diary").unwrap();
        let error = OffsetFile::open(&path).unwrap_err();
        assert!(error.contains("notes.txt") && error.contains("not an offsets file"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"dear diary");
    }
}
