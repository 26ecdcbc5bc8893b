//! Work of the herder that takes longer than a turn of its loop. Bound: per connector one of each kind, and one per waiting
//! REST request. Jobs are owned here and end with the loop.

use super::command::Reply;
use oncewire_api::Properties;
use oncewire_rest::herder::Answer;
use oncewire_worker::worker::{ReconfigureError, TargetState};
use std::future::Future;
use tokio::task::JoinSet;

/// What a job came to.
#[derive(Debug)]
pub(super) enum Done {
    /// A connector instance reached its state, or did not.
    ConnectorReady {
        /// The connector.
        connector: String,
        /// Its state.
        result: Result<TargetState, String>,
    },
    /// The same, for a person who waits for the restart.
    Restarted {
        /// The connector.
        connector: String,
        /// Its state.
        result: Result<TargetState, String>,
        /// Who waits.
        reply: Reply<()>,
    },
    /// A connector made task configurations.
    TaskConfigs {
        /// The connector.
        connector: String,
        /// What it made.
        result: Result<Vec<Properties>, ReconfigureError>,
    },
    /// Task configurations were sent to the leader.
    Forwarded {
        /// The connector.
        connector: String,
        /// The leader's answer.
        result: Result<(), String>,
    },
    /// A round of fencing ended.
    Fenced {
        /// The connector.
        connector: String,
        /// The first failure.
        result: Result<(), String>,
    },
    /// The ids of a connector's tasks that are gone were fenced.
    LeftoversFenced {
        /// The connector.
        connector: String,
        /// Which could not be fenced, and why.
        result: Result<(), String>,
    },
    /// Other groups were looked for that use this group's config topic.
    SharingSeen {
        /// Which there are.
        result: Result<Vec<String>, String>,
    },
    /// Offsets were changed.
    OffsetsChanged {
        /// Who waits.
        reply: Reply<String>,
        /// The answer.
        answer: Answer<String>,
    },
}

/// The jobs under way.
#[derive(Debug, Default)]
pub(super) struct Jobs(JoinSet<Done>);

impl Jobs {
    /// Starts one.
    pub(super) fn spawn(&mut self, job: impl Future<Output = Done> + Send + 'static) {
        self.0.spawn(job);
    }

    /// The next that ended; `None` at once when none is under way.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> Option<Done> {
        match self.0.join_next().await? {
            Ok(done) => Some(done),
            Err(error) => {
                tracing::error!("a job of the herder ended by a bug of the worker: {error}");
                None
            }
        }
    }

    /// Ends all.
    pub(super) async fn abort(&mut self) {
        self.0.shutdown().await;
    }
}
