//! Statuses as REST shows them.

use oncewire_rest::model::{ConnectorState, TaskState};
use oncewire_topics::Status;

/// A connector instance's.
pub fn connector_state(status: &Status) -> ConnectorState {
    ConnectorState {
        state: status.state.name().to_owned(),
        worker_id: status.worker_id.clone(),
        trace: status.trace.clone(),
        version: status.version.clone(),
    }
}

/// A task's.
pub fn task_state(task: u32, status: &Status) -> TaskState {
    TaskState {
        id: i32::try_from(task).unwrap_or(i32::MAX),
        state: status.state.name().to_owned(),
        worker_id: status.worker_id.clone(),
        trace: status.trace.clone(),
        version: status.version.clone(),
    }
}
