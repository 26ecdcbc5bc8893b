//! `/connectors/{name}/tasks`.

use crate::call::{Call, Problem, Reply, anywhere, here};

pub(super) async fn list(call: &Call, name: &str) -> Result<Reply, Problem> {
    let tasks = call.herder.tasks(name).await.map_err(here)?;
    Ok(Reply::json(200, &call.masked_tasks(tasks)))
}

pub(super) async fn status(call: &Call, name: &str, task: i32) -> Result<Reply, Problem> {
    let state = call.herder.task_status(name, task).await.map_err(here)?;
    Ok(Reply::json(200, &call.masked_state(state)))
}

pub(super) async fn restart(call: &Call, name: &str, task: i32) -> Result<Reply, Problem> {
    call.herder.restart_task(name, task).await.map_err(anywhere)?;
    Ok(Reply::empty(204))
}
