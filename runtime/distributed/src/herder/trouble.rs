//! What keeps this worker out of its group: told in the log without flooding it, shown by `/health`, and, before the first join,
//! an end where only a person can mend it.
//!
//! ```text
//! coordinator away   → told, tried on                                            │ while no member: /health names it,
//! join refused       → told, tried on                                            │ until an assignment comes
//! … before the first join, for what is wrong with the worker's own properties    → the worker ends, as one that can't start
//! ```
//!
//! A Java worker ends for every refusal, also one that has worked for weeks. Here a member that was let in once goes on trying: a
//! permission or a limit that somebody changed may be changed back.

use super::tick::Tick;
use oncewire_client::complaint::Complaint;
use oncewire_client::error::Error;
use oncewire_client::group::Lost;
use oncewire_client::wire::error_code::codes;
use std::time::Instant;

/// What was told of it so far.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Nobody could be asked.
    away: Complaint,
    /// The coordinator, or the leader's assignment, does not let this worker in.
    refused: Complaint,
}

impl Tick {
    /// An attempt to join failed; it is made again.
    pub(super) fn on_join_failed(&mut self, error: &Error) {
        let group_id = self.parts.config.group_id.clone();
        let view = self.parts.view.group();
        if !view.joined && is_for_a_person(error) {
            self.refused = Some(format!("group {group_id:?} does not take this worker: {error}"));
            return;
        }
        let cause = cause(error);
        let complaint = if error.retriable() { &mut self.trouble.away } else { &mut self.trouble.refused };
        if let Some(told) = complaint.failed(Instant::now(), &cause) {
            tracing::warn!("can't join group {group_id}{told}, trying on: {cause}");
        }
        if !view.member {
            self.show_trouble(&cause);
        }
    }

    /// The assignment is void because no coordinator was found for a heartbeat interval.
    pub(super) fn on_coordinator_away(&mut self) {
        // The loss itself is told by the caller.
        let _ = self.trouble.away.failed(Instant::now(), &Lost::CoordinatorUnreachable.to_string());
        self.show_trouble(&Lost::CoordinatorUnreachable.to_string());
    }

    /// A round gave this worker nothing to go by; it joins again.
    pub(super) fn on_void_round(&mut self, problem: &str, rejoin: &str) {
        if let Some(told) = self.trouble.refused.failed(Instant::now(), problem) {
            tracing::error!("joining group {} again{told}: {problem}", self.parts.config.group_id);
        }
        self.rejoin(rejoin);
    }

    /// A coordinator was found.
    pub(super) fn on_coordinator_found(&mut self) {
        if let Some(after) = self.trouble.away.over(Instant::now()) {
            let (group_id, after) = (&self.parts.config.group_id, after.as_secs_f32());
            tracing::info!("the coordinator of group {group_id} is reached again after {after:.1} s");
        }
    }

    /// This worker is a member, with an assignment that it understands.
    pub(super) fn on_let_in(&mut self) {
        if let Some(after) = self.trouble.refused.over(Instant::now()) {
            let (group_id, after) = (&self.parts.config.group_id, after.as_secs_f32());
            tracing::info!("group {group_id} takes this worker again after {after:.1} s");
        }
    }

    fn show_trouble(&self, cause: &str) {
        let shown = format!("this worker is no member of group {:?} at present: {cause}", self.parts.config.group_id);
        self.parts.view.update_group(|group| group.trouble = Some(shown));
    }
}

/// Whether trying again changes nothing before somebody has changed this worker's properties, or the broker's limits for them.
fn is_for_a_person(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(codes::INCONSISTENT_GROUP_PROTOCOL | codes::INVALID_GROUP_ID | codes::INVALID_SESSION_TIMEOUT)
    )
}

/// What a person wants to know of it: that a coordinator was looked for in vain says less than what that met.
fn cause(error: &Error) -> String {
    match error {
        Error::Timeout { last: Some(last), .. } => last.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncewire_client::error::BrokerError;
    use std::sync::Arc;

    fn answered(code: i16) -> Error {
        Error::Broker(BrokerError {
            api: "JoinGroup",
            code,
            subject: "group 'g'".to_owned(),
            message: None,
            user: None,
        })
    }

    #[test]
    fn only_what_the_workers_own_properties_cause_is_for_a_person() {
        for code in [codes::INCONSISTENT_GROUP_PROTOCOL, codes::INVALID_GROUP_ID, codes::INVALID_SESSION_TIMEOUT] {
            assert!(is_for_a_person(&answered(code)), "{code}");
        }
        for code in [codes::GROUP_AUTHORIZATION_FAILED, codes::GROUP_MAX_SIZE_REACHED, codes::COORDINATOR_NOT_AVAILABLE]
        {
            assert!(!is_for_a_person(&answered(code)), "{code}");
        }
    }

    #[test]
    fn of_a_wait_in_vain_the_last_attempt_is_told() {
        let last = Error::NoBroker { attempts: Vec::new() };
        let what = "finding the coordinator".to_owned();
        let after = std::time::Duration::from_secs(3);
        let error = Error::Timeout { what: what.clone(), after, last: Some(Arc::new(last)) };
        assert_eq!(cause(&error), "no broker answered");
        assert!(cause(&Error::Timeout { what, after, last: None }).contains("finding the coordinator"));
    }
}
