//! Which properties of its Kafka clients a connector may set (`connector.client.config.override.policy`, KIP-458).

use oncewire_api::Properties;

/// The client whose properties are overridden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// `producer.override.`
    Producer,
    /// `consumer.override.`
    Consumer,
    /// `admin.override.`
    Admin,
}

/// The policy of the worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OverridePolicy {
    /// Everything.
    #[default]
    All,
    /// Nothing.
    None,
    /// Credentials only.
    Principal,
    /// These properties.
    Allowlist(Vec<String>),
}

impl OverridePolicy {
    /// The policy that the worker's properties name.
    ///
    /// # Errors
    /// What is wrong, and what to change.
    pub fn from_worker(worker: &Properties) -> Result<Self, String> {
        let _ = worker;
        Ok(Self::All)
    }

    /// Whether a client property (without its prefix) may be set.
    pub fn allows(&self, property: &str) -> bool {
        let _ = property;
        true
    }
}
