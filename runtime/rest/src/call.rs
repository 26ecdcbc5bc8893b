//! One request on its way to a resource, and the reply on its way back.

use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use serde::Serialize;

use crate::config::RestConfig;
use crate::error::{Failure, Forwards};
use crate::herder::{Herder, HerderError};
use crate::model::{ConnectorStateInfo, TaskInfo, TaskState};
use crate::path::{Query, encode_segment};

/// A request whose path, method, types and size are all right.
pub(crate) struct Call {
    pub(crate) herder: Arc<dyn Herder>,
    pub(crate) config: Arc<RestConfig>,
    /// `GET` for a `HEAD`.
    pub(crate) method: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// `scheme://host:port` as the client wrote it.
    pub(crate) base: String,
}

/// What of an answer may have been worded by a connector, masked.
impl Call {
    fn mask(&self, text: &mut Option<String>) {
        *text = text.take().map(|text| self.herder.masked(text));
    }

    /// A connector's and its tasks' states. A Java worker writes their traces as they are.
    pub(crate) fn masked_states(&self, mut states: ConnectorStateInfo) -> ConnectorStateInfo {
        self.mask(&mut states.connector.trace);
        states.tasks.iter_mut().for_each(|task| self.mask(&mut task.trace));
        states
    }

    /// A task's state.
    pub(crate) fn masked_state(&self, mut state: TaskState) -> TaskState {
        self.mask(&mut state.trace);
        state
    }

    /// Tasks. A connector may have put a resolved value, such as a password within an address, under a key of its own.
    pub(crate) fn masked_tasks(&self, mut tasks: Vec<TaskInfo>) -> Vec<TaskInfo> {
        tasks.iter_mut().flat_map(|task| task.config.values_mut()).for_each(|value| self.mask(value));
        tasks
    }
}

/// What goes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    /// JSON, unless `text`.
    pub(crate) body: Option<Bytes>,
    pub(crate) text: bool,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Reply {
    pub(crate) fn empty(code: u16) -> Self {
        Reply { code, ..Reply::default() }
    }

    pub(crate) fn json(code: u16, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => Reply { code, body: Some(body.into()), ..Reply::default() },
            Err(error) => Reply::failure(&Failure::new(500, error.to_string())),
        }
    }

    pub(crate) fn failure(failure: &Failure) -> Self {
        let body = serde_json::json!({ "error_code": failure.code, "message": failure.message });
        Reply { code: failure.code, body: Some(body.to_string().into()), ..Reply::default() }
    }

    pub(crate) fn with(mut self, header: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }

    /// Says where a connector that was created is.
    pub(crate) fn located(self, base: &str, connector: &str) -> Self {
        let location = format!("{base}/connectors/{}", encode_segment(connector));
        self.with("Location", location)
    }
}

/// Why there is no reply yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The request is wrong.
    Failed(Failure),
    /// The herder said no.
    Herder(HerderError, Forwards),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Problem::Failed(failure)
    }
}

/// For what any worker can do.
pub(crate) fn here(error: HerderError) -> Problem {
    Problem::Herder(error, Forwards::No)
}

/// For what another worker may have to do.
pub(crate) fn anywhere(error: HerderError) -> Problem {
    Problem::Herder(error, Forwards::Yes)
}
