//! Requests between workers: task configurations to the leader, and fencing. Signed where session keys are in use (KIP-507).

use crate::body;
use crate::call::{Call, Problem, Reply, anywhere};
use crate::error::Failure;
use crate::sign::{ALGORITHM_HEADER, RequestSignature, SIGNATURE_HEADER};

pub(super) async fn put_tasks(call: &Call, name: &str) -> Result<Reply, Problem> {
    let configs = body::config_maps(&call.body)?;
    let signature = signature(call)?;
    call.herder.put_task_configs(name, configs, signature).await.map_err(anywhere)?;
    Ok(Reply::empty(204))
}

pub(super) async fn fence(call: &Call, name: &str) -> Result<Reply, Problem> {
    let signature = signature(call)?;
    call.herder.fence_zombies(name, signature).await.map_err(anywhere)?;
    Ok(Reply::empty(204))
}

fn signature(call: &Call) -> Result<Option<RequestSignature>, Failure> {
    let header = |name| call.headers.get(name).and_then(|value| value.to_str().ok());
    RequestSignature::from_headers(header(ALGORITHM_HEADER), header(SIGNATURE_HEADER), call.body.clone())
}
