//! `/connectors/{name}/offsets` (KIP-875).

use crate::body;
use crate::call::{Call, Problem, Reply, anywhere, here};
use crate::model::{ConnectorOffsets, Message};

pub(super) async fn any(call: &Call, name: &str) -> Result<Reply, Problem> {
    let message = match call.method.as_str() {
        "PATCH" => {
            let offsets = body::offsets(&call.body)?;
            call.herder.alter_connector_offsets(name, offsets).await.map_err(anywhere)?
        }
        "DELETE" => call.herder.reset_connector_offsets(name).await.map_err(anywhere)?,
        _ => {
            let offsets = call.herder.connector_offsets(name).await.map_err(here)?;
            return Ok(Reply::json(200, &ConnectorOffsets { offsets }));
        }
    };
    Ok(Reply::json(200, &Message { message }))
}
