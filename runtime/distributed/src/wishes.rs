//! What connector instances ask of the herder, kept until its loop looks: the newest wish per connector, so that a connector
//! that asks in a tight loop costs nothing.

use oncewire_api::ConnectorRequest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// What was asked since the last look.
#[derive(Debug, Default)]
pub struct Asked {
    /// Connectors that want new task configurations.
    pub reconfigure: BTreeSet<String>,
    /// Connectors that cannot go on, with their words.
    pub failed: BTreeMap<String, String>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    asked: Arc<Mutex<Asked>>,
    notify: Arc<Notify>,
}

impl Wishes {
    /// Notes a wish; never blocks.
    pub fn note(&self, connector: &str, request: ConnectorRequest) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match request {
            ConnectorRequest::ReconfigureTasks => {
                asked.reconfigure.insert(connector.to_owned());
            }
            ConnectorRequest::Fail(problem) => {
                asked.failed.insert(connector.to_owned(), problem);
            }
        }
        drop(asked);
        self.notify.notify_one();
    }

    /// Waits until something was asked.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn wait(&self) {
        self.notify.notified().await;
    }

    /// Takes what was asked.
    pub fn take(&self) -> Asked {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
