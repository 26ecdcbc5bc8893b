//! `/`, `/health` (KIP-1017) and `/openapi.json`.

use std::time::Duration;

use bytes::Bytes;

use crate::call::{Call, Reply};
use crate::herder::HerderError;
use crate::model::{Stage, WorkerStatus};

/// How long the herder may take for nothing.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// As a Java worker says it.
const UNABLE: &str = "Worker was unable to handle this request and may be unable to handle other requests.";

/// Written by hand; a test holds it against the routes.
pub(crate) const OPENAPI: &str = include_str!("../openapi.json");

pub(super) fn info(call: &Call) -> Reply {
    Reply::json(200, &call.herder.server_info())
}

pub(super) fn openapi() -> Reply {
    Reply { code: 200, body: Some(Bytes::from_static(OPENAPI.as_bytes())), ..Reply::default() }
}

pub(super) async fn health(call: &Call) -> Reply {
    if !call.herder.is_ready() {
        // Java waits for its limit of 10 s before it says so, which is longer than most probes wait.
        return starting(call.herder.stage().as_ref());
    }
    match tokio::time::timeout(HEALTH_TIMEOUT, call.herder.ping()).await {
        Ok(Ok(())) => {
            let message = "Worker has completed startup and is ready to handle requests.";
            status(200, "healthy", message, None)
        }
        Ok(Err(HerderError::Unavailable(cause))) => {
            status(500, "unhealthy", &format!("{UNABLE} Cause: {}", call.herder.masked(cause)), None)
        }
        Ok(Err(_)) | Err(_) => status(500, "unhealthy", UNABLE, call.herder.stage().as_ref()),
    }
}

/// The answer while there is no herder, or while it reads its topics and joins its group.
pub(crate) fn starting(stage: Option<&Stage>) -> Reply {
    status(503, "starting", "Worker is still starting up.", stage)
}

fn status(code: u16, status: &str, message: &str, stage: Option<&Stage>) -> Reply {
    let message = match stage {
        Some(stage) => format!("{message} {}", stage.summary()),
        None => message.to_owned(),
    };
    Reply::json(code, &WorkerStatus { status: status.to_owned(), message })
}
