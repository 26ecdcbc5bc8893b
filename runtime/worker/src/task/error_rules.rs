//! `errors.*` of a connector (KIP-298): what a record that can't be converted means, and what the log tells of it.
//!
//! With `errors.log.enable` each record that fails is one line, whether it is tolerated or not, as in Kafka Connect; with
//! `errors.log.include.messages` the record itself is in it, which may be what nobody should read in a log. Without, the first
//! record that a task skips is told, so that nobody loses records unawares, and the others are counted alone.

use super::prepare::Tolerance;
use oncewire_api::SourceRecord;
use std::fmt;

/// The longest text of a record in the log: 16 KiB.
const RECORD_TEXT_MAX: usize = 16 * 1024;

/// Where a record failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedStage {
    /// Its key could not be converted.
    Key,
    /// Its value could not be converted.
    Value,
    /// A header could not be converted.
    Header,
    /// It is too large to be sent.
    Produce,
}

/// What is wrong with one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordProblem {
    /// Where that came out.
    pub stage: FailedStage,
    /// In words, without the record.
    pub message: String,
}

impl fmt::Display for RecordProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            FailedStage::Key => "key: ",
            FailedStage::Value => "value: ",
            FailedStage::Header | FailedStage::Produce => "",
        })?;
        f.write_str(&self.message)
    }
}

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRules {
    /// `errors.tolerance`.
    pub tolerance: Tolerance,
    /// `errors.log.enable`.
    pub log: bool,
    /// `errors.log.include.messages`.
    pub log_records: bool,
}

impl ErrorRules {
    /// The log's line about a record that failed; `None` when failures are not logged.
    pub fn line(&self, record: &SourceRecord, problem: &dyn fmt::Display) -> Option<String> {
        if !self.log {
            return None;
        }
        let mut line = format!("a record for topic {:?} from {} failed", record.topic, record.source_partition);
        if let Some(offset) = &record.source_offset {
            line.push_str(&format!(" at {offset}"));
        }
        line.push_str(&format!(": {problem}"));
        if self.log_records {
            let mut text = format!("{record:?}");
            if text.len() > RECORD_TEXT_MAX {
                let end = (0..=RECORD_TEXT_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                text.truncate(end);
                text.push('…');
            }
            line.push_str(&format!("; the record is {text}"));
        }
        Some(line)
    }
}
