//! `/worker/drain`, which Java does not have: hands a worker's tasks over before it is stopped.

use crate::call::{Call, Problem, Reply, here};
use crate::model::DrainState;

pub(super) async fn drain(call: &Call) -> Result<Reply, Problem> {
    let status = call.herder.drain().await.map_err(here)?;
    let code = if status.state == DrainState::Drained { 200 } else { 202 };
    Ok(Reply::json(code, &status))
}
