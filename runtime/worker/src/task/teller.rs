//! Tells one task's states, until the task is abandoned: from then on nobody hears of it.

use crate::worker::status::{State, Statuses};
use std::sync::{Arc, Mutex, PoisonError};

struct Told {
    state: State,
    silenced: bool,
}

/// See the module. The state is remembered also where nobody listens.
pub struct Teller {
    statuses: Option<Arc<dyn Statuses>>,
    connector: Arc<str>,
    task: u32,
    told: Mutex<Told>,
}

impl Teller {
    /// Tells `statuses`; without one, nobody.
    pub fn new(statuses: Option<Arc<dyn Statuses>>, connector: &str, task: u32) -> Self {
        let told = Mutex::new(Told { state: State::Unassigned, silenced: false });
        Self { statuses, connector: connector.into(), task, told }
    }

    /// Tells a state. Under the lock, so that nothing is told after [`Teller::silence`] has returned, nor out of order.
    pub fn tell(&self, state: State, trace: Option<String>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.silenced {
            return;
        }
        told.state = state;
        if let Some(statuses) = &self.statuses {
            statuses.task(&self.connector, self.task, state, trace);
        }
    }

    /// Tells that the task writes to a topic.
    pub fn topic(&self, topic: &str) {
        let Some(statuses) = &self.statuses else { return };
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.silenced {
            statuses.topic(&self.connector, self.task, topic);
        }
    }

    /// Nothing is told any more.
    pub fn silence(&self) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).silenced = true;
    }

    /// The state that was told last.
    pub fn state(&self) -> State {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).state
    }
}
