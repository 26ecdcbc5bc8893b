//! At-least-once mode.

use super::ahead::Target;
use super::run::TaskSpec;
use crate::error::TaskFailure;
use oncewire_api::StopSignal;
use tokio::sync::watch;

/// Runs the task once, at-least-once.
pub async fn run(_spec: &TaskSpec, _stop: &StopSignal, _target: watch::Receiver<Target>) -> Result<(), TaskFailure> {
    Err(TaskFailure::failed("at-least-once mode is not there yet"))
}
