//! The worker's keys that concern REST.

use std::collections::BTreeMap;

/// Everything that the REST interface takes from the worker's properties.
#[derive(Clone, Debug)]
pub struct RestConfig {}

impl RestConfig {
    /// Reads the keys; the second part are warnings to log.
    ///
    /// # Errors
    /// A value is wrong; the text names the key.
    pub fn from_properties(_properties: &BTreeMap<String, String>) -> Result<(Self, Vec<String>), String> {
        Err("the REST server is not built yet".to_owned())
    }
}
