//! What was committed, on its way back to the task's own methods, which run between two polls.
//!
//! Bound: the records of the transactions under way, and those are bounded by the depth of poll-ahead.

use oncewire_api::{SourceRecord, SourceTask};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
struct Pending {
    records: Vec<(SourceRecord, bool)>,
    commit: bool,
}

/// A handle; clones speak of the same task.
#[derive(Clone, Default)]
pub struct Notices(Arc<Mutex<Pending>>);

impl Notices {
    /// A transaction was committed (or there was nothing to commit); these are its records, `false` for dropped ones.
    pub fn committed(&self, records: Vec<(SourceRecord, bool)>) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.records.extend(records);
        pending.commit = true;
    }

    /// At-least-once mode: these records are in the log; their offsets are stored later.
    pub fn acknowledged(&self, records: Vec<(SourceRecord, bool)>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).records.extend(records);
    }

    /// Tells the task, in order: each record, then the commit. Its errors are logged: what is committed stays committed.
    pub async fn deliver(&self, task: &mut dyn SourceTask) {
        let pending = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (record, _written) in &pending.records {
            if let Err(error) = task.commit_record(record, None).await {
                tracing::warn!("the task's commit_record failed: {error}");
            }
        }
        if pending.commit
            && let Err(error) = task.commit().await
        {
            tracing::warn!("the task's commit failed: {error}");
        }
    }
}
