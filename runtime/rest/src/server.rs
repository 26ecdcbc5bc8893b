//! The listeners, and what a request passes on its way to a resource.

use std::sync::Arc;
use std::time::Duration;

use crate::config::RestConfig;
use crate::herder::Herder;

/// A worker's REST interface. Bound before the herder exists, so that the advertised URL is known to it; until [`RestServer::serve`] requests get 503.
#[derive(Debug)]
pub struct RestServer {
    advertised_url: String,
}

impl RestServer {
    /// Binds every listener and begins to accept.
    ///
    /// # Errors
    /// A listener cannot be bound, or a certificate cannot be used; the text names the key.
    pub async fn bind(_config: RestConfig) -> Result<Self, String> {
        Err("the REST server is not built yet".to_owned())
    }

    /// What other workers and clients reach this worker by, ending in `/`.
    pub fn advertised_url(&self) -> &str {
        &self.advertised_url
    }

    /// From now on requests reach `herder`. Called once; a later call changes nothing.
    pub fn serve(&self, _herder: Arc<dyn Herder>) {}

    /// Stops accepting, lets running requests end for `patience`, then cuts them off.
    pub async fn close(self, _patience: Duration) {}
}
