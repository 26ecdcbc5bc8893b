//! The group's side of the loop: what this worker says when it joins, what it deals out when it leads, and what it does with
//! what it was dealt.

use super::tick::{Held, Tick, clock_ms};
use crate::view::GroupView;
use oncewire_client::complaint::Complaint;
use oncewire_client::group::{GroupEvent, Lost, Protocol};
use oncewire_membership::{
    AfterFailure, Assignment, Configured, ConnectProtocol, Load, MemberState, Reread, Resolve, Round, TaskId,
    decode_assignment, decode_metadata, encode_assignment, encode_metadata, merge, resolve,
};
use oncewire_topics::ConfigSnapshot;
use std::collections::BTreeMap;
use std::time::{Duration, Instant as SystemInstant};
use tokio::time::Instant;

/// How long a LeaveGroup may take when the worker steps back to catch up: 3 s.
const STEP_BACK_MAX: Duration = Duration::from_secs(3);

impl Tick {
    pub(super) async fn on_group(&mut self, event: GroupEvent) {
        match event {
            GroupEvent::Offer { cause } => self.offer(&cause).await,
            GroupEvent::Lead { generation, protocol, member_id, members } => {
                self.lead(generation, &protocol, &member_id, members).await;
            }
            GroupEvent::Assigned { generation, protocol, member_id, leader_id, assignment } => {
                self.parts.view.begin_stage("taking its part of a rebalance");
                let Some(protocol) = ConnectProtocol::from_name(&protocol) else {
                    let problem = format!("the coordinator chose protocol {protocol:?}, which was not offered");
                    return self.on_void_round(&problem, "unknown protocol");
                };
                if assignment.is_empty() {
                    let problem = format!("the leader, {leader_id}, assigned nothing");
                    return self.on_void_round(&problem, "the leader gave no assignment");
                }
                match decode_assignment(&assignment) {
                    Ok(assignment) => self.on_assigned(generation, protocol, member_id, assignment).await,
                    Err(problem) => {
                        let problem = format!("the assignment by {leader_id} can't be read: {problem}");
                        self.on_void_round(&problem, "the assignment can't be read");
                    }
                }
            }
            GroupEvent::Lost { cause } => self.on_lost(cause).await,
            GroupEvent::Failed(error) => self.on_join_failed(&error),
        }
    }

    /// Says what this worker is and runs, in every protocol that it offers: all from one snapshot.
    async fn offer(&mut self, cause: &str) {
        self.on_coordinator_found();
        if !self.parts.view.group().leads && self.leaves_instead().await {
            return;
        }
        self.parts.view.begin_stage("joining the group");
        self.parts.view.update_group(|group| group.rebalancing = true);
        self.begin_handing_over();
        if self.held.as_ref().is_some_and(|held| held.protocol == ConnectProtocol::Eager) {
            self.stop_everything().await;
            self.held = None;
        }
        let allocation = self.allocation_to_report().await;
        self.wave.answered();
        let snapshot = self.parts.view.snapshot();
        let (url, offset) = (self.parts.url.clone(), snapshot.offset());
        let state = if self.draining.is_on() {
            MemberState::going(url, offset)
        } else {
            MemberState { url, offset, allocation }
        };
        tracing::debug!(cause, offset = snapshot.offset(), "joining group {}", self.parts.config.group_id);
        let protocols = self.parts.config.protocol.offered();
        let protocols = protocols.iter().map(|protocol| Protocol {
            name: protocol.name().to_owned(),
            metadata: encode_metadata(*protocol, &state),
        });
        self.parts.member.offer(protocols.collect());
    }

    async fn lead(&mut self, generation: i32, protocol: &str, member_id: &str, members: Vec<(String, bytes::Bytes)>) {
        let Some(protocol) = ConnectProtocol::from_name(protocol) else {
            tracing::error!(protocol, "the coordinator chose a protocol that was not offered");
            return self.parts.member.assign(Vec::new());
        };
        let mut states = BTreeMap::new();
        for (member, metadata) in members {
            match decode_metadata(&metadata) {
                Ok(state) => {
                    states.insert(member, state);
                }
                // It gets no assignment and joins again; the others work on.
                Err(problem) => tracing::error!(member, "a member's metadata can't be read: {problem}"),
            }
        }
        self.inherit(protocol, &states).await;
        let round = Round {
            protocol,
            leader: member_id.to_owned(),
            generation,
            last_completed_generation: self.last_completed_generation,
            members: states,
            configured: configured(&self.parts.view.snapshot()),
        };
        let outcome = self.assignor.assign(round, clock_ms());
        tracing::info!(generation, members = outcome.assignments.len(), delay = ?outcome.delay, "leading group {}", self.parts.config.group_id);
        self.owners = outcome.owners;
        let assignments = outcome.assignments.iter();
        let encoded = assignments.map(|(member, assignment)| (member.clone(), encode_assignment(protocol, assignment)));
        self.parts.member.assign(encoded.collect());
    }

    async fn on_assigned(&mut self, generation: i32, protocol: ConnectProtocol, member_id: String, new: Assignment) {
        self.on_let_in();
        self.last_completed_generation = generation;
        if !new.revoked.is_empty() {
            tracing::info!(
                generation,
                connectors = new.revoked.connectors.len(),
                tasks = new.revoked.tasks.len(),
                "giving work back"
            );
            self.stop_load(&new.revoked).await;
            self.forget_topics(&new.revoked);
        }
        let revoked = !new.revoked.is_empty();
        let previous = self.held.take().filter(|_| protocol != ConnectProtocol::Eager).map(|held| held.assignment);
        let mut assignment = merge(previous.as_ref(), &new);
        // What was revoked is done with; reported again it would look like a second revocation.
        assignment.revoked = Load::default();
        let leads = assignment.leader == member_id;
        // A leader whose first round failed has still not dealt anything out.
        self.is_heir = !leads || (self.is_heir && new.failed());
        let group = GroupView {
            generation,
            protocol: Some(protocol),
            leader_url: Some(assignment.leader_url.clone()).filter(|url| !url.is_empty()),
            leads,
            rebalancing: false,
            joined: true,
            member: true,
            draining: self.draining.is_on(),
            trouble: None,
        };
        self.parts.view.update_group(|view| *view = group);
        self.rejoin_at = (assignment.delay_ms > 0)
            .then(|| Instant::now() + Duration::from_millis(u64::from(assignment.delay_ms.unsigned_abs())));
        tracing::info!(
            generation,
            leads,
            protocol = protocol.name(),
            connectors = assignment.assigned.connectors.len(),
            tasks = assignment.assigned.tasks.len(),
            delay_ms = assignment.delay_ms,
            "assignment"
        );
        self.held = Some(Held { assignment, protocol, member_id: member_id.clone() });
        if leads {
            self.begin_leading().await;
        }
        self.resolve_assignment(&member_id).await;
        if revoked {
            self.rejoin("revoked work can be handed out");
        }
    }

    /// Starts what is assigned, once our snapshot is the one that it was assigned from.
    async fn resolve_assignment(&mut self, member_id: &str) {
        let mut sync = Reread::Pending;
        loop {
            let Some(held) = &self.held else { return };
            if self.draining.is_on() && !held.assignment.failed() {
                // Nothing starts here any more, from whatever snapshot.
                return;
            }
            let offset = self.parts.view.snapshot().offset();
            match resolve(&held.assignment, offset, member_id, sync) {
                Resolve::Work => {
                    self.unsync.succeeded();
                    return self.start_assigned().await;
                }
                Resolve::Rejoin => {
                    let theirs = held.assignment.offset;
                    tracing::info!(
                        ours = offset,
                        theirs,
                        "the assignment was made from another state of the config topic"
                    );
                    return self.rejoin("config offsets differ");
                }
                Resolve::ReadConfigs => match self.parts.view.configs.refresh(self.parts.config.sync_timeout).await {
                    Ok(()) => sync = Reread::Done,
                    Err(error) => {
                        tracing::warn!(
                            "the config topic was not read in {:?}: {error}",
                            self.parts.config.sync_timeout
                        );
                        self.must_read = true;
                        return;
                    }
                },
            }
        }
    }

    /// Steps back from the group until the config topic was read: a worker that is behind would hold everybody up.
    pub(super) async fn recover_read(&mut self, stop: &oncewire_api::StopSignal) {
        self.parts.view.begin_stage("catching up with the config topic");
        if self.leaves_instead().await {
            self.must_read = false;
            return;
        }
        self.take_back();
        self.parts.member.leave("can't catch up with the config topic", STEP_BACK_MAX).await;
        self.is_heir = false;
        self.parts.view.update_group(|group| {
            group.rebalancing = true;
            group.member = false;
        });
        let mut complaint = Complaint::default();
        while self.must_read && !stop.is_stopped() {
            let protocol = self.held.as_ref().map_or(self.parts.config.protocol, |held| held.protocol);
            match self.unsync.failed(protocol) {
                AfterFailure::RevokeAll => {
                    tracing::warn!("the config topic can't be read for too long; everything that runs here is stopped");
                    self.stop_everything().await;
                    self.held = None;
                }
                AfterFailure::Wait(wait) => {
                    tokio::select! {
                        () = stop.stopped() => return,
                        () = tokio::time::sleep(wait) => {}
                    }
                }
            }
            match self.parts.view.configs.refresh(self.parts.config.sync_timeout).await {
                Ok(()) => self.must_read = false,
                Err(error) => {
                    if let Some(told) = complaint.failed(SystemInstant::now(), &error.to_string()) {
                        tracing::warn!("the config topic still can't be read{told}: {error}");
                    }
                }
            }
        }
        if let Some(after) = complaint.over(SystemInstant::now()).filter(|_| !self.must_read) {
            tracing::info!("the config topic is read again after {:.1} s", after.as_secs_f32());
        }
    }

    async fn on_lost(&mut self, cause: Lost) {
        self.is_heir = false;
        if self.leaves_instead().await {
            return;
        }
        self.take_back();
        self.parts.view.update_group(|group| {
            group.rebalancing = true;
            group.leads = false;
            group.member = false;
        });
        match cause {
            // Others own the work by now, or will before we hear of it.
            Lost::CoordinatorUnreachable | Lost::PollTimeout => {
                tracing::warn!(
                    "membership of group {} was lost: {cause}; everything that runs here is stopped",
                    self.parts.config.group_id
                );
                if cause == Lost::CoordinatorUnreachable {
                    self.on_coordinator_away();
                }
                self.stop_everything().await;
                self.held = None;
            }
            // The next join reports what runs here; the leader tells what of it has another owner now.
            Lost::UnknownMember | Lost::IllegalGeneration | Lost::SessionExpired => {
                tracing::warn!("membership of group {} was lost: {cause}; joining again", self.parts.config.group_id);
                self.slept.through(self.parts.worker.running_tasks());
            }
        }
    }
}

/// What is to be run, from a snapshot.
pub(super) fn configured(snapshot: &ConfigSnapshot) -> Configured {
    let connectors = snapshot.connectors();
    let tasks = connectors.map(|connector| {
        let tasks = snapshot.tasks(connector).into_iter().filter_map(|task| i32::try_from(task).ok()).collect();
        (connector.to_owned(), tasks)
    });
    Configured { offset: snapshot.offset(), tasks: tasks.collect() }
}

/// A task's id as the worker has it.
pub(super) fn task_pair(id: &TaskId) -> Option<(String, u32)> {
    Some((id.connector.clone(), u32::try_from(id.task).ok()?))
}
