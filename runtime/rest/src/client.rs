//! Requests from this worker to another one: forwarded requests, and signed internal ones.

use crate::config::RestConfig;
use crate::herder::HerderError;
use crate::model::ConfigMap;

/// The session key as the config topic holds it, and the algorithm to sign with (`inter.worker.signature.algorithm`).
#[derive(Clone, Copy, Debug)]
pub struct SigningKey<'a> {
    /// Java's name, such as `HmacSHA256`.
    pub algorithm: &'a str,
    /// Raw bytes.
    pub key: &'a [u8],
}

/// An HTTP client with the worker's TLS settings. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RestClient {}

impl RestClient {
    /// A client for workers reached by `http` and `https`.
    ///
    /// # Errors
    /// A certificate cannot be used; the text names the key.
    pub fn new(_config: &RestConfig) -> Result<Self, String> {
        Err("the REST client is not built yet".to_owned())
    }

    /// Sends task configurations to the leader.
    ///
    /// # Errors
    /// The other worker's answer ([`HerderError::Status`]), or [`HerderError::Internal`] when it cannot be reached.
    pub async fn put_task_configs(
        &self,
        _leader_url: &str,
        _connector: &str,
        _configs: &[ConfigMap],
        _key: Option<SigningKey<'_>>,
    ) -> Result<(), HerderError> {
        Err(HerderError::Internal("not built yet".to_owned()))
    }

    /// Asks the leader for a round of zombie fencing.
    ///
    /// # Errors
    /// As [`RestClient::put_task_configs`].
    pub async fn fence(
        &self,
        _leader_url: &str,
        _connector: &str,
        _key: Option<SigningKey<'_>>,
    ) -> Result<(), HerderError> {
        Err(HerderError::Internal("not built yet".to_owned()))
    }
}
