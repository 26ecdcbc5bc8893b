//! A file that grows in pieces of whole lines, as a log does, until it is told to stop.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::files::{LINE_BYTES, line};

/// A piece appears that often.
const EVERY: Duration = Duration::from_millis(100);
/// Its lines.
const LINES: u64 = 20;

/// The file, and the thread that writes it.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    writer: JoinHandle<u64>,
}

impl GrowingFile {
    /// Begins to write a new file.
    ///
    /// # Panics
    /// It can't be made.
    pub fn start(path: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mut file) = (stop.clone(), File::create(&path).expect("the file can be made"));
        let writer = std::thread::spawn(move || {
            let mut number = 0;
            while !stopped.load(Ordering::Acquire) {
                let mut lines = Vec::new();
                for next in number..number + LINES {
                    lines.extend(line(next, LINE_BYTES));
                    lines.push(b'\n');
                }
                file.write_all(&lines).expect("the file can be written");
                number += LINES;
                std::thread::sleep(EVERY);
            }
            number
        });
        GrowingFile { path, stop, writer }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends it; returns the number of lines.
    ///
    /// # Panics
    /// It could not be written.
    pub fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Release);
        self.writer.join().expect("the file could be written")
    }
}
