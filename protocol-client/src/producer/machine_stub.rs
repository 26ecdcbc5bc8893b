//! Stands in until the machine is in `oncewire-txn`.

use oncewire_txn::{Command, Output, Reply, RequestId, Time};

#[derive(Debug, Clone, Default)]
pub(crate) struct Settings;

pub(crate) struct Machine;

impl Machine {
    pub(crate) fn new(_settings: Settings, _seed: u64) -> Self {
        Self
    }
    pub(crate) fn handle_command(&mut self, _now: Time, _command: Command) -> Result<(), String> {
        Err("the transaction machine is not there yet".to_owned())
    }
    pub(crate) fn handle_reply(&mut self, _now: Time, _request: RequestId, _reply: Reply) {}
    pub(crate) fn handle_timeout(&mut self, _now: Time) {}
    pub(crate) fn poll_output(&mut self, _now: Time) -> Output {
        Output::Wait { until: None }
    }
}
